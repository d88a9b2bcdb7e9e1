"""Packet runs over seeds: threads, slices, progress, interruption."""

import concurrent.futures
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidcc.folders import whole, writable
from fluidcc.machine import threads as most_threads
from fluidcc.packets import budget
from fluidcc.packets.accounts import (
    Metrics,
    PacketRuns,
    Sampler,
    Series,
    Snapshot,
    dataset,
    jain_by_scale,
    list_transfers,
    metrics,
    sample_times,
    snapshot,
    thinned,
)
from fluidcc.packets.build import TOO_MANY_IN_FLIGHT, Simulation
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import INTERPRETED
from fluidcc.packets.hooks import compile_ahead, entry_points
from fluidcc.packets.initial import Initial, find_initial
from fluidcc.packets.plan import PacketError, Plan, plan
from fluidcc.packets.saved import ENDING, Saved, State, read_states, write_states
from fluidcc.packets.traces import ENDINGS, SLICE, TraceFile
from fluidcc.progress import report, reporting
from fluidcc.scenario.network import LONGEST, Network
from fluidcc.scenario.parsing import in_seconds

_SLICE = 5_000 if INTERPRETED else 400_000  # events between looks at the stop flag: some 50 ms
_PARTS = 20  # parts of a run, for batch means
_LARGEST = 4096  # most that pool and rings are enlarged
_POLL = 0.1  # s between progress reports
_MOST_SEEDS = 1_000_000

# statuses of runs that are done again with more room
_SCALED = {r.POOL_EXHAUSTED, r.WINDOW_BEYOND_RING, r.TRACE_FULL}
_SCALED |= {r.TOO_MANY_TRANSFERS, r.TOO_MANY_CALLS}
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


class _Run(NamedTuple):
    """Results of one run."""

    whole: Metrics
    parts: list[Metrics]  # of the first seed alone
    series: Series
    transfers: tuple[np.ndarray, int]  # as `Simulation.transfers` has them
    state: State | None  # at the end, if it is to be saved


class _Batch:
    """The runs of a network, one for each seed: what they share, and how far each has come.

    `times` are those of snapshots, `samples` those of samples [s]; `trace` is the file for the
    first run. `stop` ends all runs. A run that ends or begins with a saved state simulates every
    hop, so that any run can go on from it.
    """

    def __init__(
        self,
        layout: Plan,
        seeds: tuple[int, ...],
        times: np.ndarray,
        samples: np.ndarray,
        elide: bool,
        trace: Path | None,
        initial: Initial | Saved | None = None,
        save: bool = False,
    ) -> None:
        self.layout, self.seeds, self.times, self.samples = layout, seeds, times, samples
        self._trace, self._initial, self._save = trace, initial, save
        self._elide = elide and not save and not isinstance(initial, Saved)
        self._since = initial.time if isinstance(initial, Saved) else 0.0
        self.stop, self._done = threading.Event(), [0.0] * len(seeds)
        self._built = [self._build(0, layout)]  # compile hooks, and fail, before threads start

    def fraction(self) -> float:
        """Finished share of all runs."""
        return sum(self._done) / len(self._done)

    def perform(self, job: int) -> _Run:
        """Perform a run, with its trace, whose file is there when the run is finished."""
        if job > 0 or self._trace is None:
            return self._run(job, None)
        try:
            with whole(self._trace) as part:
                return self._run(job, part)
        except OSError as error:
            text = f"trace: cannot write '{self._trace}' ({error.strerror})"
            raise PacketError(text) from None

    def _run(self, job: int, trace: Path | None) -> _Run:
        """Perform a run, again with a larger pool, rings or more flows if they were too small."""
        layout, scale, flows_scale = self.layout, 1, 1
        while True:
            # taken from the list, so that nothing else holds its memory
            simulation = self._built.pop() if job == 0 and self._built else None
            simulation = simulation or self._build(job, layout, scale)
            status, taken, series = self._attempt(job, simulation, trace, scale)
            transfers, built = simulation.transfers(), simulation.plan
            state = State.of(simulation) if self._save and series is not None else None
            del simulation  # its memory is for others, or for a larger one
            if series is not None:
                break
            last = layout
            if status == r.TOO_MANY_TRANSFERS:
                flows_scale *= 8
                layout = self.layout.scaled(flows_scale)
                largest = layout.sources == last.sources
            else:
                scale *= 8
                largest = scale > _LARGEST
            full = isinstance(self._initial, Saved) and status in _SCALED - {r.TRACE_FULL}
            if status not in _SCALED or largest or full:
                why = "the saved state has no more room: run from the beginning; " * full
                raise PacketError(f"seed {self.seeds[job]}: {why}{_ADVICE[status]}")
        self._done[job] = 1.0
        pairs = itertools.pairwise(taken) if job == 0 else ()
        parts = [metrics(built, pair) for pair in pairs]
        listed = thinned(transfers, len(self.seeds))
        return _Run(metrics(built, taken), parts, series, listed, state)

    def _build(self, job: int, layout: Plan, scale: int = 1) -> Simulation:
        """The arrays of a run; raises PacketError if there is no memory for them."""
        # with every hop, lines of a trace come in the order of their times
        elide, seed = self._elide and (job > 0 or self._trace is None), self.seeds[job]
        try:
            if isinstance(self._initial, Saved):
                return self._initial.states[seed].run(self.layout, seed)
            return Simulation(layout, seed, elide, scale, self._initial)
        except MemoryError:
            raise PacketError(f"seed {seed}: no memory is left: {TOO_MANY_IN_FLIGHT}") from None

    def _attempt(
        self, job: int, simulation: Simulation, trace: Path | None, scale: int
    ) -> tuple[int, list[Snapshot], Series | None]:
        """Perform a run; its status, snapshots, and its series if it has finished."""
        try:
            with contextlib.ExitStack() as stack:
                if INTERPRETED:
                    stack.enter_context(np.errstate(over="ignore"))
                file = trace and stack.enter_context(TraceFile(simulation, trace, scale))
                status, taken, sampler = self._record(job, simulation, file)
        except BaseException:
            simulation.close()  # others wait, and the error's traceback keeps it
            raise
        return status, taken, sampler.series() if status == r.FINISHED else None

    def _record(
        self, job: int, simulation: Simulation, trace: TraceFile | None
    ) -> tuple[int, list[Snapshot], Sampler]:
        """Run to each time and take snapshots and samples; the status, and what was taken.

        Runs after the first keep only the first and the last snapshot.
        """
        taken, sampler = [], Sampler(simulation, self.samples)
        sampled = set(self.samples)
        kept = set(self.times) if job == 0 else {self.times[0], self.times[-1]}
        if 0.0 in kept:  # before the events at 0, which belong to what follows
            kept.remove(0.0)
            taken.append(snapshot(simulation, 0.0))
        for time in map(float, np.union1d(self.times, self.samples)):
            status = self._advance(job, simulation, time, trace)
            if status != r.FINISHED:
                return status, taken, sampler
            if time in sampled:
                sampler.take(time)
            if time in kept:
                if not taken:
                    simulation.forget_transfers()
                taken.append(snapshot(simulation, time))
        return r.FINISHED, taken, sampler

    def _advance(
        self, job: int, simulation: Simulation, time: float, trace: TraceFile | None
    ) -> int:
        """Run to `time` in slices, and stop between them if told to; the status."""
        advance, _ = entry_points()
        status = r.MORE
        while status == r.MORE:
            status = advance(simulation.address, time, _SLICE if trace is None else SLICE)
            if trace is not None:
                trace.flush()
            now = float(simulation.state["now"][0])
            self._done[job] = (now - self._since) / (self.times[-1] - self._since)
            if self.stop.is_set():
                raise _Stopped
        return status


def checked_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    """Seeds as a tuple; raises PacketError unless they are different whole numbers."""
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


def check_times(warmup: float, until: float) -> None:
    """Raise PacketError unless these are times, and the run has an end after its warm-up."""
    try:
        ordered = 0 <= warmup < until <= LONGEST
    except TypeError:
        ordered = False
    if not ordered:
        raise PacketError(
            f"expected 0 <= warmup < until <= {LONGEST:g} in s, got {warmup!r} and {until!r}"
        )


@reporting
def simulate_packets(
    net: Network,
    *,
    until: float | str,
    warmup: float | str = 0.0,
    seeds: Iterable[int] | None = None,
    threads: int | None = None,
    elide: bool = True,
    sample: float | str | None = None,
    trace: str | Path | None = None,
    initial: Callable[[Network], Any] | str | Path | None = None,
    save_state: str | Path | None = None,
    progress: Callable[[float], object] | None = None,
) -> PacketRuns:
    """Simulate a network packet by packet, once for each seed.

    The results of a seed are the same bits for any number of threads, with or without `elide`,
    and on any machine. An interrupt (Ctrl-C) keeps the runs that are finished.

    Parameters
    ----------
    net
        Links and flows; `flows.sender` holds the options of the packet senders.
    until, warmup
        End of the run, and of the time before the statistics begin [s]; text is read with its
        unit, ``"500 ms"``.
    seeds
        Different whole numbers; each one is an independent run. None is seed 1, or all those of a
        file of states.
    threads
        Runs at a time; as many as there are processors for None.
    elide
        Leave out events that cannot change anything; False simulates every hop.
    sample
        Time between the samples of `series` [s], or text with a unit; none are taken for None.
    trace
        File for the first seed's run, there, or replaced, when that run is finished: ``.csv`` for
        every event, packets and windows (`fluidcc.read_trace`), or ``.pcap`` for the packets as
        their senders see them, with headers of IPv4 and TCP.
    initial
        `fluidcc.equilibrium` lets the runs begin at the equilibrium of the network: bulk flows are
        connected at time 0 with its windows and a full ACK clock, in congestion avoidance, and laws
        have its averages. Files and calls begin as always. None begins with empty links. A file of
        `save_state` lets them go on from there, each seed from its own state: the clock goes on,
        `until` is a time on it, and `warmup` counts from where the run goes on.
    save_state
        File (``.state``) for the states of all runs at `until`. A run that goes on from it is,
        bit by bit, the rest of a run without a break. Parameters of laws may be others then, if
        nothing but the rules of their laws depends on them, such as thresholds of RED or gains of
        PI; every other change is refused, and another version of fluidcc or its packages.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    PacketRuns
        `runs`, `mean` and `ci95` (half widths of 95 % intervals) by links and flows, with the
        metrics and units of the table of quantities; `series` over time if sampled.

    Raises
    ------
    PacketError
        For a network or times that cannot be simulated, runs for which there is too little memory
        or disk, a state of another network, or a run that failed, with advice.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> runs = fc.simulate_packets(net, until=3, warmup=1, seeds=(1, 2))
    >>> runs.seeds, runs.status
    ((1, 2), 'finished')
    """
    until, warmup = in_seconds("until", until), in_seconds("warmup", warmup)
    sample = in_seconds("sample", sample)
    check_times(warmup, until)
    stored, file = _file("save_state", save_state, (ENDING,)), _file("trace", trace, ENDINGS)
    if threads is not None and threads < 1:
        raise PacketError(f"threads: expected at least 1, got {threads!r}")
    chosen = (1,) if seeds is None else checked_seeds(seeds)
    layout = plan(net)
    begun, since = _begin(layout, initial, None if seeds is None else chosen), 0.0
    if isinstance(begun, Saved):
        chosen = tuple(begun.states) if seeds is None else chosen
        since, warmup = begun.time, begun.time + warmup
        if not warmup < until:
            raise PacketError(
                f"initial: the run goes on at {since:g} s, from its states: expected until beyond "
                f"{since:g} s + warmup = {warmup:g} s, got {until!r}"
            )
    budget.require(layout, until - since, len(chosen), file)
    samples = sample_times(layout, sample, until, len(chosen), since)
    compile_ahead()
    times = warmup + (until - warmup) * np.arange(_PARTS + 1) / _PARTS
    batch = _Batch(layout, chosen, times, samples, elide, file, begun, stored is not None)
    entry_points()  # compiled before threads start
    workers = min(threads or most_threads(), len(chosen))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(batch.perform, k) for k in range(len(chosen))]
        try:
            wait_for(jobs, batch.fraction)
        except KeyboardInterrupt:
            batch.stop.set()
        except BaseException:
            batch.stop.set()
            raise
    return _collect(batch, jobs, warmup, sample, stored)


def _file(name: str, file: str | Path | None, endings: tuple[str, ...]) -> Path | None:
    """A file to write; raises PacketError for another ending, or a folder where none can be."""
    if file is None:
        return None
    path, expected = Path(file), " or ".join(endings)
    if path.suffix not in endings:
        raise PacketError(f"{name}: expected a file that ends in {expected}, got '{path}'")
    if not writable(path.parent):
        raise PacketError(f"{name}: cannot write '{path}': no such folder, or not yours")
    return path


def _begin(layout: Plan, initial: Any, seeds: tuple[int, ...] | None) -> Initial | Saved | None:
    """Where runs begin, for `initial` of `simulate_packets`; with seeds for states of theirs."""
    if not isinstance(initial, str | Path):
        return None if initial is None else find_initial(layout, initial)
    saved = read_states(Path(initial), layout.given)
    if missing := [seed for seed in seeds or () if seed not in saved.states]:
        known = ", ".join(map(str, saved.states))
        raise PacketError(f"seeds: expected some of {known}, which '{initial}' has, got {missing}")
    return saved


def wait_for(jobs: Iterable[concurrent.futures.Future], share: Callable[[], float]) -> None:
    """Wait for runs and report the finished share; raises what one of them raises."""
    waiting = set(jobs)
    while waiting:
        done, waiting = concurrent.futures.wait(waiting, _POLL, concurrent.futures.FIRST_EXCEPTION)
        for job in done:
            job.result()
        report(share())


def _collect(
    batch: _Batch, jobs: list, warmup: float, sample: float | None, stored: Path | None
) -> PacketRuns:
    """Put together the runs that finished, and write their states; raises KeyboardInterrupt if none
    did.
    """
    done = [k for k, job in enumerate(jobs) if job.exception() is None]
    if not done:
        raise KeyboardInterrupt
    results: list[_Run] = [jobs[k].result() for k in done]
    kept, series, transfers = [batch.seeds[k] for k in done], None, None
    if len(batch.samples):
        series = dataset(batch.layout, batch.samples, kept, [run.series for run in results])
        series = jain_by_scale(batch.layout, series, warmup, float(sample or 0.0))
    if batch.layout.sources:
        transfers = list_transfers(batch.layout, kept, [run.transfers for run in results])
    if stored is not None:
        pairs = zip(kept, results, strict=True)
        states = {seed: run.state for seed, run in pairs if run.state is not None}
        write_states(stored, batch.layout.given, float(batch.times[-1]), states)
    return PacketRuns.of(
        kept,
        [run.whole for run in results],
        results[0].parts,
        until=float(batch.times[-1]),
        warmup=warmup,
        missing=[s for k, s in enumerate(batch.seeds) if k not in done],
        series=series,
        transfers=transfers,
        net=batch.layout.given,
    )
