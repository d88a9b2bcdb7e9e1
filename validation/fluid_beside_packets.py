"""The fluid model beside the packets: where the mean field holds, and where it fails.

    python validation/fluid_beside_packets.py [names of families]

Each scenario runs in both engines from one definition of its laws. The queue laws are judged by
flows whose mean the fluid model has right; the window laws under PI, which keeps the queue where it
is told to, so that every law is asked for the signal that it needs at the same window. Windows and
numbers of flows then fall. The table gives fluid, packets with their 95 % interval, and the error
of the fluid model relative to the packets. Everything takes about two minutes on two cores.
"""

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import AbstractQueueLaw
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.rem import REM
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, Pause, PerMark, Refractory
from fluidcc.laws.window.becn import BECN
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.reno import Reno
from fluidcc.packets.run import simulate_packets
from fluidcc.results.compare import compare
from fluidcc.results.levels import WITHOUT_TRAINS
from fluidcc.scenario.network import Flows, Link, Network, Start

PER_FLOW = 62.5  # packet/s
TRIP = 0.2  # s, without the queue
FLOWS = 60
SEEDS = (1, 2, 3, 4)


@dataclasses.dataclass(frozen=True)
class Case:
    """One scenario in both engines."""

    family: str
    law: str
    scenario: str
    net: Network
    moving: bool = False  # compare means of the trajectory, not the equilibrium
    until: float = 200.0
    warmup: float = 80.0


@dataclasses.dataclass(frozen=True)
class Row:
    """One quantity of a case."""

    case: Case
    quantity: str
    fluid: float
    packets: float
    ci95: float

    @property
    def error(self) -> float:
        """Error of the fluid model relative to the packets."""
        return self.fluid / self.packets - 1


def network(
    queue: AbstractQueueLaw, *, capacity: float = PER_FLOW * FLOWS, **flows: Any
) -> Network:
    """Sources 10 ms before a link of 500-byte packets; 62.5 packet/s for each of 60 flows."""
    given: dict[str, Any] = {
        "window": NewReno(max_window=1e4),
        "n": np.array([float(FLOWS)]),
        "rtt": np.array([TRIP]),
        "reaction": OncePerRTT(),
        "access_delay": 0.01,
        "start": Start(0.0, 5.0),
    }
    link = Link(queue=queue, capacity=capacity, packet_size=500.0, delay=0.09, buffer=800.0)
    return Network(links=(link,), flows=(Flows(**(given | flows)),))


def control(flows: float = FLOWS, queue: float = 175.0) -> PI:
    """PI of Hollot et al. (2001), its gain scaled with the plant's: by the square of the flows."""
    return PI(q_ref=queue, k_pi=9.64e-6 * (flows / 60) ** 2)


def queue_laws() -> Iterator[Case]:
    """Queue laws under flows with small steps, each of which hears every mark."""
    mod: dict[str, Any] = {"window": ECNMod(c1=0.0625, c2=0.0625), "reaction": PerMark()}
    laws = (
        RED(min_th=100.0, max_th=300.0, p_max=0.2, w_q=1e-4),
        AdaptiveRED(min_th=100.0, max_th=300.0, w_q=1e-4),
        PI(),
        REM(q_ref=150.0),
        AVQ(),
    )
    for law in laws:
        yield Case("queues", law.name, "ecn_mod flows", network(law, **mod))
    for law in (Threshold(at=150.0), BLUE(threshold=200.0)):
        yield Case("queues", law.name, "ecn_mod flows, cycles", network(law, **mod), moving=True)


def window_laws() -> Iterator[Case]:
    """Window laws and their reactions at a window of 15 packets."""
    quenched: dict[str, Any] = {"window": BECN(), "feedback": Backward()}
    laws: dict[tuple[str, str], dict[str, Any]] = {
        ("ecn_mod", "every mark counts"): {"window": ECNMod(), "reaction": PerMark()},
        ("reno", "every mark counts"): {"window": Reno(), "reaction": PerMark()},
        ("newreno", "one reaction per window"): {},
        ("newreno", "the same, growth on echoes"): {"sender": (("grow_on_echo", True),)},
        ("newreno", "refractory"): {"reaction": Refractory()},
        ("becn", "original"): quenched | {"reaction": PerMark(growth="all")},
        ("becn", "pause"): quenched | {"reaction": Pause()},
        ("dctcp", "one reaction per window"): {"window": DCTCP()},
    }
    for (law, scenario), changes in laws.items():
        yield Case("windows", law, scenario, network(control(), **changes))
    quick = PI(q_ref=175.0, k_pi=1e-3, z=5.0)  # a modified ACK acts after 20 ms
    for most in (17.0, 20.0, 25.0):
        changes = {"window": NewReno(max_window=most), "feedback": ReceiverWindow()}
        yield Case(
            "windows", "newreno", f"receiver_window, cwnd of {most:g}", network(quick, **changes)
        )


def low_windows() -> Iterator[Case]:
    """Windows of TCP that fall, under marks and under losses."""
    growing = (("grow_on_echo", True),)
    for name, feedback, sender in (
        ("ECN", MarkTail(), ()),
        ("ECN, growth on echoes", MarkTail(), growing),
        ("losses", Loss(), ()),
    ):
        for n in (60, 120, 240, 400):
            window = (TRIP * PER_FLOW * FLOWS + 175.0) / n
            net = network(control(n), n=np.array([float(n)]), feedback=feedback, sender=sender)
            yield Case("low", "newreno", f"{name}, window {window:.1f}", net)


def few_flows() -> Iterator[Case]:
    """The same share of a link for fewer and fewer flows."""
    mod: dict[str, Any] = {"window": ECNMod(c1=0.0625, c2=0.0625), "reaction": PerMark()}
    for n in (30, 10, 3, 1):
        law = RED(
            min_th=100.0 * n / FLOWS, max_th=300.0 * n / FLOWS, p_max=0.2, w_q=1e-4 * FLOWS / n
        )
        net = network(law, capacity=PER_FLOW * n, n=np.array([float(n)]), **mod)
        yield Case("few", "ecn_mod", f"{n} flows over red", net, until=800.0)


FAMILIES = {"queues": queue_laws, "windows": window_laws, "low": low_windows, "few": few_flows}


def measure(case: Case) -> list[Row]:
    """Queue, share of packets with a signal, and goodput of a case in both engines."""
    if case.moving:
        both = compare(
            case.net, until=case.until, warmup=case.warmup, seeds=SEEDS, levels=WITHOUT_TRAINS
        )
        rows = {r.name.split(".")[2]: r for r in both.rows}
        wanted = (rows["queue"], rows["mark_fraction"], rows["utilization"])
        return [
            Row(case, r.name.split(".")[2], r.fluid or 0.0, r.packets or 0.0, r.ci95 or 0.0)
            for r in wanted
        ]
    rest = equilibrium(case.net)
    runs = simulate_packets(case.net, until=case.until, warmup=case.warmup, seeds=SEEDS)
    mean, width = (part["links"]["bottleneck"] for part in (runs.mean, runs.ci95))
    link = rest.links["bottleneck"]
    told = "drop_fraction" if case.net.flows[0].feedback.name == "loss" else "mark_fraction"
    return [
        Row(
            case, "queue", link.queue, mean["number_in_system_mean"], width["number_in_system_mean"]
        ),
        Row(case, "signal", link.mark_probability, mean[told], width[told]),
        Row(case, "utilization", link.utilization, mean["utilization"], width["utilization"]),
    ]


def main(families: list[str]) -> None:
    """Print the table."""
    print(
        f"{'family':8} {'law':13} {'scenario':30} {'quantity':12} {'fluid':>10} {'packets':>10} "
        f"{'+-':>8} {'error':>8}"
    )
    for name in families:
        for case in FAMILIES[name]():
            for row in measure(case):
                print(
                    f"{case.family:8} {case.law:13} {case.scenario:30} {row.quantity:12} "
                    f"{row.fluid:10.5g} {row.packets:10.5g} {row.ci95:8.2g} {row.error:8.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:] or list(FAMILIES))
