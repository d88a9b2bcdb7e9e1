"""Results kept on disk by what they follow from, so that nothing is computed twice.

The name of a file is the hash of the scenario in full, of the options and of the code that makes
the result; a result of other code is never found. A file is written under another name first.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fluidcc.folders import SHOWING, UNFINISHED, fingerprint, whole
from fluidcc.results import plain, to_json

_ABOVE = (*SHOWING, "optimize", "sweeps")
_APART = {"packets": (*_ABOVE, "fluid", "analysis", "bounds"), "fluid": _ABOVE, "bounds": _ABOVE}
_LAB = Path(__file__).with_name("lab.py")  # decides what is kept of a result
_ABANDONED = 3600.0  # [s] after which nobody is still writing a file


class Store:
    """Results in a folder, one JSON file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(f"{UNFINISHED}*"):
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                if time.time() - part.stat().st_mtime > _ABANDONED:
                    part.unlink()

    def _file(self, kind: str, about: Mapping[str, Any]) -> Path:
        text = json.dumps(plain(about), sort_keys=True)
        code = fingerprint(*_APART[kind]).encode() + _LAB.read_bytes()
        name = hashlib.sha256(code + text.encode()).hexdigest()[:32]
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
            with whole(file) as part:
                part.write_text(text, encoding="utf-8")
            found = json.loads(text)
        return found
