"""Equilibria of networks by nested searches for sign changes, for any laws.

For given signals the equilibrium of senders is where their drift changes sign; for given queues
that of a queue law's memory is its limit under constant arrivals. Then the rate that a link accepts
decreases with its backlog (`steady_laws`), so bisection finds the backlog of balance, or that of a
jump of the signal.
Several links are solved in turn (Gauss-Seidel) until nothing moves; in NumPy, steps of Newton's
method for all of them bring the turns nearer.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.bisection import bisect, first_crossing
from fluidcc.analysis.population import grid_error, mean_window
from fluidcc.analysis.steady_laws import (
    WeightedSignal,
    has_dead_zone,
    jump_distances,
    memory_with_signal,
    neighbour,
    offered_rate,
    past_slow_start,
    per_flow,
    queue_at,
    signal_of,
    source_rate,
    steady_memory,
    steady_sender,
    steady_signal,
)
from fluidcc.laws.law import ALWAYS, Signal
from fluidcc.model.delays import State, round_trip
from fluidcc.model.rates import cross_beside, kept, measured, over_classes, received
from fluidcc.module import skeleton
from fluidcc.ops import Num
from fluidcc.programs import compiled, flatten, leaves, map_tree, repeat
from fluidcc.scenario.network import Flows, Link, Network


class Regime(enum.IntEnum):
    """How a link is at equilibrium; a search gives the first six, `resolved` refines jumps."""

    INTERIOR = 0  # at a root
    EMPTY = 1  # without a queue
    JUMP = 2  # at a jump of its signal
    FULL = 3  # with a full buffer
    NONE = 4  # without an equilibrium
    NEUTRAL = 5  # at a jump at which all windows are equilibria
    ADAPTED = 10  # at a jump, held from both sides by ticks
    LOADED = 11  # at a jump, held by the load factor
    STEADY = 12  # at a smooth equilibrium of the law's memory
    END = 13  # at the end of a range of equilibria that ticks do not move


AGREE = 1e-8  # relative difference up to which two numbers are the same
_LONGEST_QUEUE = 1e9  # packets, if the buffer is unbounded
_SMALL = 1e-7  # of the capacity; a larger mismatch is a jump
_ROUNDING = 2e-15  # of the capacity
_FINEST = 1e-16  # packets, or of the capacity: difference of backlogs that means nothing
_ROUNDS = 400
_RESTED, _COARSE = 1e-12, 1e-8  # relative move of backlogs and signals in a round: none; far
_MOST_STEPS, _ASIDE, _SINGULAR = 12, 1e-7, 1e-5  # of Newton's method; relative, for slopes
_WINDOW_JUMP = 1.1  # factor between windows on both sides of a backlog that counts as a jump
_APART = 2e-15  # relative; sides of a jump, at which rounding leaves load factors apart
_OF_CLASSES = "n", "rtt", "access_delay", "reverse_delay", "access_capacity", "start"
NEAR_EMPTY = 1e-12
"""Backlogs nearer to 0 are the empty queue of a full link, and a smaller excess over its capacity
counts as 0: links behind one of equal capacity have no queue."""


class SteadySignal(NamedTuple):
    """Signal of a link at equilibrium; for a `share` of the time its load factor is `other`."""

    signal: Signal
    other: Num
    share: Num


class OperatingPoint(NamedTuple):
    """The equilibrium of a network, link by link and group by group; of P networks of populations
    at one link, numbers are (P, 1), those of links (links, P, 1), those of classes (P, m).
    """

    codes: Any  # Regime of each link (links,)
    backlogs: Any  # (links,), see `steady_laws`
    emitted: tuple[SteadySignal, ...]  # per link
    signals_below: tuple[Signal, ...]  # per link, just below its backlog
    laws: tuple  # memory of each queue law
    senders: tuple  # Sender per group
    windows: tuple  # per group (m,) [packet]
    rates: tuple  # of one source, per group (m,) [packet/s]
    accepted: Any  # rates (links,) [packet/s]
    lost: Any  # share of the arrivals (links,)
    escapes: Any  # backlogs from which a link is overloaded again (links,); inf if there is none
    moved: Any  # by the last round, backlogs and signals [relative]
    errors: tuple = ()  # of populations, per group (m,): see `grid_error`

    @property
    def queues(self) -> Any:
        """Queues (links,) [packet]."""
        return queue_at(self.backlogs)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Signal per link; at a jump of the load factor, the one above."""
        return tuple(s.signal._replace(load=s.other) for s in self.emitted)


def agree(first: OperatingPoint, second: OperatingPoint) -> Num:
    """Whether two searches ended at the same backlogs and signals."""
    one, other = (
        flatten((op.backlogs, [(s.mark, s.drop) for s in op.signals])) for op in (first, second)
    )
    return ops.everywhere(abs(one - other) <= AGREE * (1 + abs(one)))


def alone(signal: Signal) -> SteadySignal:
    """A signal at all times."""
    return SteadySignal(signal, signal.load, 0.0)


def weighted_signals(
    net: Network, flows: Flows, emitted: list[SteadySignal]
) -> list[WeightedSignal]:
    """Signals that flows receive from the links of their route, with shares of the time."""
    options = []
    for k in flows.route:
        one = emitted[k]
        if net.links[k].queue.loads and flows.feedback.loads:
            other = one.signal._replace(load=one.other)
            options.append([(1 - one.share, one.signal), (one.share, other)])
        else:
            options.append([(1.0, one.signal)])
    out = []
    for combination in itertools.product(*options):
        share = functools.reduce(lambda a, b: a * b, (c[0] for c in combination))
        out.append(WeightedSignal(share, received(flows, tuple(c[1] for c in combination))))
    return out


def steady_senders(
    net: Network,
    backlogs: list,
    emitted: list[SteadySignal],
    windows: list | None = None,
    near: list | None = None,
    tops: list[Num] | None = None,
    settled: dict[int, Any] | None = None,
    highest: bool = False,
) -> list[tuple[Any, Num]]:
    """Senders at equilibrium under the signals of the links, and the rates (m,) of their sources;
    `windows` (m,) of each group, if given, are fixed, and `near` are pairs of windows between which
    they probably are. Populations have windows up to `tops` (m,), if given. Groups that are
    `settled`, by their numbers, are taken as they are; `highest` as `steady_sender` has it.
    """
    out, growth_on_all_acks = [], net.rates == "mgt"
    queues = tuple(queue_at(backlog) for backlog in backlogs)
    for i, flows in enumerate(net.flows):
        if settled is not None and i in settled:
            out.append(settled[i])
            continue
        rtt = round_trip(net, flows, queues)
        cases = _cases(net, flows, emitted, rtt)
        if net.closure == "population":
            top = None if tops is None else tops[i]
            out.append(_population(flows, cases[0].signal, rtt, top))
            continue
        own = None if windows is None else windows[i]
        s = steady_sender(
            flows, cases, rtt, growth_on_all_acks=growth_on_all_acks, window=own,
            near=None if near is None else near[i], highest=highest,
        )  # fmt: skip
        out.append((s, source_rate(flows, s, cases, rtt)))
    return out


def _cases(
    net: Network, flows: Flows, emitted: list[SteadySignal], rtt: Num
) -> list[WeightedSignal]:
    return [
        WeightedSignal(share, per_flow(signal, rtt))
        for share, signal in weighted_signals(net, flows, emitted)
    ]


def _population(flows: Flows, signal: Signal, rtt: Num, top: Num | None) -> tuple[Any, Num]:
    """Senders with the mean window of all flows, and the rates (m,) of their sources."""
    shape = np.shape(signal.mark)
    rtt = ops.broadcast_to(rtt, shape)
    window, flight = mean_window(flows, map_tree(ops.ravel, signal), ops.ravel(rtt), top)
    return past_slow_start(flows, window.reshape(shape)), flight.reshape(shape) / rtt


def _windows(net: Network, senders: list) -> tuple:
    return tuple(f.window.window(s.law) for f, (s, _) in zip(net.flows, senders, strict=True))


def arrivals(
    net: Network, emitted: list[SteadySignal], senders: list[tuple[Any, Num]]
) -> tuple[list[Num], list[Num]]:
    """Rates offered to links and accepted by them [packet/s], from senders and the rates of their
    sources.

    Packets that a link drops or cannot carry do not reach the links behind it.
    """
    shares_kept = [[kept(f, emitted[k].signal, k) for k in f.route] for f in net.flows]
    through: list[Num] = [1.0] * len(net.links)
    offered: list[Num] = []
    accepted: list[Num] = []
    beside = [cross_beside(net, k) for k in range(len(net.links))]
    for _ in net.links:  # each pass is right for one link more of every route
        offered = [
            link.cross + more + 0.0 * link.capacity
            for link, more in zip(net.links, beside, strict=True)
        ]
        accepted = [
            link.cross * (1 - s.signal.drop) + more
            for link, s, more in zip(net.links, emitted, beside, strict=True)
        ]
        for flows, (_, rate), shares in zip(net.flows, senders, shares_kept, strict=True):
            left = flows.n * rate
            for k, share in zip(flows.route, shares, strict=True):
                offered[k] = offered[k] + over_classes(left)
                left = left * share
                accepted[k] = accepted[k] + over_classes(left)
                left = left if k in flows.passes else left * through[k]
        through = [
            ops.minimum(1.0, link.capacity / ops.maximum(rate, _SMALL))
            for link, rate in zip(net.links, accepted, strict=True)
        ]
    return offered, accepted


def _excess(link: Link, backlog: Num, offered: Num, accepted: Num) -> Num:
    """Rate at which packets arrive beyond those of the backlog [packet/s]."""
    return ops.where(backlog < 0, offered - offered_rate(link, backlog), accepted - link.capacity)


def _with(values: list, k: int, value: Any) -> list:
    return [*values[:k], value, *values[k + 1 :]]


class _Known:
    """Windows found at some numbers of a line, for a search at others in NumPy: between those of
    the numbers next to them, as windows most often rise or fall along the line.
    """

    def __init__(self) -> None:
        self.places = np.zeros((0, 1))
        self.windows: list[Num] = []  # of each group (k, m)

    def around(self, places: Num) -> list[tuple[Num, Num]] | None:
        """The windows of each group between which those at some numbers (n, 1) should be; None if
        nothing is known.
        """
        if ops.traced(places) or len(self.places) < 2:
            return None
        right = np.clip(np.searchsorted(self.places[:, 0], places[:, 0]), 1, len(self.places) - 1)
        pairs = [(w[right - 1], w[right]) for w in self.windows]
        return [(np.minimum(*pair), np.maximum(*pair)) for pair in pairs]

    def add(self, places: Num, windows: tuple) -> None:
        """Keep the windows found at some numbers (n, 1)."""
        if ops.traced(places):
            return
        rows = [ops.broadcast_to(w, (len(places), np.shape(w)[-1])) for w in windows]
        if len(self.places):
            rows = [np.concatenate(pair) for pair in zip(self.windows, rows, strict=True)]
        self.places = np.concatenate([self.places, places])
        order = np.argsort(self.places[:, 0])
        self.places, self.windows = self.places[order], [w[order] for w in rows]


def _choose(condition: Num, yes: Any, no: Any) -> Any:
    return map_tree(lambda a, b: ops.where(condition, a, b), yes, no)


def between(
    net: Network, k: int, least: Signal, above: Signal, over: Num, share: Num
) -> SteadySignal:
    """Convex combination of signals that may hold a link at a jump or a full buffer, by its share.

    At a jump the marking lies between its lower side and marking of all packets, and drops stay as
    they are there; those of a law that only drops jump up to its upper side. If senders ignore
    marks, or use a load factor too, the share is the Filippov weight: the share of the time with
    the signal of the upper side. At a full buffer losses rise up to all packets.
    """
    deaf = any(k in f.route and not f.feedback.marks for f in net.flows)
    mixes = bool(net.links[k].queue.written) or deaf
    mixes = mixes | ((least.mark == above.mark) & (least.drop != above.drop))
    mark = ops.where(over, least.mark, ops.where(mixes, above.mark, 1.0))
    drop = ops.where(over, 1.0, ops.where(mixes, above.drop, least.drop))
    others = (name for name in net.links[k].queue.written if name != "load")
    moved = {name: ops.where(over, getattr(least, name), getattr(above, name)) for name in others}
    most = least._replace(mark=mark, drop=drop, **moved)
    held = map_tree(lambda low, high: low + share * (high - low), least, most)
    return SteadySignal(held, ops.where(over, least.load, above.load), share)


def _steady_link(
    net: Network,
    k: int,
    backlogs: list,
    emitted: list[SteadySignal],
    start: int,
    *,
    highest: bool,
) -> tuple[Num, Num, SteadySignal, Num]:
    """Regime and backlog of link k at equilibrium, its signal, and a backlog from which it is
    overloaded again; the other links given.
    """
    link = net.links[k]
    passing = {i: None for i, flows in enumerate(net.flows) if k in flows.route}
    others = enumerate(steady_senders(net, backlogs, emitted, settled=passing))
    settled = {i: own for i, own in others if i not in passing}

    searched = net.closure == "mean"  # windows of populations are not searched for

    def excess(known: _Known, place: Num, backlog: Num, signal: SteadySignal) -> Num:
        others = _with(backlogs, k, backlog), _with(emitted, k, signal)
        near = known.around(place) if searched else None
        senders = steady_senders(net, *others, near=near, settled=settled, highest=highest)
        if searched:
            known.add(place, _windows(net, senders))
        return _excess(link, backlog, *(rates[k] for rates in arrivals(net, others[1], senders)))

    by_backlog, by_share = _Known(), _Known()

    def excess_at(backlog: Num) -> Num:
        signal = alone(steady_signal(link, backlog, start))
        return excess(by_backlog, backlog, backlog, signal) - none(backlog)

    def none(backlog: Num) -> Num:
        return NEAR_EMPTY * offered_rate(link, backlog)

    # Where the excess of arrivals over capacity changes sign: at a root, or across a jump.
    top = ops.minimum(link.buffer, _LONGEST_QUEUE)
    small, zero, rounding = (v * link.capacity for v in (_SMALL, 0.0, _ROUNDING))
    each = np.ndim(zero) * (1,)  # of the networks
    idle = np.array([*np.linspace(-1.0, 0.0, 9)[:-1], -NEAR_EMPTY]).reshape((-1, *each))
    busy = np.linspace(0, 1, 33).reshape((-1, *each)) ** 4
    tried = ops.concatenate([idle + zero, top * busy + zero])
    distances = functools.partial(jump_distances, link, start=start)
    found = first_crossing(excess_at, tried, distances, _FINEST, rounding)
    over_there, first, below, above, at_below, at_above = found
    over_there = over_there > 0
    over = over_there.all(axis=0)
    again = ~over & over_there & (np.arange(len(tried)).reshape((-1, *each)) > first)
    escape = ops.where(again, tried, np.inf).min(axis=0)
    jumps = ~over & ((at_below > small) | (at_above < -small))
    # Both sides of a jump, apart enough that rounding does not merge their load factors.
    backlog = ops.where(over, top, above)
    near = jumps & (abs(backlog) < NEAR_EMPTY)
    backlog = ops.where(near, zero, backlog)
    apart = _APART if link.queue.written else 0.0
    lower = ops.where(jumps, below - apart * (1 + abs(below)), backlog)
    upper = above + apart * (1 + abs(above))
    least = steady_signal(link, lower, start)
    code = ops.where(backlog < 0, Regime.EMPTY, Regime.INTERIOR)
    if not ops.traced(jumps) and not np.any(jumps | over):
        return code, backlog, alone(least), escape
    beyond = steady_signal(link, upper, start)

    def holding(share: Num) -> SteadySignal:
        held = between(net, k, least, beyond, over, share)
        if not link.queue.loads:
            return held
        lost = held.signal.drop  # a load factor includes lost packets
        low, high = (steady_signal(link, side, start, lost) for side in (lower, upper))
        return between(net, k, low, high, over, share)

    def left(share: Num) -> Num:
        return excess(by_share, share, backlog, holding(share))

    # The share of the upper side at which arrivals balance (Filippov), and what holds if none does.
    shares = np.linspace(0.0, 1.0, 2 if ops.traced(zero) else 17).reshape((-1, *each)) ** 4 + zero
    shares = ops.where(jumps | over, shares, 0.0)  # no search for links at a root
    held = first_crossing(left, shares, rounding=rounding)
    at_end = held.values[-1]
    enough = at_end <= none(backlog)  # as for a root: all of the upper side balances
    share = ops.where(enough & (held.at_above > 0), 1.0, held.below)
    neutral = (abs(held.at_below) > small) & link.queue.loads
    found = holding(share)
    spills = enough & ~neutral & (top < _LONGEST_QUEUE) & (found.signal.mark < 1)
    at_jump = ops.where(neutral, Regime.NEUTRAL, Regime.JUMP)
    code = ops.where(jumps, ops.where(enough, at_jump, Regime.NONE), code)
    code = ops.where(over, ops.where(spills, Regime.FULL, Regime.NONE), code)
    return code, backlog, _choose(jumps | over, found, alone(least)), escape


@np.errstate(all="ignore")
def _approach(
    net: Network, codes: list, backlogs: list, emitted: list[SteadySignal], start: int
) -> tuple[list, list[SteadySignal]]:
    """Backlogs and signals nearer to balance, in NumPy: links at a root all at once, by steps of
    Newton's method as long as these lead nearer.
    """
    roots = (Regime.INTERIOR, Regime.EMPTY)
    free = [k for k, z in enumerate(backlogs) if codes[k] in roots and abs(z) > NEAR_EMPTY]
    if len(free) < 2:
        return backlogs, emitted

    def signals(own: list) -> list[SteadySignal]:
        return [
            alone(steady_signal(link, own[k], start)) if k in free else emitted[k]
            for k, link in enumerate(net.links)
        ]

    def spread(points: Num) -> list:
        own = [z + np.zeros((len(points), 1)) for z in backlogs]
        for k, column in zip(free, points.T, strict=True):
            own[k] = column[:, None]
        return own

    def excess(points: Num) -> Num:
        own = spread(points)
        seen = signals(own)
        rates = zip(*arrivals(net, seen, steady_senders(net, own, seen)), strict=True)
        parts = zip(net.links, own, rates, strict=True)
        each = [_excess(link, z, *pair) / link.capacity for link, z, pair in parts]
        return np.concatenate([each[k] for k in free], axis=1)

    x = best = np.array([backlogs[k] for k in free])
    nearest = math.inf
    for _ in range(_MOST_STEPS):
        size = 1 + abs(x)
        here, *beside = excess(x + _ASIDE * np.diag([0.0, *size])[:, 1:])
        if not (np.max(abs(here)) < nearest and np.all(np.isfinite(beside))):
            break
        nearest, best = np.max(abs(here)), x
        step, _, rank, _ = np.linalg.lstsq((np.array(beside) - here).T / _ASIDE, here, _SINGULAR)
        if rank < len(free):  # queues of which one may stand for another
            return backlogs, emitted
        x = np.maximum(x - step * size, -1.0)
    own = [z[0, 0] for z in spread(best[None])]
    return own, signals(own)


def _of_populations(net: Network, *_: Any) -> bool:
    """Whether senders are populations on a grid, which compile their parts: a search for many
    numbers at a time needs them less often than a compiled one.
    """
    return net.closure == "population" and not all(flows.window.states for flows in net.flows)


def find_operating_point(
    net: Network, first: Num, start: int = 0, *, highest: bool = False
) -> OperatingPoint:
    """OperatingPoint of a network whose leaves are all arrays, from backlogs `first` (links,).

    `start` numbers the memory that queue laws with several start from; `highest` takes the largest
    of windows that neither grow nor fall. Groups of flows that differ
    in their numbers and delays alone are found as the classes of one group.
    """
    alike: dict[Any, list[int]] = {}
    apart = len(net.flows) == 1 or net.closure != "mean" or ops.traced(*leaves(net))
    for i, flows in enumerate(net.flows):
        rules = vars(flows) | dict.fromkeys(_OF_CLASSES)
        same = i if apart else skeleton([*rules.values()], lambda v: np.asarray(v).tobytes())
        alike.setdefault(same, []).append(i)
    if len(alike) == len(net.flows):
        return _find(net, first, start, highest)
    merged, places = [], {}
    for j, own in enumerate(alike.values()):
        n, rtt = ([getattr(net.flows[i], name) for i in own] for name in ("n", "rtt"))
        ends = itertools.pairwise(itertools.accumulate(map(len, rtt), initial=0))
        places |= {i: (j, slice(*pair)) for i, pair in zip(own, ends, strict=True)}
        group = net.flows[own[0]]
        merged.append(dataclasses.replace(group, n=np.concatenate(n), rtt=np.concatenate(rtt)))
    names = tuple(net.flow_names[own[0]] for own in alike.values())
    op = _find(
        dataclasses.replace(net, flows=tuple(merged), flow_names=names), first, start, highest
    )

    def split(values: tuple) -> tuple:
        pairs = [places[i] for i in range(len(net.flows))]
        parts = [(values[j], lambda v, own=own: v[own] if np.ndim(v) else v) for j, own in pairs]
        return tuple(map_tree(part, tree) for tree, part in parts)

    return op._replace(senders=split(op.senders), windows=split(op.windows), rates=split(op.rates))


@compiled(unless=_of_populations, static_argnames=("start", "highest"))
def _find(net: Network, first: Num, start: int, highest: bool) -> OperatingPoint:
    links = range(len(net.links))
    backlogs = [first[k] for k in links]
    emitted = [
        alone(steady_signal(link, z, start)) for link, z in zip(net.links, backlogs, strict=True)
    ]

    def turn(carry: tuple) -> tuple:
        count, _, codes, backlogs, emitted, escapes = carry
        before = flatten((backlogs, emitted))
        codes, backlogs, emitted, escapes = map(list, (codes, backlogs, emitted, escapes))
        for k in links:
            codes[k], backlogs[k], emitted[k], escapes[k] = _steady_link(
                net, k, backlogs, emitted, start, highest=highest
            )
        now = flatten((backlogs, emitted))
        moved = ops.greatest(abs(now - before) / (1 + abs(now)))
        if not ops.traced(moved) and moved > _COARSE:
            backlogs, emitted = _approach(net, codes, backlogs, emitted, start)
        return count + 1, moved, codes, backlogs, emitted, escapes

    def unrested(carry: tuple) -> Num:
        return (carry[0] < _ROUNDS) & (carry[1] > _RESTED)

    if len(backlogs) > 1:
        codes = [np.zeros((), int) for _ in links]
        carry = (0, 1.0, codes, backlogs, emitted, [0.0 for _ in links])
        moved, codes, backlogs, emitted, escapes = repeat(unrested, turn, carry)[1:]
    else:
        code, backlog, signal, escape = _steady_link(
            net, 0, backlogs, emitted, start, highest=highest
        )
        codes, backlogs, emitted, escapes, moved = [code], [backlog], [signal], [escape], 0.0
    senders = steady_senders(net, backlogs, emitted, highest=highest)
    offered, accepted = arrivals(net, emitted, senders)
    pairs = list(zip(net.links, backlogs, strict=True))
    lost = [1 - accepted[k] / ops.maximum(offered[k], _SMALL) for k in links]
    laws = [steady_memory(*pair, start, share) for pair, share in zip(pairs, lost, strict=True)]
    for k, link in enumerate(net.links):
        if link.queue.loads:  # what is lost arrives as well; whether anyone hears it, is checked
            load = signal_of(link, laws[k], backlogs[k], lost[k]).load
            loses = (backlogs[k] >= 0) & (lost[k] > NEAR_EMPTY)
            low, high = (
                ops.where(loses, load, v) for v in (emitted[k].signal.load, emitted[k].other)
            )
            emitted[k] = emitted[k]._replace(
                signal=emitted[k].signal._replace(load=low), other=high
            )
    emitted = [
        s._replace(signal=measured(link, queue_at(z), s.signal))
        for (link, z), s in zip(pairs, emitted, strict=True)
    ]
    return OperatingPoint(
        codes=ops.stack(codes),
        backlogs=ops.stack(backlogs),
        emitted=tuple(emitted),
        signals_below=tuple(
            steady_signal(link, ops.nextafter(z, -1.0), start) for link, z in pairs
        ),
        laws=tuple(laws),
        senders=tuple(s for s, _ in senders),
        windows=_windows(net, senders),
        rates=tuple(rate for _, rate in senders),
        accepted=ops.stack(accepted),
        lost=ops.stack(lost),
        escapes=ops.stack(escapes),
        moved=moved,
    )


def conditions(net: Network, op: OperatingPoint, flows: Flows) -> tuple[Signal, Num]:
    """The signal that a group of flows receives and its round trips [s], both (m,)."""
    rtt = round_trip(net, flows, tuple(op.queues))
    return per_flow(received(flows, tuple(op.signals[k] for k in flows.route)), rtt), rtt


def has_dead_zones(net: Network, op: OperatingPoint) -> Num:
    """Whether windows of a group just above those found neither grow nor fall either, so that many
    are at equilibrium; those of load factors are not meant, nor formulas of the loss rate.
    """
    found, emitted = np.False_, list(op.emitted)
    if net.closure == "population":
        return found
    for flows, s in zip(net.flows, op.senders, strict=True):
        if not flows.feedback.loads and flows.loss.window(0.0, 1.0) is None:
            rtt = round_trip(net, flows, tuple(op.queues))
            found = found | has_dead_zone(flows, _cases(net, flows, emitted, rtt), rtt, s)
    return found


def midway(one: OperatingPoint, other: OperatingPoint) -> OperatingPoint:
    """The point half-way between two of which all points in between are equilibria."""
    middle = map_tree(lambda a, b: 0.5 * (a + b), one, other)
    return middle._replace(codes=one.codes, moved=one.moved)


def grid_errors(net: Network, op: OperatingPoint) -> tuple[Num, ...]:
    """The errors that the grids of populations leave in mean flights, per group (m,)."""
    out = []
    for flows in net.flows:
        signal, rtt = conditions(net, op, flows)
        error = grid_error(flows, map_tree(ops.ravel, signal), ops.ravel(rtt))
        out.append(error.reshape(np.shape(rtt)))
    return tuple(out)


@compiled(unless=_of_populations, static_argnames="k")
def fill(net: Network, op: OperatingPoint, k: int) -> tuple[OperatingPoint, Num]:
    """Equilibrium of a link at whose backlog windows jump though its signal does not: any window is
    an equilibrium there, and those that fill the link are chosen; and the number of classes that
    jump. If several do, there are many equilibria, and one of them is returned.
    """
    backlogs, emitted = list(op.backlogs), list(op.emitted)
    sides = [_with(backlogs, k, neighbour(backlogs[k], side)) for side in (-1, 1)]
    low, high = (_windows(net, steady_senders(net, side, emitted)) for side in sides)
    ratios = (ops.maximum(a / b, b / a) for a, b in zip(low, high, strict=True))
    leaps = [ops.total(ratio > _WINDOW_JUMP) for ratio in ratios]

    def senders(share: Num) -> list[tuple[Any, Num]]:
        own = [b * (a / b) ** share for a, b in zip(low, high, strict=True)]
        return steady_senders(net, backlogs, emitted, own)

    def accepted(share: Num) -> list[Num]:
        return arrivals(net, emitted, senders(share))[1]

    capacity = net.links[k].capacity
    none = 0.0 * capacity
    share = bisect(lambda share: capacity - accepted(share)[k], none, 1.0 + none)[0]
    found = senders(share)
    filled = op._replace(
        codes=ops.where(np.arange(len(op.codes)) == k, Regime.INTERIOR, op.codes),
        senders=tuple(s for s, _ in found),
        windows=_windows(net, found),
        rates=tuple(rate for _, rate in found),
        accepted=ops.stack(accepted(share)),
    )
    return filled, sum(leaps)


def steady_state(net: Network, op: OperatingPoint) -> State:
    """The State of a network at equilibrium."""
    queues = tuple(op.queues[k] for k in range(len(net.links)))
    return State(op.senders, queues, op.laws)


def resolved(net: Network, op: OperatingPoint) -> tuple[OperatingPoint, tuple[Regime, ...]]:
    """The operating point with the memories that hold links at jumps, and each link's regime.

    A search ends with JUMP; here it stays, or becomes ADAPTED, LOADED, STEADY, END, INTERIOR or
    NEUTRAL.
    """
    laws, regimes = list(op.laws), [Regime(int(c)) for c in op.codes]
    for k, link in enumerate(net.links):
        if regimes[k] != Regime.JUMP:
            continue
        below, now = op.signals_below[k], op.emitted[k].signal
        fields = (*ALWAYS, *link.queue.written)
        moved = {k for k in fields if float(getattr(below, k)) != float(getattr(now, k))}
        if moved >= {*ALWAYS}:
            continue
        if moved <= {"load"}:
            if link.queue.loads:
                regimes[k] = Regime.LOADED
                continue
            filled, count = fill(net, op, k)
            if count:
                op, regimes[k] = filled, Regime.INTERIOR if count == 1 else Regime.NEUTRAL
        elif leaves(laws[k]):
            memory = memory_with_signal(link, op.backlogs[k], now, op.lost[k])
            if bool(memory.found):
                laws[k] = memory.memory
                jumping = Regime.ADAPTED if bool(memory.sliding) else Regime.END
                regimes[k] = Regime.STEADY if bool(memory.smooth) else jumping
    return op._replace(laws=tuple(laws)), tuple(regimes)
