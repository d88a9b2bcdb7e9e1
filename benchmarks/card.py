"""Code for a graphics card, counted where there is none, and runs on one.

`uv run --group card python benchmarks/card.py --compile [SCENARIO ...]` compiles the generated
kernel for an H200 (sm_90) and prints registers, bytes spilled and of the stack, PTX and seconds;
with JAX for CUDA (`--extra gpu`) it also compiles JAX's loop for a described H200 and counts the
kernels, copies, nested loops and host transfers of a step, the bytes that it moves and its
operations, and the shortest time that these allow. Neither needs a card or a driver.
`--half kernel` or `loop` makes one half only, `--half map` the search for the equilibria of a map,
with the kernels in a turn of its loops, outer ones and those in them.

`uv run --extra gpu python benchmarks/card.py --run` runs what `card_runs.py` lists on the card: are
the results right, how fast do they come, is it usable. On a processor it rehearses the same with
small numbers. `--json FILE` writes the numbers of either.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BENCHMARK = "TCP/RED"
SCENARIOS = (
    BENCHMARK, "TCP/RED, 3 groups", "TCP/RED, 10 groups", "hollot2001/slow", "hollot2001/pi",
    "athuraliya2001/rem", "alizadeh2010/dctcp", "akujobi2002/homogeneous_becn",
    "katabi2002/round_trips", "prague2024/dualpi2", "qazi2010/two_bmcc_router",
    "govindaswamy2012/red_rwm", "misra2003/mixed", "kunniyur2001/avq", "durresi2001/ten_tail_59ms",
)  # fmt: skip
"""TCP/RED is the benchmark of `handwritten.py`, with groups the network of the same numbers."""
MAP = "hollot2001/slow"  # of the map of a million points

BANDWIDTH, PEAK, LAUNCH = 4.8e12, 34e12, 2.5e-6  # of an H200: byte/s, double-precision 1/s, s
RUNS = 100_000
TIMEOUT = 900.0  # s, for one half of one scenario
MINUTES, LEAST = 9.0, 5.0  # for all runs on a card; s, with which a part can be begun

CARD = """gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 150000000000 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 minor: 0 } registers_per_core_limit: 65536
  registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H200" """


def seconds() -> float:
    """Seconds of processors that this process and those that it has started have taken."""
    return sum(os.times()[:4])


def problem(name: str, runs: int) -> tuple[Any, Any]:
    """An initial-value problem of `runs` trajectories, and its uniform mesh."""
    import jax
    import numpy as np
    from handwritten import STEP, Case, field, history, lags, network

    import fluidcc as fc
    from fluidcc.dde import equation
    from fluidcc.dde.integrate import Problem
    from fluidcc.model.network_mesh import uniform_mesh
    from fluidcc.model.network_system import network_system

    if name == BENCHMARK:
        case = Case(2)
        params = jax.tree.map(lambda v: v[0], case.numbers())
        start, args = history(0.0, params), equation.Arguments(params, None)
        system = equation.build(field, history, lags(1), None, start, np.zeros(()), args)
        y0, mesh = np.array([*start.windows, start.queue, start.average]), None
        mesh = fc.Uniform(STEP, slots=case.slots)
    else:
        net = network(int(name.split()[1])) if name.startswith(BENCHMARK) else fc.load(name)
        mesh = uniform_mesh(net)
        system, y0, args = network_system(net, until=20.0)

    def many(leaf: Any) -> Any:
        return np.broadcast_to(leaf, (runs, *np.shape(leaf)))

    args = type(args)(jax.tree.map(many, args[0]), *args[1:])
    t0, t1 = np.zeros(()), np.asarray(1e5 * float(mesh.step))
    return Problem(system, many(y0), t0, t1, args, t1[None], False, True, ()), mesh


# the generated kernel


def assembler() -> str | None:
    """NVIDIA's assembler `ptxas` from the package nvidia-cuda-nvcc; None without it."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [file for file in files if file.name in ("ptxas", "ptxas.exe")]
    return str(found[0].locate()) if found else None


def compile_kernel(name: str, keep: Path | None = None) -> dict[str, Any]:
    """Registers, spills, stack and PTX of the generated kernel, and seconds of compiling.

    Its PTX is kept in the file `keep`.
    """
    import warp as wp

    from fluidcc.dde.fused import launch

    task, mesh = problem(name, 1)
    slots = mesh._first_slots(task)
    began = seconds()
    plan = launch.plan(
        task.system, *task.one(), task.t0, slots=slots, interleaved=True, simd_lanes=1
    )
    kernel = launch.kernel(plan)
    written = seconds()
    with tempfile.TemporaryDirectory() as folder:
        wp.compile_aot_module(kernel.module, device=None, arch=90, module_dir=folder, use_ptx=True)
        (file,) = Path(folder).glob("*.ptx")
        ptx = file.read_bytes().rstrip(b"\0")  # Warp leaves a NUL at the end, which ptxas refuses
        file.write_bytes(ptx)
        lowered = seconds()
        if keep:
            keep.write_bytes(ptx)
        tool = assembler()
        if tool is None:
            raise SystemExit(
                "ptxas is missing: uv sync --group card, or pip install nvidia-cuda-nvcc"
            )
        asked = [tool, "-v", "-arch=sm_90", str(file), "-o", str(Path(folder) / "kernel.cubin")]
        report = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
    ended = seconds()

    def number(pattern: str) -> int:
        found = re.findall(pattern, report)
        return max(map(int, found))

    return {
        "ptx": len(ptx),
        "registers": number(r"Used (\d+) registers"),
        "stored": number(r"(\d+) bytes spill stores"),
        "loaded": number(r"(\d+) bytes spill loads"),
        "stack": number(r"(\d+) bytes stack frame"),
        "generated_s": round(written - began, 2),
        "nvrtc_s": round(lowered - written, 2),
        "ptxas_s": round(ended - lowered, 2),
    }


# JAX's loop


def described() -> Any:
    """Where arrays would be on the described H200."""
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    card = topologies.get_topology_desc(
        platform="cuda", topology_name="", target_config=CARD, topology="1x1x1"
    )
    return NamedSharding(Mesh(np.array(card.devices).reshape(-1), ("card",)), PartitionSpec())


def compile_map(name: str, keep: Path | None = None) -> dict[str, Any]:
    """Kernels in each turn of the longest loop that searches for equilibria of a block of a map on
    an H200, and of the loop in it; both loops wait for the host in every turn.

    Its program is kept in the file `keep`.
    """
    import jax
    import numpy as np

    import fluidcc as fc
    from fluidcc.analysis import stability_map
    from fluidcc.scenario.network import to_arrays

    points, there = stability_map._ON_CARD, described()
    many = jax.tree.map(
        lambda v: jax.ShapeDtypeStruct((points, *np.shape(v)), float, sharding=there),
        to_arrays(fc.load(name)),
    )
    began = seconds()
    lowered = (
        jax.jit(stability_map._solve.__wrapped__).trace(many).lower(lowering_platforms=("cuda",))
    )
    compiled = lowered.compile()
    if keep:
        keep.write_text(compiled.as_text())
    program = Program(compiled.as_text())
    turns = [(depth, program.total(body)) for depth, body in program.loops(program.entry, 0)]
    outer, inner = (max(t["kernels"] for d, t in turns if d == depth) for depth in (1, 2))
    return {
        "points": points, "kernels": outer - inner, "inner_kernels": inner,
        "bytes": max(t["bytes"] for _, t in turns),
        "temporary": compiled.memory_analysis().temp_size_in_bytes,
        "compiled_s": round(seconds() - began, 2),
    }  # fmt: skip


def compile_loop(
    name: str, keep: Path | None = None, *, runs: int = RUNS, here: bool = False
) -> dict[str, Any]:
    """Kernels, bytes and operations of a step of JAX's loop, and seconds of compiling: for an
    H200, or `here`, for the device on which JAX computes.

    Its program is kept in the file `keep`.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import SingleDeviceSharding

    from fluidcc.dde import uniform

    task, mesh = problem(name, 2)
    slots = mesh._first_slots(task)
    there = SingleDeviceSharding(jax.devices()[0]) if here else described()
    platforms = None if here else ("cuda",)

    def struct(leaf: Any, *shape: int) -> Any:
        shape = (*shape, *np.shape(leaf)[len(shape) :])
        return jax.ShapeDtypeStruct(shape, jnp.asarray(leaf).dtype, sharding=there)

    def many(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: struct(leaf, runs), tree)

    args = task.args
    args = type(args)(many(args[0]), *jax.tree.map(struct, tuple(args[1:])))
    given = (many(task.y0), *map(struct, (task.t0, task.t1, mesh.step, task.ts)), args)
    static = ("system", "slots", "lanes", "batched", "turns", "shared")
    jitted = jax.jit(uniform._uniform.__wrapped__, static_argnames=static)
    options = {"slots": slots, "lanes": runs, "batched": True, "shared": None}
    by_numbers = not here or jax.default_backend() != "cpu"  # as `Uniform` chooses
    turns = uniform.turns_for((task.t1 - task.t0) / mesh.step, 1) if by_numbers else None
    options["turns"] = turns
    began = seconds()
    lowered = jitted.trace(task.system, *given, **options).lower(lowering_platforms=platforms)
    traced = seconds()
    compiled = lowered.compile()
    ended = seconds()
    text = compiled.as_text()
    if keep:
        keep.write_text(text)
    found = Program(text).step(turns or 1)
    floor = max(found["bytes"] / BANDWIDTH, found["operations"] / PEAK)
    found["floor_us"] = round(1e6 * max(floor, LAUNCH * found["kernels"]), 1)
    found |= {
        "temporary": compiled.memory_analysis().temp_size_in_bytes,
        "traced_s": round(traced - began, 2),
        "compiled_s": round(ended - traced, 2),
    }
    return found


_SIZES = {"f64": 8, "s64": 8, "u64": 8, "f32": 4, "s32": 4, "u32": 4, "pred": 1, "u8": 1, "s8": 1}
_MOVES = {
    "parameter", "constant", "broadcast", "reshape", "bitcast", "transpose", "slice", "iota",
    "concatenate", "get-tuple-element", "tuple", "copy", "gather", "dynamic-slice",
    "dynamic-update-slice", "pad", "convert", "bitcast-convert", "reverse",
}  # fmt: skip
_FREE = {"parameter", "constant", "bitcast", "get-tuple-element", "tuple", "after-all"}
_PARTS = {"slice", "dynamic-slice", "gather", "dynamic-update-slice"}


class Instruction:
    """One line of a compiled program: its name, kind, shapes, operands and attributes."""

    pattern = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*?) ([\w\-]+)\((.*)$")

    def __init__(self, line: str) -> None:
        found = self.pattern.match(line)
        assert found, line
        _, self.name, self.type, self.kind, rest = found.groups()
        self.root = found.group(1) is not None
        inner, depth = [], 1
        for at, letter in enumerate(rest):
            depth += (letter == "(") - (letter == ")")
            if not depth:
                inner, self.attributes = rest[:at], rest[at:]
                break
        self.operands = re.findall(r"%([\w.\-]+)", str(inner))
        self.number = str(inner)

    def called(self, key: str) -> str:
        found = re.search(rf"{key}=%?([\w.\-]+)", self.attributes)
        return found.group(1) if found else ""

    @property
    def turns(self) -> int:
        """Turns of a loop if they are known, else 1."""
        found = re.search(r'known_trip_count[^}]*?"n":"?(\d+)', self.attributes)
        return int(found.group(1)) if found else 1

    def size(self) -> int:
        """Bytes of the result."""
        return sum(_SIZES.get(kind, 8) * count for kind, count in self.shapes())

    def count(self) -> int:
        """Numbers in the result."""
        return sum(count for _, count in self.shapes())

    def shapes(self) -> list[tuple[str, int]]:
        found = re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", self.type)
        return [(kind, math.prod(map(int, filter(None, axes.split(","))))) for kind, axes in found]


class Program:
    """A compiled program as text, by its computations."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, dict[str, Instruction]] = {}
        lines: dict[str, Instruction] = {}
        for line in text.splitlines():
            if line.endswith("{") and not line.startswith((" ", "HloModule")):
                head = re.match(r"^(?:ENTRY )?%?([\w.\-]+)", line)
                assert head
                lines = self.computations.setdefault(head.group(1), {})
                if line.startswith("ENTRY"):
                    self.entry = head.group(1)
            elif Instruction.pattern.match(line):
                one = Instruction(line)
                lines[one.name] = one

    def step(self, turns: int) -> dict[str, Any]:
        """What a step does, of which there are `turns` in each turn of a loop of the host: of the
        loops at the second depth that which launches most, with all loops in it.
        """
        loops = self.loops(self.entry, 0)
        deepest = [body for depth, body in loops if depth == 2] or [body for _, body in loops]
        body, most = max(
            ((body, self.total(body)) for body in deepest), key=lambda pair: pair[1]["kernels"]
        )
        inner = [one.turns for one in self.computations[body].values() if one.kind == "while"]
        if turns > 1 and turns in inner:  # those steps are a loop on the card
            most["loops"] -= 1
            most = {key: round(value / turns, 1) for key, value in most.items()}
        return most

    def loops(self, name: str, depth: int) -> list[tuple[int, str]]:
        """Bodies of all loops in a computation, with their depths below it."""
        found = []
        for one in self.computations[name].values():
            if one.kind == "while":
                body = one.called("body")
                found.append((depth + 1, body))
                found += self.loops(body, depth + 1)
            elif one.kind in ("call", "async-start"):
                found += self.loops(one.called("to_apply") or one.called("calls"), depth)
        return found

    def total(self, name: str) -> dict[str, Any]:
        """Counts for all that one computation launches; loops by their known turns."""
        total = dict.fromkeys(
            ("kernels", "copies", "loops", "waits", "transfers", "bytes", "operations"), 0
        )
        for one in self.computations[name].values():
            if one.kind == "while":
                inner = self.total(one.called("body"))
                known = one.turns if "known_trip_count" in one.attributes else 0
                for key, value in inner.items():
                    total[key] += value * (known or 1)
                total["loops"] += 1
                total["waits"] += not known
                if not known:
                    total["kernels"] += self.total(one.called("condition"))["kernels"]
            elif one.kind in ("call", "async-start"):
                for key, value in self.total(one.called("to_apply") or one.called("calls")).items():
                    total[key] += value
            elif one.kind == "conditional":
                total["waits"] += 1
                total["kernels"] += 1
            elif one.kind == "fusion":
                total["kernels"] += 1
                moved, operations = self._fused(one, name)
                total["bytes"] += moved
                total["operations"] += operations
            elif one.kind in ("copy", "copy-start"):
                total["copies"] += 1
                total["kernels"] += 1
                total["bytes"] += 2 * one.size()
            elif one.kind in ("infeed", "outfeed", "send", "recv") or "S(5)" in one.type:
                total["transfers"] += 1
            elif one.kind not in _FREE:
                total["kernels"] += 1
                total["bytes"] += 2 * one.size()
                total["operations"] += one.count()
        return total

    def _fused(self, fusion: Instruction, name: str) -> tuple[int, int]:
        """Bytes that a fused kernel reads and writes, and its operations."""
        inside = self.computations[fusion.called("calls")]
        users: dict[str, list[Instruction]] = {}
        for one in inside.values():
            for operand in one.operands:
                users.setdefault(operand, []).append(one)
        moved = operations = 0

        def read(name: str) -> int:
            """Bytes read of an operand: all of it, unless some parts are picked from it."""
            total = 0
            for user in users.get(name, []):
                if user.kind in ("bitcast", "reshape"):
                    total += read(user.name)
                elif user.kind in _PARTS and user.operands[0] == name:
                    total += 0 if user.kind == "dynamic-update-slice" else user.size()
                else:
                    return inside[name].size()
            return min(total, inside[name].size())

        for one in inside.values():
            if one.kind == "parameter":
                moved += read(one.name)
            elif one.kind not in _MOVES:
                operations += one.count()
            if one.kind == "dynamic-update-slice":
                moved += inside[one.operands[1]].size()
        root = next(one for one in inside.values() if one.root)
        outputs = [inside[o] for o in root.operands] if root.kind == "tuple" else [root]
        for out in outputs:
            while out.kind == "bitcast":
                out = inside[out.operands[0]]
            moved += 0 if out.kind == "dynamic-update-slice" else out.size()
        return moved, operations


# all scenarios

HALVES = {"kernel": compile_kernel, "loop": compile_loop, "map": compile_map}


def in_a_process(name: str, half: str) -> dict[str, Any]:
    """One half of one scenario, in a process of its own: what ends it is in `failed`."""
    began = time.perf_counter()
    asked = [sys.executable, __file__, "--one", half, name]
    variables = os.environ | {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    try:
        done = subprocess.run(
            asked, capture_output=True, text=True, env=variables, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {TIMEOUT:.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(done.stdout.splitlines()[-1]) | {"s": round(time.perf_counter() - began, 1)}


def compile_all(names: list[str], halves: list[str]) -> dict[str, Any]:
    """Numbers of each half of each scenario, printed as they come."""
    found: dict[str, Any] = {}
    for name in names:
        for half in halves:
            numbers = found.setdefault(name, {})[half] = in_a_process(name, half)
            text = ", ".join(f"{key} {value}" for key, value in numbers.items())
            print(f"{name}: {half}: {text}", flush=True)
    return found


class OutOfTime(BaseException):
    """A part has taken as long as it may: nothing but the loop over parts catches this."""


def run_all(file: Path | None, asked: list[str], minutes: float) -> bool:
    """Run parts, those `asked` for or all that are left; whether none failed.

    What is known is written after each: a second call goes on there, on the same kind of device.
    """
    from card_runs import KEYS, parts, size, where

    def stop(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, stop)
    end, given = time.perf_counter() + 60.0 * minutes, size()
    found = {"where": where(), "keys": KEYS, "size": given._asdict(), "parts": {}}
    if file and file.exists():
        kept = json.loads(file.read_text())
        if all(json.dumps(kept.get(k)) == json.dumps(found[k]) for k in ("where", "size")):
            found = kept
    for name, (most, part) in parts().items():
        known = found["parts"].get(name, {"failed": "not done"})
        if name not in asked if asked else "failed" not in known:
            continue
        began, before = time.perf_counter(), {key: json.dumps(found[key]) for key in found}
        outcome: dict[str, Any] = {}
        found["parts"][name], limit = outcome, min(most, end - began)
        try:
            if limit < LEAST:
                raise OutOfTime
            signal.setitimer(signal.ITIMER_REAL, limit)
            part(given, found)
        except OutOfTime:
            outcome["failed"] = f"not done in {limit:.0f} s" if limit >= LEAST else "no time left"
        except Exception as error:  # the others are of use without
            outcome["failed"] = f"{type(error).__name__}: {error}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        outcome["s"] = round(time.perf_counter() - began, 1)
        new = {key: v for key, v in found.items() if before.get(key) != json.dumps(v)}
        print(f"{name}: {json.dumps(new | {'parts': outcome})}", flush=True)
        if file:
            file.write_text(json.dumps(found, indent=2) + "\n")
    return '"failed"' not in json.dumps(found | {"keys": {}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--compile", action="store_true", help="compile for a card, count, run nothing"
    )
    parser.add_argument("--run", action="store_true", help="run all on the card")
    parser.add_argument("--half", choices=HALVES, help="one alone: the kernel, the loop, or a map")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers")
    parser.add_argument("--one", choices=HALVES, help=argparse.SUPPRESS)
    parser.add_argument("--keep", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all runs on the card")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="scenarios to compile, or parts to run"
    )
    asked = parser.parse_args()
    names = asked.names or ([MAP] if asked.half == "map" else list(SCENARIOS))
    if asked.one:
        print(json.dumps(HALVES[asked.one](names[0], asked.keep)))
    elif asked.compile:
        halves = [asked.half] if asked.half else ["kernel", "loop"]
        if halves != ["kernel"] and importlib.util.find_spec("jax_cuda13_plugin") is None:
            halves = [half for half in halves if half == "kernel"]
            print("all but the kernel is left out without JAX for CUDA (--extra gpu, 4.3 GB)")
        found = compile_all(names, halves)
        if asked.json:
            asked.json.write_text(json.dumps(found, indent=2) + "\n")
    elif asked.run:
        sys.exit(not run_all(asked.json, asked.names, asked.minutes))
    else:
        parser.error("give --compile or --run")


if __name__ == "__main__":
    main()
