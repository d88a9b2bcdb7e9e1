"""The public names of the package."""

import subprocess
import sys

import pytest

import fluidcc as fc


@pytest.mark.parametrize("name", dir(fc))
def test_every_public_name_has_its_docstring(name):
    assert getattr(fc, name).__doc__
    assert name in fc.__dict__


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, fluidcc; print([m for m in ('jax', 'numpy', 'xarray') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_sources_of_laws_and_scenarios_are_in_the_bibliography():
    from fluidcc.bundled import scenarios
    from fluidcc.laws.registry import LAWS
    from fluidcc.scenario.files import bibliography, keys

    for laws in LAWS.values():
        for law in laws.values():
            parts = [part.split(",")[0].strip() for part in law.source.split(";")]
            assert keys(law.source) == parts, law.name
    for name in scenarios():
        assert fc.load(name).source in bibliography()
    for work in bibliography().values():
        assert set(work) == {"authors", "title", "published", "year"}


def test_citations_name_the_scenario_its_model_and_its_laws():
    found = fc.citations(fc.load("hollot2001/slow"))
    assert list(found)[:2] == ["hollot2001", "misra2000"]
    assert found["floyd1993"].startswith("S. Floyd and V. Jacobson: Random Early Detection")
