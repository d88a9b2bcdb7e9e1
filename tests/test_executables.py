"""Executables on disk: found by later processes, the same to the digit, never stale nor damaged."""

import os
import pickle
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fluidcc.folders import is_sound, sealed_name

LAWS = Path(__file__).parents[1] / "docs" / "own_laws"
ASK = """
import sys
import fluidcc as fc

for law in sys.argv[2:]:
    fc.load_laws(law)
for name, found in fc.window_distributions(fc.load(sys.argv[1])).groups.items():
    print(name, found.window_mean.hex(), found.window_var.hex())
"""


CALLS = """
import fluidcc as fc
from fluidcc.programs import compiling

with compiling():
    print(fc.equilibrium(fc.load("hollot2001/pi")).links["bottleneck"].mark_probability.hex())
"""


def begin(cache, *words, script=ASK, **settings):
    """A process with a cache of its own that asks for the windows of a scenario."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    env |= {"FLUIDCC_CACHE_DIR": str(cache), **settings}
    words = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end(process):
    """What a process found."""
    found, errors = process.communicate()
    assert process.returncode == 0 and not errors, errors
    return found


def kept(cache):
    """The executables in a cache, all sound, with the times at which they were made."""
    files = list((cache / "fluidcc" / "programs").iterdir())
    assert files and all(is_sound(file, file.read_bytes()) for file in files)
    return {file.name: file.stat().st_mtime_ns for file in files}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A cache and what the process that made it found."""
    cache = tmp_path_factory.mktemp("first")
    return cache, end(begin(cache, "hollot2001/slow"))


def test_a_later_process_makes_nothing_and_finds_the_same(first):
    cache, found = first
    before = kept(cache)
    assert end(begin(cache, "hollot2001/slow")) == found
    assert kept(cache) == before


def test_code_that_calls_lapack_finds_it(tmp_path):
    found = end(begin(tmp_path, script=CALLS))
    before = kept(tmp_path)
    assert end(begin(tmp_path, script=CALLS)) == found
    assert kept(tmp_path) == before


def test_damaged_files_are_made_anew(first, tmp_path):
    cache, found = first
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    for k, file in enumerate(sorted((tmp_path / "fluidcc" / "programs").iterdir())):
        data = bytearray(file.read_bytes())
        data[random.Random(k).randrange(len(data))] ^= 1
        file.write_bytes(data if k else b"")
        if k == 1:  # no code at all, though it is what was written
            file.unlink()
            data = pickle.dumps((b"no code", ()))
            place = file.stem.rpartition("-")[0]
            file.with_name(sealed_name(place, data, file.suffix)).write_bytes(data)
    assert end(begin(tmp_path, "hollot2001/slow")) == found
    assert len(kept(tmp_path)) == len(kept(cache))


def test_two_processes_that_begin_at_once_do_not_harm_each_other(first, tmp_path):
    both = [begin(tmp_path, "hollot2001/slow") for _ in range(2)]
    assert [end(process) for process in both] == 2 * [first[1]]
    kept(tmp_path)
    assert end(begin(tmp_path, "hollot2001/slow")) == first[1]


def test_settings_of_the_compiler_make_code_of_their_own(first, tmp_path):
    cache, found = first
    shutil.copytree(cache, tmp_path, dirs_exist_ok=True)
    flags = "--xla_cpu_enable_fast_math=false"
    assert end(begin(tmp_path, "hollot2001/slow", XLA_FLAGS=flags)) == found
    assert len(kept(tmp_path)) == 2 * len(kept(cache))


def test_code_of_a_law_file_that_has_changed_is_not_used(tmp_path):
    law = tmp_path / "large_window.py"
    shutil.copy(LAWS / "large_window.py", law)
    before = end(begin(tmp_path / "cache", LAWS / "large_window.toml", law))
    text = law.read_text()
    law.write_text(text.replace("2 * 0.078", "2 * 0.1"))
    assert law.read_text() != text
    after = end(begin(tmp_path / "cache", LAWS / "large_window.toml", law))
    assert after != before
    assert after == end(begin(tmp_path / "other", LAWS / "large_window.toml", law))


FULL = """
import resource
from pathlib import Path
import numpy as np
import fluidcc as fc

net = fc.load("hollot2001/slow")

def run(slots):
    fc.simulate(net, until=1e-3 * slots, mesh=fc.Uniform(1e-3, slots=slots))

def solve(slots):
    fc.solve_dde(
        lambda t, y, z, p: -z[0], lambda t, p: 1.0, 0.0, 0.5 * slots, lags=[lambda t, y, p: 1.0],
        params=np.ones(8), ts=[0.5 * slots], mesh=fc.Uniform(0.5, slots=slots), batched=True,
    )

run(1024)
solve(1024)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**28,) * 2)
for verb, slots in ((run, 2**24), (solve, 2**25)):
    try:
        verb(slots)
    except MemoryError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by Linux")
def test_a_device_without_memory_left_gives_advice_in_one_line(tmp_path):
    lines = end(begin(tmp_path, script=FULL)).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.search(r"\d bytes.*other processes may hold memory.*ask for less", line)
