"""Makes figures and verdicts: gathers the runs they need, does what is missing, writes them."""

import contextlib
import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.papers.figure import FLUID, PACKETS, Panel, Recipe, names, recipes, wanted
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
        Opens a progress bar.
    """

    store: Store
    quick: bool = False
    processes: int = 1
    showing: Showing = _silent

    def lab(self, paper: str) -> Lab:
        """The experiments of a paper."""
        return Lab(self.store, paper, quick=self.quick)

    def perform(self, needs: Iterable[str]) -> None:
        """Do the packet runs of experiments, by full names."""
        with self.showing("packet runs") as show:
            self.lab("").perform(needs, show)

    def each(self, doing: str, task: Callable[..., Any], over: Sequence[tuple]) -> Iterator[Any]:
        """What a task returns for each tuple of arguments, in their order; it is told the bench."""
        plain = dataclasses.replace(self, processes=1, showing=_silent)
        with self.showing(doing) as show, contextlib.ExitStack() as stack:
            if self.processes > 1 and len(over) > 1:
                spawn = multiprocessing.get_context("spawn")  # threads do not survive a fork
                pool = stack.enter_context(ProcessPoolExecutor(self.processes, spawn))
                stack.callback(pool.shutdown, cancel_futures=True)
                jobs = [pool.submit(task, plain, *given) for given in over]
                found = (job.result() for job in jobs)
            else:
                found = (task(plain, *given) for given in over)
            for k, result in enumerate(found):
                yield result
                if show is not None:
                    show((k + 1) / len(over))


def make_figures(
    which: Sequence[str], folder: Path, bench: Bench, made: Callable[[Made], None] = lambda _: None
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
    """
    chosen, needs = wanted(which), []
    for recipe in chosen:
        lab = bench.lab(recipe.paper)
        needs += [lab.experiment(n).name for n in recipe.needs]
        needs += [n for c in _claims_of(recipe) for n in rules(recipe.paper)[c].experiments(lab)]
    bench.perform(needs)
    done = []
    for one in bench.each("figures", _make, [(r.paper, r.number, folder) for r in chosen]):
        made(one)
        done.append(one)
    return done


def _claims_of(recipe: Recipe) -> list[str]:
    """Claims that name a figure and can be judged."""
    if recipe.paper not in names("validation/claims"):
        return []
    named = [c.id for c in claims(recipe.paper).values() if recipe.number in c.numbers]
    return [name for name in named if name in rules(recipe.paper)]


def _make(bench: Bench, paper: str, number: str, folder: Path) -> Made:
    """Make one figure; what goes wrong in it must not end the others."""
    from fluidcc.papers.drawing import save  # matplotlib: half a second

    begun = time.perf_counter()
    recipe, lab = recipes(paper)[number], bench.lab(paper)
    files, notes = [], [f"{recipe.about} {runs_of(recipe, lab)}".strip()]
    try:
        panels = recipe.draw(lab)
        notes += [*agreement(panels), *(verdict(lab, name).line() for name in _claims_of(recipe))]
        files = save(recipe, panels, folder / paper, notes)
    except OSError:
        raise
    except Exception as error:
        lab.failures[recipe.name] = f"{type(error).__name__}: {error}"
    failures, seconds = dict(lab.failures), time.perf_counter() - begun
    return Made(paper, number, recipe.title, tuple(files), tuple(notes), failures, seconds)


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


def validate(papers: Sequence[str], bench: Bench) -> tuple[list[Verdict], dict[str, str]]:
    """Judge every claim of some papers.

    Returns
    -------
    tuple
        Verdicts in the order of the ledger, and what failed, by claim or by point of an experiment.
    """
    bench.perform(n for p in papers for rule in rules(p).values()
                  for n in rule.experiments(bench.lab(p)))  # fmt: skip
    found: list[Verdict] = []
    failures: dict[str, str] = {}
    todo = [(paper, name) for paper in papers for name in claims(paper)]
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
