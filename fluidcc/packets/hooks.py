"""Compiled functions of the packet engine: its entry points, the parts that a run needs, and hooks,
the rules of laws, with the blocks of numbers they work on.

A block holds the numbers of an event, the state and the parameters of a law. The parameters are
data, so that other values need no compilation.

Generated modules are kept on disk by the hash of their text, so that compiled code is found again.
Numba notices edits of the file it compiles but not of what that file calls. A module whose name is
the hash of everything that goes into it cannot be stale.
"""

import contextlib
import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np

from fluidcc.folders import (
    SEAL,
    SHOWING,
    compiled_folder,
    find_kept,
    fingerprint,
    own_folder,
    seal,
    write_kept,
)
from fluidcc.kept_modules import FOLDER, module_from, module_name
from fluidcc.laws.law import AbstractWindowLaw, Law, State
from fluidcc.laws.parameters import parameter_values
from fluidcc.machine import processors
from fluidcc.module import skeleton
from fluidcc.packets.engine import loop
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.parts import PARTS, Part
from fluidcc.packets.engine.pointer import INTERPRETED, interpreted_hook
from fluidcc.programs import leaves


@functools.cache
def _package_hash() -> str:
    """Hash of the engine's sources: part of the name of whatever is compiled from them."""
    here = Path(__file__).parent
    files = [here / "hooks.py", *sorted((here / "engine").glob("*.py"))]
    return seal(sys.version, *(f.read_bytes() for f in files))


def _kept_text(key: str, write: Callable[[], str]) -> str:
    """Text that `write` makes of the sources of this package, kept on disk by `key`."""
    try:
        folder = own_folder("rules")
    except OSError:
        return write()
    stem = f"rules_{seal(key, fingerprint(*SHOWING))}"
    if found := find_kept(folder, stem, ".txt"):
        return found[1].decode()
    text = write()
    with contextlib.suppress(OSError):  # of a full disk: time is lost
        write_kept(folder, stem, ".txt", text.encode())
    return text


Hook = int
"""Address of a compiled hook; 0 if there is none."""

_HEAD = '"""Generated from the rules of a law."""\nimport math\n\n'
_HEAD += "from fluidcc.packets.hooks import hook\n"
_DRAWS = "from fluidcc.packets.engine.streams import draw_own\n"
# hooks of each kind of law, and where in the block the state and the parameters begin
KINDS: dict[str, tuple[tuple[str, ...], int]] = {
    # count packets that found a queue; one that arrives, or leaves: update the state, then signal;
    # mark, drop and chance in the present state; change by a signal, and by a tick, and its size
    "queue": (("update", "arrive", "depart", "signal", "signalled", "tick"), r.Q_STATE),
    # the last four: time to the next tick, whether there is slow start, and rounds in a round
    # trip, if these are not always 1, and the rate at which packets may go
    "window": (
        ("on_ack", "on_mark", "on_loss", "observe", "on_tick", "period", "slow_start", "rounds",
         "pacing"),
        r.W_STATE,
    ),
    "reaction": (("ready", "growing"), r.R_RESULT + 1),  # none for those that are always so
    "marking": (("marking",), r.M_PROBABILITY + 1),
    "advertise": (("advertise",), r.A_RESULT + 1),
    "estimator": (("decode",), r.E_PARAMETERS),
    # each turns a uniform number into its result
    "source": (("arrival", "pages", "pause", "objects", "gap", "size"), r.U_RESULT + 1),
}  # fmt: skip


class Hooks(NamedTuple):
    """Hooks of a law by name, 0 for those that would do nothing, and their block of numbers up to
    the parameters, which lie behind in the same memory.
    """

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

        return compile.write(kind, laws)

    if structure not in _sources:
        kept = all(map(_is_ours, laws))
        key = repr((structure, [type(law) for law in laws]))
        _sources[structure] = _kept_text(key, write) if kept else write()
    return _sources[structure]


def law_hooks(kind: str, *laws: Law, state: Sequence[float] = ()) -> Hooks:
    """Hooks of a law of a kind, with its state at the start.

    A marking map takes the window law of its flows too, with its parameters. Raises TypeError
    if they do not fit each other.
    """
    source = _source(kind, laws)
    head = _HEAD + (_DRAWS if "draw_own" in source else "")
    module = module_from(head + source, uses=_package_hash())
    names, first = KINDS[kind]
    moving = [*([0.0] * first), *state]
    parameters = (value for law in laws for value in parameter_values(law))
    block = np.array([*moving, *parameters], dtype=np.float64)
    return Hooks({name: getattr(module, name, 0) for name in names}, block[: len(moving)])


def window_memory(law: AbstractWindowLaw) -> tuple[float, ...]:
    """State of a window law at the start, without the window."""
    return numbers_of(law.start(1.0))[1:]


# parts by the kinds of entities that call them
_ENTITIES = {
    r.QUENCH_WIRE: ("receive_quench",),
    r.QUEUE_TIMER: ("tick_queue", "catch_up"),
    r.ROUTER: ("rewrite_ack",),
    r.SOURCE: ("start_session",),
    r.SESSION: ("advance_session", "finish_connection"),
    r.CROSS: ("send_cross", "receive_datagram"),
    r.CALLS: ("admit_call",),
    r.CALL: ("advance_call", "receive_datagram"),
    r.STOP: ("stop_flow", "finish_connection"),
    r.ACK_TIMER: ("delay_ack", "send_delayed_ack"),
    r.CHANGES: ("change_link",),
}
# by a property of a group of flows
_GROUPS = {
    "sack": ("receive_sack", "send_sack", "reset_sack", "report_blocks"),
    "source_quench": ("send_quench",),
    "loads": ("decode_load",),
    "written": ("begin_numbers", "take_numbers"),
}

_ENTRIES = '''"""Generated: entry points of the packet engine."""
import numba

from fluidcc.packets.engine import loop
from fluidcc.packets.engine import records as r


@numba.njit("int64(int64, float64, int64)", cache=True, nogil=True, error_model="numpy")
def advance(address, stop, budget):
    return loop.advance(address, stop, budget)


@numba.njit("void(int64, float64)", cache=True, nogil=True, error_model="numpy")
def settle(address, time):
    loop.settle(address, time)
'''
_PART = '''"""Generated: a part of the packet engine."""
import numba

from fluidcc.packets.engine import records
from fluidcc.packets.engine.parts import PARTS

_body = PARTS["{name}"].body
{accessors}

@numba.cfunc("void({types})", cache=True, error_model="numpy")
def part({names}):
    _body({arguments})
'''


def compiled_entries() -> ModuleType:
    """The module with the entry points, compiled here unless they are kept."""
    return module_from(_ENTRIES, uses=_package_hash())


_AHEAD = f"from {__name__} import compiled_entries; compiled_entries()"


@functools.cache
def compile_ahead() -> subprocess.Popen | None:
    """Let another process compile the entry points, which takes ten seconds, unless they are kept
    or this one has no second processor: what else a packet run needs is compiled in the meantime.
    """
    if INTERPRETED or processors() < 2 or not sys.executable:
        return None
    if (compiled_folder(FOLDER) / f"{module_name(_ENTRIES, _package_hash())}{SEAL}").exists():
        return None
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError):  # whoever needs the entry points compiles them
        command = [sys.executable, "-P", "-c", _AHEAD]
        return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    return None


@functools.cache
def entry_points() -> tuple[Callable[[int, float, int], int], Callable[[int, float], None]]:
    """`advance` and `settle` of the engine, compiled unless the engine is interpreted."""
    if INTERPRETED:
        return loop.advance, loop.settle
    if (other := compile_ahead()) is not None:
        other.wait()
    module = compiled_entries()
    return module.advance, module.settle


def _part_source(name: str, part: Part) -> str:
    """Source of a function of plain numbers that calls a part."""
    kinds = {n: n for n, k in part.parameters.items() if k == "record"} | {"s": "simulation"}
    accessors = (f"_{kind}_at = records.{kind}_at\n" for kind in kinds.values())
    arguments = (f"_{kinds[n]}_at({n}, 0)" if n in kinds else n for n in part.parameters)
    types = ("float64" if k == "float" else "int64" for k in part.parameters.values())
    return _PART.format(
        name=name,
        accessors="".join(accessors),
        types=", ".join(types),
        names=", ".join(part.parameters),
        arguments=", ".join(arguments),
    )


@functools.cache
def part_address(name: str) -> int:
    """Address of a part; 0 if the engine is interpreted."""
    if INTERPRETED:
        return 0
    module = module_from(_part_source(name, PARTS[name]), uses=_package_hash())
    return int(module.part.address)


def _needed(kinds: Iterable[int], groups: np.ndarray, ports: np.ndarray) -> Iterator[str]:
    for kind in set(kinds):
        yield from _ENTITIES.get(kind, ())
    for name, parts in _GROUPS.items():
        if groups[name].any():
            yield from parts
    if np.isin(groups["moment"], (r.DEPARTURE, r.TRANSMITTED)).any():
        yield "mark_departure"
    if (ports["depart"] != 0).any():
        yield "judge_heads"
    if ports["written"].any():
        yield "write_numbers"
    if ports["reads"].any():
        yield "read_spacing"
    if (ports["transmitter"] != 0).any():
        yield "serve_fairly"
    if (ports["coupled"] >= 0).any():
        yield "mark_coupled"


def part_addresses(kinds: Iterable[int], groups: np.ndarray, ports: np.ndarray) -> dict[str, int]:
    """Addresses of all parts by name: `report_missing` for those that such a run does not need."""
    addresses = dict.fromkeys(PARTS, part_address("report_missing"))
    return addresses | {name: part_address(name) for name in _needed(kinds, groups, ports)}


def trace_addresses() -> dict[str, int]:
    """Addresses of the parts that write a trace."""
    return {name: part_address(name) for name in ("trace_packet", "trace_sender")}
