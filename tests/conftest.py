"""Settings that all tests share."""

import os
import tempfile
from pathlib import Path

import jax
from hypothesis import settings

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

_compiled = Path(os.environ.get("FLUIDCC_TEST_CACHE") or Path(tempfile.gettempdir(), "fluidcc-jax"))
jax.config.update("jax_compilation_cache_dir", str(_compiled))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

settings.register_profile("shared", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("shared")
