"""Uniform steps for any batch: what is compiled, how it is cut up, and how much room it gets."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from fluidcc import memory
from fluidcc.dde import shards, uniform
from fluidcc.dde.batches import over_blocks
from fluidcc.dde.fused import launch
from fluidcc.dde.meshes import Uniform
from fluidcc.dde.status import Status
from fluidcc.dde.system import Args, System
from fluidcc.dde.trajectory import (
    Trajectory,
    first,
    first_lags,
    in_single_precision,
    known,
    number,
    power_of_two,
)

_SLOTS = 1 << 10  # of a ring, where nothing tells how many it needs, and of a short one
_MOST_LANES = 64  # trajectories that a processor steps side by side at most
_CACHED = 1 << 19  # bytes of the cache that their histories should about fit in
_LONGEST = (1 << 31) - 1  # places in the ring are counted in 32 bits
_ADVICE = (
    "a larger step, a smaller buffer (it bounds the longest round trip), fewer saved times, or "
    "fewer trajectories at once"
)
_COPIES = 2  # of the history: that of the run, and the empty one that it began with
_SHARE = 0.5  # of an accelerator's free memory, for histories: what a step needs comes on top


def _lanes(ring: int, kept: float, share: int) -> int:
    """How many trajectories whose history takes so many bytes to step side by side.

    An accelerator has its whole share of the batch, or what fits beside the `kept` bytes.
    """
    if memory.place().platform != "cpu":
        fit = _SHARE * (memory.available() - kept) / (_COPIES * ring)
        return int(max(min(fit, share), 1))
    fit = _CACHED // ring
    if fit >= _MOST_LANES:
        return _MOST_LANES
    return 32 if fit >= 16 else 8  # 16 are slower than 32 wherever they would be taken


@functools.partial(
    jax.jit, static_argnames=("system", "slots", "lanes", "batched", "single", "shared")
)
def _uniform(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    step: Array,
    ts: Array,
    args: Args,
    *,
    slots: int,
    lanes: int,
    batched: bool,
    single: bool,
    shared: Mesh | None,
) -> uniform.Saved:
    def solve(y0: Array, args: Args) -> uniform.Saved:
        return uniform.integrate(system, y0, t0, t1, step, ts, args, slots, batched)

    if single:
        y0, args = in_single_precision((y0, args))
    blocks = lambda y0, args: over_blocks(solve, batched, y0, args, lanes)  # noqa: E731
    saved = shards.each_its_own(blocks, shared, y0, args)
    double = {name: getattr(saved, name).astype(float) for name in ("y", "slope", "record")}
    return saved._replace(**double)


def _first_slots(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    args: Args,
    mesh: Uniform,
    batched: bool,
) -> int:
    """Length of the ring to begin with: a long one is no longer than what the run fills of it."""
    step, slots = number(mesh.step), power_of_two(mesh.slots or _SLOTS)
    if mesh.slots is None:
        lags = first_lags(system, y0, t0, args, batched)
        if known(lags, step):
            usable = jnp.where(jnp.isfinite(lags), lags, 0.0)  # a status tells of the others
            longest = float(jnp.max(usable, initial=0.0) / step)
            slots = power_of_two(max(2.0 * longest, 1.0) + 3.0)
    if slots > _SLOTS and known(step, t0, t1):  # shorter ones suit runs of any length
        filled = power_of_two(float((t1 - t0) / step) + 4.0)  # t0 is in the ring then
        slots = min(slots, max(filled, _SLOTS))
    return slots


def _side_by_side(
    mesh: Uniform,
    slots: int,
    width: int,
    times: int,
    y0: Array,
    batched: bool,
    devices: shards.Devices,
) -> int:
    """How many trajectories to step side by side on each device.

    Raises ValueError where there is no room for their histories and for all that is saved.
    """
    trajectories, columns = y0.shape[0] if batched else 1, 2 * y0.shape[-1] + width
    history, kept = 2 * width * slots, 8.0 * trajectories * times * columns
    ring, most = (4 if mesh.single else 8) * history, _LONGEST // history
    if mesh.fused:
        lanes = launch.together(history, times * columns, trajectories)
        beside, copies = lanes, 1
    else:
        share = -(-trajectories // max(len(devices), 1))
        lanes = max(min(_lanes(ring, kept, share), share, most), 1)
        beside, copies = min(lanes * shards.in_one_memory(devices), trajectories), _COPIES
    memory.require(
        kept + copies * ring * beside,
        f"uniform steps: a history of {slots} nodes x {width} numbers for {beside} trajectories "
        f"side by side, and {times} saved times for {trajectories},",
        f"take {_ADVICE}",
    )
    if most < 1:
        raise memory.TooLittleMemory(
            f"uniform steps: a history has up to {_LONGEST} numbers, got {slots} nodes x {width} "
            f"values and slopes: take {_ADVICE}"
        )
    return lanes


def on_uniform(
    system: System,
    y0: Array,
    t0: Array,
    t1: Array,
    args: Args,
    mesh: Uniform,
    ts: Array | None,
    batched: bool,
    devices: shards.Devices,
) -> Trajectory:
    """On a uniform mesh; the ring grows until it suffices, where that can be seen."""
    if mesh.step is None:
        raise ValueError("Uniform(step): expected the length of a step, which networks alone have")
    step, every = number(mesh.step), ts is None
    if mesh.single and (system.events is not None or system.record is not None):
        raise ValueError(
            "Uniform(single=True) is for smooth equations: expected a field without inputs and "
            "modes, got one with events, or a network; leave single out"
        )
    if mesh.fused and not known(step, t0, t1, args, y0, ts):
        raise ValueError("Uniform(fused=True) works outside jit, vmap and derivatives")
    one_y0, one_args = first(y0, args, batched)
    width = system.record_size(one_y0, t0, one_args)
    if ts is not None:
        times = ts.size
    elif known(step, t0, t1):
        times = int(np.ceil(float((t1 - t0) / step) - 1e-9)) + 1
    else:
        raise ValueError("Uniform needs ts in traced code whose step, t0 or t1 is traced")
    slots = _first_slots(system, y0, t0, t1, args, mesh, batched)
    while True:
        lanes = _side_by_side(mesh, slots, width, times, y0, batched, devices)
        if ts is None:
            ts = jnp.minimum(t0 + step * jnp.arange(times, dtype=float), t1)
        options: dict[str, Any] = {"slots": slots, "lanes": lanes, "batched": batched}
        options["single"] = mesh.single
        if mesh.fused:
            saved = launch.integrate(system, y0, t0, t1, step, ts, args, **options)
        else:
            given = {"t0": t0, "t1": t1, "step": step, "ts": ts}
            run = functools.partial(_uniform, system, **given, **options)
            saved = shards.dealt_out(run, devices, y0, args)
        if mesh.slots is not None or not known(saved.status):
            break
        if not np.any(np.asarray(saved.status) == Status.lag_exceeds_ring):
            break
        slots *= 4
    shape = saved.status.shape
    dense = every and not batched
    return Trajectory(
        t=jnp.broadcast_to(ts, (*shape, *ts.shape)),
        y=saved.y,
        record=saved.record,
        status=saved.status,
        status_time=saved.status_time,
        steps=saved.steps,
        breaking_points=jnp.zeros((*shape, 0)),
        evaluate=jax.tree_util.Partial(uniform.evaluate, (ts, saved.y, saved.slope))
        if dense
        else None,
    )
