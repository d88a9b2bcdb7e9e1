"""Hooks of the packet engine: the rules of laws, compiled, and the blocks of numbers they work on.

A block holds the numbers of an event, the state and the parameters of a law. The parameters are
data, so that other values need no compilation.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from fluidcc.laws.law import AbstractQueueLaw, AbstractWindowLaw, Law, State
from fluidcc.laws.parameters import parameter_values
from fluidcc.module import skeleton
from fluidcc.packets.cache import kept_text, module_from, package_hash
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import INTERPRETED, interpreted_hook
from fluidcc.programs import leaves

Hook = int
"""Address of a compiled hook; 0 if there is none."""

_HEAD = '"""Generated from the rules of a law."""\nimport math\n\n'
_HEAD += "from fluidcc.packets.hooks import hook\n"
# hooks of each kind of law, and where in the block the state and the parameters begin
_KINDS: dict[str, tuple[tuple[str, ...], int]] = {
    # count packets that found a queue; one packet: update the state, then signal; mark, drop and
    # chance in the present state; change by a tick, and its size
    "queue": (("update", "arrive", "signal", "tick"), r.Q_STATE),
    # the last two: time to the next tick, whether there is slow start, if that is not always so
    "window": (
        ("on_ack", "on_mark", "on_loss", "observe", "on_tick", "period", "slow_start"), r.W_STATE,
    ),
    "reaction": (("ready", "growing"), r.R_RESULT + 1),  # none for those that are always so
    "marking": (("marking",), r.M_PROBABILITY + 1),
    "advertise": (("advertise",), r.A_RESULT + 1),
    "estimator": (("decode",), r.E_PARAMETERS),
    # each turns a uniform number into its result
    "source": (("arrival", "pages", "pause", "objects", "gap", "size"), r.U_RESULT + 1),
}  # fmt: skip


class Hooks(NamedTuple):
    """Hooks of a law by name, 0 for those that would do nothing, and their block of numbers."""

    addresses: dict[str, Hook]
    block: np.ndarray


def hook(function: Callable[[Any], None]) -> Hook:
    """Compile a function of a pointer to numbers, for the engine to call by address."""
    if INTERPRETED:
        return interpreted_hook(function)
    pointer = numba.types.CPointer(numba.types.float64)
    compiled = numba.cfunc(numba.types.int64(pointer), cache=True)(function)
    _compiled.append(compiled)  # its address is only good as long as it lives
    return int(compiled.address or 0)


_compiled: list[Any] = []
_sources: dict[Any, str] = {}


def numbers_of(state: State) -> tuple[float, ...]:
    """Numbers of a law's state, in order."""
    return tuple(map(float, leaves(state)))


def _is_ours(value: Any) -> bool:
    """Whether a law, with the laws that it holds, comes with this package."""
    if not isinstance(value, Law):
        return True
    fields = (getattr(value, field.name) for field in dataclasses.fields(value))
    return type(value).__module__.startswith("fluidcc.") and all(map(_is_ours, fields))


def _source(kind: str, laws: tuple[Law, ...]) -> str:
    """Python source of the hooks for laws of this structure; parameters do not count."""
    structure = (kind, *map(skeleton, laws))

    def write() -> str:
        from fluidcc.packets import compile  # SymPy is heavy, and most runs find what is kept

        return getattr(compile, f"write_{kind}")(*laws)

    if structure not in _sources:
        kept = all(map(_is_ours, laws))
        key = repr((structure, [type(law) for law in laws]))
        _sources[structure] = kept_text(key, write) if kept else write()
    return _sources[structure]


def law_hooks(kind: str, *laws: Law, state: Sequence[float] = ()) -> Hooks:
    """Hooks of a law of a kind, with its state at the start.

    A marking map takes the window law of its flows too, whose parameters it has. Raises TypeError
    if they do not fit each other.
    """
    module = module_from(_HEAD + _source(kind, laws), uses=package_hash())
    names, first = _KINDS[kind]
    block = np.array([*([0.0] * first), *state, *parameter_values(laws[-1])], dtype=np.float64)
    return Hooks({name: getattr(module, name, 0) for name in names}, block)


def queue_state(law: AbstractQueueLaw, average: float) -> tuple[float, ...]:
    """State of a queue law that starts with an average of `average` packets."""
    return numbers_of(law.start(average))


def window_memory(law: AbstractWindowLaw) -> tuple[float, ...]:
    """State of a window law at the start, without the window."""
    return numbers_of(law.start(1.0))[1:]
