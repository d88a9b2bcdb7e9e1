"""Results kept on disk by what they follow from, so that nothing is computed twice.

The name of a file is the hash of the scenario in full, of the options and of the code that makes
the result; a result of other code is never found. A file is written under another name first.
"""

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fluidcc.results import plain, to_json

_SHOWING = ("cli", "pictures", "papers", "optimize")  # follows from results, not they from it
_APART = {"packets": (*_SHOWING, "fluid", "analysis", "bounds"), "fluid": _SHOWING,
          "bounds": _SHOWING}  # fmt: skip
_BESIDE = ("jax", "numba", "numpy", "scipy", "sympy")


@functools.cache
def _fingerprint(kind: str) -> str:
    """Hash of the sources and of the packages that results of a kind follow from."""
    home, digest = Path(__file__).parents[1], hashlib.sha256()
    digest.update("".join(f"{name} {version(name)}\n" for name in _BESIDE).encode())
    for file in sorted(home.rglob("*.py")):
        place = file.relative_to(home)
        if place.parts[0] not in (*_APART[kind], "_bundled") or place.name == "lab.py":
            digest.update(place.as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


class Store:
    """Results in a folder, one JSON file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _file(self, kind: str, about: Mapping[str, Any]) -> Path:
        text = json.dumps(plain(about), sort_keys=True)
        name = hashlib.sha256(f"{_fingerprint(kind)}{text}".encode()).hexdigest()[:32]
        return self.folder / f"{kind}-{name}.json"

    def has(self, kind: str, about: Mapping[str, Any]) -> bool:
        """Whether something is kept; it may turn out to be damaged."""
        return self._file(kind, about).is_file()

    def keep(self, kind: str, about: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """The result described by `about`: the one on disk, or what `make` returns.

        Parameters
        ----------
        kind
            ``packets``, ``fluid`` or ``bounds``: which code the result follows from.
        about
            Everything else that it follows from, as plain data.
        make
            Called where nothing is kept; its result goes through JSON.
        """
        file = self._file(kind, about)
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # a damaged file counts as none
            found = None
        if found is None:
            text = to_json(make())
            with tempfile.NamedTemporaryFile(
                "w", dir=self.folder, suffix=".part", delete=False, encoding="utf-8"
            ) as part:
                part.write(text)
            os.replace(part.name, file)
            found = json.loads(text)
        return found
