"""From the rules of a law to Python source of hooks of the packet engine, by SymPy.

A hook works on a block of numbers: event, state, parameters. A function `write_KIND` writes the
hooks of one kind of law, without those that would do nothing.
"""

import math
from collections.abc import Mapping

import sympy as sp

from fluidcc.laws.law import (
    AbstractEstimator,
    AbstractFeedback,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractSource,
    AbstractWindowLaw,
    Ack,
    Signal,
)
from fluidcc.laws.symbolic import (
    DRAWN,
    Rule,
    marking_rule,
    period_rule,
    rule,
    slow_start_rule,
)
from fluidcc.packets.engine import records
from fluidcc.packets.hooks import numbers_of


def _lines(results: Mapping[int, sp.Expr], slots: Mapping[sp.Symbol, int]) -> list[str]:
    """Statements that write each result to its slot, from the numbers in `slots`."""
    names = {symbol: sp.Symbol(f"v{slot}", real=True) for symbol, slot in slots.items()}
    expressions = [sp.sympify(e).xreplace(names) for e in results.values()]
    shared, reduced = sp.cse(expressions, symbols=sp.numbered_symbols("c"))
    used = set().union(*(e.free_symbols for e in expressions))
    lines = [f"{names[s].name} = x[{k}]" for s, k in slots.items() if names[s] in used]
    lines += [f"{name} = {sp.pycode(e)}" for name, e in shared]
    return lines + [f"x[{k}] = {sp.pycode(e)}" for k, e in zip(results, reduced, strict=True)]


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


def write_queue(law: AbstractQueueLaw) -> str:
    """Hooks of a queue law; none for a law that never signals and has no state."""
    r = records
    update, signal, chance = (rule(law, m) for m in ("on_arrival", "signal", "gap_probability"))
    event = (r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE)
    slots = dict(zip(update.event, event, strict=True))
    slots[chance.event[-1]] = r.Q_GAP
    slots |= _slots(r.Q_STATE, *update.state, *update.parameters)
    after = _within(law, _after(update, slots))
    single = {k: _one(e, update.event[0]) for k, e in after.items()}
    own = Signal(*signal.results)
    signals = {r.Q_MARK: own.mark, r.Q_DROP: own.drop, r.Q_CHANCE: chance.results[0]}
    if law.loads:
        signals[r.Q_LOAD] = own.load
    if not update.state and all(e.is_zero for e in signals.values()):
        return ""
    written = _lines({k: _one(e, update.event[0]) for k, e in signals.items()}, slots)
    text = _function("update", _lines(after, slots)) + _function("signal", written)
    text += _function("arrive", _lines(single, slots), written)
    if law.period() is not None:
        tick = rule(law, "on_tick")
        after = _after(tick, slots) | {r.Q_CHANGED: _moved(tick)}
        text += _function("tick", _lines(after, slots))
    return text


def _window_slots(found: Rule) -> dict[sp.Symbol, int]:
    """Offsets of the numbers of a rule of a window law."""
    r, event, (window, *memory) = records, Ack(*found.event), found.state
    slots = {window: r.W_WINDOW}
    slots |= {getattr(event, name): slot for name, slot in r.W_EVENT.items()}
    return slots | _slots(r.W_STATE, *memory, *found.parameters)


def write_window(law: AbstractWindowLaw) -> str:
    """Hooks of a window law; `on_mark` also writes by how much the state has changed."""
    r, text = records, ""
    for method in ("on_ack", "on_mark", "on_loss", "observe", "on_tick"):
        found = rule(law, method)
        slots = _window_slots(found)
        after = {k: _one(e, Ack(*found.event).count) for k, e in _after(found, slots).items()}
        if method == "on_mark":
            after[r.W_CHANGED] = _one(_moved(found), Ack(*found.event).count)
        if method in ("on_ack", "on_mark", "on_loss") or not all(e.is_zero for e in found.results):
            text += _function(method, _lines(after, slots))
    for method, slot, found in (
        ("period", r.W_PERIOD, period_rule(law)),
        ("slow_start", r.W_SLOW, slow_start_rule(law)),
    ):
        if found.results and found.results[0] != 1:
            text += _function(method, _lines({slot: found.results[0]}, _window_slots(found)))
    return text


def _answer(name: str, found: Rule, first: int, result: int) -> str:
    """Hook of a rule with one result, whose event begins at slot `first`; parameters follow."""
    slots = _slots(first, *found.event) | _slots(result + 1, *found.parameters)
    return _function(name, _lines({result: found.results[0]}, slots))


def write_reaction(law: AbstractReaction) -> str:
    """Hooks of a reaction: whether it is ready, whether windows grow; none for always."""
    r, methods = records, ("ready", "growing")
    rules = {method: rule(law, method) for method in methods}
    return "".join(
        _answer(name, found, r.R_TIME, r.R_RESULT)
        for name, found in rules.items()
        if found.results[0] != 1
    )


def write_marking(law: AbstractMarking, window: AbstractWindowLaw) -> str:
    """Hook of a marking map for flows with this window law."""
    found, slot = marking_rule(law, window), records.M_PROBABILITY
    changes = found.results[0] != found.event[0]
    return _answer("marking", found, slot, slot) if changes else ""


def write_advertise(law: AbstractFeedback) -> str:
    """Hook of the window that an ACK advertises."""
    found = rule(law, "advertised_window")
    changes = found.results[0] != found.event[0]
    return _answer("advertise", found, records.A_WINDOW, records.A_RESULT) if changes else ""


def write_estimator(law: AbstractEstimator) -> str:
    """Hook of a receiver's estimate of the load factor."""
    found, r = rule(law, "decode"), records
    slots = _slots(r.E_ESTIMATE, *found.event) | _slots(r.E_PARAMETERS, *found.parameters)
    return _function("decode", _lines({r.E_ESTIMATE: found.event[0] + found.results[0]}, slots))


def write_source(law: AbstractSource) -> str:
    """Hooks of a source of files, one for each number that it draws."""
    r = records
    rules = {method: rule(law, method) for method in DRAWN}
    return "".join(_answer(n, found, r.U_UNIFORM, r.U_RESULT) for n, found in rules.items())
