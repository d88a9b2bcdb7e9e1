"""Generated modules kept on disk by the hash of their text, so that compiled code is found again.

Numba notices edits of the file it compiles but not of what that file calls. A module whose name
is the hash of everything that goes into it cannot be stale.
"""

import functools
import hashlib
import importlib.util
import os
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType

import numba

from fluidcc.folders import own_folder


@functools.cache
def cache_directory() -> Path:
    """Folder for generated modules: of the user, or a temporary one (with a warning)."""
    try:
        wanted = own_folder(f"numba-{numba.__version__}")
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError as error:
        other = Path(tempfile.mkdtemp(prefix="fluidcc-"))
        warnings.warn(
            f"cannot keep compiled packet code in {error.filename} ({error.strerror}); it goes to "
            f"{other} and is compiled again in every process. FLUIDCC_CACHE_DIR names another "
            "folder",
            stacklevel=2,
        )
        return other


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return digest.hexdigest()[:24]


@functools.cache
def package_hash() -> str:
    """Hash of the engine's sources: part of the name of whatever is compiled from them."""
    here = Path(__file__).parent
    files = [here / "compile.py", *sorted((here / "engine").glob("*.py"))]
    return _hash(sys.version, *(f.read_bytes() for f in files))


@functools.cache
def module_from(text: str, *, uses: str = "") -> ModuleType:
    """Import `text` as a module from the cache folder, writing it there if it is new.

    `uses` is the hash of whatever the text imports and compiles with.
    """
    name = f"rules_{_hash(text, uses)}"
    path = cache_directory() / f"{name}.py"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            file.write(text)
        os.replace(file.name, path)  # another process may do the same at the same time
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
