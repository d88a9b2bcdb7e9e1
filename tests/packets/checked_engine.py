"""The interpreted engine with every access checked: import it first, with NUMBA_DISABLE_JIT=1.

Records and numbers are found only inside the arrays that a living simulation owns; anything else
is an IndexError. The plain accessors look at no bounds, so this stands for the compiled ones.
"""

import bisect
import ctypes
import weakref
from typing import Any

import numpy as np

from fluidcc.packets.engine import pointer

assert pointer.INTERPRETED
_starts: list[int] = []
_ends: dict[int, int] = {}
DOUBLE = ctypes.sizeof(ctypes.c_double)


def _end_of(address: int) -> int:
    """End of the array that holds an address."""
    place = bisect.bisect_right(_starts, address) - 1
    if place < 0 or address >= _ends[_starts[place]]:
        raise IndexError(f"address {address} is in no array")
    return _ends[_starts[place]]


def record_at(dtype: np.dtype) -> Any:
    """Accessor (address, index) -> record, which raises IndexError outside of the array."""
    view, size = np.ctypeslib.as_ctypes_type(dtype), dtype.itemsize

    def checked(address: int, index: int) -> Any:
        end, where = _end_of(int(address)), int(address) + int(index) * size
        if int(index) < 0 or where + size > end:
            raise IndexError(f"record {index} of {dtype.names} is outside of its array")
        return view.from_address(where)

    return checked


class _Numbers:
    """What a hook sees: the numbers of its block."""

    def __init__(self, address: int) -> None:
        self._address, self._end = address, _end_of(address)

    def _at(self, index: int) -> Any:
        where = self._address + index * DOUBLE
        if index < 0 or where + DOUBLE > self._end:
            raise IndexError(f"number {index} is outside of its block")
        return ctypes.c_double.from_address(where)

    def __getitem__(self, index: int) -> float:
        return self._at(index).value

    def __setitem__(self, index: int, value: float) -> None:
        self._at(index).value = value


def _call(hook: int, address: int) -> int:
    pointer._hooks[hook](_Numbers(int(address)))
    return 0


pointer.record_at = record_at
pointer.call = _call

from fluidcc.packets import build  # noqa: E402 - the engine is to find the accessors above


class _Checked(build.Simulation):
    """A run whose arrays are known by their places."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        kept = [a if a.base is None else a.base for a in self._keep]  # of laws, all numbers
        own = [*self._keep, *kept, *vars(self).values()]
        arrays = [a for a in own if isinstance(a, np.ndarray) and a.nbytes]
        held = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays]
        for start, end in held:
            if start not in _ends:
                bisect.insort(_starts, start)
            _ends[start] = end
        weakref.finalize(self, _forget, [start for start, _ in held])


def _forget(starts: list[int]) -> None:
    for start in starts:
        if _ends.pop(start, None) is not None:
            _starts.remove(start)


from fluidcc.packets import run  # noqa: E402

run.Simulation = _Checked
