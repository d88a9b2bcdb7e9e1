"""What JAX keeps of what it compiled."""

import pytest
from jax._src import compilation_cache

from fluidcc.compiled import seal_compiled

KEY = "jit_f-0123"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder, and JAX's cache there."""
    monkeypatch.setattr(compilation_cache, "LRUCache", compilation_cache.LRUCache)
    seal_compiled(tmp_path)
    cache, _ = compilation_cache.get_file_cache(str(tmp_path))
    return tmp_path, cache


@pytest.mark.parametrize("damaged", [b"", b"cod", b"Code"])
def test_a_damaged_file_is_deleted_and_made_anew(kept, damaged):
    folder, cache = kept
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"
    (folder / f"{KEY}-cache").write_bytes(damaged)
    assert cache.get(KEY) is None
    assert not list(folder.iterdir())
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"
