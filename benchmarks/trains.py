"""Trains of packets against the packet engine: time by the clock, interleaved in one run.

Run with `uv run python benchmarks/trains.py` on a quiet machine. Two networks, all threads:

* 25 NewReno flows with ECN over RED (`akujobi2002/homogeneous_ecn`), 10 Mbit/s, 40 ms;
* 200 NewReno flows with ECN under PI, 10 Gbit/s, 50 ms, packets of 1500 bytes, from near rest.

A figure is the time for one simulated second of one seed. It comes from the difference of two
lengths, so that compilation, laying out and the first seconds do not count; packets of the second
network have fewer seeds and are shorter, and their time is in proportion. Processor time is printed
beside the clock's: on a machine with other work the ratio of that is the one to read.

Then the whole of a process that asks for `misra2003/mixed`, by trains and by packets: with no
caches at all, with those of Python alone, and warm.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from latency import Cost, ask

import fluidcc as fc
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.newreno import NewReno
from fluidcc.scenario.network import Flows, Link, Network, Start

QUESTION = "misra2003/mixed --until 60 --warmup 20 --seeds 4"
_COMMAND = "from fluidcc.cli import main; main()"
_CACHES = ("no caches", "Python's", "warm")
Verb = Callable[..., Any]


class Length(NamedTuple):
    """Two lengths of a run [s], and its number of seeds."""

    short: float
    long: float
    seeds: int


class Case(NamedTuple):
    """A network, the runs of both engines, and the ratio to reach."""

    name: str
    network: Network
    trains: Length
    packets: Length
    goal: float


def slow_link() -> Network:
    """25 flows over RED."""
    return fc.replace(fc.load("akujobi2002/homogeneous_ecn"), {"flows.ecn.n": 25})


def fast_link() -> Network:
    """200 flows under PI, whose zero is at the pole of the windows (Hollot et al., 2001).

    Its gain is 1 at half a radian in a round trip. Slow start ends near the window at rest, so that
    nothing is lost.
    """
    count, trip, capacity = 200.0, 0.05, 1e10 / (8 * 1500)
    zero, cross = 2 * count / (trip**2 * capacity), 0.5 / trip
    gain = cross * zero * abs(1j * cross + 1 / trip) * 2 * count / capacity**2
    queue = PI(k_pi=gain, z=zero, q_ref=4000.0, interval=1 / 160)
    link = Link(queue=queue, capacity=capacity, packet_size=1500.0, delay=0.02, buffer=40_000.0)
    group = Flows(
        window=NewReno(),
        n=np.array([count]),
        rtt=np.array([trip]),
        reaction=OncePerRTT(),
        start=Start(0.0, 0.5),
        sender=(("initial_ssthresh", 200.0),),
    )
    return Network(links=(link,), flows=(group,))


def spent(verb: Verb, net: Network, until: float, seeds: int) -> np.ndarray:
    """Seconds by the clock and of processors."""
    began, used = time.perf_counter(), time.process_time()
    verb(net, until=until, seeds=range(1, seeds + 1))
    return np.array([time.perf_counter() - began, time.process_time() - used])


def each_second(verb: Verb, net: Network, length: Length) -> np.ndarray:
    """The same for one simulated second of one seed, beyond the shorter run."""
    short = spent(verb, net, length.short, length.seeds)
    long = spent(verb, net, length.long, length.seeds)
    return (long - short) / ((length.long - length.short) * length.seeds)


def shown(values: Any, scale: float = 1.0) -> str:
    """Median, and the smallest and the largest of several."""
    scaled = [scale * float(value) for value in values]
    if len(scaled) == 1:
        return f"{scaled[0]:.3g}"
    return f"{statistics.median(scaled):.3g} ({min(scaled):.3g} to {max(scaled):.3g})"


def compare(case: Case, rounds: int) -> None:
    """Print one row for the clock and one for processors."""
    verbs = (fc.simulate_trains, case.trains), (fc.simulate_packets, case.packets)
    for verb, length in verbs:  # compile
        verb(case.network, until=length.short / 10, seeds=(1,))
    times = np.array([[each_second(v, case.network, n) for v, n in verbs] for _ in range(rounds)])
    for k, kind in enumerate(("clock", "processors")):
        trains, packets = times[:, 0, k], times[:, 1, k]
        print(
            f"| {case.name}, {kind} | {shown(trains, 1e3)} | {shown(packets, 1e3)} "
            f"| {shown(packets / trains)} | {case.goal:g} |",
            flush=True,
        )


def in_processes(verb: str, rounds: int) -> list[list[Cost]]:
    """The costs of processes with each of `_CACHES`; the first two are measured once."""
    words, costs = ["-c", _COMMAND, verb, *QUESTION.split()], []
    with tempfile.TemporaryDirectory() as folder:
        costs.append([ask(words, folder)])
        for name in ("fluidcc", "numba"):
            shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        costs.append([ask(words, folder)])
        costs.append([ask(words, folder) for _ in range(rounds)])
    return costs


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("slow", "fast", "process"))
    given = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"Other work is under way: the load of the machine is {load:.1f}.")
    cases = {
        "slow": Case(
            "25 flows, 10 Mbit/s, 8 seeds", slow_link(),
            Length(10.0, 110.0, 8), Length(10.0, 110.0, 8), 1.0,
        ),
        "fast": Case(
            "200 flows, 10 Gbit/s, 64 seeds (packets: 2)", fast_link(),
            Length(3.0, 12.0, 64), Length(3.0, 6.0, 2), 50.0,
        ),
    }  # fmt: skip
    print("ms for one simulated second of one seed: median, smallest and largest of the rounds\n")
    print("| case, time | trains | packets | packets / trains | goal |\n|---|---|---|---|---|")
    for name, case in cases.items():
        if given.only in (None, name):
            compare(case, given.rounds)
    if given.only in (None, "process"):
        print(f"\n{QUESTION}: seconds by the clock; of processors\n")
        print(f"| command | {' | '.join(_CACHES)} |\n|---|---|---|---|")
        for verb in ("trains", "packets"):
            cells = [
                f"{shown(c.wall for c in cost)}; {shown(c.processor for c in cost)}"
                for cost in in_processes(verb, given.rounds)
            ]
            print(f"| {verb} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
