"""Which metric of the packets stands beside which quantity of the fluid model."""

from fluidcc.scenario.network import Network

_METRICS = {
    "links": {
        "utilization": "utilization", "queue": "system_mean", "marked": "mark_fraction",
        "dropped": "drop_fraction",
    },
    "flows": {"window": "window_mean", "rtt": "rtt_mean", "goodput": "goodput"},
}  # fmt: skip


def in_packets(net: Network, kind: str, owner: str, key: str) -> str | None:
    """The metric of `PacketRuns` that is the same thing in packets; None where there is none.

    The queue counts the packet in transmission, as the fluid model's does. The fluid model's link
    is what voice leaves of it, so that its utilization is of that.

    Parameters
    ----------
    net
        The network.
    kind, owner
        ``links`` or ``flows``, and the name of the link or group.
    key
        The quantity, such as ``queue``.
    """
    metric = _METRICS.get(kind, {}).get(key)
    if metric == "utilization" and net.links[net.link_names.index(owner)].voice is not None:
        return "utilization_left"
    return metric
