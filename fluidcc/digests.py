"""Seals: digests by which stored files are known to be unchanged.

A file of ours has its seal in its name. If a library gives the names, a separate file in the same
folder holds the seals of its files.
"""

import contextlib
import functools
import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from fluidcc.folders import whole

_ENDING = ".seal"


def seal(*parts: bytes) -> str:
    """Digest of the stored bytes: 32 hexadecimal digits."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def sealed_name(stem: str, data: bytes, ending: str, key: bytes = b"") -> str:
    """Name of a file with `data` in it; `key` stands for the other inputs that made them."""
    return f"{stem}-{seal(key, stem.encode(), data)}{ending}"


def is_sound(file: Path, data: bytes, key: bytes = b"") -> bool:
    """Whether `data`, read from a file, match the seal in its name."""
    stem, _, _ = file.stem.rpartition("-")
    return file.name == sealed_name(stem, data, file.suffix, key)


@contextlib.contextmanager
def sealed(folder: Path, name: str, *patterns: str) -> Iterator[None]:
    """Within this context a library reads and writes its files in a folder; `patterns` match them.

    On entry, files that differ from their seals are deleted, so that the library makes them anew;
    on exit all are sealed. Python sources stay: the caller writes them, and others may be reading.
    """
    mark = folder / f"{name}{_ENDING}"
    known = mark.read_bytes() if mark.exists() else b""
    if known != _seals(folder, patterns):
        known = b""
        for file in (mark, *_matching_files(folder, patterns)):
            if file.suffix != ".py":
                file.unlink(missing_ok=True)
    yield
    present = _seals(folder, patterns)
    if present != known:
        with contextlib.suppress(OSError), whole(mark) as part:  # a full disk only costs time
            part.write_bytes(present)


def _matching_files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def _seals(folder: Path, patterns: tuple[str, ...]) -> bytes:
    """A line for each file: its seal and its name."""
    lines = []
    for file in _matching_files(folder, patterns):
        with contextlib.suppress(FileNotFoundError):  # another process has deleted it
            lines.append(f"{seal(file.read_bytes())} {file.relative_to(folder).as_posix()}\n")
    return "".join(lines).encode()


def damaged(folder: Path) -> list[Path]:
    """Files in and below a folder of libraries that differ from their seals."""
    out = []
    for mark in sorted(folder.rglob(f"*{_ENDING}")):
        for line in mark.read_text(encoding="utf-8", errors="replace").splitlines():
            known, _, name = line.partition(" ")
            file = mark.parent / name
            if not file.is_file() or seal(file.read_bytes()) != known:
                out.append(file if name else mark)
    return out


@functools.cache
def seal_compiled(folder: Path) -> None:
    """Seal the files of JAX's compilation cache in a folder: damaged ones are compiled again."""
    from jax._src import compilation_cache
    from jax._src.lru_cache import LRUCache

    base: type[LRUCache] = compilation_cache.LRUCache  # pyright: ignore[reportPrivateImportUsage]

    class Sealed(base):
        """JAX's cache; only files in `folder` are sealed."""

        def get(self, key: str) -> bytes | None:
            with self._sealed(key):
                return super().get(key)

        def put(self, key: str, value: bytes) -> None:
            with self._sealed(key):
                super().put(key, value)

        def _sealed(self, key: str) -> AbstractContextManager[None]:
            is_ours = Path(self.path) == folder
            return sealed(folder, key, f"{key}-cache") if is_ours else contextlib.nullcontext()

    compilation_cache.LRUCache = Sealed  # pyright: ignore[reportPrivateImportUsage]
