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
    AbstractEstimator,
    AbstractFeedback,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractReaction,
    AbstractWindowLaw,
    Ack,
    Law,
    State,
)
from fluidcc.laws.source import AbstractSource
from fluidcc.laws.symbolic import (
    DRAWN,
    Rule,
    marking_rule,
    parameter_values,
    period_rule,
    rule,
    slow_start_rule,
)
from fluidcc.packets.cache import module_from, package_hash
from fluidcc.packets.engine import records
from fluidcc.packets.engine.pointer import INTERPRETED, interpreted_hook

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


def _numbers(state: State) -> tuple[float, ...]:
    """Numbers of a law's state, in order."""
    return tuple(map(float, state)) if isinstance(state, tuple) else (float(state),)


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
    arrive: Hook  # one packet: update the state, then signal
    signal: Hook  # mark, drop, chance, in the present state
    tick: Hook  # what changes from time to time, and by how much in all; 0 for none
    block: np.ndarray


def _after(told: Rule, slots: Mapping[sp.Symbol, int]) -> dict[int, sp.Expr]:
    """The state after a rule, by slot; what stays as it is, is left out."""
    pairs = zip(told.state, told.results, strict=True)
    return {slots[symbol]: symbol + change for symbol, change in pairs if not change.is_zero}


def _moved(told: Rule) -> sp.Expr:
    """By how much a rule changes the state in all."""
    return sp.Add(*(sp.Abs(change) for change in told.results))


def _within(law: AbstractQueueLaw, after: dict[int, sp.Expr]) -> dict[int, sp.Expr]:
    """The state after arrivals, kept between the law's limits."""
    if law.limits is None:
        return after
    low, high = law.limits
    return {k: sp.Min(sp.Max(e, low), high) for k, e in after.items()}


def _queue_text(law: AbstractQueueLaw) -> tuple[str, bool]:
    """Text of the hooks, and whether the law is silent."""
    r = records
    update, signal, chance = (rule(law, m) for m in ("on_arrival", "signal", "chance"))
    event = (r.Q_COUNT, r.Q_ELAPSED, r.Q_QUEUE, r.Q_CAPACITY, r.Q_SIZE)
    slots = dict(zip(update.event, event, strict=True))
    slots[chance.event[-1]] = r.Q_GAP
    slots |= _slots(r.Q_STATE, *update.state, *update.parameters)
    after = _within(law, _after(update, slots))
    single = {k: _one(e, update.event[0]) for k, e in after.items()}
    mark, drop, load = signal.results
    told = {r.Q_MARK: mark, r.Q_DROP: drop, r.Q_CHANCE: chance.results[0]}
    if law.loads:
        told[r.Q_LOAD] = load
    said = _lines({k: _one(e, update.event[0]) for k, e in told.items()}, slots)
    text = _function("update", _lines(after, slots)) + _function("signal", said)
    text += _function("arrive", _lines(single, slots), said)
    if law.period is not None:
        tick = rule(law, "on_tick")
        after = _after(tick, slots) | {r.Q_CHANGED: _moved(tick)}
        text += _function("tick", _lines(after, slots))
    return text, not update.state and all(e.is_zero for e in told.values())


def queue_hooks(law: AbstractQueueLaw, average: float) -> QueueHooks:
    """Hooks of a queue law that starts with an average of `average` packets."""
    text, silent = _once("queue", (law,), lambda: _queue_text(law))
    block = _block(records.Q_STATE, *_numbers(law.start(average)), *parameter_values(law))
    if silent:
        return QueueHooks(0, 0, 0, 0, block)
    module = _load(text)
    tick = module.tick if law.period is not None else 0
    return QueueHooks(module.update, module.arrive, module.signal, tick, block)


class WindowHooks(NamedTuple):
    """Hooks of a window law; 0 for those that it does without."""

    on_ack: Hook
    on_mark: Hook  # tells too by how much the state has changed
    on_loss: Hook
    observe: Hook  # what is learnt from any ACK
    on_tick: Hook
    period: Hook  # time to the next tick
    slow_start: Hook  # whether there is slow start; none if always
    block: np.ndarray
    memory: tuple[float, ...]  # at the start: the state beside the window


def _window_place(law: AbstractWindowLaw) -> int:
    """Place of the window among the numbers of the law's state."""
    state = law.start(1.0)
    if not isinstance(state, tuple):
        return 0
    record: Any = type(state)
    return int(law.window(record(*range(len(state)))))


def _window_slots(law: AbstractWindowLaw, said: Rule) -> dict[sp.Symbol, int]:
    """Where a rule of a window law finds its numbers."""
    r, place, event = records, _window_place(law), Ack(*said.event)
    rest = [symbol for k, symbol in enumerate(said.state) if k != place]
    slots = {said.state[place]: r.W_WINDOW, event.elapsed: r.W_ELAPSED, event.rtt: r.W_RTT}
    slots |= {event.marked: r.W_MARKED, event.load: r.W_LOAD}
    return slots | _slots(r.W_STATE, *rest, *said.parameters)


def _window_text(law: AbstractWindowLaw) -> tuple[str, tuple[str, ...]]:
    """Text of the hooks, and names of those that do something."""
    r, text, names = records, "", ["on_ack", "on_mark", "on_loss"]
    methods = ("on_ack", "on_mark", "on_loss", "observe", "on_tick")
    told = {method: rule(law, method) for method in methods}
    for method, said in told.items():
        slots = _window_slots(law, said)
        after = {k: _one(e, Ack(*said.event).count) for k, e in _after(said, slots).items()}
        if method == "on_mark":
            after[r.W_CHANGED] = _one(_moved(said), Ack(*said.event).count)
        text += _function(method, _lines(after, slots))
        if method not in names and not all(e.is_zero for e in said.results):
            names.append(method)
    answers = {
        "period": (r.W_PERIOD, period_rule(law)),
        "slow_start": (r.W_SLOW, slow_start_rule(law)),
    }
    for method, (slot, said) in answers.items():
        if said.results and said.results[0] != 1:
            text += _function(method, _lines({slot: said.results[0]}, _window_slots(law, said)))
            names.append(method)
    return text, tuple(names)


def window_hooks(law: AbstractWindowLaw) -> WindowHooks:
    """Hooks of a window law."""
    text, names = _once("window", (law,), lambda: _window_text(law))
    module, place = _load(text), _window_place(law)
    memory = tuple(v for k, v in enumerate(_numbers(law.start(1.0))) if k != place)
    block = _block(records.W_STATE, *memory, *parameter_values(law))
    hooks = {n: getattr(module, n) if n in names else 0 for n in WindowHooks._fields[:7]}
    return WindowHooks(**hooks, block=block, memory=memory)


class ReactionHooks(NamedTuple):
    """Hooks of a reaction, and which signals it lets count."""

    ready: Hook
    growing: Hook  # 0 where windows grow on every ACK
    block: np.ndarray
    each_mark: bool  # it is always ready


def _reaction_text(law: AbstractReaction) -> tuple[str, bool, bool]:
    """Text of the hooks; if it is always ready, if windows always grow."""
    r, text = records, ""
    for method in ("ready", "growing"):
        told = rule(law, method)
        slots = _slots(r.R_TIME, *told.event) | _slots(r.R_RESULT + 1, *told.parameters)
        text += _function(method, _lines({r.R_RESULT: told.results[0]}, slots))
    return text, rule(law, "ready").results[0] == 1, rule(law, "growing").results[0] == 1


def reaction_hooks(law: AbstractReaction) -> ReactionHooks:
    """Hooks of a reaction."""
    text, each, always = _once("reaction", (law,), lambda: _reaction_text(law))
    module = _load(text)
    block = _block(records.R_RESULT + 1, *parameter_values(law))
    growing = 0 if always else module.growing
    return ReactionHooks(module.ready, growing, block, each)


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


def _permit_text(law: AbstractFeedback) -> str:
    told = rule(law, "permit")
    window, marked = told.event
    if told.results[0] == window:
        return ""
    slots = {window: records.A_WINDOW, marked: records.A_MARKED}
    slots |= _slots(records.A_RESULT + 1, *told.parameters)
    return _function("permit", _lines({records.A_RESULT: told.results[0]}, slots))


def permit_hook(law: AbstractFeedback) -> tuple[Hook, np.ndarray]:
    """Hook of what an acknowledgement permits, and its block; 0 if it permits the window."""
    text = _once("permit", (law,), lambda: _permit_text(law))
    block = _block(records.A_RESULT + 1, *parameter_values(law))
    return (_load(text).permit if text else 0), block


def _estimator_text(law: AbstractEstimator) -> str:
    told, r = rule(law, "decode"), records
    slots = _slots(r.E_ESTIMATE, *told.event) | _slots(r.E_PARAMETERS, *told.parameters)
    after = {r.E_ESTIMATE: told.event[0] + told.results[0]}
    return _function("decode", _lines(after, slots))


def estimator_hook(law: AbstractEstimator) -> tuple[Hook, np.ndarray]:
    """Hook of a receiver's estimate of the load factor, and its block."""
    text = _once("estimator", (law,), lambda: _estimator_text(law))
    return _load(text).decode, _block(records.E_PARAMETERS, *parameter_values(law))


class SourceHooks(NamedTuple):
    """Hooks of a source: each turns the uniform number of the block into its result."""

    arrival: Hook
    pages: Hook
    pause: Hook
    objects: Hook
    gap: Hook
    size: Hook
    block: np.ndarray


def _source_text(law: AbstractSource) -> str:
    r, text = records, ""
    for method in DRAWN:
        told = rule(law, method)
        slots = _slots(r.U_UNIFORM, *told.event) | _slots(r.U_RESULT + 1, *told.parameters)
        text += _function(method, _lines({r.U_RESULT: told.results[0]}, slots))
    return text


def source_hooks(law: AbstractSource) -> SourceHooks:
    """Hooks of a source."""
    module = _load(_once("source", (law,), lambda: _source_text(law)))
    block = _block(records.U_RESULT + 1, *parameter_values(law))
    return SourceHooks(**{method: getattr(module, method) for method in DRAWN}, block=block)
