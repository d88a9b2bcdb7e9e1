"""From the rules of a law to Python source of hooks of the packet engine, by SymPy.

A hook works on a block of numbers: event, state, parameters. `write` gives the hooks of a law,
without those that would do nothing.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import sympy as sp

from fluidcc.laws.law import (
    SYMBOLS,
    WRITTEN,
    AbstractEstimator,
    AbstractQueueLaw,
    AbstractWindowLaw,
    Arrival,
    Law,
    Signal,
    queueing_delay,
)
from fluidcc.laws.symbolic import Rule, rule
from fluidcc.packets.engine import records
from fluidcc.packets.hooks import KINDS, numbers_of

_RANDOM = SYMBOLS["seen"]["random"]  # type: ignore[index]


def _lines(results: Mapping[int, sp.Expr], slots: Mapping[sp.Symbol, int]) -> list[str]:
    """Statements that write each result to its slot, from the numbers in `slots`."""
    names = {symbol: sp.Symbol(f"v{slot}", real=True) for symbol, slot in slots.items()}
    expressions = [sp.sympify(e).xreplace(names) for e in results.values()]
    shared, reduced = sp.cse(expressions, symbols=sp.numbered_symbols("c"))
    used = set().union(*(e.free_symbols for e in expressions))
    lines = [f"{names[s].name} = {_read(s, k)}" for s, k in slots.items() if names[s] in used]
    lines += [f"{name} = {sp.pycode(e)}" for name, e in shared]
    return lines + [f"x[{k}] = {sp.pycode(e)}" for k, e in zip(results, reduced, strict=True)]


def _read(symbol: sp.Symbol, slot: int) -> str:
    """The number of a symbol; a random one is drawn."""
    return f"draw_own(x, {slot})" if symbol.name == _RANDOM else f"x[{slot}]"


def _function(name: str, *groups: list[str]) -> str:
    body = "".join(f"    {line}\n" for lines in groups for line in lines)
    return f"\n\n@hook\ndef {name}(x):\n{body}    return 0\n"


def _slots(first: int, *symbols: sp.Symbol) -> dict[sp.Symbol, int]:
    return {symbol: first + k for k, symbol in enumerate(symbols)}


def _one(expression: sp.Expr, count: sp.Symbol) -> sp.Expr:
    """The rule for one packet."""
    return sp.sympify(expression.subs(count, 1))


def _after(found: Rule, slots: Mapping[sp.Symbol, int]) -> dict[int, sp.Expr]:
    """The state after a rule, by slot, without the numbers that do not change."""
    pairs = zip(found.state, found.results, strict=True)
    return {slots[symbol]: symbol + change for symbol, change in pairs if not change.is_zero}


def _moved(found: Rule) -> sp.Expr:
    """By how much a rule changes the state in all."""
    return sp.Add(*(sp.Abs(change) for change in found.results))


def _within(law: AbstractQueueLaw, after: dict[int, sp.Expr]) -> dict[int, sp.Expr]:
    """The state after arrivals, kept between the law's limits."""
    if law.limits is None:
        return after
    ends = zip(*map(numbers_of, law.limits), strict=True)
    out = dict(after)
    for k, (low, high) in enumerate(ends, start=records.Q_STATE):
        if k in after and math.isfinite(low) and math.isfinite(high):
            out[k] = sp.Min(sp.Max(after[k], low), high)
    return out


def _measured(found: Rule) -> Rule:
    """The rule of a queue law at an event at which no packet leaves: the sojourn is the queue over
    the link's rate.
    """
    seen = Arrival(*found.event[: len(Arrival._fields)])
    delay = {seen.sojourn: queueing_delay(seen.queue, seen.capacity)}
    return found._replace(results=tuple(sp.sympify(e).xreplace(delay) for e in found.results))


def _write_queue(law: AbstractQueueLaw) -> str:
    """Hooks of a queue law; none for a law that never signals and has no state.

    A law that decides as packets leave has `depart` alone, in the place of `arrive` and the two
    hooks that others need.
    """
    r = records
    methods = (law.packet_rule, "on_signal", "signal", "gap_probability")
    rules = [rule(law, m) for m in methods]
    update, signalled, signal, chance = rules if law.at_departure else map(_measured, rules)
    event = (
        r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE, r.Q_SOJOURN, r.Q_BUFFER,
        r.Q_RANDOM, r.Q_SPACING,
    )  # fmt: skip
    slots = dict(zip(update.event, event, strict=True))
    slots[chance.event[-1]] = r.Q_GAP
    slots |= _slots(r.Q_STATE, *update.state, *update.parameters)
    count = update.event[0]
    after = _within(law, _after(update, slots))
    single = {k: _one(e, count) for k, e in after.items()}
    own = Signal(*signal.results)
    signals = {r.Q_MARK: own.mark, r.Q_DROP: own.drop, r.Q_CHANCE: chance.results[0]}
    signals |= {r.Q_WRITTEN + WRITTEN.index(k): getattr(own, k) for k in law.written}
    if not update.state and all(e.is_zero for e in signals.values()):
        return ""
    written = _lines({k: _one(e, count) for k, e in signals.items()}, slots)
    if law.at_departure:
        text = _function("depart", _lines(single, slots), written)
    else:
        text = _function("update", _lines(after, slots)) + _function("signal", written)
        text += _function("arrive", _lines(single, slots), written)
    if law.heeds_signals:
        after = {k: _one(e, count) for k, e in _after(signalled, slots).items()}
        text += _function("signalled", _lines(after, slots))
    if law.period() is not None:
        tick = rule(law, "on_tick")
        after = _after(tick, slots) | {r.Q_CHANGED: _moved(tick)}
        text += _function("tick", _lines(after, slots))
    return text


def _window_slots(found: Rule) -> dict[sp.Symbol, int]:
    """Offsets of the numbers of a rule of a window law."""
    r, (window, *memory) = records, found.state
    slots = {window: r.W_WINDOW}
    slots |= dict(zip(found.event[1:], r.W_EVENT.values(), strict=False))  # slow start has none
    return slots | _slots(r.W_STATE, *memory, *found.parameters)


def _write_window(law: AbstractWindowLaw) -> str:
    """Hooks of a window law; `on_mark` also writes by how much the state has changed."""
    r, text = records, ""
    for method in ("on_ack", "on_mark", "on_loss", "observe", "on_tick"):
        found = rule(law, method)
        slots = _window_slots(found)
        after = {k: _one(e, found.event[0]) for k, e in _after(found, slots).items()}
        if method == "on_mark":
            after[r.W_CHANGED] = _one(_moved(found), found.event[0])
        if method in ("on_ack", "on_mark", "on_loss") or not all(e.is_zero for e in found.results):
            text += _function(method, _lines(after, slots))
    answers = {
        "period": r.W_PERIOD, "slow_start": r.W_SLOW, "rounds": r.W_ROUNDS, "pacing": r.W_PACING,
    }  # fmt: skip
    for method, slot in answers.items():
        found = rule(law, method)
        if found.results and found.results[0] != 1:
            text += _function(method, _lines({slot: found.results[0]}, _window_slots(found)))
    return text


def _write_estimator(law: AbstractEstimator) -> str:
    """Hook of a receiver's estimate of the load factor."""
    found, r = rule(law, "decode"), records
    slots = _slots(r.E_ESTIMATE, *found.event) | _slots(r.E_PARAMETERS, *found.parameters)
    return _function("decode", _lines({r.E_ESTIMATE: found.event[0] + found.results[0]}, slots))


_METHODS = {"marking": "probability", "advertise": "advertised_window"}
"""Rules of hooks that are not called like them."""
_BEGINS = {
    "reaction": records.R_TIME, "marking": records.M_PROBABILITY, "advertise": records.A_WINDOW,
    "source": records.U_UNIFORM,
}  # fmt: skip
"""Slots of the event; the result stands before the parameters."""


def _write_answers(kind: str, laws: Sequence[Law]) -> str:
    """Hooks of rules with one result, without those that always say yes, or leave their number."""
    names, first = KINDS[kind]
    begin, text = _BEGINS[kind], ""
    for name in names:
        method = _METHODS.get(name, name)
        found = rule(laws[0], method, *laws[1:])  # pyright: ignore[reportArgumentType]
        (answer,) = found.results
        if kind != "source" and answer == (1 if kind == "reaction" else found.event[0]):
            continue
        slots = _slots(begin, *found.event) | _slots(first, *found.parameters)
        text += _function(name, _lines({first - 1: answer}, slots))
    return text


def write(kind: str, laws: Sequence[Law]) -> str:
    """Hooks of a law of a kind; of a marking map with the window law of its flows."""
    own: dict[str, Callable[..., str]] = {
        "queue": _write_queue, "window": _write_window, "estimator": _write_estimator,
    }  # fmt: skip
    return own[kind](*laws) if kind in own else _write_answers(kind, laws)
