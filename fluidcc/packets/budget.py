"""Estimates of what packet runs take: time, memory and disk. Runs for which there is too little
memory or disk are refused before they start. Times of trains are in `fluidcc.trains.layout`, those
of trajectories in `fluidcc.model.simulate`.
"""

import math
import shutil
from pathlib import Path

import numpy as np

from fluidcc import memory
from fluidcc.machine import threads
from fluidcc.packets.plan import PacketError, Plan
from fluidcc.scenario.network import Network

_PER_SECOND = 2.5e6  # packets at links, by one processor, as measured for 25 flows at one link
_LINE, _CAPTURED = 60, 56  # bytes of a line of a trace, and of a captured packet
_METRICS = 100  # bytes of the metrics of a flow, of one run


def _rates(net: Network) -> tuple[np.ndarray, np.ndarray]:
    """Packets a second of each group, and of each link with its cross traffic, if these are as full
    as windows, files and capacities allow.
    """
    capacities = np.array([float(link.capacity) for link in net.links])
    at_links = np.array([min(float(k.cross), float(k.capacity)) for k in net.links])
    sent = []
    for flows in net.flows:
        windows = np.sum(np.asarray(flows.n) * float(flows.window.max_window) / flows.rtt)
        load = flows.traffic.load()
        files = math.inf if load is None else float(load) * float(np.sum(flows.n))
        sent.append(min(windows, files, *capacities[list(flows.route)]))
        at_links[list(flows.route)] += sent[-1]
    shares = np.minimum(capacities / np.maximum(at_links, 1e-300), 1.0)
    passed = [min(shares[list(flows.route)]) for flows in net.flows]
    return np.array(sent) * passed, at_links * shares


def packet_time(net: Network, until: float, runs: int) -> float:
    """About how long packet runs take on the processors of this machine [s], if the links are as
    full as windows, files and capacities allow.
    """
    return float(_rates(net)[1].sum()) * until * math.ceil(runs / threads()) / _PER_SECOND


def trace_size(net: Network, span: float, captured: bool) -> float:
    """About how large a trace is [B]: of every event, or `captured` at the senders."""
    groups, links = _rates(net)
    if captured:
        return 2 * _CAPTURED * span * float(groups.sum())
    back = sum(
        rate * len(flows.reverse_route) for rate, flows in zip(groups, net.flows, strict=True)
    )
    # a packet is sent, received and acknowledged, which moves a window; it enters and leaves links
    return _LINE * span * float(4 * groups.sum() + 2 * links.sum() + 2 * back)


def require(plan: Plan, span: float, runs: int, trace: Path | None) -> None:
    """Raise PacketError, with advice, if runs of `span` seconds take more than there is: memory for
    the metrics of all flows and runs, or disk for a trace.
    """
    flows = len(plan.flows)
    try:
        memory.require(
            _METRICS * flows * runs,
            f"metrics of {flows} flows in {runs} runs",
            "take fewer seeds, or flows",
            memory.free(),
        )
    except memory.TooLittleMemory as error:
        raise PacketError(str(error)) from None
    if trace is None or not trace.parent.is_dir():
        return
    size = trace_size(plan.net, span, trace.suffix == ".pcap")
    room = shutil.disk_usage(trace.parent).free
    if size > room:
        text = f"about {memory.as_text(size)}, and {memory.as_text(room)} are free"
        other = "" if trace.suffix == ".pcap" else ", or a capture (.pcap)"
        raise PacketError(
            f"trace: '{trace}' would take {text}: trace a shorter run, from a saved state{other}"
        )
