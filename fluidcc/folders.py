"""Cache folders for compiled code and results, atomic writes, text files from a user read within
limits of size, and seals: digests by which stored files are known to be unchanged.

A file of ours has its seal in its name. If a library gives the names, a separate file in the same
folder holds the seals of its files.
"""

import atexit
import codecs
import contextlib
import errno
import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from fluidcc.errors import Fault, ScenarioError

SHOWING = (
    "cli/", "explore/", "results/views/", "check/",
)  # fmt: skip
"""Parts of the package that only present results: results do not depend on them."""

UNFINISHED = ".part-"
"""Prefix of the names of files that are still being written."""

BESIDE = ("jax", "jaxlib", "equinox", "diffrax", "numba", "numpy", "scipy", "sympy")
"""Other packages that results depend on."""

ELSEWHERE = "FLUIDCC_CACHE_DIR names another folder"
"""Advice for a folder that cannot be used."""

_PRIVATE = 0o700


def own_folder(name: str) -> Path:
    """A folder of the user's cache, made if it is missing; set FLUIDCC_CACHE_DIR to move it.

    It holds compiled code, which runs when it is loaded: nobody but the user may read or write
    there, and the folder is refused if others may write to it or replace it. Raises OSError if
    there can be no such folder.
    """
    base = os.environ.get("FLUIDCC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        home = Path(base).expanduser() / "fluidcc"
    except RuntimeError:
        reason = "there is no home folder: FLUIDCC_CACHE_DIR names another"
        raise OSError(errno.ENOENT, reason, base) from None
    folder = home / name
    for each in (home, folder):
        with contextlib.suppress(FileExistsError):
            each.mkdir(mode=_PRIVATE, parents=True)
        if hasattr(os, "getuid"):  # not on Windows, where a profile is the user's alone
            _require_own(each, each.lstat())
    if hasattr(os, "getuid"):
        base, status = home.parent.stat(), home.lstat()
        _require_own(home.parent, base, sticky=bool(base.st_mode & stat.S_ISVTX))
        if status.st_uid == os.getuid() and stat.S_IMODE(status.st_mode) != _PRIVATE:
            home.chmod(_PRIVATE)
    return folder


def _require_own(place: Path, status: os.stat_result, *, sticky: bool = False) -> None:
    """Raise OSError unless a place is a folder of the user or of root.

    Others must not write to it, unless its `sticky` bit protects the user's files, as in /tmp.
    """
    others = stat.S_IWOTH | (stat.S_IWGRP if status.st_gid != os.getgid() else 0)
    if stat.S_ISLNK(status.st_mode):
        reason = "it is a link"
    elif not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    elif status.st_uid not in (os.getuid(), 0):
        reason = "it belongs to another user"
    elif status.st_mode & others and not sticky:
        reason = "others may write there (chmod go-w, if all that it holds is yours)"
    else:
        return
    raise OSError(errno.EPERM, f"{reason}; {ELSEWHERE}", str(place))


def compiled_folder(name: str) -> Path:
    """That folder for compiled code; a temporary one, with a warning, if it cannot be used."""
    folder = None
    try:
        folder = own_folder(name)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        return temporary_folder(name, folder or error.filename, error)


def temporary_folder(name: str, place: str | Path, error: OSError) -> Path:
    """A folder of this process, for compiled code; one warning gives the reason."""
    cure = "" if "FLUIDCC_CACHE_DIR" in str(error) else f"; {ELSEWHERE}"
    _warn_once(
        f"what is compiled cannot be kept in '{place}' ({error.strerror}), so that every process "
        f"compiles it again{cure}"
    )
    folder = _temporary() / name
    folder.mkdir(exist_ok=True)
    return folder


@functools.cache
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="fluidcc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=1)


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def require_room(folder: Path) -> None:
    """Raise OSError if a folder has no room for a megabyte, more than any compiled module takes."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(1_000_000))


@contextlib.contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A temporary path to write the new content of `file`, which is replaced once that is complete.

    If anything fails, `file` is as before and nothing else is left.
    """
    file = file.resolve()  # the target of a link is replaced, not the link
    part = file.with_name(f"{UNFINISHED}{uuid.uuid4().hex}{file.suffix}")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@functools.cache
def fingerprint(*apart: str) -> str:
    """Hash of the sources of this package, and of the versions of those in `BESIDE`.

    Files whose path within the package begins with one of `apart` do not count.
    """
    from importlib.metadata import version

    home, digest = Path(__file__).parent, hashlib.sha256()
    digest.update("".join(f"{name} {version(name)}\n" for name in BESIDE).encode())
    for file in sorted(
        file for kind in ("py", "h", "csv", "toml") for file in home.rglob(f"*.{kind}")
    ):
        place = file.relative_to(home).as_posix()
        if not place.startswith((*apart, "_bundled/")):
            digest.update(place.encode() + file.read_bytes())
    return digest.hexdigest()


LARGEST: Final = 1_000_000
"""Bytes of a file, and characters of text."""

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_file(name: str | os.PathLike[str], expected: str) -> str:
    """The text of a file, without a byte-order mark.

    `expected` names such files in messages. Raises FileNotFoundError, and ScenarioError if
    the file is no text, too large or not readable.
    """
    where = os.fspath(name)
    if not where or "\0" in where:
        raise FileNotFoundError(where)

    return _read(lambda: Path(where).open("rb"), where, expected)


def read_standard_input(expected: str) -> str:
    """The text of standard input, within the same bounds as a file's."""
    return _read(lambda: nullcontext(sys.stdin.buffer), "standard input", expected)


def _read(opened: Callable[[], Any], where: str, expected: str) -> str:
    def refused(reason: str) -> ScenarioError:
        return ScenarioError([Fault(where, "", expected, reason)])

    try:
        with opened() as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise refused("a folder") from None
    except OSError as error:
        raise refused(error.strerror or str(error)) from None
    if len(data) > LARGEST:
        raise refused(f"more than {LARGEST} bytes")
    if data.startswith(_WIDE):
        raise refused("text in UTF-16: save it as UTF-8")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"a file that is no UTF-8 text (byte {error.start})") from None


SEAL = ".seal"
"""Ending of the files with the seals of those that a library keeps."""


def seal(*parts: str | bytes) -> str:
    """Digest of texts or stored bytes: 32 hexadecimal digits."""
    data = (part.encode() if isinstance(part, str) else part for part in parts)
    return hashlib.sha256(b"".join(data)).hexdigest()[:32]


def sealed_name(stem: str, data: bytes, ending: str, key: bytes = b"") -> str:
    """Name of a file with `data` in it; `key` stands for the other inputs that made them."""
    return f"{stem}-{seal(key, stem, data)}{ending}"


def is_sound(file: Path, data: bytes, key: bytes = b"") -> bool:
    """Whether `data`, read from a file, match the seal in its name."""
    stem, _, _ = file.stem.rpartition("-")
    return file.name == sealed_name(stem, data, file.suffix, key)


def find_kept(folder: Path, stem: str, ending: str) -> tuple[Path, bytes] | None:
    """The sound file of a folder whose name begins with `stem`, with its bytes; damaged ones of
    that name are deleted.
    """
    for file in folder.glob(f"{stem}-*{ending}"):
        with contextlib.suppress(OSError):  # another process has deleted it, or none may
            data = file.read_bytes()
            if is_sound(file, data):
                return file, data
            file.unlink(missing_ok=True)
    return None


def write_kept(folder: Path, stem: str, ending: str, data: bytes) -> None:
    """Write a file that `find_kept` finds; raises OSError if that fails."""
    with whole(folder / sealed_name(stem, data, ending)) as part:
        part.write_bytes(data)


@contextlib.contextmanager
def sealed(folder: Path, name: str, *patterns: str) -> Iterator[None]:
    """Within this context a library reads and writes its files in a folder; `patterns` match them.

    On entry, files that differ from their seals are deleted, so that the library makes them anew;
    on exit all are sealed. Python sources stay: the caller writes them, and others may be reading.
    """
    mark = folder / f"{name}{SEAL}"
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
    for mark in sorted(folder.rglob(f"*{SEAL}")):
        try:
            text = mark.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:  # another process has deleted or renamed it
            continue
        for line in text.splitlines():
            known, _, name = line.partition(" ")
            file = mark.parent / name
            if not file.is_file() or seal(file.read_bytes()) != known:
                out.append(file if name else mark)
    return out
