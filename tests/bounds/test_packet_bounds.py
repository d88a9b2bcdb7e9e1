"""Bounds judged by packet runs: BMCC starved by SACK, and drops that do harm."""

import dataclasses

import pytest

import fluidcc as fc
from fluidcc.bundled.validation.bounds.bmcc import ANY_LOWER, ANY_SET, LOWER, PAPER
from fluidcc.bundled.validation.lab.bound import packet_means
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


GAMMA = "links.bottleneck.queue.gamma"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"flows.sack.start": "80 s"}, "started by 30 s"),
        ({"flows.bmcc.start": "80 s"}, "started by 30 s"),
        ({GAMMA: 0.7}, "target utilisations from 0.8 to 1, not of 0.7"),
        ({"links.bottleneck.buffer": 300}, "with the paper's cross traffic"),
        ({"flows.ahead.traffic.file": "60 kB"}, "with the paper's cross traffic"),
        ({"flows.sack.feedback": "mark_front"}, "drops or marks tell"),
    ],
)
def test_starving_says_nothing_of_other_networks(change, why):
    net = fc.replace(fc.load("qazi2010/mix_bmcc_router"), change)
    assert why in fc.check_bound("bmcc.starved_by_sack", net).message


def _alone(net):
    """The first two groups of a network."""
    return dataclasses.replace(net, flows=net.flows[:2], flow_names=net.flow_names[:2])


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (fc.load("qazi2010/mix_bmcc_router"), PAPER),
        (fc.replace(fc.load("qazi2010/mix_bmcc_router"), {GAMMA: 0.9}), LOWER),
        (_alone(fc.load("qazi2010/mix_bmcc_router")), ANY_SET),
        (fc.replace(_alone(fc.load("qazi2010/mix_bmcc_router")), {GAMMA: 0.9}), ANY_LOWER),
    ],
    ids=["the paper's", "lower", "alone", "alone and lower"],
)
def test_starving_names_the_definitions_that_a_network_has(net, words):
    bound = BOUNDS["bmcc.starved_by_sack"]
    assert bound.obstacle(net) == "" and bound.found_in(net)["network"] == words
    gamma = bound.ranges(bound.defined({"network": words}))["gamma"]
    assert gamma.low <= net.links[0].queue.gamma <= gamma.high


def test_a_group_that_gets_nothing_through():
    """BMCC that gets nothing is starved; beside SACK that gets nothing there is no ratio."""
    net, bound = _alone(fc.load("qazi2010/mix_bmcc_router")), BOUNDS["bmcc.starved_by_sack"]
    shut = {
        name: fc.replace(net, {f"flows.{name}.access_capacity": 1e-3}) for name in net.flow_names
    }
    assert bound.measure(shut["bmcc"]) == (0.0, 0.0)
    report = fc.check_bound("bmcc.starved_by_sack", shut["sack"])
    rate, flight = report.readings
    assert (rate.verdict, rate.searched, rate.worst) == ("unknown", 0, None)
    assert flight.verdict == "violated" and report.verdict == "unknown"
    why = report.to_dict()["bounds"][0]["why"]
    assert "not a number on this network" in why and why in repr(report)


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


@pytest.mark.slow
def test_a_long_search_finds_flows_that_few_drops_silence():
    """10 CPU s."""
    asked = {"side": "none up to 10 %", "harm": "Jain's index of the goodputs below 0.9"}
    report = fc.check_bound("ecn_mod.drops_do_harm", definitions=asked, budget=300)
    assert report.verdict == "violated"
    assert report.worst is not None and report.worst.text is not None
    means = fc.simulate_packets(fc.loads(report.worst.text), until=100, warmup=30, seeds=(1,)).mean
    rates = sorted(means["flows"]["tcp"]["goodput_flows"])
    assert means["links"]["bottleneck"]["drop_fraction"] < 0.1
    assert rates[1] < 0.05 * rates[len(rates) // 2]


def test_drops_of_a_network_settle_the_side():
    bound = BOUNDS["ecn_mod.drops_do_harm"]
    found = {}
    for n in (10.0, 50.0, 200.0):
        net = bound.subject({"n": n, "rtt": 0.05 if n == 50 else 0.1}, {})
        found[n] = fc.check_bound("ecn_mod.drops_do_harm", net)
    assert [len(found[n].readings) for n in found] == [3, 0, 3]
    sides = [found[n].readings[0].definitions["side"] for n in (10.0, 200.0)]
    assert sides == ["none up to 10 %", "some from 15 % on"]
    assert "between its limits" in found[50.0].message


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"flows.tcp.window.max_window": 2}, "not the receiver's max_window"),
        ({"flows.tcp.n": 1}, "not the receiver's max_window"),
        ({"flows.tcp.start": "40 s"}, "bulk flows that have started by 30 s"),
        ({"flows.tcp.traffic": {"law": "file", "file": "50 kB"}}, "bulk flows that"),
        ({"links.bottleneck.cross": 100}, "TCP flows alone"),
        ({"flows.tcp.n": 3, "links.bottleneck.queue": {"law": "droptail"},
          "links.bottleneck.buffer": "1 GB", "flows.tcp.window.max_window": "1 GB"}, "none is"),
    ],
    ids=["receiver", "too few", "late", "files", "crossed", "no drop"],
)  # fmt: skip
def test_drops_that_are_none_or_not_alone_are_not_judged(change, why):
    net = fc.replace(fc.load("akujobi2002/homogeneous_tcp"), change)
    report = fc.check_bound("ecn_mod.drops_do_harm", net)
    assert report.readings == () and why in report.message


def test_a_network_is_run_once(monkeypatch):
    runs = []

    def counted(net, **options):
        runs.append(net.flows[0].feedback.name)
        return packet_means(net, **options)

    monkeypatch.setattr("fluidcc.bundled.validation.bounds.ecn_mod.packet_means", counted)
    fc.check_bound("ecn_mod.drops_do_harm", fc.load("akujobi2002/homogeneous_tcp"))
    assert runs == ["loss", "mark_tail"]
