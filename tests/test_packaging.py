"""The wheel holds one package with its scenarios, and works where it is installed."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow

UV = os.environ.get("UV") or shutil.which("uv") or "uv"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [UV, "build", "--wheel", "--out-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_holds_nothing_but_the_package(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    version = wheel.name.split("-")[1]
    assert {name.split("/")[0] for name in names} == {"fluidcc", f"fluidcc-{version}.dist-info"}
    for folder in ("models", "paper_figs", "validation"):
        bundled = {name for name in names if name.startswith(f"fluidcc/_bundled/{folder}/")}
        files = (p for p in (ROOT / folder).rglob("*") if p.is_file() and p.suffix != ".pyc")
        here = {p.relative_to(ROOT).as_posix() for p in files}
        assert bundled == {f"fluidcc/_bundled/{name}" for name in here}
    page = "fluidcc/_bundled/validation/lab/report.html"
    own = {"fluidcc/py.typed", "fluidcc/results/fluidcc.mplstyle", page}
    assert own <= set(names)


def test_an_installed_wheel_has_its_scenarios(wheel, tmp_path):
    environment = tmp_path / "fresh"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run([UV, "venv", "--python", python, str(environment)], check=True, cwd=tmp_path)
    installed = environment / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(
        [UV, "pip", "install", "--python", str(environment), str(wheel)], check=True, cwd=tmp_path
    )
    code = (
        "import fluidcc as fc\n"
        "from fluidcc.bundled import scenarios\n"
        "names = list(scenarios())\n"
        "assert 'misra2003/mixed' in names, names\n"
        "for name in names:\n"
        "    assert fc.load(name).title and fc.citations(fc.load(name))\n"
        "from fluidcc.bundled.validation.lab.experiments import PAPERS\n"
        "from fluidcc.bundled.paper_figs.drawing.figure import wanted\n"
        "from fluidcc.bundled.validation.lab.ledger import claims, rules\n"
        "assert len(wanted(['all'])) > 60\n"
        "assert all(set(rules(p)) == set(claims(p)) for p in PAPERS)\n"
        "print(fc.__file__)\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    out = subprocess.run(
        [str(installed / "python"), "-c", code],
        check=True, capture_output=True, text=True, cwd=tmp_path, env=clean,
    )  # fmt: skip
    assert str(environment) in out.stdout
    command = [str(installed / "fluidcc"), "list", "--json"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert "hollot2001/slow" in listed.stdout
