"""The commands `sensitivity` and `windows`."""

import json

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.results import blocks
from fluidcc.sweep.result import Point

IDLE = (
    "hollot2001/slow", "flow.rtt", "flow.initial.window", "--set", "link.capacity=1000000",
    "--set", "link.initial.queue=0", "--set", "link.initial.average=0",
)  # fmt: skip


def test_a_window_without_marks_has_the_slopes_of_its_growth(run, tmp_path):
    """One packet per round trip: W = 15 + t/R, so that dW/dR = -t/R^2 and dW/dW(0) = 1."""
    out = tmp_path / "slopes.nc"
    words = ("sensitivity", *IDLE, "--until", "2", "--after", "1", "--out", str(out), "--json")
    code, text, told = run(*words)
    assert code == 0, told
    found = json.loads(text)
    assert out.exists()
    for key, time in (("ends", 2.0), ("means", 1.5)):
        window = found[key]["flows.tcp.window"]
        assert window["value"] == pytest.approx(15 + time / 0.2, rel=1e-9)
        slopes = window["derivatives"]
        assert slopes["flow.rtt"] == pytest.approx(-time / 0.2**2, rel=1e-9)
        assert slopes["flow.initial.window"] == pytest.approx(1, rel=1e-9)


def test_faulty_times_and_probabilities_are_told(run):
    code, _, told = run("sensitivity", *IDLE, "--until", "2", "--after", "3")
    assert code == 2 and "--after: expected a time before --until (2 s), got '3'" in told
    code, _, told = run("windows", "misra2003/mixed", "--probability", "1.5")
    assert code == 2 and "--probability: expected a number between 0 and 1, got '1.5'" in told


def test_windows_are_one_table_or_one_object(run, tmp_path):
    out, picture = tmp_path / "windows.csv", tmp_path / "windows.png"
    words = ("windows", "misra2003/mixed", "--out", str(out), "--plot", str(picture))
    code, text, told = run(*words)
    assert code == 0, told
    assert "newreno" in text and picture.exists()
    names, numbers = [ln for ln in out.read_text().splitlines() if not ln.startswith("#")]
    assert "bias" in names and len(names.split(",")) == len(numbers.split(",")) < 50
    code, text, _ = run("windows", "misra2003/mixed", "--over", "flows.mod.n=10,40", "--json")
    biases = [point["groups"]["newreno"]["bias"] for point in json.loads(text)["points"]]
    assert code == 0 and 0 < biases[0] < biases[1]  # smaller windows vary more


def test_groups_that_come_and_go_keep_their_columns():
    def point(**fluid):
        shares = np.ones(1)
        groups = {
            name: fc.StationaryWindow(0.1, np.array([4.0]), shares, shares, 4.0 * (1 + bias), 0.0)
            for name, bias in fluid.items()
        }
        return Point({"x": 1}, fc.StationaryWindows(groups, {}))

    points = (point(), point(new=0.25), point(old=0.5))
    (table,) = fc.Sweep({"x": (1, 1, 1)}, {"x": "1"}, points).tables()
    columns = {
        column.heading: [blocks.text(row[k]) for row in table.rows]
        for k, column in enumerate(table.columns)
    }
    assert columns["new: fluid's bias"] == ["–", "0.25", "–"]  # noqa: RUF001
    assert columns["old: fluid's bias"] == ["–", "–", "0.5"]  # noqa: RUF001
    assert columns["status"] == ["none", "ok", "ok"]
