"""Contents of the package: scenarios, published statements, and figures of papers."""

import importlib
import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

_T = TypeVar("_T")


def bundled(name: str) -> Traversable:
    """The folder `name`: from the installed package, else from the checkout it runs in."""
    inside = files("fluidcc") / "_bundled" / name
    return inside if inside.is_dir() else Path(__file__).parents[1] / name


__path__ = [str(bundled("."))]  # so that `fluidcc.bundled.validation` and the like are imported


def module(name: str) -> ModuleType:
    """A module outside the package proper, such as ``validation.lab.ledger``."""
    return importlib.import_module(f"{__name__}.{name}")


def declared(place: str, kind: type[_T]) -> list[_T]:
    """The objects of one type that such a module defines, alone or in lists, in its order."""
    values = vars(module(place)).values()
    each = (own for value in values for own in (value if isinstance(value, list) else [value]))
    return [own for own in each if isinstance(own, kind)]


def modules(folder: str) -> list[str]:
    """Sorted names of the modules in such a folder, as `module` takes them."""
    files = bundled(folder.replace(".", "/")).iterdir()
    names = sorted(f.name for f in files if f.name.endswith(".py"))
    return [f"{folder}.{name.removesuffix('.py')}" for name in names]


def titles() -> dict[str, str]:
    """Titles of the scenario files, by name; empty if a file has none."""
    return {
        name: tomllib.loads(file.read_text(encoding="utf-8").partition("\n[")[0]).get("title", "")
        for name, file in scenarios().items()
    }


def scenarios() -> dict[str, Traversable]:
    """The scenario files, by name such as ``misra2003/mixed``."""
    files_by_name = {}
    for folder in sorted(bundled("models").iterdir(), key=lambda f: f.name):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda f: f.name):
                if file.name.endswith(".toml"):
                    files_by_name[f"{folder.name}/{file.name.removesuffix('.toml')}"] = file
    return files_by_name
