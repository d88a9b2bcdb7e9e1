"""Trains of packets beside the records of ns-2.35: mean queue, its spread, marks and losses.

    uv run python validation/trains_ns2.py [FILE ...] [--table FILE.csv]

Each record is run by trains with as many seeds as it has, eight at least if it is random. Queues
count from one packet on. Everything takes half an hour; `ns2/trains.csv` has a whole run.
Families b and e were not looked at while trains were built; c, one flow at a threshold, is of
packets alone.
"""

import argparse
import csv
import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agree_ns2 import ALONE, drawn, records
from ns2_networks import scenario

import fluidcc as fc
from fluidcc.packets.plan import PacketError

FILES = (
    "a_homog", "a_mix", "a_flows", "a_web", "b_rwm", "d_ecnmod", "d_markpv", "d_unmarked", "d_voip",
    "e_bmcc", "e_long", "e_sack", "f_fluid",
)  # fmt: skip
NAMES = {
    "mean": ("q_pkts_mean", "aqm_q_pkts_mean"), "var": ("q_pkts_var", "aqm_q_pkts_var"),
    "mark": ("mark_pct", "mark_frac", "aqm_mark_frac"),
    "loss": ("loss_pct", "drop_frac", "loss_frac", "aqm_loss_frac"),
}  # fmt: skip
WITHIN = {"mean": 0.10, "std": 0.20, "mark": 0.06, "loss": 0.20}
LEAST = {"mean": 1.0, "std": 0.0, "mark": 1e-3, "loss": 1e-3}


class Row(NamedTuple):
    """One quantity of one record: ns-2's value, ours, and the relative error."""

    file: str
    record: str
    quantity: str
    theirs: float
    ours: float
    message: str = ""

    @property
    def error(self) -> float:
        """Relative error."""
        return self.ours / self.theirs - 1


def _recorded(record: dict[str, Any], kind: str) -> float:
    for name in NAMES[kind]:
        if name in record["metrics"]:
            value = record["metrics"][name]["mean"]
            return value / 100 if name.endswith("pct") else value
    return math.nan


def rows(family: str, record: dict[str, Any]) -> Iterator[Row]:
    """The quantities of a record that count."""
    case = scenario(family, record["params"])
    count = max(len(record["seeds"]), ALONE) if drawn(record) else 1
    theirs = {kind: _recorded(record, kind) for kind in NAMES}
    theirs["std"] = math.sqrt(theirs.pop("var"))
    ours, message = dict.fromkeys(theirs, math.nan), ""
    try:
        runs = fc.simulate_trains(
            case.net, until=case.until, warmup=case.warmup, seeds=range(1, count + 1)
        )
    except PacketError as error:
        message = str(error)
    else:
        link = next(iter(runs.mean["links"].values()))
        ours = {
            "mean": link["queue_mean"], "std": math.sqrt(link["queue_var"]),
            "mark": link["mark_fraction"], "loss": link["drop_fraction"],
        }  # fmt: skip
    for kind, value in theirs.items():
        counts = theirs["mean"] >= 1 if kind in ("mean", "std") else value >= LEAST[kind]
        if counts and math.isfinite(value):
            yield Row(family, record["scenario"], kind, value, ours[kind], message)


def summary(found: list[Row]) -> Iterator[str]:
    """Median errors and shares within the tolerances, by file and in all."""
    for family in (*dict.fromkeys(row.file for row in found), "all"):
        own = [row for row in found if family in (row.file, "all")]
        parts = []
        for kind, most in WITHIN.items():
            errors = [abs(r.error) for r in own if r.quantity == kind]
            sizes = [math.inf if math.isnan(e) else e for e in errors]
            if sizes:
                share = statistics.mean(e <= most for e in sizes)
                parts.append(
                    f"{kind} {statistics.median(sizes):6.1%}, {share:4.0%} within {most:.0%}"
                )
        yield f"{family:10s} {len({r.record for r in own}):4d} records  " + "   ".join(parts)


def main() -> int:
    """Print the rows and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"of {', '.join(FILES)}; all by default")
    parser.add_argument("--table", type=Path, help="write all rows as CSV")
    given = parser.parse_args()
    found: list[Row] = []
    for family in given.files or FILES:
        for record in records(family):
            for row in rows(family, record):
                found.append(row)
                cells = f"{row.theirs:11.5g} {row.ours:11.5g} {row.error:+8.1%}"
                print(
                    f"{row.file:10s} {row.record:40.40s} {row.quantity:5s} {cells} {row.message}",
                    flush=True,
                )
    print("\n".join(summary(found)))
    if given.table is not None:
        with given.table.open("w", newline="", encoding="utf-8") as out:
            table = csv.writer(out, lineterminator="\n")
            table.writerow((*Row._fields[:-1], "error", "message"))
            for row in found:
                numbers = (f"{v:.6g}" for v in (row.theirs, row.ours, row.error))
                table.writerow((row.file, row.record, row.quantity, *numbers, row.message))
    return 0


if __name__ == "__main__":
    sys.exit(main())
