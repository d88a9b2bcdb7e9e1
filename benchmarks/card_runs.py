"""What runs on a graphics card, for `card.py --run`: right, fast and usable.

Each part is a function that returns numbers, and raises if they are wrong. Sizes are those of the
goals on a card, and small on a processor, where all is rehearsed.
"""

import functools
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from handwritten import STEP, Case, field, history, lags

import fluidcc as fc
from fluidcc import memory
from fluidcc.dde.fused.launch import device
from fluidcc.dde.integrate import integrate
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import network_system

TESTS = ("tests/fused", "tests/dde")
NETWORKS = ("hollot2001/slow", "TCP/RED, 3 groups", "qazi2010/two_bmcc_router")


class Size(NamedTuple):
    """How much is run: trajectories and steps, of networks too, and the side of maps."""

    runs: int
    steps: int
    network_runs: int
    network_steps: int
    trajectories: int  # side of a map of trajectories
    points: int  # side of a map of stability
    until: float  # s, of a map of trajectories


CARD = Size(100_000, 100_000, 100_000, 10_000, 1000, 1000, 60.0)
REHEARSAL = Size(64, 1024, 16, 256, 3, 4, 2.0)
GOALS = {"kernel": 1.5, "loop": 8.0}
"""Seconds for the runs and steps of a card."""


def least(run: Callable[[], Any], repetitions: int = 3) -> float:
    """Least seconds of some runs, after one that compiles."""
    run()
    spent = []
    for _ in range(repetitions):
        began = time.perf_counter()
        run()
        spent.append(time.perf_counter() - began)
    return min(spent)


def on_processor() -> Any:
    """All that is computed meanwhile is on the processor."""
    return jax.default_device(jax.devices("cpu")[0])


def solve(case: Case, steps: int, *, fused: bool) -> np.ndarray:
    """End states (K + 2, B) of TCP on RED."""
    solution = fc.solve_dde(
        field, history, 0.0, STEP * steps, lags=lags(case.classes), params=case.numbers(),
        ts=np.array([STEP * steps]), batched=True,
        mesh=fc.Uniform(STEP, slots=case.slots, fused=fused),
    )  # fmt: skip
    if np.any(np.asarray(solution.status)):
        raise RuntimeError("some runs failed")
    return case.states(solution.y)[-1]


def solve_network(net: Any, runs: int, steps: int, *, fused: bool) -> np.ndarray:
    """End states (B, n) of a network, whose numbers differ by up to 10 %."""
    mesh = uniform_mesh(net)
    mesh = fc.Uniform(mesh.step, slots=mesh.slots, fused=fused)
    until = steps * float(mesh.step)
    system, y0, numbers = network_system(net, until=until)
    shares = np.linspace(0.95, 1.05, runs)
    first = jax.tree.map(lambda v: np.multiply.outer(shares, v), numbers[0])
    found = integrate(
        system, np.tile(y0, (runs, 1)), 0.0, until, type(numbers)(first, *numbers[1:]),
        mesh=mesh, ts=np.array([until]), batched=True,
    )  # fmt: skip
    return np.asarray(found.y)[:, -1]


def differ(found: np.ndarray, right: np.ndarray, most: float) -> float:
    """Largest difference relative to the largest number; raises if it is more than `most`."""
    error = float(np.max(np.abs(found - right)) / np.max(np.abs(right)))
    if not error <= most:
        raise RuntimeError(f"differs from the processor by {error:.1e}, more than {most:.0e}")
    return error


# right


def run_tests(size: Size) -> dict[str, Any]:
    """Tests of uniform steps and kernels where JAX computes."""
    del size
    asked = [sys.executable, "-m", "pytest", "-n", "0", "-q", *TESTS]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1]
    if done.returncode:
        raise RuntimeError(last)
    return {"tests": last}


def agree(size: Size, networks: dict[str, Any]) -> dict[str, Any]:
    """States against those of the processor; the same bits again."""
    found: dict[str, Any] = {}
    case = Case(64)
    with on_processor():
        right = solve(case, 2560, fused=False)
    for name, fused in (("kernel", True), ("loop", False)):
        run = solve(case, 2560, fused=fused)
        found[f"equation, {name}"] = differ(run, right, 1e-11)
        if not np.array_equal(run, solve(case, 2560, fused=fused)):
            raise RuntimeError(f"{name}: two runs differ")
    for scenario, net in networks.items():
        runs, steps = 32, min(size.network_steps, 2000)
        with on_processor():
            right = solve_network(net, runs, steps, fused=False)
        for name, fused in (("kernel", True), ("loop", False)):
            run = solve_network(net, runs, steps, fused=fused)
            found[f"{scenario}, {name}"] = differ(run, right, 1e-9)
    return found


def count_roots(size: Size) -> dict[str, Any]:
    """Numbers of unstable roots over a map, identical to those of the processor."""
    del size
    net = fc.load("hollot2001/slow")
    over = {"flow.n": np.linspace(40.0, 90.0, 8), "link.queue.w_q": np.geomspace(1e-6, 1e-4, 8)}
    counts = lambda: fc.stability_map(net, over).to_xarray()  # noqa: E731
    with on_processor():
        right = counts()
    if not counts().equals(right):
        raise RuntimeError("counts of roots differ from those of the processor")
    return {"points": 64}


# fast


def time_equation(size: Size) -> dict[str, Any]:
    """Seconds for many runs of TCP on RED, by the kernel and by the loop; cores beside."""
    case, found = Case(size.runs), {}
    for name, fused in (("kernel", True), ("loop", False)):
        found[f"{name}_s"] = least(lambda f=fused: solve(case, size.steps, fused=f))
    few, short = Case(min(size.runs, 4096)), min(size.steps, 2048)
    with on_processor():
        for name, fused in (("kernel", True), ("loop", False)):
            spent = least(lambda f=fused: solve(few, short, fused=f))
            share = size.runs * size.steps / (few.lanes * short)
            found[f"processor, {name}_s"] = spent * share
    found["goals_s"] = GOALS
    return found


def time_network(net: Any, size: Size) -> dict[str, Any]:
    """Seconds for many runs of a network, by the kernel and by the loop."""
    found = {"runs": size.network_runs, "steps": size.network_steps}
    for name, fused in (("kernel", True), ("loop", False)):
        run = functools.partial(
            solve_network, net, size.network_runs, size.network_steps, fused=fused
        )
        found[f"{name}_s"] = least(run, 2)
    return found


def time_diffrax(size: Size) -> dict[str, Any]:
    """Seconds of diffrax's own solver for as many runs of the equation without delay."""
    import diffrax

    params = Case(size.runs).numbers()

    def slope(t: Any, y: Any, p: Any) -> Any:
        return field(t, y, (y,), p)

    @jax.jit
    @jax.vmap
    def run(p: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(slope), diffrax.Bosh3(), 0.0, STEP * size.steps, STEP, p.start, p,
            stepsize_controller=diffrax.ConstantStepSize(), max_steps=size.steps + 2,
            saveat=diffrax.SaveAt(t1=True), adjoint=diffrax.DirectAdjoint(),
        ).ys  # fmt: skip

    return {"without_delay_s": least(lambda: jax.block_until_ready(run(params)), 1)}


def time_maps(size: Size) -> dict[str, Any]:
    """Seconds of a map of trajectories and of one of certified counts."""
    net = fc.load("hollot2001/slow")

    def over(side: int) -> dict[str, Any]:
        flows, weights = np.linspace(40.0, 90.0, side), np.geomspace(1e-6, 1e-4, side)
        return {"flow.n": flows, "link.queue.w_q": weights}

    found = {}
    for name, fused in (("kernel", True), ("loop", False)):
        began = time.perf_counter()
        points = np.array([0.0, size.until])
        fc.simulate_map(
            net, over(size.trajectories), until=size.until, points=points,
            mesh=fc.Uniform(fused=fused),
        )  # fmt: skip
        found[f"trajectories, {name}_s"] = time.perf_counter() - began
    began = time.perf_counter()
    fc.stability_map(net, over(size.points))
    found["stability_s"] = time.perf_counter() - began
    return found


# usable


def describe(size: Size) -> dict[str, Any]:
    """What `fluidcc doctor` says, and the advice for a run that does not fit."""
    del size
    asked = [sys.executable, "-c", "from fluidcc.cli import main; main()", "doctor"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    try:
        fc.solve_dde(
            lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 1e6, lags=[lambda t, y, p: 1e5],
            params=np.ones(1_000_000), ts=np.arange(1e6), mesh=fc.Uniform(1e-3, slots=1 << 30),
            batched=True,
        )  # fmt: skip
    except memory.TooLittleMemory as error:
        return {
            "doctor": done.stdout,
            "code": done.returncode,
            "too_large": str(error),
            "memory": memory.available(),
        }
    raise RuntimeError("a run that cannot fit was not refused")


def parts(networks: dict[str, Any]) -> dict[str, Callable[[Size], dict[str, Any]]]:
    """All parts by name, in order."""
    return {
        "usable": describe,
        "right: states": functools.partial(agree, networks=networks),
        "right: counts of roots": count_roots,
        "fast: TCP/RED": time_equation,
        **{f"fast: {name}": functools.partial(time_network, net) for name, net in networks.items()},
        "fast: diffrax": time_diffrax,
        "fast: maps": time_maps,
        "right: tests": run_tests,
    }


def size() -> Size:
    """The goals' sizes on a card, else those of the rehearsal."""
    return REHEARSAL if device() == "cpu" else CARD


def where() -> dict[str, Any]:
    """The device and the versions."""
    import importlib.metadata

    packages = ("fluidcc", "jax", "warp-lang", "diffrax")
    return {
        "device": jax.devices()[0].device_kind,
        "kernel": device(),
        "driver": getattr(jax.devices()[0].client, "platform_version", ""),
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }
