"""Random legal networks by the ten thousand: whatever is answered must hold.

Run it as `uv run python tests/nets/networks.py --count 10000 --seed 1 --out findings`; the test
beside it takes twenty. Each structure has several sets of numbers, which share what was compiled.
`--only K` takes structure K alone, `--number J` of it the network J alone, with every check.
Findings are answers that do not hold. Answers that their own check withholds are counted by reason,
and are findings as well if there are many.
"""

import argparse
import collections
import dataclasses
import gc
import multiprocessing
import multiprocessing.connection
import os
import queue
import re
import resource
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "packets")]

MOVED = 300  # networks of the full size that are simulated
GROWN = 10  # networks of a structure whose modes are followed, at most
FULL = 10_000
MOST = 0.05  # share of the networks that may have no answer
LEAST = 20  # times that every law and status occurs in the full size
TOLD = 2  # findings of one check and one structure
LONGEST = 600.0  # s for one check, with what it compiles
MEMORY = 8 << 30  # bytes of one process


@dataclasses.dataclass
class Finding:
    """A check that failed, and the network."""

    structure: int
    number: int
    check: str
    reason: str
    text: str


@dataclasses.dataclass
class Found:
    """What the networks of some structures gave."""

    networks: int = 0
    refused: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    laws: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    statuses: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    checks: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    seconds: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    withheld: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    examples: dict[str, Finding] = dataclasses.field(default_factory=dict)
    findings: list[Finding] = dataclasses.field(default_factory=list)

    def withhold(self, at: Finding) -> None:
        """Count an answer that its own check withholds, and keep the first for each reason."""
        reason = re.sub(r"-?[\d.]+(e[-+]?\d+)?|inf", "#", at.reason.split(";")[0])
        self.withheld[reason] += 1
        self.examples.setdefault(reason, at)

    def add(self, other: "Found") -> None:
        """Take another's counts and findings."""
        self.networks += other.networks
        for name in ("refused", "laws", "statuses", "checks", "seconds", "withheld"):
            getattr(self, name).update(getattr(other, name))
        self.examples = other.examples | self.examples
        self.findings += other.findings


Tell = Callable[[int, str, str], None]


class Structure:
    """The networks of one structure, judged one after the other."""

    def __init__(self, root: int, number: int, tell: Tell) -> None:
        import net_checks

        self.root, self.structure, self.tell = root, number, tell
        self.found, self.known, self.moved, self.grown = Found(), net_checks, 0, 0

    def judge(self, count: int, moved: int, only: int | None) -> Found:
        """Judge `count` networks, `moved` of them with trajectories and packets."""
        import net_cases

        self.tell(-1, "generator", "")
        self.moved = moved
        form = net_cases.structure(self.root, self.structure)
        for j, net in enumerate(net_cases.networks(form, self.root, self.structure, count)):
            if only is not None and j != only:
                continue
            if isinstance(net, str):
                self.found.refused[net] += 1
                continue
            self._one(j, net, first=j == 0 or j == only, moving=j < moved or j == only)
        return self.found

    def _one(self, j: int, net: Any, *, first: bool, moving: bool) -> None:
        from fluidcc.analysis.equilibrium import equilibrium
        from fluidcc.laws.own import laws_in
        from fluidcc.laws.registry import kind_of
        from fluidcc.scenario.files import dumps

        text, known, found = dumps(net), self.known, self.found

        def run(check: str, call: Callable[[], Any]) -> Any:
            self.tell(j, check, text)
            begun = time.process_time()
            try:
                out = call()
                if isinstance(out, Iterator):
                    lines = list(out)
                    found.findings += [Finding(self.structure, j, check, v, text) for v in lines]
                if out is not None:
                    found.checks[check] += 1
                return out
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                reason = f"{type(error).__name__} at {where.name}: {error}"
                found.findings.append(Finding(self.structure, j, check, reason[:400], text))
                return None
            finally:
                found.seconds[check] += time.process_time() - begun

        found.networks += 1
        found.laws.update(f"{kind_of(law)} {law.name}" for law in laws_in(net))
        rest = run("equilibrium", lambda: equilibrium(net))
        if rest is None:
            return
        found.statuses[rest.status] += 1
        if rest.status == "undetermined":
            found.withhold(Finding(self.structure, j, "equilibrium", rest.message, text))
            return
        run("known_numbers", lambda: known.known_numbers(rest))
        run("loads_of_links", lambda: known.loads_of_links(rest))
        if (reason := run("derivatives", lambda: known.no_derivatives(net, rest))) is not None:
            found.withhold(Finding(self.structure, j, "linear", reason, text))
            return
        run("linear", lambda: known.linear(net, rest))
        if j % 4 == 0:
            run("time", lambda: known.time(net, rest))
            run("units", lambda: known.units(net, rest))
        if first:
            run("order", lambda: known.order(net, rest))
        growing = self.moved > 0 and self.grown < GROWN
        growing = growing and bool(run("modes", lambda: known.has_modes(net, rest)))
        if not (first or moving or growing):
            return
        self.grown += growing
        proven = rest.smooth and (first or moving)
        both = run("stability", lambda: known.judged(net, certify=proven))
        if both is not None and both[1] is not None:
            run("count", lambda: known.count(*both))
        if growing and both is not None:
            run("growth", lambda: known.growth(both[0]))
        if moving and both is not None:
            run("packets", lambda: known.packets(net))
            run("meet", lambda: known.meet(net, both[0]))


def _worker(pipe: Any, root: int) -> None:
    """Judge the structures that come through a pipe; what NumPy warns of is a finding."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_llvm_disable_expensive_passes=true"  # minutes each
    warnings.simplefilter("error", RuntimeWarning)
    import equinox as eqx
    import jax

    jax.config.update("jax_enable_x64", True)
    import net_cases

    from fluidcc.dde.cpu import fast_cpu
    from fluidcc.laws.own import loaded

    fast_cpu()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with loaded(net_cases.OWN):
        while True:
            task = pipe.recv()
            if task is None:
                return
            number, *rest = task
            one = Structure(root, number, lambda *at: pipe.send(("at", *at)))
            pipe.send(("found", one.judge(*rest)))
            gc.unfreeze()
            eqx.clear_caches()
            jax.clear_caches()
            gc.collect()


class _Process:
    """A process that judges structures, and is replaced where it hangs or ends."""

    def __init__(self, root: int) -> None:
        self.root, self.context = root, multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=_worker, args=(other, self.root), daemon=True)
        self.process.start()
        other.close()

    def judge(self, number: int, *rest: Any) -> Found:
        """What the networks of a structure give; if the process ends, what it was at."""
        self.pipe.send((number, *rest))
        at = (-1, "start", "")
        while True:
            try:
                if not self.pipe.poll(LONGEST):
                    reason = f"takes more than {LONGEST:g} s"
                    break
                kind, *what = self.pipe.recv()
            except EOFError:
                self.process.join()
                reason = f"the process ended with {self.process.exitcode}"
                break
            if kind == "found":
                return what[0]
            at = what
        self.process.kill()
        self.process.join()
        self._start()
        return Found(findings=[Finding(number, at[0], at[1], reason, at[2])])

    def end(self) -> None:
        """End the process."""
        self.pipe.send(None)
        self.process.join()


def judged(
    root: int, numbers: list[int], count: int, moved: int, *, processes: int = 1,
    only: int | None = None, told: Callable[[int, Found], None] = lambda k, found: None,
) -> Found:  # fmt: skip
    """What the networks of some structures give, `moved` of all with trajectories and packets."""
    shares = {k: moved * (i + 1) // len(numbers) - moved * i // len(numbers)
              for i, k in enumerate(numbers)}  # fmt: skip
    tasks: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in numbers:
        tasks.put(number)
    found, lock = Found(), threading.Lock()

    def work() -> None:
        process = _Process(root)
        while True:
            try:
                number = tasks.get_nowait()
            except queue.Empty:
                break
            one = process.judge(number, count, shares[number], only)
            with lock:
                found.add(one)
                told(number, one)
        process.end()

    threads = [threading.Thread(target=work) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    """Judge networks, print what was found, and write each network with a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=FULL, help="networks")
    parser.add_argument("--each", type=int, default=100, help="networks of one structure")
    parser.add_argument("--seed", type=int, default=1, help="of the whole family")
    parser.add_argument("--only", type=int, help="one structure")
    parser.add_argument("--number", type=int, help="one network of that structure")
    parser.add_argument("--first", type=int, default=0, help="structure to begin with")
    parser.add_argument("--moved", type=int, help="networks with trajectories and packets")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for networks with findings")
    given = parser.parse_args()
    many = -(-given.count // given.each)
    numbers = list(range(given.first, given.first + many))
    if given.only is not None:
        numbers = [given.only]
    moved = MOVED * given.count // FULL if given.moved is None else given.moved
    begun, done = time.perf_counter(), []

    def told(number: int, one: Found) -> None:
        done.append(number)
        took = time.perf_counter() - begun
        slow = ", ".join(f"{c} {s:.0f} s" for c, s in one.seconds.most_common(3))
        print(f"[{len(done)}/{len(numbers)}, {took:.0f} s] structure {number}: "
              f"{one.networks} networks, {dict(one.statuses)}; {slow}", flush=True)  # fmt: skip
        seen: collections.Counter[str] = collections.Counter()
        for f in one.findings:
            seen[f.check] += 1
            if seen[f.check] > TOLD:
                continue
            print(f"  --seed {given.seed} --only {f.structure} --number {f.number}: {f.check}: "
                  f"{f.reason}", flush=True)  # fmt: skip
            if given.out is not None:
                given.out.mkdir(parents=True, exist_ok=True)
                name = f"{given.seed}-{f.structure}-{f.number}-{f.check}.toml"
                (given.out / name).write_text(f"# {f.reason}\n{f.text}", "utf-8")
        for check, times in seen.items():
            if times > TOLD:
                print(f"  and {times - TOLD} more of {check}", flush=True)

    found = judged(
        given.seed, numbers, given.each, moved, processes=given.processes, only=given.number,
        told=told,
    )  # fmt: skip
    short = report(found, full=given.only is None and given.count >= FULL)
    sys.exit(bool(found.findings) or bool(short))


def report(found: Found, *, full: bool) -> list[str]:
    """Print the counts; what occurs too rarely, if the size is the full one."""
    import net_cases
    from net_checks import STATUSES

    from fluidcc.laws.own import loaded
    from fluidcc.laws.registry import kind_of

    print(f"{found.networks} networks, {sum(found.refused.values())} refused, "
          f"{len(found.findings)} findings")  # fmt: skip
    for name in ("statuses", "laws", "checks", "refused"):
        print(f"{name}:")
        for what, times in sorted(getattr(found, name).items()):
            print(f"  {times:6d}  {what}")
    print("withheld by their own check:")
    for reason, times in found.withheld.most_common():
        at = found.examples[reason]
        print(f"  {times:6d}  {reason[:160]} (--only {at.structure} --number {at.number})")
    by_check = collections.Counter(f.check for f in found.findings)
    print("findings by check:", dict(by_check))
    with loaded(net_cases.OWN):
        laws = {f"{kind_of(law)} {law.name}" for law in net_cases.every_law()}
    short = [v for v in sorted(laws) if found.laws[v] < LEAST]
    short += [v for v in STATUSES if found.statuses[v] < LEAST]
    many = found.withheld.total() > MOST * found.networks
    if many:
        print(f"more than {MOST:.0%} of the networks have no answer")
    if short and full:
        print(f"fewer than {LEAST} times: {', '.join(short)}")
    failed = short if full else []
    return [*failed, "withheld"] if many else failed


if __name__ == "__main__":
    main()
