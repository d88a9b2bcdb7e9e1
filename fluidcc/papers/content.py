"""Figures and rules of claims, as modules in folders that come with the package."""

import importlib
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType

from fluidcc.bundled import bundled


@cache
def _package(folder: str) -> str:
    """The name under which modules of a folder are imported, each other's too."""
    spec = ModuleSpec(f"fluidcc_{folder.replace('/', '_')}", None, is_package=True)
    spec.submodule_search_locations = [str(bundled(folder))]
    sys.modules[spec.name] = module_from_spec(spec)
    return spec.name


def names(folder: str) -> list[str]:
    """Modules of a folder of content, such as ``paper_figs``."""
    files = sorted(f.name for f in bundled(folder).iterdir())
    return [f.removesuffix(".py") for f in files if f.endswith(".py")]


def content(folder: str, name: str) -> ModuleType:
    """One of them."""
    return importlib.import_module(f"{_package(folder)}.{name}")


def contents(folder: str) -> list[ModuleType]:
    """All of them."""
    return [content(folder, name) for name in names(folder)]
