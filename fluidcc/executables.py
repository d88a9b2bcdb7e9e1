"""Executables of JAX kept on disk, so that a later process neither traces, lowers nor compiles.

They are found by the structure of their arguments: classes, names, shapes, never numbers. A file
has its digest in its name, and is made anew if it is damaged or comes from another version,
processor or setting. What depends on code that is neither this package's nor a law file's is
compiled in each process.
"""

import contextlib
import dataclasses
import enum
import functools
import inspect
import os
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jax.core import ShapedArray, Tracer
from jax.experimental import serialize_executable

from fluidcc.arrays import jax, jnp
from fluidcc.folders import compiled_folder, find_kept, fingerprint, seal, write_kept
from fluidcc.machine import instructions, processors

_MOST = 256  # structures of arguments of one function, whose executables a process holds
_MOST_FILES = 1000  # of executables, of 0.1 to 3 MB each
_ENDING = ".program"
_LAPACK = b"lapack_"  # begins the names of its functions in a program
# XLA's newer emitters of fused loops for processors: programs are as fast without, and compile in
# two thirds of the time
_EMITTERS = "xla_cpu_use_fusion_emitters"


def compile_once(
    function: Callable[..., Any] | None = None, *, static_argnames: str | tuple[str, ...] = ()
) -> Any:
    """`jax.jit`, whose executables for the device that JAX chooses are kept on disk."""
    if function is None:
        return functools.partial(compile_once, static_argnames=static_argnames)
    static = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    signature, jitted = inspect.signature(function), jax.jit(function, static_argnames=static)
    usual = {name: signature.parameters[name].default for name in static}

    @functools.lru_cache(_MOST)
    def program(tree: Any, kinds: tuple, options: tuple) -> Callable[..., Any]:
        try:
            name = _name_of(function)
            key = _text((name, jax.tree.unflatten(tree, kinds), options))
        except _UnknownCodeError:
            return functools.partial(jitted, **dict(options))
        numbers = [jax.ShapeDtypeStruct(k.shape, k.dtype, weak_type=k.weak_type) for k in kinds]
        given = jax.tree.unflatten(tree, numbers)
        lower = functools.partial(jitted.lower, **given, **dict(options))
        return _kept(name, key, lower, jax.tree.structure(((), given)))

    _programs.append(program)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        given = signature.bind(*args, **named).arguments
        options = tuple((name, given.pop(name, usual[name])) for name in static)
        numbers, tree = jax.tree.flatten(given)
        chosen: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
        if chosen is not None or any(isinstance(n, Tracer) or _is_elsewhere(n) for n in numbers):
            return jitted(*args, **named)
        return program(tree, tuple(map(_kind, numbers)), options)(**given)

    vars(call)["lower"] = jitted.lower
    return call


_NUMBER = jax.typeof(np.float64(0))


def _kind(number: Any) -> Any:
    """Shape and type of a number, at once for those that are most."""
    return _NUMBER if type(number) is np.float64 else jax.typeof(number)


def _is_elsewhere(number: Any) -> bool:
    """Whether a number is not on the device that JAX computes on if it has the choice."""
    return isinstance(number, jax.Array) and number.devices() != {jax.devices()[0]}


_programs: list[Any] = []


def forget() -> None:
    """Drop all executables of this process, as `jax.clear_caches` does with those of `jax.jit`."""
    for program in _programs:
        program.cache_clear()


_fetched: list[str] = []  # one for each executable that JAX found in a cache of its own


def _note(event: str, **_: Any) -> None:
    if event.endswith("/cache_hits"):
        _fetched.append(event)


jax.monitoring.register_event_listener(_note)


def _kept(name: str, key: str, lower: Callable[[], Any], tree: Any) -> Callable[..., Any]:
    """The executable from its file; made, and kept, if there is none that is sound. `tree` is that
    of its arguments.
    """
    folder = compiled_folder("programs")
    stem = f"{name.rpartition('.')[2]}-{seal(_surroundings(), key)}"
    kept = find_kept(folder, stem, _ENDING)
    executable = _loaded(*kept, tree) if kept else None
    if executable is not None:
        return executable
    before = len(_fetched)
    made = _compile(lower())
    if len(_fetched) == before:  # else it has lost its functions, and cannot be saved again
        _save(made, folder, stem)
    return made


def _compile(lowered: Any, **options: Any) -> Callable[..., Any]:
    try:
        return lowered.compile(compiler_options={_EMITTERS: False, **options})
    except jax.errors.JaxRuntimeError as error:
        if _EMITTERS not in str(error):
            raise
        return lowered.compile(compiler_options=options)  # later versions of JAX leave no choice


def compile_for_few(function: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """A function of arrays of these shapes, compiled in half the time, for few calls: as it is
    written, without optimisation.
    """
    return _compile(jax.jit(function).lower(*like), xla_backend_optimization_level=0)


def _loaded(file: Path, data: bytes, tree: Any) -> Callable[..., Any] | None:
    """The executable in a file, which counts as used; None, without the file, if it cannot run."""
    code, result = pickle.loads(data)
    if _LAPACK in code:
        _start_lapack()
    results = jax.tree.structure(result)
    try:
        found = serialize_executable.deserialize_and_load(code, tree, results)
    except (jax.errors.JaxRuntimeError, pickle.UnpicklingError):
        found = None
    with contextlib.suppress(OSError):  # another process has deleted it, or none may
        if found is None:
            file.unlink()
        else:
            os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))
    return found


def _save(made: Any, folder: Path, stem: str) -> None:
    """Keep an executable, in place of those that nobody used for longest."""
    # a full disk, or a device whose code cannot be saved, only costs time
    with contextlib.suppress(OSError, ValueError, jax.errors.JaxRuntimeError):
        code, _, results = serialize_executable.serialize(made)
        data = pickle.dumps((code, jax.tree.unflatten(results, range(results.num_leaves))))
        write_kept(folder, stem, _ENDING, data)
        used = sorted(folder.glob(f"*{_ENDING}"), key=lambda file: file.stat().st_atime_ns)
        for file in used[:-_MOST_FILES]:
            file.unlink(missing_ok=True)


@functools.cache
def _start_lapack() -> None:
    """Let JAX find the functions of LAPACK, which it does when it lowers the first call of one."""
    jax.jit(jnp.linalg.svd).lower(jax.ShapeDtypeStruct((1, 1), float))


@functools.cache
def _surroundings() -> str:
    """What code depends on besides its arguments."""
    devices = [f"{d.platform} {d.device_kind}" for d in jax.devices()]
    settings = os.environ.get("XLA_FLAGS", "")
    return f"{fingerprint()} {devices} {instructions()} {processors()} {settings}\n"


class _UnknownCodeError(Exception):
    """A structure depends on code that may change without our knowledge."""


def _name_of(code: Any) -> str:
    """Name of a class or function, with the digest of the law file that it comes from."""
    module = code.__module__
    digest = getattr(sys.modules.get(module), "__digest__", None)
    known = module.startswith(("fluidcc.", "builtins")) or digest is not None
    if not known or "<" in code.__qualname__:  # as in <lambda>
        raise _UnknownCodeError
    return f"{module}.{digest or ''}.{code.__qualname__}"


def _text(thing: Any) -> str:
    """A text for each structure; raises _UnknownCodeError if there is none to rely on."""
    if thing is None or isinstance(thing, str | bytes | bool | int | float):
        return f"{_name_of(type(thing))} {thing!r}"
    if isinstance(thing, ShapedArray):
        return f"{thing.shape} {thing.dtype} {thing.weak_type}"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{_text(k)}: {_text(v)}' for k, v in thing.items())}}}"
    if isinstance(thing, tuple | list):
        return f"{_name_of(type(thing))}({', '.join(map(_text, thing))})"
    if isinstance(thing, type) or (inspect.isfunction(thing) and not thing.__closure__):
        return _name_of(thing)
    if isinstance(thing, enum.Enum):
        return f"{_name_of(type(thing))}.{thing.name}"
    structure = getattr(thing, "structure", None)
    if structure is not None:
        return f"{_name_of(type(thing))} {_text(structure)}"
    if dataclasses.is_dataclass(thing):
        names = [f.name for f in dataclasses.fields(thing)]
        own = vars(thing)  # a network's links count their senders as they are read
        fields = {name: own[name] if name in own else getattr(thing, name) for name in names}
        return f"{_name_of(type(thing))} {_text(fields)}"
    raise _UnknownCodeError
