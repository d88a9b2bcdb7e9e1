"""Nothing is lost: kills, full disks, damage, death of workers, two runs at once."""

import functools
import json
import os
import random
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from sweep_cases import NET, OVER, SIZE, deadly, draw, draw_after_a_death, same

import fluidcc as fc
from fluidcc.results import write
from fluidcc.sweeps.kept import Folder

SLOWLY = functools.partial(draw, pause=0.02)
SCRIPT = """
import functools, sys
import fluidcc as fc
from sweep_cases import NET, OVER, draw
if __name__ == "__main__":
    slowly = functools.partial(draw, pause=0.02)
    print("begun", flush=True)
    fc.sweep(NET, OVER, slowly, folder=sys.argv[1], workers=int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def undisturbed():
    return fc.sweep(NET, OVER, SLOWLY, workers=0).to_dataset()


@pytest.fixture
def begin(tmp_path):
    """Start a sweep in a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    here = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    started = []

    def call(folder, workers):
        words = [sys.executable, str(script), str(folder), str(workers)]
        process = subprocess.Popen(
            words, env={**os.environ, "PYTHONPATH": here}, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield call
    for process in started:
        end(process)


def end(process):
    """kill -9."""
    process.kill()
    process.wait()
    process.stdout.close()


def chunks(folder):
    return sorted(folder.glob("chunk-*.nc"))


def until(condition, patience=100.0):
    """Wait for something to happen."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def children(process):
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in found]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(("workers", "at_least"), [(0, 2), (1, 1)])
def test_a_killed_sweep_goes_on_where_it_was(begin, tmp_path, undisturbed, workers, at_least):
    folder = tmp_path / "kept"
    process = begin(folder, workers)
    until(lambda: len(chunks(folder)) >= at_least)
    family = children(process)
    end(process)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))  # none is left behind
    status = fc.sweep_status(folder)
    assert 0 < status.done < SIZE and not status.busy
    before, seen = set(chunks(folder)), []
    found = fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0, progress=seen.append)
    assert seen[0].done > status.done and seen[-1].done == SIZE
    assert before < set(chunks(folder))
    same(found.to_dataset(), undisturbed)


@pytest.mark.slow
def test_a_sweep_killed_at_any_moment_goes_on_where_it_was(begin, tmp_path, undisturbed):
    """Twenty kills at random moments, from before the folder exists to the end (100 s)."""
    moments = random.Random(7)
    for k in range(20):
        folder = tmp_path / str(k)
        process = begin(folder, 0)
        process.stdout.readline()
        time.sleep(moments.uniform(0.0, 1.0))
        end(process)
        found = fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0)
        same(found.to_dataset(), undisturbed)
        assert not [file for file in folder.iterdir() if file.name.startswith(".")]


@contextmanager
def small_files(size):
    """No file may grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path, undisturbed):
    folder = tmp_path / "kept"
    size = []

    def fill(progress):
        size.append(max(file.stat().st_size for file in chunks(folder)))
        if len(size) == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size[0] - 1, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(fc.SweepStopped, match="make room, and run the same again") as told:
            fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "1 of 32 points are done, what is finished is kept in" in str(told.value)
    assert [f.name for f in folder.iterdir() if f.name.startswith(".")] == []
    same(fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0).to_dataset(), undisturbed)


def test_no_room_for_the_first_file_is_told_too(tmp_path):
    with small_files(10), pytest.raises(ValueError, match=r"folder: cannot write to .*too large"):
        fc.sweep(NET, OVER, draw, folder=tmp_path / "kept", workers=0)


@pytest.mark.parametrize("name", ["grid.nc", "grid.csv"])
def test_a_result_that_does_not_fit_leaves_the_old_file(tmp_path, undisturbed, name):
    file = tmp_path / name
    file.write_text("old")
    with small_files(4000), pytest.raises(OSError, match="too large"):
        write(undisturbed, file, list(OVER), {})
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def test_damaged_chunks_are_done_again(tmp_path, undisturbed):
    folder = tmp_path / "kept"
    fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0)
    first, second, *_ = chunks(folder)
    bits = bytearray(first.read_bytes())
    bits[len(bits) // 2] ^= 1
    first.write_bytes(bits)
    second.write_bytes(second.read_bytes()[:100])
    status = fc.sweep_status(folder)
    assert status.missing == 1 + 8 and "9 missing" in repr(status)
    found = fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0)
    same(found.to_dataset(), undisturbed)
    assert fc.sweep_status(folder).missing == 0 and fc.sweep_status(folder).failed == 1


def test_a_worker_that_dies_is_replaced(tmp_path):
    verb = functools.partial(draw_after_a_death, mark=tmp_path / "mark")
    found = fc.sweep(NET, OVER, verb, workers=1).to_dataset()
    assert (tmp_path / "mark").exists()
    here = fc.sweep(NET, OVER, draw, workers=0).to_dataset()
    same(found.assign_attrs(here.attrs), here)


@pytest.mark.slow
def test_a_point_that_kills_its_workers_is_named(tmp_path):
    """Two processes start and die (10 s)."""
    with pytest.raises(fc.SweepStopped) as told:
        fc.sweep(NET, {"flows.tcp.n": [4]}, deadly, workers=1, folder=tmp_path / "kept")
    message = str(told.value)
    assert "died 2 times at flows.tcp.n = 4 (exit code -9)" in message and "memory" in message
    assert "0 of 1 points are done, what is finished is kept in" in message


@pytest.mark.slow
def test_a_script_that_processes_cannot_import_is_told(tmp_path):
    """Three processes start (15 s)."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace('__name__ == "__main__"', "True"))
    here = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    out = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "kept"), "1"],
        env={**os.environ, "PYTHONPATH": here}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "SweepStopped: a process could not start (exit code 1)" in out.stderr
    assert 'under `if __name__ == "__main__":`' in out.stderr


def test_two_sweeps_do_not_share_a_folder_at_once(tmp_path):
    folder = tmp_path / "kept"
    fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    manifest = Folder(folder).manifest()
    assert manifest is not None
    with Folder(folder).opened(manifest):
        assert fc.sweep_status(folder).busy
        with pytest.raises(ValueError, match=rf"folder: process {os.getpid()} of .* is sweeping"):
            fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    assert not fc.sweep_status(folder).busy


def test_a_folder_is_for_one_sweep(tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    other = fc.replace(NET, {"links.near.capacity": "5 Mbit/s"})
    seeded = functools.partial(draw, seeds=(2,))
    for net, over, verb, what in (
        (other, OVER, draw, "in the scenario:"),
        (NET, {"flows.tcp.n": [1]}, draw, "in the grid:"),
        (NET, OVER, seeded, "in the options:"),
    ):
        with pytest.raises(ValueError, match=f"has another sweep, from which this .* {what}"):
            fc.sweep(net, over, verb, folder=folder, workers=0)
    monkeypatch.setattr("fluidcc.sweeps.job.code", lambda: "other")
    with pytest.raises(ValueError, match="differs in the versions of the code:"):
        fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged: delete the folder"):
        fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    with pytest.raises(ValueError, match="expected one of a sweep, or an empty one, got"):
        fc.sweep(NET, OVER, draw, folder=tmp_path, workers=0)
    assert list(tmp_path.iterdir()) == [folder]
    (folder / "manifest.json").unlink()
    with pytest.raises(ValueError, match="which has chunk-"):
        fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    with pytest.raises(ValueError, match="expected one with a sweep in it"):
        fc.sweep_status(tmp_path / "none")


def test_an_interrupt_keeps_what_is_done(tmp_path, undisturbed):
    folder = tmp_path / "kept"

    def stop(progress):
        if progress.done > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0, progress=stop)
    assert 5 < fc.sweep_status(folder).done < SIZE
    same(fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0).to_dataset(), undisturbed)


def test_attributes_say_where_results_come_from(tmp_path):
    seeded = functools.partial(draw, seeds=range(2, 4))
    data = fc.sweep(NET, OVER, seeded, folder=tmp_path / "kept", workers=0).to_dataset()
    assert fc.dumps(fc.loads(data.attrs["scenario"])) == fc.dumps(NET)
    assert json.loads(data.attrs["seeds"]) == [2, 3]
    assert data.attrs["verb"] == "sweep_cases.draw" and data.attrs["jax"]
    alone = draw(fc.replace(NET, {"flows.tcp.n": 5, "links.near.delay": 0.002}), seeds=(2, 3))
    assert data["value"].values[2, 1, :5].tolist() == alone.values.tolist()
