"""Bounds stated by papers: judged by a search over parameters or on one network, and reported."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.bundled import module
from fluidcc.programs import compiling
from fluidcc.progress import counted, reporting
from fluidcc.quantities import about
from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    from xarray import Dataset


HOLDS, VIOLATED, SILENT = "holds", "violated", "not applicable"
UNKNOWN = "unknown"  # the bound was defined in no case


@dataclasses.dataclass(frozen=True)
class Example:
    """One case, as tables of a scenario or as numbers, with the bound and the value.

    `text` is the scenario (TOML) that `fluidcc packets` runs, if the case is a network.
    """

    scenario: Mapping[str, Any]
    text: str | None
    bound: float
    value: float
    excess: float

    @classmethod
    def of(cls, case: Any) -> "Example":
        """The example that a case of a search is."""
        if not isinstance(case.subject, Network):
            return cls(case.subject, None, *case.judged)
        from fluidcc.scenario.files import dumps
        from fluidcc.scenario.tables import tables

        return cls(tables(case.subject), dumps(case.subject), *case.judged)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        text = {} if self.text is None else {"toml": self.text}
        numbers = {"bound": self.bound, "value": self.value, "excess": self.excess}
        return plain({"scenario": dict(self.scenario), **numbers, **text})


@dataclasses.dataclass(frozen=True)
class Reading:
    """The verdict on a bound under one set of definitions.

    `worst` is the smallest counterexample, or the case nearest to the bound if there is none;
    `largest` is the case with the largest excess; `tight` is true if the bound holds and is met;
    `searched` counts the cases that were judged under these definitions; `why` is the reason of
    the verdict `unknown`.
    """

    definitions: Mapping[str, str]
    verdict: str
    tight: bool
    searched: int
    worst: Example | None
    largest: Example | None
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "verdict": self.verdict,
            **({"why": self.why} if self.why else {}),
            "tight": self.tight,
            "searched": self.searched,
            "definitions": dict(self.definitions),
            "worst": None if self.worst is None else self.worst.to_dict(),
            "largest_excess": None if self.largest is None else plain(self.largest.excess),
        }


class Judged(Result):
    """Reports on bounds, as plain data and as a data set."""

    _view = "verdicts.BoundsView"

    reports: tuple["BoundReport", ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: an entry for each reading of a bound, and the bounds that do not apply."""
        shared = ("id", "source", "claims", "statement", "hypotheses", "engine", "derivation")
        entries = [
            {**{key: plain(getattr(report, key)) for key in shared}, **reading.to_dict()}
            for report in self.reports
            for reading in report.readings
        ]
        silent = [{"id": r.id, "why": r.message} for r in self.reports if not r.readings]
        return {"bounds": entries, "not_applicable": silent}

    def to_xarray(self) -> "Dataset":
        """The verdicts along the dimension `reading`."""
        import xarray as xr

        pairs = [(report, reading) for report in self.reports for reading in report.readings]
        missing = float("nan")
        columns: dict[str, list] = {
            "bound_id": [report.id for report, _ in pairs],
            "definitions": [
                "; ".join(f"{k}: {v}" for k, v in r.definitions.items()) for _, r in pairs
            ],
            **{
                key: [getattr(r, key) for _, r in pairs] for key in ("verdict", "tight", "searched")
            },
            "bound": [r.worst.bound if r.worst else missing for _, r in pairs],
            "value": [r.worst.value if r.worst else missing for _, r in pairs],
            "largest_excess": [r.largest.excess if r.largest else missing for _, r in pairs],
        }
        data: Any = {name: ("reading", values, about(name)) for name, values in columns.items()}
        return xr.Dataset(data)


@dataclasses.dataclass(frozen=True, repr=False)
class BoundReport(Judged):
    """The verdicts on one bound.

    `readings` has one entry for each set of definitions, first the literal one; `verdict`, `tight`
    and `worst` are those of the first. `derivation` lists the steps that follow by algebra.

    `id`, `source`, `claims`, `statement` and `hypotheses` are those of the bound, `engine` what
    judged it, `message` why it does not apply.

    Examples
    --------
    >>> import fluidcc as fc
    >>> report = fc.check_bound(
    ...     "mark_front.slow_start", fc.load("durresi2001/slow_start_tail")
    ... )
    >>> report.source, report.engine
    ('durresi2001, section 4, results 1 and 2', 'packets')
    """

    id: str
    source: str
    claims: tuple[str, ...]
    statement: str
    hypotheses: tuple[str, ...]
    engine: str
    derivation: tuple[str, ...]
    readings: tuple[Reading, ...]
    message: str = ""

    @classmethod
    def of(cls, bound: Any, readings: tuple[Reading, ...], message: str = "") -> "BoundReport":
        """The report on a bound."""
        steps = tuple(map(str, bound.derivation()))
        return cls(
            bound.id, bound.source, bound.claims, bound.statement, bound.hypotheses, bound.engine,
            steps, readings, message,
        )  # fmt: skip

    @property
    def reports(self) -> tuple["BoundReport"]:
        """The report alone."""
        return (self,)

    @property
    def verdict(self) -> str:
        """`holds`, `violated`, `unknown` or `not applicable`, by the first reading."""
        return self.readings[0].verdict if self.readings else SILENT

    @property
    def tight(self) -> bool:
        """Whether the bound holds and is met, by the first reading."""
        return bool(self.readings) and self.readings[0].tight

    @property
    def worst(self) -> Example | None:
        """Smallest counterexample, or the case nearest to the bound, by the first reading."""
        return self.readings[0].worst if self.readings else None


@dataclasses.dataclass(frozen=True, repr=False)
class BoundReports(Judged):
    """The verdicts on several bounds.

    `reports` has one for each.

    Examples
    --------
    >>> import fluidcc as fc
    >>> reports = fc.check_bounds(
    ...     fc.load("durresi2001/slow_start_tail"), names=["mark_front.slow_start"]
    ... )
    >>> [report.verdict for report in reports.reports]
    ['violated']
    """

    reports: tuple[BoundReport, ...]


def check_bound(
    name: str,
    net: Network | None = None,
    *,
    definitions: Mapping[str, str] | None = None,
    budget: int | None = None,
    seed: int = 1,
) -> BoundReport:
    """Judge one published bound: on a network, or by a search over its parameters.

    Parameters
    ----------
    name
        Name of the bound, for example ``mark_front.slow_start``.
    net
        The network to judge; if None, search random networks, and step towards the worst case.
    definitions
        Values of some of the bound's axes; those of a network are settled by it. By default the
        readings in which the bound's verdicts differ.
    budget
        Cases searched for each kind of network (default: a quick number that the bound sets).
    seed
        Seed of the search.

    Returns
    -------
    BoundReport
        Verdicts for exact definitions, with the smallest counterexample.

    Raises
    ------
    ScenarioError
        If there is no such bound, axis or value.

    Examples
    --------
    >>> import fluidcc as fc
    >>> report = fc.check_bound(
    ...     "mark_front.slow_start", fc.load("durresi2001/slow_start_tail")
    ... )
    >>> report.verdict
    'violated'
    """
    return module("validation.lab.check").check(name, net, definitions, budget, seed)


@reporting
@compiling()
def check_bounds(
    net: Network | None = None,
    *,
    names: Iterable[str] = (),
    budget: int | None = None,
    seed: int = 1,
    progress: Callable[[float], object] | None = None,
) -> BoundReports:
    """Judge all bounds, or those named, as `check_bound` does.

    Without a network and names, bounds whose search takes long are left out.

    Returns
    -------
    BoundReports
        `reports`, a `BoundReport` for each bound.

    Examples
    --------
    >>> import fluidcc as fc
    >>> reports = fc.check_bounds(
    ...     fc.load("durresi2001/slow_start_tail"), names=["mark_front.slow_start"]
    ... )
    >>> [report.id for report in reports.reports]
    ['mark_front.slow_start']
    """
    lab, wanted = module("validation.lab.check"), list(names)
    if not wanted:
        wanted = [key for key, b in lab.BOUNDS.items() if net is not None or not b.asked]
    for key in wanted:
        lab.named(key)
    reports = []
    for key in counted(wanted):
        reports.append(check_bound(key, net, budget=budget, seed=seed))
    return BoundReports(tuple(reports))
