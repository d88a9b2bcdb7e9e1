"""The checks of the rules of one law: each takes all rules that it applies to."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fluidcc.arrays import jax
from fluidcc.check import assertions, means
from fluidcc.check.assertions import Why
from fluidcc.check.cases import DRAWS, SEED, Case, cases_of, distinct, falsify, numbers_of
from fluidcc.laws import symbolic
from fluidcc.laws.law import (
    CHANGES,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Arrival,
    Law,
    Signal,
    shared_symbols,
)
from fluidcc.laws.parameters import infos, numeric_parameters
from fluidcc.laws.registry import LAWS
from fluidcc.laws.trial import shrinks, undeclared
from fluidcc.laws.window.reno import Reno

Answer = tuple[Sequence[Why] | str | None, str]
"""Faults, one text each, or another verdict (None: nothing to check), and a summary."""

_FAILED = "a rule failed above"


class Subject:
    """A law under examination, and its methods that no engine can call."""

    def __init__(self, law: Any) -> None:
        self.law, self.default = law, law()
        self.asked = list(cases_of(law))
        self.faulty: set[str] = set()

    @property
    def callable(self) -> list[Case]:
        """Rules without a fault so far."""
        return [case for case in self.asked if case.method not in self.faulty]

    def cases(self, *methods: str) -> list[Case]:
        """Sound rules by which something happens: all, or those of these names."""
        chosen = (case for case in self.callable if not methods or case.method in methods)
        return list(distinct(chosen))

    def judge_methods(self, why: Callable[[Case], Why]) -> list[Why]:
        """Faults of methods, each looked at until one is found, and left out from then on."""
        faults: list[Why] = []
        for case in self.asked:
            if case.method not in self.faulty and (fault := why(case)):
                self.faulty.add(case.method)
                faults.append(fault)
        return faults


def in_parts(case: Case) -> st.SearchStrategy[Any]:
    """Numbers of a case, and twice a count of packets and the time [s] that they take: they come
    evenly, as each law may take them.
    """

    def both(drawn: tuple[Any, float, float, float]) -> tuple:
        numbers, n, e, share = drawn
        return numbers, (n, e), (share * n, share * e)

    ranges = st.floats(0.0, 50.0), st.floats(0.0, 1.0), st.floats(0.0, 2.0)
    return st.tuples(numbers_of(case), *ranges).map(both)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """An assertion at numbers drawn from the ranges: the simplest fault of each method.

    It applies to `methods` (default: all) of laws of the class `of`, if `applies` is true of the
    rule, and gets the numbers of the strategy `drawn`.
    """

    why: Callable[..., Why]
    methods: tuple[str, ...] = ()
    of: type[Law] = Law
    drawn: Callable[[Case], st.SearchStrategy[Any]] = numbers_of
    applies: Callable[[Case], bool] = lambda case: True

    def __call__(self, subject: Subject) -> Answer:
        """Faults of a law."""
        if not issubclass(subject.law, self.of):
            return None, "it is no window law"
        cases = filter(self.applies, subject.cases(*self.methods))
        faults: dict[str, Why] = {}
        for case in cases:
            if not faults.get(case.method):
                faults[case.method] = falsify(self.drawn(case), functools.partial(self.why, case))
        if not faults:
            return None, "no rule of the law is concerned, or it failed above"
        return list(faults.values()), f"{', '.join(faults)}; {DRAWS} draws each from seed {SEED}"


def ranges(subject: Subject) -> Answer:
    """A parameter out of its range is refused, with its name."""
    law, faults, described = subject.law, [], numeric_parameters(subject.law)
    for name, info in described.items():
        within: Any = info.within
        bad = [math.nan, *(end for end in within.ends if end not in within)]
        for end, side in zip(within.ends, (-1, 1), strict=True):
            bad += [math.nextafter(end, side * math.inf)] if math.isfinite(end) else []
        for value in bad:
            with contextlib.suppress(ValueError):
                law(**{name: value})
                faults.append(f"{name} = {value!r} is accepted, out of {within}")
    return faults[:3], f"{', '.join(described)}: refused out of range"


def symbols(subject: Subject) -> Answer:
    """No two numbers of a rule have one symbol."""
    faults = [
        f"{case}: {shared}"
        for case in subject.asked for shared in shared_symbols(case.law, case.method)
    ]  # fmt: skip
    return faults[:1], "every number of a rule has a symbol of its own"


def results(subject: Subject) -> Answer:
    """Rules return what they should, the same each time, and touch nothing."""
    summary = "rules return changes of the state, the same each time, and touch nothing else"
    return subject.judge_methods(assertions.returns_what_it_should), summary


def branches(subject: Subject) -> Answer:
    """No rule decides in Python on a number."""
    if not subject.callable:
        return None, "no rule can be called"
    faults = subject.judge_methods(assertions.decides_by_ops)
    return faults, "no rule decides in Python on a number"


def batches(subject: Subject) -> Answer:
    """Rules compile, batch, and have finite slopes also at signals of 0 or 1."""
    cases = subject.cases()
    if not cases:
        return None, "no rule is left"
    return [assertions.batches(case) for case in cases], "jit and vmap give the law's own numbers"


def declarations(subject: Subject) -> Answer:
    """Class variables of a law agree with its rules."""
    if not issubclass(subject.law, AbstractQueueLaw | AbstractWindowLaw):
        return None, "it is no window law and no queue law"
    if subject.faulty:
        return None, _FAILED
    faults = [str(f) for f in (undeclared(subject.default, m) for m in (*CHANGES, "pacing")) if f]
    if issubclass(subject.law, AbstractWindowLaw):
        return faults, f"`reads` and `draws` agree with the rules{_slow(subject.default)}"
    summary = "`period`, `zero_order_hold`, `emits`, `draws` and `breakpoints` agree with the rules"
    return [*faults, *declared(subject.default)], summary


def _slow(law: Any) -> str:
    """Note on slow start for a window law that lowers windows without marks and does not say."""
    if type(law).slow_start is not AbstractWindowLaw.slow_start or not (where := shrinks(law)):
        return ""
    return (
        f"; note: on_ack lowers windows ({where}), but below the slow-start threshold, which marks "
        "and losses alone set, packets and trains grow by slow start and do not ask it: write "
        "`def slow_start(self, s): return 0` in the class if the law is to act from the start"
    )


def declared(law: Any) -> Iterator[str]:
    """Class variables of a queue law that disagree with its rules."""
    signal = symbolic.rule(law, "signal")
    read = set().union(*(r.free_symbols for r in signal.results))
    moves = [symbolic.rule(law, name).results for name in (law.packet_rule, "on_signal")]
    constant = {
        s for s, *changes in zip(signal.state, *moves, strict=True)
        if all(change.is_zero for change in changes)
    }  # fmt: skip
    is_held = bool(read) and read <= constant | set(signal.parameters) and law.period() is not None
    if law.zero_order_hold != is_held:
        why = "ticks alone change the signal" if is_held else "the signal changes between ticks"
        name = "zero_order_hold"
        yield f"{name} = {law.zero_order_hold}, but {why}: write `{name} = {is_held}`"
    for name, result in Signal(*signal.results)._asdict().items():
        if not result.is_zero and name not in law.emits:
            yield f"emits = {law.emits}, but signal() has the {name} {result}"
    moved = symbolic.rule(law, "on_tick").results
    between = law.period()
    if (between is None) != all(r.is_zero for r in moved):
        why = "on_tick changes something" if between is None else "on_tick changes nothing"
        yield f"period() is {between!r}, but {why}"
    yield from corners(law)


def corners(law: Any) -> Iterator[str]:
    """Corners of the marking probability, queue and average equal, that `breakpoints` lacks."""

    @jax.jit
    @jax.vmap
    @jax.grad
    def slope(v: Any) -> Any:
        return law.signal(law.start(v), Arrival(1.0, 0.0, v, 1000.0, buffer=200.0)).mark + 0.0 * v

    grid = np.arange(0.5, 200.0)  # between the integers where corners are, as a rule
    seen = [Arrival(1.0, 0.0, v, 1000.0, buffer=200.0) for v in grid]
    signs = [np.sign(law.breakpoints(law.start(v.queue), v)) for v in seen]
    corner = np.array([bool(np.any(a != b)) for a, b in zip(signs[1:], signs[:-1], strict=True)])
    slopes = np.asarray(slope(grid))
    bends = np.abs(np.diff(slopes)) > 0.5 * np.abs(slopes).max()
    for k in (bends & ~corner).nonzero()[0][:3]:
        yield (
            f"the marking bends between queues of {grid[k]:g} and {grid[k + 1]:g} packets, which "
            "breakpoints() lacks: return numbers whose signs change there"
        )
    if not corner.any():
        return
    at = np.resize(grid[:-1][corner] + 0.5, grid.shape)  # of one shape: one compilation
    left, middle, right = (np.asarray(slope(at + d)) for d in (-1e-9, 0.0, 1e-9))
    low, high = np.minimum(left, right) - 1e-12, np.maximum(left, right) + 1e-12
    for k in ((middle < low) | (middle > high)).nonzero()[0][:1]:
        yield f"the slope of the marking at the corner {at[k]:g} is not between those on both sides"


def packets_mean(subject: Subject) -> Answer:
    """The mean of many packets is the fluid's drift, within its interval."""
    law, made = subject.law, subject.default
    if subject.faulty:
        return None, _FAILED
    if issubclass(law, AbstractWindowLaw | AbstractReaction):
        # a window law under its own reaction, a reaction under TCP
        known: Any = LAWS["reaction"]
        by_window = issubclass(law, AbstractWindowLaw)
        window, reaction = (made, known[made.reaction]()) if by_window else (Reno(), made)
        faults = [*means.sender(window, reaction), *means.drawn(made)]
        return faults, f"4000 blocks of ACKs, seed {means.SEED}"
    if issubclass(law, AbstractQueueLaw):
        summary = "64 packets at a constant queue, and gap probabilities versus the rate of signals"
        return [*means.queue(made), *means.drawn(made)], summary
    return None, "nothing is drawn at random in its rules, or the packets below show their means"


def latex(subject: Subject) -> Answer:
    """The equations are LaTeX that renders."""
    from latex2mathml.converter import convert

    if subject.faulty:
        return None, _FAILED
    lines = [
        line for equations in symbolic.equations([subject.default]).values() for line in equations
    ]
    lines += [info.symbol for info in infos(subject.law).values() if info.symbol]
    faults = []
    for line in lines:
        try:
            convert(line)
        except Exception as error:
            faults.append(f"`{line}` is no LaTeX: {type(error).__name__} {error}")
    return faults, f"{len(lines)} equations and symbols"


RULES: dict[str, Callable[[Subject], Answer]] = {
    "ranges": ranges,
    "symbols": symbols,
    "results": results,
    "branches": branches,
    "engines": Drawn(assertions.engines_agree),
    "derivatives": Drawn(assertions.derivatives_agree),
    "batches": batches,
    "no event": Drawn(assertions.still_without_events, assertions.REGULAR),
    "parts": Drawn(assertions.adds_up, ("on_arrival",), drawn=in_parts),
    "direction": Drawn(
        assertions.never_raises_the_window, ("on_mark", "on_loss"), AbstractWindowLaw
    ),
    "probabilities": Drawn(
        assertions.is_probability,
        assertions.PROBABILITIES + assertions.KEEPERS,
        applies=assertions.has_probability,
    ),
    "declarations": declarations,
    "means": packets_mean,
    "latex": latex,
}
"""The checks of the rules of a law, in the order in which they are made."""
