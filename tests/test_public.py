"""The public names of the package."""

import subprocess
import sys

import pytest

import fluidcc as fc


@pytest.mark.parametrize("name", dir(fc))
def test_every_public_name_has_its_docstring(name):
    assert getattr(fc, name).__doc__
    assert name in fc.__dict__


HEAVY = ("jax", "equinox", "xarray", "pandas", "sympy")


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import fluidcc", (*HEAVY, "numpy")),
        ("import fluidcc, fluidcc.laws.own, fluidcc.laws.registry; fluidcc.load('hollot2001/slow')",
         HEAVY),
        ("import fluidcc as fc; assert fc.stability(fc.load('hollot2001/slow')).stable",
         ("jax", "pandas", "xarray", "sympy")),
        ("from fluidcc.cli import main; sys.argv = ['fluidcc', '--help']; main()",
         (*HEAVY, "numpy", "scipy", "numba", "matplotlib", "rich")),
        ("from fluidcc.cli import main; sys.argv = ['fluidcc', 'list']; main()",
         (*HEAVY, "numpy", "importlib.metadata")),
        ("from fluidcc.cli import main; sys.argv = ['fluidcc', 'show', 'hollot2001/slow']; main()",
         (*HEAVY, "scipy", "importlib.metadata", "numpy.random")),
        ("from fluidcc.cli import main; sys.argv = ['fluidcc', 'check-law', 'no_law.py']\n"
         "try: main()\nexcept SystemExit as end: assert end.code == 2", HEAVY),
    ],
    ids=["package", "laws and scenarios", "equilibrium and stability", "help", "list", "show",
         "no such file"],
)  # fmt: skip
def test_imports_nothing_heavy(code, heavy):
    watched = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('imported', [m for m in {heavy} if m in sys.modules]))\n"
    )
    out = subprocess.run([sys.executable, "-c", watched + code], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines()[-1] == "imported []"


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
