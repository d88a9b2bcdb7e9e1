"""Packet runs over seeds: threads, slices, progress, interruption."""

import concurrent.futures
import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterable

import numpy as np

from fluidcc.network import Network
from fluidcc.packets.build import Simulation
from fluidcc.packets.entry import entry_points
from fluidcc.packets.measure import Metrics, metrics, snapshot
from fluidcc.packets.plan import PacketError, Plan, plan
from fluidcc.packets.pointer import INTERPRETED
from fluidcc.packets.records import (
    FINISHED,
    MORE,
    NOT_A_NUMBER,
    POOL_EXHAUSTED,
    ROUTE_ENDED,
    WINDOW_BEYOND_RING,
)
from fluidcc.packets.results import PacketRuns

Progress = Callable[[float], None]

_SLICE = 5_000 if INTERPRETED else 400_000  # events between looks at the stop flag: some 50 ms
_PARTS = 20  # parts of a run, for batch means
_LARGEST = 4096  # most that pool and rings are enlarged
_POLL = 0.1  # s between progress reports

_ADVICE = {
    POOL_EXHAUSTED: "more packets are under way than any estimate allows; give the links a finite "
    "buffer or the window law a max_window",
    WINDOW_BEYOND_RING: "a window grew beyond any estimate; give the window law a max_window",
    ROUTE_ENDED: "a packet left its route, which is a fault of this package: please report it",
    NOT_A_NUMBER: "a law gave a window or probability that is not a number; check its parameters",
}


class _Stopped(Exception):
    """The run was told to stop."""


class _Watch:
    """What workers share with the caller: a stop flag, and how far each has come."""

    def __init__(self, jobs: int) -> None:
        self.stop = threading.Event()
        self.done = [0.0] * jobs

    def fraction(self) -> float:
        return sum(self.done) / len(self.done)


def _perform(
    simulation: Simulation, times: np.ndarray, watch: _Watch, job: int
) -> tuple[int, list]:
    """Run to each of `times` and take a snapshot there; the status, and the snapshots."""
    advance, settle = entry_points()
    taken = []
    for time in map(float, times):
        status = MORE
        while status == MORE:
            if watch.stop.is_set():
                raise _Stopped
            status = advance(simulation.address, time, _SLICE)
            watch.done[job] = float(simulation.state["now"][0] / times[-1])
        if status != FINISHED:
            return status, taken
        settle(simulation.address, time)
        taken.append(snapshot(simulation, time))
    return FINISHED, taken


def _run(
    layout: Plan, seed: int, times: np.ndarray, elide: bool, watch: _Watch, job: int
) -> tuple[Metrics, list[Metrics]]:
    """Metrics of one seed, and of its parts. Enlarges pool and rings where they were too small."""
    scale = 1
    while True:
        simulation = Simulation(layout, seed, elide, scale)
        with np.errstate(over="ignore") if INTERPRETED else contextlib.nullcontext():
            status, taken = _perform(simulation, times, watch, job)
        if status == FINISHED:
            break
        if status not in (POOL_EXHAUSTED, WINDOW_BEYOND_RING) or scale >= _LARGEST:
            raise PacketError(f"seed {seed}: {_ADVICE[status]}")
        scale *= 8
    watch.done[job] = 1.0
    parts = [metrics(layout, taken[k : k + 2]) for k in range(len(taken) - 1)]
    return metrics(layout, taken), parts


def _checked_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    chosen = tuple(seeds)
    whole = all(isinstance(s, int | np.integer) and s >= 0 for s in chosen)
    if not chosen or not whole or len(set(chosen)) != len(chosen):
        raise PacketError(f"seeds: expected different whole numbers from 0 on, got {chosen!r}")
    return tuple(int(s) for s in chosen)


def simulate_packets(
    net: Network,
    *,
    until: float,
    warmup: float = 0.0,
    seeds: Iterable[int] = (1,),
    threads: int | None = None,
    elide: bool = True,
    progress: Progress | None = None,
) -> PacketRuns:
    """Simulate a network packet by packet, once for each seed.

    The results of a seed are the same bits for any number of threads, with or without `elide`,
    and on any machine. An interrupt (Ctrl-C) keeps the runs that are finished.

    Parameters
    ----------
    net
        Links and flows; `flows.sender` holds the options of the packet senders.
    until, warmup
        End of the run, and of the time before the statistics begin [s].
    seeds
        Different whole numbers; each one is an independent run.
    threads
        Runs at a time; as many as there are processors for None.
    elide
        Leave out events that cannot change anything; False simulates every hop.
    progress
        Called with the finished share, 0 to 1, from time to time.

    Raises
    ------
    PacketError
        For a network or times that cannot be simulated, or a run that failed, with advice.
    """
    if not (math.isfinite(until) and 0 <= warmup < until):
        raise PacketError(f"expected 0 <= warmup < until in s, got {warmup!r} and {until!r}")
    if threads is not None and threads < 1:
        raise PacketError(f"threads: expected at least 1, got {threads!r}")
    chosen, layout = _checked_seeds(seeds), plan(net)
    entry_points()
    Simulation(layout, chosen[0], elide)  # compile hooks, and fail, before threads start
    times = warmup + (until - warmup) * np.arange(_PARTS + 1) / _PARTS
    watch = _Watch(len(chosen))
    workers = min(threads or os.cpu_count() or 1, len(chosen))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(_run, layout, seed, times, elide, watch, k) for k, seed in enumerate(chosen)
        ]
        try:
            _wait(jobs, watch, progress)
        except KeyboardInterrupt:
            watch.stop.set()
        except BaseException:
            watch.stop.set()
            raise
    return _collect(chosen, jobs, until, warmup)


def _wait(jobs: list, watch: _Watch, progress: Progress | None) -> None:
    waiting = set(jobs)
    while waiting:
        _, waiting = concurrent.futures.wait(waiting, _POLL, concurrent.futures.FIRST_EXCEPTION)
        for job in set(jobs) - waiting:
            job.result()
        if progress is not None:
            progress(watch.fraction())


def _collect(seeds: tuple[int, ...], jobs: list, until: float, warmup: float) -> PacketRuns:
    """Put together what finished; raises KeyboardInterrupt where nothing did."""
    done = [k for k, job in enumerate(jobs) if job.exception() is None]
    if not done:
        raise KeyboardInterrupt
    results = [jobs[k].result() for k in done]
    return PacketRuns.of(
        [seeds[k] for k in done],
        [run for run, _ in results],
        results[0][1],
        until=until,
        warmup=warmup,
        missing=[s for k, s in enumerate(seeds) if k not in done],
    )
