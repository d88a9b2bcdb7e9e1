"""Loops and branches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.dde.fused.many import joined
from fluidcc.dde.fused.numbers import Elements, known, text

MOST_UNROLLED = 64


def flat(values: Sequence[Elements]) -> list[Any]:
    """All elements of some arrays in turn."""
    return [element for value in values for element in value.flat]


def shaped(elements: Sequence[Any], avals: Sequence[Any]) -> list[Elements]:
    """Arrays of these shapes with the elements in turn."""
    rest, values = list(elements), []
    for aval in avals:
        value = np.empty(int(np.prod(aval.shape)), object)
        value[:] = rest[: value.size]
        rest = rest[value.size :]
        values.append(value.reshape(aval.shape))
    return values


def _types(avals: Sequence[Any]) -> list[Any]:
    return [aval.dtype for aval in avals for _ in range(int(np.prod(aval.shape)))]


def while_loop(to: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.while_loop`."""
    writer, params = to.writer, equation.params
    out, split = [v.aval for v in equation.outvars], params["cond_nconsts"]
    ends = split + params["body_nconsts"]
    tested, used, start = operands[:split], operands[split:ends], operands[ends:]
    types = _types(out)
    names = writer.variables(types)
    writer.assign(names, flat(start), types)
    carry = shaped(names, out)
    on = writer.name("on")
    writer.write(f"truth {on} = {writer.on};")
    with writer.block("for (;;)"), writer.only(on):
        (go,) = to.closed(params["cond_jaxpr"], [*tested, *carry])
        any_goes = joined(to, "reduce_or", go, bool, range(go.ndim)).item()
        left = writer.name("on")  # a name of its own: what the condition said of others was before
        writer.write(f"const truth {left} = {on} & {text(any_goes, bool)};")
        writer.write(f"{on} = {left};")
        writer.write(f"if (!some({left})) break;")
        with writer.only(left):
            new = to.closed(params["body_jaxpr"], [*used, *carry])
            if go.ndim:  # a loop under vmap, in which each goes on for as long as its own condition
                new = [
                    _going(to, go, *values, dtype=aval.dtype)
                    for *values, aval in zip(carry, new, out, strict=True)
                ]
            writer.assign(names, flat(new), types)
    return carry


def _going(to: Any, go: Elements, old: Elements, new: Elements, dtype: Any) -> Elements:
    """New values where a loop goes on, by its leading axes."""
    which = np.broadcast_to(go.reshape(*go.shape, *(1,) * (new.ndim - go.ndim)), new.shape)
    found = np.empty(new.shape, object)
    for at in np.ndindex(new.shape):
        found[at] = to.choice(which[at], (old[at], new[at]), dtype)
    return found


def cond(to: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.cond` and `lax.switch`."""
    writer, (index, *given) = to.writer, operands
    out, branches = [v.aval for v in equation.outvars], equation.params["branches"]
    if not isinstance(index.item(), str):
        place = int(np.clip(int(index.item()), 0, len(branches) - 1))
        return to.closed(branches[place], given)
    types = _types(out)
    names = writer.variables(types)
    for k, branch in enumerate(branches):
        sign = "<=" if k == 0 else ">=" if k == len(branches) - 1 else "=="
        on = writer.let("truth", f"{writer.on} & truth_of({index.item()} {sign} {k})")
        with writer.block(f"if (some({on}))"), writer.only(on):
            writer.assign(names, flat(to.closed(branch, given)), types)
    return shaped(names, out)


def _alike(inside: Sequence[Any], outside: Sequence[Any]) -> int:
    """How many operands or results of a loop have the shape that they have in its body."""
    pairs = zip(inside, outside, strict=True)
    return sum(own.aval.shape == aval.shape for own, aval in pairs)


def scan(to: Any, operands: list[Any], equation: Any) -> list[Any]:
    """`lax.scan`, written out step by step."""
    params = equation.params
    out, count = [v.aval for v in equation.outvars], params["length"]
    if count > MOST_UNROLLED:
        raise ValueError(
            f"a fused kernel cannot be made of a scan of {count} steps, more than {MOST_UNROLLED}: "
            "leave fused=True out"
        )
    body = params["jaxpr"].jaxpr
    split = _alike(body.outvars, out)  # what a row is cut from, or piled up to, has one axis more
    ends = _alike(body.invars, [v.aval for v in equation.invars])
    consts, carry, rows = operands[: ends - split], operands[ends - split : ends], operands[ends:]
    order = range(count)[::-1] if params["reverse"] else range(count)
    found: dict[int, list[Elements]] = {}
    for k in order:
        results = to.closed(params["jaxpr"], [*consts, *carry, *(row[k] for row in rows)])
        carry, found[k] = results[:split], results[split:]
    stacked = [
        np.stack([found[k][i] for k in range(count)]) if count else known(np.zeros(aval.shape))
        for i, aval in enumerate(out[split:])
    ]
    return [*carry, *stacked]
