"""Windows of the packet engine under marks of constant probability: the stationary law."""

import math

import pytest
from packet_cases import RandomMarks, known_marks
from scipy import stats

from fluidcc.analysis.stationary import stationary_window
from fluidcc.laws.reaction import OncePerRTT, PerMark
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets.run import simulate_packets

CASES = {
    "ecn_mod": (ECNMod(max_window=1000.0), PerMark(), False, 0.01),
    "once": (NewReno(max_window=1000.0), OncePerRTT(), True, 0.002),
}


@pytest.mark.parametrize("case", CASES)
def test_packets_have_the_mean_window_of_the_stationary_law(case):
    law, reaction, quiet, p = CASES[case]
    found = stationary_window(law, p, reaction=reaction, quiet=quiet)
    net = known_marks(RandomMarks(p=p), law, reaction=reaction)
    runs = simulate_packets(net, until=2000.0, warmup=100.0, seeds=range(1, 7))
    (name,) = runs.mean["flows"]
    mean, half = (part["flows"][name]["window_mean"] for part in (runs.mean, runs.ci95))
    wide = stats.t.ppf(1 - 5e-5, 5) / stats.t.ppf(0.975, 5)
    assert math.isclose(mean, found.time_mean, abs_tol=wide * half)
