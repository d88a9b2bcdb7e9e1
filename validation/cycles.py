"""The limit cycle of every bundled scenario: how it is found, its period, and how long that takes.

    uv run python validation/cycles.py [PAPER or PAPER/SCENARIO ...] [--results FOLDER]
        [--limit SECONDS] [--beside FOLDER]

Each scenario goes through `fc.cycle` in a process of its own, which ends at a limit of CPU time,
and is kept as one JSON file in the folder of results: what is there is not run again. The time has
the import and all that is compiled in it. Beside the records of `validation/compare_all.py` the
table has the periods of the fluid trajectory and of the packets of the queue that swings most.
"""

import argparse
import json
import multiprocessing
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fluidcc as fc
from fluidcc.bundled.validation.lab.beside import with_mean


def judge(name: str, file: Path, limit: int) -> None:
    """Write the record of one scenario."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    fc.fast_cpu()
    found: dict[str, Any] = {"scenario": name, **fc.cycle(fc.load(name)).to_dict()}
    found["cpu_s"] = time.process_time()
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1))
    part.rename(file)


def kept(name: str, folder: Path, limit: int) -> dict[str, Any]:
    """The record of a scenario, from its file where there is one."""
    file = folder / f"{name.replace('/', '-')}.json"
    if not file.exists():
        run = multiprocessing.get_context("spawn").Process(target=judge, args=(name, file, limit))
        run.start()
        run.join()
        if run.exitcode and not file.exists():
            late = run.exitcode == -signal.SIGXCPU or run.exitcode == -signal.SIGKILL
            why = f"nothing within {limit} s" if late else f"ended with exit code {run.exitcode}"
            return {"scenario": name, "status": "failed", "message": why}
    return json.loads(file.read_text())


def chosen(wanted: list[str]) -> list[str]:
    """Names of bundled scenarios, of some papers or of all."""
    return [n for n in with_mean() if not wanted or {n, n.split("/")[0]} & set(wanted)]


def others(name: str, folder: Path | None) -> tuple[float | None, float | None]:
    """Periods of the trajectory and of the packets [s], of the queue that swings most."""
    file = folder / f"{name.replace('/', '-')}.json" if folder else None
    if file is None or not file.exists():
        return None, None
    rows = {row["name"]: row for row in json.loads(file.read_text()).get("rows", ())}
    swings = {key: row["packets"] or 0.0 for key, row in rows.items() if key.endswith("queue_std")}
    if not swings:
        return None, None
    row = rows[max(swings, key=lambda key: swings[key]).replace("queue_std", "period")]
    return row["fluid"], row["packets"]


def lines(found: dict[str, Any], beside: Path | None) -> Iterator[str]:
    """The row of one scenario, and what is said of it."""
    numbers = [found.get("period"), *others(found["scenario"], beside), found.get("cpu_s")]
    cells = " ".join(f"{'-':>9s}" if v is None else f"{v:9.4g}" for v in numbers)
    stable = {True: "stable", False: "unstable"}.get(found.get("stable"), "-")
    yield f"{found['scenario']:44s} {found['status']:10s} {stable:8s} {cells}"
    if found["message"]:
        yield f"    {found['message']}"


def main() -> int:
    """Print the table; 1 if a scenario gave nothing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", help="papers or scenarios; all by default")
    parser.add_argument("--results", type=Path, default=Path("out/cycles"), help="folder")
    parser.add_argument("--limit", type=int, default=120, help="longest CPU time of one [s]")
    parser.add_argument("--beside", type=Path, help="folder of validation/compare_all.py")
    given = parser.parse_args()
    given.results.mkdir(parents=True, exist_ok=True)
    heads = " ".join(f"{head:>9s}" for head in ("period", "fluid", "packets", "CPU [s]"))
    print(f"{'scenario':44s} {'status':10s} {'':8s} {heads}")
    failed = 0
    for name in chosen(given.scenarios):
        found = kept(name, given.results, given.limit)
        failed += found["status"] == "failed"
        print("\n".join(lines(found, given.beside)), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
