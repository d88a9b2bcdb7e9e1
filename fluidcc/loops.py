"""Array programs of JAX as loops that Numba compiles, for a step that is repeated very often.

A step on short arrays takes XLA some hundred calls, each of which costs more than its arithmetic.
Here its operations, as JAX records them, are put into as few loops as they need, one pass over the
elements each, in one function that repeats the step by itself. Every array has one axis that is
longer than 1; long arrays, which are rings of rows, are read at computed places and written by
rows, in place. Numbers are doubles, whole ones of 64 bits or unsigned ones of 32; nothing is said
of what follows from a number that is not one.
"""

import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import binding, ir

from fluidcc.folders import SHOWING, compiled_folder, find_kept, fingerprint, write_kept
from fluidcc.machine import instructions
from fluidcc.programs import leaves

_FOLDER, _ENDING = "loops", ".step"
_UNSIGNED = 0xFFFFFFFF
_SAME = {"broadcast_in_dim", "reshape", "squeeze", "expand_dims"}
_CALLS = {"pjit", "jit", "closed_call", "custom_jvp_call", "custom_vjp_call", "core_call"}
_REDUCTIONS = {"reduce_sum", "reduce_max", "reduce_min", "reduce_or", "argmax"}
_ORDERED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_MATH = {"floor": "llvm.floor.f64", "ceil": "llvm.ceil.f64", "sqrt": "llvm.sqrt.f64",
         "abs": "llvm.fabs.f64", "round": "llvm.rint.f64",
         "exp": "exp", "log": "log", "expm1": "expm1", "log1p": "log1p", "pow": "pow",
         "tanh": "tanh"}  # fmt: skip
_ELEMENTS = {"add", "sub", "mul", "div", "max", "min", "and", "or", "xor", "not", "neg", "rem",
             "sign", "square", "select_n", "clamp", "shift_right_logical", "shift_left",
             "stop_gradient", "copy", *_ORDERED, *_MATH}  # fmt: skip


class NotInLoopsError(Exception):
    """A program that loops cannot do."""


@dataclasses.dataclass(eq=False)
class _Value:
    """A number, a vector, or the version of a ring."""

    size: int
    kind: str  # f, i, u, b
    what: str = "element"  # literal, memory, element, read, cumsum, part, reduced
    operation: str = ""
    sources: tuple["_Value", ...] = ()
    stage: int = 0
    number: Any = None  # of a literal; the power, stride or start of others
    base: Any = None  # buffer and place of what is in memory
    leaf: int = -1  # of the carry
    ring: Any = None  # that is read
    readers: "_Readers" = dataclasses.field(default_factory=lambda: _Readers())
    stored: bool = False  # its elements are needed after its loop

    @property
    def computed(self) -> bool:
        """Whether it is computed element by element."""
        return self.what in ("element", "read", "cumsum")

    @property
    def loop(self) -> tuple[int, int]:
        """Place, two in each stage, and length of the loop that computes it."""
        if self.what == "reduced":
            return 2 * self.stage - 1, self.sources[0].size
        return 2 * self.stage + (self.what == "cumsum"), self.size


class _Readers(list):
    """What reads an array, until it is written."""

    closed = False

    def append(self, reader: _Value) -> None:
        if self.closed:
            raise NotInLoopsError("an array that is read after another version of it was written")
        super().append(reader)


def _kind(dtype: Any) -> str:
    found = np.dtype(dtype)
    if found.kind not in "fiub" or (found.kind == "u" and found.itemsize != 4):
        raise NotInLoopsError(f"numbers of type {found}")
    return found.kind


def _ends(kind: str) -> tuple[Any, Any]:
    """The lowest and the highest number of a kind."""
    known = {"f": (-np.inf, np.inf), "b": (False, True)}
    return known.get(kind, (-(2**63), 2**63 - 1))


def _literal(value: Any, kind: str) -> _Value:
    return _Value(1, kind, "literal", number=np.asarray(value).item())


class _Program:
    """The operations of a program, ordered into stages.

    Within a stage come concatenations, numbers, loops over vectors, loops for their sums, rows that
    are written. A sum is known in the next stage. In loops over vectors no element depends on
    another, so that a processor takes several at once; sums add one after the other.
    """

    def __init__(self, held: int) -> None:
        self.values: list[_Value] = []  # computed, in order
        self.rows: list[tuple[int, _Value, _Value, _Value, tuple[int, int]]] = []
        self.joined: list[tuple[_Value, list[tuple[_Value, int]]]] = []
        self.work = 0
        self.env: dict[Any, _Value] = {}
        self.constants: list[np.ndarray] = []
        self._held = held

    def of(self, atom: Any) -> _Value:
        """The value of a variable or a literal."""
        return self._constant(atom.val) if hasattr(atom, "val") else self.env[atom]

    def _constant(self, value: Any) -> _Value:
        array = np.asarray(value)
        kind = _kind(array.dtype)
        if array.size == 1:
            return _literal(array, kind)
        place = self._held + sum(c.size for c in self.constants)
        self.constants.append(array.astype(float).ravel())
        return _Value(array.size, kind, "memory", base=("h", place))

    def _ready(self, s: _Value, size: int) -> int:
        """First stage in which a loop over `size` elements may use a value."""
        known = s.what in ("memory", "literal") or (s.size in (size, 1) and s.what != "cumsum")
        return s.stage if known else s.stage + 1

    def _compute(
        self, size: int, kind: str, operation: str, sources: Sequence[_Value], number: Any = None,
        ring: _Value | None = None, what: str = "element",
    ) -> _Value:  # fmt: skip
        if what == "element" and any(s.size not in (1, size) for s in sources):
            raise NotInLoopsError(f"{operation} of arrays that are broadcast to {size} elements")
        value = _Value(size, kind, what, operation, tuple(sources), number=number, ring=ring)
        value.stage = max([0, *(self._ready(s, size) for s in sources)])
        if ring is not None:
            value.stage = max(value.stage, ring.stage)
            ring.readers.append(value)
        self.values.append(value)
        for s in sources:
            if s.what == "memory":
                s.readers.append(value)
        return value

    def run(self, jaxpr: Any, constants: Sequence[Any]) -> None:
        """Add the operations of a program."""
        self.env.update(zip(jaxpr.constvars, map(self._constant, constants), strict=True))
        for eqn in jaxpr.eqns:
            name, params = eqn.primitive.name, eqn.params
            args = [self.of(atom) for atom in eqn.invars]
            if name in _CALLS:
                inner = params.get("jaxpr") or params["call_jaxpr"]
                body = getattr(inner, "jaxpr", inner)
                outer, self.env = self.env, dict(zip(body.invars, args, strict=True))
                self.run(body, getattr(inner, "consts", ()))
                results = [self.of(atom) for atom in body.outvars]
                self.env = outer | dict(zip(eqn.outvars, results, strict=True))
                continue
            shapes = [atom.aval.shape for atom in eqn.invars]
            out = eqn.outvars[0].aval
            _check(name, params, shapes)
            self.env[eqn.outvars[0]] = self._result(name, params, args, shapes, out)

    def _result(self, name: str, params: Any, args: list[_Value], shapes: list, out: Any) -> _Value:
        size, kind = int(np.prod(out.shape)), _kind(out.dtype)
        if size == 0 or (name in _REDUCTIONS and 0 in shapes[0]):
            low, high = _ends(kind)
            return _literal({"reduce_max": low, "reduce_min": high}.get(name, 0), kind)
        if name in _SAME:
            if args[0].size not in (size, 1):
                raise NotInLoopsError(f"{name} of {args[0].size} to {size} elements")
            return args[0]
        if name in _ELEMENTS:
            return self._compute(size, kind, name, args)
        if name == "integer_pow":
            power = params["y"]
            return self._compute(size, kind, name, args, power) if power else _literal(1, kind)
        if name == "convert_element_type":
            narrow = np.dtype(out.dtype).itemsize == 4
            same = args[0].kind == kind
            return args[0] if same else self._compute(size, kind, name, args, narrow)
        if name == "iota":
            along = out.shape[params["dimension"]] == size and size > 1
            return self._compute(size, kind, name, []) if along else _literal(0, kind)
        if name in _REDUCTIONS:
            count = int(np.prod(shapes[0])) // size
            if args[0].size == 1:  # all elements are alike
                if name == "argmax":
                    return _literal(0, kind)
                sums = name == "reduce_sum" and count > 1
                factor = _literal(count, kind)
                return self._compute(1, kind, "mul", [args[0], factor]) if sums else args[0]
            if size != 1:
                if size == args[0].size:
                    return _literal(0, kind) if name == "argmax" else args[0]
                raise NotInLoopsError(f"{name} of {args[0].size} to {size} elements")
            stage = self._ready(args[0], args[0].size) + 1
            value = _Value(1, kind, "reduced", name, (args[0],), stage)
            self.values.append(value)
            if args[0].what == "memory":
                args[0].readers.append(value)
            return value
        if name == "cumsum":
            still = shapes[0][params["axis"]] == 1
            return args[0] if still else self._compute(size, kind, name, args, what="cumsum")
        if name == "slice":
            strides = [int(np.prod(shapes[0][k + 1 :])) for k in range(len(shapes[0]))]
            first = sum(a * b for a, b in zip(params["start_indices"], strides, strict=True))
            return self._part(args[0], first, size, kind)
        if name == "dynamic_slice":
            if args[0].size in (1, size):
                return args[0]
            width = int(np.prod(shapes[0][1:]))
            place = self._within(args[1], shapes[0][0] - size // width)
            return self._read(args[0], place, size, kind, width)
        if name == "gather":
            return self._read(args[0], args[1], size, kind, 0)
        if name == "dynamic_update_slice":
            place = self._within(args[2], shapes[0][0] - shapes[1][0])
            widths = (int(np.prod(shapes[0][1:])), int(np.prod(shapes[1])))
            return self._write_row(args[0], args[1], place, widths)
        if name == "concatenate":
            return self._join(
                [(a, int(np.prod(s))) for a, s in zip(args, shapes, strict=True)], kind
            )
        raise NotInLoopsError(f"the operation {name}")

    def _within(self, place: _Value, last: int) -> _Value:
        """A place that is moved into an array."""
        ends = _literal(0, place.kind), _literal(last, place.kind)
        return self._compute(1, place.kind, "clamp", (ends[0], place, ends[1]))

    def _read(self, ring: _Value, place: _Value, size: int, kind: str, width: int) -> _Value:
        """Elements of an array in memory: at places, or of the row at a place."""
        if ring.what != "memory":
            raise NotInLoopsError("a computed place in a computed array")
        return self._compute(size, kind, "read", [place], width, ring, "read")

    def _part(self, source: _Value, first: int, size: int, kind: str) -> _Value:
        if source.size in (1, size):
            return source
        if source.what == "memory" and source.base is not None:
            buffer, place = source.base
            part = _Value(size, kind, "memory", base=(buffer, place + first), stage=source.stage)
            part.readers = source.readers
            return part
        if source.what == "part":
            return dataclasses.replace(
                source, size=size, number=source.number + first, readers=_Readers()
            )
        source.stored = True
        return _Value(size, kind, "part", sources=(source,), number=first, stage=source.stage + 1)

    def _join(self, parts: list[tuple[_Value, int]], kind: str) -> _Value:
        parts = [(value, size) for value, size in parts if size]
        if len(parts) == 1:
            return parts[0][0]
        size = sum(size for _, size in parts)
        whole = _Value(size, kind, "memory", base=("w", self.work))
        whole.stage = 1 + max(value.stage for value, _ in parts)
        self.work += size
        self.joined.append((whole, parts))
        for value, _ in parts:
            value.stored = True
            value.readers.append(whole)
        return whole

    def _write_row(
        self, ring: _Value, row: _Value, place: _Value, widths: tuple[int, int]
    ) -> _Value:
        if ring.what != "memory" or ring.base is None or ring.base[0] == "h":
            raise NotInLoopsError("a row written to a computed or a constant array")
        if not widths[1]:
            return ring
        last = (r.loop[0] // 2 for r in ring.readers)
        stage = max([ring.stage, row.stage, place.stage, *last])
        row.stored = True
        after = _Value(ring.size, ring.kind, "memory", base=ring.base, leaf=ring.leaf)
        after.stage = stage + 1
        self.rows.append((stage, after, row, place, widths))
        row.readers.append(after)
        ring.readers.append(after)  # which fails if it has been written before
        ring.readers.closed = True
        return after


def _check(name: str, params: Any, shapes: list) -> None:
    """Raise NotInLoopsError if what an operation takes does not lie side by side in memory."""
    rows: Sequence[int] = ()
    if name == "slice":
        ends = params["start_indices"], params["limit_indices"]
        rows = [b - a for a, b in zip(*ends, strict=True)]
        whole = all(k == 1 for k in params["strides"] or ())
    elif name == "dynamic_slice":
        rows, whole = params["slice_sizes"], list(params["slice_sizes"][1:]) == list(shapes[0][1:])
    elif name == "dynamic_update_slice":
        whole = shapes[1][1:] == shapes[0][1:]
    elif name == "gather":
        whole = len(shapes[0]) == 1 and params["slice_sizes"] == (1,)
        whole = whole and "PROMISE" in str(params["mode"]).upper()
    elif name == "concatenate":
        whole = all(k == 1 for shape in shapes for k in shape[: params["dimension"]])
    elif name == "cumsum":
        along = shapes[0][params["axis"]]
        whole = along in (1, int(np.prod(shapes[0]))) and not params["reverse"]
    elif name == "round":
        whole = int(params["rounding_method"]) == 1  # to the nearest even number
    else:
        return
    if name == "slice":
        first = next((j for j, k in enumerate(rows) if k != 1), len(rows))
        whole = whole and list(rows[first + 1 :]) == list(shapes[0][first + 1 :])
    if not whole:
        raise NotInLoopsError(f"the operation {name} with {params}")


_NUMBER, _WHOLE, _YES = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
_DISTINCT = "distinct "  # begins the name of a node of metadata that is unlike any other
_TYPES = {"f": _NUMBER, "i": _WHOLE, "u": _WHOLE, "b": _YES}


def _refer_to_itself(node: re.Match) -> str:
    """The text of a node of metadata that is unlike any other, and names itself if it is a list."""
    name, rest = node.groups()
    return f"{name} = distinct !{{ {name}, {rest} }}" if rest else f"{name} = distinct !{{}}"


class _Writer:
    """Writes a program as a function of LLVM that repeats it."""

    def __init__(self, program: _Program) -> None:
        self._program = program
        self.module = ir.Module("loops")
        pointer = ir.PointerType(_NUMBER)
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, _WHOLE])
        self._function = ir.Function(self.module, kind, "repeat")
        for each in self._function.args[:3]:
            each.add_attribute("noalias")
        self._buffers = dict(zip("hcw", self._function.args[:3], strict=True))
        self._builder: Any = ir.IRBuilder(self._function.append_basic_block())
        self._known: dict[_Value, Any] = {}
        self._group: Any = None  # of the accesses in a parallel loop

    @contextlib.contextmanager
    def _loop(
        self, count: Any, before: Sequence[Any] = (), *, parallel: bool = False
    ) -> Iterator[tuple[Any, list]]:
        """A loop, with its index and what it carries along from `before`; its body fills `after`.

        On exit the carried values are in the place of those given. In a `parallel` loop no pass
        reads what another writes.
        """
        builder = self._builder
        entry = builder.block
        body = self._function.append_basic_block()
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(_WHOLE)
        index.add_incoming(ir.Constant(_WHOLE, 0), entry)
        carried = [builder.phi(value.type) for value in before]
        for phi, value in zip(carried, before, strict=True):
            phi.add_incoming(value, entry)
        after: list[Any] = list(carried)
        if parallel:
            self._group = self.module.add_metadata([f"{_DISTINCT}{len(self.module.metadata)}"])
        yield index, after
        following = builder.add(index, ir.Constant(_WHOLE, 1))
        index.add_incoming(following, builder.block)
        for phi, value in zip(carried, after, strict=True):
            phi.add_incoming(value, builder.block)
        last = self._function.append_basic_block()
        more = builder.icmp_signed("<", following, count)
        branch = builder.cbranch(more, body, last)
        if parallel:
            accesses = self.module.add_metadata(["llvm.loop.parallel_accesses", self._group])
            own = f"{_DISTINCT}{len(self.module.metadata)}"
            branch.set_metadata("llvm.loop", self.module.add_metadata([own, accesses]))
            self._group = None
        builder.position_at_end(last)

    def _at(self, base: tuple[str, int], *more: Any) -> Any:
        place: Any = ir.Constant(_WHOLE, base[1])
        for each in more:
            place = self._builder.add(place, each)
        return self._builder.gep(self._buffers[base[0]], [place])

    def _load(self, base: tuple[str, int], kind: str, *more: Any) -> Any:
        value = self._in_group(self._builder.load(self._at(base, *more)))
        if kind in "iu":
            return self._builder.fptosi(value, _WHOLE)
        if kind == "b":
            return self._builder.fcmp_unordered("!=", value, ir.Constant(_NUMBER, 0.0))
        return value

    def _store(self, value: Any, kind: str, base: tuple[str, int], *more: Any) -> None:
        if kind in "iu":
            value = self._builder.sitofp(value, _NUMBER)
        elif kind == "b":
            value = self._builder.uitofp(value, _NUMBER)
        self._in_group(self._builder.store(value, self._at(base, *more)))

    def _in_group(self, access: Any) -> Any:
        """An access to memory, in the access group of the parallel loop that is being written."""
        if self._group is not None:
            access.set_metadata("llvm.access.group", self._group)
        return access

    def _element(self, s: _Value, index: Any) -> Any:
        """An element of a value, in a loop or outside of any."""
        if s in self._known:
            return self._known[s]
        if s.what == "literal":
            return ir.Constant(_TYPES[s.kind], s.number)
        base, more = s.base, [] if s.size == 1 or index is None else [index]
        if s.what == "part":
            (source,) = s.sources
            base = (source.base[0], source.base[1] + s.number)
        if base is None:
            raise NotInLoopsError(f"an element of {s.operation} beyond its loop")
        return self._load(base, s.kind, *more)

    def _compute(self, v: _Value, index: Any) -> Any:
        b = self._builder
        args = [self._element(s, index) for s in v.sources]
        kind = v.sources[0].kind if v.sources else v.kind
        name = v.operation
        if v.what == "read":
            place = args[0]
            if v.number:  # a row
                place = b.mul(place, ir.Constant(_WHOLE, v.number))
                place = place if index is None else b.add(place, index)
            return self._load(v.ring.base, v.kind, place)
        if name == "iota":
            return index if v.kind in "iu" else b.sitofp(index, _NUMBER)
        if name == "convert_element_type":
            return self._convert(args[0], kind, v.kind, bool(v.number))
        if name in _ORDERED:
            return self._compare(_ORDERED[name], kind, *args)
        if name in ("max", "min"):
            sign = ">" if name == "max" else "<"
            return b.select(self._compare(sign, kind, *args), *args)
        if name == "clamp":
            low, x, high = args
            x = b.select(self._compare("<", kind, x, low), low, x)
            return b.select(self._compare(">", kind, x, high), high, x)
        if name == "select_n":
            return b.select(args[0], args[2], args[1])
        if name == "integer_pow":
            return self._power(kind, args[0], v.number)
        if name in _MATH and not (name == "abs" and kind != "f"):
            kinds = ir.FunctionType(_NUMBER, [_NUMBER] * len(args))
            function = self.module.globals.get(_MATH[name]) or ir.Function(
                self.module, kinds, _MATH[name]
            )
            function.attributes.add("nounwind")
            numbers = [self._convert(a, s.kind, "f") for a, s in zip(args, v.sources, strict=True)]
            return b.call(function, numbers)
        return self._arithmetic(name, kind, args)

    def _compare(self, sign: str, kind: str, x: Any, y: Any) -> Any:
        b = self._builder
        if kind == "f":
            return (b.fcmp_unordered if sign == "!=" else b.fcmp_ordered)(sign, x, y)
        return (b.icmp_unsigned if kind == "b" else b.icmp_signed)(sign, x, y)

    def _arithmetic(self, name: str, kind: str, args: list[Any]) -> Any:
        b = self._builder
        if name in ("stop_gradient", "copy"):
            return args[0]
        if name == "square":
            name, args = "mul", args * 2
        if name == "neg" and kind == "f":
            return b.fneg(args[0])
        if name == "neg":
            name, args = "sub", [ir.Constant(_WHOLE, 0), *args]
        if name == "not":
            name, args = "xor", [args[0], ir.Constant(args[0].type, -1)]
        if name == "sign" and kind == "f":
            zero = ir.Constant(_NUMBER, 0.0)
            up, down = (b.uitofp(b.fcmp_ordered(s, args[0], zero), _NUMBER) for s in "><")
            return b.fsub(up, down)
        of_floats = {"add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv, "rem": b.frem}
        of_wholes = {
            "add": b.add, "sub": b.sub, "mul": b.mul, "div": b.sdiv, "rem": b.srem,
            "and": b.and_, "or": b.or_, "xor": b.xor,
        }  # fmt: skip
        if kind == "u":
            of_wholes |= {"shift_right_logical": b.lshr, "shift_left": b.shl}
        known = of_floats if kind == "f" else of_wholes
        if name not in known:
            raise NotInLoopsError(f"the operation {name} of numbers of kind {kind}")
        value = known[name](*args)
        return b.and_(value, ir.Constant(_WHOLE, _UNSIGNED)) if kind == "u" else value

    def _convert(self, value: Any, before: str, after: str, narrow: bool = False) -> Any:
        """A number as one of another kind; `narrow` ones of 32 bits, which processors convert
        several at once.
        """
        b = self._builder
        if before == after:
            return value
        if before == "b":
            return b.uitofp(value, _NUMBER) if after == "f" else b.zext(value, _WHOLE)
        if before == "u" and after == "f":  # put behind the leading digit of 2 ** 52
            power = ir.Constant(_NUMBER, 2.0**52)
            return b.fsub(b.bitcast(b.or_(value, b.bitcast(power, _WHOLE)), _NUMBER), power)
        if after == "f":
            return b.sitofp(value, _NUMBER)
        if after == "b":
            zero = ir.Constant(_TYPES[before], 0)
            unequal = b.fcmp_unordered if before == "f" else b.icmp_signed
            return unequal("!=", value, zero)
        if before == "f" and narrow and after == "i":
            return b.sext(b.fptosi(value, ir.IntType(32)), _WHOLE)
        if before == "f":
            value = b.fptosi(value, _WHOLE)
        return b.and_(value, ir.Constant(_WHOLE, _UNSIGNED)) if after == "u" else value

    def _power(self, kind: str, value: Any, power: int) -> Any:
        b, result = self._builder, value
        for _ in range(abs(power) - 1):
            result = self._arithmetic("mul", kind, [result, value])
        return result if power > 0 else b.fdiv(ir.Constant(_NUMBER, 1.0), result)

    def write(self, outputs: list[_Value], inputs: list[_Value]) -> None:
        """Write the function, which repeats carry = step(held, carry)."""
        last = self._place(outputs, inputs)
        program, b = self._program, self._builder
        stages = [v.stage for v in program.values] + [row[0] for row in program.rows]
        stages += [whole.stage for whole, _ in program.joined]
        with self._loop(self._function.args[3]):
            for stage in range(max(stages, default=0) + 1):
                self._write_stage(stage)
            news = []
            for k, (value, leaf) in enumerate(last):  # before their places change
                if value.size == 1:
                    self._known[value] = self._element(value, None)
                elif value.what == "memory" and value.base[0] == "c":
                    copy = dataclasses.replace(value, base=("w", program.work))
                    program.work += value.size
                    with self._loop(ir.Constant(_WHOLE, value.size)) as (index, _):
                        self._store(self._element(value, index), value.kind, copy.base, index)
                    last[k] = copy, leaf
            for value, leaf in last:
                if leaf.size == 1:
                    news.append((self._element(value, None), value.kind, leaf))
                    continue
                with self._loop(ir.Constant(_WHOLE, leaf.size)) as (index, _):
                    self._store(self._element(value, index), value.kind, leaf.base, index)
            for new, kind, leaf in news:
                self._store(new, kind, leaf.base)
        b.ret_void()

    def text(self) -> str:
        """The module for LLVM, in which nodes of their own refer to themselves."""
        node = rf'^(!\d+) = !{{ !"{_DISTINCT}\d+"(?:, (.*))? }}$'
        text = re.sub(node, _refer_to_itself, str(self.module), flags=re.MULTILINE)
        if f'!"{_DISTINCT}' in text:
            raise NotInLoopsError("metadata in the words of this version of llvmlite")
        return text

    def _place(self, outputs: list[_Value], inputs: list[_Value]) -> list[tuple[_Value, _Value]]:
        """Give stored values their memory; the outputs that are written at the end, with theirs."""
        last = []
        for value, leaf in zip(outputs, inputs, strict=True):
            if value.what == "memory" and leaf.size:
                value.readers.append(value)  # at the end, which fails if it has been written
        for value, leaf in zip(outputs, inputs, strict=True):
            same = value.what == "memory" and (value.base, value.size) == (leaf.base, leaf.size)
            if leaf.size == 0 or same:
                continue
            late = leaf.readers.closed or any(
                r.what in ("memory", "read")
                or r.loop[0] > value.loop[0]
                or r.loop[1] != value.size
                or any(s.readers is leaf.readers and s.size != leaf.size for s in r.sources)
                for r in leaf.readers
            )
            if value.computed and value.size == leaf.size > 1 and value.base is None and not late:
                value.base, value.stored = leaf.base, True  # its own place at once
            else:
                value.stored = True
                last.append((value, leaf))
        program = self._program
        for value in program.values:
            for s in value.sources:
                if s.computed and s.loop[0] < value.loop[0]:
                    s.stored = True
        for value in program.values:
            if value.stored and value.computed and value.base is None and value.size > 1:
                value.base = ("w", program.work)
                program.work += value.size
        return last

    def _write_stage(self, stage: int) -> None:
        program = self._program
        for whole, parts in program.joined:
            if whole.stage != stage:
                continue
            buffer, place = whole.base
            for value, size in parts:
                with self._loop(ir.Constant(_WHOLE, size)) as (index, _):
                    self._store(self._element(value, index), value.kind, (buffer, place), index)
                place += size
        own = [v for v in program.values if v.stage == stage and v.computed]
        for v in (v for v in own if v.size == 1):
            self._known[v] = self._compute(v, None)
        sums = [v for v in program.values if v.what == "reduced" and v.stage == stage + 1]
        vectors = [v for v in own if v.size > 1 and v.what != "cumsum"]
        for size in dict.fromkeys(v.size for v in vectors):
            self._write_elements(size, [v for v in vectors if v.size == size])
        sums += [v for v in own if v.what == "cumsum"]
        for size in dict.fromkeys(v.loop[1] for v in sums):
            self._write_sums(size, [v for v in sums if v.loop[1] == size])
        for row_stage, after, row, place, (width, count) in program.rows:
            if row_stage != stage:
                continue
            first = self._element(place, None)
            first = self._builder.mul(first, ir.Constant(_WHOLE, width))
            with self._loop(ir.Constant(_WHOLE, count)) as (index, _):
                at = [first, index] if count > 1 else [first]
                self._store(self._element(row, index), row.kind, after.base, *at)

    def _write_elements(self, size: int, vectors: list[_Value]) -> None:
        with self._loop(ir.Constant(_WHOLE, size), parallel=True) as (index, _):
            for v in vectors:
                self._known[v] = self._compute(v, index)
            for v in vectors:  # at last: others read what was in its place before
                if v.stored:
                    self._store(self._known[v], v.kind, v.base, index)
        for v in vectors:  # beyond their loop they are in memory
            del self._known[v]

    def _write_sums(self, size: int, sums: list[_Value]) -> None:
        b, carried, places = self._builder, [], []
        for v in sums:
            low, high = _ends(v.kind)
            begin = {"reduce_max": low, "reduce_min": high}.get(v.operation, 0)
            places.append(len(carried))
            carried.append(ir.Constant(_TYPES[v.kind], begin))
            if v.operation == "argmax":
                carried.append(ir.Constant(_NUMBER, -np.inf))
        with self._loop(ir.Constant(_WHOLE, size), carried) as (index, after):
            for v, place in zip(sums, places, strict=True):
                here = self._element(v.sources[0], index)
                if v.operation == "argmax":
                    here = self._convert(here, v.sources[0].kind, "f")
                    above = b.fcmp_ordered(">", here, after[place + 1])
                    after[place] = b.select(above, index, after[place])
                    after[place + 1] = b.select(above, here, after[place + 1])
                elif v.operation == "reduce_or":
                    after[place] = b.or_(after[place], here)
                elif v.operation in ("reduce_sum", "cumsum"):
                    after[place] = self._arithmetic("add", v.kind, [after[place], here])
                else:
                    sign = ">" if v.operation == "reduce_max" else "<"
                    first = self._compare(sign, v.kind, after[place], here)
                    after[place] = b.select(first, after[place], here)
            for v, place in zip(sums, places, strict=True):  # at last, as above
                if v.what == "cumsum" and v.stored:
                    self._store(after[place], v.kind, v.base, index)
        for v, place in zip(sums, places, strict=True):
            if v.what == "reduced":
                self._known[v] = after[place]


def _written(step: Callable[[Any, Any], Any], held: Any, carry: Any) -> tuple[str, int, np.ndarray]:
    """Text for LLVM, the numbers that it needs room for, and constants behind those of `held`."""
    from fluidcc.arrays import jax

    closed = jax.make_jaxpr(step)(held, carry)
    variables, few = closed.jaxpr.invars, len(jax.tree.leaves(held))
    sizes = [int(np.prod(v.aval.shape)) for v in variables]
    program = _Program(sum(sizes[:few]))
    places = [0, *np.cumsum(sizes[:few]).tolist()][:few] + [0, *np.cumsum(sizes[few:]).tolist()][
        :-1
    ]
    inputs = []
    for k, (variable, size, place) in enumerate(zip(variables, sizes, places, strict=True)):
        base = ("h" if k < few else "c", place)
        inputs.append(_Value(size, _kind(variable.aval.dtype), "memory", base=base, leaf=k - few))
        program.env[variable] = inputs[-1]
    program.run(closed.jaxpr, closed.consts)
    writer = _Writer(program)
    writer.write([program.of(v) for v in closed.jaxpr.outvars], inputs[few:])
    return (
        writer.text(),
        max(program.work, 1),
        np.concatenate([np.zeros(0), *program.constants]),
    )


@functools.cache
def _machine() -> binding.TargetMachine:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features().flatten()
    return target.create_target_machine(binding.get_host_cpu_name(), features, opt=2)


def _object(text: str) -> bytes:
    """Machine code of a text for LLVM."""
    machine = _machine()
    module = binding.parse_assembly(text)
    module.verify()
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


_loaded: list[Any] = []  # engines, whose code is only good as long as they live


def _function(code: bytes) -> Any:
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    numbers = ctypes.POINTER(ctypes.c_double)
    kind = ctypes.CFUNCTYPE(None, numbers, numbers, numbers, ctypes.c_int64)
    return kind(engine.get_function_address("repeat"))


class Loops:
    """A step as machine code, written by `write` or made of a step.

    Examples
    --------
    >>> import numpy as np
    >>> from fluidcc.loops import Loops
    >>> loops = Loops.of(lambda held, carry: carry + held, np.float64(2.0), np.zeros(3))
    >>> carry = loops.pack(np.zeros(3))
    >>> loops.repeat(loops.pack(np.float64(2.0)), carry, 5)
    >>> carry
    array([10., 10., 10.])
    """

    def __init__(self, code: bytes, work: int, constants: np.ndarray) -> None:
        self._data = {"code": np.frombuffer(code, np.uint8), "work": work, "constants": constants}
        self._work, self._constants, self._code = work, constants, _function(code)

    @classmethod
    def of(cls, step: Callable[[Any, Any], Any], held: Any, carry: Any) -> "Loops":
        """The code for carry = step(held, carry); only structures and shapes of these count.

        Raises NotInLoopsError for an operation that loops cannot do.
        """
        text, work, constants = _written(step, held, carry)
        return cls(_object(text), work, constants)

    @classmethod
    def kept(cls, key: Any, make: Callable[[], "Loops"]) -> "Loops":
        """The code that belongs to a key, from its file; made, and kept, if there is none.

        The key holds everything that the code depends on but this package; code for classes of
        others is not kept.
        """
        text = repr(key)
        if not _is_ours(key):
            return make()
        folder = compiled_folder(_FOLDER)
        surroundings = f"{fingerprint(*SHOWING)} {instructions()} {binding.llvm_version_info}"
        stem = f"step_{hashlib.sha256(f'{surroundings} {text}'.encode()).hexdigest()[:32]}"
        if found := find_kept(folder, stem, _ENDING):
            with np.load(io.BytesIO(found[1])) as data:
                return cls(data["code"].tobytes(), int(data["work"]), data["constants"])
        loops, file = make(), io.BytesIO()
        np.savez(file, **loops._data)
        with contextlib.suppress(OSError):  # of a full disk: time is lost
            write_kept(folder, stem, _ENDING, file.getvalue())
        return loops

    @staticmethod
    def pack(tree: Any) -> np.ndarray:
        """The numbers of a tree, in order."""
        return np.concatenate(
            [np.zeros(0), *(np.ravel(np.asarray(v, float)) for v in leaves(tree))]
        )

    def bind(self, held: np.ndarray, carry: np.ndarray) -> Callable[[int], None]:
        """The function that performs carry = step(held, carry) so many times, in place; both are
        packed.
        """
        buffers = np.concatenate([held, self._constants]), carry, np.empty(self._work)
        places = [_address(buffer) for buffer in buffers]  # which hold on to the buffers

        def repeat(count: int) -> None:
            if count > 0:
                self._code(*places, count)

        return repeat

    def repeat(self, held: np.ndarray, carry: np.ndarray, count: int) -> None:
        """Perform carry = step(held, carry) `count` times, in place; both are packed."""
        self.bind(held, carry)(count)


def _is_ours(key: Any) -> bool:
    """Whether all classes in a key come with this package or with Python."""
    if isinstance(key, tuple | list):
        return all(map(_is_ours, key))
    module = (key if isinstance(key, type) else type(key)).__module__
    return module.startswith("fluidcc.") or module in ("builtins", "enum")


def _address(array: np.ndarray) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
