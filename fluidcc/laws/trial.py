"""One trial of each rule of a law as the law is added, with floats and with traced numbers, so that
an error in a rule is named by its line before any engine computes.
"""

import contextlib
import dataclasses
import inspect
import itertools
import linecache
import math
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.errors import Fault, nearest
from fluidcc.laws.draws import MEANS_KNOWN
from fluidcc.laws.law import (
    CHANGES,
    KINDS,
    MEASURES,
    RULES,
    SIGNALS,
    AbstractQueueLaw,
    Ack,
    Arrival,
    Law,
    PathTimes,
    Shares,
    Signal,
    Since,
    arguments_of,
    shared_symbols,
)
from fluidcc.laws.parameters import numeric_parameters
from fluidcc.laws.registry import LAWS, kind_of
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.programs import map_tree
from fluidcc.recording import NO_BRANCHES, Recorded, Tape

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_NUMPY = f"{Path(np.__file__).parent}{os.sep}"
_ELSEWHERE = _PACKAGE, _NUMPY, f"{sysconfig.get_path('stdlib')}{os.sep}", "<"
_INSTALLED = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
"""Parts of a path: packages may be in several folders, as beside those of a user."""
_NOTEBOOK = "ipykernel"

_KNOWN: Any = {name: field.usual for name, field in SIGNALS.items() if name in Ack._fields}
_ARGUMENTS: dict[str, Any] = {
    "w": 8.0, "queue": 40.0, "average": 40.0, "offered": 1000.0, "capacity": 1250.0,
    "buffer": 100.0, "gap": 2.0, "p": 0.3, "mark": 0.3, "marked": 0.3, "load": 0.9,
    "estimate": 0.8, "hashed": 0.5, "rtt": 0.1,
    "ack": Ack(
        1.0, 0.0, 0.1, marked=0.3, propagation=0.09, one_way=0.01, least_rtt=0.09,
        greatest_rtt=0.12, acked=50.0, rate=500.0, lost=1.0, flight=50.0, random=0.7, **_KNOWN,
    ),
    "seen": Arrival(1.0, 0.0, 40.0, 1250.0, buffer=100.0, random=0.7, spacing=0.01),
    "since": Since(0.05, 0.1, 0.0),
    "signal": Signal(**{name: field.usual for name, field in SIGNALS.items()}),
    "trip": PathTimes(0.1, 0.02, 0.01, 0.07),
}  # fmt: skip
"""Moderate numbers for the arguments of rules, by the names that the abstract classes have."""

_EVENTS = {"window": "ack", "queue": "seen"}
_ASIDE = 0.25  # from the start of a memory, which may be 0
_SIZES = (4.0, 8.0, 64.0, 1024.0)  # packet: windows at which marks are tried
_REGULAR = ("on_ack", "observe", "on_arrival", "on_departure")
_MEMORIES = ("start", "bounded", "with_window")
_TUPLES = ("breakpoints", "switching_points", "tick_interval", "initial_states")
_OTHERS = (
    "check", "change", "state_of", "in_packets", "is_discontinuous", "move_memory",
)  # no rules  # fmt: skip
_WORKS = "a rule that works for every engine"
BY_OPS = "ops.where, logical_not, minimum, maximum, clip, exp, log, sqrt, expm1 or log1p"
"""Functions for rules."""


# -- errors in words --------------------------------------------------------------------------


def _is_own(filename: str) -> bool:
    """Whether a file is neither of this package nor of an installed one."""
    installed = any(part in filename for part in _INSTALLED)
    return not installed and not filename.startswith(_ELSEWHERE)


def _own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame of text that is neither of this package nor of an installed one."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if _is_own(frame.filename) or _NOTEBOOK in frame.filename
    ]  # fmt: skip
    return frames[-1] if frames else None


def _text_of(frame: traceback.FrameSummary) -> str:
    return (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()


def line_of_error(error: BaseException) -> str:
    """The line that an error comes from, with its text; empty if that is not the user's."""
    frame = _own_frame(error)
    return "" if frame is None else f"line {frame.lineno}, `{_text_of(frame)}`"


def line_of_rule(law: Any, method: str) -> str:
    """The line that a rule begins at; empty for one that this package has."""
    code = getattr(inspect.unwrap(getattr(type(law), method)), "__code__", None)
    if code is None or code.co_filename.startswith(_PACKAGE):
        return ""
    return f"line {code.co_firstlineno}"


def describe(error: BaseException) -> str:
    """An error in a rule, in words for the author of the law."""
    if isinstance(error, dataclasses.FrozenInstanceError):
        return (
            f"{error}: a law has no attributes that change; its memory is its state, "
            "and a rule returns the change of that"
        )
    if isinstance(error, AttributeError) and (record := _record(error)) is not None:
        known = ", ".join(record._fields)
        return f"reads {error.name!r}, but {type(record).__name__} has only {known}"
    if isinstance(error, AttributeError) and isinstance(error.obj, Law):
        return f"reads {error.name!r}, which {type(error.obj).__name__} has not"
    if isinstance(error, AttributeError) and isinstance(error.obj, float):
        return f"reads {error.name!r} of a number: the state is one number, not a record"
    return f"{type(error).__name__}: {error}"


def _record(error: AttributeError) -> Any:
    return error.obj if isinstance(error.obj, tuple) and hasattr(error.obj, "_fields") else None


def shape_fault(law: Any, method: str, found: Any) -> str | None:
    """The fault in what a rule returned for plain floats; None if it is as it should be."""
    if found is None:
        return None if method in ("period", "pacing") else "returns nothing: is `return` missing?"
    if method in _TUPLES:
        return None if isinstance(found, tuple) else f"returns {found!r}, expected a tuple"
    template, expected = _expected(law, method)
    if template is None:
        several = isinstance(found, tuple) and kind_of(type(law)) not in ("window", "queue")
        return next(filter(None, map(_number, found if several else (found,))), None)
    if not isinstance(template, tuple):
        if hasattr(found, "dtype"):
            return _number(found)
        return _number(found) and f"returns {found!r}, expected {expected}"
    if type(found) is not type(template) or len(found) != len(template):
        return f"returns {found!r}, expected {expected}"
    return next(filter(None, map(_number, found)), None)


def _expected(law: Any, method: str) -> tuple[Any, str]:
    """A result like that of a rule, and its form in words; None for a number or several."""
    kind = kind_of(type(law))
    if (kind, method) == ("queue", "signal"):
        return Signal(), f"a Signal({', '.join(f'{name}=...' for name in Signal._fields)})"
    if (kind, method) == ("reaction", "shares"):
        return Shares(0.0, 0.0), "Shares(growing, reacting)"
    if kind not in ("window", "queue") or method not in (*CHANGES, *_MEMORIES):
        return None, ""
    template = law.state_of(*(1.0 for _ in law.fields))
    if method not in CHANGES:
        return template, f"the memory: {', '.join(law.fields)}, as self.state_of(...) makes it"
    word = f"{', '.join(law.fields)}, as self.change(state, ...) returns"
    return template, (
        f"a change of what the law remembers: {word if len(law.fields) > 1 else 'one number'}"
    )


def _number(found: Any) -> str | None:
    if isinstance(found, bool | int | float) and found == found:
        return None
    if isinstance(found, float):
        return "is not a number (nan) at usual parameters"
    if hasattr(found, "dtype"):
        return (
            f"returns {type(found).__name__} for plain floats: take functions from `ops`, which "
            "serve all engines, not from NumPy or jax.numpy"
        )
    return f"returns {found!r}, expected one real number"


def hint_of_change(event: str, *, is_new_state: bool) -> str:
    """The remedy for a rule that changes something without packets or time."""
    if is_new_state:
        return "it seems to return the new state; a rule returns the change"
    return f"a change per packet is `{event}.count * ...`, one over time `{event}.elapsed * ...`"


def hint_of_decrease(window: float, raised: float) -> str:
    """The remedy for a rule that raises a window by a mark."""
    return (
        "so that windows grow without bound: a decrease is negative, and a rule that computes the "
        f"new window returns the change, here {raised - window:.6g}"
    )


# -- the trial --------------------------------------------------------------------------------


def faults_of_rules(law: Any) -> Iterator[Fault]:
    """Faults of the members of a law whose class is sound: one for each member."""
    base = KINDS[kind_of(law)]
    unfit = list(_unfit(law, base))
    yield from unfit
    if unfit:
        return
    made: Any = law()
    unfit = list(_shared(made))
    yield from unfit
    if unfit:
        return
    own = {name: getattr(law, name).__module__.split(".")[0] != "fluidcc" for name in _rules(base)}
    faulty = False
    for method in sorted(own, key=lambda name: (not own[name], name != "start")):
        if faulty and not own[method]:  # which calls one that is
            return
        fault = _by_floats(made, method) or _by_trace(made, method) or _by_mean(made, method)
        if fault is not None:
            faulty = True
            yield fault
            if method == "start":  # all others are called with its result
                return


def _rules(base: type[Law]) -> list[str]:
    """The methods that an abstract class has for laws to write."""
    public = (name for name in dir(base) if not name.startswith("_") and name not in _OTHERS)
    return [name for name in public if inspect.isfunction(getattr(base, name))]


def _unfit(law: type[Law], base: type[Law]) -> Iterator[Fault]:
    """Members that are no methods with the arguments of the abstract class, or no declarations."""
    for name in (n for n in dir(base) if not n.startswith("_")):
        ours, theirs = inspect.getattr_static(law, name), inspect.getattr_static(base, name)
        if ours is theirs:
            continue
        key = f"{law.__qualname__}.{name}"
        if inspect.isfunction(theirs):
            arguments = ["self", *arguments_of(base, name)]
            form = f"a method {name}({', '.join(arguments)})"
            if not inspect.isfunction(ours):
                yield Fault("", key, form, repr(ours))
            elif name not in _OTHERS and not _takes(ours, len(arguments)):
                yield Fault("", key, form, f"{name}{inspect.signature(ours)}")
        elif inspect.isfunction(ours) and not isinstance(theirs, property):
            yield Fault("", key, f"a plain line `{name} = ...`", "a method")
    if issubclass(law, AbstractQueueLaw):
        both = [n for n in ("on_arrival", "on_departure") if n in vars(law)]
        if len(both) > 1:
            expected = "one of on_arrival and on_departure: packets are decided upon once"
            yield Fault("", f"{law.__qualname__}.{both[1]}", expected, "both")
    events = [n for n in _rules(base) if n.startswith("on_")]
    for name in (n for n in dir(law) if n.startswith("on_") and not hasattr(base, n)):
        expected = f"a name that does not begin with on_, or one of {', '.join(events)}"
        close = nearest(name, events, 1)
        if callable(getattr(law, name)):
            yield Fault("", f"{law.__qualname__}.{name}", expected, repr(name), close)


def _shared(law: Any) -> Iterator[Fault]:
    """Symbols that stand for two numbers of a rule, at the one of the law's own."""
    found = {}
    for method in next(rules for base, rules in RULES.items() if isinstance(law, base)):
        for shared in shared_symbols(law, method):
            found.setdefault(shared.second, (shared, method))
    for (symbol, first, second), method in found.values():
        expected = f"a symbol that nothing else in {method} has"
        yield Fault("", f"{type(law).__qualname__}.{second}", expected,
                    f"{symbol!r}, the symbol of {first}")  # fmt: skip


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


def _call(
    law: Any, method: str, at: Any = None, number: Callable[[float], Any] = float, **given: Any
) -> Any:
    """The answer of a rule to moderate numbers or those given, by `number` from each; `at` is the
    memory, that of the start by default.
    """
    numbers = _ARGUMENTS | given
    made = {name: number(getattr(law, name)) for name in numeric_parameters(law)}
    bare = dataclasses.replace(law, **made)
    known = {name: map_tree(number, value) for name, value in numbers.items()}
    kind = kind_of(type(law))
    if kind in ("window", "queue") and method != "start":
        if at is None:
            at = law.start(numbers["w" if kind == "window" else "queue"])
        known["s"] = known["x"] = map_tree(number, at)
    if kind == "marking":
        windows: Any = LAWS["window"].values()
        known["window"] = next(w for w in windows if issubclass(w, AbstractPolynomial))()
    names = arguments_of(KINDS[kind], method)
    return getattr(bare, method)(*(known[name] for name in names))


def _by_floats(law: Any, method: str) -> Fault | None:
    try:
        found = _call(law, method)
        why = shape_fault(law, method, found)
        if not why and (fault := _by_contract(law, method)):
            return fault
    except Exception as error:
        zero = ", for elapsed = 0 too" if isinstance(error, ZeroDivisionError) else ""
        return _fault(law, method, f"{_WORKS}{zero}", describe(error), error)
    return _fault(law, method, _WORKS, f"one that {why}") if why else None


def _by_contract(law: Any, method: str) -> Fault | None:
    """The fault of a rule whose numbers are of the right shape, but no changes."""
    kind = kind_of(type(law))
    if kind not in ("window", "queue") or method not in CHANGES:
        return None
    name = _EVENTS[kind]
    event = _ARGUMENTS[name]
    if method in _REGULAR:
        still = event._replace(count=0.0, elapsed=0.0)
        start = law.start(_ARGUMENTS["w" if kind == "window" else "queue"])
        begins = (start, map_tree(lambda v: v + _ASIDE, start))
        idle = [still._replace(queue=0.0)] if kind == "queue" else []
        for at, quiet in itertools.product(begins, (still, *idle)):
            try:
                changes, before = _flat(_call(law, method, at, **{name: quiet})), _flat(at)
            except ArithmeticError:  # outside the range of a memory
                continue
            if not any(changes):
                continue
            new = any(a == b != 0 for a, b in zip(changes, before, strict=True))
            hint = hint_of_change(name, is_new_state=new)
            expected = "no change without packets or time"
            return _fault(law, method, expected, f"{', '.join(f'{c:g}' for c in changes)}; {hint}")
    if kind == "queue":
        return None
    if method in ("on_mark", "on_loss"):
        raised = [_flat(_call(law, method, w=w))[0] for w in _SIZES]
        if min(raised) > 0:
            got = f"one that raises windows of all sizes, one of {_SIZES[1]:g} by {raised[1]:g}, "
            return _fault(law, method, "a rule that lowers the window",
                          got + hint_of_decrease(_SIZES[1], raised[1]))  # fmt: skip
    return None


def undeclared(law: Any, method: str) -> Fault | None:
    """The fault of a rule that acts on a signal which its window law does not declare, or on a
    random number that is not drawn for it, at whatever numbers.
    """
    kind = kind_of(type(law))
    if kind not in _EVENTS or method not in (*CHANGES, "pacing") or not hasattr(law, method):
        return None
    name, event = _EVENTS[kind], _ARGUMENTS[_EVENTS[kind]]
    declared_fields = (*SIGNALS, *MEASURES)
    lists = {field: ("reads", field) for field in event._fields if field in declared_fields}
    for field, (line, word) in (lists | {"random": ("draws", method)}).items():
        if word in (declared := getattr(law, line)):
            continue
        tape, mark = Tape(), math.pi * getattr(event, field)  # no other number is as large
        other = event._replace(**{field: mark})
        results = _flat(_call(law, method, number=tape.input, **{name: other}))
        asked = {each.name for each in tape.inputs if each.example == mark}
        if asked & tape.needed(results):
            expected = f"a line `{line} = {(*declared, word)}` in the class"
            got = f"{declared} and a rule that reads {name}.{field}"
            return _fault(law, method, expected, got)
    return None


def _by_mean(law: Any, method: str) -> Fault | None:
    """The fault of a rule whose mean over its random number is not known."""
    if method not in getattr(law, "draws", ()):
        return None
    name = _EVENTS[kind_of(type(law))]
    event = _ARGUMENTS[name]._replace(random=None)
    try:
        for number in (float, Tape().input):
            _call(law, method, number=number, **{name: event})
    except Exception as error:
        unknown = MEANS_KNOWN in str(error)
        expected, got = (MEANS_KNOWN, "") if unknown else (_WORKS, describe(error))
        return _fault(law, method, expected, got, error)
    return None


def shrinks(law: Any) -> str:
    """At what delay the rule for clean ACKs lowers a window, in words; empty if it was not seen to,
    among a few windows, delays and load factors.
    """
    event = _ARGUMENTS["ack"]
    shares, loads = (0.0, 0.1, 0.5, 0.9), (0.5, 0.9, 2.0)  # of the round trip, and of the link
    for w, share, load in itertools.product(_SIZES, shares, loads):
        delay = share * event.rtt
        with contextlib.suppress(ArithmeticError):
            change = _flat(_call(law, "on_ack", w=w, ack=event._replace(delay=delay, load=load)))
            if change[0] < 0:
                return f"one of {w:g} packets by {-change[0]:.3g} at a delay of {delay:g} s"
    return ""


def _flat(state: Any) -> tuple[float, ...]:
    return state if isinstance(state, tuple) else (state,)


class _Traced(Recorded):
    """A number on a tape that refuses functions of NumPy which a rule itself calls."""

    __slots__ = ()

    def __array_ufunc__(self, function: Any, method: str, *args: Any, out: Any = None) -> Any:
        if _is_own(sys._getframe(1).f_code.co_filename):
            raise TypeError(f"np.{function.__name__} of a rule's number")
        return super().__array_ufunc__(function, method, *args, out=out)

    def __invert__(self) -> Any:
        raise TypeError("~ of a condition, which makes -2, and so true, of Python's True")


def _by_trace(law: Any, method: str) -> Fault | None:
    """The fault of a rule with recorded numbers, of which Python knows no value."""
    try:
        _call(law, method, number=Tape(_Traced).input)
    except ValueError as error:
        if NO_BRANCHES not in str(error):
            return _fault(law, method, _WORKS, describe(error), error)
        expected = f"a rule without decisions of Python on numbers: {NO_BRANCHES}"
        return _fault(law, method, expected, "", error)
    except TypeError as error:
        return _fault(law, method, f"functions that every engine has: {BY_OPS}", "", error)
    except Exception as error:
        return _fault(law, method, _WORKS, describe(error), error)
    return undeclared(law, method)


def _fault(law: Any, method: str, expected: str, got: str, error: Any = None) -> Fault:
    """A fault of a rule, at the line of the error, if it has one."""
    key, frame = f"{type(law).__qualname__}.{method}", error and _own_frame(error)
    close: tuple[str, ...] = ()
    if isinstance(error, AttributeError) and error.name and error.obj is not None:
        fields = getattr(error.obj, "_fields", None) or [n for n in dir(error.obj) if n[0] != "_"]
        close = nearest(error.name, fields, 1)
    if not frame:
        return Fault("", key, expected, got, close)
    known = not frame.filename.startswith("<") and _NOTEBOOK not in frame.filename
    where = f"{frame.filename}, line {frame.lineno}" if known else f"line {frame.lineno}"
    parts = (f"`{_text_of(frame)}`", got)
    return Fault(where, key, expected, ": ".join(part for part in parts if part), close)
