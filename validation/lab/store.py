"""Results kept on disk by what they follow from, so that nothing is computed twice.

The name of a file has the hash of the scenario in full, of the options and of the code that makes
the result, so that a result of other code is never found, and its seal, so that a damaged one is
known. A file is written under another name first.
"""

import contextlib
import functools
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fluidcc.folders import SHOWING, UNFINISHED, find_kept, fingerprint, seal, write_kept
from fluidcc.result import plain
from fluidcc.results.export import to_json

_ABOVE = (*SHOWING, "optimize/", "sweep/")
_APART = {
    "packets": (*_ABOVE, "dde/", "model/", "analysis/"),
    "fluid": _ABOVE,
    "bounds": _ABOVE,
}
_LAB = Path(__file__).parent
_BESIDE = {  # what lies outside of the package and decides what is kept
    "packets": ("lab.py",),
    "fluid": ("lab.py",),
    "bounds": (
        "lab.py",
        "check.py",
        "bound.py",
        "search.py",
        "packet_runs.py",
        "../bounds/**/*.py",
    ),
}
_ABANDONED = 3600.0  # [s] after which nobody is still writing a file


class NotKept(OSError):
    """A result cannot be written to the folder of results."""


class Store:
    """Results in a folder, one JSON file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                if time.time() - part.stat().st_mtime > _ABANDONED:
                    part.unlink()

    def _name(self, kind: str, about: Mapping[str, Any]) -> str:
        text = json.dumps(plain(about), sort_keys=True)
        return f"{kind}-{seal(_code(kind), text.encode())}"

    def _held(self, name: str) -> bytes | None:
        """The sound file of that name, if there is one; others of it are deleted."""
        found = find_kept(self.folder, name, ".json")
        return found[1] if found else None

    def has(self, kind: str, about: Mapping[str, Any]) -> bool:
        """Whether a sound result is kept."""
        return self._held(self._name(kind, about)) is not None

    def keep(self, kind: str, about: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """The result described by `about`: the one on disk, or what `make` returns.

        Parameters
        ----------
        kind
            ``packets``, ``fluid`` or ``bounds``: which code the result follows from.
        about
            Everything else that it follows from, as plain data.
        make
            Called where nothing sound is kept; its result goes through JSON.

        Raises NotKept if it cannot be written.
        """
        name = self._name(kind, about)
        data = self._held(name)
        if data is None:
            data = to_json(make()).encode()
            try:
                write_kept(self.folder, name, ".json", data)
            except OSError as error:
                raise NotKept(error.errno, error.strerror, str(self.folder)) from None
        return json.loads(data)


@functools.cache
def _code(kind: str) -> bytes:
    """The code that results of a kind follow from."""
    files = (file for pattern in _BESIDE[kind] for file in sorted(_LAB.glob(pattern)))
    return b"".join([fingerprint(*_APART[kind]).encode(), *(file.read_bytes() for file in files)])
