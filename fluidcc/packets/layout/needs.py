"""Which parts of the engine a run needs: the others are not compiled."""

from collections.abc import Iterable, Iterator

import numpy as np

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.parts import PARTS
from fluidcc.packets.entry import part_address

# by the kinds of entities
_ENTITIES = {
    r.QUENCH: ("senders_quenched",),
    r.TIMER: ("ticks_tick", "ticks_catch_up"),
    r.ROUTER: ("routers_rewrite",),
    r.SOURCE: ("sources_come",),
    r.SESSION: ("sources_proceed", "sources_conclude"),
    r.CROSS: ("datagrams_cross", "datagrams_leave"),
    r.CALLS: ("calls_ring",),
    r.CALL: ("calls_speak", "datagrams_leave"),
}
# by a property of a group of flows
_GROUPS = {
    "sack": ("sack_take", "sack_fill", "sack_restart", "blocks_report_blocks"),
    "quenched": ("signals_quench",),
    "loads": ("loads_decode",),
}
_BESIDE = ("ports_serve_fairly", "ports_arrive_beside")
_TRACE = ("traces_note", "traces_note_sender")


def _needed(kinds: Iterable[int], groups: np.ndarray, ports: np.ndarray) -> Iterator[str]:
    for kind in set(kinds):
        yield from _ENTITIES.get(kind, ())
    for name, parts in _GROUPS.items():
        if groups[name].any():
            yield from parts
    if np.isin(groups["moment"], (r.DEPARTURE, r.TRANSMITTED)).any():
        yield "signals_mark_front"
    if (ports["beside"] != 0).any():
        yield from _BESIDE


def addresses(kinds: Iterable[int], groups: np.ndarray, ports: np.ndarray) -> dict[str, int]:
    """Addresses of all parts, by field of the simulation's record, for such a run."""
    found = dict.fromkeys(PARTS, part_address("parts_absent"))
    return found | {field: part_address(field) for field in _needed(kinds, groups, ports)}


def trace_addresses() -> dict[str, int]:
    """Addresses of the parts that write a trace."""
    return {field: part_address(field) for field in _TRACE}
