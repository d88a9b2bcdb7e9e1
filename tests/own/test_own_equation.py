"""The example of a delay equation of one's own, against what can be found by hand."""

import math
import runpy
from pathlib import Path

import pytest

import fluidcc as fc

DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "own_laws" / "mackey_glass.py"


def test_the_example_has_the_hopf_point_of_the_page():
    (hopf,) = fc.crossings(runpy.run_path(str(FILE))["model"], "tau", 0.1, 3.0).crossings
    assert hopf.frequency == pytest.approx(math.sqrt(3), rel=1e-9)
    assert hopf.value == pytest.approx(2 * math.pi / (3 * math.sqrt(3)), rel=1e-9)
    assert f"{hopf.value:.10g}" in (DOCS / "own_delay_equation.md").read_text()
