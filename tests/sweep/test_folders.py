"""Nothing is lost: kills, full disks, damage, death of workers, two runs at once."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from full_disk import small_files
from sweep_cases import NET, OVER, SIZE, deadly, draw, draw_after_a_death, same

import fluidcc as fc
from fluidcc.sweep import job
from fluidcc.sweep.store import manifest_in, open_folder

SLOWLY = functools.partial(draw, pause=0.02)
_FOLDER = "FLUIDCC_TEST_FOLDER"
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
    return fc.sweep(NET, OVER, SLOWLY, workers=0).to_xarray()


@pytest.fixture
def begin(tmp_path):
    """Start a sweep in a process of its own, the first of a group."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    here = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    started = []

    def call(folder, workers):
        words = [sys.executable, str(script), str(folder), str(workers)]
        process = subprocess.Popen(
            words, env={**os.environ, "PYTHONPATH": here, _FOLDER: str(folder)},
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield call
    for process in started:
        end_all(process)


def end(process):
    """kill -9 of the process that was started."""
    process.kill()
    process.wait()
    process.stdout.close()


def end_all(process):
    """kill -9 of all its group."""
    with suppress(ProcessLookupError):  # they have ended
        os.killpg(process.pid, signal.SIGKILL)
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


def alive(folder):
    """Processes of a sweep that was started, in whatever group: what they began with tells."""
    mark, found = f"{_FOLDER}={folder}\0".encode(), []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is another user's
            if mark in environ.read_bytes():
                found.append(environ.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(("workers", "at_least"), [(0, 2), (2, 1)])
def test_a_killed_sweep_goes_on_where_it_was(begin, tmp_path, undisturbed, workers, at_least):
    folder = tmp_path / "kept"
    process = begin(folder, workers)
    until(lambda: len(chunks(folder)) >= at_least)
    assert len(alive(folder)) > workers
    end(process)
    until(lambda: not alive(folder))  # workers notice that their parent is gone
    status = fc.sweep_status(folder)
    assert 0 < status.done < SIZE and not status.busy
    before, seen = set(chunks(folder)), []
    found = fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0, progress=seen.append)
    assert seen[0].done > status.done and seen[-1].done == SIZE
    assert before < set(chunks(folder))
    same(found.to_xarray(), undisturbed)
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path, undisturbed):
    folder = tmp_path / "kept"
    with ExitStack() as disk:

        def fill(progress):
            if progress.done == 1:
                (chunk,) = chunks(folder)
                disk.enter_context(small_files(chunk.stat().st_size - 1))

        with pytest.raises(fc.SweepStopped, match="make room, and run the same again") as told:
            fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0, progress=fill)
    assert "1 of 32 points are done, finished chunks are kept in" in str(told.value)
    assert [f.name for f in folder.iterdir() if f.name.startswith(".")] == []
    same(fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0).to_xarray(), undisturbed)


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
    same(found.to_xarray(), undisturbed)
    assert fc.sweep_status(folder).missing == 0 and fc.sweep_status(folder).failed == 1


def test_a_table_without_room_is_refused_as_soon_as_it_is_known(tmp_path, monkeypatch, undisturbed):
    folder, calls = tmp_path / "kept", []
    sweep = functools.partial(fc.sweep, NET, OVER, SLOWLY, folder=folder, workers=0)
    monkeypatch.setattr("fluidcc.memory._of_machine", lambda: 1000.0)
    advice = "take fewer points, or split the sweep into several, with a folder each"
    with pytest.raises(ValueError, match=f"a table of 32 points would take .* 1 kB: {advice}"):
        sweep()
    assert not folder.exists()
    monkeypatch.setattr("fluidcc.memory._of_machine", lambda: 10_000.0)
    with pytest.raises(fc.SweepStopped, match=f"there are 10 kB: {advice}; 1 of 32 points") as told:
        sweep()
    assert f"finished chunks are kept in '{folder}'" in str(told.value)
    with pytest.raises(ValueError, match="there are 10 kB"):  # known from what was kept
        sweep(progress=calls.append)
    assert not calls and fc.sweep_status(folder).done == 1
    monkeypatch.undo()
    same(sweep(progress=calls.append).to_xarray(), undisturbed)
    assert calls[0].done > 1


def test_a_worker_that_dies_is_replaced(tmp_path):
    verb = functools.partial(draw_after_a_death, mark=tmp_path / "mark")
    found = fc.sweep(NET, OVER, verb, workers=1).to_xarray()
    assert (tmp_path / "mark").exists()
    here = fc.sweep(NET, OVER, draw, workers=0).to_xarray()
    same(found.assign_attrs(here.attrs), here)


@pytest.mark.slow
def test_a_point_that_kills_its_workers_is_named(tmp_path):
    """Two processes start and die (10 s)."""
    with pytest.raises(fc.SweepStopped) as told:
        fc.sweep(NET, {"flows.tcp.n": [4]}, deadly, workers=1, folder=tmp_path / "kept")
    message = str(told.value)
    assert "died 2 times at flows.tcp.n = 4 (exit code -9)" in message and "memory" in message
    assert "0 of 1 points are done, finished chunks are kept in" in message


def test_two_sweeps_do_not_share_a_folder_at_once(tmp_path):
    folder = tmp_path / "kept"
    fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    manifest = manifest_in(folder)
    assert manifest is not None
    with open_folder(folder, manifest):
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
        with pytest.raises(ValueError, match=f"has another sweep, which differs .* {what}"):
            fc.sweep(net, over, verb, folder=folder, workers=0)
    monkeypatch.setattr(job, "code", lambda: "other")
    with pytest.raises(ValueError, match="differs from this one in the versions of the code:"):
        fc.sweep(NET, OVER, draw, folder=folder, workers=0)
    sound = json.loads((folder / "manifest.json").read_text())
    for text in (
        "{", "[" * 100_000, "[]", json.dumps({"sweep": 3, "origin": []}),
        json.dumps(sound | {"sweep": {"grid": 3}}),
        json.dumps(sound | {"sweep": {"grid": {"a": 3}}}),
        json.dumps(sound | {"origin": {}}), json.dumps(sound | {"origin": {"command": 3}}),
    ):  # fmt: skip
        (folder / "manifest.json").write_text(text)
        for ask in (lambda: fc.sweep_status(folder),
                    lambda: fc.sweep(NET, OVER, draw, folder=folder, workers=0)):  # fmt: skip
            with pytest.raises(ValueError, match="is damaged: delete the folder"):
                ask()
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
    same(fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0).to_xarray(), undisturbed)
