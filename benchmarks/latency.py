"""The cost of a question in a process of its own: seconds by the clock and of processors.

Run with `uv run python benchmarks/latency.py` on a quiet machine. `show`, `equilibrium` and
`stability` are asked of every bundled scenario, the other commands of scenarios that differ in
kind; each time with a value of a parameter that was never asked for before. Warm: with the caches
that earlier processes left. `--cold`: with empty caches of Python, numba, JAX and fluidcc each
time. A line has the median over scenarios, each the median of `--runs`, and the slowest scenario.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

import fluidcc as fc
from fluidcc.bundled import scenarios

KINDS = (
    "hollot2001/slow", "hollot2001/pi", "misra2003/mixed", "alizadeh2010/dctcp",
    "athuraliya2001/rem", "kunniyur2001/avq", "akujobi2002/competing_becn",
    "qazi2010/two_bmcc_router",
)  # fmt: skip
ALL = tuple(scenarios())
_COMMAND = "from fluidcc.cli import main; main()"
LINES = {
    "--help": ("--help", ALL[:1]),
    "list": ("list", ALL[:1]),
    "import, load": ("", ALL[:1]),
    "show": ("show {name}", ALL),
    "equilibrium": ("equilibrium {name} --set {link}.delay={delay}", ALL),
    "stability": ("stability {name} --set {link}.delay={delay}", ALL),
    "equilibrium, 20 points": ("equilibrium {name} --over flow.n={first}:{last}:20", KINDS[:2]),
    "stability-map, 475 points": (
        "stability-map {name} --over flow.n={first}:{last}:19 --over link.delay=0:0.01:25",
        KINDS[:2],
    ),
    "crossings": ("crossings {name} flow.n={first}:{last}", KINDS[:2]),
    "simulate, 60 s": ("simulate {name} --until 60 --set {link}.delay={delay}", KINDS),
    "packets, 100 s": ("packets {name} --until 100 --seeds 1 --set {link}.delay={delay}", KINDS),
}


class Cost(NamedTuple):
    """Seconds of a process, by the clock and of processors, and its largest memory [MB]."""

    wall: float
    processor: float
    memory: float


def arguments(command: str, name: str) -> list[str]:
    """Arguments of Python for a command about a scenario."""
    if not command:
        return ["-c", f"import fluidcc as fc; fc.load({name!r})"]
    draw, link = random.uniform, fc.load(name).link_names[0]
    values = {"first": draw(20, 30), "last": draw(150, 200), "delay": draw(1e-6, 1e-5)}
    return ["-c", _COMMAND, *command.format(name=name, link=f"links.{link}", **values).split()]


def ask(words: list[str], folder: str) -> Cost:
    """The cost of a process whose caches are below a folder."""
    caches = {
        "FLUIDCC_CACHE_DIR": f"{folder}/fluidcc", "PYTHONPYCACHEPREFIX": f"{folder}/python",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
    }  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | caches,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in (0, 3):  # 3: no equilibrium at some points
        raise SystemExit(f"{' '.join(words)}: {errors}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def medians(command: str, names: tuple[str, ...], runs: int, warm: str | None) -> Iterator[Cost]:
    """Median cost of a command, scenario by scenario; with empty caches if there are no warm ones.

    With warm ones the first process, whose code may have to be compiled, does not count.
    """
    for name in names:
        costs = []
        for k in range(runs + (warm is not None)):
            with tempfile.TemporaryDirectory() as empty:
                cost = ask(arguments(command, name), warm or empty)
            if k or warm is None:
                costs.append(cost)
        yield Cost(*map(statistics.median, zip(*costs, strict=True)))


def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cold", action="store_true", help="empty caches for each process")
    parser.add_argument("--runs", type=int, default=3, help="processes for each scenario")
    parser.add_argument("--only", default="", help="lines whose name contains this")
    given = parser.parse_args()
    print("| command | scenarios | wall [s] | processor [s] | memory [MB] | slowest [s] |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as warm:
        for line, (command, names) in LINES.items():
            if given.only not in line:
                continue
            costs = list(medians(command, names, given.runs, None if given.cold else warm))
            wall, processor, memory = map(statistics.median, zip(*costs, strict=True))
            worst = max(range(len(names)), key=lambda k: costs[k].wall)
            print(
                f"| {line} | {len(names)} | {wall:.2f} | {processor:.2f} | {memory:.0f} "
                f"| {costs[worst].wall:.2f} ({names[worst]}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
