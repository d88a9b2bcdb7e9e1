"""What JAX compiled and kept: it is used only as it was written."""

import contextlib
from contextlib import AbstractContextManager
from pathlib import Path

from jax._src import compilation_cache
from jax._src.lru_cache import LRUCache

from fluidcc.seals import sealed

_folders: set[Path] = set()  # of ours; those of others are as JAX has them


class _Sealed(LRUCache):
    """JAX's cache; what is damaged is deleted, and compiled again."""

    def get(self, key: str) -> bytes | None:
        with self._sealed(key):
            return super().get(key)

    def put(self, key: str, value: bytes) -> None:
        with self._sealed(key):
            super().put(key, value)

    def _sealed(self, key: str) -> AbstractContextManager[None]:
        folder = Path(self.path)
        if folder not in _folders:
            return contextlib.nullcontext()
        return sealed(folder, key, f"{key}-cache")


def seal_compiled(folder: Path) -> None:
    """Let JAX keep what it compiles in a folder under seals."""
    _folders.add(folder)
    compilation_cache.LRUCache = _Sealed  # pyright: ignore[reportPrivateImportUsage]
