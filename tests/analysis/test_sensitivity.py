"""Derivatives of trajectories against differences of the located solution, events in the way."""

import dataclasses

import analysis_cases as cases
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import PI
from fluidcc.scenario.network import Start

END, STEP = 4.0, 0.2 / 32
POINTS = np.linspace(0.0, END, 33)[1:]
SHOWN = (("links", "queue"), ("links", "average"), ("flows", "window"), ("flows", "rate"))
PATHS = (
    "flow.n", "flow.rtt", "link.capacity", "link.queue.w_q", "link.queue.min_th",
    "link.queue.p_max", "flow.initial.window", "link.initial.queue",
)  # fmt: skip


def start(net, window, queue):
    return fc.replace(net, {"flow.initial.window": window, "link.initial.queue": queue})


RUNS = {
    # windows grow from one packet, the queue is empty at first and then passes both thresholds
    "slow start": start(
        fc.replace(
            cases.hollot(w_q=2e-3, p_max=0.2, buffer=300.0),
            {"link.queue.min_th": 20.0, "link.queue.max_th": 60.0},
        ),
        7.0, 0.0,
    ),
    # the average crosses max_th, where all packets are marked
    "cycle": start(
        fc.replace(cases.hollot(w_q=2e-4, buffer=800.0), {"link.queue.max_th": 200.0}), 14.0, 190.0
    ),
}  # fmt: skip


def sampled():
    """A controller that moves its marking every few milliseconds."""
    net = cases.hollot(buffer=800.0)
    link = dataclasses.replace(net.links[0], queue=PI(q_ref=200.0))
    return start(dataclasses.replace(net, links=(link,)), 14.0, 190.0)


def simulated(net, points=POINTS, step=STEP):
    return fc.simulate(net, until=points[-1], points=points, mesh=fc.Located(step))


def shown(links, flows):
    kinds = {"links": links, "flows": flows}
    return np.stack([
        np.ravel(getattr(each, key)) for kind, key in SHOWN for each in kinds[kind].values()
    ])  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.slow
def test_derivatives_across_events(name):
    """Parameters, delays, initial state: 1e-6 of the largest change over the run. Half a minute."""
    check(RUNS[name], PATHS, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_derivatives_with_first_in_first_out_delays(name):
    """Packets queue behind those that came before: in the cycle none are let in for a tenth of a
    second, an interval of entry times that all leave at once. Two minutes each.
    """
    check(dataclasses.replace(RUNS[name], delay="fifo"), PATHS, 5)


@pytest.mark.slow
@pytest.mark.parametrize("feedback", ["tail", "front"])
def test_derivatives_of_self_clocked_flows(feedback):
    """A jump of the rate comes back with every round trip. Two minutes each."""
    paths = ("flow.rtt", "link.capacity", "link.queue.at")
    points = np.linspace(0.0123, 2.5902, 60)  # beside the jumps
    check(fc.load(f"durresi2001/slow_start_{feedback}"), paths, 50, points, 0.248 / 32)


@pytest.mark.slow
def test_derivatives_across_ticks():
    """The time between samples moves all that is held from sample to sample. One minute."""
    paths = ("flow.rtt", "link.queue.k_pi", "link.queue.interval", "link.initial.queue")
    check(sampled(), paths, 600)


def check(net, paths, breaks, points=POINTS, step=STEP):
    """Compare with differences, over a run with more breaking points than `breaks`."""
    found = fc.sensitivity(net, paths, until=points[-1], points=points, mesh=fc.Located(step))
    assert len(found.run.breaking_points) > breaks
    alone = simulated(net, points, step)
    np.testing.assert_allclose(
        shown(found.run.links, found.run.flows), shown(alone.links, alone.flows),
        rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    for path in paths:
        at = fc.number_at(net, path)
        move = 1e-6 * (at or 1.0)
        up = simulated(cases.moved(net, path, at + move), points, step)
        below = max(at - move, 0.0)  # an empty queue has one side
        down = simulated(cases.moved(net, path, below), points, step)
        wide = move + min(move, at)
        wanted = (shown(up.links, up.flows) - shown(down.links, down.flows)) / wide
        got = shown(*found.slopes[path])
        size = np.max(np.abs(shown(up.links, up.flows)), axis=1, keepdims=True) / (at or 1.0)
        scale = np.max(np.abs(wanted), axis=1, keepdims=True) + 1e-2 * size
        assert np.max(np.abs(got - wanted) / scale) < 1e-6, path


# -- What is quick shares one program, that of the kept answer of this verb
REPORTS, STEPS = 1001, 2000


def slow(changes, begin=0.0):
    """The bundled scenario with other numbers, all flows beginning at one time."""
    net = fc.replace(fc.load("hollot2001/slow"), changes)
    flows = dataclasses.replace(net.flows[0], start=Start(begin, begin))
    return dataclasses.replace(net, flows=(flows,))


def sensitivity(net, paths, *, until=END, points=POINTS, step=STEP):
    """The last point comes again until there are as many as the program reports."""
    times = np.pad(points, (0, REPORTS - len(points)), mode="edge")
    mesh = fc.Located(step, max_steps=STEPS)
    return fc.sensitivity(net, paths, until=until, points=times, mesh=mesh)


def test_shown_and_refused():
    net = slow({
        "link.queue.w_q": 2e-4, "link.queue.max_th": 200.0, "flow.initial.window": 14.0,
        "link.initial.queue": 190.0, "link.initial.average": 190.0,
    })  # fmt: skip
    found = sensitivity(net, ["flow.n"])
    data = found.to_xarray()
    slopes = data["slope of links.bottleneck.queue"]
    assert slopes.sel(parameter="flow.n").dims == ("time",) and "unit" in slopes.attrs["units"]
    assert "by flow.n" in repr(found) and found.to_dict()["slopes"]["flow.n"]["links"]
    check_fall(net, found.run.breaking_points)
    check_a_buffer_that_fills_at_the_end_of_a_step()
    with pytest.raises(ValueError, match="Located with a step"):
        fc.sensitivity(net, ["flow.n"], until=END, mesh=fc.Located(rtol=1e-6))
    with pytest.raises(ValueError, match="within 0 and"):
        fc.sensitivity(net, ["flow.n"], until=END, after=END)
    with pytest.raises(fc.ScenarioError, match=r"links\.bottleneck\.queue"):
        found.mean("links.bottleneck.queu")


def check_a_buffer_that_fills_at_the_end_of_a_step():
    """By cross traffic alone: from t = B/(Y - C) on the share 1 - C/Y is lost."""
    changes = {
        "link.capacity": 1024.0, "link.cross": 1536.0, "link.buffer": 64.0,
        "link.queue.min_th": 20.0, "link.queue.max_th": 60.0, "link.queue.w_q": 1e-9,
        "link.initial.queue": 0.0, "link.initial.average": 0.0,
    }  # fmt: skip
    end, full = 0.25, 64.0 / 512.0
    found = sensitivity(
        slow(changes, begin=9.0), ["link.buffer", "link.cross"],
        until=end, points=end * POINTS / END, step=1 / 128,
    )  # fmt: skip
    assert found.run.breaking_points[0] == pytest.approx(full, rel=1e-14)
    lost = found.mean("link.drop_fraction")
    assert lost.value == pytest.approx((1 - full / end) / 3, rel=1e-12)
    assert lost.derivatives["link.buffer"] == pytest.approx(-1 / (3 * 512 * end), rel=1e-9)
    by_share, by_moment = 1024 / 1536**2 * (1 - full / end), 64 / (3 * 512**2 * end)
    assert lost.derivatives["link.cross"] == pytest.approx(by_share + by_moment, rel=1e-9)


def check_fall(net, breaks):
    """From the moment at which the average reaches max_th nothing is let in: the queue falls as
    the link serves, at once.
    """

    def bottleneck(points):
        return sensitivity(net, ["flow.n"], points=points).run.links["bottleneck"]

    early = breaks[: len(POINTS)]
    averages = bottleneck(early).average[: len(early)]
    reached = early[np.flatnonzero(np.abs(averages - 200.0) < 1e-9)[0]]
    points = np.linspace(reached, reached + 0.05, len(POINTS))
    queue = bottleneck(points).queue[: len(points)]
    expected = queue[0] - cases.CAPACITY * (points - reached)
    np.testing.assert_allclose(queue, expected, atol=1e-6)
