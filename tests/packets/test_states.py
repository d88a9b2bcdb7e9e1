"""Saved states: a run that goes on from one is, bit by bit, the rest of a run without a break."""

import json
import math

import pytest
from full_disk import small_files
from packet_cases import CASES, dumbbell, flows

from fluidcc import Network, equilibrium, load, replace, simulate_packets
from fluidcc.laws import Droptail, Loss, NewReno
from fluidcc.packets.plan import PacketError

BREAK, END = 5.0, 9.0
# marks and drops, one link and chains, SACK, load factors, transfers, cross traffic, calls, delayed
# ACKs, routers that rewrite ACKs, schedules, quenches
NAMES = ["ecn", "sack", "load_factor", "reverse_chain", "web", "sessions", "background_chain",
         "voice", "delayed_files", "changing", "pause", "avq", "blue"]  # fmt: skip
BUNDLED = ["akujobi2002/web_becn", "qazi2010/three_flows", "misra2003/fifo_mixed",
           "durresi2001/two_front_59ms", "govindaswamy2012/red_rwm"]  # fmt: skip
SLOW = "hollot2001/slow"


def _network(name: str) -> Network:
    return CASES[name] if name in CASES else load(name)


def _same(runs, others):
    return json.dumps(runs.to_dict()) == json.dumps(others.to_dict())  # NaN too


def _body(file):
    """A file of states without its digest."""
    return file.read_bytes().partition(b"\n")[2]


@pytest.mark.parametrize("name", NAMES + BUNDLED)
def test_a_run_goes_on_as_if_it_had_never_stopped(name, tmp_path):
    net, given = _network(name), {"seeds": (3, 8), "sample": 0.5}
    files = {key: tmp_path / key for key in ("w.csv", "r.csv", "a.state", "w.state", "r.state")}
    whole = simulate_packets(
        net, until=END, warmup=BREAK, trace=files["w.csv"], save_state=files["w.state"], **given
    )
    assert _same(whole, simulate_packets(net, until=END, warmup=BREAK, **given))
    simulate_packets(net, until=BREAK, warmup=1.0, save_state=files["a.state"], **given)
    rest = simulate_packets(
        net, until=END, trace=files["r.csv"], initial=files["a.state"],
        save_state=files["r.state"], **given,
    )  # fmt: skip
    assert rest.warmup == BREAK and _same(whole, rest)
    late = whole.series.sel(time=slice(BREAK, None)).isel(time=slice(1, None))
    assert (
        rest.series.isel(time=slice(1, None))
        .drop_vars(["link_jain_by_scale", "scale"])
        .identical(late.drop_vars(["link_jain_by_scale", "scale"]))
    )
    assert whole.transfers is None or whole.transfers.identical(rest.transfers)
    heading, *lines = files["w.csv"].read_text().splitlines()
    lines = [line for line in lines if float(line.split(",")[0]) > BREAK]
    assert files["r.csv"].read_text().splitlines() == [heading, *lines]
    assert _body(files["w.state"]) == _body(files["r.state"])


def test_runs_from_the_equilibrium_can_be_saved(tmp_path):
    net, file = load(SLOW), tmp_path / "a.state"
    whole = simulate_packets(net, until=END, warmup=BREAK, initial=equilibrium)
    simulate_packets(net, until=BREAK, initial=equilibrium, save_state=file)
    assert _same(simulate_packets(net, until=END, initial=file), whole)


def test_a_state_with_more_room_than_was_estimated_goes_on(tmp_path):
    """A window fills a buffer without limit, and the run is begun again with eight times the
    packets of the estimate.
    """
    window, given = NewReno(max_window=4000.0), (("initial_ssthresh", 4000.0),)
    group = flows(1, window=window, feedback=Loss(), sender=given)
    net, file = dumbbell(group, Droptail(), buffer=math.inf), tmp_path / "a.state"
    whole = simulate_packets(net, until=12.0, warmup=8.0)
    assert whole.mean["links"]["bottleneck"]["queue_mean"] > 3000
    simulate_packets(net, until=8.0, save_state=file)
    assert _same(simulate_packets(net, until=12.0, initial=file), whole)
    simulate_packets(net, until=0.5, save_state=file)
    with pytest.raises(PacketError, match="seed 1: the saved state has no more room: run from"):
        simulate_packets(net, until=12.0, initial=file)


def test_runs_have_the_seeds_of_the_states_they_go_on_from(tmp_path):
    net, file = load(SLOW), tmp_path / "a.state"
    simulate_packets(net, until=1.0, seeds=(8, 3), save_state=file)
    assert simulate_packets(net, until=2.0, initial=file).seeds == (8, 3)
    assert simulate_packets(net, until=2.0, seeds=(3,), initial=file).seeds == (3,)
    assert simulate_packets(net, until=1.0).seeds == (1,)
    with pytest.raises(PacketError, match=r"seeds: expected some of 8, 3, which .* has, got"):
        simulate_packets(net, until=2.0, seeds=(1,), initial=file)


def test_parameters_of_rules_may_change_from_a_state_on(tmp_path):
    net, file = load(SLOW), tmp_path / "a.state"
    simulate_packets(net, until=40.0, initial=equilibrium, save_state=file)
    seen = []
    for p_max in (0.05, 0.1, 0.5):
        runs = simulate_packets(
            replace(net, {"link.queue.p_max": p_max}), until=80.0, warmup=20.0, initial=file
        )
        assert (runs.until, runs.warmup) == (80.0, 60.0)
        seen.append(runs.mean["links"]["bottleneck"]["queue_mean"])
    assert seen == sorted(seen, reverse=True) and seen[0] > 2 * seen[-1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"flow.n": 50}, "flows.tcp.n is 50, there 60; only parameters"),
        ({"link.capacity": 4000.0}, "links.bottleneck.capacity is 4000, there 3750"),
        ({"flow.window.max_window": 99.0, "flow.rtt": 0.5}, "flows.tcp.rtt is .*; flows.tcp.win"),
        ({"link.queue.law": "droptail"}, "links.bottleneck.queue.law is droptail, there red"),
        ({"flow.window.law": "newreno"}, "flows.tcp.window.law is newreno, there reno"),
    ],
)  # fmt: skip
def test_states_of_another_network_are_refused(changes, says, tmp_path):
    net, file = load(SLOW), tmp_path / "a.state"
    simulate_packets(net, until=1.0, save_state=file)
    with pytest.raises(PacketError, match=f"initial: '.*' is of another network: .*{says}"):
        simulate_packets(replace(net, changes), until=2.0, initial=file)


def test_files_and_options_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    net, file = load(SLOW), tmp_path / "a.state"

    def refused(says, **options):
        with pytest.raises(PacketError, match=says):
            simulate_packets(net, **{"until": 2.0, "initial": file} | options)

    refused("initial: cannot read '.*a.state'")
    file.write_text("[links]\n")
    refused("initial: expected a file of save_state, got '.*', which is none")
    refused("save_state: expected a file that ends in .state", initial=None, save_state="x.npz")
    refused("save_state: cannot write", initial=None, save_state=tmp_path / "no" / "x.state")
    with pytest.raises(PacketError, match="save_state: cannot write"), small_files(1000):
        simulate_packets(net, until=1.0, save_state=file)
    assert file.read_text() == "[links]\n"
    simulate_packets(net, until=1.0, seeds=(1, 4), save_state=file)
    refused(r"seeds: expected some of 1, 4, which '.*a.state' has, got \[2\]", seeds=(1, 2))
    refused(r"goes on at 1 s, .*: expected until beyond 1 s \+ warmup = 1 s, got 0.5", until=0.5)
    refused(r"expected until beyond 1 s \+ warmup = 2.5 s, got 2.0", warmup=1.5)
    refused(r"sample: expected a time in \(0, 1\]", sample=1.5)
    monkeypatch.setattr("fluidcc.packets.saved.fingerprint", lambda *apart: "another")
    refused("initial: '.*a.state' is of another version of fluidcc")
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:900] + b"?" + whole[901:]):
        file.write_bytes(damaged)
        refused("initial: expected the states as saved, got '.*', which is damaged")
