"""Where what is compiled and computed is kept, and how it gets there in one piece."""

import contextlib
import functools
import hashlib
import os
import uuid
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

SHOWING = ("battery", "cli", "pictures", "papers", "optimize", "sweeps")
"""Parts of the package that follow from results, not they from it."""

UNFINISHED = ".part-"
"""How the names of files begin that are not whole yet."""

_BESIDE = ("jax", "jaxlib", "equinox", "diffrax", "numba", "numpy", "scipy", "sympy")


def kept_in(name: str) -> Path:
    """A folder of the user's cache; FLUIDCC_CACHE_DIR names another place for it."""
    base = os.environ.get("FLUIDCC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fluidcc" / name


def keep_compiled() -> None:
    """Let JAX find what an earlier process compiled; call it before JAX is imported."""
    folder = kept_in("jax")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


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
    digest.update("".join(f"{name} {version(name)}\n" for name in _BESIDE).encode())
    for file in sorted(home.rglob("*.py")):
        place = file.relative_to(home)
        if place.parts[0] not in (*apart, "_bundled"):
            digest.update(place.as_posix().encode() + file.read_bytes())
    return digest.hexdigest()
