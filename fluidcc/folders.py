"""Where what is compiled and computed is kept, and how it gets there in one piece."""

import contextlib
import errno
import functools
import hashlib
import os
import stat
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

SHOWING = ("cli", "explore", "pictures", "tables", "battery", "papers")
"""Parts of the package that follow from results, not they from it."""

UNFINISHED = ".part-"
"""How the names of files begin that are not whole yet."""

BESIDE = ("jax", "jaxlib", "equinox", "diffrax", "numba", "numpy", "scipy", "sympy")
"""What numbers come from, beside this package."""

_PRIVATE = 0o700


def kept_in(name: str) -> Path:
    """A folder of the user's cache; FLUIDCC_CACHE_DIR names another place for it.

    Raises OSError where there is no home folder to have it in.
    """
    base = os.environ.get("FLUIDCC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "fluidcc" / name
    except RuntimeError:
        told = "there is no home folder: FLUIDCC_CACHE_DIR names another"
        raise OSError(errno.ENOENT, told, base) from None


def own_folder(name: str) -> Path:
    """That folder, made where it is missing; nobody but the user may read or write there.

    What is compiled is kept there, and runs when it is read: another one's folder is refused.
    Raises OSError where there can be no such folder.
    """
    folder = kept_in(name)
    for each in (folder.parent, folder):
        each.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    base = folder.parent.stat()
    if hasattr(os, "getuid"):  # not on Windows, where a profile is the user's alone
        if base.st_uid not in (os.getuid(), 0):
            told = "it belongs to another user: FLUIDCC_CACHE_DIR names another place"
            raise OSError(errno.EPERM, told, str(folder.parent))
        if base.st_uid == os.getuid() and stat.S_IMODE(base.st_mode) != _PRIVATE:
            folder.parent.chmod(_PRIVATE)
    return folder


def keep_compiled() -> None:
    """Let JAX find what an earlier process compiled; call it before JAX is imported."""
    try:
        folder = own_folder("jax")
    except OSError:
        return
    # where the disk is full only time is lost, which is not worth a warning of each function
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def whole(file: Path) -> Iterator[Path]:
    """A place to write what is to stand in `file`, which is replaced when all of it is there.

    Where anything goes wrong `file` is as before, and nothing else is left.
    """
    file = file.resolve()  # what a link leads to is replaced, not the link
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
    """Hash of the sources of this package, and of the versions of those that numbers come from.

    The parts `apart` (folders or modules of the package) do not count.
    """
    home, digest = Path(__file__).parent, hashlib.sha256()
    digest.update("".join(f"{name} {version(name)}\n" for name in BESIDE).encode())
    for file in sorted((*home.rglob("*.py"), *home.rglob("*.h"))):
        place = file.relative_to(home)
        if place.parts[0] not in (*apart, "_bundled"):
            digest.update(place.as_posix().encode() + file.read_bytes())
    return digest.hexdigest()
