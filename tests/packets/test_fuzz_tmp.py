"""No network, however odd, may crash, hang or read what is not its own. `pytest -m slow`.

Three thousand short compiled runs, two hundred pairs with every hop, and a hundred interpreted ones
with every access checked take ten CPU minutes and up to 4.4 GB: networks may have 200 000 flows.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fuzz_cases import check, networks, run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
QUIET: dict[str, Any] = {
    "suppress_health_check": list(HealthCheck),
    "deadline": None,
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],  # making an example small takes hours
}
PATIENCE = 60.0  # CPU s of one run, with what it compiles


def _watched(net: Any, packets: float, seed: int, **options: Any) -> Any:
    """A run that is ended, and fails, when it takes too long."""
    begun = time.process_time()

    def look(_: float) -> None:
        assert time.process_time() - begun < PATIENCE, "the run hangs"

    return run(net, packets, seed, progress=look, **options)


@settings(max_examples=250, **QUIET)
@given(networks(), st.integers(0, 2**63))
def test_any_network_runs_or_says_why_not(net, seed):
    if not isinstance(net, str):
        check(net, _watched(net, 20000.0, seed))


@settings(max_examples=60, **QUIET)
@given(networks(), st.integers(0, 2**63))
def test_elision_never_changes_anything(net, seed):
    if not isinstance(net, str):
        both = [_watched(net, 5000.0, seed, elide=elide) for elide in (True, False)]
        told = [runs if isinstance(runs, str) else runs.to_dict() for runs in both]
        assert told[0] == told[1]


CHECKED = """
import sys
import time
import jax
jax.config.update("jax_enable_x64", True)
sys.path.insert(0, sys.argv[1])
import checked_engine
from fuzz_cases import check, networks, run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

class Enough(Exception):
    pass

@settings(max_examples=40, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))
@given(networks(), st.integers(0, 2**63))
def attack(net, seed):
    begun = time.process_time()

    def look(_):
        if time.process_time() - begun > 3.0:
            raise Enough

    if not isinstance(net, str):
        try:
            check(net, run(net, 60.0, seed, progress=look))
        except Enough:
            pass

attack()
"""


def test_every_access_is_inside_its_array():
    done = subprocess.run(
        [sys.executable, "-c", CHECKED, str(HERE.parent)], cwd=HERE, text=True,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
