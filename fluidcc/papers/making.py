"""Makes figures and verdicts: gathers the runs they need, does what is missing, writes them."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.papers.figure import FLUID, PACKETS, Panel, Recipe, names, recipes
from fluidcc.papers.lab import Lab
from fluidcc.papers.ledger import Verdict, claims, rules, verdict
from fluidcc.papers.store import Store

Showing = Callable[[str], AbstractContextManager[Callable[[float], None] | None]]
"""Opens a progress bar with a name; the context has a function that takes the finished share."""


def _silent(_: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclasses.dataclass(frozen=True)
class Made:
    """A figure that was made: its files, what agrees and what does not, what failed."""

    recipe: Recipe
    panels: Sequence[Panel]
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    failures: Mapping[str, str]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "paper": self.recipe.paper, "figure": self.recipe.number, "title": self.recipe.title,
            "files": [str(file) for file in self.files], "notes": list(self.notes),
            "failures": dict(self.failures), "seconds": self.seconds,
        }  # fmt: skip


def wanted(which: Sequence[str]) -> list[Recipe]:
    """Figures by ``paper`` or ``paper/number``; all for none or ``all``.

    Raises
    ------
    ScenarioError
        For a paper or a figure that there is not.
    """
    every = {r.name: r for paper in names("paper_figs") for r in recipes(paper).values()}
    found: dict[str, Recipe] = {}
    faults = []
    for name in which or ("all",):
        hits = {n: r for n, r in every.items() if name in ("all", n, n.partition("/")[0])}
        if not hits:
            known = [*names("paper_figs"), *every]
            papers = ", ".join(names("paper_figs"))
            expected = f"all, a paper ({papers}) or a figure such as {next(iter(every))}"
            faults.append(Fault("figures", "", expected, f"'{name}'", nearest(name, known)))
        found |= hits
    if faults:
        raise ScenarioError(faults)
    return list(found.values())


def make_figures(
    which: Sequence[str], *, folder: Path, store: Store, quick: bool = False,
    showing: Showing = _silent, made: Callable[[Made], None] = lambda _: None,
) -> list[Made]:  # fmt: skip
    """Make figures: PDF, PNG and CSV of each in ``folder/paper``.

    Parameters
    ----------
    which
        As `wanted` takes them.
    folder, store
        Where figures go, and where results are kept: what is there is not run again.
    quick
        Fewer and shorter runs.
    showing, made
        Progress bars, and what is called with each figure when it is done.
    """
    chosen = wanted(which)
    labs = {r.paper: Lab(store, r.paper, quick=quick) for r in chosen}
    told = {r.name: _claims_of(r) for r in chosen}
    needs = [labs[r.paper].experiment(n).name for r in chosen for n in r.needs]
    for recipe in chosen:
        lab = labs[recipe.paper]
        needs += [n for c in told[recipe.name] for n in rules(recipe.paper)[c].experiments(lab)]
    with showing("packet runs") as show:
        Lab(store, "", quick=quick).perform(needs, show)
    done = []
    with showing("figures") as show:
        for k, recipe in enumerate(chosen):
            lab = labs[recipe.paper].under(None)
            done.append(_make(recipe, lab, told[recipe.name], folder / recipe.paper))
            made(done[-1])
            if show is not None:
                show((k + 1) / len(chosen))
    return done


def _claims_of(recipe: Recipe) -> list[str]:
    """Claims that name a figure and can be judged."""
    if recipe.paper not in names("validation/claims"):
        return []
    named = [c.id for c in claims(recipe.paper).values() if recipe.number in c.numbers]
    return [name for name in named if name in rules(recipe.paper)]


def _make(recipe: Recipe, lab: Lab, judged: Sequence[str], folder: Path) -> Made:
    from fluidcc.papers.drawing import save  # matplotlib: half a second

    begun = time.perf_counter()
    lab.failures = {}
    panels = recipe.draw(lab)
    notes = [f"{recipe.about} {runs_of(recipe, lab)}".strip(), *agreement(panels)]
    notes += [verdict(lab, name).line() for name in judged]
    files = save(recipe, panels, folder, notes)
    failures = dict(lab.failures)
    return Made(recipe, panels, tuple(files), tuple(notes), failures, time.perf_counter() - begun)


def runs_of(recipe: Recipe, lab: Lab) -> str:
    """How long the packet runs of a figure are, and their seeds."""
    found: dict[str, None] = {}
    for name in recipe.needs:
        e = lab.experiment(name)
        found[f"{e.warmup:g} to {e.until:g} s, {_seeds(e.seeds)}"] = None
    return f"Packets: {'; '.join(found)}." if found else ""


def _seeds(count: int) -> str:
    return f"seeds 1 to {count}" if count > 1 else "seed 1"


def agreement(panels: Sequence[Panel]) -> list[str]:
    """How far the fluid model is from the packets, where both are drawn over the same points."""
    apart: list[float] = []
    for panel in panels:
        curves = {(c.label, c.engine): c for c in panel.curves if not c.dense}
        for (label, engine), fluid in curves.items():
            packets = curves.get((label, PACKETS))
            if engine != FLUID or packets is None:
                continue
            seen = dict(zip(packets.x.tolist(), packets.y.tolist(), strict=True))
            for x, y in zip(fluid.x.tolist(), fluid.y.tolist(), strict=True):
                z = seen.get(x, np.nan)
                apart += [abs(y / z - 1)] if z and np.isfinite(y) and np.isfinite(z) else []
    if not apart:
        return []
    return [
        f"fluid beside packets: {100 * np.median(apart):.2g} % apart in the median of "
        f"{len(apart)} points, {100 * max(apart):.2g} % at most"
    ]


def validate(
    papers: Sequence[str], *, store: Store, quick: bool = False, showing: Showing = _silent
) -> tuple[list[Verdict], dict[str, str]]:
    """Judge every claim of some papers.

    Returns
    -------
    tuple
        Verdicts in the order of the ledger, and what failed, by claim or by point of an experiment.
    """
    labs = {paper: Lab(store, paper, quick=quick) for paper in papers}
    needs = [n for p, lab in labs.items() for rule in rules(p).values()
             for n in rule.experiments(lab)]  # fmt: skip
    with showing("packet runs") as show:
        Lab(store, "", quick=quick).perform(needs, show)
    todo = [(paper, name) for paper in papers for name in claims(paper) if name in rules(paper)]
    found, failures = [], {}
    with showing("claims") as show:
        for k, (paper, name) in enumerate(todo):
            found.append(verdict(labs[paper], name))
            if show is not None:
                show((k + 1) / len(todo))
    for lab in labs.values():
        failures |= lab.failures
    return found, failures
