"""A hundred random networks: what the population and its noise promise, beside packets.

    uv run python validation/random_networks.py [--count 100] [--table FILE.csv]

One link with RED, PI or REM; one to three groups of NewReno flows with ECN or without, or of
ECN-mod flows; capacities of 2 to 200 Mbit/s, round trips of 10 to 200 ms, 4 to 30 packets a window.
Network number k is the same on every machine. Packets run with two seeds for 300 round trips, 20 s
at the least. Prints errors where the noise is not refused, and the share that is, with reasons.
`validation/random_networks.csv` is the table of a whole run, which takes four minutes.
"""

import argparse
import collections
import csv
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from compare_all import CONSTANTS, slowest

import fluidcc as fc
from fluidcc.analysis.validity import validity_warnings
from fluidcc.laws import PI, RED, REM, ECNMod, Loss, MarkTail, NewReno, OncePerRTT, PerMark, Wait

SEEDS = (1, 2)
TRIPS, SHORTEST, MOST = 300, 20.0, 1.5e6  # round trips, s, packets
PHI, INTERVAL = 1.001, 0.002  # of REM, the second in s
GOALS = {"queue": 0.10, "std": 0.20, "marks": 0.10, "goodput": 0.05}
PROMISED = {"queue": 0.10, "goodput": 0.05}  # by mean windows without validity warnings
KEYS = (("links", "bottleneck"), ("flows", "flows"))
COLUMNS = (
    "number", "law", "groups", "flows", "capacity", "status", "message", "warnings", "quantity",
    "mean", "population", "packets", "ci95",
)  # fmt: skip


def draw(number: int) -> fc.Network:
    """Random network number `number`."""
    rng = np.random.default_rng(number)
    capacity = float(np.exp(rng.uniform(np.log(250.0), np.log(25000.0))))  # packets of 1000 B
    trips = np.exp(rng.uniform(np.log(0.01), np.log(0.2), rng.integers(1, 4)))
    window = float(np.exp(rng.uniform(np.log(4.0), np.log(30.0))))
    pipe = capacity * float(trips.mean())
    aim = max(10.0, float(rng.uniform(0.2, 1.0)) * pipe)  # packets in the queue
    flows = np.maximum(np.round((pipe + aim) / window / len(trips) * np.ones(len(trips))), 1.0)
    law = rng.choice(["red", "pi", "rem"])
    if law == "red":
        w_q = float(np.exp(rng.uniform(np.log(1e-5), np.log(2e-3))))
        queue: Any = RED(
            min_th=0.4 * aim, max_th=1.6 * aim, p_max=float(rng.uniform(0.05, 0.4)), w_q=w_q,
            gentle=True, spreading=Wait(),
        )  # fmt: skip
    else:  # the design of Hollot et al. (2001) for these flows
        trip = (pipe + aim) / capacity
        speed = 2 / (window * trip)
        gain = speed * math.hypot(1, speed * trip) * 4 / (trip * capacity * window**2)
        queue = PI(q_ref=aim, k_pi=gain, z=speed)
        if law == "rem":
            gamma = gain / (speed * math.log(PHI))
            queue = REM(q_ref=aim, gamma=gamma, alpha=speed * INTERVAL, phi=PHI, interval=INTERVAL)
    kind = rng.choice(["ecn", "losses", "ecn_mod"])
    window_law, reaction = (ECNMod(), PerMark()) if kind == "ecn_mod" else (NewReno(), OncePerRTT())
    feedback = Loss() if kind == "losses" else MarkTail()
    return fc.Network(
        links=(fc.Link(queue=queue, capacity=capacity, buffer=round(8 * aim)),),
        flows=(
            fc.Flows(
                window=window_law, reaction=reaction, feedback=feedback, n=flows, rtt=np.sort(trips)
            ),
        ),
    )


def judge(number: int) -> Iterator[dict[str, Any]]:
    """Rows of one network: each quantity by means, by the population and of packets."""
    net = draw(number)
    link, flows = net.links[0], net.flows[0]
    noise = fc.fluctuations(net)
    population, mean = noise.equilibrium, fc.equilibrium(net)
    longest = float(np.max(flows.rtt)) + 2 * population.links["bottleneck"].queue / link.capacity
    until = min(max(TRIPS * longest, SHORTEST), max(MOST / link.capacity, 10 * longest))
    speed = 2 / (longest * float(np.min(population.flows["flows"].window)))  # of windows
    warmup = max(0.2 * until, CONSTANTS * slowest(net), CONSTANTS / speed)
    runs = fc.simulate_packets(net, until=warmup + until, warmup=warmup, seeds=SEEDS)
    summary = runs.complete()
    where = {
        "number": number, "law": f"{link.queue.name}, {flows.window.name}, {flows.feedback.name}",
        "groups": np.size(flows.rtt), "flows": int(np.sum(flows.n)),
        "capacity": f"{link.capacity:.4g}", "status": noise.status, "message": noise.message,
        "warnings": " | ".join(validity_warnings(mean, noise=noise)),
    }  # fmt: skip
    bits = 8 * float(link.packet_size)
    found = {
        "queue": [eq.links["bottleneck"].queue for eq in (mean, population)],
        "std": [None, noise.links["bottleneck"].queue.std],
        "marks": [eq.links["bottleneck"].mark_probability for eq in (mean, population)],
        "goodput": [
            bits * float(eq.flows["flows"].rate @ flows.n / np.sum(flows.n))
            for eq in (mean, population)
        ],
    }
    links, groups = (summary.mean[kind][name] for kind, name in KEYS)
    wide = [summary.ci95[kind][name] for kind, name in KEYS]
    std, variance = math.sqrt(links["number_in_system_var"]), wide[0]["number_in_system_var"]
    lossy = flows.feedback.name == "loss"
    signals = "drop_fraction" if lossy else "mark_fraction"
    packets = {
        "queue": (links["number_in_system_mean"], wide[0]["number_in_system_mean"]),
        "std": (std, variance / (2 * std)),
        "marks": (links[signals], wide[0][signals]),
        "goodput": (groups["goodput"], wide[1]["goodput"]),
    }
    for quantity, values in found.items():
        yield where | {
            "quantity": quantity, "mean": values[0], "population": values[1],
            "packets": packets[quantity][0], "ci95": packets[quantity][1],
        }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Errors of what is not refused, and reasons of what is."""
    numbers = {row["number"]: row for row in rows}
    refused = [row for row in numbers.values() if row["status"] != "regular"]
    yield f"{len(refused)} of {len(numbers)} are refused:"
    reasons = collections.Counter(reason(row["message"]) for row in refused)
    yield from (f"    {count:3d} {why}" for why, count in reasons.most_common())
    for quantity, goal in GOALS.items():
        known = [
            row for row in rows
            if row["quantity"] == quantity and row["status"] == "regular"
            and (quantity not in ("queue", "std") or row["packets"] > 1)
        ]  # fmt: skip
        for level in ("mean", "population"):
            errors = [abs(row[level] / row["packets"] - 1) for row in known if row[level]]
            if errors:
                within = statistics.mean(e <= goal for e in errors)
                yield (
                    f"{quantity:8s} {level:10s} median {statistics.median(errors):6.1%}, worst "
                    f"{max(errors):6.1%}, within {goal:.0%}: {within:.0%} of {len(errors)}"
                )


def warned(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Errors of mean windows where they say nothing against themselves."""
    for quantity, goal in PROMISED.items():
        errors = [
            abs(row["mean"] / row["packets"] - 1) for row in rows
            if row["quantity"] == quantity and not row["warnings"]
        ]  # fmt: skip
        if errors:
            within = sum(e <= goal for e in errors)
            yield (
                f"{quantity:8s} mean, without warnings: worst {max(errors):6.1%}, within "
                f"{goal:.0%}: {within} of {len(errors)}"
            )


def reason(message: str) -> str:
    """A refusal without its numbers."""
    for words in (
        "unstable",
        "as near as",
        "often empties",
        "often fills",
        "timers",
        "jump",
        "end of its range",
    ):
        if words in message:
            return words
    return message.partition(":")[0]


def main() -> None:
    """Run the networks and print what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    fc.fast_cpu()
    rows = []
    for number in range(given.count):
        own = list(judge(number))
        rows += own
        text = ", ".join(f"{r['quantity']} {r['population']:.4g} {r['packets']:.4g}" for r in own)
        print(
            f"{number} {own[0]['law']}: {own[0]['status']} {own[0]['message']} {text}", flush=True
        )
    if given.table is not None:
        with given.table.open("w", newline="", encoding="utf-8") as out:
            table = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            table.writeheader()
            for row in rows:
                table.writerow(
                    {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
                )
    print("\n".join([*summary(rows), *warned(rows)]))


if __name__ == "__main__":
    main()
