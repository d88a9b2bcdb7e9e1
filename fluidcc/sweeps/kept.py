"""Finished chunks: in memory, or in a folder where nothing is lost."""

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fluidcc.errors import SweepStopped
from fluidcc.folders import UNFINISHED, whole
from fluidcc.sweeps.job import Chunk
from fluidcc.sweeps.table import Table, from_bytes, join

try:
    import fcntl
except ImportError:  # Windows: chunks are whole and the same whoever writes them
    fcntl = None

_MANIFEST = "manifest.json"
_LOCK = "lock"
_CHUNK = re.compile(r"chunk-(\d+)-(\d+)-(\d+)-(\d+)-([0-9a-f]{32})\.nc")
_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class InMemory:
    """Chunks of a sweep without a folder."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []

    def keep(self, chunk: Chunk) -> None:
        """Keep a chunk."""
        self._chunks.append(chunk)

    def held(self) -> list[Chunk]:
        """The chunks without their data."""
        return [chunk._replace(data=b"") for chunk in self._chunks]

    def table(self) -> Table:
        """All chunks as one table."""
        return join([from_bytes(chunk.data) for chunk in sorted(self._chunks)])

    def told(self) -> str:
        """Where chunks are, for messages."""
        return "without a folder nothing is kept"


class Folder:
    """Chunks of one sweep in a folder, one file each, beside a manifest that says of which.

    The name of a file has its blocks, how many points failed, and a hash of the sweep and of what
    is in it, so that a damaged one is known, and one of another sweep.
    """

    def __init__(self, place: Path) -> None:
        self.place, self._key = place, b""

    @contextlib.contextmanager
    def opened(self, manifest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Hold the folder for the sweep of this manifest; gives the manifest that began it.

        Raises ValueError if another sweep is in the folder, or another process works on it.
        """
        with self._refused():
            self.place.mkdir(parents=True, exist_ok=True)
            self.manifest()  # what is no folder of a sweep stays as it is
            lock = (self.place / _LOCK).open("ab+", buffering=0)
        with lock:
            _hold(lock, self.place)
            with self._refused():
                for file in self.place.glob(f"{UNFINISHED}*"):
                    file.unlink(missing_ok=True)  # of a process that was ended
                known = self.manifest()
                if known is None:
                    self._write(_MANIFEST, json.dumps(manifest, indent=1).encode())
                    known = dict(manifest)
            self._key = _key(known)
            self.check(known, manifest)
            self._clean()
            yield known

    @contextlib.contextmanager
    def _refused(self) -> Iterator[None]:
        """A folder that cannot be used is wrong use, unless it is full."""
        try:
            yield
        except OSError as error:
            raise ValueError(f"folder: cannot write to '{self.place}': {error.strerror}") from None

    def manifest(self) -> dict[str, Any] | None:
        """What sweep the folder has; None if it has none.

        Raises ValueError if the manifest is damaged, or the folder has other things in it.
        """
        file = self.place / _MANIFEST
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            others = [
                f.name for f in self.place.iterdir()
                if f.name != _LOCK and not f.name.startswith(UNFINISHED)
            ]  # fmt: skip
            if others:
                raise ValueError(
                    f"folder: expected one of a sweep, or an empty one, got '{self.place}', which "
                    f"has {min(others)} in it"
                ) from None
            return None
        except ValueError:
            found = None
        if not isinstance(found, dict) or not {"sweep", "origin", "blocks"} <= set(found):
            raise ValueError(
                f"folder: the manifest '{file}' is damaged: delete the folder, and sweep again"
            )
        self._key = _key(found)
        return found

    def check(self, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Raise ValueError if the sweeps of two manifests differ, with what differs."""
        parts = [k for k, v in wanted["sweep"].items() if known["sweep"].get(k) != v]
        if parts:
            words = {"code": "the versions of the code"}
            named = ", ".join(words.get(part, f"the {part}") for part in parts)
            raise ValueError(
                f"folder: '{self.place}' has another sweep, from which this one differs in "
                f"{named}: take another folder, or delete this one"
            )

    def keep(self, chunk: Chunk) -> None:
        """Write a chunk; raises SweepStopped where it does not fit."""
        first, last, points, failed, data = chunk
        name = f"chunk-{first:09d}-{last:09d}-{points}-{failed}-{self._hash(data)}.nc"
        try:
            self._write(name, data)
        except OSError as error:
            cure = "make room" if error.errno in _FULL else "mend that"
            raise SweepStopped(
                f"cannot write a chunk to '{self.place}' ({error.strerror}): {cure}, and run the "
                "same again; what is finished is kept"
            ) from None

    def _write(self, name: str, data: bytes) -> None:
        with whole(self.place / name) as part:
            part.write_bytes(data)

    def held(self) -> list[Chunk]:
        """The sound chunks, without their data, in their order; none covers another."""
        return [chunk._replace(data=b"") for chunk, _ in self._sound()]

    def _sound(self) -> Iterator[tuple[Chunk, Path]]:
        end = 0
        for file in sorted(self.place.glob("chunk-*.nc")):
            match = _CHUNK.fullmatch(file.name)
            if match is None:
                continue
            first, last, points, failed = map(int, match.groups()[:4])
            data = file.read_bytes()
            if first >= end and self._hash(data) == match[5]:
                end = last
                yield Chunk(first, last, points, failed, data), file

    def _clean(self) -> None:
        """Delete what is damaged or there twice."""
        sound = {file for _, file in self._sound()}
        for file in set(self.place.glob("chunk-*.nc")) - sound:
            file.unlink()

    def table(self) -> Table:
        """All chunks as one table."""
        return join([from_bytes(chunk.data) for chunk, _ in self._sound()])

    def _hash(self, data: bytes) -> str:
        return hashlib.sha256(self._key + data).hexdigest()[:32]

    def told(self) -> str:
        """Where chunks are, for messages."""
        return f"what is finished is kept in '{self.place}'"

    def busy(self) -> bool:
        """Whether a process works on the folder now."""
        if fcntl is None or not (self.place / _LOCK).exists():
            return False
        with (self.place / _LOCK).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                return error.errno in _HELD
        return False


def _key(manifest: Mapping[str, Any]) -> bytes:
    """What tells a sweep from others."""
    return json.dumps(manifest["sweep"], sort_keys=True).encode()


def _hold(lock: Any, place: Path) -> None:
    """Hold the lock of a folder; the system frees it when this process ends, however it does."""
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:  # a file system without locks
            return
        lock.seek(0)
        raise ValueError(
            f"folder: {lock.read().decode() or 'another process'} is sweeping into '{place}': wait "
            "for it, end it, or take another folder"
        ) from None
    with contextlib.suppress(OSError):  # of a full disk: the text is for messages alone
        lock.truncate(0)
        lock.write(f"process {os.getpid()} of {os.uname().nodename}".encode())


def gaps(held: Iterable[Chunk], blocks: int) -> list[tuple[int, int]]:
    """What is missing between chunks in order, as pairs: the first block and the one after."""
    out, end = [], 0
    for chunk in sorted(held):
        if chunk.first > end:
            out.append((end, chunk.first))
        end = max(end, chunk.last)
    return [*out, (end, blocks)] if end < blocks else out
