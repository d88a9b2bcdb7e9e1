"""Kernels as Warp compiles and runs them; needs the package warp-lang."""
# pyright: reportInvalidTypeForm=false

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from fluidcc.digests import sealed
from fluidcc.folders import compiled_folder, require_room, temporary_folder

_Floats = wp.array(dtype=wp.float64)
_Integers = wp.array(dtype=wp.int32)
_Words = wp.array(dtype=wp.int64)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what libraries print while they look for a card."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


# both hold for all that uses Warp in this process
if "WARP_CACHE_PATH" not in os.environ and wp.config.kernel_cache_dir is None:
    wp.config.kernel_cache_dir = str(compiled_folder("warp"))
wp.config.log_level = max(wp.config.log_level, wp.LOG_ERROR)
with _quiet():
    wp.init()


def kernel(source: str, *, abreast: int, contracted: bool) -> Any:
    """The kernel with this body, compiled at its first launch on a device.

    A thread runs so many trajectories `abreast`; `contracted` lets a product and a sum be one
    operation, with one rounding.
    """

    @wp.func_native(source)
    def run(
        lane: int,
        lanes: int,
        times: int,
        own: _Floats,
        shared: _Floats,
        ts: _Floats,
        memory: _Words,
        saved: _Floats,
        status_time: _Floats,
        ended: _Integers,
    ): ...

    def uniform(
        lanes: int,
        times: int,
        own: _Floats,
        shared: _Floats,
        ts: _Floats,
        memory: _Words,
        saved: _Floats,
        status_time: _Floats,
        ended: _Integers,
    ):
        run(wp.tid() * abreast, lanes, times, own, shared, ts, memory, saved, status_time, ended)

    options = {
        "fast_math": False,
        "fuse_fp": contracted,
        "cpu_compiler_flags": "-march=native -fwrapv -fno-slp-vectorize -w",
    }
    return wp.kernel(uniform, module="unique", enable_backward=False, module_options=options)


@functools.lru_cache(maxsize=16)
def _load(module: Any, place: str) -> None:
    """Load the module of a kernel on a device, compiled now or before."""
    try:
        _load_sealed(module, place)
    except Exception:
        kept = _kept()
        try:
            require_room(kept)
        except OSError as error:
            wp.config.kernel_cache_dir = str(temporary_folder("warp", kept, error))
            module.mark_modified()  # or else it fails as before
            _load_sealed(module, place)
        else:
            raise


def _kept() -> Path:
    """Where Warp keeps what it compiles."""
    return Path(str(wp.config.kernel_cache_dir))


def _load_sealed(module: Any, place: str) -> None:
    name = f"wp_{module.name}"
    with sealed(_kept(), name, f"{name}_{'[0-9a-f]' * 7}/*"):
        wp.load_module(module, device=place)


def cards() -> int:
    """How many graphics cards Warp has."""
    return wp.get_cuda_device_count()


def free_memory(place: str) -> int:
    """Bytes that are free on a card."""
    return wp.get_device(place).free_memory


def run(
    kernel: Any,
    own: np.ndarray,
    shared: np.ndarray,
    ts: np.ndarray,
    *,
    history: int,
    width: int,
    place: str,
    abreast: int,
    lanes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run trajectories whose numbers are the columns of `own` (K, B).

    Parameters
    ----------
    shared, ts
        What they share, and the times to save (S,).
    history, width
        Words of 8 bytes of the history of each, and how many numbers of it are saved at a time.
    place
        The device, as Warp calls it.
    abreast
        Trajectories of a thread, by whose number B can be divided.
    lanes
        How many of them are in one launch.

    Returns
    -------
    What is saved (B, S, width), how far each came in time (B,), and status and steps (B, 2).
    """
    _load(kernel.module, place)
    room = min(lanes, own.shape[1])
    in_common = [wp.array(v.ravel(), dtype=wp.float64, device=place) for v in (shared, ts)]
    # launches follow each other, and no history is read where it has not been written; the rows of
    # several trajectories are read by fours, the last one of all beyond its end
    memory = wp.zeros(history * room + 4, dtype=wp.int64, device=place)
    parts = []
    for columns in np.split(own, range(lanes, own.shape[1], lanes), axis=1):
        count = columns.shape[1]
        mine = wp.array(columns.ravel(), dtype=wp.float64, device=place)
        saved = wp.zeros(count * ts.size * width, dtype=wp.float64, device=place)
        reached = wp.zeros(count, dtype=wp.float64, device=place)
        ended = wp.zeros(2 * count, dtype=wp.int32, device=place)
        inputs = [count, ts.size, mine, *in_common, memory, saved, reached, ended]
        wp.launch(kernel, dim=count // abreast, inputs=inputs, device=place)
        kept = saved.numpy().reshape(count, ts.size, width)
        parts.append((kept, reached.numpy(), ended.numpy().reshape(count, 2)))
    kept, reached, ended = map(np.concatenate, zip(*parts, strict=True))
    return kept, reached, ended
