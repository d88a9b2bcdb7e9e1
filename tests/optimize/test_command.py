"""`fluidcc optimize`: its JSON, its table, its files and exit codes; the verification."""

import json

import numpy as np
import pytest
import xarray as xr
from optimize_cases import red_p_max, red_queue

import fluidcc as fc
from fluidcc.analysis.measures import measure
from fluidcc.optimize.problem import Runs, constraint
from fluidcc.optimize.verb import verify

RED = "hollot2001/slow"
LEAST = ("optimize", RED, "--vary", "link.queue.p_max=0.05:0.4", "--minimize", "queue")


def test_json_and_files_have_the_optimum(run, tmp_path):
    """Two bounds of one quantity have a line each."""
    rules = ("--subject-to", "queue >= 100", "--subject-to", "queue <= 250")
    code, out, _ = run(*LEAST, *rules, "--no-verify", "--starts", "1", "--json", "--out", "best.nc")
    found = json.loads(out)
    assert code == 0
    assert (found["status"], found["goal"]) == ("ok", "links.bottleneck.queue")
    assert found["values"] == {"link.queue.p_max": 0.4}
    assert found["active"][0]["multiplier"] > 0
    assert found["verification"] == [] and found["tradeoff"] is None
    assert found["starts"][0]["feasible"]
    queue = red_queue(0.4)[0]
    kept = {each["text"]: (each["value"], each["met"]) for each in found["constraints"]}
    for bound in (">= 100", "<= 250"):
        value, met = kept[f"links.bottleneck.queue {bound} packet"]
        assert value == pytest.approx(queue, rel=1e-9) and met
    with xr.open_dataset(tmp_path / "best.nc", engine="h5netcdf") as data:
        assert float(data["objective"]) == pytest.approx(found["objective"])
        assert data.attrs["goal"] == "links.bottleneck.queue"
        texts = ["links.bottleneck.queue >= 100 packet", "links.bottleneck.queue <= 250 packet"]
        np.testing.assert_allclose(data["constraint_value"].sel(constraint=texts), queue)


def test_a_box_is_verified_where_it_is_worst():
    """The shortest queue that keeps 50 flows at 170 packets; 70 flows have the longest one then.

    Both are run: the worst scenario of the goal, and that of the constraint that holds.
    """
    net, p_max = fc.load(RED), red_p_max(170, n=50)
    longest = red_queue(p_max, n=70)[0]
    best = fc.optimize(
        net, {"link.queue.p_max": (0.02, 0.4)}, minimize="queue", until=20.0, seeds=(1,), starts=1,
        subject_to=["queue >= 170", "queue <= 300"], over_scenarios={"flow.n": (50, 70)},
    )  # fmt: skip
    found = json.loads(json.dumps(best.to_dict()))
    least, most, _ = found["constraints"]
    assert (least["text"], most["text"]) == (
        "links.bottleneck.queue >= 170 packet", "links.bottleneck.queue <= 300 packet"
    )  # fmt: skip
    assert (least["scenario"], most["scenario"]) == ({"flow.n": 50.0}, {"flow.n": 70.0})
    assert [least["value"], most["value"]] == pytest.approx([170, longest], rel=1e-9)
    runs = found["verification"]
    assert [(each["scenario"], each["worst_for"]) for each in runs] == [
        ({"flow.n": 70.0}, ["links.bottleneck.queue"]),
        ({"flow.n": 50.0}, ["links.bottleneck.queue >= 170 packet"]),
    ]
    at_rest = [each["checks"][0]["fluid"] for each in runs]
    assert at_rest == pytest.approx([longest, 170.0], rel=1e-9)
    seen = [each["checks"][0]["value"] for each in runs]
    assert seen[0] > seen[1] + 5  # more flows have the longer queue in packets too
    text = repr(best)
    assert "Verified at flow.n = 50, the worst for links.bottleneck.queue >= 170 packet\n" in text
    assert "Verified at flow.n = 70, the worst for links.bottleneck.queue\n" in text
    assert text.count("worst at") == 1


def test_a_verification_runs_both_engines():
    """The queue of the controller settles at its reference; packets agree within a few of them."""
    net = fc.load("hollot2001/pi")
    goal = measure(net, "phase_margin")
    rules = [constraint(net, f"queue {r}") for r in ("<= 260", ">= 300", ">= 195")]
    found = verify(net, goal, rules, Runs(40.0, 15.0, (4, 5)))
    (settling,) = found.settling
    assert settling.settles and settling.time < 25
    checks = {check.text: check for check in found.checks}
    queue = checks["links.bottleneck.queue <= 260 packet"]
    assert queue.fluid == pytest.approx(200.0, abs=1e-6)
    assert abs(queue.value - 200.0) < 20 and queue.holds
    assert checks["links.bottleneck.queue >= 300 packet"].holds is False
    middle = checks["links.bottleneck.queue >= 195 packet"]  # within the interval of two seeds
    assert abs(middle.value - 195) < middle.ci95 and middle.holds is None
    assert checks["links.bottleneck.utilization"].value > 0.99
    told = found.to_dict()
    assert told["seeds"] == [4, 5] and told["rows"][0]["name"] == "links.bottleneck.utilization"
