"""Use of a card, for `card.py --run`, and what needs processes: cores beside it, and tests."""

import concurrent.futures
import functools
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from card import BENCHMARK
from card_runs import (
    PROBLEMS,
    WAYS,
    Size,
    clock,
    difference,
    noting,
    on_card,
    on_processor,
    solve_equation,
    solver,
)
from handwritten import Case

import fluidcc as fc
from fluidcc import memory

HISTORY = 2 * 3 * 8  # bytes of a node of TCP/RED: values and slopes of its record

# cores

_together: list[Any] = []  # what lets processes begin at one time


def begin_on_core(barrier: Any, cores: Any) -> None:
    """Let this process compute on a processor of its own."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.sched_setaffinity(0, {cores.get()})
    fc.fast_cpu()
    jax.config.update("jax_platforms", "cpu")
    _together.append(barrier)


def work(name: str, runs: int, steps: int, fused: bool) -> float:
    """Seconds of some runs, while all other processes do the same."""
    solve = solver(name, runs)
    solve(steps, fused=fused)
    _together[0].wait(60.0)
    return clock(lambda: solve(steps, fused=fused))


def time_cores(count: int, key: str, size: Size, found: dict[str, Any]) -> None:
    """Seconds on so many processors."""
    spawn = multiprocessing.get_context("spawn")
    cores = spawn.Queue()
    for core in sorted(os.sched_getaffinity(0))[:count]:
        cores.put(core)
    given = (spawn.Barrier(count), cores)
    with concurrent.futures.ProcessPoolExecutor(count, spawn, begin_on_core, given) as pool:
        for name in PROBLEMS:
            few, short = (256, 1024) if name == BENCHMARK else (64, 256)
            for way, fused in WAYS.items():
                out, numbers = found[name], found[name][way]
                with noting(numbers):
                    jobs = [pool.submit(work, name, few, short, fused) for _ in range(count)]
                    spent = max(job.result(120.0) for job in jobs)
                    whole = spent * out["runs"] * out["steps"] / (few * short * count)
                    numbers[f"{key}_s"] = whole
                    if "seconds" in numbers:
                        numbers[f"times_as_fast_as_{key}"] = whole / numbers["seconds"]


# usable


def in_child(expression: str, **variables: str) -> Any:
    """An expression with the functions of this file, by another process.

    Raises RuntimeError with the last line of its errors.
    """
    code = "import json; from card_runs import *; from card_usable import *; "
    code += f"print(json.dumps({expression}))"
    folders = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    given = os.environ | {"PYTHONPATH": os.pathsep.join(folders)} | variables
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=given, timeout=120.0,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def end_states(runs: int) -> list[list[float]]:
    """End states of TCP on RED by the loop, for other processes."""
    return solve_equation(Case(runs), 256, fused=False).tolist()


def take_memory(runs: int, share: float, limit: float | None = None) -> str:
    """The answer to runs whose histories take a share of the memory that JAX knows of.

    Beyond its present size the process may take `limit` bytes, if it is given.
    """
    case = Case(runs)
    solve_equation(case, 16, fused=False)
    slots = 1 << int(np.log2(share * memory.available() / (HISTORY * runs)))
    if limit is not None:
        import resource

        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (int(taken + limit),) * 2)
    try:
        solve_equation(case, slots - 8, fused=False, slots=slots)
    except (MemoryError, ValueError) as error:  # of which commands print one line
        return str(error)
    raise RuntimeError("memory that another process holds was had")


def describe(size: Size, found: dict[str, Any]) -> None:
    """What `fluidcc doctor` says: the card and its memory."""
    code = "from fluidcc.cli import main; main()"
    given = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor"], capture_output=True, text=True, env=given,
        timeout=60.0, check=False,
    )  # fmt: skip
    lines = re.findall(r".*" + re.escape(jax.devices()[0].device_kind) + r".*", done.stdout)
    found["doctor"] = {"of_the_device": lines, "exit_code": done.returncode, "errors": done.stderr}
    if not any(" GB" in line for line in lines):
        raise RuntimeError("the doctor does not name the device and its memory")


def fill_memory(size: Size, found: dict[str, Any]) -> None:
    """Histories that do not fit at once, one that never does, and memory held by others."""
    out = found["memory"] = {"bytes_for_jax": memory.available()}
    runs, steps = size.long
    case, slots = Case(runs), 1 << (steps - 1).bit_length()
    out["bytes_of_all_histories"] = HISTORY * slots * runs
    every = runs // 8
    with on_processor():
        right = solve_equation(case, steps, fused=False, every=every, slots=slots)
    for way, fused in WAYS.items():
        numbers = out[f"{way}, in blocks"] = {}
        with noting(numbers):
            began = time.perf_counter()
            ends = solve_equation(case, steps, fused=fused, slots=slots)
            numbers["first_call_s"] = time.perf_counter() - began
            numbers["difference_from_processor"] = difference(ends[::every], right, 1e-11)
    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    out["peak_bytes_of_jax"] = peak or "unknown on a processor"
    small = in_child("end_states(20000)", XLA_PYTHON_CLIENT_MEM_FRACTION="0.001")
    out["a 1000th of the card suffices, in blocks: same bits"] = small == end_states(20000)
    for way, fused in WAYS.items():
        try:
            solve_equation(Case(2), 1 << 30, fused=fused, slots=1 << 42)
        except memory.TooLittleMemory as error:
            out[f"{way}, advice if one history is too large"] = str(error)
    busy = "take_memory(20000, 0.5)" if on_card() else "take_memory(8, 0.3, 2e8)"
    out["advice on a busy device"] = in_child(busy)


def divide(size: Size, found: dict[str, Any]) -> None:
    """Several devices share a batch; without a card nothing changes."""
    runs = 256
    one = in_child(f"end_states({runs})", JAX_PLATFORMS="cpu")
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    two = in_child(f"end_states({runs})", JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    without = in_child(f"end_states({runs})", CUDA_VISIBLE_DEVICES="")
    out = found["devices"] = {
        "here": jax.local_device_count(),
        "two devices of a processor: same bits": two == one,
        "the card hidden: bits of a processor": without == one,
    }
    if not two == one == without:
        raise RuntimeError("states depend on devices")
    if out["here"] > 1:
        run = functools.partial(solver(BENCHMARK, size.runs), size.steps // 10, fused=False)
        with jax.default_device(jax.devices()[0]):
            alone, spent = run(), clock(run)
        out["all of them: same bits as one"] = bool(np.array_equal(run(), alone))
        out["all of them: times as fast as one"] = spent / clock(run)


def run_tests(size: Size, found: dict[str, Any]) -> None:
    """Tests where JAX computes."""
    asked = [sys.executable, "-m", "pytest", "-n", size.processes, "-q", *size.tests]
    given = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        asked, capture_output=True, text=True, env=given, cwd=Path(__file__).parents[1], check=False
    )
    wrong = re.findall(r"^(?:FAILED|ERROR) (.*)", done.stdout, re.MULTILINE)
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
    found["tests"] = {"asked": size.tests, "outcome": last, "wrong": wrong}
    if done.returncode:
        raise RuntimeError(last)
