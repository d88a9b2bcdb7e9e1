"""TCP under RED as a delay equation and as a loop in C: the same scheme twice.

`Case` has trajectories of one kind with a Python field for `fc.solve_dde` and the arrays that
`tcp_red.c` takes. The field is written number by number, as batches like it.
"""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import fluidcc as fc
import fluidcc.arrays  # JAX in double precision

SOURCE = Path(__file__).with_name("tcp_red.c")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
ROUND_TRIP = 0.24  # s, of the middle class at rest
STEP = ROUND_TRIP / 64


class State(NamedTuple):
    windows: tuple  # packet, of each class
    queue: Any  # packet
    average: Any  # packet


class Numbers(NamedTuple):
    flows: tuple  # of each class
    propagation: tuple  # s, of each class
    capacity: Any  # packet/s
    pole: Any  # 1/s, of the average
    min_th: Any  # packet
    max_th: Any  # packet
    slope: Any  # 1/packet, of the marking
    buffer: Any  # packet
    per_packet: Any  # s, to send one
    start: State


def field(t, y, z, p):
    changes, inflow = [], 0.0
    for k, old in enumerate(z):
        rate = 1.0 / (p.propagation[k] + y.queue * p.per_packet)
        old_trip = p.propagation[k] + old.queue * p.per_packet
        mark = jnp.maximum((old.average - p.min_th) * p.slope, 0.0)
        mark = jnp.where(old.average > p.max_th, 1.0, mark)
        changes.append(rate - y.windows[k] * old.windows[k] / (2.0 * old_trip) * mark)
        inflow = inflow + p.flows[k] * y.windows[k] * rate
    change = inflow - p.capacity
    change = jnp.where((y.queue <= 0.0) & (change < 0.0), 0.0, change)
    change = jnp.where((y.queue >= p.buffer) & (change > 0.0), 0.0, change)
    return State(tuple(changes), change, p.pole * (y.queue - y.average))


def history(t, p):
    return p.start


@functools.cache
def lags(classes):
    """The round trip of each class."""

    def lag(k):
        return lambda t, y, p: p.propagation[k] + y.queue * p.per_packet

    return tuple(lag(k) for k in range(classes))


def network(classes: int) -> Any:
    """The same network as `fc.simulate` steps it."""
    from fluidcc.laws.queue.red import RED
    from fluidcc.laws.window.reno import Reno
    from fluidcc.scenario.network import Flows, Link, Network

    trips = np.linspace(0.1, 0.3, classes) if classes > 1 else np.array([0.2])
    flows = Flows(Reno(), n=np.full(classes, 60.0 / classes), rtt=trips)
    red = RED(min_th=100.0, max_th=700.0, p_max=0.1, w_q=1.33e-6)
    return Network((Link(red, capacity=3750.0, buffer=800.0),), (flows,), rates="mgt")


class Case:
    """`lanes` trajectories with `classes` round trips, near their equilibrium: smooth."""

    def __init__(self, lanes: int, classes: int = 1) -> None:
        rng = np.random.default_rng(0)
        near = lambda value: value * (1.0 + 0.1 * (rng.random(lanes) - 0.5))  # noqa: E731
        spread = np.linspace(0.5, 1.5, classes) if classes > 1 else [1.0]
        self.lanes, self.classes = lanes, classes
        flows = np.array([near(60.0 / classes) for _ in spread])
        propagation = np.array([near(0.2 * s) for s in spread])
        capacity, top = near(3750.0), near(0.1)
        pole = np.full(lanes, 0.005)
        low, high, buffer = (np.full(lanes, v) for v in (100.0, 700.0, 800.0))
        slope = top / (high - low)
        self.given = np.stack([*flows, *propagation, capacity, pole, low, high, slope, buffer])
        queue, window = at_rest(flows, propagation, capacity, low, high, slope)
        self.start = np.stack([*np.tile(0.98 * window, (classes, 1)), 1.02 * queue, queue])
        longest = (propagation.max() + (buffer / capacity).max()) / STEP
        self.slots = 1 << int(np.ceil(np.log2(longest + 3.0)))

    def numbers(self) -> Numbers:
        """Parameters with the trajectories as their first axis; of one alone without."""
        rows = [jnp.asarray(row if self.lanes > 1 else row[0], float) for row in self.given]
        start = [jnp.asarray(row if self.lanes > 1 else row[0], float) for row in self.start]
        k = self.classes
        first = State(tuple(start[:k]), *start[k:])
        flows, propagation = tuple(rows[:k]), tuple(rows[k : 2 * k])
        return Numbers(flows, propagation, *rows[2 * k :], 1.0 / rows[2 * k], first)

    def ours(self, steps: int, saved: int = 1, **options: Any) -> Any:
        """A compiled run: saved states (saved, K + 2, B) from `numbers()`."""
        times = STEP * (steps // saved) * np.arange(1, saved + 1)
        mesh = fc.Uniform(STEP, slots=self.slots, **options)
        run = functools.partial(self._run, times=times, mesh=mesh)
        compiled = jax.jit(run).lower(self.numbers()).compile()
        return lambda p: jax.block_until_ready(compiled(p))

    def fused(self, steps: int, p: Numbers) -> Any:
        """Final states by one kernel for the whole run."""
        mesh = fc.Uniform(STEP, slots=self.slots, fused=True)
        return jax.block_until_ready(self._run(p, STEP * steps * np.ones(1), mesh))

    def _run(self, p: Numbers, times: Any, mesh: fc.Uniform) -> Any:
        return fc.solve_dde(
            field, history, 0.0, float(times[-1]), lags=lags(self.classes), params=p, ts=times,
            mesh=mesh, batched=self.lanes > 1,
        ).y  # fmt: skip

    def states(self, y: State) -> np.ndarray:
        """What `ours` gives as (saved, K + 2, B)."""
        found = np.stack([np.asarray(v) for v in (*y.windows, y.queue, y.average)])
        return found[:, None].transpose(2, 0, 1) if self.lanes == 1 else found.transpose(2, 0, 1)

    def by_hand(self, loop: Any, steps: int, saved: int = 1, real: Any = np.float64) -> np.ndarray:
        """The same by the loop in C."""
        out = np.empty((saved, self.classes + 2, self.lanes), real)
        given, start = (np.ascontiguousarray(v, real) for v in (self.given, self.start))
        every = steps // saved
        pointers = (v.ctypes.data for v in (given, start, out))
        if loop(self.lanes, steps, every, STEP, self.slots, *pointers):
            raise MemoryError("the loop in C found no memory for its history")
        return out


def at_rest(flows, propagation, capacity, low, high, slope):
    """Queue and window [packet] where all is at rest: by bisection in the queue."""
    below, above = low + 1e-9, high.copy()
    for _ in range(100):
        queue = (below + above) / 2
        window = np.sqrt(2.0 / (slope * (queue - low)))
        short = (flows * window / (propagation + queue / capacity)).sum(0) < capacity
        below, above = np.where(short, below, queue), np.where(short, queue, above)
    return queue, window


def compiler() -> str | None:
    """The C compiler of this machine, None where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(classes: int, lanes: int, real: str, *flags: str) -> Any:
    """The loop in C for so many classes, `lanes` trajectories side by side."""
    found = compiler()
    if found is None:
        raise RuntimeError("no C compiler")
    words = [f"-DREAL={real}", f"-DCLASSES={classes}", f"-DLANES={lanes}", *flags]
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "loop.so")
        subprocess.run([found, *FLAGS, *words, str(SOURCE), "-o", library], check=True)
        solve = ctypes.CDLL(library).solve
    pointer = ctypes.c_void_p
    solve.argtypes = [
        ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_double, ctypes.c_int, *[pointer] * 3
    ]  # fmt: skip
    return solve
