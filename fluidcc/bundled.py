"""Files that come with the package: scenarios and the bibliography."""

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def bundled(name: str) -> Traversable:
    """The folder `name`: from the installed package, else from the checkout it runs in."""
    inside = files("fluidcc") / "_bundled" / name
    return inside if inside.is_dir() else Path(__file__).parents[1] / name


def titles() -> dict[str, str]:
    """Titles of the scenario files, by name; empty where there is none."""
    return {
        name: tomllib.loads(file.read_text(encoding="utf-8")).get("title", "")
        for name, file in scenarios().items()
    }


def scenarios() -> dict[str, Traversable]:
    """The scenario files, by name such as ``misra2003/mixed``."""
    found = {}
    for folder in sorted(bundled("models").iterdir(), key=lambda f: f.name):
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda f: f.name):
                if file.name.endswith(".toml"):
                    found[f"{folder.name}/{file.name.removesuffix('.toml')}"] = file
    return found
