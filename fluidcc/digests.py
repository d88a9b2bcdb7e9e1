"""Seals, by which what is kept is known to be as it was written.

A file of ours has its seal in its name. Where a library gives the names, the seals of its files are
in one beside them.
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
    """Digest of what is kept: 32 letters and digits."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def sealed_name(stem: str, data: bytes, ending: str, key: bytes = b"") -> str:
    """Name of a file with `data` in it; `key` is what else they follow from."""
    return f"{stem}-{seal(key, stem.encode(), data)}{ending}"


def is_sound(file: Path, data: bytes, key: bytes = b"") -> bool:
    """Whether `data`, read from a file, are those that it was named after."""
    stem, _, _ = file.stem.rpartition("-")
    return file.name == sealed_name(stem, data, file.suffix, key)


@contextlib.contextmanager
def sealed(folder: Path, name: str, *patterns: str) -> Iterator[None]:
    """Let a library read and write its files in a folder, which the patterns find, inside.

    Before, they are deleted unless they are as this left them, and it makes them anew; afterwards
    they are sealed. Python sources stay: the caller writes them, and others may be reading.
    """
    mark = folder / f"{name}{_ENDING}"
    known = mark.read_bytes() if mark.exists() else b""
    if known != _seals(folder, patterns):
        known = b""
        for file in (mark, *_found(folder, patterns)):
            if file.suffix != ".py":
                file.unlink(missing_ok=True)
    yield
    found = _seals(folder, patterns)
    if found != known:
        with contextlib.suppress(OSError), whole(mark) as part:  # of a full disk: time is lost
            part.write_bytes(found)


def _found(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def _seals(folder: Path, patterns: tuple[str, ...]) -> bytes:
    """A line for each file: its seal and its name."""
    lines = []
    for file in _found(folder, patterns):
        with contextlib.suppress(FileNotFoundError):  # another process has deleted it
            lines.append(f"{seal(file.read_bytes())} {file.relative_to(folder).as_posix()}\n")
    return "".join(lines).encode()


def damaged(folder: Path) -> list[Path]:
    """Files in and below a folder of libraries that are not as they were sealed."""
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
    """Let JAX keep what it compiles in a folder under seals: what is damaged is compiled again."""
    from jax._src import compilation_cache
    from jax._src.lru_cache import LRUCache

    present: type[LRUCache] = compilation_cache.LRUCache  # pyright: ignore[reportPrivateImportUsage]

    class Sealed(present):
        """JAX's cache; the folders of others are as JAX has them."""

        def get(self, key: str) -> bytes | None:
            with self._sealed(key):
                return super().get(key)

        def put(self, key: str, value: bytes) -> None:
            with self._sealed(key):
                super().put(key, value)

        def _sealed(self, key: str) -> AbstractContextManager[None]:
            own = Path(self.path) == folder
            return sealed(folder, key, f"{key}-cache") if own else contextlib.nullcontext()

    compilation_cache.LRUCache = Sealed  # pyright: ignore[reportPrivateImportUsage]
