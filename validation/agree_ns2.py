"""Compare the packet engine with records of ns-2.35, metric by metric.

    uv run python validation/agree_ns2.py [FILE ...] [--table FILE.csv]

Two values agree if they differ by no more than sqrt(ci^2 + ci'^2), their joint 95% interval. As
many seeds are run as the record has; with hundreds of comparisons one in twenty misses by chance,
so a miss is run again once with four times the seeds. What misses then has a reason if a test of
this very number bears it out, or is unexplained:

* chance, first random numbers, rounding errors, agents used again: runs of ns-2 with other seeds or
  with one thing changed, kept in `ns2/again.json`, agree with ours;
* ties, where rounding decides which of two packets comes first: with the satellite links some
  1e-7 s longer or shorter ours gives every number of the record;
* a counter of something else: ns-2 counts the answer to a SYN that is sent again as a reaction.

A comparison that no run can decide, since its value follows from the settings or from another one,
is `settled` and counted apart. Everything takes about five CPU minutes. `ns2/agreement.csv` has a
whole run; the tests make a part of it again.
"""

import argparse
import collections
import csv
import dataclasses
import functools
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ns2_networks import scenario
from ns2_threshold import measured

from fluidcc.packets.accounts import half_width
from fluidcc.packets.run import simulate_packets

ALONE = 8  # seeds of ours beside a single run of ns-2
MANY = 50  # seeds that a miss is not run again with
FOLDER = Path(__file__).parent / "ns2"
FILES = (
    "a_homog", "a_mix", "a_flows", "a_web", "b_rwm", "c_single", "c_ca", "c_multi", "c_front",
    "c_theorem", "d_ecnmod", "d_markpv", "d_unmarked", "d_voip", "e_bmcc", "e_long", "e_sack",
    "f_fluid",
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
    "necnresponses_total": "window_reductions",
    "ecn_responses_total": "window_reductions",
    "ecn_responses": "window_reductions",
    "timeouts_total": "timeouts",
    "timeouts": "timeouts",
}
CROSS = ("there", "back", "web")
FLOWS = {"goodput_flow0_bps": 0, "goodput_flow1_bps": 1}
THIRD = {
    "link3_q_pkts_mean": "queue_mean",
    "link3_q_pkts_var": "queue_var",
    "link3_drop_frac": "drop_fraction",
}
DELAYS = {
    "delay_mean_s": "delay_mean",
    "delay_std_s": "delay_jitter",
    "jitter_consec_s": "ipdv_mean",
}
WEB = {
    "web_objects": "transfers",
    "web_obj_delay_mean": "fct_mean",
    "web_obj_delay_median": "fct_p50",
    "web_obj_delay_p95": "fct_p95",
}
SETTINGS = {"mk": "red", "exact": 1, "bw_mbps": 1.5, "acc_mbps": 10, "TS_ms": None, "T": None}
THEOREM = ("max_queue_slow_start", "max_queue_whole_run", "rd", "rd_prop", "bound")
SAME = {  # the same number of the same run
    "max_queue_slow_start": "maxq_wait_ss",
    "max_queue_whole_run": "maxq_wait",
    "goodput_sum_bps": "goodput_mean_bps",
}
SHIFTS = [side * k * 1e-4 for k in range(1, 9) for side in (1, -1)]  # ms, satellite link longer
SYN = "ns-2 counts the answer to a SYN sent again, at most one a flow, where nothing can be marked"
SKIPPED = {  # patterns of files and metrics, first match first
    "follows from one that is compared, or from the settings": (
        r".* (rd_full|rtt_\w+|unfair_\w+|maxq_incl_service_ss|\w*q_pkts_cov|\w*q_bytes_(mean|var)"
        r"|goodput_frac_bottleneck|goodput_pps_sum|buffer_pkts)"
    ),
    "after its first mark ns-2's virtual queue is not what waits": (
        r"c_front .*|c_theorem max_queue_whole_run"
    ),
    "a count or a rate whose share or goodput is compared": (
        r".* ((aqm_)?(arrivals|drops|marks)|drops_\w+|pkts_delivered|\w*throughput\w*|cross_\w+"
        r"|total_\w+|voip_blocked)"
    ),
    "not measured in fluidcc's runs": (
        r".* (\w*avg_(mean|var)|aqm_p_mean|\w*q_empty_frac|\w*max_sampled|cwnd_std|sched_events)"
    ),
    "of one flow or one group of flows": r".* (\w+_flow\w+|\w+_(plain|ecn|web)(_mean_bps)?)",
    "of flows that are two groups here": r"(a_mix|e_bmcc) (goodput_\w+|jain|\w+_total)",
}


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
        return sum((group["flow_goodput"] for group in groups.values()), ())[FLOWS[metric]]
    if metric == "goodput_sum_bps" and len(groups) == 1:
        (group,) = groups.values()
        return group["goodput"] * len(group["flow_goodput"])
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
    whole = runs
    if COUNTS.keys() & record["metrics"].keys():  # ns-2 counts from the start: the same runs again
        whole = simulate_packets(case.net, until=case.until, seeds=seeds)
    for metric in record["metrics"]:
        mean = _ours(params, metric, runs.mean, whole.mean)
        yield metric, mean, _ours(params, metric, runs.ci95, whole.ci95)


def compare(family: str, record: dict[str, Any], count: int) -> list[Comparison]:
    """Run a record's scenario with `count` seeds and compare every metric that ours has, too."""
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
    count = len(record["seeds"])
    if count == 1 and drawn(record):  # a single run may lie anywhere where one of ours does
        wider = math.sqrt(ALONE + 1)
        found = compare(family, record, ALONE)
        return [dataclasses.replace(c, our_ci=wider * c.our_ci) for c in found]
    found = compare(family, record, count)
    missed = {c.metric for c in found if not c.agrees}
    if not missed or not drawn(record) or count >= MANY:
        return found
    again = {c.metric: c for c in compare(family, record, 4 * count) if c.metric in missed}
    return [again.get(c.metric, c) for c in found]


def drawn(record: dict[str, Any]) -> bool:
    """Whether a record's runs are random: ns-2 drew numbers from a seed."""
    return record["seeds"] != [None]


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


def settled(family: str, record: dict[str, Any], metric: str) -> str:
    """Why no run decides a comparison; empty if it can fail."""
    params = record["params"]
    if metric in ("rd", "rd_prop", "bound"):
        return "set-up"
    if metric in SAME and (family == "c_theorem" or SAME[metric] in record["metrics"]):
        return "repeated"
    if metric.startswith("jain") and params.get("n") == 1:
        return "one flow"
    if metric.startswith("drops_") and "B" not in params:
        return "no limit"
    if metric.startswith("link3_") and not params["cong"]:
        return "no queue"
    deaf = 0 in (params.get("necn"), params.get("ecn")) or params.get("aqm") == "DropTail"
    if "mark" in metric and (deaf or _unmarked(params)):
        return "no marks"
    return "no marks" if COUNTS.get(metric) == "window_reductions" and deaf else ""


def _unmarked(params: dict[str, Any]) -> bool:
    """Whether the queue never marks: from probability 0 on it drops, or it ends below T."""
    return params.get("markpv") == 0 or ("B" in params and params["T"] >= params["B"])


@functools.cache
def _again() -> list[dict[str, Any]]:
    """Runs of ns-2 made for this comparison: a record's with more seeds, or with one change."""
    return json.loads((FOLDER / "again.json").read_text())


def _kept(family: str, record: dict[str, Any], missed: list[Comparison]) -> dict[str, str]:
    """Reasons of metrics for which other runs of ns-2 agree with ours."""
    reasons = {}
    for runs in _again():
        if (runs["scenario"], runs["params"]) != (record["scenario"], record["params"]):
            continue
        first = 0 if runs["change"] else len(record["seeds"])
        count = len(runs["seeds"]) - first
        ours = {c.metric: c for c in (compare(family, record, count) if drawn(record) else missed)}
        for c in missed:
            name = SAME.get(c.metric, c.metric) if family == "c_theorem" else c.metric
            values = runs["values"].get(name)
            # the recorded seeds give the recorded mean again
            if values is None or (first and not _shows(c.theirs, np.mean(values[:first]))):
                continue
            others = np.array(values[first:])
            mean, ci = float(others.mean()), float(half_width(others)) if count > 1 else 0.0
            if dataclasses.replace(ours[c.metric], theirs=mean, their_ci=ci).agrees:
                told = f"{mean:.6g} +- {ci:.3g}" if count > 1 else f"{mean:.6g}"
                how = f"{count} runs of ns-2 with {runs['change'] or 'other seeds'}"
                reasons[c.metric] = f"{runs['reason']}: {how} give {told}"
    return reasons


def _shows(theirs: float, value: float) -> bool:
    """Whether a value is a recorded one, but for its rounding."""
    return Comparison("", "", theirs, 0.0, float(value), 0.0, 1).agrees


def _tied(family: str, record: dict[str, Any]) -> str:
    """The reason of ties, if ours gives every number of the record at nearly the same delay."""
    for shift in () if drawn(record) else SHIFTS:
        params = record["params"] | {"TS_ms": record["params"]["TS_ms"] + shift}
        if all(c.agrees for c in compare(family, record | {"params": params}, 1)):
            return f"ties: with {shift:+.0e} ms on each satellite link ours gives ns-2's numbers"
    return ""


def _counts_answers(record: dict[str, Any], found: Comparison) -> bool:
    """Whether ns-2 can have counted answers to SYNs only: nothing is marked, at most one a flow."""
    few = found.ours == 0 and found.theirs <= record["params"]["n"]
    return COUNTS.get(found.metric) == "window_reductions" and few and _unmarked(record["params"])


def reasons(family: str, record: dict[str, Any], missed: list[Comparison]) -> dict[str, str]:
    """The reason of each metric that misses, if a test bears one out."""
    if not missed:
        return {}
    known = {c.metric: SYN for c in missed if _counts_answers(record, c)}
    known |= _kept(family, record, [c for c in missed if c.metric not in known])
    left = [c.metric for c in missed if c.metric not in known]
    if left and (told := _tied(family, record)):
        known |= dict.fromkeys(left, told)
    return known


@dataclasses.dataclass(frozen=True)
class Row:
    """A comparison as it is printed and kept: `verdict` is agrees, differs or unexplained.

    `settled` has why it cannot fail, if it cannot.
    """

    file: str
    record: str
    metric: str
    theirs: str
    their_ci: str
    ours: str
    our_ci: str
    seeds: int
    settled: str
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
    found, judged = [], judge(family, record)
    known = reasons(family, record, [c for c in judged if not c.agrees])
    for c in judged:
        told = known.get(c.metric, "")
        verdict = "agrees" if c.agrees else "differs" if told else "unexplained"
        numbers = (f"{c.theirs:.6g}", f"{c.their_ci:.3g}", f"{c.ours:.6g}", f"{c.our_ci:.3g}")
        fixed = settled(family, record, c.metric)
        found.append(Row(family, c.record, c.metric, *numbers, c.seeds, fixed, verdict, told))
    return found


def skipped(found: list[Row]) -> collections.Counter[tuple[str, str, str]]:
    """Values of the records that have no counterpart of ours, by reason, file and metric."""
    files = dict.fromkeys(row.file for row in found)
    given = collections.Counter(
        (file, metric) for file in files for record in records(file) for metric in record["metrics"]
    )
    given.subtract((row.file, row.metric) for row in found)
    left = collections.Counter()
    for (file, metric), count in (+given).items():
        whys = (why for why, form in SKIPPED.items() if re.fullmatch(form, f"{file} {metric}"))
        left[next(whys, "unexplained"), file, metric] += count
    return left


def summary(found: list[Row]) -> Iterator[str]:
    """How many comparisons agree, differ for a tested reason, and for none; their shares."""
    verdicts = ("agrees", "differs", "unexplained")
    yield "file         comparisons  settled   agree  differ  unexplained"
    for family in (*dict.fromkeys(row.file for row in found), "all"):
        own = [row for row in found if family in (row.file, "all")]
        agree, differ, unexplained = (sum(r.verdict == v for r in own) for v in verdicts)
        fixed = sum(bool(row.settled) for row in own)
        yield f"{family:12} {len(own):11d} {fixed:8d} {agree:7d} {differ:7d} {unexplained:12d}"
    yield from (share(name, rows) for name, rows in shares(found).items())
    told = collections.Counter(row.reason.split(":")[0] for row in found if row.reason)
    yield from (f"differ, {count}: {why}" for why, count in told.most_common())
    fixed = collections.Counter(row.settled for row in found if row.settled)
    yield from (f"settled, {count}: {why}" for why, count in fixed.most_common())
    left = skipped(found)
    for why in dict.fromkeys(why for why, _, _ in left):
        names = dict.fromkeys(re.sub(r"\d+", "#", metric) for w, _, metric in left if w == why)
        count = sum(n for (w, _, _), n in left.items() if w == why)
        yield f"skipped, {count}: {why}: {', '.join(names)}"


def shares(found: list[Row]) -> dict[str, list[Row]]:
    """The comparisons, those that can fail, and those of them in files whose runs are random."""
    free = [row for row in found if not row.settled]
    random = {f for f in {row.file for row in found} if any(drawn(r) for r in records(f))}
    return {
        "all": found,
        "all that can fail": free,
        "those in files with random runs": [row for row in free if row.file in random],
    }


def share(name: str, found: list[Row]) -> str:
    """How many of some comparisons agree."""
    agree = sum(row.verdict == "agrees" for row in found)
    return f"of {name}: {agree} of {len(found)}, {agree / max(len(found), 1):.1%}"


def write_table(found: list[Row], file: Path) -> None:
    """Write all comparisons as CSV."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(field.name for field in dataclasses.fields(Row))
        table.writerows(dataclasses.astuple(row) for row in found)


def main() -> int:
    """Print the table; the exit code is 1 if a difference or a value passed over has no reason."""
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
    silent = any(why == "unexplained" for why, _, _ in skipped(found))
    return 1 if silent or any(row.verdict == "unexplained" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
