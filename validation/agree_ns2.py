"""Compare the packet engine with records of ns-2.35, metric by metric.

    uv run python validation/agree_ns2.py [FILE ...] [--table FILE.csv]

Two values agree if they differ by no more than sqrt(ci^2 + ci'^2), their joint 95% interval. As
many seeds are run as the record has; with hundreds of comparisons one in twenty misses by chance,
so a miss is run again once with four times the seeds, and then agrees or is listed as different,
with its reason. Everything takes about four CPU minutes. `validation/ns2/agreement.csv` has a whole
run; the tests make a part of it again.
"""

import argparse
import csv
import dataclasses
import functools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ns2_networks import scenario
from ns2_threshold import measured

from fluidcc.packets.run import simulate_packets

ALONE = 8  # seeds of ours beside a single run of ns-2
FOLDER = Path(__file__).parent / "ns2"
FILES = (
    "a_homog", "a_mix", "a_flows", "a_web", "b_rwm", "c_single", "c_ca", "c_multi", "c_front",
    "c_theorem", "d_ecnmod", "d_markpv", "d_voip", "e_bmcc", "e_sack", "f_fluid",
)  # fmt: skip

LINK = {
    "util": ("utilization", 1.0),
    "q_pkts_mean": ("queue_mean", 1.0),
    "q_pkts_var": ("queue_var", 1.0),
    "loss_pct": ("drop_fraction", 100.0),
    "mark_pct": ("mark_fraction", 100.0),
    "drop_frac": ("drop_fraction", 1.0),
    "loss_frac": ("drop_fraction", 1.0),
    "mark_frac": ("mark_fraction", 1.0),
    "aqm_q_pkts_mean": ("queue_mean", 1.0),
    "aqm_q_pkts_var": ("queue_var", 1.0),
    "aqm_loss_frac": ("drop_fraction", 1.0),
    "aqm_mark_frac": ("mark_fraction", 1.0),
    "voip_throughput_bps": ("voice_rate", 1.0),
    "voip_drop_frac": ("voice_loss_fraction", 1.0),
    "voip_calls_mean": ("voice_calls", 1.0),
}
COUNTS = {
    "necnresponses_total": "reactions",
    "ecn_responses_total": "reactions",
    "ecn_responses": "reactions",
    "timeouts_total": "timeouts",
    "timeouts": "timeouts",
}
CROSS = ("there", "back", "web")
FLOWS = {"goodput_flow0_bps": 0, "goodput_flow1_bps": 1}
THIRD = {"link3_q_pkts_mean": "queue_mean", "link3_drop_frac": "drop_fraction"}
DELAYS = {
    "delay_mean_s": "delay_mean",
    "delay_std_s": "delay_jitter",
    "jitter_consec_s": "delay_difference",
}
WEB = {
    "web_objects": "transfers",
    "web_obj_delay_mean": "transfer_mean",
    "web_obj_delay_median": "transfer_median",
    "web_obj_delay_p95": "transfer_95",
}
SETTINGS = {"mk": "red", "exact": 1, "bw_mbps": 1.5, "acc_mbps": 10, "TS_ms": None, "T": None}
THEOREM = ("max_queue_slow_start", "max_queue_whole_run", "rd", "rd_prop", "bound")
RECYCLED = "ns-2 takes agents again, and one that lost a SYN begins with 1 packet ever after"
TIES = "packets arrive and leave at the same instants: rounding decides which come first"
VIRTUAL = "ns-2's sum of unfinished work is a rounding error above T: with T + 1e-6 it gives ours"
PHASES = (
    "the phases of clocks decide about a third timeout: in 4 of 10 runs of ns-2, in 1 of 10 of ours"
)
CHANCE = "chance: the recorded seeds of ns-2 lie close together, more of them give"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One metric of one record."""

    record: str
    metric: str
    theirs: float
    their_ci: float
    ours: float
    our_ci: float
    seeds: int

    @property
    def joint(self) -> float:
        """Half width of the joint interval; rounding of the recorded value at least."""
        shown = abs(self.theirs) * 1e-5 + 1e-9  # the records have six digits
        return max(math.hypot(self.their_ci, self.our_ci), shown)

    @property
    def agrees(self) -> bool:
        """Whether the values differ by no more than their joint interval."""
        return abs(self.ours - self.theirs) <= self.joint


def _ours(params: dict[str, Any], metric: str, runs: dict, whole: dict) -> float | None:
    """Value in one part (`mean` or `ci95`) of our runs for a metric of the records."""
    links = runs["links"]
    groups = {name: group for name, group in runs["flows"].items() if name not in CROSS}
    first = links[next(iter(links))]
    if metric in LINK:
        name, factor = LINK[metric]
        return first[name] * factor
    if metric in WEB:
        return runs["flows"]["web"][WEB[metric]]
    if metric in THIRD:
        return links["third"][THIRD[metric]]
    if metric in DELAYS:
        return next(iter(groups.values()))[DELAYS[metric]]
    if metric in COUNTS:
        return whole["flows"][list(groups)[-1]][COUNTS[metric]] if len(groups) == 1 else None
    if metric == "goodput_mean_bps" and len(groups) == 1:
        return next(iter(groups.values()))["goodput"]
    if metric in ("goodput_ecn_mean_bps", "goodput_plain_mean_bps") and len(groups) == 2:
        return groups[metric.split("_")[1]]["goodput"]
    if metric in ("loss_pct_ecn", "loss_pct_plain") and (len(groups) == 2 or "web" in params):
        return groups[metric.split("_")[2]]["loss_fraction"] * 100
    if metric == "mark_pct_ecn" and (len(groups) == 2 or "web" in params):
        return groups["ecn"]["mark_fraction"] * 100
    if metric in FLOWS:
        return sum((group["goodput_flows"] for group in groups.values()), ())[FLOWS[metric]]
    if metric == "goodput_sum_bps" and len(groups) == 1:
        (group,) = groups.values()
        return group["goodput"] * len(group["goodput_flows"])
    if metric == "goodput_tcp_bps":
        return groups["ecn"]["goodput"] * params["n"]
    if metric == "goodput_pps_mean":
        return groups["ecn"]["goodput"] / 4000
    if metric == "jain" and len(groups) == 1:
        return next(iter(groups.values()))["jain"]
    if metric == "cwnd_mean":
        return groups["ecn"]["window_mean"]
    return None


def _both(
    family: str, record: dict[str, Any], count: int
) -> Iterator[tuple[str, float | None, float | None]]:
    """Name, mean and half width of our values for the metrics of a record, over `count` seeds."""
    params, seeds = record["params"], range(1, count + 1)
    if family.startswith("c_"):
        means, widths = measured(params, seeds)
        yield from ((metric, means.get(metric), widths.get(metric)) for metric in record["metrics"])
        return
    case = scenario(family, params)
    runs = simulate_packets(case.net, until=case.until, warmup=case.warmup, seeds=seeds)
    # ns-2 counts reactions from the start: the same runs once more, with all their statistics
    whole = simulate_packets(case.net, until=case.until, seeds=seeds)
    # a single run of theirs may lie anywhere where one of ours does
    wider = math.sqrt(count + 1) if len(record["seeds"]) == 1 else 1.0
    for metric in record["metrics"]:
        mean = _ours(params, metric, runs.mean, whole.mean)
        width = _ours(params, metric, runs.ci95, whole.ci95)
        yield metric, mean, None if width is None else wider * width


def compare(family: str, record: dict[str, Any], factor: int = 1) -> list[Comparison]:
    """Run a record's scenario with `factor` times its seeds and compare every metric."""
    count = len(record["seeds"]) * factor
    if count == 1 and not family.startswith("c_"):
        count = ALONE
    out = []
    for metric, mean, width in _both(family, record, count):
        if mean is None or width is None:
            continue
        value = record["metrics"][metric]
        widths = [0.0 if w is None or math.isnan(w) else w for w in (value["ci95"], width)]
        out.append(
            Comparison(record["scenario"], metric, value["mean"], widths[0], mean, widths[1], count)
        )
    return out


def judge(family: str, record: dict[str, Any]) -> list[Comparison]:
    """Comparisons of a record; what misses is run again once with four times the seeds."""
    found = compare(family, record)
    missed = {c.metric for c in found if not c.agrees}
    if not missed or len(record["seeds"]) == 1:  # a single run has no luck to repeat
        return found
    again = {c.metric: c for c in compare(family, record, 4) if c.metric in missed}
    return [again.get(c.metric, c) for c in found]


def records(family: str) -> list[dict[str, Any]]:
    """Records of a file; those of the theorem with the settings of the runs that they condense."""
    rows = json.loads((FOLDER / f"{family}.json").read_text())
    return [_condensed(row) for row in rows] if family == "c_theorem" else rows


@functools.cache
def _runs_of(family: str) -> dict[tuple, dict[str, Any]]:
    """Records of a file on the threshold, by their settings."""
    return {
        tuple(r["params"].get(name, default) for name, default in SETTINGS.items()): r
        for r in records(family)
    }


def _condensed(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the theorem as a record."""
    given = row | {"mk": row["marking"]}
    record = _runs_of(row["family"])[tuple(given[name] for name in SETTINGS)]
    told = {name: {"mean": row[name], "ci95": None, "n": 1} for name in THEOREM}
    return record | {"metrics": told}


TIED = {
    "C_single_bw1.5_acc10_TS200_exact1": (46,),
    "C_single_bw1.5_acc10_TS200_exact0": (46,),
    "C_vqfront_TS200": (46, 62),
    "C_ten_overlap_TS259_inf": (1,),  # 1e-7 s more round trip change ours as much
}
EDGE = ("B_trace150_RED-ECN_cong0_n4", "B_trace150_ARED-ECN_cong0_n4")
LUCKY = {
    ("A_flows_ecn_40ms_n10", "necnresponses_total"): f"{CHANCE} 4694 (6 to 17)",
    ("A_flows_ecn_40ms_n10", "timeouts_total"): f"{CHANCE} 6.2 (6 to 17)",
    ("C_ten_overlap_TS59_inf", "marks_10s"): PHASES,
    ("C_ten_overlap_TS59_B2rd", "timeouts"): f"{CHANCE} 2.7 (6 to 17)",
    ("C_ten_diffrtt_TS59_B2rd", "marks_100s"): f"{CHANCE} 2150 (6 to 17)",
    ("C_ten_overlap_TS259_B1rd", "timeouts"): f"{CHANCE} 10.2 (6 to 17)",
    ("A_homog_plain_40ms_n35", "q_pkts_mean"): f"{CHANCE} 32.99 (6 to 13)",
    ("D_fixedcap_markp_pmax0.2_N50", "goodput_tcp_bps"): f"{CHANCE} 4.816e6 (4 to 9)",
    ("E_fair_mix10_ARED_T20", "goodput_flow0_bps"): f"{CHANCE} 1.524e7 +- 0.021e7 (4 to 40)",
}


def reason(family: str, params: dict[str, Any], found: Comparison) -> str | None:
    """Known reason for a metric to differ."""
    if found.record in TIED and params["T"] in TIED[found.record]:
        return TIES
    if params.get("mk") == "vqtail":
        return VIRTUAL
    if found.metric == "web_obj_delay_median":
        return RECYCLED
    if found.record in EDGE and not found.their_ci:
        return "chance: seed 1 lies at the edge of seeds 1 to 9 of ns-2"
    return LUCKY.get((found.record, found.metric))


@dataclasses.dataclass(frozen=True)
class Row:
    """A comparison as it is printed and kept: `verdict` is agrees, differs or unexplained."""

    file: str
    record: str
    metric: str
    theirs: str
    their_ci: str
    ours: str
    our_ci: str
    seeds: int
    verdict: str
    reason: str

    def line(self) -> str:
        """The comparison under `HEADING`."""
        numbers = f"{self.theirs:>12} {self.their_ci:>9} {self.ours:>12} {self.our_ci:>9}"
        told = f"{self.verdict}: {self.reason}" if self.reason else self.verdict
        return f"{self.record:44} {self.metric:24} {numbers} {self.seeds:5d} {told}"


HEADING = f"{'record':44} {'metric':24} {'ns-2.35':>12} {'+-':>9} {'ours':>12} {'+-':>9} seeds"


def rows(family: str, record: dict[str, Any]) -> list[Row]:
    """What is told of each metric of a record."""
    found = []
    for c in judge(family, record):
        known = None if c.agrees else reason(family, record["params"], c)
        verdict = "agrees" if c.agrees else "differs" if known else "unexplained"
        numbers = (f"{c.theirs:.6g}", f"{c.their_ci:.3g}", f"{c.ours:.6g}", f"{c.our_ci:.3g}")
        found.append(Row(family, c.record, c.metric, *numbers, c.seeds, verdict, known or ""))
    return found


def summary(found: list[Row]) -> Iterator[str]:
    """How many comparisons there are, agree, differ for a named reason, and for none."""
    verdicts = ("agrees", "differs", "unexplained")
    yield f"{'file':12} {'comparisons':>12} {'agree':>7} {'differ':>7} {'unexplained':>12}"
    for family in (*dict.fromkeys(row.file for row in found), "all"):
        own = [row.verdict for row in found if family in (row.file, "all")]
        agree, differ, unexplained = (own.count(verdict) for verdict in verdicts)
        yield f"{family:12} {len(own):12d} {agree:7d} {differ:7d} {unexplained:12d}"


def write_table(found: list[Row], file: Path) -> None:
    """Write all comparisons as CSV."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(field.name for field in dataclasses.fields(Row))
        table.writerows(dataclasses.astuple(row) for row in found)


def main() -> int:
    """Print the table; the exit code is 1 if a difference has no known reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"of {', '.join(FILES)}; all by default")
    parser.add_argument("--table", type=Path, help="write all comparisons as CSV")
    given = parser.parse_args()
    files = given.files or FILES
    if unknown := set(files) - set(FILES):
        parser.error(f"expected files of {', '.join(FILES)}, got {', '.join(sorted(unknown))}")
    found: list[Row] = []
    print(HEADING)
    for family in files:
        for record in records(family):
            for row in rows(family, record):
                found.append(row)
                print(row.line(), flush=True)
    print("\n".join(summary(found)))
    if given.table is not None:
        write_table(found, given.table)
    return 1 if any(row.verdict == "unexplained" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
