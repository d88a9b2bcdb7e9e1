"""What of the engine is called from outside or by address, compiled into the cache of the user."""

import functools
from collections.abc import Callable

from fluidcc.packets.cache import module_from, package_hash
from fluidcc.packets.engine import loop
from fluidcc.packets.engine.parts import PARTS, Part
from fluidcc.packets.engine.pointer import INTERPRETED

_ENTRIES = '''"""Generated: entry points of the packet engine."""
import numba

from fluidcc.packets.engine import loop


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

_body = PARTS["{field}"].body
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


def _text(part: Part) -> str:
    """What turns a part into a function of plain numbers."""
    kinds = {n: n for n, k in part.parameters.items() if k == "record"} | {"s": "simulation"}
    accessors = (f"_{kind}_at = records.{kind}_at\n" for kind in kinds.values())
    arguments = (
        f"_{kinds[name]}_at({name}, 0)" if name in kinds else name for name in part.parameters
    )
    types = ("float64" if k == "float" else "int64" for k in part.parameters.values())
    return _PART.format(
        field=part.field,
        accessors="".join(accessors),
        types=", ".join(types),
        names=", ".join(part.parameters),
        arguments=", ".join(arguments),
    )


@functools.cache
def part_address(field: str) -> int:
    """Address of a part, compiled unless the engine is interpreted, where it has none."""
    if INTERPRETED:
        return 0
    module = module_from(_text(PARTS[field]), uses=package_hash())
    return int(module.part.address)
