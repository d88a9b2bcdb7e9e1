"""What is found about bounds: verdicts for exact definitions, and the cases that decide them."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.result import Result, plain
from fluidcc.scenario.network import Network

if TYPE_CHECKING:
    from xarray import Dataset

HOLDS, VIOLATED, SILENT = "holds", "violated", "not applicable"
UNKNOWN = "unknown"  # no case had a meaning


@dataclasses.dataclass(frozen=True)
class Example:
    """One case: what was judged, as tables of a scenario or as numbers; the bound and the value.

    `text` is the scenario (TOML) that `fluidcc packets` runs, where the case is a network.
    """

    scenario: Mapping[str, Any]
    text: str | None
    bound: float
    value: float
    excess: float

    @classmethod
    def of(cls, case: Any) -> "Example":
        """The example that a case of a search is."""
        subject, text = case.subject, None
        if isinstance(subject, Network):
            from fluidcc.scenario.files import dumps
            from fluidcc.scenario.tables import tables

            shown, text = tables(subject), dumps(subject)
        else:
            shown = subject
        return cls(shown, text, *case.judged)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        text = {} if self.text is None else {"toml": self.text}
        numbers = {"bound": self.bound, "value": self.value, "excess": self.excess}
        return plain({"scenario": dict(self.scenario), **numbers, **text})


@dataclasses.dataclass(frozen=True)
class Reading:
    """The verdict on a bound under one set of definitions.

    `worst` is the smallest counterexample, or the case nearest to the bound where there is none;
    `largest` is the case with the largest excess; `tight` tells that the bound holds and is met;
    `searched` counts the cases that were judged under these definitions; `why` tells why nothing
    is known where the verdict is `unknown`.
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


@dataclasses.dataclass(frozen=True, repr=False)
class BoundReport(Result):
    """What was found about one bound.

    `readings` has one entry for each set of definitions, first the one of the words; `verdict`,
    `tight` and `worst` are those of that one. `derivation` lists what follows by algebra.

    Examples
    --------
    >>> import fluidcc as fc
    >>> report = fc.check_bound(
    ...     "mark_front.slow_start", fc.load("durresi2001/slow_start_tail")
    ... )
    >>> report.source, report.engine
    ('durresi2001, section 4, results 1 and 2', 'packets')
    """

    _view = "verdicts.BoundView"

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

    def to_dict(self) -> dict[str, Any]:
        """Plain data: `bounds` has one entry for each reading."""
        common = {
            "id": self.id,
            "source": self.source,
            "claims": list(self.claims),
            "statement": self.statement,
            "hypotheses": list(self.hypotheses),
            "engine": self.engine,
            "derivation": list(self.derivation),
        }
        entries = [{**common, **reading.to_dict()} for reading in self.readings]
        silent = [] if self.readings else [{"id": self.id, "why": self.message}]
        return {"bounds": entries, "not_applicable": silent}

    def to_dataset(self) -> "Dataset":
        """The verdicts along the dimension `reading`."""
        return BoundReports((self,)).to_dataset()


@dataclasses.dataclass(frozen=True, repr=False)
class BoundReports(Result):
    """What was found about several bounds.

    Examples
    --------
    >>> import fluidcc as fc
    >>> reports = fc.check_bounds(
    ...     fc.load("durresi2001/slow_start_tail"), names=["mark_front.slow_start"]
    ... )
    >>> [report.verdict for report in reports.reports]
    ['violated']
    """

    _view = "verdicts.BoundsView"

    reports: tuple[BoundReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the readings of all bounds, and the bounds that say nothing, with why."""
        parts = [report.to_dict() for report in self.reports]
        keys = ("bounds", "not_applicable")
        return {key: [entry for part in parts for entry in part[key]] for key in keys}

    def to_dataset(self) -> "Dataset":
        """The verdicts along the dimension `reading`."""
        import xarray as xr

        pairs = [(report, reading) for report in self.reports for reading in report.readings]
        nothing = float("nan")
        columns: dict[str, list] = {
            "bound_id": [report.id for report, _ in pairs],
            "definitions": [
                "; ".join(f"{k}: {v}" for k, v in reading.definitions.items())
                for _, reading in pairs
            ],
            "verdict": [reading.verdict for _, reading in pairs],
            "tight": [reading.tight for _, reading in pairs],
            "searched": [reading.searched for _, reading in pairs],
            "bound": [r.worst.bound if r.worst else nothing for _, r in pairs],
            "value": [r.worst.value if r.worst else nothing for _, r in pairs],
            "largest_excess": [r.largest.excess if r.largest else nothing for _, r in pairs],
        }
        data: Any = {name: ("reading", values) for name, values in columns.items()}
        return xr.Dataset(data)
