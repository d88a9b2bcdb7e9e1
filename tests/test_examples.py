"""The examples of public docstrings give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import fluidcc
from fluidcc.laws.own import loaded

ROOT = Path(fluidcc.__file__ or "").parent
MODULES = sorted(
    ".".join(("fluidcc", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    with loaded([]):  # laws that examples add are gone afterwards
        found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed
