"""Commands: their JSON, files and pictures."""

import csv
import json
import math
import subprocess
import sys
from importlib.metadata import version

import pytest
import xarray as xr

from fluidcc.scenario.parsing import value_of

SLOW = "hollot2001/slow"


def test_help_imports_nothing_heavy():
    heavy = ("jax", "xarray", "matplotlib", "numba", "sympy", "numpy", "scipy", "rich", "pandas")
    code = (
        "import sys\nfrom fluidcc.cli import main\nsys.argv = ['fluidcc', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print('imported', [m for m in {heavy!r} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "crossings" in out.stdout
    assert out.stdout.splitlines()[-1] == "imported []"


def test_a_grid_is_written_as_one_row_per_point(run, tmp_path):
    over = ("--over", "flow.n=40:60:10", "--over", "link.delay=40 ms,50 ms")
    code, out, _ = run("equilibrium", SLOW, *over, "--out", "grid.csv", "--plot", "grid.png")
    assert code == 0 and "6 points" in out
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [(row["flow.n"], row["link.delay (s)"]) for row in rows[:3]] == [
        ("40", "0.04"), ("40", "0.05"), ("50", "0.04"),
    ]  # fmt: skip
    assert len(rows) == 6 and float(rows[5]["queue[bottleneck] (packet)"]) > 190
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_version(run):
    code, out, _ = run("--version", heavy=False)
    assert code == 0 and out == f"fluidcc {version('fluidcc')}\n"


def test_simulate_gives_trajectories(run, tmp_path):
    code, out, _ = run("simulate", SLOW, "--until", "5 s", "--json", "--out", "run.csv")
    found = json.loads(out)
    assert code == 0
    assert found["time"][-1] == 5.0 and len(found["links"]["bottleneck"]["queue"]) == 1001
    assert len(found["flows"]["tcp"]["window"][0]) == 1001
    rows = [r for r in (tmp_path / "run.csv").read_text().splitlines() if not r.startswith("#")]
    assert rows[0].startswith("time (s),") and len(rows) == 1002


def test_packets_writes_series_traces_and_a_table(run, tmp_path):
    words = ("--until", "4", "--seeds", "2", "--sample", "500 ms", "--trace", "events.csv")
    code, out, _ = run("packets", SLOW, *words, "--out", "series.csv", "--plot", "series.png")
    assert code == 0 and "utilization" in out and "±" in out
    assert "voice" not in out and "transfer" not in out  # no metrics of what is not there
    lines = (tmp_path / "series.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(rows) == 2 * 9
    assert [float(row["time (s)"]) for row in rows[::2]] == [0.5 * k for k in range(9)]
    assert max(float(row["link_queue[bottleneck] (packet)"]) for row in rows) > 10
    with (tmp_path / "events.csv").open() as file:
        events = {row["event"] for row in csv.DictReader(file)}
    assert {"send", "enter", "leave", "receive", "ack", "window"} <= events
    assert (tmp_path / "series.png").stat().st_size > 10_000
    code, out, _ = run("packets", SLOW, *words[:-2], "--out", "series.nc", "--json")
    with xr.open_dataset(tmp_path / "series.nc", engine="h5netcdf") as data:
        mean = json.loads(out)["mean"]["links"]["bottleneck"]["queue_mean"]
        assert data["link_queue_mean"].mean().item() == pytest.approx(mean, rel=1e-12)
        assert data["link_queue"].sizes == {"seed": 2, "time": 9, "link": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 1e-3), ("true", True), ("inf", math.inf), ("5 ms", "5 ms"),
     ("[1, 2]", [1, 2]), ("wait", "wait"), (" .5", 0.5), ("-5.", -5.0), ("1.2.3", "1.2.3"),
     ("{ min = 1, max = 2 }", {"min": 1, "max": 2})],
)  # fmt: skip
def test_values_are_read_as_in_a_scenario(text, value):
    assert value_of(text) == value


# -- The commands `sensitivity` and `windows`
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
