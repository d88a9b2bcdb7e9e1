"""The engine's two entry points, compiled into the cache of the user."""

import functools
from collections.abc import Callable

from fluidcc.packets.cache import module_from, package_hash
from fluidcc.packets.engine.pointer import INTERPRETED

_TEXT = '''"""Generated: entry points of the packet engine."""
import numba

from fluidcc.packets.engine import loop


@numba.njit("int64(int64, float64, int64)", cache=True, nogil=True, error_model="numpy")
def advance(address, stop, budget):
    return loop.advance(address, stop, budget)


@numba.njit("void(int64, float64)", cache=True, nogil=True, error_model="numpy")
def settle(address, time):
    loop.settle(address, time)
'''


@functools.cache
def entry_points() -> tuple[Callable[[int, float, int], int], Callable[[int, float], None]]:
    """`advance` and `settle` of the engine, compiled unless the engine is interpreted."""
    if INTERPRETED:
        from fluidcc.packets.engine import loop

        return loop.advance, loop.settle
    module = module_from(_TEXT, uses=package_hash())
    return module.advance, module.settle
