"""Which parts may import which: arrows go one way."""

import ast
from pathlib import Path

import pytest

import fluidcc

ROOT = Path(fluidcc.__file__).parent
BASE = {"ops", "errors", "folders", "memory", "machine", "seals"}
MAY = {
    "dde": BASE | {"dde"},
    "model": BASE | {"dde", "laws", "model", "results", "scenario"},
}
BEFORE_IT_IS_MOVED = {("dde", "results")}


def imports(path: Path) -> set[str]:
    """Parts of the package that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fluidcc"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name.split(".")[1] for name in names}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("fluidcc.")]
            found |= {name.split(".")[1] for name in names}
    return found


@pytest.mark.parametrize("folder", MAY)
def test_imports_go_one_way(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        wrong = imports(path) - MAY[folder]
        assert not {(folder, part) for part in wrong} - BEFORE_IT_IS_MOVED, (path, wrong)
