"""The public names of the package."""

import dataclasses
import inspect
import operator
import re
import subprocess
import sys

import pytest
import typer

import fluidcc as fc
from fluidcc.analysis.equilibrium import FlowsEquilibrium, LinkEquilibrium
from fluidcc.cli.app import _command, app
from fluidcc.errors import ours


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


def test_words_that_people_try_lead_to_names_that_exist():
    words = ours("functions")
    assert not set(words) & set(dir(fc))
    commands = set(typer.main.get_command(app).commands)  # pyright: ignore
    for (target,) in words.values():
        assert operator.attrgetter(target)(fc)
        command, *_ = _command(target).strip("'").split()
        assert command in commands or "the option" in _command(target)
    parts = (fc.Link, fc.Flows, LinkEquilibrium, FlowsEquilibrium, fc.Stability, fc.Solution)
    known = {field.name for part in parts for field in dataclasses.fields(part)} | {*dir(fc.Result)}
    known |= {*dir(fc.Stability), "time"}
    names = {name for each in ours("attributes").values() for name in each}
    assert names <= known | {"times", "tables"}


@pytest.mark.parametrize(
    ("thing", "name", "meant"),
    [
        (lambda net: fc, "margins", "stability"),
        (lambda net: fc, "to_dataset", "Result.to_xarray"),
        (lambda net: fc, "equilibrum", "equilibrium"),
        (lambda net: fc, "bode_plot", "bode"),
        (lambda net: fc, "parameter_sweep", "sweep"),
        (lambda net: fc, "limit_cycles", "cycle"),
        (lambda net: net, "N", r"flows\[0\].n"),
        (lambda net: net.links[0], "C", "capacity"),
        (fc.equilibrium, "queue", r"links\['bottleneck'\].queue"),
        (fc.equilibrium, "p", r"links\['bottleneck'\].mark_probability"),
        (fc.stability, "queue", r"equilibrium.links\['bottleneck'\].queue"),
        (fc.stability, "phase_margn", "phase_margin"),
    ],
)
def test_a_wrong_attribute_is_answered_with_the_right_one(thing, name, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '?{meant}'?"):
        getattr(thing(fc.load("hollot2001/slow")), name)


def test_a_property_that_fails_shows_its_own_error():
    class Broken(fc.Result):
        @property
        def value(self):
            return {}.nothing  # pyright: ignore

    with pytest.raises(AttributeError, match="'dict' object has no attribute 'nothing'"):
        _ = Broken().value


def test_what_functions_return_and_what_results_hold_is_documented():
    """Each function has a section on it, each class of results names every field."""
    for name in dir(fc):
        thing = getattr(fc, name)
        if inspect.isfunction(thing):
            assert "\nReturns\n-------\n" in str(inspect.getdoc(thing)), name
        elif issubclass(thing, fc.Result) and dataclasses.is_dataclass(thing):
            fields = (field.name for field in dataclasses.fields(thing))
            public = [field for field in fields if not field.startswith("_")]
            missing = [own for own in public if not re.search(rf"`{own}\b", str(thing.__doc__))]
            assert missing == [], name
