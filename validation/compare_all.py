"""Every bundled scenario at every level of description: which level is how far from packets.

    uv run python validation/compare_all.py [PAPER or PAPER/SCENARIO ...] [--results FOLDER]
        [--table FILE.csv]

Each scenario goes through `fc.compare`: throughput, mean queue, queueing delay, marks, drops,
standard deviation and period of each queue, and queueing delays of routes, of the equilibria of
mean windows and of the population, of the fluid trajectory, and of trains and packets with their
95 % intervals. Runs last for some hundred round trips after a warm-up of several time constants of
the slowest law. For ten flows over an endless buffer, each with a start of its own, the trajectory
takes minutes and the equilibrium stands for it. A scenario takes 10 s of CPU time to a minute, most
of it to compile, and is kept as one JSON file in the folder of results: what is there is not run
again. The summary has the median errors where the fluid model says nothing against itself,
and elsewhere, and names what is wrong by more than 5 % (throughput) or 10 % (mean queue) untold;
queues below one packet in the mean are counted apart, in packets. Then it has the errors of every
level and of the recommended one, where a number that is refused is a miss, and the scenarios for
which no level below packets applies.
`validation/compare_all.csv` is the table of a whole run; the report of `fluidcc validate` shows it.
"""

import argparse
import csv
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fluidcc as fc
from fluidcc.bundled.validation.lab.beside import (
    BETWEEN,
    LEAST,
    LEVELS,
    WITHIN,
    Beside,
    judged,
    level_error,
    short_queues,
    with_mean,
)

SEEDS, MOST_SEEDS = 8, 40
JUDGED = {"queue": 0.10, "queue_std": 0.20, "mark_fraction": 0.06}  # relative tolerances
TRIPS = 200  # round trips that are measured
CONSTANTS = 5  # time constants, or forty samples, to settle in
SHORTEST, LONGEST = 40.0, 100.0  # s measured
GOALS = {"goodput": 0.05, "queue": 0.10}  # relative errors that the model should keep to
MOST_PACKETS = 3e6  # in a run, where rates are large
MOST_PACES = 9  # distinct round trips over an endless buffer whose trajectory is affordable


def slowest(net: fc.Network) -> float:
    """The longest time in which a queue law forgets [s], or 0."""
    times = [0.0]
    for link in net.links:
        law = link.queue
        w_q = float(getattr(law, "w_q", 1.0))
        if w_q < 1:
            times.append(-1 / (float(link.capacity) * math.log1p(-w_q)))
        times.append(8 * float(law.period() or 0.0))
    return max(times)


def duration(net: fc.Network, rest: fc.Equilibrium) -> tuple[float, float]:
    """Warm-up and end of the runs [s]."""
    trip = max(float(np.max(np.asarray(flows.rtt))) for flows in net.flows)
    queues = [link.queue / float(own.capacity) for own, link in with_links(net, rest)]
    trip += sum(q for q in queues if math.isfinite(q))
    begun = max(float(flows.start.high) for flows in net.flows)
    warmup = min(max(40 * trip, CONSTANTS * slowest(net), 10.0), 60.0)
    measured = min(max(TRIPS * trip, SHORTEST), LONGEST)
    packets = sum(float(link.capacity) for link in net.links) * (warmup + measured)
    shorter = min(1.0, MOST_PACKETS / packets)
    return begun + shorter * warmup, begun + shorter * (warmup + measured)


def with_links(net: fc.Network, rest: fc.Equilibrium) -> Iterator[tuple[fc.Link, Any]]:
    """Links of the fluid model with where they rest."""
    for name, found in rest.links.items():
        whole = net.by_group
        yield whole.links[whole.link_names.index(name)], found


def affordable(net: fc.Network) -> bool:
    """Whether a trajectory takes minutes at most: each pace of starts and delays has its past."""
    paces = sum(np.size(np.asarray(flows.rtt)) for flows in net.flows)
    return paces <= MOST_PACES or all(math.isfinite(float(link.buffer)) for link in net.links)


def seeds_needed(rows: list[dict[str, Any]]) -> int:
    """Seeds with which each interval should be a third of its tolerance, `MOST_SEEDS` at most."""
    shares = [0.0]
    for row in rows:
        kind = row["name"].rpartition(".")[2]
        if kind in JUDGED and (row["packets"] or 0.0) >= LEAST[kind]:
            shares.append(3 * row["ci95"] / (JUDGED[kind] * row["packets"]))
    return min(MOST_SEEDS, math.ceil(SEEDS * max(shares) ** 2))


def judge(name: str) -> dict[str, Any]:
    """The record of one scenario; if it failed, the error."""
    began = time.process_time()
    found: dict[str, Any] = {"scenario": name}
    try:
        net = fc.load(name)
        warmup, until = duration(net, fc.equilibrium(net))
        whole = affordable(net)
        seeds, needed = 0, SEEDS
        while needed > seeds:  # at most twice
            seeds, numbers = needed, tuple(range(1, needed + 1))
            both = fc.compare(net, until=until, warmup=warmup, seeds=numbers, trajectory=whole)
            found |= both.to_dict()
            needed = seeds_needed(found["rows"]) if seeds == SEEDS else seeds
        for engine in ("trains", "packets"):
            if found[engine] is not None:  # a network may be one that trains refuse
                found[engine] = {"seeds": seeds, "mean": found[engine]["mean"]}
    except Exception as error:  # one bad scenario must not hide the others
        found["error"] = f"{type(error).__name__}: {error}"
    jax.clear_caches()  # what was compiled for one scenario serves no other, and fills the memory
    return found | {"cpu_s": time.process_time() - began}


def kept(name: str, folder: Path) -> dict[str, Any]:
    """The record of a scenario, from its file where there is one."""
    file = folder / f"{name.replace('/', '-')}.json"
    if file.exists():
        return json.loads(file.read_text())
    found = judge(name)
    if "error" not in found:
        part = file.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1))
        part.rename(file)
    return found


def chosen(wanted: list[str]) -> list[str]:
    """Names of bundled scenarios, of some papers or of all; those with few groups first."""
    names = [n for n in with_mean() if not wanted or {n, n.split("/")[0]} & set(wanted)]
    return sorted(names, key=lambda name: len(fc.load(name).flows))


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The table of one scenario."""
    if "error" in found:
        yield f"{found['scenario']}: FAILED {found['error']}"
        return
    span = f"{found['warmup']:.4g} to {found['until']:.4g} s"
    yield f"{found['scenario']}: {found['equilibrium']['status']}, {span}"
    yield f"    level to trust: {found['level']} ({found['level_reason']})"
    shown = ("mean", "population", "trains", "fluid", "packets", "ci95")
    heads = " ".join(f"{name:>10s}" for name in ("mean", *shown[1:]))
    yield f"    {'':36s} {'':>7s} {heads}    error"
    for row in found["rows"]:
        text = " ".join("         -" if row[k] is None else f"{row[k]:10.4g}" for k in shown)
        off = row["recommended_difference"]
        error = "" if off is None else f"{off:+8.1%}"
        yield f"    {row['name']:36s} {row['unit']:>7s} {text} {error}"
    yield from (f"    outside: {reason}" for reason in found["validity_warnings"])


def quantities(found: dict[str, Any]) -> list[Beside]:
    """The quantities of a record as the report has them."""
    span = f"{found['warmup']:.4g} to {found['until']:.4g} s"
    where = (found["scenario"], span, found["equilibrium"]["status"])
    return [
        Beside(
            *where, row["name"], row["unit"],
            row["mean"] if row["fluid"] is None else row["fluid"],
            *(row[k] for k in ("packets", "ci95", "difference")), tuple(found["validity_warnings"]),
            row["mean"], row["population"], found["population"]["message"], row["trains"],
            row["trains_ci95"], row["recommended"], found["level"], found["level_reason"],
        )
        for row in found["rows"]
    ]  # fmt: skip


def errors(found: dict[str, Any], quantity: str) -> Iterator[tuple[str, float]]:
    """Relative errors of one kind of quantity by name, where packets have enough to compare."""
    for row in quantities(found):
        if row.kind == quantity and row.compares:
            yield row.quantity, row.difference


def write_table(records: list[dict[str, Any]], file: Path) -> None:
    """Write every quantity of every scenario as a line; what the model says against itself last."""
    numbers = (
        "mean", "population", "trains", "fluid", "packets", "ci95", "trains_ci95",
        "difference", "recommended",
    )  # fmt: skip
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, lineterminator="\n")
        heads = ("scenario", "from_s", "until_s", "status", "quantity", "unit", *numbers)
        table.writerow((*heads, "level", "level_reason", "refused", "validity_warnings"))
        for found in records:
            span = (f"{found['warmup']:.4g}", f"{found['until']:.4g}")
            where = (found["scenario"], *span, found["equilibrium"]["status"])
            reasons = list(found["validity_warnings"])
            if not settled(found) and not reasons:
                reasons = [found["fluid_message"]]
            for row in found["rows"]:
                cells = ("" if row[k] is None else f"{row[k]:.5g}" for k in numbers)
                level = found["level"], found["level_reason"]
                why = found["population"]["message"], BETWEEN.join(reasons)
                table.writerow((*where, row["name"], row["unit"], *cells, *level, *why))


def settled(found: dict[str, Any]) -> bool:
    """Whether the fluid model says nothing against itself."""
    return not found["validity_warnings"] and found["fluid_status"] in (None, "ok")


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Median errors within what the fluid model holds for, and beyond; what it misses untold."""
    done = [r for r in records if "error" not in r]
    parts = {"inside": [r for r in done if settled(r)], "validity_warnings": []}
    parts["validity_warnings"] = [r for r in done if not settled(r)]
    for name, part in parts.items():
        yield f"{name}: {len(part)} scenarios; median of the absolute errors, and how many"
        for quantity in GOALS | LEAST | {"period": None}:
            sizes = [abs(e) for r in part for _, e in errors(r, quantity)]
            if sizes:
                yield f"    {quantity:12s} {statistics.median(sizes):8.1%}  of {len(sizes)}"
        small = short_queues([row for record in part for row in quantities(record)])
        if small:
            ends = f"{statistics.median(small):.2g} packet, at most {max(small):.2g}"
            yield f"    queue < 1    {ends}, of {len(small)}"
    for record in parts["inside"]:
        for quantity, goal in GOALS.items():
            for name, error in errors(record, quantity):
                if abs(error) > goal:
                    yield f"untold: {record['scenario']} {name} {error:+.1%}"
    yield from by_level(done)
    yield from (f"failed: {r['scenario']}: {r['error']}" for r in records if "error" in r)


def by_level(done: list[dict[str, Any]]) -> Iterator[str]:
    """Errors of every level, and scenarios for which none below packets applies."""
    rows = [row for record in done for row in quantities(record)]
    yield f"levels: {len(done)} scenarios; median of the absolute errors, share of all within"
    heads = [f"{f'{kind} {most:.0%}':>22s}" for kind, most in WITHIN.items()]
    yield f"    {'':12s} {' '.join(heads)}"
    for level in LEVELS:
        cells = []
        for kind, most in WITHIN.items():
            found = level_error(judged(rows, kind), level, most)
            text = "-"
            if found is not None:
                middle = f"{found.median:.1%}" if found.known else "-"
                text = f"{middle} {found.within:.0%} ({found.known} of {found.count})"
            cells.append(f"{text:>22s}")
        yield f"    {level:12s} {' '.join(cells)}"
    none = [record for record in done if record["level"] == "packets"]
    yield f"no level below packets applies: {len(none)} scenarios"
    yield from (f"    {record['scenario']}: {record['level_reason']}" for record in none)


def main() -> int:
    """Print the tables and the summary; 1 if a scenario failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", help="papers or scenarios; all by default")
    parser.add_argument("--results", type=Path, default=Path("compare_all"), help="folder")
    parser.add_argument("--table", type=Path, help="write all numbers as CSV")
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    fc.fast_cpu()
    records = []
    for name in chosen(given.scenarios):
        records.append(kept(name, given.results))
        print("\n".join(lines(records[-1])), flush=True)
    print("\n".join(summary(records)))
    if given.table is not None:
        write_table([r for r in records if "error" not in r], given.table)
    return 1 if any("error" in r for r in records) else 0


if __name__ == "__main__":
    sys.exit(main())
