"""Parts of the engine that only some runs need: compiled apart, and called by their address.

What every run needs is one compiled function. A part is another, whose address stands in the
simulation's record under `MODULE_FUNCTION`; the builder compiles what a run needs. A part returns
nothing. Its callers name it as any function: interpreted, that is what it is.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from fluidcc.packets.engine.pointer import INTERPRETED, compiled
from fluidcc.packets.engine.records import PART_MISSING, SIMULATION_RECORD

_INT64, _DOUBLE = ir.IntType(64), ir.DoubleType()


class Part(NamedTuple):
    """A function that is compiled apart."""

    module: str  # where it is written
    body: Callable
    parameters: dict[str, str]  # "record", "float" or "int" by name; records by the kind's name

    @property
    def field(self) -> str:
        """Name of its address in the simulation's record."""
        return f"{self.module.rpartition('.')[2]}_{self.body.__name__}"


PARTS: dict[str, Part] = {}
"""All parts whose modules are imported, by their field."""


def _offset(field: str) -> int:
    fields: Any = SIMULATION_RECORD.fields
    return int(fields[field][1])


def _caller(where: Part) -> Any:
    """What calls a part: its arguments as numbers, records by their addresses."""
    kinds = where.parameters.values()
    sent = [types.float64 if kind == "float" else types.int64 for kind in kinds]
    wanted = [_DOUBLE if kind == "float" else _INT64 for kind in kinds]
    offset = _offset(where.field)

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

    names = ("typing_context", *where.parameters)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    told = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    setattr(call, "__signature__", told)  # noqa: B010 - a function has no such attribute by itself
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
        found = Part(function.__module__, function, kinds)
        PARTS[found.field] = found._replace(body=compiled(function))
        return function if INTERPRETED else _caller(found)

    return decorate


@part()
def absent(s):
    """Stand where a part is that this run does not need."""
    s.status = PART_MISSING
