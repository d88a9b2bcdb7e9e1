"""Optional parts: what an extra of this package brings, or how to install it."""

from importlib import import_module
from types import ModuleType


class MissingExtra(ValueError):
    """Something was asked for that needs a package which is not installed."""


def extra(module: str, name: str, *, what: str) -> ModuleType:
    """Import a module that the extra `name` brings.

    Raises MissingExtra with the command that installs it; `what` says what needs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"{what} needs {module}: pip install 'fluidcc[{name}]'") from None
