"""The experiments of the papers as data: which scenario, over what, for how long.

A file in ``validation/experiments`` holds those of one paper; figures and claims name them, so that
both speak of the same runs.
"""

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fluidcc.bundled import bundled
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.network import Network
from fluidcc.scenario.files import load
from fluidcc.scenario.paths import replace

PAPERS = MappingProxyType({
    "becn": "akujobi2002",
    "bmcc": "qazi2010",
    "ecn_mod": "misra2003",
    "rwm": "govindaswamy2012",
    "mark_front": "durresi2001",
})  # fmt: skip
"""Papers by short name: the folder of their scenarios, and their key in the bibliography."""

_TIMES = ("until", "warmup", "seeds", "sample", "quick")
_KEYS = ("title", "where", "scenario", "set", "over", "x", "axis", "only", "readings", *_TIMES)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Runs of one scenario along one axis.

    Parameters
    ----------
    name, title, where
        ``paper/name``, what it is, and the place in the paper.
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
        for reading, changed in whole["readings"].items():
            title = f"{whole['title']}: {changed['title']}"
            sets = {**whole.get("set", {}), **changed.get("set", {})}
            other = {**whole, **changed, "title": title, "set": sets}
            found[f"{name}@{reading}"] = _experiment(paper, f"{name}@{reading}", other, quick)
    return MappingProxyType(found)


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
        f"{paper}/{name}", table["title"], table.get("where", ""), table["scenario"],
        table.get("axis", ""), tuple(x for x, _ in points),
        tuple(MappingProxyType({**fixed, **row}) for _, row in points),
        float(times["until"]), float(times["warmup"] or 0.0), int(times["seeds"]),
        times["sample"],
    )  # fmt: skip
