"""Laws of one's own on the command line, with the examples that the pages show."""

import json
import math
import runpy
import shutil
from pathlib import Path

import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.laws.registry import own_laws

EXAMPLES = Path(__file__).parents[2] / "docs" / "own_laws"
NAMES = ("highspeed", "pi2")


@pytest.fixture
def here(tmp_path):
    """The folder of a new user: the examples, and nothing else."""
    for name in NAMES:
        for ending in ("py", "toml"):
            shutil.copy(EXAMPLES / f"{name}.{ending}", tmp_path)
    return tmp_path


def test_a_scenario_alone_never_loads_a_law(run, here):
    mark = here / "ran"
    (here / "evil.py").write_text(f"open({str(mark)!r}, 'w')")
    text = (here / "pi2.toml").read_text()
    (here / "evil.toml").write_text(f'law_file = "evil.py"\n{text.replace("pi2", "evil")}')
    code, _, err = run("show", "evil.toml", heavy=False)
    assert code == 2 and "law_file" in err and '"evil"' in err
    assert not mark.exists()


@pytest.mark.parametrize("name", NAMES)
def test_files_bring_their_laws_for_one_command(run, here, name):
    words = ("show", f"{name}.toml", "--json")
    code, out, _ = run(*words, "--law-file", f"{name}.py", heavy=False)
    assert code == 0
    tables = json.loads(out)["scenario"]
    assert name in (tables["links"]["bottleneck"]["queue"]["law"],
                    next(iter(tables["flows"].values()))["window"]["law"])  # fmt: skip
    assert own_laws() == []
    code, _, err = run(*words, heavy=False)
    assert code == 2 and f'or a law that is added (--law-file FILE), got "{name}"' in err
    listed = run("list", "laws", "--json", "--law-file", f"{name}.py", heavy=False)[1]
    assert any(name in laws for laws in json.loads(listed)["laws"].values())


def test_a_sweep_by_two_processes_knows_the_file(run, here):
    words = ("sweep", "equilibrium", "pi2.toml", "--law-file", "pi2.py", "--out", "grid.nc")
    grid = ("--over", "link.queue.target=10 ms,15 ms,20 ms", "--over", "flow.n=5,10")
    code, out, err = run(*words, *grid, "--workers", "2")
    assert (code, out, err) == (0, "6 points, 0 failed: grid.nc\n", "")
    with xr.open_dataset(here / "grid.nc", engine="h5netcdf") as data:
        queue = data["queue"].sel(link="bottleneck").values
        assert data.attrs["laws"].startswith("pi2.py, sha256 ")
    assert queue.ravel() == pytest.approx([12.5, 12.5, 18.75, 18.75, 25.0, 25.0])  # C times delay
    (here / "pi2.py").write_text((here / "pi2.py").read_text() + "\n# another text\n")
    code, _, err = run(*words, *grid, "--workers", "2")
    assert code == 2 and "differs from this one in the text of user-defined laws" in err


def test_the_command_reports_a_faulty_law(run, here):
    text = (here / "pi2.py").read_text()
    (here / "pi2.py").write_text(text.replace("delay = seen.queue", "delay = seen.que"))
    code, out, _ = run("check-law", "pi2.py", "--json")
    (report,) = json.loads(out)["laws"]
    verdicts = {check["check"]: check for check in report["checks"]}
    assert code == 3 and not report["sound"] and report["law"] == "pi2"
    assert verdicts["results"]["verdict"] == "failed"
    assert (
        "`delay = seen.que / seen.capacity`): reads 'que', but Arrival has only count, elapsed"
        in (verdicts["results"]["why"])
    )
    assert verdicts["packets"]["verdict"] == "not applicable"


@pytest.mark.parametrize(
    "name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])]
)
def test_the_examples_pass_the_battery(run, here, name):
    code, out, err = run("check-law", f"{name}.py", "--scenario", f"{name}.toml", "--json")
    (report,) = json.loads(out)["laws"]
    failed = [check for check in report["checks"] if check["verdict"] == "failed"]
    assert (code, failed, err) == (0, [], "")
    done = {check["check"] for check in report["checks"] if check["verdict"] == "ok"}
    assert {"engines", "derivatives", "means", "stability", "trajectory", "packets"} <= done


# -- The example of a delay equation of one's own, against what can be found by hand
DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "own_laws" / "mackey_glass.py"


def test_the_example_has_the_hopf_point_of_the_page():
    (hopf,) = fc.crossings(runpy.run_path(str(FILE))["model"], "tau", 0.1, 3.0).crossings
    assert hopf.frequency == pytest.approx(math.sqrt(3), rel=1e-9)
    assert hopf.value == pytest.approx(2 * math.pi / (3 * math.sqrt(3)), rel=1e-9)
    assert f"{hopf.value:.10g}" in (DOCS / "own_delay_equation.md").read_text()
