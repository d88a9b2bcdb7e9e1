"""The packet engine against ns-2.35 and a twin in C++: CPU time of the same scenario, interleaved.

Run with `uv run python benchmarks/packets.py` after `benchmarks/install_rivals.sh`. The scenario is
the dumbbell of the BECN paper (`becn.tcl`): 25 NewReno flows with ECN, 10 Mbit/s, 40 ms, 500 s.
Figures are medians of CPU time (user + system) over interleaved repetitions; ns-2's time for one
simulated second (reading Tcl, computing routes) is subtracted, and so is nothing of ours: building
the run is included. Compilation is measured in processes of their own, with an empty cache and
with the one that this leaves; importing Numba and this package is not part of it.

The twin (`twin.cpp`) is this scenario alone in the same algorithm; whatever the engine accounts for
it does too, but makes no statistics of it. Before anything is timed, all accounts of the two must
be equal, bit for bit.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.laws.marking import Wait
from fluidcc.laws.queue.red import RED
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine.records import FINISHED, MORE
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.packets.run import simulate_packets
from fluidcc.scenario.network import Flows, Link, Network, Start

HERE = Path(__file__).parent
GOALS = {"elided": 6.0, "every hop": 2.0}
TWIN_GOAL = 1.3
TWIN_FLAGS = ["-std=c++17", "-O2", "-march=native", "-ffp-contract=off"]
SLICE = 400_000  # events
BATCHES = 20  # of a run, where accounts are settled
COMPILE = """
import resource
import time
import numba
numba.njit(lambda x: x + 1.0)(1.0)  # Numba loads most of itself when it first compiles
import benchmarks.packets as b
net = b.network(25)
before = time.process_time()
b.simulate_packets(net, until=0.01)
print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def network(count: int) -> Network:
    """The dumbbell of `becn.tcl`; links that only ACKs or receivers use are constants in rtt."""
    red = RED(min_th=15.0, max_th=45.0, p_max=0.1, w_q=0.002, bytes=True, spreading=Wait())
    group = Flows(
        window=NewReno(max_window=100.0),
        n=np.array([float(count)]),
        rtt=np.array([2 * 0.044 + 8000 / 1e8 + 2 * 320 / 1e8 + 320 / 1e7]),
        reaction=OncePerRTT(),
        access_delay=0.002,
        access_capacity=12500.0,
        start=Start(0.0, 5.0),
        sender=(("tick", 0.1), ("min_rto", 1.0), ("limited_transmit", False)),
    )
    link = Link(queue=red, capacity=1250.0, packet_size=1000.0, delay=0.04, buffer=90.0)
    return Network(links=(link,), flows=(group,))


def child_time(command: list[str], **options: Any) -> tuple[float, str]:
    """CPU time of a child process [s], and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout


def ns2_time(count: int, seconds: float, seed: int) -> float:
    """CPU time of ns-2 [s]."""
    return child_time(["ns", str(HERE / "becn.tcl"), str(count), str(seconds), str(seed)])[0]


def our_time(net: Network, seconds: float, seed: int, *, elide: bool) -> float:
    """CPU time of one run in this process [s]."""
    before = time.process_time()
    simulate_packets(net, until=seconds, seeds=(seed,), threads=1, elide=elide)
    return time.process_time() - before


def build_twin(folder: str) -> Path | None:
    """Compile the twin; None where there is no compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    twin = Path(folder) / "twin"
    subprocess.run([compiler, *TWIN_FLAGS, "-o", twin, HERE / "twin.cpp"], check=True)
    return twin


def twin_run(
    twin: Path, count: int, seconds: float, seed: int, *, elide: bool
) -> tuple[float, str]:
    """CPU time of the twin [s], and its accounts."""
    hops = [] if elide else ["hops"]
    return child_time([str(twin), str(count), str(seconds), str(seed), *hops])


def engine_run(net: Network, seconds: float, seed: int, *, elide: bool) -> tuple[float, Simulation]:
    """CPU time of the engine alone, without building and statistics [s], and its accounts."""
    run = Simulation(plan(net), seed, elide)
    advance, settle = entry_points()
    before = time.process_time()
    for k in range(1, BATCHES + 1):
        stop = seconds * k / BATCHES
        while (status := advance(run.address, stop, SLICE)) == MORE:
            pass
        if status != FINISHED:
            raise ValueError(f"the engine's run ended with status {status}")
        settle(run.address, stop)
    return time.process_time() - before, run


def check_accounts(told: str, run: Simulation) -> None:
    """Raise ValueError unless what the twin printed equals our accounts, to the last bit."""
    for line in told.splitlines():
        name, *numbers = line.split()
        array, field = name.split(".")
        ours = np.asarray(getattr(run, array)[field], dtype=float)
        theirs = np.array(numbers, dtype=float)
        if not np.array_equal(ours, theirs):
            raise ValueError(f"{name} of the twin: expected {ours}, got {theirs}")


def compare_twin(twin: Path, seconds: float, repeat: int) -> None:
    """Check the twin, then time it, the engine, and the whole of our run."""
    for count, elide in ((25, True), (25, False), (200, True), (200, False)):
        net, name = network(count), f"{count} flows, {'elided' if elide else 'every hop'}"
        told = twin_run(twin, count, seconds, repeat + 1, elide=elide)[1]
        check_accounts(told, engine_run(net, seconds, repeat + 1, elide=elide)[1])
        times = []
        for k in range(repeat):
            rival = twin_run(twin, count, seconds, k + 1, elide=elide)[0]
            engine = engine_run(net, seconds, k + 1, elide=elide)[0]
            times.append((rival, engine, our_time(net, seconds, k + 1, elide=elide)))
        rival, engine, whole = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"C++ twin, {name:18} {rival:8.3f} CPU s   engine {engine / rival:4.2f}x its time, "
            f"goal {TWIN_GOAL:g}x; with building and statistics {whole / rival:4.2f}x",
            flush=True,
        )


def compile_costs() -> list[tuple[float, float]]:
    """CPU time [s] of the first short run, and memory of its process [MB].

    With an empty cache, and with a filled one.
    """
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"FLUIDCC_CACHE_DIR": cache}
        command = [sys.executable, "-c", COMPILE]
        options = {"env": environment, "cwd": HERE.parent}
        told = [child_time(command, **options)[1].split() for _ in range(2)]
    return [(float(spent), float(most) / 1024) for spent, most in told]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flows", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    (cold, most), (cached, memory) = compile_costs()
    print(f"compile, cold                {cold:8.2f} CPU s   goal 10")
    print(f"compile, cached              {cached:8.2f} CPU s   goal 1")
    print(f"process, cold                {most:8.0f} MB")
    print(f"process, cached              {memory:8.0f} MB      goal 250")
    net = network(given.flows)
    size = Simulation(plan(net), 1, True).nbytes
    print(f"state of a run               {size / 1e6:8.3f} MB      goal 1")
    our_time(net, 1.0, 1, elide=True)
    with tempfile.TemporaryDirectory() as folder:
        twin = build_twin(folder)
        if twin is None:
            print("C++ twin: no compiler is installed")
        else:
            compare_twin(twin, given.seconds, given.repeat)
    if shutil.which("ns") is None:
        sys.exit("ns is not installed: see benchmarks/install_rivals.sh")
    times: dict[str, list[float]] = {"ns-2.35": [], "elided": [], "every hop": []}
    for k in range(given.repeat):
        start = ns2_time(given.flows, 1.0, k + 1)
        times["ns-2.35"].append(ns2_time(given.flows, given.seconds, k + 1) - start)
        times["elided"].append(our_time(net, given.seconds, k + 1, elide=True))
        times["every hop"].append(our_time(net, given.seconds, k + 1, elide=False))
    rival = statistics.median(times["ns-2.35"])
    print(f"ns-2.35                      {rival:8.3f} CPU s")
    for name, goal in GOALS.items():
        ours = statistics.median(times[name])
        print(f"{name:28} {ours:8.3f} CPU s   {rival / ours:5.1f}x faster, goal {goal:g}x")


if __name__ == "__main__":
    main()
