"""Packet runs over seeds: threads, slices, progress, interruption."""

import concurrent.futures
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fluidcc.folders import whole
from fluidcc.machine import threads as most_threads
from fluidcc.packets.accounts.metrics import Metrics, Snapshot, metrics, snapshot
from fluidcc.packets.accounts.results import PacketRuns
from fluidcc.packets.accounts.series import Sampler, Series, dataset, sample_times
from fluidcc.packets.accounts.trace_files import SLICE, TraceFile
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import INTERPRETED
from fluidcc.packets.entry import entry_points
from fluidcc.packets.layout.build import TOO_MANY_IN_FLIGHT, Simulation
from fluidcc.packets.layout.plan import PacketError, Plan, plan
from fluidcc.scenario.network import LONGEST, Network

Progress = Callable[[float], None]

_SLICE = 5_000 if INTERPRETED else 400_000  # events between looks at the stop flag: some 50 ms
_PARTS = 20  # parts of a run, for batch means
_LARGEST = 4096  # most that pool and rings are enlarged
_POLL = 0.1  # s between progress reports
_MOST_SEEDS = 1_000_000

_SCALED = (
    r.POOL_EXHAUSTED,
    r.WINDOW_BEYOND_RING,
    r.TOO_MANY_TRANSFERS,
    r.TOO_MANY_CALLS,
    r.TRACE_FULL,
)
_FAULT = ", which is a fault of this package: please report it"
_ADVICE = {
    r.POOL_EXHAUSTED: TOO_MANY_IN_FLIGHT,
    r.WINDOW_BEYOND_RING: "a window grew beyond any estimate; give the window law a max_window",
    r.TOO_MANY_TRANSFERS: "more transfers are in progress than any estimate allows; lower the "
    "arrivals of the sources, or their sizes",
    r.TOO_MANY_CALLS: "more calls are in progress than any estimate allows; limit them by most",
    r.TRACE_FULL: "too many packets are sent at once for a trace; give the window law a max_window",
    r.TOO_MANY_PACKETS: "a flow sent 2^31 packets, which is the most; make the run shorter",
    r.PART_MISSING: f"a part of the engine is absent{_FAULT}",
    r.ROUTE_ENDED: f"a packet left its route{_FAULT}",
    r.NOT_A_NUMBER: "a law gave a window or probability that is not a number; check its parameters",
}


class _Stopped(Exception):
    """The run was told to stop."""


class _Watch:
    """What workers share with the caller: a stop flag, and how far each has come to `end` [s]."""

    def __init__(self, jobs: int, end: float) -> None:
        self.stop = threading.Event()
        self.done = [0.0] * jobs
        self._end = end

    def pass_by(self, job: int, now: float) -> None:
        """Note how far a job has come, and end it if it is to stop."""
        self.done[job] = now / self._end
        if self.stop.is_set():
            raise _Stopped

    def fraction(self) -> float:
        return sum(self.done) / len(self.done)


class _Task(NamedTuple):
    """What every run is told."""

    layout: Plan
    times: np.ndarray  # of snapshots [s]
    samples: np.ndarray  # of samples [s]
    elide: bool


class _Run(NamedTuple):
    """What a run gives."""

    whole: Metrics
    parts: list[Metrics]  # of the first seed alone
    series: Series


def _advance(
    simulation: Simulation, time: float, passed: Callable[[float], None], trace: TraceFile | None
) -> int:
    """Run to `time` in slices; the status. `passed` is told the time after each of them."""
    advance, _ = entry_points()
    status = r.MORE
    while status == r.MORE:
        status = advance(simulation.address, time, _SLICE if trace is None else SLICE)
        if trace is not None:
            trace.flush()
        passed(float(simulation.state["now"][0]))
    return status


def _perform(
    simulation: Simulation,
    task: _Task,
    passed: Callable[[float], None],
    trace: TraceFile | None,
    parts: bool,
) -> tuple[int, list[Snapshot], Sampler]:
    """Run to each time and take snapshots and samples; the status, and what was taken.

    The accounts are settled at the same times whatever is wanted; without `parts` only the first
    and the last of these are kept.
    """
    _, settle = entry_points()
    taken, sampler = [], Sampler(simulation, task.samples)
    settled, sampled = set(task.times), set(task.samples)
    kept = settled if parts else {task.times[0], task.times[-1]}
    if 0.0 in settled:  # before the events at 0, which belong to what follows
        settled.remove(0.0)
        taken.append(snapshot(simulation, 0.0))
    for time in map(float, np.union1d(task.times, task.samples)):
        status = _advance(simulation, time, passed, trace)
        if status != r.FINISHED:
            return status, taken, sampler
        if time in sampled:
            sampler.take(time)
        if time in settled:
            settle(simulation.address, time)
            if time in kept:
                taken.append(snapshot(simulation, time))
    return r.FINISHED, taken, sampler


def _build(layout: Plan, seed: int, elide: bool, scale: int = 1) -> Simulation:
    """The arrays of a run; raises PacketError where there is no memory for them."""
    try:
        return Simulation(layout, seed, elide, scale)
    except MemoryError:
        raise PacketError(f"seed {seed}: no memory is left: {TOO_MANY_IN_FLIGHT}") from None


def _attempt(
    simulation: Simulation,
    task: _Task,
    passed: Callable[[float], None],
    trace: Path | None,
    scale: int,
    parts: bool,
) -> tuple[int, list[Snapshot], Series | None]:
    """Perform a run; the status, and what was taken, without series if it has not finished."""
    try:
        with contextlib.ExitStack() as stack:
            if INTERPRETED:
                stack.enter_context(np.errstate(over="ignore"))
            file = trace and stack.enter_context(TraceFile(simulation, trace, scale))
            status, taken, sampler = _perform(simulation, task, passed, file, parts)
    except BaseException:
        simulation.close()  # others wait, and the error's traceback keeps it
        raise
    return status, taken, sampler.series() if status == r.FINISHED else None


def _run(
    task: _Task,
    seed: int,
    watch: _Watch,
    job: int,
    trace: Path | None,
    built: list[Simulation],
) -> _Run:
    """Perform the run of one seed. Enlarges pool and rings that were too small.

    `built` may hold its arrays; they are taken, so that the caller does not keep them.
    """
    passed, scale, places = functools.partial(watch.pass_by, job), 1, 1
    layout = task.layout
    elide = task.elide and trace is None  # with every hop, lines come in the order of their times
    while True:
        simulation = built.pop() if built else _build(layout, seed, elide, scale)
        status, taken, series = _attempt(simulation, task, passed, trace, scale, job == 0)
        del simulation  # its memory is for others, or for a larger one
        if series is not None:
            break
        last = layout
        if status == r.TOO_MANY_TRANSFERS:
            places *= 8
            layout = task.layout.scaled(places)
            largest = layout.sources == last.sources
        else:
            scale *= 8
            largest = scale > _LARGEST
        if status not in _SCALED or largest:
            raise PacketError(f"seed {seed}: {_ADVICE[status]}")
    watch.done[job] = 1.0
    pairs = itertools.pairwise(taken) if job == 0 else ()
    parts = [metrics(layout, pair) for pair in pairs]
    return _Run(metrics(layout, taken), parts, series)


def _run_traced(
    task: _Task, seed: int, watch: _Watch, job: int, trace: Path, built: list[Simulation]
) -> _Run:
    """The same with a trace, whose file is there when the run is finished."""
    try:
        with whole(trace) as part:
            return _run(task, seed, watch, job, part, built)
    except OSError as error:
        raise PacketError(f"trace: cannot write '{trace}' ({error.strerror})") from None


def _checked_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    try:
        chosen = tuple(itertools.islice(seeds, _MOST_SEEDS + 1))
    except TypeError:
        raise PacketError(f"seeds: expected a list of whole numbers, got {seeds!r}") from None
    if len(chosen) > _MOST_SEEDS:
        raise PacketError(f"seeds: expected at most {_MOST_SEEDS}, got more")
    whole = all(isinstance(s, int | np.integer) and s >= 0 for s in chosen)
    if not chosen or not whole or len(set(chosen)) != len(chosen):
        raise PacketError(f"seeds: expected different whole numbers from 0 on, got {chosen!r}")
    return tuple(int(s) for s in chosen)


def _ordered(warmup: float, until: float) -> bool:
    """Whether these are times, and the run has an end after its warm-up."""
    try:
        return 0 <= warmup < until <= LONGEST
    except TypeError:
        return False


def simulate_packets(
    net: Network,
    *,
    until: float,
    warmup: float = 0.0,
    seeds: Iterable[int] = (1,),
    threads: int | None = None,
    elide: bool = True,
    sample: float | None = None,
    trace: str | Path | None = None,
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
    sample
        Time between the samples of `series` [s]; none are taken for None.
    trace
        CSV file for every event of the first seed's run: packets and windows. It is there, or
        replaced, when that run is finished.
    progress
        Called with the finished share, 0 to 1, from time to time.

    Raises
    ------
    PacketError
        For a network or times that cannot be simulated, or a run that failed, with advice.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> runs = fc.simulate_packets(net, until=3, warmup=1, seeds=(1, 2))
    >>> runs.seeds, runs.status
    ((1, 2), 'finished')
    """
    if not _ordered(warmup, until):
        raise PacketError(
            f"expected 0 <= warmup < until <= {LONGEST:g} in s, got {warmup!r} and {until!r}"
        )
    if threads is not None and threads < 1:
        raise PacketError(f"threads: expected at least 1, got {threads!r}")
    chosen, layout = _checked_seeds(seeds), plan(net)
    samples = sample_times(layout, sample, until, len(chosen))
    entry_points()
    # compile hooks, and fail, before threads start
    built = [_build(layout, chosen[0], elide and trace is None)]
    times = warmup + (until - warmup) * np.arange(_PARTS + 1) / _PARTS
    task = _Task(layout, times, samples, elide)
    watch = _Watch(len(chosen), until)
    workers = min(threads or most_threads(), len(chosen))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(_run_traced, task, seed, watch, k, Path(trace), built)
            if k == 0 and trace is not None
            else pool.submit(_run, task, seed, watch, k, None, built if k == 0 else [])
            for k, seed in enumerate(chosen)
        ]
        try:
            _wait(jobs, watch, progress)
        except KeyboardInterrupt:
            watch.stop.set()
        except BaseException:
            watch.stop.set()
            raise
    return _collect(chosen, jobs, task, warmup)


def _wait(jobs: list, watch: _Watch, progress: Progress | None) -> None:
    waiting = set(jobs)
    while waiting:
        _, waiting = concurrent.futures.wait(waiting, _POLL, concurrent.futures.FIRST_EXCEPTION)
        for job in set(jobs) - waiting:
            job.result()
        if progress is not None:
            progress(watch.fraction())


def _collect(seeds: tuple[int, ...], jobs: list, task: _Task, warmup: float) -> PacketRuns:
    """Put together what finished; raises KeyboardInterrupt where nothing did."""
    done = [k for k, job in enumerate(jobs) if job.exception() is None]
    if not done:
        raise KeyboardInterrupt
    results: list[_Run] = [jobs[k].result() for k in done]
    kept, series = [seeds[k] for k in done], None
    if len(task.samples):
        series = dataset(task.layout, task.samples, kept, [run.series for run in results])
    return PacketRuns.of(
        kept,
        [run.whole for run in results],
        results[0].parts,
        until=float(task.times[-1]),
        warmup=warmup,
        missing=[s for k, s in enumerate(seeds) if k not in done],
        series=series,
    )
