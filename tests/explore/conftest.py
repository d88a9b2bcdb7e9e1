"""Settings of the explorer's tests."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def _find_what_was_compiled():
    """The explorer's processes find what other tests compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir(), "fluidcc-jax")))
        yield
