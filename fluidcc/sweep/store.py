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

from fluidcc.digests import is_sound, sealed_name
from fluidcc.errors import SweepStopped
from fluidcc.folders import UNFINISHED, whole
from fluidcc.sweep.job import Chunk
from fluidcc.sweep.table import from_bytes, join

try:
    import fcntl
except ImportError:  # Windows: chunks are whole and the same whoever writes them
    fcntl = None

_MANIFEST = "manifest.json"
_LOCK = "lock"
_CHUNKS = "chunk-*.nc"
_NUMBERS = re.compile("chunk-" + r"(\d+)-" * 5)
_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class InMemory:
    """Chunks of a sweep without a folder."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self.manifest = manifest
        self._chunks: list[Chunk] = []

    def keep(self, chunk: Chunk) -> None:
        """Keep a chunk."""
        self._chunks.append(chunk)

    def table(self) -> xr.Dataset:
        """All chunks as one table."""
        return join([from_bytes(chunk.data) for chunk in sorted(self._chunks)])

    def describe(self) -> str:
        """Where chunks are, for messages."""
        return "without a folder nothing is kept"


class Folder:
    """Chunks of one sweep in a folder, one file each, with a manifest that identifies the sweep.

    The name of a file has its blocks, its counts, and a hash of the sweep, of these numbers and of
    the data, so that a damaged file is recognised, and one of another sweep.
    """

    def __init__(self, place: Path, manifest: Mapping[str, Any]) -> None:
        self.place, self.manifest = place, manifest
        self._key = json.dumps(manifest["sweep"], sort_keys=True).encode()

    @property
    def points(self) -> int:
        """How many points the sweep has."""
        return math.prod(map(len, self.manifest["sweep"]["grid"].values()))

    def keep(self, chunk: Chunk) -> None:
        """Write a chunk; raises SweepStopped if it cannot be written."""
        try:
            _write(self.place / self._name(chunk), chunk.data)
        except OSError as error:
            cure = "make room" if error.errno in _FULL else "mend that"
            raise SweepStopped(
                f"cannot write a chunk to '{self.place}' ({error.strerror}): {cure}, and run the "
                "same again; what is finished is kept"
            ) from None

    def _name(self, chunk: Chunk) -> str:
        first, last, *counts, data = chunk
        numbers = "-".join([f"{first:09d}", f"{last:09d}", *map(str, counts)])
        return sealed_name(f"chunk-{numbers}", data, ".nc", self._key)

    def _sound(self) -> Iterator[tuple[Path, Chunk]]:
        """The sound chunks in their order, none of which covers another, and their files."""
        end = 0
        for file in sorted(self.place.glob(_CHUNKS)):
            numbers = _NUMBERS.match(file.name)
            if numbers is None:
                continue
            chunk = Chunk(*map(int, numbers.groups()), data=file.read_bytes())
            if chunk.first >= end and is_sound(file, chunk.data, self._key):
                end = chunk.last
                yield file, chunk

    def chunks(self, *, tidy: bool = False) -> list[Chunk]:
        """The sound chunks, without their data, in their order.

        With `tidy` those that are damaged or there twice are deleted.
        """
        sound = {file: chunk._replace(data=b"") for file, chunk in self._sound()}
        if tidy:
            for file in set(self.place.glob(_CHUNKS)) - set(sound):
                file.unlink()
        return list(sound.values())

    def table(self) -> xr.Dataset:
        """All chunks as one table; raises SweepStopped if some have gone since they were written.

        They are read and verified again, as a disk may return other data than were written.
        """
        tables = [from_bytes(chunk.data) for _, chunk in self._sound()]
        if sum(table["failed"].size for table in tables) < self.points:
            raise SweepStopped(
                f"chunks were damaged or deleted meanwhile in '{self.place}': run the same again"
            )
        return join(tables)

    def describe(self) -> str:
        """Where chunks are, for messages."""
        return f"what is finished is kept in '{self.place}'"


@contextlib.contextmanager
def opened(place: Path, wanted: Mapping[str, Any]) -> Iterator[tuple[Folder, list[Chunk]]]:
    """Hold a folder for the sweep of a manifest; gives it, and its sound chunks without their data.

    Raises ValueError if another sweep is in the folder, or another process works on it.
    """
    with _refused(place):
        place.mkdir(parents=True, exist_ok=True)
        manifest_in(place)  # what is no folder of a sweep stays as it is
        lock = (place / _LOCK).open("ab+", buffering=0)
    with lock:
        _hold(lock, place)
        with _refused(place):
            for file in place.glob(f"{UNFINISHED}*"):
                file.unlink(missing_ok=True)  # of a process that was ended
            known = manifest_in(place)  # now that no other process may begin it
            if known is None:
                _write(place / _MANIFEST, json.dumps(wanted, indent=1).encode())
                known = wanted
        check(place, known, wanted)
        folder = Folder(place, known)
        yield folder, folder.chunks(tidy=True)


@contextlib.contextmanager
def _refused(place: Path) -> Iterator[None]:
    """A folder that cannot be used is wrong use, unless it is full."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"folder: cannot write to '{place}': {error.strerror}") from None


def manifest_in(place: Path) -> dict[str, Any] | None:
    """The manifest of the sweep in a folder; None if it has none.

    Raises ValueError if the manifest is damaged, or the folder has other things in it.
    """
    file = place / _MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        others = [
            f.name for f in place.iterdir()
            if f.name != _LOCK and not f.name.startswith(UNFINISHED)
        ]  # fmt: skip
        if others:
            raise ValueError(
                f"folder: expected one of a sweep, or an empty one, got '{place}', which has "
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
    """Whether this has the parts of a manifest, each of its type."""
    try:
        axes, texts = manifest["sweep"]["grid"].values(), manifest["origin"].values()
        command = manifest["origin"]["command"]
    except (TypeError, KeyError, AttributeError):
        return False
    return all(isinstance(axis, list) for axis in axes) and all(
        isinstance(text, str) for text in (command, *texts)
    )


def check(place: Path, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise ValueError if a folder has another sweep than is wanted, with the differences."""
    parts = [k for k, v in wanted["sweep"].items() if known["sweep"].get(k) != v]
    if parts:
        words = {"code": "the versions of the code", "laws": "the text of user-defined laws"}
        named = ", ".join(words.get(part, f"the {part}") for part in parts)
        raise ValueError(
            f"folder: '{place}' has another sweep, from which this one differs in "
            f"{named}: take another folder, or delete this one"
        )


def busy(place: Path) -> bool:
    """Whether a process works on a folder now."""
    if not (place / _LOCK).exists():
        return False
    with (place / _LOCK).open("rb") as lock:
        return _held_by_another(lock)


def _held_by_another(lock: Any) -> bool:
    """Whether another process holds a lock; if not, this one does, if the system has locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # of a file system without locks
        return error.errno in _HELD
    return False


def _write(file: Path, data: bytes) -> None:
    with whole(file) as part:
        part.write_bytes(data)


def _hold(lock: Any, place: Path) -> None:
    """Hold the lock of a folder; the system frees it when this process ends, however it does."""
    if _held_by_another(lock):
        lock.seek(0)
        raise ValueError(
            f"folder: {lock.read().decode() or 'another process'} is sweeping into '{place}': wait "
            "for it, end it, or take another folder"
        )
    with contextlib.suppress(OSError, AttributeError):  # a full disk, Windows: it is for messages
        lock.truncate(0)
        lock.write(f"process {os.getpid()} of {os.uname().nodename}".encode())


def gaps(finished: Iterable[Chunk], blocks: int) -> list[tuple[int, int]]:
    """The blocks missing between chunks, as pairs: the first block and the one after."""
    out, end = [], 0
    for chunk in sorted(finished):
        if chunk.first > end:
            out.append((end, chunk.first))
        end = max(end, chunk.last)
    return [*out, (end, blocks)] if end < blocks else out
