"""Which arms of `where`, `minimum`, `maximum` and `clip` the rules of a law take at given states.

A rule is called once with numbers that hold all states and note, line by line, which side of each
choice they are on. The states are those of an equilibrium, or those that a packet run goes through.
"""

from __future__ import annotations

import ctypes
import itertools
import linecache
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fluidcc import dual, ops
from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.laws.law import (
    WRITTEN,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Law,
    combine,
    queueing_delay,
)
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine import records
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.packets.run import SLICE
from fluidcc.programs import leaves, map_tree
from fluidcc.scenario.network import Network

_SEED = 1
_MOST = 4000  # states of a packet run
_PASSED = (__file__, ops.__file__, dual.__file__, f"{Path(np.__file__).parent}")
_GAPS = 100  # packets since the last signal: 1 to this many, in turn
_LONGEST = 60  # letters of a choice that a message shows


class Arm(NamedTuple):
    """One side of a choice in the text of a rule."""

    line: int
    column: int
    choice: str
    side: str


def never_taken(arms: Iterable[Arm]) -> list[str]:
    """A line for each choice with arms that were never taken."""
    by_choice = itertools.groupby(sorted(arms), lambda arm: arm[:3])
    each = ((line, choice, [arm.side for arm in own]) for (line, _, choice), own in by_choice)
    return [
        f"line {line}, `{choice}`: "
        + (_EQUAL if {*sides} == {*_SIDES["minimum"]} else f"never {' or '.join(sides)}")
        for line, choice, sides in each
    ]


_EQUAL = "the first number and the second were always equal"
_SIDES = {
    "where": ("the condition true", "the condition false"),
    "maximum": ("the first number", "the second number"),
    "minimum": ("the first number", "the second number"),
}
_CLIPPED = {
    "maximum": ("above the lower limit", "below the lower limit"),
    "minimum": ("below the upper limit", "above the upper limit"),
}


class Arms:
    """Arms in the text of a law: those that are known, and those that were taken."""

    def __init__(self, law: type[Law]) -> None:
        classes = [c for c in law.__mro__ if c.__module__ == law.__module__]
        texts = (getattr(rule, "__code__", None) for c in classes for rule in vars(c).values())
        self._files = {code.co_filename for code in texts if code is not None}
        self.known: set[Arm] = set()
        self.taken: set[Arm] = set()

    def note(self, function: str, first: Any, second: Any) -> None:
        """Note a choice: whether any state is on its first side, and on its second."""
        frame, clipped = sys._getframe(2), False
        while frame is not None and frame.f_code.co_filename.startswith(_PASSED):
            clipped = clipped or frame.f_code is ops.clip.__code__
            frame = frame.f_back
        if frame is None or frame.f_code.co_filename not in self._files:
            return
        places = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
        line, end, column, last = (place or 0 for place in next(places))
        text = linecache.getlines(frame.f_code.co_filename)[line - 1 : end]
        text[-1:] = [part[:last] for part in text[-1:]]
        choice = " ".join("".join(text)[column:].split())
        choice = choice if len(choice) <= _LONGEST else f"{choice[:_LONGEST]}..."
        for side, taken in zip((_CLIPPED if clipped else _SIDES)[function], (first, second),
                               strict=True):  # fmt: skip
            arm = Arm(line, column, choice, side)
            self.known.add(arm)
            if np.any(taken):
                self.taken.add(arm)

    def watch(self, rule: Callable[..., Any], states: Sequence[Any], *event: Any) -> None:
        """Call a rule with states and records of events, numbers of one shape (rows,)."""
        watched = (map_tree(lambda v: _Watched(v, self), e) for e in event)
        with np.errstate(all="ignore"):
            rule([_Watched(v, self) for v in states], *watched)


class _Watched(NDArrayOperatorsMixin):
    """Numbers of shape (rows,) that note the choices made by them."""

    def __init__(self, values: Any, arms: Arms) -> None:
        self.values, self.arms = np.asarray(values), arms

    def __array_ufunc__(self, function: np.ufunc, method: str, *args: Any) -> Any:
        """The result of an operation."""
        if method != "__call__":
            return NotImplemented
        plain = [_plain(a) for a in args]
        if function in (np.maximum, np.minimum):
            above = plain[0] > plain[1], plain[0] < plain[1]
            self.arms.note(function.__name__, *(above if function is np.maximum else above[::-1]))
        return _Watched(function(*plain), self.arms)

    def __array_function__(self, function: Any, types: Any, args: tuple, named: dict) -> Any:
        """The result of `where`, which notes its condition."""
        if function is not np.where:
            return NotImplemented
        plain = [_plain(a) for a in args]
        if isinstance(args[0], _Watched):
            self.arms.note("where", plain[0], np.logical_not(plain[0]))
        return _Watched(np.where(*plain), self.arms)


def _plain(a: Any) -> Any:
    return a.values if isinstance(a, _Watched) else a


class _Met(NamedTuple):
    """States of one law (numbers, rows), and the event that it meets with them."""

    law: Any
    states: list[Any]
    event: Ack | Arrival


def watch_equilibrium(arms: Arms, law: type[Law], eq: Equilibrium) -> None:
    """Note the arms that the rules of a law take at an equilibrium."""
    _watch(arms, _at_rest(law, eq))


def watch_packets(arms: Arms, law: type[Law], net: Network, until: float) -> None:
    """Note the arms that the rules of a law take at the states of a packet run of `until` s."""
    _watch(arms, _in_packets(law, net, until))


def _watch(arms: Arms, all_met: Iterator[_Met]) -> None:
    for law, states, event in all_met:
        if isinstance(law, AbstractWindowLaw):
            rules = [law.on_ack, law.on_mark, law.on_loss, law.observe, law.on_tick]
            arms.watch(lambda s, law=law: law.slow_start(law.state_of(*s)), states)
            arms.watch(lambda _, ack, law=law: law.period(ack), states, event)
        else:
            rules = [law.move_memory, law.on_signal, law.on_tick, law.signal]
            gaps = 1.0 + np.arange(np.size(event.count)) % _GAPS
            rule = law.gap_probability
            arms.watch(lambda s, *e, f=rule, law=law: f(law.state_of(*s), *e), states, event, gaps)
        for rule in rules:
            arms.watch(lambda s, e, f=rule, law=law: f(law.state_of(*s), e), states, event)


def _at_rest(law: type[Law], eq: Equilibrium) -> Iterator[_Met]:
    net, op = eq.net, eq.op
    for k, link in enumerate(net.links):
        if type(link.queue) is law:
            capacity, queue = float(link.capacity), float(op.queues[k])
            one = np.ones(1)
            event = _in_rows(link.arrival(1.0, 1 / capacity, queue), one)
            yield _Met(link.queue, [v * one for v in leaves(op.laws[k])], event)
    for i, (flows, group) in enumerate(zip(net.flows, eq.flows.values(), strict=False)):
        if type(flows.window) is law:
            met = combine(tuple(op.signals[k] for k in flows.route))
            numbers = {name: float(getattr(met, name)) for name in WRITTEN}
            states = [np.ravel(v + 0.0 * group.window) for v in leaves(op.senders[i].law)]
            yield _Met(
                flows.window, states, _ack(group.window, group.rtt, group.queueing_delay, numbers)
            )


def _in_rows(event: Arrival, one: np.ndarray) -> Arrival:
    return map_tree(lambda v: v * one, event)._replace(random=_spread(one))


def _spread(like: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1), all alike: multiples of the golden section."""
    return (np.arange(like.size) * (math.sqrt(5) - 1) / 2 % 1).reshape(like.shape)


def _ack(window: Any, rtt: Any, delay: Any, written: dict[str, Any]) -> Ack:
    ones = np.ones_like(window)
    times = rtt / window, rtt * ones
    return Ack(
        ones, *times, marked=0.0 * ones, delay=delay * ones, random=_spread(ones),
        **{name: value * ones for name, value in written.items()},
    )  # fmt: skip


def _in_packets(law: type[Law], net: Network, until: float) -> Iterator[_Met]:
    simulation = Simulation(plan(net), _SEED, elide=True)
    try:
        samples = list(_sample(simulation, until))
    finally:
        simulation.close()
    queues, memories, senders = (list(each) for each in zip(*samples, strict=True))
    counts = np.array(queues)  # (times, ports)
    for k, link in enumerate(net.links):
        own = simulation.queue_laws[k]
        if type(link.queue) is law:
            capacity, queue = float(link.capacity), counts[:, k]
            one = np.ones_like(queue)
            event = _in_rows(link.arrival(1.0, 1 / capacity, queue), one)
            yield _Met(own, list(np.array([m[k] for m in memories]).T), event)
    capacities = np.array([float(link.capacity) for link in net.links])
    waits = queueing_delay(counts[:, : len(net.links)], capacities)
    for g, flows in enumerate(net.flows):
        if type(flows.window) is law:
            own = simulation.plan.groups[g].flows.window
            members = np.concatenate(simulation.plan.members(g))
            numbers = np.array([s[members] for s in senders])  # (times, flows, numbers)
            delay = waits[:, list(flows.route)].sum(axis=1)[:, None] + 0.0 * numbers[..., 0]
            rtt, *others = np.moveaxis(numbers, -1, 0)
            states = others[len(WRITTEN) :]
            found = {name: np.ravel(v) for name, v in zip(WRITTEN, others, strict=False)}
            event = _ack(np.ravel(states[0]), np.ravel(rtt + delay), np.ravel(delay), found)
            yield _Met(own, [np.ravel(v) for v in states], event)


def _sample(simulation: Simulation, until: float) -> Iterator[tuple]:
    """Queues (ports,) of a run, memories of the queue laws, and of the senders (flows, numbers):
    propagation, numbers from packets, window and memory.
    """
    advance, _ = entry_points()
    flows = simulation.flows
    groups = simulation.groups[flows["group"]]
    sizes = [int(n) for n in groups["states"] + groups["written"]]
    memory = [(ctypes.c_double * n).from_address(int(a)) if n else ()
              for n, a in zip(sizes, flows["memory"], strict=True)]  # fmt: skip
    states, first = groups["states"], 2 + len(WRITTEN)
    widest = max(states, default=0)
    for time in np.linspace(0.0, until, _MOST, endpoint=False):
        while advance(simulation.address, float(time), SLICE) == records.MORE:
            pass
        own = np.zeros((len(flows), first + widest))
        own[:, 0], own[:, first - 1] = flows["propagation"], np.maximum(flows["window"], 1.0)
        for row, count, numbers in zip(own, states, memory, strict=True):
            row[first : first + count] = numbers[:count]
            row[1 : 1 + len(numbers) - count] = numbers[count:]
        queues = simulation.ports["count"].astype(float)
        yield queues, [np.array(s) for s in simulation.law_states], own
