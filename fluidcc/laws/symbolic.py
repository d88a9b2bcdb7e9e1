"""Rules of laws as SymPy expressions: for formulas, LaTeX, and compiled packet events.

A rule is called with symbols for its parameters, its state and the event; the packet engine
compiles the resulting expression, and the documentation prints it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from fluidcc.laws.law import (
    KINDS,
    RULES,
    SIGNALS,
    SYMBOLS,
    AbstractQueueLaw,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Law,
    Signal,
    Since,
    arguments_of,
    shared_symbols,
)
from fluidcc.laws.parameters import Interval, numeric_parameters
from fluidcc.laws.registry import kind_of

_TIMING = ("period", "slow_start", "rounds", "pacing")  # of window laws; they change nothing
_TRIVIAL = ("p = p", "f = f")  # the memory itself
_LONGEST = 2000  # letters of LaTeX, some ten lines
_WINDOW, _ANYWHERE = "W", Interval("(-inf, inf)")
_RECORDS = {"ack": Ack, "seen": Arrival, "since": Since, "signal": Signal}


class Rule(NamedTuple):
    """One rule of a law: symbols of the state, of the event and of the parameters; the results."""

    state: tuple[sp.Symbol, ...]
    event: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    results: tuple[sp.Expr, ...]


def _symbol(name: str, **assumptions: bool) -> sp.Symbol:
    return sp.Symbol(name, **({"real": True} | assumptions))


def parameter_symbols(law: Law) -> dict[str, sp.Symbol]:
    """SymPy symbols of a law's numeric parameters, by field name, in the order of the fields."""
    out = {}
    for name, info in numeric_parameters(law).items():
        within: Any = info.within
        low, _ = within.ends
        positive = low > 0 or (low == 0 and 0.0 not in within)
        out[name] = _symbol(info.symbol, positive=True) if positive else _symbol(info.symbol)
    return out


def with_symbols(law: Any) -> Any:
    """The same law with a symbol in place of each numeric parameter."""
    names = parameter_symbols(law)
    return dataclasses.replace(law, **names) if names else law


def _record(cls: Any, **names: str) -> Any:
    """A record of symbols, named by field."""
    signs = {f: {"positive": True} if f == "rtt" else {"nonnegative": True} for f in names}
    return cls(*(_symbol(names[f], **signs[f]) for f in cls._fields))


def _flat(value: Any) -> tuple:
    """Numbers of a state, in order; none if there is no value."""
    if value is None or value == ():
        return ()
    return tuple(value) if isinstance(value, tuple) else (value,)


def state_symbols(law: AbstractWindowLaw | AbstractQueueLaw) -> Any:
    """State of a law with a symbol for each of its numbers, which may be negative if they have no
    range and count no packets.
    """
    free = {
        f.info.symbol for f in law.states.values()
        if f.info.within == _ANYWHERE and f.info.unit != "packet"
    }  # fmt: skip
    signs = {_WINDOW: {"positive": True}} | {symbol: {} for symbol in free}
    return law.state_of(*(_symbol(s, **signs.get(s, {"nonnegative": True})) for s in law.symbols))


def _arguments(law: Law, window: AbstractWindowLaw | None, recovery: str) -> dict[str, Any]:
    """Symbols for the arguments of rules, by the names that the abstract classes have."""
    remembers = isinstance(law, AbstractWindowLaw | AbstractQueueLaw)
    state = state_symbols(law) if remembers else ()
    known: dict[str, Any] = {}
    for name, symbols in SYMBOLS.items():
        record = not isinstance(symbols, str)
        sign = {"positive": True} if name in ("w", "gap") else {"nonnegative": True}
        known[name] = _record(_RECORDS[name], **symbols) if record else _symbol(symbols, **sign)
    window = window and with_symbols(window)
    return known | {"s": state, "x": state, "window": window, "recovery": recovery}


def _called(
    law: Law, method: str, window: AbstractWindowLaw | None = None, recovery: str = "reno"
) -> tuple[Rule, list[Any]]:
    """A rule without results, and the arguments that it is to be called with."""
    names = next((names for kind, names in RULES.items() if isinstance(law, kind)), ())
    if method not in (*names, *_TIMING):
        raise TypeError(f"{law.name} has no rule {method!r}; it has {', '.join(names) or 'none'}")
    known = _arguments(with_symbols(law), window, recovery)
    own = arguments_of(KINDS[kind_of(type(law))], method)
    event = (known[name] for name in own if name not in ("s", "x", "window", "recovery"))
    symbols = [v for one in (law, window) if one for v in parameter_symbols(one).values()]
    flat = tuple(s for part in event for s in _flat(part))
    return Rule(_flat(known["s"]), flat, tuple(symbols), ()), [known[name] for name in own]


def asked(law: Law, method: str, window: AbstractWindowLaw | None = None) -> Rule:
    """The symbols of the rule `method` of a law, without results: the rule is not called.

    Of a marking law the parameters are its own and those of the `window` law. Raises TypeError if
    the law has no such rule.
    """
    return _called(law, method, window)[0]


def rule(
    law: Law, method: str, window: AbstractWindowLaw | None = None, *, recovery: str = "reno"
) -> Rule:
    """The rule `method` of a law as SymPy expressions; no results for None.

    `window` is the window law that a marking law is called with, `recovery` that of the sender, for
    the rule `lost`. Raises TypeError if the law has no such rule, and ValueError if one symbol
    stands for two numbers of it.
    """
    known, arguments = _called(law, method, window, recovery)
    if shared := list(shared_symbols(law, method)):
        raise ValueError(f"{law.name}.{method}: {shared[0]}")
    results = getattr(with_symbols(law), method)(*arguments)
    return known._replace(results=tuple(sp.sympify(r) for r in _flat(results)))


def in_powers(expression: sp.Expr) -> sp.Expr:
    """The expression in readable form: (1 - p)^w - 1 for expm1(w log1p(-p))."""
    bare: Any = sp.sympify(expression).replace(log1p, lambda a: sp.log(1 + a))
    return bare.replace(expm1, lambda a: sp.exp(a).rewrite(sp.Pow) - 1)


_WORDS = r"\text{by the rule of the law, in its file}"


def print_latex(expression: sp.Expr) -> str:
    """LaTeX of an expression; words in place of one that nobody could read."""
    text = sp.latex(expression)
    return text if len(text) <= _LONGEST else _WORDS


def _latex(expression: sp.Expr) -> str:
    bare = in_powers(expression)
    text = print_latex(bare)  # before what takes long for a long one
    return text if text == _WORDS else print_latex(sp.nsimplify(bare, rational=True))


def latex_rule(law: AbstractWindowLaw | AbstractQueueLaw, method: str) -> list[str]:
    """Changes by one rule as LaTeX equations, one for each number of the state that changes."""
    event_rule = rule(law, method)
    pairs = zip(event_rule.state, event_rule.results, strict=True)
    return [f"\\Delta {s.name} = {_latex(r)}" for s, r in pairs if not r.is_zero]


def latex_period(law: AbstractWindowLaw | AbstractQueueLaw) -> str:
    """Time between ticks in LaTeX; empty for a law without."""
    return "".join(map(_latex, rule(law, "period").results))


def changes(law: AbstractWindowLaw | AbstractQueueLaw) -> dict[str, list[str]]:
    """Changes by single events, as LaTeX equations by the name of the rule, ticks last."""
    of_window = ("on_ack", "on_mark", "on_loss", "observe")
    of_queue = ("on_arrival", "on_departure", "on_signal")
    methods = of_window if isinstance(law, AbstractWindowLaw) else of_queue
    lines = {method: latex_rule(law, method) for method in methods}
    if period := latex_period(law):
        ticks = latex_rule(law, "on_tick")
        lines["on_tick"] = [rf"{line} \quad \text{{every }} {period}" for line in ticks]
    return lines


def says(law: AbstractQueueLaw) -> list[str]:
    """Signals of a queue law as LaTeX equations, except those that just repeat its memory."""
    signals = zip(SIGNALS.items(), rule(law, "signal").results, strict=True)
    lines = [f"{field.symbol} = {_latex(r)}" for (k, field), r in signals if k in law.emits]
    return [line for line in lines if line not in _TRIVIAL]


def equations(laws: Sequence[Law]) -> dict[str, list[str]]:
    """LaTeX equations of the rules of each law that has states or signals, by its name."""
    out: dict[str, list[str]] = {}
    for law in laws:
        if isinstance(law, AbstractWindowLaw | AbstractQueueLaw):
            out[law.name] = [line for lines in changes(law).values() for line in lines]
        if isinstance(law, AbstractQueueLaw):
            out[law.name] += says(law)
    return out
