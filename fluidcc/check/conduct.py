"""How rules behave when they are called: what they return, what they touch, where they decide."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.check.cases import Case
from fluidcc.check.judges import Numbers, Why
from fluidcc.check.places import in_words, line_of_rule, place
from fluidcc.laws import symbolic
from fluidcc.laws.law import (
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Law,
    Shares,
    Signal,
)

_USUAL = {
    "W": 8.0, "n": 1.0, "e": 0.0, "R": 0.1, "v": 30.0, "q": 40.0, "C": 1250.0, "s": 1.0,
    "j": 2.0, "f": 0.9, "x": 80.0, r"p_{\max}": 0.1,
}  # fmt: skip
_TIMES = 3  # that a rule is asked the same
_PLAIN = (bool, int, float, str, list, dict, set, tuple, np.ndarray)


def usual_numbers(case: Case, p: float = 0.3) -> Numbers:
    """The law's own parameters, probability `p` and moderate numbers elsewhere."""
    event = [
        p if s.name in ("p", "l") else _USUAL.get(s.name, 0.0)
        for s in (*case.asked.state, *case.asked.event)
    ]
    return [*event, *(min(v, 1e6) for v in symbolic.parameter_values(case.owner))]


def _at(case: Case, why: str, line: str = "") -> str:
    line = line or line_of_rule(case.law, case.method)
    return f"{case}{f' ({line})' if line else ''}: {why}"


def returns_what_it_should(case: Case) -> Why:
    """A rule returns numbers of the right shape, the same each time, and touches nothing."""
    law = case.law
    try:
        numbers = usual_numbers(case)
        before = _kept(law)
        found = [case.answer(*numbers) for _ in range(_TIMES)]
    except Exception as error:
        return _at(case, in_words(error), place(error))
    if why := _shape(case, found[0]):
        return _at(case, why)
    if any(other != found[0] for other in found[1:]):
        return _at(
            case,
            f"gives {found[0]}, then {found[1]} for the same numbers: a rule follows from its "
            "arguments alone; chance belongs to the engine",
        )
    changed = [name for name, text in _kept(law).items() if before.get(name) != text]
    if changed:
        return _at(case, f"changes {', '.join(changed)} outside of its state")
    if foreign := list(_foreign(law, case.method)):
        return _at(
            case,
            f"reads {', '.join(foreign)}, another law's object, whose parameters no scenario sets: "
            "make them parameters of this law",
        )
    return None


def _shape(case: Case, found: Any) -> Why:
    """What is wrong with the shape of a result."""
    law, method = case.law, case.method
    if found is None:
        return "returns nothing: is `return` missing?"
    if isinstance(law, AbstractQueueLaw) and method == "signal":
        return _like(found, Signal(), "a Signal(mark=..., drop=..., load=...)")
    if isinstance(law, AbstractReaction) and method == "shares":
        return _like(found, Shares(0.0, 0.0), "Shares(growing, heard)")
    if isinstance(law, AbstractWindowLaw | AbstractQueueLaw) and method != "chance":
        like = law.start(1.0)
        word = type(like).__name__ if isinstance(like, tuple) and like else "one number"
        return _like(found, like, f"a change of the state that start() makes: {word}")
    if not isinstance(law, AbstractWindowLaw | AbstractQueueLaw) and isinstance(found, tuple):
        return next(filter(None, map(_number, found)), None)
    return _number(found)


def _like(found: Any, like: Any, expected: str) -> Why:
    if isinstance(like, tuple):
        if type(found) is not type(like) or len(found) != len(like):
            return f"returns {found!r}, expected {expected}"
        return next(filter(None, map(_number, found)), None)
    return None if _number(found) is None else f"returns {found!r}, expected {expected}"


def _number(found: Any) -> Why:
    if isinstance(found, bool | int | float) and found == found:
        return None
    if isinstance(found, float):
        return "is not a number (nan) at usual parameters"
    if isinstance(found, jax.Array | np.generic | np.ndarray):
        return (
            f"returns {type(found).__name__} for plain floats: take functions from `ops`, which "
            "serve all engines, not from NumPy or jax.numpy"
        )
    return f"returns {found!r}, expected one real number"


def _kept(law: Law) -> dict[str, str]:
    """What a law's module and classes keep, as text."""
    classes = [c for c in type(law).__mro__ if not c.__module__.startswith(("fluidcc.", "equinox"))]
    classes = [c for c in classes if c.__module__ not in ("builtins", "abc", "typing")]
    module = sys.modules.get(type(law).__module__)
    own = {} if type(law).__module__.startswith("fluidcc.") else vars(module) if module else {}
    places = {"": own, **{f"{c.__name__}.": dict(vars(c)) for c in classes}}
    return {
        f"{prefix}{name}": repr(value)
        for prefix, names in places.items()
        for name, value in names.items()
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


def decides_in_python(case: Case) -> Why:
    """A rule decides in Python on a number that an engine traces, or computes with what no engine
    can trace.
    """
    try:
        jax.eval_shape(lambda x: [jnp.asarray(r) for r in case(*x)], np.ones(len(case.symbols)))
    except (jax.errors.TracerBoolConversionError, jax.errors.ConcretizationTypeError) as error:
        return _branch(case, error)
    except TypeError as error:
        return _untraced(case, error)
    except Exception as error:
        return _at(case, in_words(error), place(error))
    try:
        case.rule  # noqa: B018
    except TypeError as error:
        if "truth value" in str(error):
            return _branch(case, error)
        return _untraced(case, error)
    except Exception as error:
        return _at(case, in_words(error), place(error))
    return None


def _branch(case: Case, error: Exception) -> str:
    why = (
        "branches in Python on a traced number: an engine asks about all numbers at once; write "
        "ops.where(condition, yes, no), ops.minimum or ops.maximum"
    )
    return _at(case, why, place(error))


def _untraced(case: Case, error: Exception) -> str:
    why = (
        "computes with a function that takes floats alone "
        f"({str(error).splitlines()[0]}): take it from `ops` (where, minimum, maximum, clip, exp, "
        "log, sqrt, expm1)"
    )
    return _at(case, why, place(error))
