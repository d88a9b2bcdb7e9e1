"""Modules of text that Numba compiles as they are imported, kept on disk for later processes."""

import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

from fluidcc.folders import ELSEWHERE, compiled_folder, seal, sealed, temporary_folder, whole

FOLDER = f"numba-{numba.__version__}"
"""Name of the folder that holds them."""

_ALONE = '''"""Generated: a function of arrays."""
import numba
import numpy as np


@numba.njit("{signature}", cache=True, nogil=True, error_model="numpy")
{source}'''


def compiled_alone(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """A function of arrays of these types, compiled; it uses NumPy, as `np`, and nothing else."""
    source = inspect.getsource(function)
    source = source[source.index(f"def {function.__name__}(") :]
    text = _ALONE.format(signature=signature, source=source)
    return getattr(module_from(text, uses=seal(sys.version)), function.__name__)


@functools.cache
def module_from(text: str, *, uses: str = "") -> ModuleType:
    """Import `text` as a module from the cache folder, or from a temporary one if it is full.

    `uses` is the hash of whatever the text imports and compiles with. Raises OSError if there is
    no room for it anywhere.
    """
    name, folder = module_name(text, uses), compiled_folder(FOLDER)
    try:
        return _import(name, text, folder)
    except OSError as error:
        folder = temporary_folder(FOLDER, folder, error)
    try:
        return _import(name, text, folder)
    except OSError as error:
        text = f"{error.strerror}: {ELSEWHERE}, TMPDIR one for the time being"
        raise OSError(error.errno, text, str(folder)) from None


def module_name(text: str, uses: str) -> str:
    """Name of the module of a text."""
    return f"rules_{seal(text, uses)}"


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
