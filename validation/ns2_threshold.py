"""Records of the mark-front paper: Reno flows over two slow links and a deterministic threshold.

ns-2 builds the threshold from its RED, with an average of weight 1, or from the virtual queue of
`Queue/Vq`, which counts unfinished work: until the first mark that is the whole system with the
packet judged. The connections of ns-2 are set up long before the data start, with a window of 1.
Here a connection request that is answered at that instant does the same; where flows start one
after another it would meet the queues of those before, so these begin with data.
"""

import functools
import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from fluidcc import ops
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal
from fluidcc.laws.parameters import param, state
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.ops import Num
from fluidcc.packets.accounts import Snapshot, half_width, metrics, snapshot
from fluidcc.packets.build import Simulation
from fluidcc.packets.engine.records import CE, FINISHED
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.plan import plan
from fluidcc.scenario.network import Flows, Link, Network, Start

ACK = 320.0  # bit
BASE = 10.0  # s, when the data start
HORIZONS = (10, 25, 30, 40, 100)  # s from there
NEAR = 0.004  # s, from the last router to the receiver
TICK = 0.01  # s
POLL = 0.002  # s between looks for the first reaction in ns-2
_NEVER = 1e-9  # ns-2's probability below the threshold, where the average is above `low`


class LastFound(AbstractQueueLaw):
    """Marks by the packets found waiting: ns-2's RED with a weight of 1, which never drops.

    Its average is above the lower threshold from `low` on, so that the rules that ns-2 has for
    the first packets above it apply: none is chosen while fewer than two wait, nor the first.
    """

    found = state("average", "q_0", unit="packet", doc="queue that the last packet found")

    name: ClassVar[str] = "last_found"
    source: ClassVar[str] = "ns2, red.cc"
    at: Num = param(10.0, "T", unit="packet", doc="mark where this many wait", within="[0, inf)")
    low: Num = param(0.001, "l", unit="packet", doc="lower threshold", within="[0, inf)")

    def average(self, x: Num, queue: Num) -> Num:
        """The queue that the last packet found [packet]."""
        return x

    def on_arrival(self, x: Num, seen: Arrival) -> Num:
        """Remember the queue found."""
        return ops.minimum(seen.count, 1.0) * (seen.queue - x)

    def signal(self, x: Num, seen: Arrival) -> Signal:
        """Mark from the threshold on."""
        return Signal(mark=ops.where(x >= self.at, 1.0, ops.where(x >= self.low, _NEVER, 0.0)))


def _law(params: dict[str, Any]) -> AbstractQueueLaw:
    at, kind = float(params["T"]), params.get("mk", "red")
    if kind == "red":
        return LastFound(at=at, low=0.001 if params.get("exact", 1) else at)
    # the head that an arrival marks is the next to leave, where it counts itself and those behind
    return Threshold(at=at - 1 if kind == "vqfront" else at, when="exceeds", counts="system")


def network(params: dict[str, Any]) -> Network:
    """The network of a record."""
    rate, access = params.get("bw_mbps", 1.5) * 1e6, params.get("acc_mbps", 10) * 1e6
    satellite, back = params["TS_ms"] / 1000, 2 * ACK / rate + 2 * ACK / access
    groups = []
    for k in range(params["n"]):
        source = 0.002 + k * params.get("drtt_ms", 0.0) / 2000
        rtt = 2 * (source + 2 * satellite + NEAR) + 8000 / access + back
        start = BASE + k * params.get("stagger", 0.0)
        groups.append(Flows(
            window=Reno(max_window=20000.0),
            n=np.array([1.0]),
            rtt=np.array([rtt]),
            reaction=OncePerRTT(),
            feedback=MarkFront() if params.get("mk") == "vqfront" else MarkTail(),
            route=(0, 1),
            access_delay=source,
            access_capacity=access / 8000,
            start=Start(start, start + params.get("jitter", 0.0)),
            sender=(("initial_window", 1.0),),
        ))  # fmt: skip
    slow = Link(queue=Droptail(), capacity=rate / 8000, packet_size=1000.0, delay=satellite)
    first = Link(
        queue=_law(params), capacity=rate / 8000, packet_size=1000.0, delay=satellite,
        buffer=float(params.get("B", 100000)),
    )  # fmt: skip
    names = tuple(f"flow {k}" for k in range(len(groups)))
    return Network(
        links=(first, slow), flows=tuple(groups), link_names=("first", "second"), flow_names=names
    )


def _round_trip(net: Network, k: int = 0) -> float:
    """The round trip of flow k with every transmission of a packet that meets no queue [s]."""
    flow = net.flows[k]
    return float(flow.rtt[0]) + 2 / float(net.links[0].capacity) + 1 / float(flow.access_capacity)


def _prepared(net: Network, seed: int) -> Simulation:
    """A run whose flows have sent one packet and taken its acknowledgement, flow k at 0.05 k s."""
    out = Simulation(plan(net), seed, True, scale=8)
    out.receivers["expected"] = 1
    for name, value in {"next_sequence": 1, "ecn_on": 1, "timed_sequence": 0}.items():
        out.flows[name] = value
    out.flows["acked"] = out.flows["highest_sent"] = 0
    for k, flow in enumerate(out.flows):
        ticks = int((_round_trip(net, k) + (0.05 * k + flow["clock_phase"]) % TICK) / TICK)
        flow["srtt"], flow["rttvar"] = ticks << 3, ticks << 1
        flow["rto"] = 3 * ticks * TICK
    return out


def _marks_waiting(simulation: Simulation) -> int:
    """Marked packets that wait at the first link: ns-2 counts marks as they leave the queue."""
    port, count = simulation.ports[0], 0
    index = port["head"]
    for _ in range(port["count"]):
        count += bool(simulation.packets[index]["flags"] & CE)
        index = simulation.packets[index]["next"]
    return count


def _since(simulation: Simulation, taken: list[Snapshot], span: int) -> dict[str, float]:
    """Metrics in the words of the records, from the start of the data to `span` seconds later."""
    run = metrics(simulation.plan, taken)
    link, flows = run["links"]["first"], list(run["flows"].values())
    room = float(simulation.plan.net.links[0].capacity) * span  # packets that fit
    goodput = np.array([flow["goodput"] for flow in flows]) / 8000 * span
    return {
        f"eff_{span}s": float(goodput.sum()) / room,
        f"jain_{span}s": float(goodput.sum() ** 2 / (len(flows) * (goodput**2).sum())),
        # ns-2 counts packets as their transmission begins
        f"util_{span}s": math.ceil(link["utilization"] * room - 1e-6) / room,
        f"marks_{span}s": link["marks"] - _marks_waiting(simulation),
        f"drops_{span}s": link["drops"],
        f"arrivals_{span}s": link["arrivals"],
        "maxq_wait": link["queue_max"],
        "ecn_responses": sum(flow["window_reductions"] for flow in flows),
        "timeouts": sum(flow["timeouts"] for flow in flows),
    } | ({"maxq_wait_10s": link["queue_max"]} if span == 10 else {})


def theorem(params: dict[str, Any]) -> dict[str, float]:
    """Products of round trip and rate, and the bound of the queue that the paper states [packet].

    The bound is 2 T + r d - 1 for marks at the tail and T + r d for marks at the front.
    """
    net, at = network(params), float(params["T"])
    rate, flow = float(net.links[0].capacity), net.flows[0]
    rd = _round_trip(net) * rate
    way = float(flow.access_delay) + sum(float(link.delay) for link in net.links) + NEAR
    front = params.get("mk") == "vqfront"
    return {"rd": rd, "rd_prop": 2 * way * rate, "bound": at + rd if front else 2 * at + rd - 1}


@functools.cache
def _run(settings: tuple[tuple[str, Any], ...], seed: int) -> dict[str, float]:
    """What one run tells."""
    advance, settle = entry_points()
    params = dict(settings)
    net, duration, half = network(params), int(params["dur"]), int(params["dur"]) // 2
    out = _first_reaction(_prepared(net, seed), duration) | theorem(params)
    out["max_queue_slow_start"] = out["maxq_wait_ss"]
    if "mk" in params:  # after a mark the virtual queue is no longer what is there
        return out
    simulation, taken = _prepared(net, seed), []
    for span in sorted({0, half, duration, *(h for h in HORIZONS if h < duration)}):
        if advance(simulation.address, BASE + span, 1 << 40) != FINISHED:
            raise RuntimeError(f"{params}: the run ended early")
        settle(simulation.address, BASE + span)
        taken.append(snapshot(simulation, BASE + span))
        if span > 0:
            out |= _since(simulation, taken, span)
    for name in ("util", "eff"):
        out[f"{name}_second_half"] = 2 * out[f"{name}_{duration}s"] - out[f"{name}_{half}s"]
    out["max_queue_whole_run"] = out["maxq_wait"]
    return out


def _first_reaction(simulation: Simulation, duration: float) -> dict[str, float]:
    """The largest queue until the first reaction to a mark, and its time as ns-2's script sees it.

    Nothing waits before the data start.
    """
    advance, _ = entry_points()
    step = 0
    while step * POLL < duration and not simulation.flows["window_reductions"].any():
        step += 1
        advance(simulation.address, BASE + step * POLL, 1 << 40)
    reacted = simulation.flows["window_reductions"].any()
    advance(simulation.address, BASE + (step + 1) * POLL, 1 << 40)
    largest = float(simulation.ports[0]["largest"])
    return {"maxq_wait_ss": largest, "t_first_response": step * POLL if reacted else -BASE - 1}


def measured(params: dict[str, Any], seeds: Iterable[int]) -> tuple[dict, dict]:
    """Means over seeds, and half widths of their intervals, of what a record tells."""
    samples = [_run(tuple(params.items()), seed) for seed in seeds]
    table = {name: np.array([sample[name] for sample in samples]) for name in samples[0]}
    width = {name: float(half_width(values)) for name, values in table.items()}
    return {name: float(values.mean()) for name, values in table.items()}, width
