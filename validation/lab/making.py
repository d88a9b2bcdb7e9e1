"""Makes figures and verdicts: gathers the runs they need, does what is missing, writes them."""

import contextlib
import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.progress import part, report

from ...paper_figs.drawing.figure import FLUID, PACKETS, Panel, Recipe, recipes, wanted
from .experiments import PAPERS
from .lab import Lab
from .ledger import Verdict, claims, rules, verdict
from .readings import joint
from .store import Store

_NEAR_ZERO = 0.05  # of the largest: relative errors of less say nothing

Showing = Callable[[str], AbstractContextManager[None]]
"""Shows what is reported in its context, under a name."""


def _silent(_: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclasses.dataclass(frozen=True)
class Made:
    """A figure that was made: its files, what agrees and what does not, what failed."""

    paper: str
    number: str
    title: str
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    failures: Mapping[str, str]
    seconds: float

    @property
    def name(self) -> str:
        """``becn/4``."""
        return f"{self.paper}/{self.number}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "paper": self.paper, "figure": self.number, "title": self.title,
            "files": [str(file) for file in self.files], "notes": list(self.notes),
            "failures": dict(self.failures), "seconds": self.seconds,
        }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Bench:
    """Where and how figures and verdicts are made.

    Parameters
    ----------
    store
        Where results are kept: what is there is not run again.
    quick
        Fewer and shorter runs.
    processes
        How many make figures and verdicts at a time; more than one need a main module that can
        be imported, as those of the command line can.
    showing
        Shows the progress.
    """

    store: Store
    quick: bool = False
    processes: int = 1
    showing: Showing = _silent

    def lab(self, paper: str) -> Lab:
        """The experiments of a paper."""
        return Lab(self.store, paper, quick=self.quick)

    def joint(self, paper: str) -> Lab:
        """The same under the joint reading of the paper."""
        return self.lab(paper).under("+".join(joint(paper)) or None)

    def perform(self, needs: Iterable[str]) -> None:
        """Do the packet runs of experiments, by full names."""
        with self.showing("packet runs"):
            self.lab("").perform(needs)

    def each(self, doing: str, task: Callable[..., Any], over: Sequence[tuple]) -> Iterator[Any]:
        """What a task returns for each tuple of arguments, in their order; it is told the bench."""
        plain = dataclasses.replace(self, processes=1, showing=_silent)
        with self.showing(doing), part(0.0, 1.0), contextlib.ExitStack() as stack:
            if self.processes > 1 and len(over) > 1:
                spawn = multiprocessing.get_context("spawn")  # threads do not survive a fork
                pool = stack.enter_context(ProcessPoolExecutor(self.processes, spawn))
                stack.callback(pool.shutdown, cancel_futures=True)
                jobs = [pool.submit(task, plain, *given) for given in over]
                found = (_result(job) for job in jobs)
            else:
                found = (task(plain, *given) for given in over)
            for k, result in enumerate(found):
                yield result
                report((k + 1) / len(over))


def _result(job: Future) -> Any:
    try:
        return job.result()
    except BrokenProcessPool:
        raise ValueError(
            "a process was ended from outside, perhaps for want of memory; what is finished is "
            "kept: the same command goes on from there"
        ) from None


def make_figures(
    which: Sequence[str],
    folder: Path,
    bench: Bench,
    made: Callable[[Made], None] = lambda _: None,
    judged: Sequence[Verdict] | None = None,
) -> list[Made]:
    """Make figures: PDF, PNG and CSV of each in ``folder/paper``.

    Parameters
    ----------
    which
        As `wanted` takes them.
    folder, bench
        Where figures go, and how they are made.
    made
        Called with each figure when it is done.
    judged
        Verdicts that the figures tell; those of the claims that name them for None.
    """
    chosen = wanted(which)
    bench.perform(bench.joint(r.paper).experiment(n).name for r in chosen for n in r.needs)
    failures: dict[str, str] = {}
    if judged is None:
        named = dict.fromkeys((r.paper, name) for r in chosen for name in _claims_of(r))
        judged, failures = _verdicts(list(named), bench)
    lines = {v.claim.id: v.line() for v in judged}
    tasks = []
    for recipe in chosen:
        own = _claims_of(recipe)
        told = tuple(lines[name] for name in own if name in lines)
        failed = {name: failures[name] for name in own if name in failures}
        tasks.append((recipe.paper, recipe.number, folder, told, failed))
    done = []
    for one in bench.each("figures", _make, tasks):
        made(one)
        done.append(one)
    return done


def _claims_of(recipe: Recipe) -> list[str]:
    """Claims that name a figure."""
    if recipe.paper not in PAPERS:
        return []
    return [c.id for c in claims(recipe.paper).values() if recipe.number in c.numbers]


def _make(
    bench: Bench, paper: str, number: str, folder: Path, told: Sequence[str],
    failed: Mapping[str, str],
) -> Made:  # fmt: skip
    """Make one figure; what goes wrong in it must not end the others."""
    from ...paper_figs.drawing.draw import save  # matplotlib: half a second

    begun = time.perf_counter()
    recipe, lab = recipes(paper)[number], bench.joint(paper)
    files, notes = [], [recipe.about]
    try:
        panels = recipe.draw(lab)
        notes = [f"{recipe.about} {runs_of(recipe, lab, panels)}".strip()]
        notes += [*agreement(panels), *told]
        files = save(recipe, panels, folder / paper, notes)
    except OSError:
        raise
    except Exception as error:
        lab.failures[recipe.name] = f"{type(error).__name__}: {error}"
    failures, seconds = {**lab.failures, **failed}, time.perf_counter() - begun
    return Made(paper, number, recipe.title, tuple(files), tuple(notes), failures, seconds)


def runs_of(recipe: Recipe, lab: Lab, panels: Sequence[Panel]) -> str:
    """How long the packet runs are whose means a figure shows, their seeds, and how the paper is
    read.
    """
    own = [lab.experiment(name) for name in recipe.needs]
    joint = (e.reading for name, e in zip(recipe.needs, own, strict=True) if "@" not in name)
    said, read = [], dict.fromkeys(filter(None, joint))
    if any(c.engine == PACKETS and not c.dense for p in panels for c in p.curves):
        spans = (f"{e.warmup:g} to {e.until:g} s, {_seeds(e.seeds)}" for e in own)
        said.append(f"Means over {'; '.join(dict.fromkeys(spans))}.")
    return " ".join([*said, *([f"Joint reading: {'; '.join(read)}."] if read else [])])


def _seeds(count: int) -> str:
    return f"seeds 1 to {count}" if count > 1 else "seed 1"


def agreement(panels: Sequence[Panel]) -> list[str]:
    """The notes of panels, and how far the fluid model is from the packets in each panel that has
    both over the same points.

    Relative to the packets, or in the unit of the axis where these come near 0.
    """
    found = []
    for k, panel in enumerate(panels):
        found += [panel.note] if panel.note else []
        pairs = _pairs(panel)
        if not pairs:
            continue
        fluid, packets = (np.array(values) for values in zip(*pairs, strict=True))
        apart, unit = np.abs(fluid - packets), panel.ylabel.rpartition("(")[2].rstrip(")")
        if np.abs(packets).min() > _NEAR_ZERO * np.abs(packets).max():
            apart, unit = 100 * apart / np.abs(packets), "%"
        where = f"panel {k + 1}, " if len(panels) > 1 else ""
        usual, most = (
            f"{v:.2g}" if v < 100 else f"{v:.0f}" for v in (np.median(apart), apart.max())
        )
        found.append(
            f"{where}fluid beside packets: {usual} {unit} apart in the median of "
            f"{apart.size} points, {most} {unit} at most"
        )
    return found


def _pairs(panel: Panel) -> list[tuple[float, float]]:
    """Fluid and packets at the same points of curves with the same label."""
    found: list[tuple[float, float]] = []
    curves = [c for c in panel.curves if not c.dense]
    seen = {c.label: dict(zip(c.x.tolist(), c.y.tolist(), strict=True))
            for c in curves if c.engine == PACKETS}  # fmt: skip
    for curve in curves:
        if curve.engine == FLUID and curve.label in seen:
            for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
                z = seen[curve.label].get(x, np.nan)
                found += [(y, z)] if np.isfinite(y) and np.isfinite(z) else []
    return found


def validate(papers: Sequence[str], bench: Bench) -> tuple[list[Verdict], dict[str, str]]:
    """Judge every claim of some papers.

    Returns
    -------
    tuple
        Verdicts in the order of the ledger, and what failed, by claim or by point of an experiment.
    """
    return _verdicts([(paper, name) for paper in papers for name in claims(paper)], bench)


def _verdicts(
    todo: Sequence[tuple[str, str]], bench: Bench
) -> tuple[list[Verdict], dict[str, str]]:
    """Judge claims by paper and id."""
    bench.perform(n for p, name in todo for n in rules(p)[name].experiments(bench.lab(p)))
    found: list[Verdict] = []
    failures: dict[str, str] = {}
    for judged, failed in bench.each("claims", _judge, todo):
        found += judged
        failures |= failed
    return found, failures


def _judge(bench: Bench, paper: str, name: str) -> tuple[list[Verdict], dict[str, str]]:
    """Judge one claim; a rule that fails must not end the others."""
    lab = bench.lab(paper)
    try:
        return [verdict(lab, name)], lab.failures
    except Exception as error:
        return [], {**lab.failures, name: f"{type(error).__name__}: {error}"}
