"""Parts of the engine that only some runs need: compiled apart, and called by their address.

What every run needs is one compiled function. A part is another, whose address stands in the
simulation's record under the name of the function; the builder compiles what a run needs. A part
returns nothing. It is called like any function, and when interpreted it is one.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import INTERPRETED, compiled

_INT64, _DOUBLE = ir.IntType(64), ir.DoubleType()


class Part(NamedTuple):
    """A function that is compiled apart."""

    body: Callable
    parameters: dict[str, str]  # "record", "float" or "int" by name; records by the kind's name


PARTS: dict[str, Part] = {}
"""All parts whose modules are imported, by the name of their field in the simulation's record."""


def _caller(name: str, parameters: dict[str, str]) -> Any:
    """The caller of a part: its arguments as numbers, records by their addresses."""
    kinds = parameters.values()
    sent = [types.float64 if kind == "float" else types.int64 for kind in kinds]
    wanted = [_DOUBLE if kind == "float" else _INT64 for kind in kinds]
    fields: Any = r.SIMULATION_RECORD.fields
    offset = int(fields[name][1])

    def call(typing_context, *arguments):
        taken = [
            own if isinstance(own, types.Record) else kind
            for own, kind in zip(arguments, sent, strict=True)
        ]

        def generate(context, builder, signature, values):
            numbers = [
                builder.ptrtoint(value, kind) if isinstance(own, types.Record) else value
                for value, own, kind in zip(values, signature.args, wanted, strict=True)
            ]
            place = builder.add(numbers[0], ir.Constant(_INT64, offset))
            address = builder.load(builder.inttoptr(place, _INT64.as_pointer()))
            target = ir.FunctionType(ir.VoidType(), wanted).as_pointer()
            builder.call(builder.inttoptr(address, target), numbers)
            return context.get_dummy_value()

        return types.void(*taken), generate

    names = ("typing_context", *parameters)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    setattr(call, "__signature__", signature)  # noqa: B010 - functions have none by themselves
    return intrinsic(call)


def part(*, records: str = "", floats: str = "") -> Callable[[Callable], Any]:
    """Compile a function of the engine apart.

    The first parameter is the simulation; `records` and `floats` name the parameters that are
    records, called by their kind, and numbers with a fraction. All others are whole numbers.
    """

    def decorate(function: Callable) -> Any:
        kinds = dict.fromkeys(inspect.signature(function).parameters, "int")
        kinds |= dict.fromkeys(["s", *records.split()], "record")
        kinds |= dict.fromkeys(floats.split(), "float")
        name = function.__name__
        PARTS[name] = Part(compiled(function), kinds)
        return function if INTERPRETED else _caller(name, kinds)

    return decorate


@part()
def report_missing(s):
    """End the run: it called a part that the builder left out."""
    s.status = r.PART_MISSING
