"""Frozen dataclasses that JAX sees as trees of their numbers, and that load without JAX.

Every class below `Module` is a dataclass; fields made by `static` are part of a tree's structure.
`fluidcc.arrays` registers the classes with JAX: as soon as a class is made if JAX is there, else
when the first part of fluidcc that computes with arrays is imported.
"""

import abc
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, dataclass_transform

import numpy as np

classes: list[type] = []
"""All modules, for `fluidcc.arrays`."""

registrar: list[Callable[[type], None]] = []
"""The function that registers a class with JAX, once `fluidcc.arrays` is imported."""


def static(default: Any = dataclasses.MISSING, **metadata: Any) -> Any:
    """Field that is part of the structure: to change it compiles anew."""
    return dataclasses.field(default=default, metadata={"static": True, **metadata})


@functools.cache
def structure(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the fields of a class that are nodes of its tree, and of those that are not."""
    fields = dataclasses.fields(cls)
    fixed = tuple(f.name for f in fields if f.metadata.get("static"))
    return tuple(f.name for f in fields if f.name not in fixed), fixed


def make(cls: type, nodes: Iterable[Any], fixed: Iterable[Any]) -> Any:
    """A module of its nodes and other fields, in order; any values: no range is checked."""
    thing = object.__new__(cls)
    names, others = structure(cls)
    vars(thing).update(zip(names, nodes, strict=True))
    vars(thing).update(zip(others, fixed, strict=True))
    return thing


@functools.cache
def parts_of(cls: type) -> Callable[[Any], Iterator[Any]] | None:
    """The function that gives the nodes of a tree of this class; None for numbers and no number."""
    if issubclass(cls, tuple | list):
        return iter
    if not issubclass(cls, Module):
        return None
    names = structure(cls)[0]
    return lambda thing: map(vars(thing).__getitem__, names)


@functools.cache
def _fixed(cls: type) -> tuple[str, ...]:
    """Names of the fields of a tree of this class that are no nodes."""
    return structure(cls)[1] if issubclass(cls, Module) else ()


def rebuild(like: Any, nodes: Iterable[Any]) -> Any:
    """A tree with other nodes, in order."""
    cls = type(like)
    if isinstance(like, tuple | list):
        return cls(*nodes) if hasattr(cls, "_fields") else cls(nodes)
    return make(cls, nodes, [getattr(like, name) for name in _fixed(cls)])


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Module(metaclass=abc.ABCMeta):  # noqa: B024
    """Base of laws and networks; subclasses are frozen dataclasses without a decorator."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(frozen=True, eq=False)(cls)
        classes.append(cls)
        if registrar:
            registrar[0](cls)
        elif "jax" in sys.modules:
            import fluidcc.arrays  # noqa: F401

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return hash((type(self), *(getattr(self, field.name) for field in fields)))


def skeleton(tree: Any, of_number: Callable[[Any], Any] = lambda _: "number") -> Any:
    """A tree without its numbers: a hashable key for results that depend on structure alone.

    `of_number` gives what stays in the place of each.
    """
    return _skeletons((tree,), of_number)[0]


def _skeletons(trees: Iterable[Any], of_number: Callable[[Any], Any]) -> list[Any]:
    found: list[Any] = []
    for tree in trees:
        cls = type(tree)
        parts = parts_of(cls)
        if parts is None:
            found.append(None if tree is None else of_number(tree))
        else:
            fixed = [getattr(tree, name) for name in _fixed(cls)]
            found.append((cls, *_skeletons(parts(tree), of_number), *fixed))
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))
    return bool(a == b)
