"""Finished chunks: in memory, or in a folder that survives interruptions."""

import contextlib
import errno
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from fluidcc.errors import SweepStopped
from fluidcc.folders import UNFINISHED, is_sound, sealed_name, whole
from fluidcc.sweep.job import Chunk
from fluidcc.sweep.table import from_bytes, join

try:
    import fcntl
except ImportError:  # Windows has no locks: chunks are atomic and equal for every writer
    fcntl = None

_MANIFEST = "manifest.json"
_LOCK = "lock"
_CHUNKS = "chunk-*.nc"
_NUMBERS = re.compile("chunk-" + r"(\d+)-" * 5)
_LOCKED = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class InMemory:
    """Chunks of a sweep without a folder."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self._chunks: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        """Store a chunk."""
        self._chunks.append(chunk)

    def table(self) -> xr.Dataset:
        """All chunks as one table."""
        return join([from_bytes(chunk.data) for chunk in sorted(self._chunks)])

    def describe(self) -> str:
        """Where chunks are, for messages."""
        return "which are lost without a folder"


class Folder:
    """Chunks of one sweep in a folder, one file each, with a manifest that identifies the sweep.

    The name of a file has its blocks, its counts, and a hash of the sweep, these numbers and the
    data, so that damaged files and files of another sweep are detected.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path, self.manifest = path, manifest
        self._key = json.dumps(manifest["sweep"], sort_keys=True).encode()

    @property
    def points(self) -> int:
        """Number of points of the sweep."""
        return math.prod(map(len, self.manifest["sweep"]["grid"].values()))

    def add(self, chunk: Chunk) -> None:
        """Write a chunk; raises SweepStopped if it cannot be written."""
        try:
            _write(self.path / self._name(chunk), chunk.data)
        except OSError as error:
            cure = "make room" if error.errno in _FULL else "fix that"
            raise SweepStopped(
                f"cannot write a chunk to '{self.path}' ({error.strerror}): {cure}, and run the "
                "same again; finished chunks are kept"
            ) from None

    def _name(self, chunk: Chunk) -> str:
        first, last, *counts, data = chunk
        numbers = "-".join([f"{first:09d}", f"{last:09d}", *map(str, counts)])
        return sealed_name(f"chunk-{numbers}", data, ".nc", self._key)

    def _read_chunks(self) -> Iterator[tuple[Path, Chunk]]:
        """The undamaged chunks in their order, without duplicates, and their files."""
        end = 0
        for file in sorted(self.path.glob(_CHUNKS)):
            numbers = _NUMBERS.match(file.name)
            if numbers is None:
                continue
            chunk = Chunk(*map(int, numbers.groups()), data=file.read_bytes())
            if chunk.first >= end and is_sound(file, chunk.data, self._key):
                end = chunk.last
                yield file, chunk

    def chunks(self, *, tidy: bool = False) -> list[Chunk]:
        """The undamaged chunks, without their data, in their order.

        With `tidy` damaged and duplicate ones are deleted.
        """
        undamaged = {file: chunk._replace(data=b"") for file, chunk in self._read_chunks()}
        if tidy:
            for file in set(self.path.glob(_CHUNKS)) - set(undamaged):
                file.unlink()
        return list(undamaged.values())

    def table(self) -> xr.Dataset:
        """All chunks as one table; raises SweepStopped if some were lost after they were written.

        They are read and verified again, as a disk may corrupt data.
        """
        tables = [from_bytes(chunk.data) for _, chunk in self._read_chunks()]
        if sum(table["failed"].size for table in tables) < self.points:
            raise SweepStopped(
                f"chunks were damaged or deleted meanwhile in '{self.path}': run the same again"
            )
        return join(tables)

    def describe(self) -> str:
        """Where chunks are, for messages."""
        return f"finished chunks are kept in '{self.path}'"


@contextlib.contextmanager
def open_folder(path: Path, wanted: Mapping[str, Any]) -> Iterator[tuple[Folder, list[Chunk]]]:
    """Lock a folder for the sweep of a manifest; yields it and its chunks without their data.

    Raises ValueError if another sweep is in the folder, or another process works on it.
    """
    with _report_os_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        manifest_in(path)  # refuses a folder that is not one of a sweep
        lock = (path / _LOCK).open("ab+", buffering=0)
    with lock:
        _acquire(lock, path)
        with _report_os_errors(path):
            for file in path.glob(f"{UNFINISHED}*"):
                file.unlink(missing_ok=True)  # left by a process that was killed
            known = manifest_in(path)  # now that no other process can begin a sweep here
            if known is None:
                _write(path / _MANIFEST, json.dumps(wanted, indent=1).encode())
                known = wanted
        check(path, known, wanted)
        folder = Folder(path, known)
        yield folder, folder.chunks(tidy=True)


@contextlib.contextmanager
def _report_os_errors(path: Path) -> Iterator[None]:
    """Turn OSError into ValueError: a folder that cannot be written is wrong use."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"folder: cannot write to '{path}': {error.strerror}") from None


def manifest_in(path: Path) -> dict[str, Any] | None:
    """The manifest of the sweep in a folder; None if it has none.

    Raises ValueError if the manifest is damaged, or the folder has other files in it.
    """
    file = path / _MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        others = [
            f.name for f in path.iterdir()
            if f.name != _LOCK and not f.name.startswith(UNFINISHED)
        ]  # fmt: skip
        if others:
            raise ValueError(
                f"folder: expected one of a sweep, or an empty one, got '{path}', which has "
                f"{min(others)} in it"
            ) from None
        return None
    except (ValueError, RecursionError, IsADirectoryError):
        manifest = None
    if not _has_form(manifest):
        raise ValueError(
            f"folder: the manifest '{file}' is damaged: delete the folder, and sweep again"
        )
    return manifest


def _has_form(manifest: Any) -> bool:
    """Whether the data have the parts of a manifest, each of its type."""
    try:
        axes, texts = manifest["sweep"]["grid"].values(), manifest["origin"].values()
        command = manifest["origin"]["command"]
    except (TypeError, KeyError, AttributeError):
        return False
    return all(isinstance(axis, list) for axis in axes) and all(
        isinstance(text, str) for text in (command, *texts)
    )


def differences(known: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """In which parts the `known` sweep is not the `wanted` one."""
    return [k for k, v in wanted["sweep"].items() if known["sweep"].get(k) != v]


def check(path: Path, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise ValueError with the differences if the `known` sweep is not the `wanted` one."""
    if parts := differences(known, wanted):
        words = {"code": "the versions of the code", "laws": "the text of user-defined laws"}
        named = ", ".join(words.get(part, f"the {part}") for part in parts)
        raise ValueError(
            f"folder: '{path}' has another sweep, which differs from this one in {named}: choose "
            "another folder, or delete this one"
        )


def is_busy(path: Path) -> bool:
    """Whether a process works on a folder now."""
    if not (path / _LOCK).exists():
        return False
    with (path / _LOCK).open("rb") as lock:
        return _is_locked(lock)


def _is_locked(lock: Any) -> bool:
    """Whether another process holds a lock; if not, acquire it, if the system has locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # a file system without locks raises others
        return error.errno in _LOCKED
    return False


def _write(file: Path, data: bytes) -> None:
    with whole(file) as part:
        part.write_bytes(data)


def _acquire(lock: Any, path: Path) -> None:
    """Acquire the lock of a folder; the system releases it when this process ends in any way."""
    if _is_locked(lock):
        lock.seek(0)
        raise ValueError(
            f"folder: {lock.read().decode() or 'another process'} is sweeping into '{path}': wait "
            "for it, end it, or choose another folder"
        )
    with contextlib.suppress(OSError, AttributeError):  # a full disk, Windows: only for messages
        lock.truncate(0)
        lock.write(f"process {os.getpid()} of {os.uname().nodename}".encode())


def missing_blocks(finished: Iterable[Chunk], blocks: int) -> list[tuple[int, int]]:
    """The blocks that no chunk covers, as pairs: the first, and the one after the last."""
    out, end = [], 0
    for chunk in sorted(finished):
        if chunk.first > end:
            out.append((end, chunk.first))
        end = max(end, chunk.last)
    return [*out, (end, blocks)] if end < blocks else out
