"""BBR beside CUBIC and Reno over buffers of 1/4 to 16 bandwidth-delay products, in packets.

    uv run python validation/bbr_mixes.py            # all mixes: minutes; writes bbr_mixes.csv
    uv run python validation/bbr_mixes.py --table    # the tables of models/cardwell2026 from it
    uv run python validation/bbr_mixes.py --held     # version 2 alone over 4 products: a minute

Shares of what the receivers get, the mean queue in bandwidth-delay products, and the share of
packets lost, from 60 to 300 s, the mean of two seeds: 40 Mbit/s and 40 ms, as in the scenarios.
The tables have the fluid model of `bbr_fluid.py` beside them.
"""

import csv
import itertools
import sys
from pathlib import Path

import fluidcc as fc
from fluidcc import ops
from fluidcc.laws import BBR3, Ack
from fluidcc.laws.law import State

ROOT = Path(__file__).parents[1]
TABLE, CARD = Path(__file__).with_suffix(".csv"), ROOT / "models/cardwell2026/cardwell2026.md"
FLUID = Path(__file__).with_name("bbr_fluid.csv")
BEGIN, END = "<!-- mixes -->", "<!-- end -->"
VERSIONS = {
    "1": {"law": "bbr"},
    "2": {
        "law": "bbr3",
        "down_gain": 0.75,
        "up_window_gain": 2,
        "up_limit": 1.25,
        "startup_gain": 2.89,
        "margin": 1,
    },
    "3": {"law": "bbr3"},
}
OTHERS = {"CUBIC": "cardwell2017/cubic", "Reno": "cardwell2026/reno"}
BUFFERS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # bandwidth-delay products
COUNTS = (1, 5)  # flows of each kind
COLUMNS = ("version", "other", "flows", "buffer", "share", "queue", "loss")
HEADS = {"1": "version 1", "1 least": "fluid", "1 renewed": "fluid, renewed",
         "2": "version 2", "2 least": "fluid", "2 renewed": "fluid, renewed",
         "3": "version 3"}  # fmt: skip


def product(net: fc.Network) -> float:
    """Packets that the path holds without a queue."""
    return float(net.links[0].capacity * net.flows[0].rtt[0])


def mix(version: str, other: str, count: int, buffer: float) -> fc.Network:
    """So many flows of BBR and of the other law, over a buffer in bandwidth-delay products."""
    net = fc.load(OTHERS[other])
    changes = {"link.buffer": round(buffer * product(net)), "flows.bbr.window": VERSIONS[version]}
    return fc.replace(net, changes | {f"flows.{name}.n": count for name in net.flow_names})


def measure(version: str, other: str, count: int, buffer: float) -> tuple[float, float, float]:
    """Share of BBR, queue over the bandwidth-delay product, and share of packets lost."""
    net = mix(version, other, count, buffer)
    runs = fc.simulate_packets(net, until=300.0, warmup=60.0, seeds=(1, 2)).to_xarray()
    goodput = runs.group_goodput.mean("seed").to_numpy()
    queue, loss = runs.link_queue_mean.mean().item(), runs.link_drop_fraction.mean().item()
    return goodput[0] / goodput.sum(), queue / product(net), loss


def rows(table: Path = TABLE) -> dict[tuple[str, ...], dict[str, str]]:
    """The lines of a CSV, by what comes before the share."""
    with table.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    keys = list(lines[0])[: list(lines[0]).index("share")]
    return {tuple(line[k] for k in keys): line for line in lines}


def tables() -> str:
    """Each mix as a table: a line a buffer; shares of BBR in %, queue, losses in %."""
    packets, fluid, lines = rows(), rows(FLUID), []
    for count, other in itertools.product(COUNTS, OTHERS):
        of = {1: "One flow", 5: "Five flows"}[count]
        lines += [f"{of} of BBR beside as many of {other}:", ""]
        lines += [f"| buffer | {' | '.join(HEADS.values())} |", "|---|" + "---|" * len(HEADS)]
        for buffer in BUFFERS:
            cells = []
            for head in HEADS:
                version, _, trip = head.partition(" ")
                key = (version, other, str(count), f"{buffer:g}")
                r = fluid[trip, *key] if trip else packets[key]
                share, queue, loss = (float(r[name]) for name in COLUMNS[4:])
                cells.append(f"{100 * share:.0f} %<br>{queue:.2f}<br>{100 * loss:.2f} %")
            lines += [f"| {buffer:g} | " + " | ".join(cells) + " |"]
        lines += [""]
    return "\n".join(lines)


def with_tables(card: str) -> str:
    """The card with the tables in their place."""
    before, rest = card.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{tables()}{END}{rest.split(END, 1)[1]}"


class Held(BBR3):
    """BBR whose flight stays at a product of its own estimates, but in probes for more."""

    name = "held"

    def observe(self, s: State, ack: Ack) -> State:
        """The rule, and then the bound."""
        change = super().observe(s, ack)
        at = ops.maximum(ops.maximum(s.newest, s.oldest) * s.least, self.min_window)
        free = (s.mode < 1.5) | ((s.mode > 4.5) & (s.mode < 5.5)) | (ack.count <= 0)
        excess = ops.maximum(s.window + change.window - ops.where(free, 1e9, at), 0.0)
        return change._replace(window=change.window - excess)


def alone(law: str, count: int) -> str:
    """Queue over the bandwidth-delay product of so many flows of version 2 over four products."""
    net = fc.load("cardwell2017/single")
    changes = {"link.buffer": round(4 * product(net)), "flow.n": count}
    net = fc.replace(net, changes | {"flow.window": {**VERSIONS["2"], "law": law}})
    runs = fc.simulate_packets(net, until=80.0, warmup=20.0, seeds=(1, 2, 3)).to_xarray()
    return f"{runs.link_queue_mean.mean().item() / product(net):.3f}"


def main(command: str = "") -> None:
    """Write the CSV, or the tables of the card, or tell the queues of version 2."""
    if command == "--held":
        fc.register(Held)
        for n in (2, 5, 10):
            found = f"{alone('held', n)}, as the rule is {alone('bbr3', n)}"
            print(f"{n} flows: published {(n - 1) / (4 * n + 1):.3f}, held {found}")
        return
    if command == "--table":
        CARD.write_text(with_tables(CARD.read_text(encoding="utf-8")), encoding="utf-8")
        return
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for key in itertools.product(VERSIONS, OTHERS, COUNTS, BUFFERS):
            share, queue, loss = measure(*key)
            out.writerow([*key[:3], f"{key[3]:g}", f"{share:.4f}", f"{queue:.4f}",
                          f"{loss:.5f}"])  # fmt: skip
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
