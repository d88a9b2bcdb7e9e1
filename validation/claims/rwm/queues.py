"""What is told beside the claims on queues: where they rest, and how large windows may get."""

import fluidcc as fc

from ...lab.judging import told
from ...lab.measures import first_link
from .common import WINDOWS, in_words, queue


def rest(lab, name, persistence=None):
    """Equilibrium at the first point, of the ingress alone: the queues behind it are empty."""
    net = lab.experiment(name).net(0)
    if persistence is not None:
        net = fc.replace(net, {"flows.tcp.window.persistence": float(persistence)})
    return lab.ask(fc.equilibrium, first_link(net))


def resting(found, of="queue"):
    """Where the queue rests, in words; of a continuum there is no number."""
    if found["status"] == "continuum":
        return "anywhere within a range"
    value = told(found["links"]["ingress"][of], unit="packets")
    return value + {"discontinuity": " (saturated)"}.get(found["status"], "")


def persisting(lab, name, of="queue"):
    """The queue of RWM at rest at both ends of persistence, in words."""
    base = lab.under(None)
    ends = [resting(rest(base, name, persistence), of) for persistence in (0, 1)]
    return (
        f"with windows of 100 packets the {of} of {in_words(name)} at rest in the fluid model is "
        f"{ends[0]} where a modified ACK costs one packet of flight (persistence 0), {ends[1]} "
        f"where it costs all but one (persistence 1)"
    )


def by_windows(lab, *names):
    """Mean queues at the first point under each size of the receivers' windows, in words."""
    labs = [lab.under(reading) for reading in WINDOWS] + [lab.under(None)]
    listed = [
        f"{in_words(name)} " + ", ".join(f"{queue(each, name)[0].mean():.3g}" for each in labs)
        for name in names
    ]
    sizes = ", ".join(str(size) for size in WINDOWS.values())
    return (
        f"mean queues in packets, congestion windows not validated, with receivers' windows, which "
        f"are not stated, of {sizes} and 100 packets: {'; '.join(listed)}"
    )
