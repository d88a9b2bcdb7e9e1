"""Cache folders for compiled code and results, and atomic writes of files."""

import atexit
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
from importlib.metadata import version
from pathlib import Path

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

postponed: list[Callable[[], None]] = []
"""Called as soon as `fluidcc.arrays` has imported JAX."""


def kept_in(name: str) -> Path:
    """A folder of the user's cache; set FLUIDCC_CACHE_DIR to move it.

    Raises OSError if there is no home folder.
    """
    base = os.environ.get("FLUIDCC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "fluidcc" / name
    except RuntimeError:
        reason = "there is no home folder: FLUIDCC_CACHE_DIR names another"
        raise OSError(errno.ENOENT, reason, base) from None


def own_folder(name: str) -> Path:
    """That folder, made if it is missing; nobody but the user may read or write there.

    It holds compiled code, which runs when it is loaded: the folder is refused if others may write
    to it or replace it. Raises OSError if there can be no such folder.
    """
    folder = kept_in(name)
    home = folder.parent
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
    _warn_not_kept(place, error)
    folder = _temporary() / name
    folder.mkdir(exist_ok=True)
    return folder


@functools.cache
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="fluidcc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _warn_not_kept(place: str | Path, error: OSError) -> None:
    cure = "" if "FLUIDCC_CACHE_DIR" in str(error) else f"; {ELSEWHERE}"
    _warn_once(
        f"what is compiled cannot be kept in '{place}' ({error.strerror}), so that every process "
        f"compiles it again{cure}"
    )


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, stacklevel=1)


def keep_compiled() -> None:
    """Let JAX reuse code that an earlier process compiled; call it before JAX is imported."""
    try:
        folder = own_folder("jax")
    except OSError as error:
        _warn_not_kept(error.filename, error)
        return
    # a full disk only costs time, which is not worth a warning for each function
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    seal = functools.partial(_seal_compiled, folder)
    if "fluidcc.arrays" in sys.modules:
        seal()
    else:
        postponed.append(seal)


def _seal_compiled(folder: Path) -> None:
    from fluidcc.digests import seal_compiled

    seal_compiled(folder)


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
    home, digest = Path(__file__).parent, hashlib.sha256()
    digest.update("".join(f"{name} {version(name)}\n" for name in BESIDE).encode())
    for file in sorted((*home.rglob("*.py"), *home.rglob("*.h"))):
        place = file.relative_to(home).as_posix()
        if not place.startswith((*apart, "_bundled/")):
            digest.update(place.encode() + file.read_bytes())
    return digest.hexdigest()
