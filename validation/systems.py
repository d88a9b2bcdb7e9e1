"""Every bundled scenario in the fluid model: whether it runs, where it rests, if it is stable.

    uv run python validation/systems.py [PAPER ...] [--until S] [--jobs J] [--out FILE.json]

One row per scenario: status of the equilibrium and the links that slide, queue and utilization of
the first link, the verdict of stability with the rightmost root, and how a trajectory ended with
the mean of the queue over its second half. Exits with 1 if anything fails. A scenario takes half a
minute, those of durresi2001 with ten flows several; a paper's key, such as `durresi2001`, takes its
scenarios alone.
"""

import argparse
import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.bundled.validation.lab.beside import with_mean

_TRIPS = 1000  # a run need not be longer


def chosen(papers: list[str]) -> list[str]:
    """Names of the bundled scenarios, of some papers or of all."""
    return [name for name in with_mean() if not papers or name.split("/")[0] in papers]


def judge(task: tuple[str, float]) -> dict[str, Any]:
    """The row of one scenario; a failure is told in it."""
    name, until = task
    began = time.process_time()
    row: dict[str, Any] = {"scenario": name}
    try:
        net = fc.load(name)
        rest = fc.equilibrium(net)
        link = next(iter(rest.links.values()))
        row |= {
            "status": rest.status, "sliding": list(rest.sliding), "queue": link.queue,
            "utilization": link.utilization, "message": rest.message,
        }  # fmt: skip
        verdict = fc.stability(net)
        first = verdict.rightmost
        row |= {
            "stable": verdict.stable, "certified": verdict.certified,
            "rightmost": None if first is None else [first.real, first.imag],
            "why": verdict.message,
        }  # fmt: skip
        trips = max(float(np.max(np.asarray(flows.rtt))) for flows in net.flows)
        until = min(until, _TRIPS * trips)
        run = fc.simulate(net, until=until, points=np.linspace(0.0, until, 2001))
        seen = next(iter(run.links.values()))
        late = run.time > until / 2
        row |= {
            "run": run.status.name, "mean_queue": float(seen.queue[late].mean()),
            "lowest": float(seen.queue[late].min()), "highest": float(seen.queue[late].max()),
            "mean_utilization": float(seen.utilization[late].mean()),
        }  # fmt: skip
    except Exception as error:  # one bad scenario must not hide the others
        row["error"] = f"{type(error).__name__}: {error}"
    return row | {"cpu_s": time.process_time() - began}


def line(row: dict[str, Any]) -> str:
    """A row as one line of the table."""
    if "error" in row:
        return f"{row['scenario']:46s} FAILED {row['error']}"
    known = {True: "stable", False: "unstable", None: "-"}[row["stable"]]
    proof = "" if row["certified"] or row["stable"] is None else "?"
    slides = " slides" if row["sliding"] else ""
    return (
        f"{row['scenario']:46s} {row['status'] + slides:18s} {row['queue']:9.2f} "
        f"{row['utilization']:6.3f} {known + proof:10s} {row['run']:10s} "
        f"{row['mean_queue']:9.2f} [{row['lowest']:.1f}, {row['highest']:.1f}] "
        f"{row['mean_utilization']:6.3f}"
    )


def main() -> int:
    """Print the table; 1 if a scenario failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", help="keys of papers; all by default")
    parser.add_argument("--until", type=float, default=100.0, help="longest runs [s]")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios at once")
    parser.add_argument("--out", type=Path, help="file for the rows, as JSON")
    given = parser.parse_args()
    tasks = [(name, given.until) for name in chosen(given.papers)]
    rows = []
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=12) as pool:
        for row in pool.imap(judge, tasks):
            print(line(row), flush=True)
            rows.append(row)
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1))
    bad = [r for r in rows if "error" in r or r["run"] != "ok"]
    print(f"{len(rows)} scenarios, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
