"""Fair links: what each flow has of the transmitter, alone and beside others, in packets and in the
fluid model.
"""

import json
import math
import re

import numpy as np
import pytest
from packet_cases import by_definition, fair, watched

import fluidcc as fc
from fluidcc.analysis.validity import validity_warnings

TWO = """
[links.b]
capacity    = 4000      # packet/s
packet_size = "1000 B"
delay       = "5 ms"
buffer      = 400
fair        = true
queue       = { law = "red", min_th = 25, max_th = 75, p_max = 0.1, w_q = 0.002 }

[flows.short]
n      = 4
rtt    = "20 ms"
window = { law = "newreno" }

[flows.long]
n      = 4
rtt    = "200 ms"
window = { law = "newreno" }
"""
RUN = {"until": 120.0, "warmup": 20.0, "seeds": (1, 2)}


def one_group(**changes):
    """The first group alone, with other values."""
    net = fc.loads(TWO[: TWO.index("[flows.long]")])
    return fc.replace(net, changes and {k.replace("__", "."): v for k, v in changes.items()})


def link_of(runs, name="b"):
    return runs.mean["links"][name], runs.ci95["links"][name]


@pytest.mark.parametrize("law", ["red", "pi2"])
def test_each_of_many_flows_is_alone_with_its_share_of_the_capacity(law):
    """The packet in service waits for its turn, so that it is one of the queue."""
    many = one_group(links__b__queue__law=law, flows__short__n=8)
    alone = fc.replace(many, {"flows.short.n": 1, "links.b.capacity": 500, "links.b.fair": False})
    together = fc.simulate_packets(many, **RUN)
    single = fc.simulate_packets(alone, until=420.0, warmup=20.0, seeds=range(1, 9))
    (mean, half), (mean_1, half_1) = link_of(together), link_of(single)
    room = half["queue_mean"] + half_1["queue_mean"]
    low, high = mean_1["queue_mean"], mean_1["number_in_system_mean"]
    assert low - room <= mean["queue_mean"] <= high + room
    assert mean["utilization"] >= 0.9999 and mean_1["utilization"] > 0.98
    spreads = [math.sqrt(m["queue_var"]) for m in (mean, mean_1)]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)
    assert mean["mark_fraction"] == pytest.approx(mean_1["mark_fraction"], rel=0.1)
    marks = mean["marks"] / mean["arrivals"]
    assert marks == pytest.approx(mean["mark_fraction"])  # sums over all queues
    assert mean["arrivals"] == pytest.approx(4000 * 100, rel=1e-3)
    windows = [runs.mean["flows"]["short"]["window_mean"] for runs in (together, single)]
    assert windows[0] == pytest.approx(windows[1], rel=0.03)
    assert together.mean["flows"]["short"]["jain"] > 0.999


def test_a_fair_link_of_one_flow_is_any_link():
    one, other = (
        fc.simulate_packets(
            one_group(flows__short__n=1, links__b__fair=own), until=20.0, sample=0.1
        )
        for own in (True, False)
    )
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert one.series.identical(other.series)


def test_round_trips_have_equal_shares_of_a_fair_link_alone():
    """The index over all flows of both groups; one queue gives the short ones most."""
    net = fc.replace(fc.loads(TWO), {"links.b.queue.min_th": 100, "links.b.queue.max_th": 300})
    plain = fc.simulate_packets(fc.replace(net, {"links.b.fair": False}), **RUN)
    shared = fc.simulate_packets(net, **RUN)
    assert set(shared.mean["links"]) == {"b-short", "b-long"}
    assert link_of(plain)[0]["jain"] < 0.9
    for name in ("b-short", "b-long"):
        assert link_of(shared, name)[0]["jain"] > 0.99
        assert link_of(shared, name)[0]["utilization"] == pytest.approx(1, abs=0.1)
    goodputs = [shared.mean["flows"][name]["goodput"] for name in ("short", "long")]
    assert sum(goodputs) == pytest.approx(4000 * 8000 / 4, rel=0.01)


def test_what_a_flow_does_not_ask_for_is_split_among_the_others():
    """Max-min: four flows ask for 5 packets a round trip of 20 ms, the others have the rest."""
    changes = {"flows.short.window.max_window": 5, "flows.long.rtt": 0.03}
    net = fc.replace(fc.loads(TWO), changes)
    runs = fc.simulate_packets(net, **RUN)
    asked, rest = (runs.mean["flows"][name]["goodput"] / 8000 for name in ("short", "long"))
    # a packet waits for those of the other queues that have a turn before it
    assert 5 / (0.02 + 8 / 4000) < asked < 5 / 0.02
    assert asked + rest == pytest.approx(1000, rel=1e-3)
    assert runs.mean["flows"]["long"]["jain"] > 0.999
    fluid = fc.equilibrium(net)
    assert fluid.flows["short"].rate == pytest.approx(250)
    warned = [text for text in validity_warnings(fluid) if "share of the fair link" in text]
    assert len(warned) == 1 and warned[0].startswith("links.b-short: uses 0.5 of its share")


def test_services_are_those_of_the_definition():
    """At a link of one group's data and another's acknowledgements, a queue for each flow."""
    net = fair()
    back = [k for k, name in enumerate(net.by_group.link_names) if name.startswith("back")]

    def ports(run):
        return [port for k in back for port in run.queues(k)]

    arrivals, services = watched(net, 20.0, ports)
    assert len({c for _, c, _ in services}) == len(net.links) + 5
    assert len({size for _, _, size in services}) > 1
    link = net.links[1]
    expected = by_definition(arrivals, (1.0,) * 8, float(link.capacity * link.packet_size))
    assert [s[1:] for s in services] == [s[1:] for s in expected[: len(services)]]
    starts = np.array([[t for t, _, _ in s[: len(services)]] for s in (services, expected)])
    np.testing.assert_allclose(starts[0], starts[1], rtol=1e-12, atol=1e-9)


def test_services_of_greedy_flows_differ_by_no_more_than_golestani_says():
    """Services over any span differ by at most a largest packet of each of two queues."""
    greedy = {"flows__short__window__max_window": 60, "links__b__queue__law": "droptail"}
    net = one_group(flows__short__n=5, **greedy)
    _, services = watched(net, 6.0, lambda run: run.queues(0))
    services = [s for s in services if s[0] > 3.0]  # by then all are backlogged
    got = np.array([[size * (c == k) for k in range(5)] for _, c, size in services])
    lead = np.cumsum(got, axis=0)
    assert len(services) == pytest.approx(3 * 4000, rel=0.01)
    for a in range(5):
        for b in range(a):
            assert np.ptp(lead[:, a] - lead[:, b]) <= 2 * 1000.0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("fair        = true", 'fair = "yes"', "links.b.fair"),
        ("buffer", "cross = 10\nbuffer", "links.b.cross: expected none, as a fair link"),
        ("buffer", "voice = { calls = 3 }\nbuffer", "links.b.voice: expected none, as a fair"),
        (
            "[flows.short]",
            '[links.c]\nbeside = "b"\nqueue = "droptail"\n[flows.short]\nroute = ["b"]',
            "links.c.beside: expected a link without fair",
        ),
        ("queue       = {", 'queue = "fq_codel"\n#', "fair = true"),
        ("queue       = {", "fair_queueing = true\nqueue = {", "fair = true"),
    ],
)
def test_what_a_fair_link_does_not_have_is_refused(old, new, said):
    assert old in TWO
    with pytest.raises(fc.ScenarioError, match=re.escape(said)):
        fc.loads(TWO.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('n      = 4\nrtt    = "20 ms"', "n = [2, 2]\nrtt = [0.02, 0.04]", "or a group for each"),
        ("n      = 4", 'traffic = "web"\nn = 4', 'flows.short.traffic: expected "bulk", got web'),
    ],
)
def test_the_fluid_model_has_flows_that_are_alike(old, new, said):
    net = fc.loads(TWO.replace(old, new, 1))
    with pytest.raises(ValueError, match=re.escape(said)):
        fc.equilibrium(net)
    assert fc.simulate_packets(net, until=2.0).status == "finished"


def test_trains_refuse_fair_links_by_name():
    with pytest.raises(ValueError, match=re.escape("links.b.fair: each link has one queue")):
        fc.simulate_trains(fc.loads(TWO), until=1.0)


def test_equilibria_of_groups_are_those_of_links_of_their_share():
    """One flow over a link of C/N, and its derivatives by both."""
    net = fc.replace(fc.loads(TWO), {"links.b.queue.law": "pi2"})
    found = fc.equilibrium(net)
    for name, rtt in (("short", 0.02), ("long", 0.2)):
        own = {"flows.short.n": 1, "flows.short.rtt": rtt, "links.b.capacity": 500}
        alone = fc.equilibrium(fc.replace(one_group(), own | {"links.b.queue.law": "pi2"}))
        assert found.links[f"b-{name}"].queue == alone.links["b"].queue
        assert found.flows[name].window == alone.flows["short"].window
    slopes = fc.gradient(net, "links.b-long.queue", ["flows.short.n", "links.b.capacity"])
    # 15 ms of C/N
    assert slopes.derivatives["flows.short.n"] == pytest.approx(-0.015 * 4000 / 64)
    assert slopes.derivatives["links.b.capacity"] == pytest.approx(0.015 / 8)


def test_the_text_of_a_network_has_its_fair_links():
    net = fc.loads(TWO)
    assert fc.dumps(fc.loads(fc.dumps(net))) == fc.dumps(net)
    assert net.by_group.link_names == ("b-short", "b-long")
    assert fc.replace(net, {"links.b.fair": False}).by_group.link_names == ("b",)


def test_runs_over_fair_links_begin_at_equilibria_and_go_on_from_states(tmp_path):
    net = fc.replace(fc.loads(TWO), {"links.b.queue.law": "pi2"})
    begun = fc.simulate_packets(net, until=2.0, initial=fc.equilibrium)
    windows = [begun.mean["flows"][name]["window_mean"] for name in ("short", "long")]
    rest = [float(fc.equilibrium(net).flows[name].window[0]) for name in ("short", "long")]
    assert windows == pytest.approx(rest, rel=0.25)
    kept = tmp_path / "a.state"
    fc.simulate_packets(net, until=3.0, save_state=kept)
    whole = fc.simulate_packets(net, until=5.0, warmup=3.0, elide=False)
    assert fc.simulate_packets(net, until=5.0, initial=kept).mean == whole.mean


def test_a_law_that_measures_rates_knows_the_share_of_its_queue():
    """AVQ keeps each flow at 0.98 of C/N, and the queue short."""
    net = one_group(links__b__queue__law="avq", flows__short__n=8)
    mean, _ = link_of(fc.simulate_packets(net, **RUN))
    assert mean["utilization"] == pytest.approx(0.98, abs=0.003)
    assert mean["queue_mean"] < 2
