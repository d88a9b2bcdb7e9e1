"""The commands `sensitivity` and `windows`."""

import json

import pytest

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
