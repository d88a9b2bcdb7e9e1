"""Batches on eight simulated devices: the same numbers as on one, and no device waits."""

import os
import subprocess
import sys
from pathlib import Path

import jax

# without fused multiplications and additions, which the compiler places as code happens to lie
FLAGS = "--xla_force_host_platform_device_count=8 --xla_cpu_max_isa=AVX"

CODE = """
import jax, jax.numpy as jnp, numpy as np
import fluidcc as fc, hybrid
from fluidcc.dde import located, uniform

ONE = jax.devices()[0]
TIMES = [0.5, 1.8, 2.4]
inputs = fc.Sampled(times=[0.7, 1.3], values=[0.2, -0.1, 0.4])
programs = []

def compiled(function):
    def call(*args, **options):
        if options["shared"] is not None:
            programs.append(function.lower(*args, **options).compile().as_text())
        return function(*args, **options)
    return call

def modes(n):
    p = hybrid.case("slow_start")
    p = {k: np.broadcast_to(v, (n, *v.shape)) for k, v in p.items()}
    return p | {"propagation": p["propagation"] * np.linspace(0.9, 1.1, n)}

def switching(mesh):
    return lambda p: hybrid.run(p, mesh, end=2.4, ts=TIMES, batched=True)

def smooth(n):
    return {"gain": np.linspace(0.9, 1.1, n), "lag": np.linspace(0.5, 0.7, n)}

def slope(t, y, z, p, *u):
    held = u[0](t - 0.1) if u else 0.0
    return p["gain"] * jnp.sin(z[0]) * jnp.exp(-y * y).astype(y.dtype) - held

def curved(mesh, **options):
    return lambda p: fc.solve_dde(slope, lambda t, p: p["gain"], 0.0, 2.4, params=p, ts=TIMES,
        lags=(lambda t, y, p: p["lag"],), mesh=mesh, batched=True, **options)

def same(found, wanted, rows=slice(None)):
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    return all(np.array_equal(np.asarray(a)[rows], np.asarray(b)[rows]) for a, b in pairs)

UNIFORM, LOCATED = fc.Uniform(0.24 / 32, slots=128), fc.Located(0.24 / 64, max_steps=1000)
CASES = {
    "uniform": (switching(UNIFORM), modes, (8, 13)),
    "located": (switching(LOCATED), modes, (13,)),
    "inputs": (curved(fc.Uniform(0.01), inputs=inputs), smooth, (13,)),
}
uniform._uniform = compiled(uniform._uniform)
located._located = compiled(located._located)
for name, (run, params, sizes) in CASES.items():
    for size in sizes:
        found = run(params(size))
        with jax.default_device(ONE):
            wanted = run(params(size))
        assert len(wanted.y.devices()) == 1, name
        assert same(found, wanted), (name, size)
        assert found.y.shape[0] == size, name
        assert np.all(np.asarray(found.status) == fc.Status.ok), (name, repr(found))
        if size == 8:
            rows = sorted(shard.index[0].start for shard in found.y.addressable_shards)
            assert rows == list(range(8)), (name, found.y.sharding)
# in no program do devices exchange anything
for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute"):
    assert programs and not any(word in text for text in programs), word

run, good = CASES["uniform"][0], modes(13)
bad = {**good, "flows": np.where(np.arange(13) == 6, np.nan, good["flows"])}
right, found = run(good), run(bad)
assert same(found, right, np.arange(13) != 6)
assert int(found.status[6]) == fc.Status.nonfinite and np.all(np.isfinite(found.y))

# what a caller has put on one device stays there, traced code is the caller's
there = jax.devices()[3]
assert run(jax.device_put(modes(8), there)).y.devices() == {there}
print("done")
"""


def test_eight_devices_give_what_one_gives():
    env = {k: v for k, v in os.environ.items() if k != "FLUIDCC_FAST_CPU"}
    env |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": FLAGS, "PYTHONPATH": str(Path(__file__).parent)}
    env["JAX_COMPILATION_CACHE_DIR"] = jax.config.values["jax_compilation_cache_dir"]
    env["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
