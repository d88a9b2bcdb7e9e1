"""Fluid models, stability and packets of congestion control, from one definition of each law.

Names are listed in `__init__.pyi`, and imported when they are first used, so that `import fluidcc`
costs next to nothing. The first that computes switches JAX to double precision (`jax_enable_x64`)
for the whole process.
"""

import importlib
import re
import sys
import types
from pathlib import Path
from typing import Any

_LISTED = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_HOMES = {
    name: home for home, name in re.findall(r"^from (\S+) import (\w+)", _LISTED, re.MULTILINE)
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from fluidcc.errors import meant

        close = meant(name, list(_HOMES))
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module 'fluidcc' has no attribute {name!r}{hint}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)


class _Package(types.ModuleType):
    """Keeps a function from being hidden by the module of the same name that it lives in."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, types.ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
