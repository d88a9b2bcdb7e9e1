"""Bare pointers to records and numbers, compiled or (with NUMBA_DISABLE_JIT=1) interpreted.

An accessor turns (address, index) into a record of a structured array without counting
references, which is what makes an engine of many small functions fast. It checks nothing and owns
nothing: the arrays must outlive the run, and only the builder hands out addresses.
"""

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic

INTERPRETED = bool(vars(config)["DISABLE_JIT"])
"""Whether the engine runs as plain Python: for debugging, and to prove that both agree."""

# no way in from Python or C: only the entry points are called from outside
_OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_jit: Any = numba.njit(**_OPTIONS)  # pyright: ignore[reportCallIssue]
_jit_inlined: Any = numba.njit(forceinline=True, **_OPTIONS)  # pyright: ignore[reportCallIssue]
_INT64 = ir.IntType(64)
_hooks: dict[int, Callable[[Any], None]] = {}


def compiled(function: Callable) -> Callable:
    """Compile a function of the engine when something compiled first calls it."""
    return _jit(function)


def inlined(function: Callable) -> Callable:
    """Compile a function into each of its callers: for functions that nearly every event calls
    from one line, or that are short. A call costs more than in C; elsewhere only compilation would.
    """
    return _jit_inlined(function)


def record_at(dtype: np.dtype) -> Any:
    """Accessor (address, index) -> record number `index` of an array of `dtype`."""
    size = dtype.itemsize
    if INTERPRETED:
        view = np.ctypeslib.as_ctypes_type(dtype)

        def interpreted(address: int, index: int) -> Any:
            return view.from_address(int(address) + int(index) * size)

        return interpreted
    record = numba.from_dtype(dtype)

    @intrinsic
    def access(typing_context, address, index):
        def generate(context, builder, signature, arguments):
            wide = context.cast(builder, arguments[1], signature.args[1], types.int64)
            offset = builder.mul(wide, ir.Constant(_INT64, size))
            where = builder.add(arguments[0], offset)
            return builder.inttoptr(where, context.get_value_type(record))

        return record(types.int64, index), generate

    return access


def _call_interpreted(hook: int, address: int) -> int:
    _hooks[hook](ctypes.cast(int(address), ctypes.POINTER(ctypes.c_double)))
    return 0


@intrinsic
def _call_compiled(typing_context, hook, address):
    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(_INT64, [_INT64])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(types.int64, types.int64), generate


call: Any = _call_interpreted if INTERPRETED else _call_compiled
"""Call the hook at an address with the address of its block of numbers."""


def _bits_interpreted(value: float) -> int:
    return struct.unpack("<q", struct.pack("<d", value))[0]


@intrinsic
def _bits_compiled(typing_context, value):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], _INT64)

    return types.int64(types.float64), generate


float_bits: Any = _bits_interpreted if INTERPRETED else _bits_compiled
"""The 64 bits of a number, as a whole number."""


def interpreted_hook(function: Callable[[Any], None]) -> int:
    """Number under which `call` finds a plain function; 0 means no hook."""
    number = len(_hooks) + 1
    _hooks[number] = function
    return number
