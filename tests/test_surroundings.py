"""Odd surroundings: no home, folders that cannot be used, pipes that close, faults of fluidcc."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from full_disk import small_files

import fluidcc
from fluidcc.folders import own_folder

HOME = Path(fluidcc.__file__).parent
RUN = [sys.executable, "-P", "-c", "from fluidcc.cli import main; main()"]


def command(*words, env=None, **options):
    """Run fluidcc in a process of its own."""
    surroundings = {**os.environ, "FLUIDCC_TRACEBACK": "", **(env or {})}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([*RUN, *words], env=surroundings, text=True, timeout=100, **streams)


@pytest.fixture
def broken(tmp_path):
    """Surroundings with a copy of fluidcc whose bundled scenarios are gone."""
    package = tmp_path / "fluidcc"
    shutil.copytree(HOME, package, ignore=shutil.ignore_patterns("__pycache__", "_bundled"))
    return {"PYTHONPATH": str(tmp_path), "FLUIDCC_CACHE_DIR": str(tmp_path / "cache")}


def test_a_fault_of_fluidcc_leaves_a_report(broken, tmp_path):
    found = command("list", env=broken)
    assert (found.returncode, found.stdout) == (1, "")
    first, second, third = found.stderr.splitlines()
    assert first.startswith("error: fluidcc failed where it should not: FileNotFoundError: ")
    assert "not of your input" in second and "FLUIDCC_TRACEBACK=1" in third
    (file,) = (tmp_path / "cache" / "fluidcc" / "faults").iterdir()
    assert str(file) in second
    report = file.read_text()
    assert "Traceback" in report and "fluidcc list" in report and "\njax " in report


def test_a_fault_whose_report_cannot_be_kept_says_so(broken):
    found = command("list", env={**broken, "FLUIDCC_CACHE_DIR": "/dev/null"})
    assert found.returncode == 1 and "Its report cannot be kept (Not a directory)" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_pipe_that_is_closed_ends_a_command_in_silence():
    reading, writing = os.pipe()
    os.close(reading)
    found = command("list", stdout=writing)
    os.close(writing)
    assert (found.returncode, found.stderr) == (141, "")


@pytest.mark.parametrize("words", [("--json",), ()])
def test_standard_output_may_be_closed(words):
    given = ["sh", "-c", 'exec "$0" "$@" >&-', *RUN, "list", *words]
    found = subprocess.run(given, stderr=subprocess.PIPE, text=True)
    assert (found.returncode, found.stderr) == (0, "")


def test_ctrl_c_ends_a_long_trajectory(tmp_path):
    """Compiled loops do not look at signals, and this one takes minutes; nothing is kept before."""
    words = ["simulate", "hollot2001/slow", "--until", "1e6"]
    surroundings = {**os.environ, "JAX_LOG_COMPILES": "1", "FLUIDCC_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [*RUN, *words], env=surroundings, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "Finished XLA compilation of jit(report)" in line:  # made while the loop runs
                break
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=15)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "") and err.endswith("interrupted\n")


@pytest.mark.parametrize(
    "swallowing",
    [
        "gc.callbacks.append(lambda *_: os.kill(os.getpid(), signal.SIGINT)); gc.collect()",
        "weakref.finalize(Thing(), os.kill, os.getpid(), signal.SIGINT); time.sleep(20)",
        "sys.settrace(in_layouts); jax.jit(lambda x: x + 1)(1.0)",
    ],
)
def test_ctrl_c_is_not_lost(swallowing):
    """Exceptions do not come out of a callback of the garbage collector, or of a weak reference,
    nor of a function of JAX that does without the layouts if they cannot be had.
    """
    code = f"""
        import gc, linecache, os, signal, sys, time, weakref
        import jax
        from fluidcc.cli import main
        class Thing: ...
        def in_layouts(frame, *_):
            code = frame.f_code
            if "get_output_layouts()" in linecache.getline(code.co_filename, frame.f_lineno):
                sys.settrace(None)
                os.kill(os.getpid(), signal.SIGINT)
            return in_layouts
        def there(*_, **__):
            {swallowing}
            gc.callbacks.clear()
            time.sleep(20)
        import fluidcc.cli.about
        fluidcc.cli.about.print_list = there
        main()
    """
    found = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code), "list"], capture_output=True, text=True,
        timeout=15,
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (130, "interrupted\n")


def test_the_first_name_that_computes_switches_to_double_precision():
    """As the pages say."""
    code = """
        import jax
        import fluidcc as fc
        print(jax.config.jax_enable_x64)
        fc.equilibrium
        print(jax.config.jax_enable_x64)
    """
    found = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)], capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout.split() == ["False", "True"]


def test_output_onto_a_disk_that_is_full_is_no_fault_of_fluidcc():
    with open("/dev/full", "w") as full:
        found = command("list", stdout=full)
    assert found.returncode == 2
    assert found.stderr == "error: cannot write: No space left on device\n"


def test_a_terminal_without_letters_gets_other_ones():
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
            "PYTHONIOENCODING": "ascii", "COLUMNS": "20", "NO_COLOR": "1"}  # fmt: skip
    found = command("list", "laws", env=poor)
    assert found.returncode == 0 and found.stderr == "" and found.stdout.isascii()


def test_a_file_on_a_disk_that_is_full_is_not_begun(run, tmp_path):
    """As on a full disk, no file may become larger than a thousand bytes."""
    words = ("equilibrium", "hollot2001/slow", "--over", "flow.n=40:60:0.5")
    run(*words)  # which compiles
    with small_files(1000):
        code, _, err = run(*words, "--out", "x.csv")
    said = "error: --out: expected a file that can be written, got 'x.csv' (File too large)\n"
    assert (code, err) == (2, said)
    assert not list(tmp_path.glob("*.csv"))


def test_what_is_kept_is_the_users_alone(monkeypatch, tmp_path):
    """Compiled code runs when it is read, so nobody else may put any there."""
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    (tmp_path / "fluidcc").mkdir(mode=0o755)
    folder = own_folder("numba")
    assert folder == tmp_path / "fluidcc" / "numba"
    assert (
        stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    )


@pytest.mark.parametrize("place", [".", "fluidcc", "fluidcc/numba"])
def test_a_folder_that_others_may_change_is_refused(monkeypatch, tmp_path, place):
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    own_folder("numba")
    (tmp_path / place).chmod(0o777)
    with pytest.raises(OSError, match="others may write there"):
        own_folder("numba")
    if place == ".":  # as /tmp, where nobody may put another in the place of ours
        tmp_path.chmod(0o1777)
        own_folder("numba")


@pytest.mark.parametrize("place", ["fluidcc", "fluidcc/programs"])
def test_a_link_is_refused_and_what_it_leads_to_stays_as_it_is(tmp_path, place):
    target, link = tmp_path / "target", tmp_path / "cache" / place
    target.mkdir(mode=0o755)
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    found = command(
        "window-distribution",
        "hollot2001/slow",
        env={"FLUIDCC_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert found.returncode == 0
    assert found.stderr.count(f"cannot be kept in '{link}' (it is a link") == 1
    assert not list(target.iterdir()) and stat.S_IMODE(target.stat().st_mode) == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("place", [".", "fluidcc", "fluidcc/numba"])
def test_the_folder_of_another_user_is_refused(monkeypatch, tmp_path, place):
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    own_folder("numba")
    os.chown(tmp_path / place, 12345, 12345)
    with pytest.raises(OSError, match="belongs to another user"):
        own_folder("numba")


@pytest.mark.parametrize("card", [False, True])
def test_jax_without_its_part_for_cards_says_a_line_where_there_is_a_card(tmp_path, card):
    """A plugin that JAX finds and cannot start, as that for cards without a driver."""
    plugin = tmp_path / "jax_plugins" / "broken" / "__init__.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("def initialize():\n    raise RuntimeError('no driver')\n")
    tool = tmp_path / "nvidia-smi"
    if card:
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    code = "import fluidcc as fc; print(fc.solve_dde.__name__); import jax; jax.devices()"
    env = os.environ | {"PYTHONPATH": str(tmp_path), "PATH": str(tmp_path)}
    env.pop("JAX_PLATFORMS", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "solve_dde\n"
    lines = done.stderr.splitlines()
    assert len(lines) == card
    assert all("broken" in line and "no driver" in line for line in lines)
