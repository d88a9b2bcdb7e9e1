"""Commands: their JSON, files and pictures."""

import csv
import json
import math
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc import Boundary, Gradient
from fluidcc.analysis.cycles.result import none_found, not_known
from fluidcc.result import failure
from fluidcc.scenario.parsing import value_of
from fluidcc.sweep import chunks

SLOW = "hollot2001/slow"


def test_a_grid_is_written_as_one_row_per_point(run, tmp_path):
    over = ("--over", "flow.n=40:60:10", "--over", "link.delay=40 ms,50 ms")
    code, out, _ = run("equilibrium", SLOW, *over, "--out", "grid.csv", "--plot", "grid.png")
    assert code == 0 and "6 points" in out
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [(row["flow.n"], row["link.delay (s)"]) for row in rows[:3]] == [
        ("40", "0.04"), ("40", "0.05"), ("50", "0.04"),
    ]  # fmt: skip
    assert len(rows) == 6 and float(rows[5]["links.bottleneck.queue (packet)"]) > 190
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
    assert max(float(row["links.bottleneck.queue (packet)"]) for row in rows) > 10
    with (tmp_path / "events.csv").open() as file:
        events = {row["event"] for row in csv.DictReader(file)}
    assert {"send", "enter", "leave", "receive", "ack", "window"} <= events
    assert (tmp_path / "series.png").stat().st_size > 10_000
    code, out, _ = run("packets", SLOW, *words[:-2], "--out", "series.nc", "--json")
    with xr.open_dataset(tmp_path / "series.nc", engine="h5netcdf") as data:
        mean = json.loads(out)["mean"]["links"]["bottleneck"]["queue_mean"]
        assert data["link_queue_mean"].mean().item() == pytest.approx(mean, rel=1e-12)
        assert data["link_queue"].sizes == {"seed": 2, "time": 9, "link": 1}


def test_trains_answer_as_packets_do(run, tmp_path):
    words = (SLOW, "--until", "4", "--seeds", "16")  # at the start, seeds differ by half
    drawn = ("--step", "25 ms", "--sample", "500 ms", "--out", "series.nc", "--plot", "series.png")
    code, out, _ = run("trains", *words, *drawn, "--json")
    found, packets = json.loads(out), json.loads(run("packets", *words, "--json")[1])
    assert code == 0 and set(packets) < set(found) and found["step"] == 0.025
    assert [own["seed"] for own in found["runs"]] == [*range(1, 17)]
    assert found["status"] == "finished"
    for part in ("mean", "ci95"):
        for kind, name in (("links", "bottleneck"), ("flows", "tcp")):
            assert set(found[part][kind][name]) <= set(packets[part][kind][name])
    link, other = (own["mean"]["links"]["bottleneck"] for own in (found, packets))
    assert link["utilization"] == pytest.approx(other["utilization"], abs=0.1)
    with xr.open_dataset(tmp_path / "series.nc", engine="h5netcdf") as data:
        assert data["link_queue_mean"].mean().item() == pytest.approx(link["queue_mean"])
        assert data["link_number_in_system"].sizes["seed"] == 16
    assert (tmp_path / "series.png").stat().st_size > 10_000
    code, out, _ = run("trains", *words, "--step", "25 ms")
    assert code == 0 and "Trains with a step of 25 ms" in out and "utilization" in out


def test_compare_takes_some_levels(run):
    words = ("compare", SLOW, "--until", "4", "--seeds", "2", "--no-trajectory", "--levels")
    found = json.loads(run(*words, "population,mean", "--json")[1])
    assert found["levels"] == ["mean", "population"] and found["level"] == "population"
    assert found["packets"] is found["trains"] is None
    for row in found["rows"]:
        assert row["packets"] is row["trains"] is row["recommended_difference"] is None
        assert row["recommended"] == row["population"]
    code, out, _ = run(*words, "population,mean")
    head = next(line for line in out.splitlines() if "quantity" in line)
    assert code == 0 and "population *" in head and "trains" not in head and "packets" not in head
    code, _, err = run(*words, "mean,fluid,packets")
    expected = "some of mean, population, trains, packets, got 'mean,fluid,packets'"
    assert code == 2 and f"--levels: expected {expected}" in err


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
    """One packet per round trip: W = 15 + t/R, so that dW/dR = -t/R^2 and dW/dW(0) = 1.

    As long as the kept answer of this verb, whose program it shares.
    """
    out = tmp_path / "slopes.nc"
    words = ("sensitivity", *IDLE, "--until", "20", "--after", "10", "--out", str(out), "--json")
    code, text, told = run(*words)
    assert code == 0, told
    found = json.loads(text)
    assert out.exists()
    for key, time in (("ends", 20.0), ("means", 15.0)):
        window = found[key]["flows.tcp.window"]
        assert window["value"] == pytest.approx(15 + time / 0.2, rel=1e-9)
        slopes = window["derivatives"]
        assert slopes["flow.rtt"] == pytest.approx(-time / 0.2**2, rel=1e-9)
        assert slopes["flow.initial.window"] == pytest.approx(1, rel=1e-9)


# -- The command `sweep`: files, chunks beside them, status, exit codes
GRID = ("--over", "flow.n=40:60:10", "--over", "link.delay=40 ms,50 ms")


def test_a_sweep_is_written_and_taken_up_again(run, tmp_path):
    words = ("sweep", "equilibrium", SLOW, *GRID, "--workers", "0", "--out", "grid.nc")
    code, out, err = run(*words)
    assert (code, err) == (0, "") and out.startswith("6 points\n")
    assert out.endswith("6 points, 0 failed: grid.nc\n") and out.count("regular ") == 6
    assert "\nregular: increases and decreases balance" in out
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as data:
        data.load()
    expected = fc.sweep(
        fc.load(SLOW), {"flow.n": [40, 50, 60], "link.delay": [0.04, 0.05]}, fc.equilibrium
    ).to_xarray()
    assert np.array_equal(data["queue"].values, expected["queue"].values)
    assert data["link.delay"].attrs["units"] == "s"
    assert fc.loads(data.attrs["scenario"]).title == fc.load(SLOW).title
    assert {"command", "fluidcc", "jax", "python", "verb", "options", "seeds"} <= set(data.attrs)

    code, out, _ = run(*words, "--status")
    assert code == 0 and "6 of 6 points done, 0 of them failed\n0 missing" in out
    next((tmp_path / "grid.nc.sweep").glob("chunk-*.nc")).write_bytes(b"damaged")
    found = json.loads(run("sweep", "--status", "--out", "grid.nc", "--json")[1])["sweep"]
    assert found["missing"] > 0 and found["done"] + found["missing"] == found["total"] == 6
    assert run(*words)[0] == 0
    with xr.open_dataset(tmp_path / "grid.nc", engine="h5netcdf") as again:
        xr.testing.assert_equal(again.load(), data)

    code, _, err = run("sweep", "stability", *words[2:], "--status")
    assert code == 2 and "has another sweep, which differs from this one in the verb" in err


def test_another_sweep_may_be_written_to_the_same_file(run, tmp_path):
    """The chunks of the earlier one, which is finished, are kept in a folder that is named."""
    words = ("sweep", "equilibrium", SLOW, "--workers", "0", "--out", "q.tex")
    assert run(*words, "--over", "flow.n=40,50")[::2] == (0, "")
    code, _, err = run(*words, "--over", "flow.n=60,70")
    assert code == 0 and "kept: the chunks of the earlier sweep" in err
    assert "are in 'q.tex.sweep.1'" in err
    assert "60" in (tmp_path / "q.tex").read_text()
    assert fc.sweep_status(tmp_path / "q.tex.sweep.1").done == 2
    assert run(*words, "--over", "flow.n=60,70")[::2] == (0, "")
    next((tmp_path / "q.tex.sweep").glob("chunk-*.nc")).unlink()
    code, _, err = run(*words, "--over", "flow.n=80,90")
    assert code == 2 and "has another sweep" in err  # which is not finished


def test_notes_on_the_fluid_model_are_of_its_results_and_quiet_has_none(run, tmp_path):
    text = fc.dumps(fc.replace(fc.load(SLOW), {"flow.sender.delayed_acks": True}))
    (tmp_path / "mine.toml").write_text(text)
    said = "its delayed ACKs halve the growth in the fluid"
    assert said in run("equilibrium", "mine.toml")[1]
    assert said in run("window-distribution", "mine.toml")[2]
    assert run("window-distribution", "mine.toml", "--quiet")[2] == ""
    for verb in ("packets", "trains"):
        _, out, err = run(verb, "mine.toml", "--until", "2", "--seeds", "1")
        assert "fluid" not in out + err


def test_equal_runs_have_no_interval(run):
    """Droptail and flows that start at once leave nothing to chance."""
    changes = ("--set", 'link.queue={law="droptail"}', "--set", "flow.n=2")
    _, out, _ = run("packets", SLOW, *changes, "--until", "3", "--seeds", "2")
    assert "±" not in out.partition("Links")[2] and "a mean alone if all runs agree" in out


def test_failed_points_are_named(run, tmp_path):
    words = ("sweep", "stability", SLOW, "--over", "link.queue.min_th=150,800", "--workers", "0")
    words += "--over", "link.queue.p_max=0.0001,0.1"
    code, out, err = run(*words, "--out", "grid.csv", "--plot", "grid.png", "--json")
    counts = json.loads(out)["sweep"]
    assert code == 3 and counts["failed"] == 2 and (tmp_path / "grid.png").stat().st_size > 5000
    assert [found["status"] for found in counts["reasons"]] == ["discontinuity", "failed", "failed"]
    first = counts["reasons"][0]
    assert first["set"] == {"link.queue.min_th": 150, "link.queue.p_max": 0.0001}
    assert "no linearisation" in first["message"]
    assert "failed at link.queue.min_th = 800, " in err and "expected min_th < max_th" in err
    lines = (tmp_path / "grid.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert [row["failed"] for row in rows] == ["0", "0", "1", "1"]
    assert first["message"] in [row["message"] for row in rows]
    printed = run("stability", SLOW, *words[3:5], *words[-2:])[1]  # in process
    assert "discontinuity at link.queue.min_th = 150, link.queue.p_max = 0.0001: " in printed


def test_every_fault_is_told_at_once(run):
    of_packets = ("--out", "grid.tex", "--columns", "flow.n,links.bottleneck.queue_var")
    code, _, err = run("sweep", "equilibrium", SLOW, *GRID, *of_packets)
    assert code == 2 and "got 'links.bottleneck.queue_var'" in err
    code, _, err = run("sweep", SLOW, "equilibrium", *GRID)
    assert code == 2 and f"expected the verb first: fluidcc sweep equilibrium {SLOW} ..." in err
    code, _, err = run("sweep", "equilibriun", "--workers", "x", "--scheduler", "tcp://a:1")
    assert code == 2
    for text in (
        "got 'equilibriun'; did you mean 'equilibrium'?", "SCENARIO: expected a bundled scenario",
        "--over PATH=A:B:STEP, got none", "--out FILE", "--workers: expected no --scheduler",
        "--workers: expected a whole number of at least 0, got 'x'"
    ):  # fmt: skip
        assert text in err, text
    words = ("sweep", "equilibrium", SLOW, *GRID, "--out", "grid.nc")
    code, _, err = run(*words, "--seeds", "3", "--no-trajectory")
    assert (
        code == 2
        and "--seeds: expected a verb that takes it (packets, trains, compare), got" in err
    )
    assert "--trajectory: expected a verb that takes it (compare)" in err
    code, _, err = run("sweep", "--status", "--out", "grid.nc")
    assert code == 2 and "expected one with a sweep in it, got 'grid.nc.sweep'" in err


def test_a_sweep_that_stops_says_what_to_do(run, monkeypatch):
    words = ("sweep", "equilibrium", SLOW, *GRID, "--out", "grid.nc")

    def stop(*_, **__):
        raise fc.SweepStopped("no room; 3 of 6 points are done")

    monkeypatch.setattr(chunks, "sweep_in_chunks", stop)
    code, out, err = run(*words, "--json")
    assert code == 3 and err == "stopped: no room; 3 of 6 points are done\n"
    assert json.loads(out)["error"]["message"] + "\n" == err

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(chunks, "sweep_in_chunks", interrupt)
    code, _, err = run(*words)
    assert code == 3 and "kept in 'grid.nc.sweep', and the same command goes on" in err


# -- What a command ends with: 0 done, 2 wrong use, 3 finished but some points failed


def gradient(status, derivative, **sides):
    units = {"p": "1"}
    return Gradient("window", 3.0, {"p": derivative}, status, "why", "packet", units, sides)


def boundary(status):
    empty = np.zeros(0)
    return Boundary(("x", "y"), ("1", "1"), ((0.0, 1.0), (0.0, 1.0)), (), (), (empty, empty),
                    empty, status, "why", certified=True, net=fc.load(SLOW))  # fmt: skip


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
    words = ("equilibrium", "kunniyur2001/avq", "--set", "link.queue.gamma=1")
    code, out, err = run(*words, "--json")
    (found,) = json.loads(out)["points"]
    assert code == 3 and found["status"] == "undetermined"
    assert found["links"]["bottleneck"]["queue"] is None
    assert "equations of motion are not at rest" in found["message"] and found["message"] in err
    code, out, err = run(*words)
    assert code == 3 and "equations of motion are not at rest" in out
    assert err == "failed: no answer, for the reason in the output\n"  # where it is printed once


def test_an_interrupt_keeps_what_is_finished(run, monkeypatch):
    """Ctrl-C after the first run."""
    from fluidcc.packets import run as packets

    def interrupt(jobs, report):
        next(iter(jobs)).result()
        raise KeyboardInterrupt

    monkeypatch.setattr(packets, "wait_for", interrupt)
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
             "--out: expected a file that ends in .nc, .csv, .json, .tex, got 'x.txt'",
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


def test_long_verbs_report_in_lines_if_stderr_is_no_terminal(run, monkeypatch):
    words = ("packets", SLOW, "--until", "60", "--seeds", "2", "--json")
    alone, quiet = run(*words), run(*words, "--quiet")
    monkeypatch.setattr("fluidcc.cli.run.EVERY", 0.001)
    _, out, err = run(*words)
    assert alone[1:] == quiet[1:] == (out, "")
    assert set(err.splitlines()) and all(
        re.fullmatch(r"packets: (\d+%, \d+ s left; )?\d+ s so far", line)
        for line in err.splitlines()
    )
    assert run(*words, "--quiet")[2] == ""
    assert "points, 0 failed" in run("stability", SLOW, "--over", "flow.n=40:50:1")[2]


LISTED = 'links.bottleneck.schedule=[{ at = "20 s", capacity = "5 Mbit/s" }]'


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("packets", "--sample", "1 us"), "if the links are full; trains take as long at any"),
        (("trains", "--sample", "1 us"), "on 2 processors\n"),
        (
            ("compare", "--levels", "mean,trains", "--no-trajectory", "--set", "flow.n=1e6"),
            "on 2 processors\n",
        ),
        (("simulate", "--set", LISTED), ""),
    ],
)
def test_long_runs_are_announced_before_they_start(run, monkeypatch, words, says):
    """Each of them is refused afterwards, or has nothing to run."""
    monkeypatch.setenv("FLUIDCC_THREADS", "2")
    out = ("--out", "x.nc") if "--sample" in words else ()
    _, _, err = run(words[0], SLOW, "--until", "1e8", *words[1:], *out)
    assert re.search(r"^note: about [\d,.]+ h", err, re.MULTILINE), err
    assert says in err
    assert "note: about" not in run(words[0], SLOW, "--until", "0")[2]


def test_runs_go_on_with_the_seeds_of_their_states(run):
    assert run("packets", SLOW, "--until", "1", "--seeds", "7,3", "--save-state", "a.state")[0] == 0
    code, out, err = run("packets", SLOW, "--until", "2", "--initial", "a.state", "--json")
    assert code == 0, err
    assert [own["seed"] for own in json.loads(out)["runs"]] == [7, 3]
