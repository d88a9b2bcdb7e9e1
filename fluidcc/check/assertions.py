"""What a rule must be at given numbers: each judge says what is wrong, or None.

They serve the report on one law and the tests of all, whatever draws the numbers.
"""

import math
from typing import Any

import numpy as np

from fluidcc.check.cases import Case
from fluidcc.laws.law import AbstractWindowLaw

Why = str | None
Numbers = list[float]

SHARES = ("p", r"p_{\max}", "c", r"\alpha", r"\sigma")
"""Symbols of the numbers of a state that are probabilities or shares."""

REGULAR = ("on_ack", "observe", "on_arrival")
"""Rules stated for a number of packets and the time that these take."""

PROBABILITIES = ("signal", "chance", "shares", "ready", "growing", "rate", "probability")
"""Rules whose results are probabilities, or 1 and 0."""

_ENGINES = ("SymPy", "numba", "plain Python")


def told(case: Case, numbers: Numbers) -> str:
    """The numbers that a rule's results depend on, as ``W = 8, b = 0.125``."""
    pairs = zip(case.symbols, numbers, strict=True)
    return ", ".join(f"{s.name} = {v:.6g}" for s, v in pairs if s in case.used) or "any numbers"


def _floats(results: tuple) -> np.ndarray:
    return np.array([float(r) for r in results])


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{v:.10g}" for v in np.atleast_1d(values))


def engines_agree(case: Case, numbers: Numbers) -> Why:
    """JAX, SymPy, numba and the law on plain floats give the same numbers."""
    by_jax, _ = case.jax(numbers)
    if not np.isfinite(by_jax).all():
        return (
            f"{case} at {told(case, numbers)} is {_list(by_jax)}, not finite: guard the "
            "arithmetic, or narrow the range of a parameter"
        )
    floor = 1e-12 * case.scale(numbers, by_jax)
    for name, engine in zip(_ENGINES, (case.sympy, case.numba, case), strict=True):
        try:
            other = _floats(engine(*numbers))
        except (ArithmeticError, ValueError) as error:
            return f"{case} at {told(case, numbers)}: {name} says {error}, JAX {_list(by_jax)}"
        if not (np.abs(other - by_jax) <= 1e-12 * np.abs(by_jax) + floor).all():
            return (
                f"{case} at {told(case, numbers)}: {name} gives {_list(other)}, JAX {_list(by_jax)}"
            )
    return None


def derivatives_agree(case: Case, numbers: Numbers) -> Why:
    """JAX and SymPy give the same slopes; at a corner JAX lies between the slopes of both sides."""
    by_jax = case.jax(numbers)[1].ravel()
    pairs = [(r, s) for r in range(len(case.rule.results)) for s in case.symbols]
    if not np.isfinite(by_jax).all():
        lost = [pairs[k][1] for k in (~np.isfinite(by_jax)).nonzero()[0]]
        symbol = next((s for s in lost if s in case.used), lost[0])
        return (
            f"{case} at {told(case, numbers)}: the slope in {symbol.name} is not finite, as of "
            "sqrt(x), log(x) or 1/x at x = 0; where() takes slopes of both branches: guard the "
            "argument, as in sqrt(maximum(x, 1e-12))"
        )
    try:
        by_sympy = np.array([case.sympy_slopes(tie, *numbers) for tie in (0.0, 0.5, 1.0)])
    except (ArithmeticError, ValueError, TypeError, NameError) as error:
        return f"{case} at {told(case, numbers)}: no slope by SymPy ({error})"
    size = max(case.scale(numbers, np.zeros(1)).max(), np.abs(by_sympy).max(initial=0.0))
    margin = 1e-10 * (np.abs(by_sympy) + size)
    below = by_jax < (by_sympy - margin).min(axis=0)
    wrong = below | (by_jax > (by_sympy + margin).max(axis=0)) | ~np.isfinite(by_sympy).all(axis=0)
    if not wrong.any():
        return None
    k = int(np.argmax(wrong))
    return (
        f"{case} at {told(case, numbers)}: the slope in {pairs[k][1].name} is "
        f"{by_jax[k] + 0.0:.10g} by JAX, {by_sympy[1, k]:.10g} by SymPy"
    )


def with_event(case: Case, numbers: Numbers, **event: float) -> Numbers:
    """The numbers with some of those that the event tells replaced, by symbol."""
    return [event.get(s.name, v) for s, v in zip(case.symbols, numbers, strict=True)]


def still_without_events(case: Case, numbers: Numbers) -> Why:
    """Nothing changes without packets and time."""
    numbers = with_event(case, numbers, n=0.0, e=0.0)
    found = _floats(case(*numbers))
    if (found == 0.0).all():
        return None
    state = numbers[: len(case.asked.state)]
    event = "ack" if isinstance(case.law, AbstractWindowLaw) else "seen"
    whole = any(math.isclose(f, s, rel_tol=1e-9) and s for f, s in zip(found, state, strict=True))
    hint = (
        "it seems to return the new state; a rule returns the change" if whole
        else f"a change per packet is `{event}.count * ...`, one over time `{event}.elapsed * ...`"
    )  # fmt: skip
    return f"{case} at {told(case, numbers)}: {_list(found)} without packets or time; {hint}"


def adds_up(case: Case, numbers: Numbers, first: tuple[float, float], then: tuple) -> Why:
    """Some arrivals and then others change a memory as all of them at once."""
    (n, e), (m, f), size = first, then, len(case.asked.state)
    one = _floats(case(*with_event(case, numbers, n=n, e=e)))
    between = [*(numbers[:size] + one), *numbers[size:]]
    two = _floats(case(*with_event(case, between, n=m, e=f)))
    both = _floats(case(*with_event(case, numbers, n=n + m, e=e + f)))
    scale = case.scale(numbers, both) + np.abs(one) + np.abs(two)
    if (np.abs(one + two - both) < 1e-12 * scale + 1e-300).all():
        return None
    return (
        f"{case} at {told(case, numbers)}: {n:.6g} packets in {e:.6g} s and then {m:.6g} in "
        f"{f:.6g} s change the memory by {_list(one + two)}, all at once by {_list(both)}; state "
        "the rule for any count, as an average does by (1 - (1 - w) ** seen.count) * (queue - v)"
    )


def keeps_shares(case: Case, numbers: Numbers) -> Why:
    """Probabilities and shares of a state stay such after one event."""
    numbers = with_event(case, numbers, n=1.0)
    changes = _floats(case(*numbers))
    for k, symbol in enumerate(case.asked.state):
        after = numbers[k] + changes[k]
        if symbol.name in SHARES and not -1e-15 <= after <= 1 + 1e-15:
            return (
                f"{case} at {told(case, numbers)} takes {symbol.name} to {after:.6g}; a share "
                "stays in [0, 1]: ops.clip(new, 0.0, 1.0) - old"
            )
    return None


def in_unit_interval(case: Case, numbers: Numbers) -> Why:
    """Probabilities, and answers yes or no, lie between 0 and 1."""
    results = _floats(case.sympy(*numbers))[:2]  # not the load factor of a signal
    if ((results >= 0) & (results <= 1 + 1e-12)).all():
        return None
    return f"{case} at {told(case, numbers)} is {_list(results)}, no probability"


def never_raises_the_window(case: Case, numbers: Numbers) -> Why:
    """A mark or a loss does not raise the window."""
    change: Any = case.answer(*numbers)
    raised = float(case.law.window(change))
    if raised <= 0:
        return None
    size = len(case.asked.state)
    record: Any = type(change)
    state = record(*numbers[:size]) if isinstance(change, tuple) else numbers[0]
    window = float(case.law.window(state))
    return (
        f"{case} at {told(case, numbers)} raises the window by {raised:.6g}, so that windows grow "
        "without bound: a decrease is negative, and a rule that computes the new window returns "
        f"the change, here {raised - window:.6g}"
    )
