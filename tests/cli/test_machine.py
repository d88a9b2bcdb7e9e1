"""What is told about the machine, compiling ahead, and words that a shell completes."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from fluidcc.bundled import scenarios
from fluidcc.bundled.validation.lab.store import Store
from fluidcc.cli import machine as doctor
from fluidcc.folders import own_folder, sealed

ROOT = Path(__file__).parents[2]


def test_the_doctor_finds_versions_devices_caches_and_extras(run):
    code, out, _ = run("doctor", "--json")
    found = {(f["topic"], f["name"]): f for f in json.loads(out)["findings"]}
    assert code == 0
    assert found["versions", "jax"]["value"] == version("jax")
    assert found["devices", "double precision"]["value"] == "on"
    assert found["cache", "folder"]["good"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name for topic, name in found if topic == "extras"}
    assert extras == set(project["optional-dependencies"])
    named = {name for topic, name in found if topic == "versions"} - {"Python", "fluidcc"}
    assert named == {text.split(">")[0] for text in project["dependencies"]}


def test_a_process_of_its_own_finds_devices_with_memory_and_nothing_wrong():
    asked = [sys.executable, "-c", "from fluidcc.cli import main; main()", "doctor", "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT)
    found = {f["name"]: f["value"] for f in json.loads(done.stdout)["findings"]}
    assert found["double precision"] == "on"
    assert re.search(r"\d [MG]B of memory for JAX$", found["cpu:0"])


def test_a_folder_that_cannot_be_written_is_told(run, monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(blocked))
    code, out, err = run("doctor")
    assert code == 3
    assert str(blocked) in out and "FLUIDCC_CACHE_DIR names another folder" in err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user_is_not_good(run, monkeypatch, tmp_path):
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    base = tmp_path / "fluidcc"
    base.mkdir()
    os.chown(base, 12345, 12345)
    code, _, err = run("doctor")
    assert code == 3 and f"folder: {base}; it belongs to another user" in err


def test_files_that_another_process_deletes_do_no_harm(monkeypatch, tmp_path):
    """A link to nothing is such a file: it is listed, and cannot be read."""
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    (own_folder("numba-1") / ".part-1.seal").symlink_to(tmp_path / "gone")
    (own_folder("results") / "1.part").symlink_to(tmp_path / "gone")
    found = [f for f in doctor.examine() if f.topic == "cache"]
    assert {f.name for f in found} >= {"numba-1", "results"}
    assert [f for f in found if f.good is False] == []


def test_damaged_files_are_not_good(monkeypatch, tmp_path):
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path))
    kept = Store(own_folder("results"))
    kept.keep("fluid", {}, lambda: {"n": 1})
    compiled = own_folder("warp") / "kernel.o"
    with sealed(compiled.parent, "kernel", "kernel.*"):
        compiled.write_bytes(b"code")
    assert [f for f in doctor.examine() if f.topic == "cache" and f.good is False] == []
    (result,) = kept.folder.iterdir()
    for file in (result, compiled):
        file.write_bytes(b"{}")
    found = {f.name: f for f in doctor.examine() if f.good is False}
    assert set(found) == {"results", "warp"}
    assert f"damaged: 1, as '{compiled}'" in found["warp"].value
    assert f"damaged: 1, as '{result}'" in found["results"].value


def test_warming_calls_each_verb_once(run):
    code, out, _ = run("precompile", "hollot2001/slow")
    words = [line.split() for line in out.splitlines()]
    verbs = ["equilibrium", "stability", "simulate", "packets", "trains", "compare"]
    assert code == 0 and [w[:2] for w in words] == [["hollot2001/slow:", verb] for verb in verbs]
    assert all(w[3:] == ["s"] for w in words)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("fluidcc dele", []),
        ("fluidcc equil", ["equilibrium"]),
        ("fluidcc equilibrium hollot", [n for n in scenarios() if n.startswith("hollot")]),
        ("fluidcc show mine", ["mine.toml", "mine_too/"]),
        ("fluidcc show ./mine.", ["./mine.toml"]),
        ("fluidcc show ~/mine", ["~/mine.toml", "~/mine_too/"]),
        ("fluidcc show mine_too/in", ["mine_too/inner.toml"]),
        ("fluidcc check-bounds mine.", ["mine.toml"]),
        ("fluidcc explore mine.", ["mine.toml"]),
        ("fluidcc check-law mine.py --scenario mine.", ["mine.toml"]),
        ("fluidcc sweep equilibrium mine.", ["mine.toml"]),
    ],
)
def test_a_shell_completes_commands_scenarios_and_files(typed, expected, tmp_path):
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "mine.txt").write_text("")
    (tmp_path / "mine_too").mkdir()
    (tmp_path / "mine_too/inner.toml").write_text("")
    words = {"_FLUIDCC_COMPLETE": "complete_bash", "COMP_WORDS": typed, "HOME": str(tmp_path)}
    words["COMP_CWORD"] = str(typed.count(" "))
    out = subprocess.run(
        [Path(sys.executable).with_name("fluidcc")],
        cwd=tmp_path, env=os.environ | words, capture_output=True, text=True,
    )  # fmt: skip
    assert out.stdout.split() == expected
