"""The compiler option that makes one function of a loop: it works, and never by surprise."""

import os
import subprocess
import sys

import pytest

COMPILED = """
import jax, jax.numpy as jnp
import fluidcc as fc
{before}
def run(p):
    return fc.solve_dde(lambda t, y, z, p: -p * z[0], lambda t, p: jnp.ones(3), 0.0, 1.0,
        lags=(lambda t, y, p: 0.5,), params=p, ts=[1.0], mesh=fc.{mesh}).y
text = jax.jit(run).lower(1.0).compile().as_text()
print("xla_cpu_small_call" in text)
"""
# no loop is small: what makes one function of it is the option, not the default of this JAX
NONE_SMALL = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0"


def output(code, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "FLUIDCC_FAST_CPU")}
    env.update(JAX_PLATFORMS="cpu", **environment)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize("mesh", ["Uniform(0.001, slots=1024)", "Located(0.01, max_steps=500)"])
def test_option_makes_one_function_of_the_loop(mesh):
    code = COMPILED.format(before="fc.fast_cpu()", mesh=mesh)
    assert output(code, XLA_FLAGS=NONE_SMALL) == ["True"]


def test_it_keeps_flags_and_warns_once_when_late():
    code = """
import os, warnings
import jax.numpy as jnp
import fluidcc as fc
print(fc.fast_cpu(), "--xla_force_host_platform_device_count=1" in os.environ["XLA_FLAGS"])
jnp.zeros(1).block_until_ready()
del os.environ["XLA_FLAGS"]
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    print(fc.fast_cpu(), fc.fast_cpu(), len(seen), "FLUIDCC_FAST_CPU=1" in str(seen[0].message))
"""
    found = output(code, XLA_FLAGS="--xla_force_host_platform_device_count=1")
    assert found == ["True", "True", "False", "False", "1", "True"]
