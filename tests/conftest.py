"""Settings that all tests share."""

import gc
import os
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import pytest
from hypothesis import settings
from typer.testing import CliRunner

from fluidcc import fast_cpu
from fluidcc.check.draws import BACKEND
from fluidcc.cli.app import app
from fluidcc.executables import forget

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# what one run compiled serves the next
jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir(), "fluidcc-jax")))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

gc.set_threshold(20_000, 20, 20)  # tracing makes many objects, and XLA joins in each collection

fast_cpu()
if jax.__version_info__ < (0, 11):  # as the package compiles: in two thirds of the time
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"

settings.register_profile(
    "shared", backend=BACKEND, deadline=None, derandomize=True, print_blob=True
)
settings.load_profile("shared")


MAPPINGS = 20_000  # of the 65 530 that Linux grants a process; beyond, it dies by a bad address


LONGEST = ("test_verdicts.py", "test_sensitivity.py", "test_cycles.py", "test_own_laws.py")


def pytest_collection_modifyitems(items):
    """Modules with tests of half a minute come first: one begun last leaves the other core idle."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish():
    """Modules stay too: nor need it walk through them, before the first tests are done."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _spare_the_collector():
    """What a module compiled stays: the collector need not walk through it again and again.

    Each compiled function takes mappings of memory; before they run out, all of them go.
    """
    yield
    mapped = Path("/proc/self/maps")
    if mapped.exists() and mapped.read_bytes().count(b"\n") > MAPPINGS:
        gc.unfreeze()
        eqx.clear_caches()
        jax.clear_caches()
        forget()
    gc.collect()
    gc.freeze()


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command on standard input `given`; its exit code, standard output and error."""
    monkeypatch.setattr("fluidcc.cli.run.EVERY", 1e6)  # slow machines report no more than others
    monkeypatch.chdir(tmp_path)

    def call(*words, heavy=True, given=None):
        extra = ["--no-fast-cpu"] if heavy else []
        result = CliRunner().invoke(app, [*words, *extra], input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call
