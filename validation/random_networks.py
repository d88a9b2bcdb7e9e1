"""A hundred random networks: what the population and its noise promise, beside packets.

    uv run python validation/random_networks.py [--chains] [--count 100] [--table FILE.csv]

One link with RED, PI or REM; one to three groups of NewReno flows with ECN or without, or of
ECN-mod flows; capacities of 2 to 200 Mbit/s, round trips of 10 to 200 ms, 4 to 30 packets a window.
Network number k is the same on every machine. Packets run with two seeds for 300 round trips, 20 s
at the least. Prints errors where the noise is not refused, and the share that is, with reasons.
`validation/random_networks.csv` is the table of a whole run, which takes four minutes.

With `--chains`, two or three links with RED, each with a queue: one group of flows passes all of
them, and each link has another of its own (`validation/random_chains.csv`, 40 networks).
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
COLUMNS = (
    "number", "law", "groups", "flows", "capacity", "status", "message", "warnings", "of",
    "quantity", "mean", "population", "packets", "ci95",
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
    return fc.Network(
        links=(fc.Link(queue=queue, capacity=capacity, buffer=round(8 * aim)),),
        flows=(fc.Flows(**draw_rules(rng), n=flows, rtt=np.sort(trips)),),
    )


def draw_rules(rng: np.random.Generator) -> dict[str, Any]:
    """Random rules of senders."""
    kind = rng.choice(["ecn", "losses", "ecn_mod"])
    law, reaction = (ECNMod(), PerMark()) if kind == "ecn_mod" else (NewReno(), OncePerRTT())
    feedback = Loss() if kind == "losses" else MarkTail()
    return {"window": law, "reaction": reaction, "feedback": feedback}


def draw_chain(number: int) -> fc.Network:
    """Random chain number `number`."""
    rng = np.random.default_rng(number)
    count = int(rng.integers(2, 4))
    capacities = float(np.exp(rng.uniform(np.log(500.0), np.log(10000.0)))) * rng.uniform(
        1.0, 1.5, count
    )
    trips = np.exp(rng.uniform(np.log(0.02), np.log(0.2), count + 1))  # the first of all links
    window, share = float(np.exp(rng.uniform(np.log(5.0), np.log(25.0)))), rng.uniform(0.2, 0.6)
    aims = np.maximum(20.0, rng.uniform(0.3, 1.0, count) * capacities * trips[1:])
    through = share * capacities.min() * (trips[0] + (aims / capacities).sum()) / window
    own = capacities - share * capacities.min()
    numbers = [through, *own * (trips[1:] + aims / capacities) / window]
    w_q = np.exp(rng.uniform(np.log(1e-5), np.log(2e-4), count))
    queues = [
        RED(
            min_th=0.4 * aim, max_th=1.6 * aim, p_max=3 / window**2, w_q=w, gentle=True,
            spreading=Wait(),
        )
        for aim, w in zip(aims.tolist(), w_q.tolist(), strict=True)
    ]  # fmt: skip
    rules, routes = draw_rules(rng), [tuple(range(count)), *((k,) for k in range(count))]
    return fc.Network(
        links=tuple(
            fc.Link(queue=queue, capacity=float(c), buffer=round(8 * float(aim)))
            for queue, c, aim in zip(queues, capacities, aims, strict=True)
        ),
        flows=tuple(
            fc.Flows(
                **rules, n=np.array([max(1.0, round(float(n)))]), rtt=np.array([trip]), route=route
            )
            for n, trip, route in zip(numbers, trips, routes, strict=True)
        ),
        link_names=tuple(f"link{k}" for k in range(count)),
        flow_names=("all", *(f"own{k}" for k in range(count))),
    )


def judge(net: fc.Network, number: int) -> Iterator[dict[str, Any]]:
    """Rows of one network: each quantity by means, by the population and of packets."""
    noise = fc.fluctuations(net)
    population, mean = noise.equilibrium, fc.equilibrium(net)
    waits = sum(
        population.links[name].queue / float(link.capacity)
        for name, link in zip(net.link_names, net.links, strict=True)
    )
    longest = max(float(np.max(flows.rtt)) for flows in net.flows) + 2 * waits
    capacity = float(max(link.capacity for link in net.links))
    until = min(max(TRIPS * longest, SHORTEST), max(MOST / capacity, 10 * longest))
    smallest = min(float(np.min(group.window)) for group in population.flows.values())
    speed = 2 / (longest * smallest)  # of windows
    warmup = max(0.2 * until, CONSTANTS * slowest(net), CONSTANTS / speed)
    runs = fc.simulate_packets(net, until=warmup + until, warmup=warmup, seeds=SEEDS)
    summary, first = runs.complete(), net.flows[0]
    where = {
        "number": number,
        "law": f"{net.links[0].queue.name}, {first.window.name}, {first.feedback.name}",
        "groups": sum(np.size(flows.rtt) for flows in net.flows),
        "flows": int(sum(np.sum(flows.n) for flows in net.flows)),
        "capacity": f"{capacity:.4g}", "status": noise.status, "message": noise.message,
        "warnings": " | ".join(validity_warnings(mean, noise=noise)),
    }  # fmt: skip
    signals = "drop_fraction" if first.feedback.name == "loss" else "mark_fraction"
    for name in net.link_names:
        found, wide = (part["links"][name] for part in (summary.mean, summary.ci95))
        std, variance = math.sqrt(found["number_in_system_var"]), wide["number_in_system_var"]
        both = [eq.links[name] for eq in (mean, population)]
        spread = noise.links[name].queue.std
        queue = "number_in_system_mean"
        for quantity, values, packets, ci95 in (
            ("queue", [link.queue for link in both], found[queue], wide[queue]),
            ("std", [None, spread], std, variance / (2 * std)),
            ("marks", [link.mark_probability for link in both], found[signals], wide[signals]),
        ):
            yield where | _row(name, quantity, values, packets, ci95)
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        bits = 8 * float(net.links[0].packet_size)
        rates = [
            bits * float(eq.flows[name].rate @ flows.n / np.sum(flows.n))
            for eq in (mean, population)
        ]
        found, wide = (part["flows"][name]["goodput"] for part in (summary.mean, summary.ci95))
        yield where | _row(name, "goodput", rates, found, wide)


def _row(of: str, quantity: str, values: list, packets: float, ci95: float) -> dict[str, Any]:
    mean, population = values
    return {
        "of": of, "quantity": quantity, "mean": mean, "population": population,
        "packets": packets, "ci95": ci95,
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
        "discontinuity",
        "end of its range",
    ):
        if words in message:
            return words
    return message.partition(":")[0]


def main() -> None:
    """Run the networks and print what is promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--count", type=int)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    fc.fast_cpu()
    rows = []
    make, count = (draw_chain, 40) if given.chains else (draw, 100)
    for number in range(given.count or count):
        own = list(judge(make(number), number))
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
