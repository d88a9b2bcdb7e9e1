"""Bounds judged by packet runs: BMCC starved by SACK, and drops that do harm."""

import pytest

import fluidcc as fc
from fluidcc.bundled.validation.lab.check import BOUNDS

# -- BMCC and SACK ----------------------------------------------------------------------------


@pytest.mark.parametrize("figure", ["without ECN (figure 7)", "with ECN (figure 8)"])
def test_sack_starves_bmcc_at_a_full_target_and_not_at_a_lower_one(figure):
    bound = BOUNDS["bmcc.starved_by_sack"]
    paper = bound.defined({"sack": figure})
    nets = {gamma: bound.subject({"gamma": gamma}, paper) for gamma in (0.8, 0.98, 1.0)}
    seen = {gamma: bound.measure(net) for gamma, net in nets.items()}

    def missed(gamma, definitions):
        return bound.judge(nets[gamma], seen[gamma], definitions).excess

    assert missed(1.0, paper) < 0 and missed(0.98, paper) < 0 < missed(0.8, paper)
    assert seen[0.8].flight > 4 * seen[1.0].flight


def test_a_router_of_the_paper_is_found_to_be_one():
    report = fc.check_bound("bmcc.starved_by_sack", fc.load("qazi2010/mix_bmcc_router_ecn"))
    assert len(report.readings) == 2 and report.verdict == "holds"
    assert report.readings[0].definitions["sack"].startswith("with ECN")
    assert report.readings[0].definitions["network"].startswith("the paper's: 40 ms")
    other = fc.check_bound("bmcc.starved_by_sack", fc.load("qazi2010/two_bmcc_router"))
    assert "beside bulk SACK flows" in other.message


# -- drops ------------------------------------------------------------------------------------

EXPIRIES = "half of timer expiries and fast recoveries together are expiries"
IDLE = "utilisation 0.05 below that of the same flows told by marks"


def test_drops_do_harm_below_10_percent_and_need_not_from_15_percent_on():
    """Fast recoveries are still the most up to 10 %, and in some networks beyond 15 %."""
    report = fc.check_bound("ecn_mod.drops_do_harm")
    found = {tuple(r.definitions.values()): r for r in report.readings}
    below, above = "none up to 10 %", "some from 15 % on"
    verdicts = {key: reading.verdict for key, reading in found.items()}
    assert verdicts[below, EXPIRIES] == "holds"
    assert verdicts[above, EXPIRIES] == "violated"
    assert verdicts[below, IDLE] == verdicts[above, IDLE] == "violated"
    worst = found[above, EXPIRIES].worst
    assert worst is not None and worst.text is not None
    means = fc.simulate_packets(fc.loads(worst.text), until=100, warmup=30, seeds=(2, 3)).mean
    flows = means["flows"]["tcp"]
    assert means["links"]["bottleneck"]["drop_fraction"] > 0.15
    assert 0.4 < flows["timeouts"] / (flows["timeouts"] + flows["recoveries"]) < 0.5
    (step,) = report.derivation
    assert step == "TCP's window at one loss in nine packets: 4"
