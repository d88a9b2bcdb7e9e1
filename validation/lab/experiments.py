"""The experiments of the papers as data: which scenario, over what, for how long.

A file in ``validation/experiments`` holds those of one paper; figures and claims name them, so that
both speak of the same runs.
"""

import dataclasses
import functools
import shlex
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fluidcc.bundled import bundled
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.scenario.files import load
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import replace
from fluidcc.scenario.tables import literal

from .readings import joint, meaning

PAPERS = MappingProxyType({
    "becn": ("akujobi2002",),
    "bmcc": ("qazi2010",),
    "ecn_mod": ("misra2003",),
    "rwm": ("govindaswamy2012",),
    "mark_front": ("durresi2001",),
    "senders": (
        "zhu2016", "cardwell2017", "cardwell2026", "arun2018", "rfc6817", "brakmo1995", "wei2006",
        "kumar2020", "rfc3649", "kelly2003", "tan2006", "leith2004", "liu2008", "mascolo2001",
        "xia2005", "li2019", "dukkipati2005", "katabi2002",
    ),
    "today": (
        "rfc9438", "rfc9332", "prague2024", "rfc8033", "rfc8289", "alizadeh2010", "hollot2001",
    ),
})  # fmt: skip
"""Papers by short name: the folders of their scenarios, which are keys in the bibliography. The
queue and window laws of today have those of several documents.
"""

_TIMES = ("until", "warmup", "seeds", "sample", "quick")
_KEYS = (
    "title",
    "where",
    "reading",
    "scenario",
    "set",
    "over",
    "x",
    "axis",
    "only",
    "readings",
    *_TIMES,
)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Runs of one scenario along one axis.

    Parameters
    ----------
    name, title, where
        ``paper/name``, what it is, and the place in the paper.
    reading
        What is read otherwise than in the experiment without an @ in its name, or "".
    scenario
        Name of the scenario that is changed.
    axis
        What runs along the axis, with its unit in brackets if it has one.
    x
        Labels of the points, shape (points,).
    changes
        What is changed at each point, by path.
    until, warmup, seeds, sample
        As `simulate_packets` takes them; `seeds` counts from 1.
    """

    name: str
    title: str
    where: str
    reading: str
    scenario: str
    axis: str
    x: tuple[Any, ...]
    changes: tuple[Mapping[str, Any], ...]
    until: float
    warmup: float
    seeds: int
    sample: float | None

    def net(self, k: int) -> Network:
        """The network of point k."""
        return replace(load(self.scenario), self.changes[k])

    @property
    def fixed(self) -> dict[str, Any]:
        """What is changed alike at all points, by path."""
        first, *others = self.changes
        return {p: v for p, v in first.items() if all(change.get(p) == v for change in others)}

    def command(self, k: int) -> str:
        """The command line that does the packet runs of point k."""
        pairs = [f"{path}={literal(value)}" for path, value in self.changes[k].items()]
        sets = [text for pair in pairs for text in ("--set", pair)]
        times = ["--until", f"{self.until:g}", "--warmup", f"{self.warmup:g}"]
        return shlex.join(
            ["fluidcc", "packets", self.scenario, *sets, *times, "--seeds", f"{self.seeds}"]
        )


def experiments(paper: str, *, quick: bool = False) -> Mapping[str, Experiment]:
    """The experiments of a paper by name; readings as ``name@reading``.

    Raises
    ------
    ScenarioError
        For an unknown paper, or a file that is at fault.
    """
    return _read(paper, quick)


@functools.cache
def _read(paper: str, quick: bool) -> Mapping[str, Experiment]:
    folder = bundled("validation") / "experiments"
    known = sorted(f.name.removesuffix(".toml") for f in folder.iterdir())
    if paper not in known:
        close = nearest(paper, known)
        raise ScenarioError([Fault("papers", "", " or ".join(known), f"'{paper}'", close)])
    tables = tomllib.loads((folder / f"{paper}.toml").read_text(encoding="utf-8"))
    common = tables.pop("defaults", {})
    found: dict[str, Experiment] = {}
    for name, table in tables.items():
        whole = {**common, **table}
        for part in ("quick", "readings"):
            whole[part] = {**common.get(part, {}), **table.get(part, {})}
        found[name] = _experiment(paper, name, whole, quick)
        for reading, changed in _combined(paper, whole["readings"]).items():
            means = meaning(paper, reading)
            sets = {**whole.get("set", {}), **changed.get("set", {})}
            told = {"title": f"{whole['title']}: {means}", "reading": means, "set": sets}
            other = {**whole, **changed, **told}
            found[f"{name}@{reading}"] = _experiment(paper, f"{name}@{reading}", other, quick)
    return MappingProxyType(found)


def _combined(paper: str, tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Readings with the joint one of the paper, if it changes an experiment in several ways."""
    chosen = [name for name in joint(paper) if name in tables]
    if len(chosen) < 2:
        return tables
    whole: dict[str, Any] = {}
    for name in chosen:
        whole |= tables[name] | {"set": whole.get("set", {}) | tables[name].get("set", {})}
    return {**tables, "+".join(chosen): whole}


def _experiment(paper: str, name: str, table: Mapping[str, Any], quick: bool) -> Experiment:
    unknown = [key for key in table if key not in _KEYS]
    if unknown:
        faults = [
            Fault(f"{paper}.toml", f"{name}.{key}", f"one of {', '.join(_KEYS)}", f"'{key}'",
                  nearest(key, _KEYS, 1))
            for key in unknown
        ]  # fmt: skip
        raise ScenarioError(faults)
    over, fixed = table.get("over", {}), table.get("set", {})
    rows = [dict(zip(over, row, strict=True)) for row in zip(*over.values(), strict=True)] or [{}]
    labels = table.get("x") or (next(iter(over.values())) if over else [table["title"]])
    if len(labels) != len(rows):
        expected, got = f"{len(rows)} labels, one for each point", f"{len(labels)}"
        raise ScenarioError([Fault(f"{paper}.toml", f"{name}.x", expected, got)])
    short = table["quick"] if quick else {}
    times: dict[str, Any] = {key: short.get(key, table.get(key)) for key in _TIMES}
    points = [(x, row) for x, row in zip(labels, rows, strict=True)
              if x in table.get("only", short.get("x", labels))]  # fmt: skip
    return Experiment(
        f"{paper}/{name}", table["title"], table.get("where", ""), table.get("reading", ""),
        table["scenario"], table.get("axis", ""), tuple(x for x, _ in points),
        tuple(MappingProxyType({**fixed, **row}) for _, row in points),
        float(times["until"]), float(times["warmup"] or 0.0), int(times["seeds"]),
        times["sample"],
    )  # fmt: skip
