"""Random networks for the packet engine, with ordinary, extreme and senseless values."""

import dataclasses
import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import groups, heard, instances, logarithmic, voices

from fluidcc import Flows, Link, Network, PacketRuns, simulate_packets
from fluidcc.laws.registry import LAWS
from fluidcc.scenario.network import Change, Start
from fluidcc.scenario.sender import PROFILES, SenderOptions

QUEUES = list(LAWS["queue"].values())
WINDOWS = st.one_of(st.sampled_from([1.0, 2.0, 1e9, math.inf]), logarithmic(1.0, 1e4))
BUFFERS = st.one_of(st.sampled_from([0.3, 1.0, 2.0, math.inf]), logarithmic(1.0, 1e3))
DELAYS = st.one_of(st.sampled_from([0.0, 0.01]), logarithmic(1e-6, 2.0))


def _value(field: dataclasses.Field) -> st.SearchStrategy[Any]:
    """Values of a sender option, by its metadata."""
    info = field.metadata["info"]
    if info.within is None:
        return st.sampled_from(info.choices or (True, False))
    low, high = info.within.ends
    ends = [end for end in (low, high) if math.isfinite(end)]
    inside = logarithmic(max(low, 1e-3), min(high, 1e4))
    values = st.one_of(st.sampled_from(ends), inside)
    return values.map(round).map(lambda v: max(v, low)) if field.type is int else values


@st.composite
def senders(draw: st.DrawFn) -> tuple[tuple[str, Any], ...]:
    """Options of a packet sender, most of them as a profile has them."""
    known = {field.name: field for field in dataclasses.fields(SenderOptions)}
    names = draw(st.lists(st.sampled_from(sorted(known)), max_size=5, unique=True))
    chosen = {name: draw(_value(known[name])) for name in names}
    return tuple(({"profile": draw(st.sampled_from(sorted(PROFILES)))} | chosen).items())


@st.composite
def links(draw: st.DrawFn, size: float) -> Link:
    """A link with any queue law, and sometimes with other traffic."""
    queue = draw(st.sampled_from(QUEUES).flatmap(instances))
    capacity = draw(logarithmic(5.0, 2e4))
    cross = draw(st.sampled_from([0.0, 0.0, 0.0, 0.1, 2.0])) * capacity
    return Link(
        queue=queue,
        capacity=capacity,
        packet_size=size,
        delay=draw(DELAYS),
        buffer=draw(BUFFERS),
        cross=cross,
        cross_sizes=draw(st.sampled_from(["constant", "exponential"])),
        voice=draw(st.one_of(st.none(), st.none(), st.none(), voices())),
        random_loss=draw(st.sampled_from([None, None, 0.001, 0.5])),
        schedule=draw(schedules(capacity)),
    )


@st.composite
def schedules(draw: st.DrawFn, capacity: float) -> tuple[Change, ...]:
    """No changes of a link, or a few, soon."""
    times = draw(st.one_of(st.just([]), st.lists(logarithmic(1e-3, 10.0), max_size=4)))
    rates = st.one_of(st.none(), st.sampled_from([0.01, 1.0, 30.0]).map(lambda k: k * capacity))
    delays = st.one_of(st.none(), DELAYS)
    return tuple(Change(time, draw(rates), draw(delays)) for time in sorted(set(times)))


@st.composite
def flows(draw: st.DrawFn, passed: tuple[Link, ...]) -> Flows:
    """A group of flows with any laws over any of the links, there and perhaps back."""
    group, every = draw(groups(None)), list(range(len(passed)))
    window = dataclasses.replace(group.window, max_window=draw(WINDOWS))
    route = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    asks = float(group.traffic.request()) > 0
    back = draw(st.lists(st.sampled_from(every), min_size=int(asks), unique=True))
    if not asks and draw(st.booleans()):
        back = []
    access = draw(st.one_of(st.none(), DELAYS))
    least = 2 * (access or 0.0) + sum(float(passed[k].delay) for k in route + back)
    if draw(st.integers(0, 20)) == 0:
        least = 1e-3  # where it is less than the way there, this is said
    kinds = draw(st.integers(1, 2))
    start = Start(0.0, draw(st.sampled_from([0.0, 0.01, 1.0])))
    later = st.sampled_from([(), (), (start.high + 0.05,), (start.high + 2.0,)])
    return dataclasses.replace(
        group,
        window=window,
        n=np.array(draw(st.lists(st.integers(1, 4), min_size=kinds, max_size=kinds)), float),
        rtt=np.array([least + draw(DELAYS) + 1e-6 for _ in range(kinds)]),
        route=tuple(route),
        reverse_route=tuple(back),
        access_delay=access,
        access_capacity=draw(st.one_of(st.just(math.inf), logarithmic(5.0, 1e5))),
        start=start,
        stop=() if group.traffic.starts else draw(later),
        sender=draw(senders()),
    )


@st.composite
def networks(draw: st.DrawFn) -> Network | str:
    """A network; or, where it is refused as it is put together, the reason."""
    count = draw(st.integers(1, 3))
    size = draw(st.sampled_from([1000.0, 1500.0, 40.0, 1.0]))
    try:
        chosen = tuple(draw(links(size)) for _ in range(count))
        teams = tuple(draw(flows(chosen)) for _ in range(draw(st.integers(1, 3))))
        return Network(
            links=heard(chosen, teams),
            flows=teams,
            link_names=tuple(f"link {k}" for k in range(count)),
            flow_names=tuple(f"group {k}" for k in range(len(teams))),
        )
    except ValueError as error:
        return str(error)


def run(net: Network, packets: float, seed: int, **options: Any) -> PacketRuns | str:
    """A run in which the fastest link carries about so many packets, or why there is none."""
    fastest = max(float(link.capacity) for link in net.links)
    until = min(packets / fastest, 60.0)
    try:
        return simulate_packets(
            net, until=until, warmup=until / 3, seeds=(seed,), threads=1, **options
        )
    except ValueError as error:
        return str(error)


def check(net: Network, runs: PacketRuns | str) -> None:
    """Whatever came out must be possible, or a reason in words."""
    if isinstance(runs, str):
        assert len(runs) > 10, runs
        return
    found = runs.mean
    for name, link in zip(net.link_names, net.links, strict=True):
        told = found["links"][name]
        assert -1e-9 <= told["utilization"] <= 1 + 1e-9, told
        assert 0 <= told["queue_mean"] <= told["queue_max"] * (1 + 1e-9), told
        assert told["queue_var"] >= -1e-6 * (1 + told["queue_max"] ** 2), told
        assert told["drops"] <= told["arrivals"], told
        if not getattr(link.queue, "bytes", False) and link.voice is None:
            assert told["queue_max"] < float(link.buffer) + 1, told
    for name, group in zip(net.flow_names, net.flows, strict=True):
        told = found["flows"][name]
        assert told["goodput"] >= 0, told
        assert not told["window_mean"] < 0, told
        if not group.traffic.starts:
            assert not told["window_mean"] > 1e9, told
