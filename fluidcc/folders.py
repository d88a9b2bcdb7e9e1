"""Where what is compiled and computed is kept."""

import os
from pathlib import Path


def kept_in(name: str) -> Path:
    """A folder of the user's cache; FLUIDCC_CACHE_DIR names another place for it."""
    base = os.environ.get("FLUIDCC_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fluidcc" / name
