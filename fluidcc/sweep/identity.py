"""What a sweep is, as plain data: two of the same description have the same results."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fluidcc.laws.own import origins, source_of
from fluidcc.scenario.files import dumps
from fluidcc.scenario.network import Network


def name_of(verb: Callable[..., Any]) -> str:
    """Module and name of a function, or of the one that a `functools.partial` is of."""
    inner = _inner(verb)
    return f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', '')}"


def _inner(verb: Callable[..., Any]) -> Any:
    while isinstance(verb, functools.partial):
        verb = verb.func
    return verb


def options_of(verb: Callable[..., Any]) -> dict[str, Any]:
    """Options that a `functools.partial` gives, as plain data.

    Raises ValueError for a verb that has no name, or an option that is no plain value, as nothing
    would tell such a sweep from another.
    """
    name, options = name_of(verb), {}
    if "<" in name or name.startswith(".") or name.endswith("."):
        raise ValueError(
            "verb: expected a function of a module, such as fc.equilibrium, or a functools.partial "
            f"of one, got {verb!r}: processes and files know it by its name"
        )
    while isinstance(verb, functools.partial):
        if verb.args:
            raise ValueError(f"verb: expected options by name, got {verb.args!r} without names")
        options = {k: _plain(k, v) for k, v in verb.keywords.items()} | options
        verb = verb.func
    return options


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it; every digit of a number is kept."""
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(name, v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _plain(name, np.asarray(value).tolist())
    if isinstance(value, list | tuple | range):
        return [_plain(name, v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(name, v) for v in value), key=repr)
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {f.name: _plain(name, getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"of": type(value).__qualname__, **own}
    raise ValueError(
        f"verb: expected numbers, text, lists or dataclasses as options, got {name}={value!r}"
    )


def description(
    net: Network, axes: Mapping[str, tuple], verb: Callable[..., Any], code: str
) -> dict[str, Any]:
    """Scenario, grid, verb with its options, laws of one's own and the code that the results
    follow from.
    """
    inner = _inner(verb)
    own = "" if inner.__module__.startswith("fluidcc.") else source_of(inner)
    return {
        "scenario": dumps(net),
        "grid": {path: _plain(path, values) for path, values in axes.items()},
        "verb": name_of(verb),
        "options": options_of(verb),
        "laws": [[Path(origin.name).name, origin.digest] for origin in origins(net)],
        "code": hashlib.sha256(f"{code}{own}".encode()).hexdigest(),
    }
