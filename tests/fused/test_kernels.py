"""Kernels take the steps that JAX takes: same states, records and statuses."""

import dataclasses
import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde import equation
from fluidcc.dde.fused import launch
from fluidcc.dde.fused.launch import Plan
from fluidcc.dde.integrate import integrate
from fluidcc.dde.system import shapes_of
from fluidcc.folders import damaged
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import network_system

UNTIL = 12.0
TIMES = np.linspace(0.0, UNTIL, 25)


def tcp_red(t, y, z, p):
    """Windows of one class, queue and its average [packet]: marks above a threshold."""
    window, queue, average = y
    old_window, old_queue, old_average = z[0]
    trip, old_trip = (p["trip"] + q / p["capacity"] for q in (queue, old_queue))
    mark = jnp.clip((old_average - 20.0) * p["slope"], 0.0, 1.0)
    change = p["n"] * window / trip - p["capacity"]
    change = jnp.where((queue <= 0.0) & (change < 0.0), 0.0, change)
    return jnp.stack(
        [1.0 / trip - window * old_window / (2.0 * old_trip) * mark, change, queue - average]
    )


def trip(t, y, p):
    return p["trip"] + y[1] / p["capacity"]


def before(t, p):
    past = jnp.asarray(t, p["n"].dtype)
    return jnp.stack([10.0 * p["trip"], 3.0 + past, 5.0 - past])


def parameters(count):
    """Many sets of them."""
    spread = np.linspace(0.0, 1.0, count)
    return {
        "trip": jnp.asarray(0.05 + 0.1 * spread),
        "capacity": jnp.asarray(np.full(count, 800.0)),
        "slope": jnp.asarray(0.001 + 0.003 * spread[::-1]),
        "n": jnp.asarray(20.0 + 20.0 * spread**2),
    }


def solved(params, *, fused, slots=256):
    mesh = fc.Uniform(1.0 / 512, slots=slots, fused=fused)
    given = {"lags": (trip,), "params": params, "mesh": mesh, "batched": True}
    return fc.solve_dde(tcp_red, before, 0.0, UNTIL, ts=TIMES, **given)


def close(found, expected, rtol):
    found, expected = np.asarray(found), np.asarray(expected)
    size = np.max(np.abs(expected), axis=tuple(range(np.ndim(expected) - 1)))
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=rtol)


def same(found, expected, rtol):
    close(found.y, expected.y, rtol)
    np.testing.assert_array_equal(found.status, expected.status)
    np.testing.assert_allclose(found.status_time, expected.status_time, rtol=1e-15)
    np.testing.assert_array_equal(found.steps, expected.steps)


def test_one_that_fails_leaves_the_others_as_they_are(monkeypatch):
    monkeypatch.setattr(launch, "_MOST_LANES", 64)
    params = parameters(70)
    sound = solved(params, fused=True, slots=512)
    params["n"] = params["n"].at[5].set(jnp.nan)
    params["trip"] = params["trip"].at[66].set(1.2)
    found = solved(params, fused=True, slots=512)
    same(found, solved(params, fused=False, slots=512), 1e-13)
    assert fc.Status(int(found.status[5])) is fc.Status.nonfinite
    assert fc.Status(int(found.status[66])) is fc.Status.lag_exceeds_ring
    others = np.delete(np.arange(70), [5, 66])
    np.testing.assert_array_equal(found.y[others], sound.y[others])


def test_modes_and_inputs():
    """Events at nodes: a relay, and a held input that comes late."""
    modes = fc.Modes(
        start=lambda t, y, z, p: 0,
        guards=lambda t, y, z, p, mode: jnp.where(mode == 0, 1.0 - y, y),
        switch=lambda t, y, z, p, mode, hit: (1 - mode, y),
    )
    inputs = fc.Sampled(times=[0.75, 1.5], values=[0.3, -0.2, 0.1])

    def relay(t, y, z, p, u, mode):
        return jnp.where(mode == 0, 1.0, -1.0) + u(t - 0.25) - 0.1 * z[0]

    found, expected = (
        fc.solve_dde(
            relay, lambda t, p: 0.2, 0.0, 6.0, lags=(lambda t, y, p: 0.5,), modes=modes,
            inputs=inputs, ts=TIMES / 2.0, mesh=fc.Uniform(1.0 / 64, slots=64, fused=fused),
        )
        for fused in (True, False)
    )  # fmt: skip
    assert found.status == expected.status == fc.Status.ok
    np.testing.assert_allclose(found.y, expected.y, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "steps"),
    [("athuraliya2001/rem", 2000), ("brakmo1995/round_trips", 200), ("misra2003/besteffort", 100)],
)
def test_a_network(name, steps):
    """The rules of the laws, as `simulate` has them; of one, two and fifty round trips."""
    net = fc.load(name)
    mesh = uniform_mesh(net)
    kernel = fc.Uniform(mesh.step, slots=mesh.slots, fused=True)
    until = steps * float(mesh.step)
    found, expected = (fc.simulate(net, until=until, mesh=m) for m in (kernel, mesh))
    assert found.status is expected.status is fc.Status.ok
    compared = 0
    for part in ("links", "flows"):
        for key, run in getattr(expected, part).items():
            for field, value in vars(run).items():
                size = np.max(np.abs(value), initial=1e-9)
                other = getattr(getattr(found, part)[key], field)
                np.testing.assert_allclose(other, value, rtol=0, atol=1e-12 * size, err_msg=field)
                compared += np.size(value)
    assert compared > 1000


@pytest.mark.parametrize(
    ("name", "clock"), [("hollot2001/slow", "fifo"), ("athuraliya2001/rem", "explicit")]
)
def test_networks_abreast(name, clock):
    """Each as it is alone, though searches and branches take other turns in the others."""
    net = dataclasses.replace(fc.load(name), delay=clock)
    mesh = uniform_mesh(net)
    kernel = fc.Uniform(mesh.step, slots=2 * (mesh.slots or 512), fused=True)
    until = 600 * float(mesh.step)
    system, y0, numbers = network_system(net, until=until)
    shares = np.linspace(0.9, 1.1, 11)
    many = jax.tree.map(lambda v: np.multiply.outer(shares, v), numbers)
    run = functools.partial(
        integrate, system, t0=0.0, t1=until, mesh=kernel, ts=np.linspace(0.0, until, 9)
    )
    found = run(y0=jnp.tile(y0, (11, 1)), args=many, batched=True)
    for k in (0, 4, 10):
        args = jax.tree.map(lambda v, k=k: v[k], many)
        alone = run(y0=y0, args=args)
        assert alone.status == found.status[k] == fc.Status.ok
        close(found.y[k], alone.y, 1e-12)
        assert alone.steps == found.steps[k] == 600


def plan(card):
    params = jax.tree.map(lambda v: v[0], parameters(1))
    args = equation.Arguments(params, None)
    system = equation.build(tcp_red, before, (trip,), None, jnp.zeros(3), jnp.zeros(()), args)
    shapes = shapes_of((jnp.zeros(3), params)), shapes_of((None,))
    return Plan(system, equation.Arguments, *shapes, 3, 256, card, 1)


def test_the_kernel_for_a_card_compiles_without_one(tmp_path):
    """NVIDIA's compiler is in the package: for Hopper cards."""
    wp = pytest.importorskip("warp")
    made = wp.compile_aot_module(
        launch.kernel(plan(True)).module, arch=90, module_dir=tmp_path, use_ptx=False
    )
    assert made[0].read_bytes()[:4] == b"\x7fELF"


def test_a_card_agrees_with_the_processor():
    if launch.device() == "cpu":
        pytest.skip(f"no graphics card: JAX computes on {jax.devices()[0].platform}")
    params = parameters(5000)
    kernel, scan = (solved(params, fused=f) for f in (True, False))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = solved(params, fused=False)
    same(kernel, expected, 1e-11)
    same(scan, expected, 1e-11)
    net, over = fc.load("hollot2001/slow"), {"flow.n": np.linspace(40.0, 90.0, 300)}
    maps = [
        functools.partial(fc.simulate_map, net, over, until=UNTIL, points=TIMES, mesh=mesh)
        for mesh in (fc.Uniform(fused=True), fc.Uniform())
    ]
    with jax.default_device(jax.devices("cpu")[0]):
        expected = maps[1]().to_xarray()["links.bottleneck.queue"]
    for found in maps:
        np.testing.assert_allclose(
            found().to_xarray()["links.bottleneck.queue"], expected, rtol=1e-9
        )


def long(t, y, z, p):
    for _ in range(600):
        y = y * p + 1.0
    return y - z[0]


@pytest.mark.parametrize(
    ("field", "start", "end", "said"),
    [
        (long, (8, 8), 1.0, "100000 operations"),
        (lambda t, y, z, p: -z[0], (), 1e9, "2147483647 numbers in a history"),
    ],
)
def test_too_large_kernels_are_refused(field, start, end, said):
    slots = 1 << 31 if end > 1.0 else None
    with pytest.raises(ValueError, match=f"up to {said}"):
        fc.solve_dde(
            field, lambda t, p: jnp.ones(start), 0.0, end, ts=[end], lags=(lambda t, y, p: 0.5,),
            params=jnp.ones((8, 8)), mesh=fc.Uniform(0.1, slots=slots, fused=True),
        )  # fmt: skip


def test_without_warp_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "warp", None)
    monkeypatch.delitem(sys.modules, "fluidcc.dde.fused.threads", raising=False)
    monkeypatch.delattr("fluidcc.dde.fused.threads", raising=False)
    with pytest.raises(ValueError, match=r"pip install 'fluidcc\[gpu\]'"):
        launch.kernel.__wrapped__(plan(False))


SMALL = """
import jax.numpy as jnp, numpy as np, fluidcc as fc
def field(t, y, z, p):
    return -p["a"] * z[0]
found = fc.solve_dde(
    field, lambda t, p: jnp.ones(1), 0.0, 5.0, lags=(lambda t, y, p: 0.5,), ts=np.arange(6.0),
    params={"a": jnp.array([1.0, 2.0])}, mesh=fc.Uniform(1 / 128, slots=256, fused=True),
    batched=True,
)
print(found.y.tolist())
"""


def test_a_damaged_kernel_is_compiled_anew(tmp_path):
    """In processes of their own, as one that is loaded stays so."""

    def run():
        env = os.environ | {"FLUIDCC_CACHE_DIR": str(tmp_path)}
        found = subprocess.run(
            [sys.executable, "-c", SMALL], env=env, capture_output=True, text=True, timeout=300
        )
        return found.returncode, found.stdout, found.stderr

    whole = run()
    (compiled,) = tmp_path.glob("fluidcc/warp/**/*.o")
    code = bytearray(compiled.read_bytes())
    code[len(code) // 2 :] = bytes(len(code) - len(code) // 2)
    compiled.write_bytes(code)
    assert damaged(tmp_path) == [compiled]
    assert run() == whole and whole[0] == 0
    assert damaged(tmp_path) == []
