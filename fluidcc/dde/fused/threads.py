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

from fluidcc.folders import compiled_folder, require_room, sealed, temporary_folder

_Floats = wp.array(dtype=wp.float64)
_Integers = wp.array(dtype=wp.int32)
_Words = wp.array(dtype=wp.int64)


@contextlib.contextmanager
def _without_output() -> Iterator[None]:
    """Suppress output of libraries that search for a GPU."""
    try:
        stderr = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


# both settings apply to all use of Warp in this process
if "WARP_CACHE_PATH" not in os.environ and wp.config.kernel_cache_dir is None:
    wp.config.kernel_cache_dir = str(compiled_folder("warp"))
wp.config.log_level = max(wp.config.log_level, wp.LOG_ERROR)
with _without_output():
    wp.init()


def kernel(source: str, *, simd_lanes: int, fuse_multiply_add: bool) -> Any:
    """The kernel with this body, compiled at its first launch on a device.

    A thread runs `simd_lanes` trajectories; `fuse_multiply_add` allows the compiler to round a
    product and a sum only once.
    """

    @wp.func_native(source)
    def run(
        lane: int,
        lanes: int,
        times: int,
        lane_numbers: _Floats,
        shared_numbers: _Floats,
        ts: _Floats,
        memory: _Words,
        saved: _Floats,
        status_time: _Floats,
        ended: _Integers,
    ): ...

    def uniform(
        lanes: int,
        times: int,
        lane_numbers: _Floats,
        shared_numbers: _Floats,
        ts: _Floats,
        memory: _Words,
        saved: _Floats,
        status_time: _Floats,
        ended: _Integers,
    ):
        run(wp.tid() * simd_lanes, lanes, times, lane_numbers, shared_numbers, ts, memory, saved,
            status_time, ended)  # fmt: skip

    options = {
        "fast_math": False,
        "fuse_fp": fuse_multiply_add,
        "cpu_compiler_flags": "-march=native -fwrapv -fno-slp-vectorize -w",
    }
    return wp.kernel(uniform, module="unique", enable_backward=False, module_options=options)


@functools.lru_cache(maxsize=16)
def _load(module: Any, device: str) -> None:
    """Load the module of a kernel on a device, compiled now or before."""
    try:
        _load_sealed(module, device)
    except Exception:
        folder = _cache_folder()
        try:
            require_room(folder)
        except OSError as error:
            wp.config.kernel_cache_dir = str(temporary_folder("warp", folder, error))
            module.mark_modified()  # else Warp would not try again
            _load_sealed(module, device)
        else:
            raise


def _cache_folder() -> Path:
    """The folder in which Warp stores compiled kernels."""
    return Path(str(wp.config.kernel_cache_dir))


def _load_sealed(module: Any, device: str) -> None:
    name = f"wp_{module.name}"
    with sealed(_cache_folder(), name, f"{name}_{'[0-9a-f]' * 7}/*"):
        wp.load_module(module, device=device)


def cards() -> int:
    """Number of GPUs that Warp finds."""
    return wp.get_cuda_device_count()


def free_memory(device: str) -> int:
    """Free memory of a GPU [byte]."""
    return wp.get_device(device).free_memory


def run(
    kernel: Any,
    lane_numbers: np.ndarray,
    shared_numbers: np.ndarray,
    ts: np.ndarray,
    *,
    history: int,
    width: int,
    device: str,
    simd_lanes: int,
    lanes: int,
    side_by_side: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run B trajectories; each column of `lane_numbers` (K, B) has the numbers of one.

    Parameters
    ----------
    shared_numbers, ts
        Numbers that all share, and the times to save (S,).
    history, width
        Words of 8 bytes of the history of each, and the numbers saved of each at a time.
    device
        The device, as named by Warp.
    simd_lanes
        Trajectories per thread, a divisor of B.
    lanes
        Trajectories per launch.
    side_by_side
        Trajectories whose equal numbers are adjacent in memory.

    Returns
    -------
    Saved numbers (B, S, width), the time that each reached (B,), and status and steps (B, 2).
    """
    _load(kernel.module, device)
    most_lanes = min(lanes, lane_numbers.shape[1])
    most_lanes += -most_lanes % side_by_side
    shared = [wp.array(v.ravel(), dtype=wp.float64, device=device) for v in (shared_numbers, ts)]
    # launches can share the memory: no history is read before it is written. Four numbers are read
    # at once, beyond the end of the last history
    memory = wp.zeros(history * most_lanes + 4, dtype=wp.int64, device=device)
    parts = []
    for columns in np.split(lane_numbers, range(lanes, lane_numbers.shape[1], lanes), axis=1):
        count = columns.shape[1]
        blocks = np.pad(columns, ((0, 0), (0, -count % side_by_side)), mode="edge")
        blocks = blocks.reshape(len(blocks), -1, side_by_side).swapaxes(0, 1)
        lane_array = wp.array(blocks.ravel(), dtype=wp.float64, device=device)
        saved = wp.zeros(count * ts.size * width, dtype=wp.float64, device=device)
        reached = wp.zeros(count, dtype=wp.float64, device=device)
        ended = wp.zeros(2 * count, dtype=wp.int32, device=device)
        inputs = [count, ts.size, lane_array, *shared, memory, saved, reached, ended]
        wp.launch(kernel, dim=count // simd_lanes, inputs=inputs, device=device)
        values = saved.numpy().reshape(count, ts.size, width)
        parts.append((values, reached.numpy(), ended.numpy().reshape(count, 2)))
    values, reached, ended = map(np.concatenate, zip(*parts, strict=True))
    return values, reached, ended
