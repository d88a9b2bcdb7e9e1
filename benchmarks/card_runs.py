"""What runs on a graphics card, for `card.py --run`: right, fast and usable.

Each part adds its numbers to those found before, and raises if something is wrong. Sizes are those
of the goals on a card, and small on a processor, where all is rehearsed. What would take too long
is done for a share of its steps or points, which is named beside the time.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from card import BANDWIDTH, BENCHMARK, PEAK, compile_loop, problem
from handwritten import STEP, Case, field, history, lags, network

import fluidcc as fc
from fluidcc.cli.machine import installed
from fluidcc.dde.integrate import integrate
from fluidcc.machine import processors
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import network_system

PROBLEMS = (BENCHMARK, "hollot2001/slow", "TCP/RED, 3 groups", "qazi2010/two_bmcc_router")
WAYS = {"kernel": True, "loop": False}
GOALS = {"kernel": 1.5, "loop": 8.0}  # s, for TCP/RED on a card
CHECKED = 2048  # steps that are compared with the processor
BUDGET = 10.0  # s, for what is timed at a time

KEYS = {
    "seconds": "of the whole as asked for: the least of up to three calls that compile nothing; "
    "projected from a share if `share` is below 1",
    "share": "of the steps, points or seeds asked for that was run",
    "first_call_s": "the first call, which compiles",
    "difference_from_processor": "largest one of end states, relative to the largest state",
    "one_core_s, all_cores_s": "seconds of the whole on processors of this machine, each with a "
    "process of its own: projected from few runs",
    "times_as_fast_as_...": "that time over `seconds`",
    "bytes_in_a_step, operations_in_a_step": "of all runs, in the loop's program as XLA compiled "
    "it; of the kernel: each row of the history written once and read once, and the loop's "
    "operations",
    "share_of_bandwidth, share_of_peak": "of an H200: 4.8 TB/s, 34 TFLOP/s in double precision",
    "floor_s": "the shortest time that bytes, operations and launches of the loop allow there",
    "each_s": "seconds for a point or a seed",
    "failed": "what went wrong",
}


class Size(NamedTuple):
    """How much is run: trajectories and steps, of networks too, and sides of maps."""

    runs: int
    steps: int
    network_runs: int
    network_steps: int
    trajectories: tuple[int, ...]  # growing sides of a map of trajectories
    until: float  # s, of these
    points: tuple[int, ...]  # growing sides of a map of stability
    seeds: tuple[int, ...]  # growing numbers of seeds of trains
    flows: int  # of trains
    long: tuple[int, int]  # runs with long histories, and their steps
    tests: tuple[str, ...]
    processes: str  # for tests


CARD = Size(
    100_000, 100_000, 100_000, 10_000, (32, 100, 1000), 60.0, (64, 256, 1000),
    (64, 4096, 100_000), 50, (100_000, 32_000),
    ("tests/fused", "tests/dde", "tests/trains", "tests/model/test_simulate.py"), "6",
)  # fmt: skip
REHEARSAL = Size(
    64, 4096, 16, 256, (2, 3), 2.0, (4, 8), (2, 4), 5, (24, 4096),
    ("tests/fused/test_operations.py", "tests/dde/test_statuses.py"), "0",
)  # fmt: skip


def on_card() -> bool:
    """Whether JAX computes on a card."""
    return jax.default_backend() != "cpu"


def on_processor() -> Any:
    """All that is computed meanwhile is on the processor."""
    return jax.default_device(jax.devices("cpu")[0])


def clock(run: Callable[[], Any]) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


@contextlib.contextmanager
def noting(numbers: dict[str, Any]) -> Iterator[None]:
    """An error is noted among the numbers, and the next is tried."""
    try:
        yield
    except Exception as error:
        numbers["failed"] = f"{type(error).__name__}: {error}"


# initial-value problems


def solve_equation(
    case: Case, steps: int, *, fused: bool, every: int = 1, slots: int = 0
) -> np.ndarray:
    """End states (B, K + 2) of TCP on RED; of one in `every` of its trajectories."""
    params = jax.tree.map(lambda v: v[::every], case.numbers())
    solution = fc.solve_dde(
        field, history, 0.0, STEP * steps, lags=lags(case.classes), params=params,
        ts=np.array([STEP * steps]), batched=True,
        mesh=fc.Uniform(STEP, slots=slots or case.slots, fused=fused),
    )  # fmt: skip
    if np.any(np.asarray(solution.status)):
        raise RuntimeError("some runs failed")
    y = solution.y
    return np.stack([np.asarray(v)[:, -1] for v in (*y.windows, y.queue, y.average)], axis=1)


def solve_network(net: Any, runs: int, steps: int, *, fused: bool, every: int = 1) -> np.ndarray:
    """End states (B, n) of a network, whose numbers differ by up to 10 %."""
    mesh = uniform_mesh(net)
    mesh = fc.Uniform(mesh.step, slots=mesh.slots, fused=fused)
    until = steps * float(mesh.step)
    system, y0, numbers = network_system(net, until=until)
    shares = np.linspace(0.95, 1.05, runs)[::every]
    first = jax.tree.map(lambda v: np.multiply.outer(shares, v), numbers[0])
    found = integrate(
        system, np.tile(y0, (len(shares), 1)), 0.0, until, type(numbers)(first, *numbers[1:]),
        mesh=mesh, ts=np.array([until]), batched=True,
    )  # fmt: skip
    return np.asarray(found.y)[:, -1]


def solver(name: str, runs: int) -> Callable[..., np.ndarray]:
    """The function of steps, `fused` and `every` that gives the end states of a problem."""
    if name == BENCHMARK:
        return functools.partial(solve_equation, Case(runs))
    net = network(3) if name.startswith(BENCHMARK) else fc.load(name)
    return functools.partial(solve_network, net, runs)


def difference(found: np.ndarray, right: np.ndarray, most: float) -> float:
    """The largest, relative to the largest number; raises RuntimeError if it is above `most`."""
    error = float(np.max(np.abs(found - right)) / np.max(np.abs(right)))
    if not error <= most:
        raise RuntimeError(f"differs from the processor by {error:.1e}, more than {most:.0e}")
    return error


def time_steps(run: Callable[[int], Any], steps: int, spent: float, tried: int) -> dict[str, Any]:
    """Seconds of `steps` steps, or of as many as the budget allows if `tried` took `spent` s."""
    expected = spent * steps / tried
    share = min(1.0, BUDGET / expected)
    count = max(int(share * steps), 1)
    repetitions = max(1, min(3, int(BUDGET / expected)))
    best = min(clock(lambda: run(count)) for _ in range(repetitions))
    return {"seconds": best * steps / count, "share": count / steps}


def measure(name: str, size: Size, found: dict[str, Any]) -> None:
    """States of a problem against those of the processor, the same bits again, and seconds."""
    equation = name == BENCHMARK
    runs, steps = size[:2] if equation else size[2:4]
    solve, few = solver(name, runs), max(runs // 32, 1)
    checked = min(CHECKED, steps)
    out = found[name] = {"runs": runs, "steps": steps}
    with on_processor():
        right = solve(checked, fused=False, every=few)
    for way, fused in WAYS.items():
        numbers = out[way] = {"goal_s": GOALS[way]} if equation else {}
        with noting(numbers):
            began = time.perf_counter()
            first = solve(checked, fused=fused)
            numbers["first_call_s"] = time.perf_counter() - began
            most = 1e-11 if equation else 1e-9
            numbers["difference_from_processor"] = difference(first[::few], right, most)
            began = time.perf_counter()
            again = solve(checked, fused=fused)
            spent = time.perf_counter() - began
            numbers["same_bits_again"] = bool(np.array_equal(first, again))
            if not numbers["same_bits_again"]:
                raise RuntimeError("a second run has other bits")
            run = functools.partial(solve, fused=fused)
            numbers |= time_steps(run, steps, spent, checked)


def count_work(name: str, size: Size, found: dict[str, Any]) -> None:
    """Bytes and operations of a step, and the achieved shares of what an H200 can do."""
    out = found[name]
    loop = compile_loop(name, runs=out["runs"], here=True)
    task, _ = problem(name, 1)
    y0, args = task.one()
    rows = 2 * 8 * 2 * task.system.record_size(y0, task.t0, args) * out["runs"]
    for way, moved in (("kernel", rows), ("loop", loop["bytes"])):
        numbers = out[way]
        numbers |= {"bytes_in_a_step": moved, "operations_in_a_step": loop["operations"]}
        if "seconds" in numbers and on_card():
            step = numbers["seconds"] / out["steps"]
            numbers["share_of_bandwidth"] = moved / BANDWIDTH / step
            numbers["share_of_peak"] = loop["operations"] / PEAK / step
    floor = 1e-6 * loop["floor_us"] * out["steps"]
    out["loop"] |= {"kernels_in_a_step": loop["kernels"], "floor_s": floor}


def count_roots(size: Size, found: dict[str, Any]) -> None:
    """Numbers of unstable roots over a map, identical to those of the processor."""
    net = fc.load("hollot2001/slow")
    counts = lambda: fc.stability_map(net, grid(11)).grid("unstable")  # noqa: E731
    with on_processor():
        right = counts()
    same = bool(np.array_equal(counts(), right))
    found["roots"] = {"points": right.size, "counts_identical_to_processor": same}
    if not same:
        raise RuntimeError("counts of roots differ from those of the processor")


# maps and trains


def grid(side: int) -> dict[str, Any]:
    """Parameters of a map."""
    return {
        "flow.n": np.linspace(40.0, 90.0, side),
        "link.queue.w_q": np.geomspace(1e-6, 1e-4, side),
    }


def time_growing(
    run: Callable[[int], Any], numbers: tuple[int, ...], power: int, budget: float
) -> dict[str, Any]:
    """Seconds for the largest of growing numbers that is expected to fit the budget.

    Time grows as that power of them; the first calls, which compile, do not count.
    """
    began, spent, compiling, done = time.perf_counter(), 0.0, 0.0, 0
    for number in numbers:
        left = budget - (time.perf_counter() - began)
        if done and 2.0 * spent * (number / done) ** power + compiling > left:
            break
        first = clock(lambda n=number: run(n))
        done, spent = number, clock(lambda n=number: run(n))
        compiling = max(first - spent, 0.0)
    share = (done / numbers[-1]) ** power
    return {"seconds": spent / share, "share": share, "each_s": spent / done**power}


def time_maps(size: Size, found: dict[str, Any]) -> None:
    """Seconds of a map of trajectories and of one of certified counts; all cores beside."""
    net, ends = fc.load("hollot2001/slow"), np.array([0.0, size.until])

    def trajectories(side: int, fused: bool) -> None:
        mesh = fc.Uniform(fused=fused)
        done = fc.simulate_map(net, grid(side), until=size.until, points=ends, mesh=mesh)
        if done.failed:
            raise RuntimeError(f"{len(done.failed)} points failed: {done.failed[0].message}")

    def stability(side: int) -> None:
        done = fc.stability_map(net, grid(side))
        if not done.grid("certified").all():
            raise RuntimeError("some counts are not certified")

    ways = {f"trajectories, {way}": functools.partial(trajectories, fused=WAYS[way])
            for way in WAYS}  # fmt: skip
    out = found["maps"] = {}
    for name, run in {"certified counts": stability, **ways}.items():
        sides = size.points if run is stability else size.trajectories
        numbers = out[name] = {"points": sides[-1] ** 2}
        if run is stability:
            numbers["goal_s"] = 10.0
        with noting(numbers):
            numbers |= time_growing(run, sides, 2, 4 * BUDGET)
            with on_processor():
                beside = time_growing(run, sides[:1], 2, BUDGET)["each_s"]
            numbers["all_cores_s"] = beside * sides[-1] ** 2
            numbers["times_as_fast_as_all_cores"] = beside / numbers["each_s"]


def trains(seeds: int, flows: int) -> Any:
    """Runs of trains of packets of so many flows, one a seed."""
    net = fc.replace(fc.load("akujobi2002/homogeneous_ecn"), {"flows.ecn.n": flows})
    return fc.simulate_trains(net, until=4.0, warmup=2.0, seeds=range(1, seeds + 1))


def goodputs(seeds: int, flows: int) -> list[float]:
    """Goodput of each seed [bit/s]."""
    return [run["flows"]["ecn"]["goodput"] for run in trains(seeds, flows).runs]


def time_trains(size: Size, found: dict[str, Any]) -> None:
    """Trains: the same bits again, the mean of the processor, and seconds."""
    few, most = size.seeds[0], size.seeds[-1]
    numbers = found["trains"] = {"seeds": most, "flows": size.flows, "until_s": 4.0}
    here, again = (goodputs(few, size.flows) for _ in range(2))
    numbers["same_bits_again"] = here == again
    from card_usable import in_child

    there = in_child(f"goodputs({few}, {size.flows})", JAX_PLATFORMS="cpu")
    spread = np.hypot(np.std(here), np.std(there)) / np.sqrt(few)
    off = abs(np.mean(here) - np.mean(there))
    numbers["mean_goodput_off_processor_in_standard_errors"] = float(off / spread) if off else 0.0
    if here != again:
        raise RuntimeError("the same seeds have other bits")
    numbers |= time_growing(lambda n: trains(n, size.flows), size.seeds, 1, 6 * BUDGET)


def time_diffrax(size: Size, found: dict[str, Any]) -> None:
    """Seconds of diffrax's own solver for as many runs and steps of the equation without delay."""
    import diffrax

    params = Case(size.runs).numbers()

    def slope(t: Any, y: Any, p: Any) -> Any:
        return field(t, y, (y,), p)

    @jax.jit
    def run(until: Any) -> Any:
        def one(p: Any) -> Any:
            return diffrax.diffeqsolve(
                diffrax.ODETerm(slope), diffrax.Bosh3(), 0.0, until, STEP, p.start, p,
                stepsize_controller=diffrax.ConstantStepSize(), max_steps=None,
                saveat=diffrax.SaveAt(t1=True), adjoint=diffrax.ForwardMode(),
            ).ys  # fmt: skip

        return jax.vmap(one)(params)

    def steps(count: int) -> None:
        jax.block_until_ready(run(STEP * count))

    numbers = found["diffrax without delay"] = {"runs": size.runs, "steps": size.steps}
    numbers["first_call_s"] = clock(lambda: steps(CHECKED))
    numbers |= time_steps(steps, size.steps, clock(lambda: steps(CHECKED)), CHECKED)
    for way in WAYS:
        with contextlib.suppress(KeyError):  # that way has failed
            mine = found[BENCHMARK][way]["seconds"]
            numbers[f"{way}_times_as_fast_as_diffrax"] = numbers["seconds"] / mine


# all parts

Part = Callable[[Size, dict[str, Any]], None]


def parts() -> dict[str, tuple[float, Part]]:
    """All parts by name, the most important first, with the most seconds that each may take."""
    import card_usable as use

    one, every = (1, "one_core"), (processors(), "all_cores")
    return {
        **{name: (100.0, functools.partial(measure, name)) for name in PROBLEMS},
        "roots": (90.0, count_roots),
        "maps": (150.0, time_maps),
        "doctor": (30.0, use.describe),
        "memory": (90.0, use.fill_memory),
        "devices": (60.0, use.divide),
        **{f"work of a step, {n}": (60.0, functools.partial(count_work, n)) for n in PROBLEMS},
        "trains": (100.0, time_trains),
        "diffrax": (60.0, time_diffrax),
        "one core": (90.0, functools.partial(use.time_cores, *one)),
        "all cores": (90.0, functools.partial(use.time_cores, *every)),
        "tests": (200.0, use.run_tests),
    }


def size() -> Size:
    """The goals' sizes on a card, else those of the rehearsal."""
    return CARD if on_card() else REHEARSAL


def where() -> dict[str, Any]:
    """The device, the versions, and the parts that need no card."""
    packages = ("fluidcc", "jax", "warp-lang", "diffrax")
    return {
        "device": jax.devices()[0].device_kind,
        "driver": getattr(jax.devices()[0].client, "platform_version", ""),
        "cores": processors(),
        "versions": {name: installed(name) or "not installed" for name in packages},
        "populations": "not on a card: their laws and loops are computed by NumPy and Numba",
        "roots of maps": "not on a card: equilibria are computed by JAX, roots by NumPy",
    }
