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
from pathlib import Path
from typing import Any

from fluidcc.results import to_json

_RULES = ("laws", "scenario", "network.py", "ops.py", "voice.py", "symbolic.py")
_CODE = {
    "packets": (*_RULES, "packets"),
    "fluid": (*_RULES, "fluid", "analysis", "counterparts.py", "echoes.py", "ways.py"),
    "bounds": (*_RULES, "packets", "fluid", "analysis", "bounds"),
}


def default_folder() -> Path:
    """Where results are kept: beside what is compiled."""
    base = os.environ.get("FLUIDCC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fluidcc" / "results"


@functools.cache
def _fingerprint(kind: str) -> str:
    """Hash of the sources that results of a kind follow from."""
    home, digest = Path(__file__).parents[1], hashlib.sha256()
    for part in _CODE[kind]:
        whole = home / part
        for file in sorted(whole.rglob("*.py")) if whole.is_dir() else [whole]:
            digest.update(file.relative_to(home).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


class Store:
    """Results in a folder, one JSON file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _file(self, kind: str, about: Mapping[str, Any]) -> Path:
        text = json.dumps(about, sort_keys=True, default=str)
        name = hashlib.sha256(f"{_fingerprint(kind)}{text}".encode()).hexdigest()[:32]
        return self.folder / f"{kind}-{name}.json"

    def find(self, kind: str, about: Mapping[str, Any]) -> Any:
        """What is kept, or None; a damaged file counts as none."""
        try:
            return json.loads(self._file(kind, about).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

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
        found = self.find(kind, about)
        if found is None:
            text = to_json(make())
            with tempfile.NamedTemporaryFile(
                "w", dir=self.folder, suffix=".part", delete=False, encoding="utf-8"
            ) as part:
                part.write(text)
            os.replace(part.name, self._file(kind, about))
            found = json.loads(text)
        return found
