"""Small networks for the packet engine, and queue laws whose marks are known."""

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from fluidcc import ops
from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as Told
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import AbstractQueueLaw, AbstractSource, Signal
from fluidcc.laws.load_code import ADPM
from fluidcc.laws.marking import Wait
from fluidcc.laws.parameters import param, state
from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.queue.modified_load_factor import ModifiedLoadFactor
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, Pause, PerMark, Refractory
from fluidcc.laws.traffic import File, Files, Sessions, Web
from fluidcc.laws.voice import Voice
from fluidcc.laws.window.becn import BECN
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.reno import Reno
from fluidcc.laws.window.sack import SACK
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine import records as r
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.scenario.network import Flows, Link, Network, Start


class RandomMarks(AbstractQueueLaw):
    """Marks every packet with the same probability, whatever the queue."""

    name: ClassVar[str] = "random_marks"
    source: ClassVar[str] = "test"
    p: float = param(0.01, "p", unit="1", doc="probability", within="[0, 1]")

    def signal(self, x, seen):
        return Signal(mark=self.p)


class EveryNth(AbstractQueueLaw):
    """Marks every n-th packet."""

    name: ClassVar[str] = "every_nth"
    source: ClassVar[str] = "test"
    n: float = param(100.0, "n", unit="packet", doc="packets from mark to mark", within="[1, inf)")

    def signal(self, x, seen):
        return Signal(mark=1 / self.n)

    def gap_probability(self, x, seen, gap):
        return ops.where(gap >= self.n, 1.0, 0.0)


def listed(drops: Iterable[int] = (), marks: Iterable[int] = ()) -> AbstractQueueLaw:
    """A law that drops and marks exactly the packets whose numbers are listed, 0 the first."""

    def among(number, chosen):
        out = 0.0
        for k in chosen:
            out = out + ops.where(ops.maximum(number - k, k - number) < 0.5, 1.0, 0.0)
        return out

    class Listed(AbstractQueueLaw):
        number = state(-1.0, "k", unit="packet", doc="number of the packet")
        name: ClassVar[str] = "listed"
        source: ClassVar[str] = "test"

        def on_arrival(self, x, seen):
            return seen.count

        def signal(self, x, seen):
            return Signal(mark=among(x, marks), drop=among(x, drops))

    return Listed()


def red(**changes: Any) -> RED:
    given = {"min_th": 5.0, "max_th": 15.0, "p_max": 0.1, "w_q": 0.002, "spreading": Wait()}
    return RED(**(given | changes))


def flows(count: int, **changes: Any) -> Flows:
    given = {
        "window": NewReno(max_window=100.0),
        "n": np.array([float(count)]),
        "rtt": np.array([0.0831]),
        "reaction": OncePerRTT(),
        "feedback": MarkTail(),
        "access_delay": 0.0021,
        "access_capacity": 12500.0,
        "start": Start(0.0, 2.0),
    }
    return Flows(**(given | changes))


def dumbbell(group: Flows, queue: AbstractQueueLaw, **changes: Any) -> Network:
    given = {"capacity": 1250.0, "packet_size": 1000.0, "delay": 0.0213, "buffer": 60.0}
    return Network(links=(Link(queue=queue, **(given | changes)),), flows=(group,))


def chain(**changes: Any) -> Network:
    """Two slow links in series: one group crosses both, one each of them."""
    first = Link(queue=red(), capacity=1250.0, packet_size=1000.0, delay=0.0113, buffer=60.0)
    second = dataclasses.replace(first, queue=Droptail(), capacity=1000.0, buffer=30.0)
    spread = {"n": np.array([2.0, 1.0]), "rtt": np.array([0.0931, 0.1217])}
    groups = (
        flows(3, route=(0, 1), **spread, **changes),
        flows(3, route=(0,)),
        flows(2, route=(1,), feedback=Loss(), window=Reno(max_window=60.0)),
    )
    return Network(
        links=(first, second),
        flows=groups,
        link_names=("first", "second"),
        flow_names=("both", "one", "two"),
    )


def background_chain() -> Network:
    """The chain with traffic of every kind beside its flows."""
    net, calls = chain(feedback=MarkFront()), Voice(calls=50.0, holding=3.0)
    first = dataclasses.replace(net.links[0], voice=calls, cross=100.0)
    queue = dataclasses.replace(calls, discipline="fifo")
    second = dataclasses.replace(net.links[1], voice=queue, cross=200.0, cross_sizes="exponential")
    return dataclasses.replace(net, links=(first, second))


def known_marks(queue: AbstractQueueLaw, window: Any, **changes: Any) -> Network:
    """One flow that never fills its fast link, under marks that do not depend on it."""
    given = {"access_capacity": float("inf"), "rtt": np.array([0.1]), "start": Start()}
    group = flows(1, window=window, **(given | changes))
    return dumbbell(group, queue, capacity=1e6, delay=0.01, buffer=float("inf"))


def told(count: int = 3, **law: Any) -> Flows:
    """Flows that read load factors from their packets."""
    window = BMCC(max_window=100.0, **law)
    options = (("recovery", "newreno"),)
    return flows(count, window=window, feedback=Told(), estimator=ADPM(), sender=options)


def two_ways(traffic: AbstractSource) -> Network:
    """Flows and files that come by themselves, over a link with files on the way back."""
    ahead = Link(queue=red(), capacity=1250.0, packet_size=1000.0, delay=0.0213, buffer=60.0)
    back = dataclasses.replace(ahead, queue=Droptail(), buffer=40.0)
    there = {"reverse_route": (1,), "access_capacity": 12500.0, "access_delay": 0.0127}
    bulk = flows(2, **there)
    source = flows(1, traffic=traffic, start=Start(), **there)
    other = flows(
        1, traffic=Files(arrivals=5.0, file=20.0), route=(1,), reverse_route=(0,), start=Start()
    )
    return Network(
        links=(ahead, back),
        flows=(bulk, source, other),
        link_names=("ahead", "back"),
        flow_names=("bulk", "source", "other"),
    )


def rewritten_back() -> Network:
    """Two routers that rewrite the ACKs of the data in their queues, which come over two links."""
    there = Link(queue=red(), capacity=1250.0, packet_size=1000.0, delay=0.0113, buffer=60.0)
    back = dataclasses.replace(there, queue=Droptail(), capacity=1000.0)
    group = flows(
        4, feedback=ReceiverWindow(), route=(0, 1), reverse_route=(2, 3), rtt=np.array([0.1217])
    )
    against = flows(2, route=(2, 3), reverse_route=(0, 1), rtt=np.array([0.1217]))
    return Network(
        links=(there, dataclasses.replace(there, capacity=1200.0), back, back),
        flows=(group, against),
        link_names=("one", "two", "back_two", "back_one"),
        flow_names=("rewritten", "against"),
    )


CASES = {
    "ecn": dumbbell(flows(5), red()),
    "loss": dumbbell(flows(5, feedback=Loss()), red()),
    "bytes": dumbbell(flows(5), red(bytes=True)),
    "reno": dumbbell(flows(4, feedback=Loss(), window=Reno(max_window=100.0)), Droptail()),
    "refractory": dumbbell(flows(4, reaction=Refractory()), Threshold(at=10.0)),
    "front": dumbbell(flows(4, feedback=MarkFront()), Threshold(at=10.0)),
    "red_front": dumbbell(flows(4, feedback=MarkFront()), red()),
    "red_sent": dumbbell(flows(4, feedback=MarkFront(when="end")), red()),
    "avq": dumbbell(flows(4), AVQ(alpha=1.0), cross=100.0, cross_sizes="exponential"),
    "backward": dumbbell(flows(4, feedback=Backward(), reaction=PerMark(growth="all")), red()),
    "ecn_mod": dumbbell(flows(4, window=ECNMod(max_window=100.0), reaction=PerMark()), red()),
    "direct": dumbbell(flows(4, access_delay=None, access_capacity=float("inf")), red()),
    "chain": chain(),
    "pi": dumbbell(flows(4), PI(q_ref=10.0)),
    "blue": dumbbell(flows(4), BLUE(threshold=10.0, freeze_time=0.02, random_freeze=True)),
    "dctcp": dumbbell(flows(4, window=DCTCP(max_window=100.0)), Threshold(at=10.0)),
    "load_factor": dumbbell(told(), LoadFactor()),
    "modified": dumbbell(told(12, fallback=True), ModifiedLoadFactor(min_th=5.0, max_th=15.0)),
    "no_load_factor": dumbbell(told(md="per_rtt"), red(), buffer=30.0),
    "sack": dumbbell(
        flows(4, window=SACK(max_window=100.0), feedback=Loss()), Droptail(), buffer=15.0
    ),
    "sack_ecn": dumbbell(
        flows(4, window=SACK(max_window=100.0), sender=(("overhead", 0.0008),)), red(), buffer=15.0
    ),
    "pause": dumbbell(
        flows(9, window=BECN(max_window=100.0), feedback=Backward(), reaction=Pause()),
        red(p_max=0.02),
    ),
    "reverse": dumbbell(flows(4, feedback=ReceiverWindow()), red()),
    "cross": dumbbell(flows(3), red(), cross=500.0, cross_sizes="exponential"),
    "voice": dumbbell(flows(3), red(), voice=Voice(arrivals=0.4, holding=200.0, most=90)),
    "voice_fifo": dumbbell(
        flows(3),
        Threshold(at=10.0),
        voice=Voice(calls=60.0, holding=5.0, discipline="fifo"),
        cross=200.0,
    ),
    "voice_bytes": dumbbell(flows(3), red(bytes=True), voice=Voice(calls=300.0)),
    "background_chain": background_chain(),
    "reverse_route": rewritten_back(),
    "reverse_chain": chain(feedback=ReceiverWindow(), window=Reno(max_window=40.0)),
    "web": dumbbell(
        flows(6, traffic=Web(file=20.0, idle=0.5, sizes="pareto", idles="pareto2")), red()
    ),
    "file": dumbbell(flows(3, traffic=File(file=150.0), feedback=Loss()), Droptail()),
    "files": two_ways(Files(arrivals=10.0, file=30.0, sizes="pareto")),
    "sessions": two_ways(Sessions(page_gap=1.0)),
}


def within(runs: Any, metric: str, exact: float, *, chance: float = 1e-4) -> bool:
    """Whether an exact value of the link lies in an interval that misses with this chance."""
    mean, half = (part["links"]["bottleneck"][metric] for part in (runs.mean, runs.ci95))
    count = len(runs.seeds) - 1
    wide = stats.t.ppf(1 - chance / 2, count) / stats.t.ppf(0.975, count)
    return abs(mean - exact) < wide * half


def finished(net: Network, until: float, *, seed: int = 1, elide: bool = True) -> Simulation:
    """The state of the engine after a run."""
    advance, settle = entry_points()
    simulation = Simulation(plan(net), seed, elide, scale=8)
    if status := advance(simulation.address, until, 1 << 40):
        raise ValueError(f"the run needs more room than was made at first: status {status}")
    settle(simulation.address, until)
    return simulation


def _held(simulation, queue):
    """Packets in a port's or wire's queue, in order."""
    index, out = int(queue["head"]), []
    for _ in range(int(queue["count"])):
        out.append(simulation.packets[index])
        index = int(simulation.packets[index]["next"])
    return out


def _sends(simulation, port):
    """Whether a port has a packet of either class in service."""
    place = (int(port["second_class"]) - simulation.classes.ctypes.data) // r.CLASS_RECORD.itemsize
    return port["busy"] or (port["second_class"] and simulation.classes[place]["busy"])


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
    classes = simulation.classes
    assert np.all(
        classes["arrivals"]
        == classes["departures"] + classes["drops"] + classes["count"] + classes["busy"]
    )
    under_way = [p for queues in (ports, classes) for q in queues for p in _held(simulation, q)]
    under_way += [pool[port["serving"]] for port in ports if _sends(simulation, port)]
    wires = list(_kinds(simulation))
    data = under_way + [p for kind, w in wires if kind == r.WIRE for p in _held(simulation, w)]
    others = [p for kind, w in wires if kind != r.WIRE for p in _held(simulation, w)]
    for k, flow in enumerate(simulation.flows):
        present = sum(p["flow"] == k and not p["flags"] & r.ACK for p in data)
        assert flow["sent"] == flow["received"] + flow["lost"] + present
    free, index = 0, int(simulation.state["free"][0])
    while index >= 0:
        free, index = free + 1, int(pool[index]["next"])
    assert free + len(data) + len(others) == len(pool)
