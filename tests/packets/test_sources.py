"""Sources of files: what they draw, how long transfers take, and that nothing is counted twice."""

import dataclasses

import numpy as np
import pytest
from packet_cases import CASES, dumbbell, finished, flows, two_ways
from scipy import integrate, stats

from fluidcc import simulate_packets
from fluidcc.laws import Droptail, File, Files, Loss, Reno, Sessions, Web
from fluidcc.laws.traffic import quantile
from fluidcc.packets.engine import records as r
from fluidcc.packets.plan import PacketError, plan
from fluidcc.quantities import PERCENTILES
from fluidcc.scenario.network import Start

RTT = 0.1


def fast(traffic):
    """A link so fast that a window of packets takes one round trip."""
    given = {"access_capacity": float("inf"), "rtt": np.array([RTT]), "start": Start()}
    return dumbbell(
        flows(1, traffic=traffic, feedback=Loss(), **given), Droptail(),
        capacity=1e7, delay=0.01, buffer=float("inf"),
    )  # fmt: skip


def both_ways(traffic):
    """The same with a link back, which requests take."""
    net = fast(traffic)
    group = dataclasses.replace(net.flows[0], reverse_route=(1,))
    names = ("bottleneck", "back")
    return dataclasses.replace(net, links=net.links * 2, link_names=names, flows=(group,))


@pytest.mark.parametrize("name", ["exponential", "constant", "cut_pareto"])
def test_distributions_have_mean_one(name):
    def number(u):
        return quantile(name, u, 1.5, 1000.0)

    parts = ((0.0, 0.9), (0.9, 0.999), (0.999, 1.0))  # the cut is at 0.999
    whole = sum(integrate.quad(number, low, high, epsrel=1e-10)[0] for low, high in parts)
    assert whole == pytest.approx(1.0, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("exponential", stats.expon()),
        ("pareto", stats.pareto(1.4, scale=0.4 / 1.4)),
        ("pareto2", stats.lomax(1.4, scale=0.4)),
    ],
)
def test_distributions_are_those_of_their_names(name, known):
    assert known.mean() == pytest.approx(1.0)
    for u in (0.0, 0.3, 0.9, 0.999):
        assert quantile(name, u, 1.4, 1.0) == pytest.approx(known.ppf(u), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("size", "rounds"), [(1, 1), (2, 1), (3, 2), (6, 2), (14, 3), (30, 4)])
def test_a_transfer_takes_a_round_trip_for_the_request_and_one_for_each_window(size, rounds):
    group = simulate_packets(fast(File(file=float(size))), until=5.0).runs[0]["flows"]["flows"]
    assert group["transfers"] == 1
    assert group["fct_mean"] == pytest.approx((1 + rounds) * RTT, rel=1e-4)
    assert group["fct_p50"] == pytest.approx((1 + rounds) * RTT, rel=2.0**-r.DELAY_BITS)
    assert group["goodput"] * 5.0 == size * 8000
    assert group["active"] * 5.0 == pytest.approx((1 + rounds) * RTT, rel=1e-4)


def test_runs_without_a_transfer_that_counts_say_so():
    """The file is sent within a second; the warm-up is two."""
    net = fast(File(file=20.0))
    late = simulate_packets(net, until=5.0, warmup=2.0)
    remedy = "no transfer of flows ended from 2 to 5 s: take a shorter warmup or a longer run"
    assert late.message == f"1 run of 5 s; {remedy}" and late.to_dict()["message"] == late.message
    assert repr(late).startswith(late.message) and len(late.plot().axes) == 2  # without delays
    assert simulate_packets(net, until=5.0).message == "1 run of 5 s"


def test_an_object_takes_a_request_and_its_data():
    constant = {f"{name}s": "constant" for name in ("page_gap", "object_count", "object_gap")}
    traffic = Sessions(
        arrivals=0.5, most=3.0, page_count=2.0, page_gap=1.0, object_count=4.0, object_gap=0.05,
        file=6.0, sizes="constant", **constant,
    )  # fmt: skip
    net = both_ways(traffic)
    run = simulate_packets(net, until=60.0).runs[0]["flows"]["flows"]
    assert run["transfers"] == 3 * 2 * 4
    # SYN and request, SYN and two windows
    assert run["fct_mean"] == pytest.approx(5 * RTT, rel=1e-4)
    assert run["goodput"] * 60.0 == 24 * 6 * 8000
    simulation = finished(net, 60.0)
    asked = [k for k, flow in enumerate(simulation.plan.flows) if flow.data_flow >= 0]
    assert simulation.flows["received"][asked].sum() == 24 * 2


def test_idle_times_follow_transfers():
    web = Web(file=2.0, idle=0.3, sizes="constant", idles="constant")
    run = simulate_packets(fast(web), until=50.0, warmup=10.0).runs[0]["flows"]["flows"]
    assert run["transfers"] == pytest.approx(40.0 / (2 * RTT + 0.3), abs=1)
    assert run["active"] == pytest.approx(2 * RTT / (2 * RTT + 0.3), rel=0.01)
    assert run["goodput"] == pytest.approx(run["offered"], rel=0.02)


def test_files_come_at_their_rate_and_size():
    net = fast(Files(arrivals=20.0, file=10.0))
    runs = simulate_packets(net, until=300.0, seeds=range(8))
    mean, half = (p["flows"]["flows"]["offered"] for p in (runs.mean, runs.ci95))
    whole = 1 / -np.expm1(-1 / 10.0)  # exponential sizes rounded up to whole packets
    exact = 20.0 * whole * 8000
    assert abs(mean - exact) < 3 * half
    # Little's law
    group = runs.runs[0]["flows"]["flows"]
    assert group["active"] == pytest.approx(
        group["transfers"] / 300.0 * group["fct_mean"], rel=0.01
    )


@pytest.mark.parametrize("name", ["files", "sessions"])
def test_open_sources_offer_the_same_whatever_the_senders_do(name):
    net = CASES[name]
    slow = tuple(dataclasses.replace(f, window=Reno(max_window=20.0)) for f in net.flows)
    runs = [
        simulate_packets(dataclasses.replace(net, flows=f), until=40.0, seeds=(3,)).runs[0]
        for f in (net.flows, slow)
    ]
    assert runs[0]["links"] != runs[1]["links"]
    assert runs[0]["flows"]["other"]["offered"] == runs[1]["flows"]["other"]["offered"]
    if name == "files":  # pages of sessions wait for each other
        assert runs[0]["flows"]["source"]["offered"] == runs[1]["flows"]["source"]["offered"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"page_gap": 1e6, "most": 1e6}, "sessions at a time \\(most limits them\\): expected"),
        ({"arrivals": 1e307}, "transfers per second: expected at most"),
        ({"arrivals": 1e6}, "transfers at a time: expected at most 50000, got 6"),
        ({"ask": 1e12}, "ask in packets: expected at most 1000000000, got 1e"),
    ],
)
def test_sources_that_no_run_can_hold_are_refused(changes, says):
    with pytest.raises(PacketError, match=rf"flows.source.traffic.*{says}"):
        plan(two_ways(Sessions(**changes)))


# -- The list of transfers
def test_the_list_of_transfers_has_what_the_metrics_count():
    runs = simulate_packets(CASES["sessions"], until=60.0, warmup=10.0, seeds=(3, 4))
    found = runs.transfers
    assert found.attrs["transfer_step"] == 1
    for seed, run in zip(runs.seeds, runs.runs, strict=True):
        for name in np.unique(found.transfer_group):
            own = (found.transfer_seed == seed) & (found.transfer_group == name)
            times, group = found.transfer_time.values[own], run["flows"][name]
            assert len(times) == group["transfers"] > 50
            assert times.mean() == pytest.approx(group["fct_mean"], rel=1e-9)
            for key, share in PERCENTILES.items():
                exact = np.quantile(times, share, method="inverted_cdf")
                assert group[f"fct_{key}"] == pytest.approx(exact, rel=2.0**-r.DELAY_BITS)
            ends = found.transfer_start.values[own] + times
            assert np.all(np.diff(ends) > -1e-9) and 10.0 <= ends[0] and ends[-1] <= 60.0
    whole = runs.to_xarray()
    assert whole.transfer_time.identical(found.transfer_time) and "group_fct_p99" in whole


def test_a_list_that_is_full_has_every_second_transfer():
    net = fast(Files(arrivals=3000.0, file=1.0, sizes="constant"))
    runs = simulate_packets(net, until=60.0)
    found, group = runs.transfers, runs.runs[0]["flows"]["flows"]
    assert found.attrs["transfer_step"] == 2
    assert found.sizes["transfer"] == (int(group["transfers"]) + 1) // 2 > 80_000
    assert set(found.transfer_size.values) == {1}
    assert found.transfer_time.mean() == pytest.approx(group["fct_mean"], rel=1e-3)
    # one in 30 ms or less: none is left out at the begin, nor at the end
    steps = np.diff(found.transfer_start.values)
    assert steps.max() < 0.03 and found.transfer_start.values[[0, -1]] == pytest.approx(
        [0.0, 60.0], abs=0.3
    )
