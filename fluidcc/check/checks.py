"""The checks of rules, each of which judges all rules of a law that it applies to."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from fluidcc.check import judges, means
from fluidcc.check.cases import Case, asked_cases, told_apart
from fluidcc.check.conduct import decides_in_python, returns_what_it_should, usual_numbers
from fluidcc.check.draws import draws
from fluidcc.check.judges import Why
from fluidcc.laws import symbolic
from fluidcc.laws.law import (
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Arrival,
)
from fluidcc.laws.parameters import infos
from fluidcc.laws.registry import LAWS
from fluidcc.laws.window.reno import Reno

SEED = 2026
"""Of the numbers that rules are tried with."""

KEEPERS = ("on_tick", "observe", "on_mark", "on_loss")
"""Rules that may not take a probability or a share of a state out of [0, 1]."""

_DRAWS = 25


class Subject:
    """A law under examination, and what earlier checks have found of its rules."""

    def __init__(self, law: Any) -> None:
        self.law, self.default = law, law()
        self.asked = list(asked_cases(law))
        self.faulty: set[str] = set()  # methods that no engine can work with

    @property
    def callable(self) -> list[Case]:
        """Rules that gave no cause for complaint so far."""
        return [case for case in self.asked if case.method not in self.faulty]

    def cases(self, *methods: str) -> list[Case]:
        """Sound rules by which something happens: all, or those of these names."""
        found = [case for case in self.callable if not methods or case.method in methods]
        return list(told_apart(iter(found)))


Answer = tuple[Iterable[Why] | None, str]
"""What is wrong, one text for each fault, and a word on what was judged; None: nothing to judge."""


def _once(subject: Subject, judge: Callable[[Case], Why]) -> Iterator[str]:
    """Faults of a judge who looks at each method once, and remembers it."""
    for case in subject.asked:
        if case.method not in subject.faulty and (why := judge(case)):
            subject.faulty.add(case.method)
            yield why


def results(subject: Subject) -> Answer:
    """Rules return what they should, the same each time, and touch nothing."""
    told = "rules return changes of the state, the same each time, and touch nothing else"
    return list(_once(subject, returns_what_it_should)), told


def branches(subject: Subject) -> Answer:
    """No rule decides in Python on a number."""
    if not subject.callable:
        return None, "no rule can be called"
    found = list(_once(subject, decides_in_python))
    return found, "no rule decides in Python on a number"


def _tried(cases: list[Case], judge: Callable[[Case, list[float]], Why]) -> Answer:
    """The first fault of each method at numbers drawn from the ranges."""
    if not cases:
        return None, "no rule of the law is concerned, or it failed above"
    faults: dict[str, str] = {}
    for case in cases:
        for numbers in draws(case, _DRAWS, SEED) if case.method not in faults else ():
            if why := judge(case, numbers):
                faults[case.method] = why
                break
    rules = ", ".join(dict.fromkeys(case.method for case in cases))
    return list(faults.values()), f"{rules}; {_DRAWS} draws each from seed {SEED}"


def engines(subject: Subject) -> Answer:
    """JAX, SymPy, numba and plain Python agree."""
    return _tried(subject.cases(), judges.engines_agree)


def derivatives(subject: Subject) -> Answer:
    """Slopes by JAX and SymPy agree and are finite, also at corners."""
    return _tried(subject.cases(), judges.derivatives_agree)


def batches(subject: Subject) -> Answer:
    """Rules compile, batch, and have finite slopes also where a signal is 0 or 1."""
    if not subject.cases():
        return None, "no rule is left"
    return [batch(case) for case in subject.cases()], "jit and vmap give the law's own numbers"


def batch(case: Case) -> Why:
    """One rule compiled and batched gives its own numbers, with finite slopes."""
    rows = [usual_numbers(case, p) for p in (0.0, 1e-9, 0.3, 1.0)]
    slopes, batched = case.batched(np.array(rows))
    for row, slope, result in zip(rows, slopes, batched, strict=True):
        if not np.isfinite(slope).all():
            return f"{case} at {judges.told(case, row)}: a slope is not finite"
        own = np.array([float(r) for r in case(*row)])
        if not (np.abs(result - own) <= 1e-13 * np.abs(own) + 1e-15).all():
            return f"{case} at {judges.told(case, row)}: {result} in a batch, {own} alone"
    return None


def still(subject: Subject) -> Answer:
    """Nothing changes without packets and time."""
    return _tried(subject.cases(*judges.REGULAR), judges.still_without_events)


def parts(subject: Subject) -> Answer:
    """Arrivals in parts change a memory as all at once."""
    rng = np.random.default_rng(SEED)

    def judge(case: Case, numbers: list[float]) -> Why:
        first = (float(rng.uniform(0, 50)), float(rng.uniform(0, 1)))
        return judges.adds_up(case, numbers, first, (rng.uniform(0, 50), rng.uniform(0, 1)))

    return _tried(subject.cases("on_arrival"), judge)


def direction(subject: Subject) -> Answer:
    """Marks and losses do not raise the window."""
    if not issubclass(subject.law, AbstractWindowLaw):
        return None, "it is no window law"
    return _tried(subject.cases("on_mark", "on_loss"), judges.never_raises_the_window)


def probabilities(subject: Subject) -> Answer:
    """What is a probability lies in [0, 1], and stays there."""
    said = subject.cases(*judges.PROBABILITIES)
    kept = [
        case for case in subject.cases(*KEEPERS)
        if any(s.name in judges.SHARES for s in case.asked.state)
    ]  # fmt: skip

    def judge(case: Case, numbers: list[float]) -> Why:
        if case.method in KEEPERS:
            return judges.keeps_shares(case, numbers)
        if case.method == "shares" and numbers[1] < 1:  # a block has at least one ACK
            return None
        return judges.in_unit_interval(case, numbers)

    return _tried([*said, *kept], judge)


def declarations(subject: Subject) -> Answer:
    """What a law says of itself in class variables is so."""
    if not issubclass(subject.law, AbstractQueueLaw):
        return None, "it is no queue law"
    if subject.faulty:
        return None, "a rule failed above"
    told = "period, held, loads, symbols and kinks are as the rules are"
    return list(declared(subject.default)), told


def declared(law: Any) -> Iterator[str]:
    """Faults of what a queue law declares of its rules."""
    said, arrival = symbolic.rule(law, "signal"), symbolic.rule(law, "on_arrival")
    told = set().union(*(r.free_symbols for r in said.results))
    still = {s for s, change in zip(arrival.state, arrival.results, strict=True) if change.is_zero}
    held = bool(told) and told <= still | set(said.parameters) and law.period is not None
    if law.held != held:
        why = "ticks alone change the signal" if held else "the signal changes between ticks"
        yield f"held = {law.held}, but {why}: write `held = {held}`"
    if law.loads == said.results[-1].is_zero:
        yield f"loads = {law.loads}, but signal() has the load {said.results[-1]}"
    moved = symbolic.rule(law, "on_tick").results
    if (law.period is None) != all(r.is_zero for r in moved):
        why = "on_tick changes something" if law.period is None else "on_tick changes nothing"
        yield f"period = {law.period!r}, but {why}"
    if law.period is not None and getattr(infos(law).get(law.period), "unit", "") != "s":
        yield f"period = {law.period!r}, but there is no parameter of this name in s"
    if len(law.symbols) < len(said.state):
        yield f"symbols has {len(law.symbols)} names for {len(said.state)} numbers of the memory"
    yield from corners(law)


def corners(law: Any) -> Iterator[str]:
    """Bends of the marking probability, where queue and average are one, that `kinks` lacks."""

    @jax.jit
    @jax.vmap
    @jax.grad
    def slope(v: Any) -> Any:
        return law.signal(law.start(v), Arrival(1.0, 0.0, v, 1000.0)).mark + 0.0 * v

    grid = np.arange(0.5, 200.0)  # between the integers where corners are, as a rule
    signs = [np.sign(law.kinks(law.start(v), v)) for v in grid]
    corner = np.array([bool(np.any(a != b)) for a, b in zip(signs[1:], signs[:-1], strict=True)])
    slopes = np.asarray(slope(grid))
    bends = np.abs(np.diff(slopes)) > 0.5 * np.abs(slopes).max()
    for k in (bends & ~corner).nonzero()[0][:3]:
        yield (
            f"the marking bends between queues of {grid[k]:g} and {grid[k + 1]:g} packets, which "
            "kinks() does not tell: return numbers whose signs change there"
        )
    if not corner.any():
        return
    at = np.resize(grid[:-1][corner] + 0.5, grid.shape)  # of one shape: one compilation
    left, here, right = (np.asarray(slope(at + d)) for d in (-1e-9, 0.0, 1e-9))
    low, high = np.minimum(left, right) - 1e-12, np.maximum(left, right) + 1e-12
    for k in ((here < low) | (here > high)).nonzero()[0][:1]:
        yield f"the slope of the marking at the corner {at[k]:g} is not between those beside it"


def ranges(subject: Subject) -> Answer:
    """A parameter out of its range is refused, with its name."""
    law = subject.law
    described = {name: i.within for name, i in infos(law).items() if i.within is not None}
    faults: list[Why] = []
    for name, within in described.items():
        for end, side in zip(within.ends, (-1, 1), strict=True):
            beyond = [math.nextafter(end, side * math.inf)] if math.isfinite(end) else []
            for bad in [*beyond, math.nan] + ([] if end in within else [end]):
                faults.append(_accepts(law, name, bad, within))
    return [f for f in faults if f][:3], f"{', '.join(described)}: refused out of range"


def _accepts(law: Any, name: str, bad: float, within: Any) -> Why:
    with contextlib.suppress(ValueError):
        law(**{name: bad})
        return f"{name} = {bad!r} is accepted, out of {within}"
    return None


def symbols(subject: Subject) -> Answer:
    """No two numbers of a rule have one symbol."""
    faults = []
    for case in subject.asked:
        names = [s.name for s in case.symbols]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            faults.append(f"{case}: {', '.join(twice)} stands for two numbers: another symbol")
    return faults[:1], "every number of a rule has a symbol of its own"


def latex(subject: Subject) -> Answer:
    """The equations are LaTeX that renders."""
    from latex2mathml.converter import convert

    if subject.faulty:
        return None, "a rule failed above"
    lines = [line for told in symbolic.equations([subject.default]).values() for line in told]
    lines += [info.symbol for info in infos(subject.law).values() if info.symbol]
    faults = []
    for line in lines:
        try:
            convert(line)
        except Exception as error:
            faults.append(f"`{line}` is no LaTeX: {type(error).__name__} {error}")
    return faults, f"{len(lines)} equations and symbols"


def packets_mean(subject: Subject) -> Answer:
    """The mean of many packets is the fluid's drift, within its interval."""
    law = subject.law
    if subject.faulty:
        return None, "a rule failed above"
    if issubclass(law, AbstractWindowLaw | AbstractReaction):
        return list(_sender_means(subject.default)), f"4000 blocks of ACKs, seed {means.SEED}"
    if issubclass(law, AbstractQueueLaw):
        made = subject.default
        faults = [means.memory_follows_its_drift(made)]
        for queue in (5.0, 30.0, 60.0, 120.0):
            seen = Arrival(1.0, 0.001, queue, 1250.0)
            faults += [means.chances_meet_the_rate(made, x, seen) for x in made.starts(queue)]
        return faults, "64 packets at a constant queue, and chances of a signal beside its rate"
    return None, "nothing is drawn at random in its rules, or the packets below show their means"


def _sender_means(law: Any) -> Iterator[Why]:
    """Means of a window law under its own reaction, or of a reaction under TCP."""
    window, reaction = Reno(), law
    if isinstance(law, AbstractWindowLaw):
        known: Any = LAWS["reaction"]
        window, reaction = law, known[law.reaction]()
    for p, w in means.POINTS:
        counts = means.counts_per_block(reaction, p, w)
        yield means.shares_are_means(reaction, p, w, counts)
        yield means.drift_is_mean(window, reaction, p, w, counts)
