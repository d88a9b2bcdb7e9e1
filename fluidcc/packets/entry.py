"""Compiled functions of the engine: its entry points, and the parts that a run needs."""

import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from fluidcc.packets.cache import module_from, package_hash
from fluidcc.packets.engine import loop
from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.parts import PARTS, Part
from fluidcc.packets.engine.pointer import INTERPRETED

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
}
# by a property of a group of flows
_GROUPS = {
    "sack": ("receive_sack", "send_sack", "reset_sack", "report_blocks"),
    "source_quench": ("send_quench",),
    "loads": ("decode_load",),
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


@functools.cache
def entry_points() -> tuple[Callable[[int, float, int], int], Callable[[int, float], None]]:
    """`advance` and `settle` of the engine, compiled unless the engine is interpreted."""
    if INTERPRETED:
        return loop.advance, loop.settle
    module = module_from(_ENTRIES, uses=package_hash())
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
    module = module_from(_part_source(name, PARTS[name]), uses=package_hash())
    return int(module.part.address)


def _needed(kinds: Iterable[int], groups: np.ndarray, ports: np.ndarray) -> Iterator[str]:
    for kind in set(kinds):
        yield from _ENTITIES.get(kind, ())
    for name, parts in _GROUPS.items():
        if groups[name].any():
            yield from parts
    if np.isin(groups["moment"], (r.DEPARTURE, r.TRANSMITTED)).any():
        yield "mark_departure"
    if (ports["second_class"] != 0).any():
        yield from ("serve_fairly", "arrive_second")


def part_addresses(kinds: Iterable[int], groups: np.ndarray, ports: np.ndarray) -> dict[str, int]:
    """Addresses of all parts by name: `report_missing` for those that such a run does not need."""
    addresses = dict.fromkeys(PARTS, part_address("report_missing"))
    return addresses | {name: part_address(name) for name in _needed(kinds, groups, ports)}


def trace_addresses() -> dict[str, int]:
    """Addresses of the parts that write a trace."""
    return {name: part_address(name) for name in ("trace_packet", "trace_sender")}
