"""Runs of trains over seeds, their metrics, and the error of the step."""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fluidcc import memory
from fluidcc.laws.voice import present_calls
from fluidcc.loops import Loops, NotInLoopsError
from fluidcc.machine import card
from fluidcc.machine import threads as most_threads
from fluidcc.module import skeleton
from fluidcc.packets.accounts import (
    Kept,
    Metrics,
    PacketRuns,
    dataset,
    jain,
    over_route,
    ratio,
    times_of,
)
from fluidcc.packets.plan import PacketError
from fluidcc.packets.run import check_times, checked_seeds, wait_for
from fluidcc.programs import leaves, map_tree, unflatten
from fluidcc.progress import part, reporting
from fluidcc.scenario.network import Network
from fluidcc.scenario.parsing import in_seconds
from fluidcc.trains.layout import Layout, Shape, chosen_step, lay_out
from fluidcc.trains.state import Run, first, is_crowded, sampled

_PARTS = 20  # parts of a run, for batch means
_MOST_SAMPLES = 1_000_000
_SPARE = 4  # rows
_COPIES = 2  # of what a run remembers, as it begins
_GROWTH, _LARGEST = 4, 256  # by which rows and flows for files are multiplied: each time, at most
_NOT_A_NUMBER = "a law gave a window or probability that is not a number; check its parameters"


@dataclasses.dataclass(frozen=True, repr=False)
class TrainRuns(PacketRuns):
    """Runs of trains of packets on one network, one a seed, in the shape of `PacketRuns`.

    `step` is the step [s]; `step_error` has the shape of `mean`: by how much each metric differs
    from that of runs of the same seeds with twice the step, if asked for, and `step_ci95` the wider
    of their two intervals.

    `seeds`, `runs`, `ci95`, `until`, `warmup`, `missing`, `series` and `net` are as there;
    `transfers` is None.

    Examples
    --------
    >>> import fluidcc as fc
    >>> runs = fc.simulate_trains(fc.load("hollot2001/slow"), until=3, warmup=1, seeds=(1, 2))
    >>> 0 < runs.step < 0.1, runs.step_error is None
    (True, True)
    """

    _view = "runs.TrainsView"

    step: float = math.nan
    step_error: Kept | None = None
    step_ci95: Kept | None = None


def begun(layout: Layout, seeds: Sequence[int]) -> tuple[Any, Run]:
    """Numbers with the starts of the flows of each seed, and the runs before their first step."""
    kinds = []
    flows, links = layout.plan.flows, layout.plan.net.links
    for kind, p, own in zip(layout.shape.kinds, layout.numbers.kinds, layout.members, strict=True):
        starts = [flows[f].start for f in own]
        low, high = (np.array([[float(getattr(s, e))] for s in starts]) for e in ("low", "high"))
        u = np.stack([np.random.default_rng([s, kind.number]).random(len(own)) for s in seeds], 1)
        kinds.append(p._replace(begin=low + (high - low) * u))
    numbers = map_tree(np.asarray, layout.numbers._replace(kinds=tuple(kinds)))
    calls, talkers = np.zeros((2, len(links), len(seeds)))
    for k, voice in ((k, link.voice) for k, link in enumerate(links) if link.voice is not None):
        for lane, seed in enumerate(seeds):
            rng = np.random.default_rng([seed, len(kinds) + k])
            present = present_calls(rng.random(), float(voice.offered()), float(voice.most))
            calls[k, lane] = present
            talkers[k, lane] = rng.binomial(present, float(voice.active))
    return numbers, map_tree(np.asarray, first(layout.shape, numbers, calls, talkers))


def keys(seeds: Sequence[int]) -> np.ndarray:
    """Keys of the random numbers of some seeds."""
    return np.array([np.random.SeedSequence(s).generate_state(1)[0] for s in seeds], np.uint32)


_loops: dict[Any, Loops] = {}


def _made(shape: Shape, held: Any, run: Run) -> Loops:
    """The step of networks of one shape as machine code."""
    from fluidcc.trains import engine  # JAX is heavy, and most runs find what is kept

    def step(held: Any, run: Run) -> Run:
        numbers, keys = held
        u = engine.uniform(keys, run.k, shape.draws)
        return engine.advance_step(shape, numbers, run, u)

    return Loops.of(step, held, run)


class _Lane:
    """The run of one seed on a processor, by machine code."""

    def __init__(self, layout: Layout, seeds: Sequence[int]) -> None:
        numbers, self._run = begun(layout, seeds)
        held, shape = (numbers, keys(seeds)), layout.shape
        key = (shape, skeleton((held, self._run), np.shape))
        if key not in _loops:
            _loops[key] = Loops.kept(key, lambda: _made(shape, held, self._run))
        self._carry = Loops.pack(self._run)
        self._repeat = _loops[key].bind(Loops.pack(held), self._carry)
        shapes = [np.shape(leaf) for leaf in leaves(self._run)]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = zip(np.split(self._carry, ends), shapes, strict=True)
        self._view = unflatten(self._run, [part.reshape(shape) for part, shape in parts])

    def advance(self, count: int) -> None:
        """Perform some steps."""
        self._repeat(count)

    def state(self) -> Run:
        """The run as it is now, a view of it."""
        return self._view


class _Lanes:
    """The runs of all seeds on a card, by JAX."""

    def __init__(self, layout: Layout, seeds: Sequence[int]) -> None:
        from fluidcc.trains import engine

        self._engine, self._shape, self._keys = engine, layout.shape, keys(seeds)
        self._numbers, self._run = begun(layout, seeds)

    def advance(self, count: int) -> None:
        """Perform some steps."""
        steps = np.int64(count)
        advance = self._engine.advance
        self._run = advance(self._shape, self._numbers, self._run, self._keys, steps)

    def state(self) -> Run:
        """The runs as they are now."""
        return self._run


def _on_card() -> bool:
    """Whether JAX computes on a card."""
    if not card():
        return False
    from fluidcc.arrays import jax

    return jax.default_backend() != "cpu"


class _TooSmallError(Exception):
    """A packet was under way for longer than steps are remembered, or files found no flow."""


class _Snapshot:
    """The accounts of a run at one instant."""

    def __init__(self, run: Run, step: float) -> None:
        self.senders, self.ports = map_tree(np.copy, (run.senders, run.ports))
        if any(np.isnan(number).any() for number in leaves((self.senders, self.ports))):
            raise PacketError(_NOT_A_NUMBER)
        self.time = float(run.k) * step


def _link(layout: Layout, k: int, before: _Snapshot, after: _Snapshot, lane: int) -> dict[str, Any]:
    span = after.time - before.time

    def grown(name: str) -> float:
        now, then = (getattr(s.ports[k], name)[lane] for s in (after, before))
        return float(now - then)

    capacity = float(layout.numbers.ports[k].capacity)
    queue, system = grown("area") / span, grown("system") / span
    return {
        "utilization": (grown("served") + grown("used")) / span / capacity,
        "queue_mean": queue,
        "queue_var": grown("squares") / span - queue**2,
        "number_in_system_mean": system,
        "number_in_system_var": grown("system_squares") / span - system**2,
        "queueing_delay_mean": ratio(grown("system"), grown("left")),  # Little's law
        "drop_fraction": ratio(grown("dropped"), grown("offered")),
        "mark_fraction": ratio(grown("marked"), grown("offered")),
        "arrivals": grown("offered"),
        "drops": grown("dropped"),
        "marks": grown("marked"),
    }


def _group(
    layout: Layout, g: int, before: _Snapshot, after: _Snapshot, lane: int
) -> dict[str, Any]:
    span, size = after.time - before.time, layout.plan.groups[g].size
    places = [
        (kind, [i for i, f in enumerate(own) if layout.plan.flows[f].group == g])
        for kind, own in enumerate(layout.members)
    ]
    numbers_of = [[layout.members[kind][i] for i in own] for kind, own in places]

    def grown(name: str) -> np.ndarray:
        get = operator.attrgetter(name)
        pairs = (
            (get(s.senders[kind])[own, lane] for s in (after, before))
            for kind, own in places
            if own
        )
        return np.concatenate([next(pair) - next(pair) for pair in pairs])

    acked_of = dict(zip(itertools.chain(*numbers_of), grown("acked"), strict=True))
    members = layout.plan.members(g)
    per = [sum(float(acked_of[f]) for f in own) for own in members]
    goodput = np.array(per) * 8.0 * size / span
    sent, acked = float(grown("sent").sum()), sum(per)
    found = {
        "goodput": float(goodput.mean()),
        "flow_goodput": goodput.tolist(),
        "jain": float(jain(goodput)),
        "loss_fraction": ratio(float(grown("lost").sum()), sent),
        "window_mean": ratio(float(grown("window_time").sum()), float(grown("open_time").sum())),
        "rtt_mean": ratio(float(grown("rtt_sum").sum()), acked),
        "sent": sent,
        "timeouts": float(grown("timeouts").sum()),
        "window_reductions": float(grown("reductions").sum()),
        "recoveries": float(grown("recoveries").sum()),
    }
    if layout.plan.groups[g].flows.traffic.starts:
        found["active"] = float(grown("open_time").sum()) / span / len(members)
        count = float(grown("files.transfers").sum())
        mean = ratio(float(grown("files.span_sum").sum()), count)
        squares = ratio(float(grown("files.span_squares").sum()), count)
        found |= {"transfers": count, "fct_mean": mean}
        found["fct_std"] = math.sqrt(max(squares - mean**2, 0.0))
    return found


def _metrics(layout: Layout, before: _Snapshot, after: _Snapshot, lane: int) -> Metrics:
    net, ends = layout.plan.net, (before, after, lane)
    links = {n: _link(layout, k, *ends) for k, n in enumerate(net.link_names)}
    flows = {
        n: _group(layout, g, *ends) | over_route(layout.plan, g, links)
        for g, n in enumerate(net.flow_names)
    }
    return {"links": links, "flows": flows}


class _Attempt(NamedTuple):
    """Runs of some seeds: their layout, snapshots, and samples (times, links, lanes)."""

    layout: Layout
    snapshots: list[_Snapshot]
    samples: np.ndarray


class _Job:
    """Runs of a network, with the times [s] of snapshots and of samples."""

    def __init__(
        self, net: Network, step: float, edges: np.ndarray, samples: np.ndarray, threads: int
    ) -> None:
        self._net, self._step, self._edges, self._samples = net, step, edges, samples
        self._threads = threads
        self._layouts = {1: lay_out(net, step)}  # by scale
        self.done: dict[int, float] = {}
        self.stopped = False

    def blocks(self, seeds: Sequence[int]) -> list[Sequence[int]]:
        """Seeds whose runs are performed together: on a card, as many as fit in its memory."""
        size = 1
        if _on_card():  # in blocks of nearly one size, as each size is compiled
            each = _GROWTH * self._memory(self._layouts[1], 1)
            fit = max(int(min(memory.available() / each, len(seeds))), 1)
            size = -(-len(seeds) // -(-len(seeds) // fit))
        return [seeds[k : k + size] for k in range(0, len(seeds), size)]

    def _memory(self, layout: Layout, runs: int) -> float:
        """Bytes that so many runs take."""
        return 8.0 * _COPIES * layout.shape.remembered * runs

    def perform(self, seeds: Sequence[int]) -> _Attempt:
        """Run some seeds together, with as many rows and flows for files as it takes."""
        scale = 1
        while scale <= _LARGEST:
            layout = self._layouts.get(scale) or lay_out(self._net, self._step, scale)
            self._layouts[scale] = layout
            try:
                return self._attempt(layout, seeds)
            except _TooSmallError:
                scale *= _GROWTH
        raise PacketError(
            "packets are under way for longer, or more files at a time, than any estimate allows; "
            "give the links a finite buffer, or lower the arrivals of files"
        )

    def _attempt(self, layout: Layout, seeds: Sequence[int]) -> _Attempt:
        rows, flows = layout.shape.rows, len(layout.plan.flows)
        on_card = _on_card()
        runs = len(seeds) if on_card else self._threads
        memory.require(
            self._memory(layout, runs),
            f"{runs} runs of trains at a time, of {flows} flows and {rows} steps,",
            "take a longer step, fewer flows or smaller buffers, or "
            + ("fewer seeds" if on_card else "set FLUIDCC_THREADS"),
            memory.available() if on_card else memory.host(),
        )
        lanes = _together(layout, seeds)
        edges, samples = set(self._edges), set(self._samples)
        snapshots, taken, at = [], [], 0
        for time in map(float, np.union1d(self._edges, self._samples)):
            target = round(time / self._step)
            lanes.advance(target - at)
            at, state = max(at, target), lanes.state()
            if np.max(state.oldest) > layout.shape.rows - _SPARE or is_crowded(state):
                raise _TooSmallError
            if time in edges:
                snapshots.append(_Snapshot(state, self._step))
            if time in samples:
                taken.append(sampled(state))
            self.done[seeds[0]] = time / self._edges[-1]
            if self.stopped:
                raise KeyboardInterrupt
        return _Attempt(layout, snapshots, np.array(taken))


def _together(layout: Layout, seeds: Sequence[int]) -> _Lane | _Lanes:
    """Runs of some seeds: by machine code for one, if its laws use operations that have some."""
    if len(seeds) == 1 and not _on_card():
        with contextlib.suppress(NotInLoopsError):
            return _Lane(layout, seeds)
    return _Lanes(layout, seeds)


def _perform(
    net: Network, step: float, seeds: Sequence[int], until: float, warmup: float,
    samples: np.ndarray,
) -> tuple[list[Metrics], list[Metrics], Any]:  # fmt: skip
    """Metrics of each seed, of the parts of the first, and series at the times of samples."""
    workers = 1 if _on_card() else min(most_threads(), len(seeds))
    job = _Job(net, step, np.linspace(warmup, until, _PARTS + 1), samples, workers)
    together = job.blocks(seeds)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(job.perform, own) for own in together]
        try:
            wait_for(futures, lambda: sum(job.done.values()) / len(together))
        except BaseException:
            job.stopped = True
            raise
    found = [
        (attempt, lane)
        for own, future in zip(together, futures, strict=True)
        for attempt in [future.result()]
        for lane in range(len(own))
    ]
    runs = [_metrics(own.layout, own.snapshots[0], own.snapshots[-1], k) for own, k in found]
    first, _ = found[0]
    parts = [_metrics(first.layout, a, b, 0) for a, b in itertools.pairwise(first.snapshots)]
    taken = [{"link_number_in_system": own.samples[..., k]} for own, k in found if len(samples)]
    return runs, parts, dataset(first.layout.plan, samples, seeds, taken) if taken else None


def _checked(step: float | None, sample: float | None, until: float, longest: float) -> None:
    """Raise PacketError for a step or a time between samples that cannot be; the step may be as
    long as `longest` [s].
    """
    for name, value, most in (("step", step, longest), ("sample", sample, until)):
        if value is not None and not (isinstance(value, Real) and 0 < value <= most):
            raise PacketError(f"{name}: expected a time in (0, {most:g}] in s, got {value!r}")
    if sample is not None and until / sample > _MOST_SAMPLES:
        raise PacketError(
            f"sample: expected at least {until / _MOST_SAMPLES:g} s, got {sample:g} s"
        )


TWICE_THE_STEP = 1.5  # times the steps of a run, with another one of twice the step
_FINE = 1 / TWICE_THE_STEP


@reporting
def simulate_trains(
    net: Network,
    *,
    until: float | str,
    warmup: float | str = 0.0,
    seeds: Iterable[int] = (1,),
    step: float | str | None = None,
    estimate_error: bool = False,
    sample: float | str | None = None,
    progress: Callable[[float], object] | None = None,
) -> TrainRuns:
    """Simulate a network by trains of packets, once for each seed.

    Flows are individuals with the state of their own window law. Packets are sent, served and
    acknowledged as whole numbers in each step; marks and losses are single events. A step costs the
    same whatever the capacity. The results of a seed are the same bits whatever the other seeds are
    and for any number of threads. Bohacek et al. (2003), made finite and self-clocked.

    Parameters
    ----------
    net
        Links and flows; `flows.sender` holds the options of the packet senders.
    until, warmup
        End of the run, and of the time before the statistics begin [s]; text is read with its
        unit, ``"500 ms"``.
    seeds
        Different whole numbers; each one is an independent run.
    step
        Step [s], or text with a unit, a fortieth of the measured time at most; for None a 16th to a
        256th of the shortest round trip.
    estimate_error
        Whether the runs are done with twice the step too, which gives `step_error`.
    sample
        Time between the samples of `series` [s], or text with a unit; none are taken for None.
    progress
        Called with the finished share, in [0, 1], from time to time.

    Returns
    -------
    TrainRuns
        The fields of `PacketRuns`, with the `step` [s], and `step_error` and `step_ci95` if asked
        for.

    Raises
    ------
    PacketError
        For a network, times or a step that trains cannot do, with advice.
    ValueError
        If the machine has too little memory for the runs.

    Examples
    --------
    >>> import fluidcc as fc
    >>> runs = fc.simulate_trains(fc.load("hollot2001/slow"), until=3, warmup=1, seeds=(1, 2))
    >>> runs.seeds, runs.status
    ((1, 2), 'finished')
    """
    until, warmup = in_seconds("until", until), in_seconds("warmup", warmup)
    sample, step = in_seconds("sample", sample), in_seconds("step", step)
    check_times(warmup, until)
    longest = (until - warmup) / _PARTS / (1 + estimate_error)
    _checked(step, sample, until, longest)
    chosen = checked_seeds(seeds)
    used = step or min(chosen_step(net), longest)
    times = np.zeros(0) if sample is None else times_of(sample, until)
    with part(0.0, _FINE if estimate_error else 1.0):
        runs, parts, series = _perform(net, used, chosen, until, warmup, times)
    found = TrainRuns.of(
        chosen, runs, parts, until=until, warmup=warmup, series=series, step=used, net=net
    )
    if not estimate_error:
        return found
    with part(_FINE, 1.0):
        coarse, parts, _ = _perform(net, 2 * used, chosen, until, warmup, np.zeros(0))
    rough = TrainRuns.of(chosen, coarse, parts, until=until, warmup=warmup)
    return dataclasses.replace(
        found,
        step_error=_each(lambda fine, coarse: abs(fine - coarse), found.mean, rough.mean),
        step_ci95=_each(max, found.ci95, rough.ci95),
    )


def _each(of: Callable[[float, float], float], fine: Any, coarse: Any) -> Any:
    """A function of the metrics of two runs, number by number."""
    if isinstance(fine, Mapping):
        return MappingProxyType({key: _each(of, fine[key], coarse[key]) for key in fine})
    if isinstance(fine, tuple):
        return tuple(_each(of, *pair) for pair in zip(fine, coarse, strict=True))
    return of(fine, coarse)
