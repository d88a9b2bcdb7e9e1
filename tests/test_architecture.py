"""Arrows between the parts of the house point one way; `docs/architecture.md` says which part may
import which.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidcc

HOME = Path(fluidcc.__file__ or "").parent
PAGE = (HOME.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)/?` \|[^|]*\| ([^|]*) \|$", PAGE, re.MULTILINE)
MAY = {part: set(re.findall(r"`(\w+)`", others)) for part, others in ROWS}


LATE = {("result.py", "results")}
"""A result asks for its view if it is shown, not before."""


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, those for type checkers left out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if "TYPE_CHECKING" not in ast.unparse(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{a.name}" for a in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names)


def part_of(module: str) -> str:
    """The part of the house that a module belongs to: a folder, or `top` for single modules."""
    first = module.split(".")[1]
    return first if (HOME / first).is_dir() else "top"


FILES = [file for file in HOME.rglob("*.py") if file != HOME / "__init__.py"]


@pytest.mark.parametrize("part", MAY)
def test_arrows_point_one_way(part):
    names = {file.relative_to(HOME).as_posix(): file for file in FILES}
    own = {n: f for n, f in names.items() if (n.split("/")[0] if "/" in n else "top") == part}
    assert own
    for name, file in own.items():
        used = {part_of(m) for m in imports(file) if m.startswith("fluidcc.")} - {part}
        assert {(name, other) for other in used - MAY[part]} <= LATE


def test_no_circles():
    order: list[str] = []
    while len(order) < len(MAY):
        ready = [part for part in MAY if part not in order and MAY[part] <= set(order)]
        assert ready, f"a circle among {sorted(set(MAY) - set(order))}"
        order += ready


def test_every_part_stands_on_the_page():
    folders = {f.name for f in HOME.iterdir() if (f / "__init__.py").exists()}
    assert set(MAY) == folders | {"top"}
