"""The ns-2 records' scenarios as fluidcc networks.

ns-2 has links where a fluidcc network has constants: the receiver's access link and the links that
ACKs cross. Nothing queues there, so their transmission times are added to the round trip.
"""

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from fluidcc import ops
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Arrival, State
from fluidcc.laws.marking import Uniform, Wait
from fluidcc.laws.parameters import state
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.rem import REM
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.traffic import Files, Sessions
from fluidcc.laws.voice import Voice
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.reno import Reno
from fluidcc.laws.window.sack import SACK
from fluidcc.ops import Num
from fluidcc.scenario.network import Flows, Link, Network, Start

ACK = 320.0  # bit
MARK_P = 0.1  # ns-2 marks where RED's base probability is below this, and drops above


class AfterSignal(Uniform):
    """Gaps between signals uniform on 1 ... 1/p - 1: ns-2 with `wait_` false."""

    name: ClassVar[str] = "after_signal"
    source: ClassVar[str] = "ns2, red.cc"

    def rate(self, p: Num) -> Num:
        """One in 1/(2 p) packets."""
        return ops.minimum(2 * p, 1.0)

    def gap_probability(self, p: Num, gap: Num) -> Num:
        """p/(1 - gap p) until that reaches 1."""
        return super().gap_probability(p, gap + 1)


class RateREM(REM):
    """REM whose price moves by the packets that arrive beyond the link's rate."""

    before = state(0.0, "q_0", unit="packet", doc="arrivals since the last sample")

    name: ClassVar[str] = "rate_rem"
    source: ClassVar[str] = "athuraliya2001; ns2, rem.cc"

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Count arrivals."""
        return self.change(x, before=seen.count)

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Move the price by backlog and excess of arrivals, not below 0."""
        excess = x.before - seen.capacity * self.interval
        price = x.price + self.gamma * (self.alpha * (seen.queue - self.q_ref) + excess)
        return self.change(x, price=ops.maximum(price, 0.0) - x.price, before=-x.before)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A network and the times of its statistics [s]."""

    net: Network
    warmup: float
    until: float


def _mark_below(base: float) -> float:
    return float(Wait().rate(base))


def _becn(params: dict[str, Any]) -> Scenario:
    """Family A: 10 Mbit/s, RED in byte mode, access links of 100 Mbit/s and 2 ms."""
    delay, size, n, ecn = params["delay_ms"] / 1000, 1000.0, params["n"], params["necn"]
    gentle = bool(params.get("gentle", 0))
    queue = RED(
        min_th=15.0, max_th=45.0, p_max=0.1, w_q=0.002, gentle=gentle, bytes=True,
        spreading=Wait() if params.get("wait", 1) else AfterSignal(),
    )  # fmt: skip
    sender: dict[str, Any] = {
        "tick": 0.1,
        "min_rto": params.get("minrto", 1.0),
        "limited_transmit": bool(params.get("singledup", 0)),
    }
    if gentle:
        sender["mark_below"] = _mark_below(MARK_P)
    rtt = 2 * (0.004 + delay) + 8 * size / 1e8 + 2 * ACK / 1e8
    web = params.get("web", 0) > 0
    if not web:  # else ACKs pass a link with requests
        rtt += ACK / 1e7
    groups = {}
    for name, count, feedback in (("plain", n - ecn, Loss()), ("ecn", ecn, MarkTail())):
        if count > 0:
            groups[name] = Flows(
                window=NewReno(max_window=100.0),
                n=np.array([float(count)]),
                rtt=np.array([rtt]),
                reaction=OncePerRTT(),
                feedback=feedback,
                reverse_route=(1,) if web else (),
                access_delay=0.002,
                access_capacity=12500.0,
                start=Start(0.0, 5.0),
                sender=tuple(sender.items()),
            )
    link = Link(queue=queue, capacity=1250.0, packet_size=size, delay=delay, buffer=90.0)
    links, names = (link,), ("bottleneck",)
    if web:
        back = dataclasses.replace(link, queue=Droptail(), buffer=999.0)
        links, names = (link, back), ("bottleneck", "back")
        groups["web"] = dataclasses.replace(
            groups["ecn"], n=np.array([1.0]), traffic=Sessions(), start=Start(50.0, 50.0)
        )
    net = Network(
        links=links, flows=tuple(groups.values()), link_names=names, flow_names=tuple(groups)
    )
    return Scenario(net, params["warm_s"], params["T_s"])


def _ecn_mod(params: dict[str, Any]) -> Scenario:
    """Family D: NewReno with ECN over gentle RED, round trips spread over 25 to 250 ms.

    The ns-2 script puts each flow's distance into its source link; here it is on the way back,
    which only shifts the sender's clock. Beside voice ns-2 has CBQ by weighted round robin, where
    the network has self-clocked fair queueing.
    """
    n, size = params["n"], float(params.get("pkt", 1000))
    calls = None
    if params.get("voip"):
        calls = Voice(arrivals=2.0, holding=100.0, most=240, talk=1.004, active=1.004 / 2.591)
    capacity = (5.04e6 if calls is None else 1e7) / (8 * size)
    rtt = 0.025 + 0.225 * np.arange(n) / (n - 1)
    rtt += 8 * size / 1e8 + 2 * ACK / 1e8 + ACK / 1e7
    sender = ()
    if params.get("markp"):
        sender = (("mark_below", _mark_below(params.get("markpv", MARK_P))),)
    queue = RED(
        min_th=25.0, max_th=75.0, p_max=params["pmax"], w_q=0.002, gentle=True, spreading=Wait()
    )
    flows = Flows(
        window=NewReno(max_window=1000.0),
        n=np.ones(n),
        rtt=rtt,
        reaction=OncePerRTT(),
        access_capacity=1e8 / (8 * size),
        start=Start(0.0, 5.0),
        sender=sender,
    )
    link = Link(
        queue=queue, capacity=capacity, packet_size=size, delay=0.005, buffer=150.0, voice=calls
    )
    net = Network(links=(link,), flows=(flows,), flow_names=("ecn",))
    return Scenario(net, params["warm"], params["T"])


def _pi(reference: float) -> PI:
    """PI of ns-2 with its default weights of a sample and of the one before."""
    new, old, rate = 1.822e-5, 1.816e-5, 170.0
    gain = (new - old) * rate
    return PI(k_pi=gain, z=2 * gain / (new + old), q_ref=reference, interval=1 / rate)


def _sixty(params: dict[str, Any]) -> Scenario:
    """Family F: 60 Reno flows with ECN, 15 Mbit/s, 200 ms, PI or a RED filter of 200 s."""
    rtt = params["rtt_prop_s"]
    queue = RED(min_th=150.0, max_th=200.0, p_max=0.1, w_q=1.33e-6, gentle=False, spreading=Wait())
    if params["aqm"] == "PI":
        queue = _pi(200.0)
    flows = Flows(
        window=Reno(max_window=10000.0),
        n=np.array([float(params["n"])]),
        rtt=np.array([rtt + 4000 / 1e8 + 2 * ACK / 1e8 + ACK / 15e6]),
        reaction=OncePerRTT(),
        access_delay=0.01,
        access_capacity=25000.0,
        start=Start(0.0, 10.0),
    )
    link = Link(queue=queue, capacity=3750.0, packet_size=500.0, delay=rtt / 2 - 0.02, buffer=800.0)
    net = Network(links=(link,), flows=(flows,), flow_names=("ecn",))
    return Scenario(net, params["warm_s"], params["T_s"])


def _chain(params: dict[str, Any]) -> Scenario:
    """Family B: Reno flows over four routers, of which only the first manages its queue."""
    ecn, n, slow = bool(params["ecn"]), params["n"], 1.35e6 if params["cong"] else 1.5e6
    red: dict[str, Any] = {"min_th": 5.0, "max_th": 15.0, "p_max": 1 / 3, "w_q": 0.002}
    queue = RED(spreading=Wait(), **red)
    if params["aqm"] == "ARED":
        queue = AdaptiveRED(spreading=Wait(), target="band", **red)
    elif params["aqm"] == "PI":
        queue = _pi(10.0)
    elif params["aqm"] == "REM":
        queue = RateREM(q_ref=10.0)
    front = params["aqm"] == "REM"
    rates = (1.5e6, 1.5e6, slow, 1e7)
    delays = (0.01, 0.01, 0.01, 0.002)
    # ns-2's DropTail and REM count the packet that arrives
    buffers = (34.0 if front else 35.0, 34.0, 34.0, 34.0)
    links = tuple(
        Link(queue=law, capacity=rate / 8000, packet_size=1000.0, delay=delay, buffer=buffer)
        for law, rate, delay, buffer in zip(
            (queue, *[Droptail()] * 3), rates, delays, buffers, strict=True
        )
    )
    flows = Flows(
        window=Reno(max_window=100.0),
        n=np.array([float(n)]),
        rtt=np.array([2 * (0.002 + sum(delays)) + sum(ACK / rate for rate in (*rates, 1e7))]),
        reaction=OncePerRTT(),
        feedback=(MarkFront() if front else MarkTail()) if ecn else Loss(),
        route=(0, 1, 2, 3),
        access_delay=0.002,
        access_capacity=1250.0,
        start=Start(0.0, 1.0),
    )
    names = ("first", "second", "third", "last")
    net = Network(links=links, flows=(flows,), link_names=names, flow_names=("ecn",))
    return Scenario(net, 10.0, params["T"])


def _sack(params: dict[str, Any]) -> Scenario:
    """Family E without cross traffic: SACK over 45 Mbit/s with a buffer of one BDP.

    ns-2 chooses thresholds and weight of adaptive RED from the rate of the link; ACKs are 8 bytes
    longer there for each block they tell, which is left out.
    """
    rtts = np.array([float(rtt) for rtt in params["rtts"].split(",")]) / 1000
    bits, capacity = params["C_bps"], params["C_bps"] / 8000
    buffer = float(int(bits * max(rtts) / 8000))
    queue, feedback = Droptail(), Loss()
    if params["aqm"] == "RED":
        queue, feedback = RED(
            min_th=buffer / 6, max_th=buffer / 2, p_max=0.1, w_q=0.002, gentle=True,
            spreading=Wait(),
        ), MarkTail()  # fmt: skip
    elif params["aqm"] == "ARED":
        least = 0.005 * capacity / 2
        queue, feedback = AdaptiveRED(
            min_th=least, max_th=3 * least, p_max=0.1, w_q=1 - math.exp(-1 / capacity),
            lowest=min(0.01, 10 / capacity), gentle=True, spreading=Wait(), target="band",
        ), MarkTail()  # fmt: skip
    flows = Flows(
        window=SACK(max_window=20000.0),
        n=np.ones(len(rtts)),
        rtt=rtts + 8000 / (10 * bits) + 2 * ACK / (10 * bits) + ACK / bits,
        reaction=OncePerRTT(),
        feedback=feedback,
        access_delay=float(rtts[0]) / 2 - 0.003,
        access_capacity=10 * capacity,
        start=Start(0.0, 2.0),
        sender=(("overhead", 1 / capacity),),
    )
    link = Link(
        queue=queue, capacity=capacity, packet_size=1000.0, delay=0.002,
        buffer=buffer - 1 if params["aqm"] == "DropTail" else buffer,
    )  # fmt: skip
    net = Network(links=(link,), flows=(flows,), flow_names=("ecn",))
    return Scenario(net, params["warm"], params["T"])


def _sack_beside_files(params: dict[str, Any]) -> Scenario:
    """Family E: the same with Pareto files both ways, and a way back that drops at its tail."""
    case, bits = _sack(params), params["C_bps"]
    link, flows = case.net.links[0], case.net.flows[0]
    rtts = np.array([float(rtt) for rtt in params["rtts"].split(",")]) / 1000
    held = float(int(bits * max(rtts) / 8000)) - 1
    back = dataclasses.replace(link, queue=Droptail(), buffer=held)
    near = rtts / 2 - 0.003
    trips = rtts + (8000 + 2 * ACK) / (10 * bits)

    def group(members: slice, **changes: Any) -> Flows:
        given = {"n": np.ones(len(trips[members])), "rtt": trips[members]}
        given |= {"access_delay": float(near[members][0]), "reverse_route": (1,)}
        return dataclasses.replace(flows, **(given | changes))

    if len(set(rtts)) == 1:
        groups = {"ecn": group(slice(None))}
    else:
        groups = {f"flow{k}": group(slice(k, k + 1)) for k in range(len(rtts))}
    files = Files(arrivals=params["cross_load"] * bits / 240000, sizes="pareto", shape=1.2)
    cross = group(slice(1), traffic=files, sender=(), start=Start())
    groups["there"] = cross
    groups["back"] = dataclasses.replace(cross, route=(1,), reverse_route=(0,))
    names = ("bottleneck", "back")
    net = Network((link, back), tuple(groups.values()), link_names=names, flow_names=tuple(groups))
    return Scenario(net, case.warmup, case.until)


def scenario(family: str, params: dict[str, Any]) -> Scenario:
    """Scenario of a record of one of the files in `ns2/`."""
    if family.startswith("a_"):
        return _becn(params)
    if family.startswith("b_"):
        return _chain(params)
    if family.startswith("e_"):
        return _sack_beside_files(params) if params["cross_load"] > 0 else _sack(params)
    return _ecn_mod(params) if family.startswith("d_") else _sixty(params)
