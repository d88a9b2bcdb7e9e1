"""Optional dependencies: import what an extra of this package installs, or name the command."""

from importlib import import_module
from types import ModuleType


class MissingExtra(ValueError):
    """A feature needs a package that is not installed."""


def extra(module: str, name: str, *, what: str) -> ModuleType:
    """Import a module that the extra `name` installs.

    Raises MissingExtra with the install command; `what` names the feature that needs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"{what} needs {module}: pip install 'fluidcc[{name}]'") from None
