"""The cost of a question in a process of its own: seconds by the clock and of processors.

Run with `uv run python benchmarks/latency.py` on a quiet machine. `show`, `equilibrium` and
`stability` are asked of every bundled scenario, the other commands of scenarios that differ in
kind; each time with a value of a parameter that was never asked for before. Warm: with the caches
that earlier processes left. `--cold`: with empty caches of Python, numba, JAX and fluidcc each
time. `--again`: asked in Python again, in a process that has answered the question before. A line
has the median over scenarios, each the median of `--runs`, and the slowest scenario.
"""

import argparse
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import NamedTuple

import numpy as np

import fluidcc as fc
from fluidcc.bundled.validation.lab.beside import with_mean

KINDS = (
    "hollot2001/slow", "hollot2001/pi", "misra2003/mixed", "alizadeh2010/dctcp",
    "athuraliya2001/rem", "kunniyur2001/avq", "akujobi2002/competing_becn",
    "qazi2010/two_bmcc_router",
)  # fmt: skip
Question = Callable[[fc.Network], object]
ALL = tuple(with_mean())
RED, PI, MIXED = KINDS[:1], KINDS[1:2], KINDS[2:3]
CROSSED = tuple(name for name in KINDS if name != "kunniyur2001/avq")  # its range has no answer
_LAW = Path(__file__).parents[1] / "docs" / "own_laws" / "large_window.py"
_COMMAND = "from fluidcc.cli import main; main()"
_VISIT = """import fluidcc as fc
from fluidcc.bundled.validation.lab.beside import with_mean
for name in with_mean():
    net = fc.load(name)
    fc.equilibrium(net), fc.stability(net)
"""
_VIEW = """import asyncio
from fluidcc.cli.options import begin
from fluidcc.explore.jobs import prepare
begin(True)
prepare()
from fluidcc.explore.controls import Catalogue, State
from fluidcc.explore.server import Explorer
async def view(explorer, state):
    explorer.controls(state)
    async for _ in explorer.answers(explorer.task("present", state)):
        pass
changed = State("{name}", {{"{link}.delay": "{delay}"}}, {{}})
asyncio.run(view(Explorer(Catalogue()), changed))
"""
LINES = {
    "--help": ("--help", RED),
    "list": ("list", RED),
    "import, load": ("import fluidcc as fc; fc.load('{name}')", RED),
    "show": ("show {name}", ALL),
    "equilibrium": ("equilibrium {name} {change}", ALL),
    "stability": ("stability {name} {change}", ALL),
    "both of all scenarios, one process": (_VISIT, RED),
    "equilibrium, 20 points": (
        "equilibrium {name} {change} --over {link}.capacity={twenty}", KINDS
    ),
    "stability-map, 475 points": (
        "stability-map {name} --over {link}.capacity={across} --over {link}.delay={up}", KINDS
    ),
    "crossings": ("crossings {name} {change} {link}.capacity={low}:{high}", CROSSED),
    "boundary": (
        "boundary {name} {change} link.queue.w_q=1e-6:0.1 link.queue.p_max=0.02:1", RED
    ),
    "optimize": (
        "optimize {name} {change} --vary link.queue.k_pi=1e-6:1e-4 --vary link.queue.z=0.1:2 "
        "--maximize gain_crossover --subject-to 'phase_margin >= 60'", PI
    ),
    "check-law": (f"check-law '{_LAW}'", RED),
    "simulate, 60 s": ("simulate {name} --until 60 {change}", KINDS),
    "packets, 100 s": ("packets {name} --until 100 --seeds 1 {change}", KINDS),
    "compare": ("compare {name} --until 60 --warmup 20 --seeds 4 {change}", MIXED),
    "explorer, first view": (_VIEW, KINDS),
}  # fmt: skip
"""Commands, or Python that begins with an import, and the scenarios that they are about."""


class Cost(NamedTuple):
    """Seconds by the clock and of processors, and the largest memory of a process [MB]."""

    wall: float
    processor: float
    memory: float


def path(net: fc.Network, name: str) -> str:
    """Path of a value of the first link."""
    return f"links.{net.link_names[0]}.{name}"


def capacities(net: fc.Network, count: int = 2) -> list[float]:
    """Capacities of the first link [packet/s] on both sides of its own, from drawn ends."""
    ends = random.uniform(0.5, 0.6), random.uniform(1.6, 2.0)
    return [float(v) for v in float(net.links[0].capacity) * np.geomspace(*ends, count)]


def delays(net: fc.Network, count: int) -> list[float]:
    """Delays of the first link up to its own [s]."""
    return [float(v) for v in np.linspace(0.0, float(net.links[0].delay), count)]


def changed(name: str) -> fc.Network:
    """A scenario with another delay of its first link, never asked for before."""
    net = fc.load(name)
    longest = float(net.links[0].delay) or 1e-5
    return fc.replace(net, {path(net, "delay"): longest * random.uniform(0.5, 1.0)})


def present(net: fc.Network) -> object:
    """What the explorer shows first."""
    from fluidcc.explore.answers import present

    return present(net)


AGAIN: dict[str, tuple[Question, tuple[str, ...]]] = {
    "load": (lambda net: fc.loads(fc.dumps(net)), ALL),
    "equilibrium": (fc.equilibrium, ALL),
    "stability": (fc.stability, ALL),
    "equilibrium, 20 points": (
        lambda net: fc.sweep(net, {path(net, "capacity"): capacities(net, 20)}, fc.equilibrium),
        KINDS,
    ),
    "stability_map, 475 points": (
        lambda net: fc.stability_map(net, {
            path(net, "capacity"): capacities(net, 19), path(net, "delay"): delays(net, 25)
        }), KINDS,
    ),
    "crossings": (
        lambda net: fc.crossings(net, path(net, "capacity"), *capacities(net)), CROSSED
    ),
    "boundary": (
        lambda net: fc.boundary(
            net, "link.queue.w_q", "link.queue.p_max", x_range=(1e-6, 0.1), y_range=(0.02, 1.0)
        ), RED,
    ),
    "optimize": (
        lambda net: fc.optimize(
            net, {"link.queue.k_pi": (1e-6, 1e-4), "link.queue.z": (0.1, 2.0)},
            maximize="gain_crossover", subject_to=["phase_margin >= 60"],
        ), PI,
    ),
    "simulate, 60 s": (lambda net: fc.simulate(net, until=60.0), KINDS),
    "simulate_packets, 100 s": (lambda net: fc.simulate_packets(net, until=100.0), KINDS),
    "explorer, view": (present, KINDS),
}  # fmt: skip
"""Questions about a network in Python."""


def arguments(command: str, name: str) -> list[str]:
    """Arguments of Python for a command about a scenario."""
    net = changed(name)
    delay, (low, high) = float(net.links[0].delay), capacities(net)
    lists = {"twenty": capacities(net, 20), "across": capacities(net, 19), "up": delays(net, 25)}
    text = command.format(
        name=name, link=path(net, "delay").removesuffix(".delay"), delay=delay, low=low, high=high,
        change=f"--set {path(net, 'delay')}={delay}",
        **{key: ",".join(map(str, values)) for key, values in lists.items()},
    )  # fmt: skip
    return ["-c", text] if text.startswith("import") else ["-c", _COMMAND, *shlex.split(text)]


def ask(words: list[str], folder: str) -> Cost:
    """The cost of a process whose caches are below a folder."""
    caches = {
        "FLUIDCC_CACHE_DIR": f"{folder}/fluidcc", "PYTHONPYCACHEPREFIX": f"{folder}/python",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
    }  # fmt: skip
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words],
        env=inherited | caches,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in (0, 3):  # 3: no answer at some points
        raise SystemExit(f"{' '.join(words)}: {errors}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def in_processes(command: str, names: tuple[str, ...], runs: int, warm: str) -> Iterator[Cost]:
    """Median cost of a command, scenario by scenario; with empty caches if `warm` is empty.

    With warm ones the first process, whose code may have to be compiled, does not count.
    """
    for name in names:
        costs = []
        for k in range(runs + bool(warm)):
            with tempfile.TemporaryDirectory() as empty:
                cost = ask(arguments(command, name), warm or empty)
            if k or not warm:
                costs.append(cost)
        yield Cost(*map(statistics.median, zip(*costs, strict=True)))


def in_this_process(question: Question, names: tuple[str, ...], runs: int) -> Iterator[Cost]:
    """Median cost of a question, scenario by scenario, without the first time."""
    for name in names:
        costs = []
        for _ in range(runs + 1):
            net, began, used = changed(name), time.perf_counter(), time.process_time()
            question(net)
            spent = time.perf_counter() - began, time.process_time() - used
            costs.append((*spent, getrusage(RUSAGE_SELF).ru_maxrss / 1e3))
        yield Cost(*map(statistics.median, zip(*costs[1:], strict=True)))


def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cold", action="store_true", help="empty caches for each process")
    parser.add_argument("--again", action="store_true", help="in Python, after the first time")
    parser.add_argument("--runs", type=int, default=3, help="processes for each scenario")
    parser.add_argument("--most", type=int, help="scenarios of each line")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    given = parser.parse_args()
    print("| question | scenarios | wall [s] | processor [s] | memory [MB] | slowest [s] |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for line, (asked, names) in (AGAIN if given.again else LINES).items():
            if given.only not in line:
                continue
            names = names[: given.most]
            if isinstance(asked, str):
                costs = [*in_processes(asked, names, given.runs, "" if given.cold else folder)]
            else:
                costs = [*in_this_process(asked, names, given.runs)]
            wall, processor, memory = map(statistics.median, zip(*costs, strict=True))
            worst = max(range(len(names)), key=lambda k: costs[k].wall)
            print(
                f"| {line} | {len(names)} | {wall:.3g} | {processor:.3g} | {memory:.0f} "
                f"| {costs[worst].wall:.3g} ({names[worst]}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
