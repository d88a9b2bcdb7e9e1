"""What a command ends with: 0 done, 2 wrong use, 3 finished but some points failed."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fluidcc.analysis.boundary import Boundary
from fluidcc.analysis.cycles.result import none_found, not_known
from fluidcc.analysis.measures import Gradient
from fluidcc.sweep.result import failure

SLOW = "hollot2001/slow"


def gradient(status, derivative, **sides):
    units = {"p": "1"}
    return Gradient("window", 3.0, {"p": derivative}, status, "why", "packet", units, sides)


def boundary(status):
    empty = np.zeros(0)
    return Boundary(("x", "y"), ("1", "1"), ((0.0, 1.0), (0.0, 1.0)), (), (), (empty, empty),
                    empty, status, "why", certified=True)  # fmt: skip


SOUND = [
    none_found("it comes to rest"),
    boundary("ok"),
    gradient("ok", 1.0),
    gradient("kink", math.nan, p=(1.0, 2.0)),
]
UNSOUND = [
    (not_known("it does not repeat"), "it does not repeat"),
    (boundary("incomplete"), "why"),
    (gradient("tie", math.nan), "window: why"),
    (gradient("kink", math.nan, p=(math.nan, math.nan)), "window: why"),
]


def test_readme_and_help_have_the_same_exit_codes(run):
    """All of them, in the same words."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    text = readme.partition("Exit codes: ")[2].partition("That a network")[0]
    helped = " ".join(run("--help", heavy=False)[1].partition("Exit codes: ")[2].split())
    parts = [part.strip(" .") for part in helped.split(";")]
    assert [int(part.split()[0]) for part in parts] == [0, 1, 2, 3, 130, 141]
    assert all(part in " ".join(text.split()) for part in parts), parts


@pytest.mark.parametrize(("result", "says"), [*((one, "") for one in SOUND), *UNSOUND])
def test_a_point_fails_where_its_result_is_no_answer(result, says):
    """No cycle is an answer to the question for one, both slopes at a kink one to derivatives."""
    assert failure(result) == says


@pytest.mark.parametrize(
    ("found", "ends"), [(none_found("it rests"), 0), (not_known("it never repeats"), 3)]
)
def test_a_cycle_that_is_not_known_is_a_failed_point(run, monkeypatch, found, ends):
    monkeypatch.setattr("fluidcc.analysis.cycles.verb.follower", lambda: lambda net: found)
    code, out, err = run("cycle", SLOW, "--json")
    assert code == ends and json.loads(out)["message"] == found.message
    assert err == (f"failed: {found.message}\n" if ends else "")


def test_a_failed_point_is_named_and_the_others_go_on(run, tmp_path):
    words = ("equilibrium", SLOW, "--over", "link.queue.min_th=150,160,800", "--set", "flow.n=50")
    code, out, err = run(*words, "--json", "--out", "grid.nc")
    points = json.loads(out)["points"]
    assert code == 3
    assert [p["status"] for p in points] == ["regular", "regular", "failed"]
    assert points[1]["set"] == {"flow.n": 50, "link.queue.min_th": 160}
    assert err.startswith("failed at link.queue.min_th = 800: ") and "min_th < max_th" in err
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as data:
        assert data["queue"].dims == ("link.queue.min_th", "link")
        assert data["queue"].attrs["units"] == "packet"
        assert math.isnan(data["queue"].values[2, 0])
        assert "[flows.tcp]" in data.attrs["scenario"] and data.attrs["fluidcc"]


def test_an_answer_that_fails_its_own_check_is_a_failed_point(run):
    """Any signal holds AVQ that aims at all of the link: the one found is not at rest."""
    words = ("equilibrium", "kunniyur2001/avq", "--set", "link.queue.gamma=1", "--json")
    code, out, err = run(*words)
    (found,) = json.loads(out)["points"]
    assert code == 3 and found["status"] == "undetermined"
    assert found["links"]["bottleneck"]["queue"] is None
    assert "put into the moving model" in found["message"] and found["message"] in err


def test_an_interrupt_keeps_what_is_finished(run, monkeypatch):
    """Ctrl-C after the first run."""
    from fluidcc.packets import run as packets

    def wait(jobs, watch, progress):
        jobs[0].result()
        raise KeyboardInterrupt

    monkeypatch.setattr(packets, "_wait", wait)
    code, out, err = run("packets", SLOW, "--until", "60", "--seeds", "12", "--json")
    found = json.loads(out)
    assert code == 3 and found["status"] == "interrupted"
    assert found["runs"][0]["seed"] == 1 and len(found["runs"]) < 12
    assert "did not" in err and err.startswith("failed: interrupted: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["simulate", SLOW, "--set", "flow.m=3", "--over", "link.q=1", "--out", "x.txt",
             "--plot", "nodir/x.png"],
            ["--set: flow.m", "--over: link.q: expected a path",
             "--out: expected a file that ends in .nc, .csv, .tex, got 'x.txt'",
             "--plot: expected a file in a folder that exists"],
        ),
        (
            ["compare", SLOW, "--until", "5 kB", "--warmup", "-1", "--seeds", "0", "--over", "x"],
            ["--until: expected a number in s", "--warmup: expected a time in [0, inf) s",
             "--seeds: expected a whole number of at least 1", "--over: expected PATH=A:B:STEP"],
        ),
        (
            ["packets", SLOW, "--sample", "1 kB", "--trace", "no/x.txt", "--over", "flow.n=1,2"],
            ["--sample: expected a number in s", "--sample: expected --out or --plot",
             "--trace: expected a file that ends in .csv", "--trace: expected a file in a folder",
             "--sample and --trace: expected no --over"],
        ),
        (
            ["equilibrium", SLOW, "--over", "flow.n=1:1e3:1", "--over", "link.buffer=1:1e3:1"],
            ["a grid of at most 100000 points, or `fluidcc sweep` for more, got 1000000 points"],
        ),
    ],
)  # fmt: skip
def test_wrong_use_ends_with_2_and_every_fault(run, words, says):
    code, out, err = run(*words)
    assert code == 2 and out == ""
    assert all(line.startswith("error: ") for line in err.splitlines())
    assert all(text in err for text in says), err


def test_files_that_cannot_be_written_are_told_before_anything_runs(run, tmp_path):
    (tmp_path / "dir.csv").mkdir()
    words = ("equilibrium", SLOW, "--out", "dir.csv", "--plot", "/dev/fd/none.png")
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "--out: expected a file, got the folder 'dir.csv'" in err
    assert "--plot: expected a file" in err and len(err.splitlines()) == 2


def test_a_file_that_fails_while_it_is_written_is_one_fault(run, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fluidcc.results.export.write", full)
    code, out, err = run("equilibrium", SLOW, "--json", "--out", "x.csv")
    assert code == 2 and json.loads(out)["points"]
    said = "expected a file that can be written, got 'x.csv' (No space left on device)"
    assert err == f"error: --out: {said}\n"
