"""Generated modules kept on disk by the hash of their text, so that compiled code is found again.

Numba notices edits of the file it compiles but not of what that file calls. A module whose name
is the hash of everything that goes into it cannot be stale.
"""

import contextlib
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numba

from fluidcc.folders import (
    ELSEWHERE,
    SHOWING,
    compiled_folder,
    fingerprint,
    is_sound,
    own_folder,
    sealed,
    sealed_name,
    temporary_folder,
    whole,
)

_FOLDER = f"numba-{numba.__version__}"


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()[:24]


@functools.cache
def package_hash() -> str:
    """Hash of the engine's sources: part of the name of whatever is compiled from them."""
    here = Path(__file__).parent
    files = [here / "hooks.py", *sorted((here / "engine").glob("*.py"))]
    return _hash(sys.version, *(f.read_bytes() for f in files))


def kept_text(key: str, write: Callable[[], str]) -> str:
    """Text that `write` makes of the sources of this package, kept on disk by `key`."""
    try:
        folder = own_folder("rules")
    except OSError:
        return write()
    stem = f"rules_{_hash(key, fingerprint(*SHOWING))}"
    for file in folder.glob(f"{stem}-*.txt"):
        if is_sound(file, data := file.read_bytes()):
            return data.decode()
    data = write().encode()
    file = folder / sealed_name(stem, data, ".txt")
    with contextlib.suppress(OSError), whole(file) as part:  # of a full disk: time is lost
        part.write_bytes(data)
    return data.decode()


@functools.cache
def module_from(text: str, *, uses: str = "") -> ModuleType:
    """Import `text` as a module from the cache folder, or from a temporary one if it is full.

    `uses` is the hash of whatever the text imports and compiles with. Raises OSError if there is
    no room for it anywhere.
    """
    name = f"rules_{_hash(text, uses)}"
    folder = compiled_folder(_FOLDER)
    try:
        return _import(name, text, folder)
    except OSError as error:
        folder = temporary_folder(_FOLDER, folder, error)
    try:
        return _import(name, text, folder)
    except OSError as error:
        text = f"{error.strerror}: {ELSEWHERE}, TMPDIR one for the time being"
        raise OSError(error.errno, text, str(folder)) from None


def _import(name: str, text: str, folder: Path) -> ModuleType:
    """Import `text` from a file of that name; Numba compiles it, or finds that it has."""
    file, source = folder / f"{name}.py", text.encode()
    if not file.exists() or file.read_bytes() != source:
        with whole(file) as part:
            part.write_bytes(source)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    compiled = (f"__pycache__/{name}.{kind}" for kind in ("*.nb[ic]", "*.pyc"))
    with sealed(folder, name, file.name, *compiled):
        spec.loader.exec_module(module)
    return module
