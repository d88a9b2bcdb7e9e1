"""Small networks for the packet engine, and queue laws whose marks are known."""

import ctypes
import dataclasses
import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from fluidcc import Flows, Link, Network, Voice, laws, load, ops, replace
from fluidcc.laws.law import AbstractSource
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine import records as r
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.scenario.network import Change, Start


class RandomMarks(laws.AbstractQueueLaw):
    """Marks every packet with the same probability, whatever the queue."""

    name: ClassVar[str] = "random_marks"
    source: ClassVar[str] = "test"
    p: float = laws.param(0.01, "p", unit="1", doc="probability", within="[0, 1]")

    def signal(self, x, seen):
        return laws.Signal(mark=self.p)


class EveryNth(laws.AbstractQueueLaw):
    """Marks every n-th packet."""

    name: ClassVar[str] = "every_nth"
    source: ClassVar[str] = "test"
    n: float = laws.param(
        100.0, "n_m", unit="packet", doc="packets from mark to mark", within="[1, inf)"
    )

    def signal(self, x, seen):
        return laws.Signal(mark=1 / self.n)

    def gap_probability(self, x, seen, gap):
        return ops.where(gap >= self.n, 1.0, 0.0)


def listed(drops: Iterable[int] = (), marks: Iterable[int] = ()) -> laws.AbstractQueueLaw:
    """A law that drops and marks exactly the packets whose numbers are listed, 0 the first."""

    def among(number, chosen):
        out = 0.0
        for k in chosen:
            out = out + ops.where(ops.maximum(number - k, k - number) < 0.5, 1.0, 0.0)
        return out

    class Listed(laws.AbstractQueueLaw):
        number = laws.state(-1.0, "k", unit="packet", doc="number of the packet")
        name: ClassVar[str] = "listed"
        source: ClassVar[str] = "test"

        def on_arrival(self, x, seen):
            return seen.count

        def signal(self, x, seen):
            return laws.Signal(mark=among(x, marks), drop=among(x, drops))

    return Listed()


def red(**changes: Any) -> laws.RED:
    given = {"min_th": 5.0, "max_th": 15.0, "p_max": 0.1, "w_q": 0.002, "spreading": laws.Wait()}
    return laws.RED(**(given | changes))


def flows(count: int, **changes: Any) -> Flows:
    given = {
        "window": laws.NewReno(max_window=100.0),
        "n": np.array([float(count)]),
        "rtt": np.array([0.0831]),
        "reaction": laws.OncePerRTT(),
        "feedback": laws.MarkTail(),
        "access_delay": 0.0021,
        "access_capacity": 12500.0,
        "start": Start(0.0, 2.0),
    }
    return Flows(**(given | changes))


def dumbbell(group: Flows, queue: laws.AbstractQueueLaw, **changes: Any) -> Network:
    given = {"capacity": 1250.0, "packet_size": 1000.0, "delay": 0.0213, "buffer": 60.0}
    return Network(links=(Link(queue=queue, **(given | changes)),), flows=(group,))


def chain(**changes: Any) -> Network:
    """Two slow links in series: one group crosses both, one each of them."""
    first = Link(queue=red(), capacity=1250.0, packet_size=1000.0, delay=0.0113, buffer=60.0)
    second = dataclasses.replace(first, queue=laws.Droptail(), capacity=1000.0, buffer=30.0)
    spread = {"n": np.array([2.0, 1.0]), "rtt": np.array([0.0931, 0.1217])}
    groups = (
        flows(3, route=(0, 1), **spread, **changes),
        flows(3, route=(0,)),
        flows(2, route=(1,), feedback=laws.Loss(), window=laws.Reno(max_window=60.0)),
    )
    return Network(
        links=(first, second),
        flows=groups,
        link_names=("first", "second"),
        flow_names=("both", "one", "two"),
    )


def background_chain() -> Network:
    """The chain with traffic of every kind beside its flows."""
    net, calls = chain(feedback=laws.MarkFront()), Voice(calls=50.0, holding=3.0)
    first = dataclasses.replace(net.links[0], voice=calls, cross=100.0)
    queue = dataclasses.replace(calls, discipline="fifo")
    second = dataclasses.replace(net.links[1], voice=queue, cross=200.0, cross_sizes="exponential")
    return dataclasses.replace(net, links=(first, second))


def known_marks(queue: laws.AbstractQueueLaw, window: Any, **changes: Any) -> Network:
    """One flow that never fills its fast link, under marks that do not depend on it."""
    given = {"access_capacity": float("inf"), "rtt": np.array([0.1]), "start": Start()}
    group = flows(1, window=window, **(given | changes))
    return dumbbell(group, queue, capacity=1e6, delay=0.01, buffer=float("inf"))


def still(
    window: float, queue: laws.AbstractQueueLaw, group: dict[str, Any] | None = None, **link: Any
) -> Network:
    """One flow whose window nothing changes: 20 packets under way, the others in the queue."""
    own = flows(
        1, window=laws.NewReno(max_window=window, min_window=window), rtt=np.array([20 / 1250]),
        start=Start(), access_delay=0.001, access_capacity=float("inf"), **(group or {}),
    )  # fmt: skip
    return dumbbell(own, queue, delay=0.001, buffer=float("inf"), **link)


def told(count: int = 3, **law: Any) -> Flows:
    """Flows that read load factors from their packets."""
    window = laws.BMCC(max_window=100.0, **law)
    options = (("recovery", "newreno"),)
    return flows(
        count,
        window=window,
        feedback=laws.LoadFactorFeedback(),
        estimator=laws.ADPM(),
        sender=options,
    )


def two_ways(traffic: AbstractSource) -> Network:
    """Flows and files that come by themselves, over a link with files on the way back."""
    ahead = Link(queue=red(), capacity=1250.0, packet_size=1000.0, delay=0.0213, buffer=60.0)
    back = dataclasses.replace(ahead, queue=laws.Droptail(), buffer=40.0)
    there = {"reverse_route": (1,), "access_capacity": 12500.0, "access_delay": 0.0127}
    bulk = flows(2, **there)
    source = flows(1, traffic=traffic, start=Start(), **there)
    other = flows(
        1,
        traffic=laws.Files(arrivals=5.0, file=20.0),
        route=(1,),
        reverse_route=(0,),
        start=Start(),
    )
    return Network(
        links=(ahead, back),
        flows=(bulk, source, other),
        link_names=("ahead", "back"),
        flow_names=("bulk", "source", "other"),
    )


def both_ways(**changes: Any) -> Network:
    """Flows over a link and back, so that ACKs are lost in the others' queue."""
    there = Link(
        queue=laws.Droptail(), capacity=1250.0, packet_size=1000.0, delay=0.0213, buffer=20.0
    )
    back = dataclasses.replace(there, capacity=400.0, buffer=12.0)
    groups = (
        flows(4, route=(0,), reverse_route=(1,), **changes),
        flows(4, route=(1,), reverse_route=(0,), **changes),
    )
    return Network(
        links=(there, back), flows=groups, link_names=("there", "back"), flow_names=("a", "b")
    )


def rewritten_back() -> Network:
    """Two routers that rewrite the ACKs of the data in their queues, which come over two links."""
    there = Link(queue=red(), capacity=1250.0, packet_size=1000.0, delay=0.0113, buffer=60.0)
    back = dataclasses.replace(there, queue=laws.Droptail(), capacity=1000.0)
    group = flows(
        4,
        feedback=laws.ReceiverWindow(),
        route=(0, 1),
        reverse_route=(2, 3),
        rtt=np.array([0.1217]),
    )
    against = flows(2, route=(2, 3), reverse_route=(0, 1), rtt=np.array([0.1217]))
    return Network(
        links=(there, dataclasses.replace(there, capacity=1200.0), back, back),
        flows=(group, against),
        link_names=("one", "two", "back_two", "back_one"),
        flow_names=("rewritten", "against"),
    )


def fair() -> Network:
    """Flows of two groups over fair links there and back, which their ACKs pass too, and of one
    over a fair link that changes.
    """
    net = both_ways()
    alone = dataclasses.replace(
        net.links[0], queue=red(), fair=True, random_loss=0.01,
        schedule=(Change(1.3, capacity=600.0, delay=0.03),),
    )  # fmt: skip
    return Network(
        links=(*(dataclasses.replace(link, fair=True) for link in net.links), alone),
        flows=(*net.flows, flows(3, route=(2,))),
        link_names=("there", "back", "alone"), flow_names=("a", "b", "c"),
    )  # fmt: skip


DELAYED = (("delayed_acks", True),)


def changing() -> Network:
    """The chain with links that change and lose, and flows that begin and stop one by one."""
    net = chain(
        sender=(*DELAYED, ("byte_counting", 2)), start=Start.at(0.0, 0.4, 1.1), stop=(2.6, 2.7, 9.0)
    )
    first = dataclasses.replace(
        net.links[0],
        random_loss=0.01,
        schedule=(Change(0.7, capacity=600.0, delay=0.001), Change(1.3, delay=0.03)),
    )
    second = dataclasses.replace(
        net.links[1], schedule=(Change(1.0, 2000.0, 0.002), Change(2.0, capacity=500.0))
    )
    return dataclasses.replace(net, links=(first, second))


CASES = {
    "ecn": dumbbell(flows(5), red()),
    "loss": dumbbell(flows(5, feedback=laws.Loss()), red()),
    "bytes": dumbbell(flows(5), red(bytes=True)),
    "reno": dumbbell(
        flows(4, feedback=laws.Loss(), window=laws.Reno(max_window=100.0)), laws.Droptail()
    ),
    "refractory": dumbbell(flows(4, reaction=laws.Refractory()), laws.Threshold(at=10.0)),
    "front": dumbbell(flows(4, feedback=laws.MarkFront()), laws.Threshold(at=10.0)),
    "red_front": dumbbell(flows(4, feedback=laws.MarkFront()), red()),
    "red_sent": dumbbell(flows(4, feedback=laws.MarkFront(when="end")), red()),
    "avq": dumbbell(flows(4), laws.AVQ(alpha=1.0), cross=100.0, cross_sizes="exponential"),
    "backward": dumbbell(
        flows(4, feedback=laws.Backward(), reaction=laws.PerMark(growth="all")), red()
    ),
    "ecn_mod": dumbbell(
        flows(4, window=laws.ECNMod(max_window=100.0), reaction=laws.PerMark()), red()
    ),
    "direct": dumbbell(flows(4, access_delay=None, access_capacity=float("inf")), red()),
    "chain": chain(),
    "pi": dumbbell(flows(4), laws.PI(q_ref=10.0)),
    "blue": dumbbell(flows(4), laws.BLUE(threshold=10.0, freeze_time=0.02, random_freeze=True)),
    "dctcp": dumbbell(flows(4, window=laws.DCTCP(max_window=100.0)), laws.Threshold(at=10.0)),
    "load_factor": dumbbell(told(), laws.LoadFactor()),
    "modified": dumbbell(told(12, fallback=True), laws.ModifiedLoadFactor(min_th=5.0, max_th=15.0)),
    "no_load_factor": dumbbell(told(md="per_rtt"), red(), buffer=30.0),
    "sack": dumbbell(
        flows(4, window=laws.SACK(max_window=100.0), feedback=laws.Loss()),
        laws.Droptail(),
        buffer=15.0,
    ),
    "sack_ecn": dumbbell(
        flows(4, window=laws.SACK(max_window=100.0), sender=(("overhead", 0.0008),)),
        red(),
        buffer=15.0,
    ),
    "pause": dumbbell(
        flows(
            9, window=laws.BECN(max_window=100.0), feedback=laws.Backward(), reaction=laws.Pause()
        ),
        red(p_max=0.02),
    ),
    "reverse": dumbbell(flows(4, feedback=laws.ReceiverWindow()), red()),
    "cross": dumbbell(flows(3), red(), cross=500.0, cross_sizes="exponential"),
    "voice": dumbbell(flows(3), red(), voice=Voice(arrivals=0.4, holding=200.0, most=90)),
    "voice_fifo": dumbbell(
        flows(3),
        laws.Threshold(at=10.0),
        voice=Voice(calls=60.0, holding=5.0, discipline="fifo"),
        cross=200.0,
    ),
    "voice_bytes": dumbbell(flows(3), red(bytes=True), voice=Voice(calls=300.0)),
    "background_chain": background_chain(),
    "reverse_route": rewritten_back(),
    "reverse_chain": chain(feedback=laws.ReceiverWindow(), window=laws.Reno(max_window=40.0)),
    "web": dumbbell(
        flows(6, traffic=laws.Web(file=20.0, idle=0.5, sizes="pareto", idles="pareto2")), red()
    ),
    "file": dumbbell(
        flows(3, traffic=laws.File(file=150.0), feedback=laws.Loss()), laws.Droptail()
    ),
    "files": two_ways(laws.Files(arrivals=10.0, file=30.0, sizes="pareto")),
    "sessions": two_ways(laws.Sessions(page_gap=1.0)),
    "changing": changing(),
    "fair": fair(),
    "fair_codel": dumbbell(flows(4, feedback=laws.Loss()), laws.CoDel(target=0.01), fair=True),
    "two_queues": replace(
        load("rfc9332/dualpi2"), {"links.l4s.shift": 0.01, "links.l4s.cross": 800}
    ),
    "delayed_sack": both_ways(
        window=laws.SACK(max_window=100.0), sender=DELAYED, feedback=laws.Loss(), stop=(2.5,)
    ),
    "delayed_dctcp": dumbbell(
        flows(4, window=laws.DCTCP(max_window=100.0), sender=DELAYED), laws.Threshold(at=10.0)
    ),
    "delayed_files": dumbbell(
        flows(6, traffic=laws.Web(file=20.0, idle=0.5), sender=DELAYED),
        red(),
        random_loss=0.02,
        voice=Voice(calls=60.0, holding=5.0),
    ),
}


def within(runs: Any, metric: str, exact: float, *, chance: float = 1e-4) -> bool:
    """Whether an exact value of the link lies in an interval that misses with this chance."""
    mean, half = (part["links"]["bottleneck"][metric] for part in (runs.mean, runs.ci95))
    count = len(runs.seeds) - 1
    wide = stats.t.ppf(1 - chance / 2, count) / stats.t.ppf(0.975, count)
    return abs(mean - exact) < wide * half


def begun(net: Network, seed: int = 1, *, elide: bool = True) -> Simulation:
    """The engine before its first event."""
    return Simulation(plan(net), seed, elide, scale=8)


def advanced(simulation: Simulation, time: float) -> Simulation:
    """The engine after a run to a time, which may go on."""
    advance, settle = entry_points()
    if status := advance(simulation.address, time, 1 << 40):
        raise ValueError(f"the run needs more room than was made at first: status {status}")
    settle(simulation.address, time)
    return simulation


def finished(net: Network, until: float, *, seed: int = 1, elide: bool = True) -> Simulation:
    """The state of the engine after a run."""
    return advanced(begun(net, seed, elide=elide), until)


def events(net: Network, until: float, seed: int = 1) -> Iterator[Simulation]:
    """The engine after each event of a run."""
    advance, _ = entry_points()
    simulation = begun(net, seed)
    while advance(simulation.address, until, 1) == r.MORE:
        yield simulation


def watched(
    net: Network, until: float, ports: Callable[[Simulation], list[int]], seed: int = 3
) -> tuple[list[tuple[float, int, int]], list[tuple[float, int, int]]]:
    """Arrivals (time, class, size) and services (start, class, size) of a run, event by event, at
    the ports of the classes, which share a transmitter.
    """
    arrivals, services = [], []
    seen, started = [], -1.0
    for simulation in events(net, until, seed):
        pool, now = simulation.packets, float(simulation.state["now"][0])
        queues = [simulation.ports[port] for port in ports(simulation)]
        seen = seen or [0] * len(queues)
        for c, queue in enumerate(queues):
            taken = int(queue["arrivals"] - queue["drops"])
            if taken > seen[c]:  # the one that came is the tail, or in service at once
                index = int(queue["tail"] if queue["count"] else queue["serving"])
                arrivals.append((now, c, int(pool[index]["size"])))
                seen[c] = taken
        for c, queue in enumerate(queues):
            if queue["busy"] and float(queue["started"]) > started:
                started = float(queue["started"])
                services.append((started, c, int(pool[int(queue["serving"])]["size"])))
    return arrivals, services


def by_definition(
    arrivals: list[tuple[float, int, int]], weights: tuple[float, ...], rate: float
) -> list[tuple[float, int, int]]:
    """Services of packets under SCFQ with a tag for every packet, as they are defined, at so many
    byte/s.
    """
    services, queue, last, virtual, free = [], [], [0.0] * len(weights), 0.0, 0.0
    coming = iter([*enumerate(arrivals), (len(arrivals), (math.inf, 0, 0))])
    k, (time, c, size) = next(coming)
    while queue or time < math.inf:
        now = free if queue else max(free, time)
        while time <= now:  # who comes as another goes is there for the choice
            if not queue and time > free:  # the line has been idle
                last, virtual = [0.0] * len(weights), 0.0
            last[c] = max(last[c], virtual) + size / weights[c]
            heapq.heappush(queue, (last[c], c, k, size))
            k, (time, c, size) = next(coming)
        virtual, c_next, _, size_next = heapq.heappop(queue)
        services.append((now, c_next, size_next))
        free = now + size_next / rate
    return services


def queue_memory(simulation: Simulation, count: int) -> np.ndarray:
    """Numbers that the first link's law remembers."""
    block = int(simulation.ports["block"][0]) + 8 * r.Q_STATE
    return np.array((ctypes.c_double * count).from_address(block))


def _held(simulation, queue):
    """Packets in a port's or wire's queue, in order."""
    index, out = int(queue["head"]), []
    for _ in range(int(queue["count"])):
        out.append(simulation.packets[index])
        index = int(simulation.packets[index]["next"])
    return out


def _kinds(simulation):
    """Wires by kind."""
    for entity in simulation.entities:
        if entity["kind"] in (r.WIRE, r.ACK_WIRE, r.QUENCH_WIRE, r.ROUTER):
            yield int(entity["kind"]), simulation.wires[entity["index"]]


def conserved(simulation: Simulation) -> None:
    """No packet gets lost in the engine, nor is there one too many."""
    ports, pool = simulation.ports, simulation.packets
    assert np.all(
        ports["arrivals"] == ports["departures"] + ports["drops"] + ports["count"] + ports["busy"]
    )
    under_way = [p for port in ports for p in _held(simulation, port)]
    under_way += [pool[port["serving"]] for port in ports if port["busy"]]
    wires = list(_kinds(simulation))
    data = under_way + [p for kind, w in wires if kind == r.WIRE for p in _held(simulation, w)]
    others = [p for kind, w in wires if kind != r.WIRE for p in _held(simulation, w)]
    for k, flow in enumerate(simulation.flows):
        present = sum(p["flow"] == k and not p["flags"] & r.ACK for p in data)
        assert flow["sent"] == flow["received"] + flow["lost"] + present
    free, index = 0, int(simulation.state["free"][0])
    while index >= 0:
        free, index = free + 1, int(pool[index]["next"])
    held = int((simulation.receivers["held"] > 0).sum())  # ACKs that wait
    assert free + len(data) + len(others) + held == len(pool)
