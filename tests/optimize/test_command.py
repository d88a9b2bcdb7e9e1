"""`fluidcc optimize`: its JSON, its table, its files and exit codes; the verification."""

import json

import pytest
import xarray as xr
from typer.testing import CliRunner

import fluidcc as fc
from fluidcc.cli.app import app
from fluidcc.optimize.constraints import constraint
from fluidcc.optimize.measures import measure
from fluidcc.optimize.runs import Runs
from fluidcc.optimize.verify import verify

RED = "hollot2001/slow"
LEAST = ("optimize", RED, "--over", "link.queue.p_max=0.05:0.4", "--minimize", "queue")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command; its exit code, standard output and standard error."""
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*words):
        result = CliRunner().invoke(app, [*words, "--no-fast-cpu"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call


def test_json_and_files_have_the_optimum(run, tmp_path):
    code, out, _ = run(*LEAST, "--no-verify", "--starts", "1", "--json", "--out", "best.nc")
    found = json.loads(out)
    assert code == 0
    assert (found["status"], found["goal"]) == ("ok", "links.bottleneck.queue")
    assert found["values"] == {"link.queue.p_max": 0.4}
    assert found["active"][0]["multiplier"] > 0
    assert found["verification"] is None and found["tradeoff"] is None
    assert found["starts"][0]["feasible"]
    with xr.open_dataset(tmp_path / "best.nc", engine="h5netcdf") as data:
        assert float(data["objective"]) == pytest.approx(found["objective"])
        assert data.attrs["goal"] == "links.bottleneck.queue"


def test_the_table_has_what_matters_and_failures_have_their_code(run):
    rule = ("--subject-to", "queue <= 100")
    code, out, err = run(*LEAST, "--no-verify", "--starts", "1", *rule)
    assert code == 3
    assert "infeasible" in out and "decay_rate >= 0 1/s" in out
    assert "links.bottleneck.queue <= 100 packet came to 161.905" in err


def test_wrong_use_is_told_at_once(run):
    words = ("--over", "link.queue.pmax=0.05:0.4", "--maximize", "phase_margn", "--starts", "none")
    code, _, err = run("optimize", RED, *words)
    assert code == 2
    assert "'link.queue.p_max'" in err and "--starts" in err
    code, _, err = run("optimize", RED, "--over", "flow.n=10:20", "--maximize", "phase_margn")
    assert code == 2 and "'phase_margin'" in err


def test_a_verification_runs_both_engines():
    """The queue of the controller settles at its reference; packets agree within a few of them."""
    net = fc.load("hollot2001/pi")
    goal = measure(net, "phase_margin")
    rules = [constraint(net, f"queue {r}") for r in ("<= 260", ">= 300")]
    found = verify(net, goal, rules, Runs(40.0, 15.0, (4, 5)))
    (settling,) = found.settling
    assert settling.settles and settling.time < 25
    checks = {check.text: check for check in found.checks}
    queue = checks["links.bottleneck.queue <= 260 packet"]
    assert queue.fluid == pytest.approx(200.0, abs=1e-6)
    assert abs(queue.value - 200.0) < 20 and queue.holds
    assert checks["links.bottleneck.queue >= 300 packet"].holds is False
    assert checks["links.bottleneck.utilization"].value > 0.99
    told = found.to_dict()
    assert told["seeds"] == [4, 5] and told["rows"][0]["name"] == "links.bottleneck.utilization"
