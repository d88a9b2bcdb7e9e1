"""Equilibria against closed forms, worked examples and an independent solver."""

import dataclasses
import json
import math

import numpy as np
import pytest
import scipy.optimize
from analysis_cases import CAPACITY, PROPAGATION, ecn_mod, hollot, two_links

from fluidcc import Flows, Link, Network, equilibrium, laws, load, simulate


def test_worked_example():
    """Theory, section 5; the digits are those of another solver."""
    eq = equilibrium(hollot())
    link, flows = eq.links["bottleneck"], eq.flows["flows"]
    assert eq.status == "regular" and eq.message == ""
    assert link.queue == pytest.approx(194.400024202818, rel=1e-11)
    assert link.average == pytest.approx(link.queue, rel=1e-12)
    assert link.mark_probability == pytest.approx(8.072731673240e-03, rel=1e-11)
    assert flows.window[0] == pytest.approx(15.740000403380, rel=1e-11)
    assert flows.rtt[0] == pytest.approx(0.251840006454, rel=1e-11)
    assert flows.rate[0] == pytest.approx(CAPACITY / 60, rel=1e-11)
    assert link.utilization == 1.0


@pytest.mark.parametrize(("n", "p_max"), [(5.0, 0.1), (60.0, 0.03), (200.0, 0.1)])
def test_cubic_of_the_queue(n, p_max):
    """(q - min_th)(CT + q)^2 = 2 N^2 (max_th - min_th)/p_max under mgt."""
    queue = equilibrium(hollot(n=n, p_max=p_max)).links["bottleneck"].queue
    left = (queue - 150) * (CAPACITY * PROPAGATION + queue) ** 2
    assert left == pytest.approx(2 * n**2 * 550 / p_max, rel=1e-10)


def marked(*, reaction=None, n=40.0, at=30.0, width=60.0, buffer=400.0, queue=None, feedback=None,
           max_window=math.inf, loss=None):  # fmt: skip
    law = laws.Threshold(at=at, width=width) if queue is None else queue
    parts = {"feedback": feedback, "loss": loss}
    parts = {name: part for name, part in parts.items() if part is not None}
    flows = Flows(
        laws.Reno(max_window=max_window), n=np.array([n]), rtt=np.array([0.1]),
        reaction=laws.PerMark() if reaction is None else reaction, **parts,
    )  # fmt: skip
    return Network((Link(law, capacity=1250.0, buffer=buffer),), (flows,))


@pytest.mark.parametrize(
    ("reaction", "window"),
    [
        (laws.PerMark(), lambda p: math.sqrt(2 * (1 - p) / p)),
        (laws.Refractory(), lambda p: 1 + math.sqrt(1 + 2 / p)),
        (
            laws.OncePerRTT(),
            lambda p: scipy.optimize.brentq(lambda w: w * (1 - (1 - p) ** w) - 2, 1, 1e4),
        ),
    ],
)
def test_windows_of_the_reactions(reaction, window):
    """Closed forms of theory, section 2, and the queue that the ramp's inverse gives."""
    eq = equilibrium(marked(reaction=reaction))
    link, flows = eq.links["bottleneck"], eq.flows["flows"]
    assert eq.status == "regular"
    assert link.mark_probability == pytest.approx((link.queue - 30) / 60, rel=1e-11)
    assert flows.window[0] == pytest.approx(window(link.mark_probability), rel=1e-10)
    assert 40 * flows.window[0] / (0.1 + link.queue / 1250) == pytest.approx(1250, rel=1e-10)


def test_ecn_mod_window_by_its_two_markings():
    """Equation 4 under plain marking, TCP's window under eq. 7."""
    for marking, window in (
        (laws.Plain(), lambda p: 0.5 * (1 - p) / p),
        (None, lambda p: math.sqrt(2 * (1 - p) / p)),
    ):
        eq = equilibrium(ecn_mod(n=(20.0,), marking=marking))
        p = eq.links["bottleneck"].mark_probability
        assert eq.flows["flows"].window[0] == pytest.approx(window(p), rel=1e-10)


def test_three_round_trips_by_another_solver():
    n, rtt = (10.0, 20.0, 5.0), (0.03, 0.1, 0.25)
    eq = equilibrium(ecn_mod(n=n, rtt=rtt))
    pairs = list(zip(n, rtt, strict=True))

    def excess(q):
        p = np.interp(q, (25.0, 75.0, 150.0), (0.0, 0.2, 1.0))
        return sum(a * math.sqrt(2 * (1 - p) / p) / (t + q / 1250) for a, t in pairs) - 1250

    queue = scipy.optimize.brentq(excess, 25.1, 149, xtol=1e-13)
    assert eq.links["bottleneck"].queue == pytest.approx(queue, rel=1e-11)
    rates = eq.flows["flows"].rate
    np.testing.assert_allclose(rates * eq.flows["flows"].rtt, eq.flows["flows"].window, rtol=1e-12)
    np.testing.assert_allclose(np.dot(n, rates), 1250, rtol=1e-11)


def test_saturated_names_the_marking_needed():
    """600 flows need W = 2.4167 at q = 700: p = 2/W^2 (mgt) is above p_max = 0.1."""
    eq = equilibrium(hollot(n=600.0))
    window = 3750 / 600 * (0.2 + 700 / 3750)
    assert eq.status == "discontinuity"
    assert eq.links["bottleneck"].queue == pytest.approx(700, rel=1e-12)
    assert eq.links["bottleneck"].mark_probability == pytest.approx(2 / window**2, rel=1e-10)
    assert eq.flows["flows"].window[0] == pytest.approx(window, rel=1e-10)
    assert "exceeds the 0.342 that balances the senders" in eq.message and "0.1" in eq.message


def test_none_has_no_numbers():
    eq = equilibrium(hollot(n=3000.0))
    assert eq.status == "none" and "no equilibrium" in eq.message
    assert math.isnan(eq.links["bottleneck"].queue)
    assert "a window of" not in eq.message  # the end of the search is no window
    assert "nan to nan" not in repr(eq)
    text = json.dumps(eq.to_dict(), allow_nan=False)
    assert json.loads(text)["links"]["bottleneck"]["queue"] is None


def test_refractory_cannot_go_below_its_smallest_window():
    """W(1) = 1 + sqrt 3: no equilibrium if C R(B)/N is below it. Theory, 2.2."""
    room = 1250 * (0.1 + 400 / 1250) / (1 + math.sqrt(3))
    assert equilibrium(marked(reaction=laws.Refractory(), n=1.01 * room)).status == "none"
    assert equilibrium(marked(reaction=laws.Refractory(), n=0.99 * room)).status != "none"


def test_step_marking_slides_on_its_step():
    eq = equilibrium(marked(width=0.0, at=50.0))
    window = 1250 / 40 * (0.1 + 50 / 1250)
    assert eq.status == "discontinuity"
    assert eq.links["bottleneck"].queue == pytest.approx(50, rel=1e-12)
    assert eq.links["bottleneck"].mark_probability == pytest.approx(2 / (2 + window**2), rel=1e-10)


def test_below_one_packet_per_window_is_said():
    eq = equilibrium(marked(n=400.0))
    assert eq.status == "regular"
    assert eq.flows["flows"].window[0] < 1
    assert "below the least of real senders" in eq.message


@pytest.mark.parametrize(("cap", "status", "queue"), [(2.0, "empty", 0.0), (3.75, "regular", 25.0)])
def test_capped_windows(cap, status, queue):
    """A cap holds the queue at N W_max - CT where nothing is marked, or leaves the link empty."""
    eq = equilibrium(marked(max_window=cap))
    link = eq.links["bottleneck"]
    assert eq.status == status
    assert link.queue == pytest.approx(queue, abs=1e-9)
    assert link.mark_probability == 0.0
    assert link.utilization == pytest.approx(min(1, 40 * cap / 125), rel=1e-12)
    assert eq.flows["flows"].window[0] == cap


@pytest.mark.parametrize(
    ("queue", "parts", "why"),
    [
        (laws.Droptail(), {}, "0 of its packets marked or lost"),
        (None, {"feedback": laws.ReceiverWindow()}, "1 of its packets marked"),
    ],
    ids=["nothing is said", "receiver_window without losses"],
)
def test_windows_that_nothing_holds_have_no_rest(queue, parts, why):
    """An endless buffer loses nothing, and no modified ACK lowers a window."""
    net = marked(queue=queue, n=2.0, buffer=math.inf, **parts)
    eq = equilibrium(net)
    assert eq.status == "none" and not eq.smooth
    assert "no equilibrium: the window of flows.flows still grows" in eq.message
    assert why in eq.message and "in links.bottleneck; give max_window" in eq.message
    assert math.isnan(eq.links["bottleneck"].queue) and np.isnan(eq.flows["flows"].window).all()
    window = dataclasses.replace(net.flows[0].window, max_window=100.0)
    capped = dataclasses.replace(net, flows=(dataclasses.replace(net.flows[0], window=window),))
    assert equilibrium(capped).status == "regular"


def test_droptail_rests_at_its_full_buffer():
    """Loss l once per round trip: (1-p) clean growth is all, W (1 - (1-l)^W) = 2, N x (1-l) = C."""
    eq = equilibrium(marked(queue=laws.Droptail(), buffer=100.0, n=10.0, reaction=laws.OncePerRTT(),
                            loss=laws.HalveOnly()))  # fmt: skip
    link, flows = eq.links["bottleneck"], eq.flows["flows"]
    assert eq.status == "discontinuity" and "full" in eq.message
    assert link.queue == pytest.approx(100, rel=1e-12)
    loss, window = link.mark_probability, flows.window[0]
    assert window * (1 - (1 - loss) ** window) == pytest.approx(2, rel=1e-9)
    assert 10 * flows.rate[0] * (1 - loss) == pytest.approx(1250, rel=1e-9)


def test_loss_feedback_turns_marks_into_losses():
    red = laws.RED(min_th=25.0, max_th=75.0, p_max=0.1, w_q=0.002)
    parts = {"feedback": laws.Loss(), "loss": laws.HalveOnly(), "reaction": laws.OncePerRTT()}
    eq = equilibrium(marked(queue=red, n=10.0, **parts))
    p, flows = eq.links["bottleneck"].mark_probability, eq.flows["flows"]
    assert eq.status == "regular"
    assert p == pytest.approx(0.1 * (eq.links["bottleneck"].queue - 25) / 50, rel=1e-11)
    assert flows.window[0] * (1 - (1 - p) ** flows.window[0]) == pytest.approx(2, rel=1e-9)
    assert 10 * flows.rate[0] * (1 - p) == pytest.approx(1250, rel=1e-9)


def test_two_links_rest_together():
    """The rates fill both links, and each window answers the marks of its own way."""
    eq = equilibrium(two_links())
    west, east = eq.links["west"], eq.links["east"]
    long, one, two = (eq.flows[name] for name in ("long", "one", "two"))
    assert eq.status == "regular" and "not unique" not in eq.message
    assert 20 * long.rate[0] + 15 * one.rate[0] == pytest.approx(1250, rel=1e-9)
    assert 20 * long.rate[0] + 10 * two.rate[0] == pytest.approx(1000, rel=1e-9)
    assert long.mark_probability[0] == pytest.approx(
        1 - (1 - west.mark_probability) * (1 - east.mark_probability), rel=1e-12
    )
    for group, wait in ((long, west.queue / 1250 + east.queue / 1000), (one, west.queue / 1250)):
        p = group.mark_probability[0]
        assert group.window[0] == pytest.approx(math.sqrt(2 * (1 - p) / p), rel=1e-9)
        assert group.rtt[0] == pytest.approx(0.1 + wait, rel=1e-12)


def test_one_number_of_flows_or_round_trips_stands_for_a_class():
    net = load("hollot2001/slow")
    expected = equilibrium(net).links["bottleneck"].queue
    for n, rtt in ((60, 0.2), (60.0, np.array([0.2])), (np.array([45.0, 15.0]), 0.2)):
        flows = dataclasses.replace(net.flows[0], n=n, rtt=rtt)
        found = equilibrium(dataclasses.replace(net, flows=(flows,)))
        assert found.links["bottleneck"].queue == pytest.approx(expected, rel=1e-9)


def test_more_round_trips_for_a_given_number_of_flows_stay():
    flows = dataclasses.replace(load("hollot2001/slow").flows[0], n=20)
    several = dataclasses.replace(flows, rtt=np.array([0.1, 0.2, 0.3]))
    assert several.n.tolist() == [20.0, 20.0, 20.0]
    with pytest.raises(ValueError, match="as many n as rtt, or one of either, got 2 and 3"):
        dataclasses.replace(several, n=np.array([1.0, 2.0]))


def test_groups_of_the_same_rules_rest_as_the_classes_of_one():
    net = load("misra2003/mixed")
    first, other = net.flows
    parts = [dataclasses.replace(first, n=first.n[k], rtt=first.rtt[k]) for k in ([0], [1, 2])]
    rest = dataclasses.replace(first, n=first.n[3:], rtt=first.rtt[3:], access_delay=0.001)
    many = dataclasses.replace(
        net, flows=(parts[0], other, rest, parts[1]), flow_names=("a", "other", "c", "b")
    )
    whole, split = equilibrium(net), equilibrium(many)
    assert split.status == whole.status == "regular"
    windows = np.concatenate([split.flows[name].window for name in ("a", "b", "c")])
    assert windows == pytest.approx(whole.flows[net.flow_names[0]].window, rel=1e-12)
    assert split.flows["other"].window == pytest.approx(
        whole.flows[net.flow_names[1]].window, rel=1e-12
    )


def test_the_queueing_delay_is_the_round_trip_less_propagation():
    """Over every link of a route, at the part of the rate that voice leaves."""
    chain, voice = two_links(), load("misra2003/persistent_newreno")
    for net in (chain, voice):
        eq = equilibrium(net)
        for name, flows in zip(net.flow_names, net.flows, strict=True):
            own = eq.flows[name]
            path = [eq.links[net.link_names[k]].queueing_delay for k in flows.route]
            assert own.queueing_delay == pytest.approx(sum(path), rel=1e-12)
            assert own.rtt - own.queueing_delay == pytest.approx(flows.rtt, rel=1e-12)
    link = voice.links[0]
    left = link.capacity - link.voice.mean(link.packet_size)
    found = eq.links["bottleneck"]
    assert 0.5 * link.capacity < left < 0.9 * link.capacity
    assert found.queueing_delay == pytest.approx(found.queue / left, rel=1e-12)
    data = eq.to_xarray()
    assert data["queueing_delay"].dims == ("link",) and data["queueing_delay"].units == "s"
    assert data["flow_queueing_delay"].dims == data["flow_mark_probability"].dims == ("flow",)


def test_a_trajectory_ends_with_the_queueing_delay_of_the_equilibrium():
    net = load("hollot2001/slow")
    run = simulate(net, until=60.0)
    eq = equilibrium(net)
    link, group = run.links["bottleneck"], run.flows["tcp"]
    assert link.queueing_delay == pytest.approx(link.queue / 3750.0, rel=1e-12)
    assert link.queueing_delay[-1] == pytest.approx(eq.links["bottleneck"].queueing_delay, rel=1e-3)
    assert group.rtt - group.queueing_delay == pytest.approx(np.full((1001, 1), 0.2), rel=1e-12)
    shown = run.to_xarray()["links.bottleneck.queueing_delay"]
    assert shown.units == "s" and "until it is sent" in shown.long_name


class DroppingPI(laws.PI):
    """PI that drops packets in place of marking them."""

    name = "dropping_pi"

    def signal(self, x, seen):
        """Drop with the probability of a mark."""
        return laws.Signal(drop=super().signal(x, seen).mark)


def test_a_law_that_drops_has_the_equilibrium_of_one_whose_marks_are_losses():
    """Its memory holds the drop probability, as that of PI holds the mark probability."""
    net = load("hollot2001/pi")
    (link,), (flows,) = net.links, net.flows
    numbers = {f.name: getattr(link.queue, f.name) for f in dataclasses.fields(link.queue)}
    drops = dataclasses.replace(link, queue=DroppingPI(**numbers))
    lost = dataclasses.replace(flows, feedback=laws.Loss())
    one, two = (
        equilibrium(dataclasses.replace(net, **changes))
        for changes in ({"links": (drops,)}, {"flows": (lost,)})
    )
    assert one.status == two.status == "regular"
    assert one.links["bottleneck"].queue == pytest.approx(link.queue.q_ref, rel=1e-9)
    assert one.flows["tcp"].window == pytest.approx(two.flows["tcp"].window, rel=1e-12)
    assert one.flows["tcp"].window[0] > equilibrium(net).flows["tcp"].window[0]
