"""Requirements on a rule: each assertion returns a description of the fault, or None.

The first ones call a rule at moderate numbers, the others at any that are given. They serve the
report on one law and the tests of all. Faults name lines of the user's own text.
"""

import functools
import inspect
import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidcc.arrays import jax, jnp
from fluidcc.check.cases import Case
from fluidcc.laws.law import (
    SIGNALS,
    AbstractRemembering,
    AbstractWindowLaw,
    Ack,
    Law,
)
from fluidcc.laws.parameters import parameter_values
from fluidcc.laws.trial import (
    BY_OPS,
    describe,
    hint_of_change,
    hint_of_decrease,
    line_of_error,
    line_of_rule,
    shape_fault,
)
from fluidcc.recording import NO_BRANCHES

Why = str | None
Numbers = list[float]

REGULAR = ("on_ack", "observe", "on_arrival", "on_departure")
"""Rules stated for a number of packets and the time that these take."""

PROBABILITIES = ("signal", "gap_probability", "shares", "ready", "growing", "rate", "probability")
"""Rules whose results are probabilities, or 1 and 0."""

KEEPERS = ("on_tick", "observe", "on_mark", "on_loss", "on_departure", "on_signal")
"""Rules that may not take a probability or a share of a state out of [0, 1]."""

_USUAL = {
    **{SIGNALS[name].symbol: SIGNALS[name].usual for name in Ack._fields if name in SIGNALS},
    "W": 8.0, "n": 1.0, "e": 0.0, "R": 0.1, "v": 30.0, "q": 40.0, "C": 1250.0, "s": 1.0,
    "j": 2.0, "x": 80.0, "B": 100.0, r"\xi": 0.7, r"\theta": 0.03, r"p_{\max}": 0.1,
}  # fmt: skip
_TIMES = 3  # that a rule is called with the same numbers
_PLAIN = (bool, int, float, str, list, dict, set, tuple, np.ndarray)
_BESIDE = 1e-12  # relative, to either side of a jump
_ENGINES = ("SymPy", "numba", "plain Python")


def usual_numbers(case: Case, p: float = 0.3) -> Numbers:
    """The law's own parameters, probability `p` and moderate numbers elsewhere."""
    event = [
        p if s.name in ("p", "l") else _USUAL.get(s.name, 0.0)
        for s in (*case.asked.state, *case.asked.event)
    ]
    return [*event, *(min(v, 1e6) for one in case.owners for v in parameter_values(one))]


def _at(case: Case, why: str, error: Exception | None = None) -> str:
    line = line_of_error(error) if error is not None else ""
    line = line or line_of_rule(case.law, case.method)
    return f"{case}{f' ({line})' if line else ''}: {why}"


# -- how a rule behaves -----------------------------------------------------------------------


def returns_what_it_should(case: Case) -> Why:
    """A rule returns numbers of the right shape, the same each time, and touches nothing."""
    try:
        numbers, before = usual_numbers(case), _globals_of(case.law)
        answers = [case.answer(*numbers) for _ in range(_TIMES)]
    except Exception as error:
        return _at(case, describe(error), error)
    if why := shape_fault(case.law, case.method, answers[0]):
        return _at(case, why)
    if any(answer != answers[0] for answer in answers[1:]):
        return _at(
            case,
            f"gives {answers[0]}, then {answers[1]} for the same numbers: a rule follows from its "
            "arguments alone; chance belongs to the engine: `random` of the event, for the rules "
            "named in `draws`",
        )
    changed = [name for name, text in _globals_of(case.law).items() if before.get(name) != text]
    if changed:
        return _at(case, f"changes {', '.join(changed)} outside of its state")
    if foreign := list(_foreign(case.law, case.method)):
        return _at(
            case,
            f"reads {', '.join(foreign)}, another law's object, whose parameters no scenario sets: "
            "make them parameters of this law",
        )
    return None


def _globals_of(law: Law) -> dict[str, str]:
    """Plain values in a law's module and classes, as text."""
    ours = ("fluidcc", "builtins", "abc", "typing")
    classes = (c for c in type(law).__mro__ if c.__module__.split(".")[0] not in ours)
    spaces: dict[str, Any] = {f"{c.__name__}.": vars(c) for c in classes}
    module = sys.modules.get(type(law).__module__)
    if module is not None and not module.__name__.startswith("fluidcc."):
        spaces[""] = vars(module)
    return {
        f"{prefix}{name}": repr(value)
        for prefix, space in spaces.items()
        for name, value in space.items()
        if isinstance(value, _PLAIN) and not name.startswith("_")
    }


def _foreign(law: Law, method: str) -> Iterator[str]:
    """Objects of other laws that a rule's text names."""
    function: Any = inspect.unwrap(getattr(type(law), method))
    if not hasattr(function, "__code__") or function.__module__.startswith("fluidcc."):
        return
    known = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    names = (*function.__code__.co_names, *function.__code__.co_freevars)
    yield from (name for name in names if isinstance(known.get(name), Law))


def decides_by_ops(case: Case) -> Why:
    """A rule decides in Python on no number that an engine traces, and computes with what every
    engine can trace.
    """
    branch = f"branches in Python on a traced number: {NO_BRANCHES}"
    try:
        jax.eval_shape(lambda x: [jnp.asarray(r) for r in case(*x)], np.ones(len(case.symbols)))
        case.rule  # noqa: B018
    except (jax.errors.TracerBoolConversionError, jax.errors.ConcretizationTypeError) as error:
        return _at(case, branch, error)
    except TypeError as error:
        if "truth value" in str(error):
            return _at(case, branch, error)
        why = (
            "computes with a function that takes floats alone "
            f"({str(error).splitlines()[0]}): take it from `ops` ({BY_OPS})"
        )
        return _at(case, why, error)
    except Exception as error:
        return _at(case, describe(error), error)
    return None


def batches(case: Case) -> Why:
    """A rule compiled and batched gives its own numbers to 1e-13, and finite slopes, also at
    signals of 0 or 1.
    """
    rows = [usual_numbers(case, p) for p in (0.0, 1e-9, 0.3, 1.0)]
    slopes, batched = map(np.asarray, case.batched(np.array(rows)))
    for row, slope, result in zip(rows, slopes, batched, strict=True):
        if not np.isfinite(slope).all():
            return f"{case} at {_numbers(case, row)}: a slope is not finite"
        alone = _floats(case(*row))
        if not (np.abs(result - alone) <= 1e-13 * np.abs(alone) + 1e-15).all():
            return f"{case} at {_numbers(case, row)}: {result} in a batch, {alone} alone"
    return None


# -- what a rule is at given numbers ----------------------------------------------------------


def _numbers(case: Case, numbers: Numbers) -> str:
    """The numbers that a rule's results depend on, as ``W = 8, b = 0.125``."""
    pairs = zip(case.symbols, numbers, strict=True)
    return ", ".join(f"{s.name} = {v:.6g}" for s, v in pairs if s in case.used) or "any numbers"


def _floats(results: tuple) -> np.ndarray:
    return np.array([float(r) for r in results])


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{v:.10g}" for v in np.atleast_1d(values))


def engines_agree(case: Case, numbers: Numbers) -> Why:
    """JAX, SymPy, numba and the law on plain floats give the same numbers, to 1e-12 of the terms
    that these come from: a difference of large terms has the rounding errors of the terms.
    """
    (by_jax, _), at = case.jax(numbers), f"{case} at {_numbers(case, numbers)}"
    if not np.isfinite(by_jax).all():
        return (
            f"{at} is {_list(by_jax)}, not finite: guard the "
            "arithmetic, or narrow the range of a parameter"
        )
    margin = 1e-12 * case.sizes(numbers)
    for name, engine in zip(_ENGINES, (case.sympy, case.numba, case), strict=True):
        try:
            result = _floats(engine(*numbers))
        except (ArithmeticError, ValueError) as error:
            return f"{at}: {name} fails ({error}), JAX gives {_list(by_jax)}"
        off = np.abs(result - by_jax)
        if not (off <= margin).all() and not _jumps(case, engine, numbers, by_jax):
            return f"{at}: {name} gives {_list(result)}, JAX {_list(by_jax)}"
    return None


def _jumps(case: Case, engine: Any, numbers: Numbers, other: np.ndarray) -> bool:
    """Whether the numbers are at a jump of the rule, by rounding on either side of it: what another
    engine gives there is what this one gives at numbers next to them.
    """

    def same(one: np.ndarray, two: np.ndarray) -> bool:
        return bool((np.abs(one - two) <= 1e-6 * (np.abs(one) + np.abs(two))).all())

    def at(numbers: Numbers) -> np.ndarray:
        try:
            return _floats(engine(*numbers))
        except (ArithmeticError, ValueError):  # beyond the range of a parameter
            return np.full_like(other, math.nan)

    if same(at(numbers), other):
        return False
    pairs = itertools.product(enumerate(numbers), (1 - _BESIDE, 1 + _BESIDE))
    besides = ([*numbers[:k], v * factor, *numbers[k + 1 :]] for (k, v), factor in pairs)
    return any(same(at(beside), other) for beside in besides)


def derivatives_agree(case: Case, numbers: Numbers) -> Why:
    """JAX and SymPy give the same slopes, to 1e-10; at a corner JAX lies between the slopes of both
    sides.
    """
    by_jax, at = case.jax(numbers)[1].ravel(), f"{case} at {_numbers(case, numbers)}"
    symbols = [s for _ in case.rule.results for s in case.symbols]
    if not np.isfinite(by_jax).all():
        lost = [symbols[k] for k in (~np.isfinite(by_jax)).nonzero()[0]]
        symbol = next((s for s in lost if s in case.used), lost[0])
        return (
            f"{at}: the slope in {symbol.name} is not finite, as of "
            "sqrt(x), log(x) or 1/x at x = 0; where() takes slopes of both branches: guard the "
            "argument, as in sqrt(maximum(x, 1e-12))"
        )
    try:
        by_sympy = np.array([case.sympy_slopes(tie, *numbers) for tie in (0.0, 0.5, 1.0)])
    except (ArithmeticError, ValueError, TypeError, NameError) as error:
        return f"{at}: no slope by SymPy ({error})"
    size = np.abs(by_sympy).max(initial=0.0 if isinstance(case.law, AbstractWindowLaw) else 1.0)
    terms = case.sizes(_with_event(case, numbers, n=1.0))  # of one packet; they may cancel
    margin = 1e-10 * (np.abs(by_sympy) + size) + 1e-12 * np.max(terms, initial=0.0)
    below = by_jax < (by_sympy - margin).min(axis=0)
    wrong = below | (by_jax > (by_sympy + margin).max(axis=0)) | ~np.isfinite(by_sympy).all(axis=0)
    slopes = functools.partial(case.sympy_slopes, 0.5)
    if not wrong.any() or _jumps(case, slopes, numbers, by_jax):
        return None
    k = int(np.argmax(wrong))
    return (
        f"{at}: the slope in {symbols[k].name} is "
        f"{by_jax[k] + 0.0:.10g} by JAX, {by_sympy[1, k]:.10g} by SymPy"
    )


def _with_event(case: Case, numbers: Numbers, **event: float) -> Numbers:
    """The numbers with some of the event replaced, by symbol."""
    return [event.get(s.name, v) for s, v in zip(case.symbols, numbers, strict=True)]


def still_without_events(case: Case, numbers: Numbers) -> Why:
    """Nothing changes without packets and time."""
    numbers = _with_event(case, numbers, n=0.0, e=0.0)
    changes = _floats(case(*numbers))
    if (changes == 0.0).all():
        return None
    event = "ack" if isinstance(case.law, AbstractWindowLaw) else "seen"
    size = len(case.asked.state)
    twice = [*(2 * v for v in numbers[:size]), *numbers[size:]]  # 1/W is W at W = 1
    hint = hint_of_change(
        event, is_new_state=all(_is_new_state(case, state) for state in (numbers, twice))
    )
    return f"{case} at {_numbers(case, numbers)}: {_list(changes)} without packets or time; {hint}"


def _is_new_state(case: Case, numbers: Numbers) -> bool:
    pairs = zip(_floats(case(*numbers)), numbers[: len(case.asked.state)], strict=True)
    return any(math.isclose(f, s, rel_tol=1e-9) and s != 0 for f, s in pairs)


def adds_up(case: Case, drawn: tuple[Numbers, tuple, tuple]) -> Why:
    """Some arrivals and then others change a memory as all of them at once, to 1e-12 of the terms.

    `drawn` has numbers of the case, and twice a count of packets and the time [s] they take.
    """
    numbers, (n, e), (m, f) = drawn
    size = len(case.asked.state)
    first = _floats(case(*_with_event(case, numbers, n=n, e=e)))
    between = [*(numbers[:size] + first), *numbers[size:]]
    second = _floats(case(*_with_event(case, between, n=m, e=f)))
    both = _floats(case(*_with_event(case, numbers, n=n + m, e=e + f)))
    margin = 1e-12 * (case.sizes(numbers) + np.abs(first) + np.abs(second))
    if (np.abs(first + second - both) < margin + 1e-300).all():
        return None
    return (
        f"{case} at {_numbers(case, numbers)}: {n:.6g} packets in {e:.6g} s and then {m:.6g} in "
        f"{f:.6g} s change the memory by {_list(first + second)}, all at once by {_list(both)}; "
        "state the rule for any count, as an average does by "
        "(1 - (1 - w) ** seen.count) * (queue - v)"
    )


def has_probability(case: Case) -> bool:
    """Whether a rule has a probability or a share, as its result or in its state."""
    return case.method in PROBABILITIES or (case.method in KEEPERS and any(_shares(case)))


def _shares(case: Case) -> list[bool]:
    """Which numbers of the state of a rule are probabilities or shares."""
    if not isinstance(case.law, AbstractRemembering):
        return []
    declared = [field.is_share for field in case.law.states.values()]
    return [False] * (len(case.asked.state) - len(declared)) + declared


def is_probability(case: Case, numbers: Numbers) -> Why:
    """Probabilities, flags (0 or 1) and shares lie in [0, 1]: results, or a state after one
    event.
    """
    if case.method in KEEPERS:
        return _keeps_shares(case, numbers)
    if case.method == "shares" and numbers[1] < 1:  # a block has at least one ACK
        return None
    results = _floats(case.sympy(*numbers))[:2]  # not the load factor of a signal
    if ((results >= 0) & (results <= 1 + 1e-12)).all():
        return None
    return f"{case} at {_numbers(case, numbers)} is {_list(results)}, no probability"


def _keeps_shares(case: Case, numbers: Numbers) -> Why:
    numbers = _with_event(case, numbers, n=1.0)
    changes = _floats(case(*numbers))
    for k, (symbol, share) in enumerate(zip(case.asked.state, _shares(case), strict=True)):
        after = numbers[k] + changes[k]
        if share and not -1e-15 <= after <= 1 + 1e-15:
            return (
                f"{case} at {_numbers(case, numbers)} takes {symbol.name} to {after:.6g}; a share "
                "stays in [0, 1]: ops.clip(new, 0.0, 1.0) - old"
            )
    return None


def never_raises_the_window(case: Case, numbers: Numbers) -> Why:
    """A mark or a loss does not raise the window."""
    change: Any = case.answer(*numbers)
    raised = float(case.law.window(change))
    if raised <= 0:
        return None
    size, record = len(case.asked.state), type(change)
    state = record(*numbers[:size]) if isinstance(change, tuple) else numbers[0]
    window = float(case.law.window(state))
    return (
        f"{case} at {_numbers(case, numbers)} raises the window by {raised:.6g}, "
        f"{hint_of_decrease(window, raised)}"
    )
