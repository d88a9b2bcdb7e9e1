"""From the rules of a law to hooks of the packet engine: SymPy, Python text, compiled function.

A hook works on a block of numbers: what the event tells, the state, the parameters. The parameters
are data, so that another value needs no compilation.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numba
import numpy as np
import sympy as sp

from fluidcc.laws.law import (
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Law,
)
from fluidcc.packets import records
from fluidcc.packets.cache import module_from, package_hash
from fluidcc.packets.pointer import INTERPRETED, interpreted_hook
from fluidcc.symbolic import Rule, marking_rule, parameter_values, rule

Hook = int
"""Address of a compiled hook; 0 where there is none."""

_HEAD = '"""Generated from the rules of a law."""\nimport math\n\n'
_HEAD += "from fluidcc.packets.compile import hook\n"


def hook(function: Callable[[Any], None]) -> Hook:
    """Compile a function of a pointer to numbers, for the engine to call by address."""
    if INTERPRETED:
        return interpreted_hook(function)
    pointer = numba.types.CPointer(numba.types.float64)
    compiled = numba.cfunc(numba.types.int64(pointer), cache=True)(function)
    _kept.append(compiled)  # its address is only good as long as it lives
    return int(compiled.address or 0)


_kept: list[Any] = []


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


def _block(first: int, *values: float) -> np.ndarray:
    return np.array([*([0.0] * first), *values], dtype=np.float64)


_texts: dict[Any, Any] = {}


def _once(kind: str, laws: tuple[Law, ...], make: Callable[[], Any]) -> Any:
    """What `make` says for laws of this structure; parameters do not count."""
    key = (kind, *(jax.tree.structure(law) for law in laws))
    if key not in _texts:
        _texts[key] = make()
    return _texts[key]


@functools.cache
def _load(text: str) -> Any:
    return module_from(_HEAD + text, uses=package_hash())


class QueueHooks(NamedTuple):
    """Hooks of a queue law; all 0 for a law that never says anything."""

    update: Hook  # count packets that found a queue
    arrive: Hook  # one packet: update the state, then say
    say: Hook  # mark, drop, chance, in the present state
    block: np.ndarray
    averages: bool  # whether the law keeps a state


def _queue_text(law: AbstractQueueLaw) -> tuple[str, bool, bool]:
    """Text of the hooks, whether the law keeps a state, whether it is silent."""
    r = records
    update, signal, chance = (rule(law, m) for m in ("on_arrival", "signal", "chance"))
    event = (r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE)
    slots = dict(zip(update.event, event, strict=True))
    slots[chance.event[-1]] = r.Q_GAP
    slots |= _slots(r.Q_CHANCE + 1, *update.state, *update.parameters)
    state = range(r.Q_CHANCE + 1, r.Q_CHANCE + 1 + len(update.state))
    after = [s + e for s, e in zip(update.state, update.results, strict=True)]
    changed = _lines(dict(zip(state, after, strict=True)), slots)
    single = _lines(dict(zip(state, (_one(e, update.event[0]) for e in after), strict=True)), slots)
    told = {r.Q_MARK: signal.results[0], r.Q_DROP: signal.results[1], r.Q_CHANCE: chance.results[0]}
    said = _lines({k: _one(e, update.event[0]) for k, e in told.items()}, slots)
    text = _function("update", changed) + _function("arrive", single, said)
    silent = not update.state and all(e.is_zero for e in told.values())
    return text + _function("say", said), bool(update.state), silent


def queue_hooks(law: AbstractQueueLaw, average: float) -> QueueHooks:
    """Hooks of a queue law that starts with an average of `average` packets."""
    text, averages, silent = _once("queue", (law,), lambda: _queue_text(law))
    state = law.start(average)
    values = state if isinstance(state, tuple) else (state,)
    block = _block(records.Q_CHANCE + 1, *map(float, values), *parameter_values(law))
    if silent:
        return QueueHooks(0, 0, 0, block, False)
    module = _load(text)
    return QueueHooks(module.update, module.arrive, module.say, block, averages)


class WindowHooks(NamedTuple):
    """Hooks of a window law."""

    on_ack: Hook
    on_mark: Hook
    on_loss: Hook
    block: np.ndarray


def _window_text(law: AbstractWindowLaw) -> str:
    text = ""
    for method in ("on_ack", "on_mark", "on_loss"):
        told: Rule = rule(law, method)
        if len(told.state) != 1:
            raise ValueError(f"{law.name}: packet senders need a law whose state is its window")
        count, elapsed, rtt = told.event
        slots = {told.state[0]: records.W_WINDOW, elapsed: records.W_ELAPSED, rtt: records.W_RTT}
        slots |= _slots(records.W_RTT + 1, *told.parameters)
        after = _one(sp.sympify(told.state[0] + told.results[0]), count)
        text += _function(method, _lines({records.W_WINDOW: after}, slots))
    return text


def window_hooks(law: AbstractWindowLaw) -> WindowHooks:
    """Hooks of a window law. Raises ValueError for one whose state is more than its window."""
    module = _load(_once("window", (law,), lambda: _window_text(law)))
    block = _block(records.W_RTT + 1, *parameter_values(law))
    return WindowHooks(module.on_ack, module.on_mark, module.on_loss, block)


class ReactionHooks(NamedTuple):
    """Hooks of a reaction, and which signals it lets count."""

    ready: Hook
    growing: Hook
    block: np.ndarray
    each_mark: bool  # it is always ready
    per_window: bool  # it waits for an ACK of what was sent after the last reaction


def _reaction_text(law: AbstractReaction) -> tuple[str, bool, bool]:
    r, text = records, ""
    for method in ("ready", "growing"):
        told = rule(law, method)
        slots = _slots(r.R_TIME, *told.event) | _slots(r.R_RESULT + 1, *told.parameters)
        text += _function(method, _lines({r.R_RESULT: told.results[0]}, slots))
    ready = rule(law, "ready")
    return text, ready.results[0] == 1, ready.event[2] in ready.results[0].free_symbols


def reaction_hooks(law: AbstractReaction) -> ReactionHooks:
    """Hooks of a reaction."""
    text, each, per_window = _once("reaction", (law,), lambda: _reaction_text(law))
    module = _load(text)
    block = _block(records.R_RESULT + 1, *parameter_values(law))
    return ReactionHooks(module.ready, module.growing, block, each, per_window)


def _marking_text(law: AbstractMarking, window: AbstractWindowLaw) -> str:
    told = marking_rule(law, window)
    if told.results[0] == told.event[0]:
        return ""
    slots = {told.event[0]: records.M_PROBABILITY} | _slots(1, *told.parameters)
    return _function("probability", _lines({records.M_PROBABILITY: told.results[0]}, slots))


def marking_hook(law: AbstractMarking, window: AbstractWindowLaw) -> tuple[Hook, np.ndarray]:
    """Hook of a marking map for flows with this window law, and its block; 0 if it changes nothing.

    Raises TypeError where the map does not fit the law.
    """
    text = _once("marking", (law, window), lambda: _marking_text(law, window))
    block = _block(1, *parameter_values(window))
    return (_load(text).probability if text else 0), block
