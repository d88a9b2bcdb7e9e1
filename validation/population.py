"""Mean queues and their spread by the population of windows, beside packets and ns-2.

    uv run python validation/population.py

Prints four tables, in six minutes: queues of the bundled scenarios whose groups all have a
stationary law, with packets from `compare_all.csv`; queues of ns-2's records of families a, d and
f; and windows of flows that are marked or lose packets with one probability, with packets run
anew; and more and more flows with a share of the link each that stays. Links count if packets have
more than one packet in their queue.
"""

import csv
import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from ns2_networks import scenario

import fluidcc as fc
from fluidcc.laws import ECNMod, NewReno, OncePerRTT, PerMark, Reno
from fluidcc.laws.law import AbstractQueueLaw, Arrival, Signal
from fluidcc.laws.parameters import param

HERE = Path(__file__).parent
RECORDS = ("a_homog", "d_ecnmod", "f_fluid")
TRIP, CAPACITY = 0.1, 1e6


class Row(NamedTuple):
    """A queue: its mean and standard deviation in packets, by the mean and by the population."""

    name: str
    packets: float
    std: float
    mean: float
    population: float
    noise: float
    note: str

    def errors(self) -> list[float]:
        """Relative errors of the mean, the population and the standard deviation."""
        queues = [value / self.packets - 1 for value in (self.mean, self.population)]
        return [*queues, self.noise / self.std - 1]


def row(name: str, net: fc.Network, link: str, packets: float, std: float) -> Row:
    """A link of a network beside packets."""
    found, mean = fc.fluctuations(net), fc.equilibrium(net)
    queue, population = (eq.links[link].queue for eq in (mean, found.equilibrium))
    note = "" if found.status == "regular" else found.message.partition(":")[0]
    return Row(name, packets, std, queue, population, found.links[link].queue.std, note)


def bundled() -> Iterator[Row]:
    """Links of bundled scenarios."""
    table: dict[tuple[str, str], float] = {}
    with (HERE / "compare_all.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            table[line["scenario"], line["quantity"]] = float(line["packets"] or math.nan)
    for name in dict.fromkeys(key[0] for key in table):
        net = fc.load(name)
        known = fc.equilibrium(fc.replace(net, {"model.closure": "population"}))
        if "does not hold for" in known.message:
            continue
        for link in known.links:
            queue = table.get((name, f"links.{link}.queue"), 0.0)
            if queue > 1:
                yield row(name, net, link, queue, table[name, f"links.{link}.queue_std"])


def records() -> Iterator[Row]:
    """Queues of ns-2's records."""
    for family in RECORDS:
        for own in json.loads((HERE / "ns2" / f"{family}.json").read_text()):
            mean, variance = (own["metrics"][f"q_pkts_{key}"]["mean"] for key in ("mean", "var"))
            net = scenario(family, own["params"]).net
            yield row(own["scenario"], net, net.link_names[0], mean, math.sqrt(variance))


class Constant(AbstractQueueLaw):
    """Marks or drops packets with one probability."""

    name: ClassVar[str] = "constant"
    source: ClassVar[str] = "validation/population.py"
    p: float = param(0.0, "p", unit="1", doc="probability of a mark", within="[0, 1]")
    d: float = param(0.0, "d", unit="1", doc="probability of a loss", within="[0, 1]")

    def signal(self, x: Any, seen: Arrival) -> Signal:
        """The same to all packets."""
        return Signal(self.p + 0.0 * seen.queue, self.d + 0.0 * seen.queue)


def constant() -> Iterator[tuple[str, float, float, float]]:
    """Laws under one probability: it, and the mean window in packets and of the population."""
    cases = {
        "NewReno, marks, once per round trip": (NewReno(), OncePerRTT(), "p"),
        "NewReno, losses": (NewReno(), OncePerRTT(), "d"),
        "Reno, every mark": (Reno(), PerMark(), "p"),
        "ECN-mod, every mark": (ECNMod(), PerMark(), "p"),
    }
    for name, (law, reaction, key) in cases.items():
        for p in (0.003, 0.01, 0.03, 0.06):
            link = fc.Link(queue=Constant(**{key: p}), capacity=CAPACITY)
            flows = fc.Flows(
                window=law, reaction=reaction, n=np.array([20.0]), rtt=np.array([TRIP])
            )
            net = fc.Network(links=(link,), flows=(flows,), closure="population")
            window = float(fc.equilibrium(net).flows["flows"].window[0])
            runs = fc.simulate_packets(net, until=320, warmup=20, seeds=(1, 2))
            yield name, p, float(runs.to_xarray()["group_window_mean"].mean()), window


def growing() -> Iterator[tuple[int, float, float, fc.Fluctuations, float]]:
    """More and more flows with 62.5 packet/s each under RED whose packets per flow and time
    constant stay: their number; packets' queue over it, and its standard deviation over its root;
    the population; the queue of mean windows over the number.
    """
    for n in (20, 40, 80, 160, 320):
        red = fc.laws.RED(min_th=1.0 * n, max_th=13.0 * n, p_max=0.1, w_q=0.002 / n)
        link = fc.Link(queue=red, capacity=62.5 * n, buffer=20.0 * n)
        flows = fc.Flows(window=NewReno(), n=np.array([float(n)]), rtt=np.array([0.15]))
        net = fc.Network(links=(link,), flows=(flows,))
        runs = fc.simulate_packets(net, until=360, warmup=60, seeds=range(1, 5)).to_xarray()
        mean, variance = (float(runs[f"link_queue_{key}"].mean()) for key in ("mean", "var"))
        noise = fc.fluctuations(fc.replace(net, {"model.closure": "population"}))
        (own,) = fc.equilibrium(net).links.values()
        yield n, mean / n, math.sqrt(variance / n), noise, own.queue / n


def show(title: str, rows: list[Row]) -> None:
    """Print a table, with the median errors of what is not refused."""
    print(f"\n| {title} | packets: mean, std | mean windows | population | noise: std | |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        mean, population, noise = r.errors()
        spread = "" if math.isnan(noise) else f"{r.noise:.3g} ({noise:+.0%})"
        print(
            f"| {r.name} | {r.packets:.4g}, {r.std:.3g} | {r.mean:.4g} ({mean:+.0%}) | "
            f"{r.population:.4g} ({population:+.0%}) | {spread} | {r.note} |"
        )
    regular = [r.errors() for r in rows if not r.note]
    medians = [statistics.median(map(abs, errors)) for errors in zip(*regular, strict=True)]
    within = [
        statistics.mean(abs(e) <= most for e in errors)
        for errors, most in zip(zip(*regular, strict=True), (0.1, 0.1, 0.2), strict=True)
    ]
    print(f"{len(regular)} of {len(rows)} are not refused; median errors of the mean, of the")
    print("population, of the standard deviation: " + ", ".join(f"{m:.1%}" for m in medians))
    print("within 10 %, 10 %, 20 %: " + ", ".join(f"{share:.0%}" for share in within))


def main() -> None:
    """Print the tables."""
    show("scenario", list(bundled()))
    show("record of ns-2", list(records()))
    print("\n| window under one probability | | packets | population |\n|---|---|---|---|")
    for name, p, packets, window in constant():
        print(f"| {name} | {p:g} | {packets:.4g} | {window:.4g} ({window / packets - 1:+.1%}) |")
    print("\n| flows | packets per flow: mean, std | mean windows | population | noise: std |")
    print("|---|---|---|---|---|")
    for n, mean, std, noise, own in growing():
        (queue,) = (link.queue for link in noise.links.values())
        population, spread = queue.mean / n, queue.std / math.sqrt(n)
        print(
            f"| {n} | {mean:.4g}, {std:.3g} | {own:.4g} ({own / mean - 1:+.1%}) | {population:.4g} "
            f"({population / mean - 1:+.1%}) | {spread:.3g} ({spread / std - 1:+.0%}) |"
        )


if __name__ == "__main__":
    main()
