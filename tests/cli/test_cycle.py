"""The command `cycle`: its JSON, and points that follow their neighbours."""

import json

import pytest
import xarray as xr
from typer.testing import CliRunner

from fluidcc.analysis.cycles import branches
from fluidcc.analysis.cycles.result import Cycle, FlowsCycle, LinkCycle
from fluidcc.cli.app import app

PATH = "link.queue.w_q"


def run(*words):
    result = CliRunner().invoke(app, [*words, "--no-fast-cpu"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout


@pytest.mark.slow
def test_the_cycle_is_one_json_object_and_one_table(tmp_path):
    """Half a minute."""
    code, out = run("cycle", "hollot2001/fast", "--json", "--out", str(tmp_path / "cycle.csv"))
    found = json.loads(out)
    assert code == 0 and {"period", "links", "flows", "floquet"} <= set(found)
    (low, high), (least, most) = (found["links"]["bottleneck"][k] for k in ("queue", "average"))
    assert low < least < most < high
    assert found["flows"]["tcp"]["window"] == [pytest.approx([13.413, 17.733], abs=1e-3)]
    assert found["floquet"][0] == [pytest.approx(1.0), 0.0] and found["stable"]
    lines = (tmp_path / "cycle.csv").read_text().splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == 402
    over = ("--over", "link.queue.w_q=0.002,0.0021")
    code, out = run("cycle", "hollot2001/fast", *over, "--json")
    first, second = json.loads(out)["points"]
    assert code == 0 and first["period"] == pytest.approx(found["period"], rel=1e-7)
    assert second["set"] == {"link.queue.w_q": 0.0021} and second["period"] < first["period"]


def small(period, multiplier):
    """A cycle made by hand."""
    links = {"bottleneck": LinkCycle((10.0 * period, 20.0), (12.0, 14.0))}
    flows = {"tcp": FlowsCycle(((3.0, 4.0),))}
    floquet, stable = (1 + 0j, complex(0.0, multiplier)), multiplier < 1
    return Cycle(period, links, flows, floquet, "smooth", "", stable, 1e-9)


@pytest.fixture
def followed(monkeypatch):
    """Let the verb find a branch made by hand, with a fold, that ends for a given reason."""

    def end(message):
        cycles = (small(1.0, 1.5), small(1.1, 1.25), small(1.2, 0.5))
        branch = branches.CycleBranch(2e-4, 6.0, (1.9e-4, 1.8e-4, 2.1e-4), cycles, message)
        told = []

        def found(net, path, low, high, *, points):
            told.append((path, low, high, points))
            return branches.Cycles(path, "1", low, high, (branch,), "")

        monkeypatch.setattr("fluidcc.cycles", found)
        return told

    return end


def test_cycles_along_a_parameter_are_branches(followed, tmp_path):
    told = followed("")
    files = ("--out", str(tmp_path / "c.nc"), "--plot", str(tmp_path / "c.svg"))
    words = ("cycle", "hollot2001/fast", f"{PATH}=1e-4:3e-4", "--points", "5")
    code, out = run(*words, "--json", *files)
    assert (code, told) == (0, [(PATH, 1e-4, 3e-4, 5)])
    (branch,) = json.loads(out)["branches"]
    assert (branch["hopf"], branch["folds"], branch["message"]) == (2e-4, [1.8e-4], "")
    assert [point["value"] for point in branch["points"]] == [1.9e-4, 1.8e-4, 2.1e-4]
    assert branch["points"][0]["floquet"][1] == [0.0, 1.5]
    with xr.open_dataset(tmp_path / "c.nc") as data:
        assert data["leading_multiplier"].values == pytest.approx([1.5, 1.25, 0.5])
        assert data["bottleneck.least_queue"].values == pytest.approx([10.0, 11.0, 12.0])
    assert (tmp_path / "c.svg").stat().st_size > 1000


def test_cycles_along_a_parameter_are_a_table_and_what_is_lost_is_a_failure(followed):
    followed("the branch is lost")
    code, out = run("cycle", "hollot2001/fast", f"{PATH}=1e-4:3e-4")
    assert code == 3
    lines = [line for line in out.splitlines() if "stable" in line]
    assert ["unstable" in line for line in lines] == [True, True, False]
    assert "10 … 20" in lines[0] and "1.5" in lines[0]
    assert "fold at 0.00018; ends: the branch is lost" in out


def test_cycles_over_a_grid_are_summed_up(followed):
    followed("")
    code, out = run("cycle", "hollot2001/fast", f"{PATH}=1e-4:3e-4", "--over", "flow.n=30,60")
    assert code == 0 and "first Hopf point" in out and out.count("0.0002") == 2


@pytest.mark.parametrize("along", [PATH, f"{PATH}=3e-4:1e-4", "link.queue.w=1e-4:3e-4"])
def test_a_faulty_range_is_told(along):
    assert run("cycle", "hollot2001/fast", along) == (2, "")


@pytest.mark.slow
def test_a_branch_from_the_command_line():
    """Half a minute."""
    code, out = run("cycle", "hollot2001/slow", f"{PATH}=9e-5:1.2e-4", "--points", "4", "--json")
    (branch,) = json.loads(out)["branches"]
    assert code == 0 and branch["points"][-1]["value"] == pytest.approx(1.2e-4)
    assert branch["points"][0]["period"] == pytest.approx(6.283185 / branch["frequency"], rel=1e-3)
