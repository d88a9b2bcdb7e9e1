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
import json
import os
import pickle
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "packets")]

MOVED = 300  # networks of the full size that are simulated
GROWN = 10  # networks of a structure whose modes are followed, at most
FULL = 10_000
MOST = 0.05  # share of the networks that may have no answer
LEAST = 20  # times that every law and status occurs in the full size
LONGEST = 3600.0  # s for one structure, with what it compiles


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
        for name in ("refused", "laws", "statuses", "checks", "withheld"):
            getattr(self, name).update(getattr(other, name))
        self.examples = other.examples | self.examples
        self.findings += other.findings


def judge(root: int, number: int, count: int, moved: int = 0, only: int | None = None) -> Found:
    """Judge `count` networks of a structure, `moved` of them with trajectories and packets."""
    import net_cases

    found, grown = Found(), 0
    form = net_cases.structure(root, number)
    for j, net in enumerate(net_cases.networks(form, root, number, count)):
        if only is not None and j != only:
            continue
        if isinstance(net, str):
            found.refused[net] += 1
            continue
        moving, more = j < moved or j == only, moved > 0 and grown < GROWN
        grown += _judge(found, (number, j), net, j == 0 or j == only, moving, more)
    return found


def _judge(
    found: Found, at: tuple[int, int], net: Any, first: bool, moving: bool, growing: bool
) -> bool:
    """Judge one network; whether its modes were followed."""
    import net_checks as known

    from fluidcc.analysis.equilibrium import equilibrium
    from fluidcc.laws.own import laws_in
    from fluidcc.laws.registry import kind_of
    from fluidcc.scenario.files import dumps

    text = dumps(net)

    def run(check: str, call: Callable[[], Any]) -> Any:
        try:
            out = call()
            if isinstance(out, Iterator):
                found.findings += [Finding(*at, check, line, text) for line in out]
            found.checks[check] += out is not None
            return out
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1].name
            reason = f"{type(error).__name__} at {where}: {error}"
            found.findings.append(Finding(*at, check, reason[:400], text))
            return None

    found.networks += 1
    found.laws.update(f"{kind_of(law)} {law.name}" for law in laws_in(net))
    rest = run("equilibrium", lambda: equilibrium(net))
    if rest is None:
        return False
    found.statuses[rest.status] += 1
    if rest.status == "undetermined":
        found.withhold(Finding(*at, "equilibrium", rest.message, text))
        return False
    run("known_numbers", lambda: known.known_numbers(rest))
    run("loads_of_links", lambda: known.loads_of_links(rest))
    if (reason := run("derivatives", lambda: known.no_derivatives(net, rest))) is not None:
        found.withhold(Finding(*at, "linear", reason, text))
        return False
    run("linear", lambda: known.linear(net, rest))
    if at[1] % 4 == 0:
        run("time", lambda: known.time(net, rest))
        run("units", lambda: known.units(net, rest))
    if first:
        run("order", lambda: known.order(net, rest))
    growing = growing and bool(run("modes", lambda: known.has_modes(net, rest)))
    if not (first or moving or growing):
        return False
    both = run("stability", lambda: known.judged(net, certify=rest.smooth and (first or moving)))
    if both is None:
        return growing
    if both[1] is not None:
        run("count", lambda: known.count(*both))
    if growing:
        run("growth", lambda: known.growth(both[0]))
    if moving:
        run("packets", lambda: known.packets(net))
        run("meet", lambda: known.meet(net, both[0]))
    return growing


def _apart(root: int, number: int, count: int, moved: int, only: int | None) -> Found:
    """The same in a process of its own, which may hang or end: that is a finding."""
    words = [sys.executable, __file__, "--one", json.dumps([root, number, count, moved, only])]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_llvm_disable_expensive_passes=true"
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, timeout=LONGEST, env=os.environ | {"XLA_FLAGS": flags}
        )
        if done.returncode == 0:
            return pickle.loads(done.stdout)
        reason = f"the process ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        reason = f"takes more than {LONGEST:g} s"
    return Found(findings=[Finding(number, -1, "process", reason, "")])


def _one(task: str) -> None:
    """Judge a structure in this process and write what was found; NumPy's warnings are findings."""
    warnings.simplefilter("error", RuntimeWarning)
    import net_cases

    from fluidcc.dde.cpu import fast_cpu
    from fluidcc.laws.own import loaded

    fast_cpu()
    with loaded(net_cases.OWN):
        found = judge(*json.loads(task))
    sys.stdout.buffer.write(pickle.dumps(found))


def main() -> None:
    """Judge networks, print what was found, and write each network with a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=FULL, help="networks")
    parser.add_argument("--each", type=int, default=100, help="networks of one structure")
    parser.add_argument("--seed", type=int, default=1, help="of the whole family")
    parser.add_argument("--only", type=int, help="one structure")
    parser.add_argument("--number", type=int, help="one network of that structure")
    parser.add_argument("--moved", type=int, help="networks with trajectories and packets")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for networks with findings")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return _one(given.one)
    numbers = list(range(-(-given.count // given.each))) if given.only is None else [given.only]
    moved = MOVED * given.count // FULL if given.moved is None else given.moved
    shares = [moved * (i + 1) // len(numbers) - moved * i // len(numbers)
              for i in range(len(numbers))]  # fmt: skip
    whole = Found()
    with ThreadPoolExecutor(given.processes) as pool:
        ones = pool.map(
            lambda number, share: _apart(given.seed, number, given.each, share, given.number),
            numbers, shares,
        )  # fmt: skip
        for number, found in zip(numbers, ones, strict=True):
            print(f"structure {number}: {found.networks} networks, {dict(found.statuses)}")
            for f in found.findings:
                again = f"--seed {given.seed} --only {f.structure} --number {f.number}"
                print(f"  {again}: {f.check}: {f.reason}", flush=True)
                if given.out is not None:
                    given.out.mkdir(parents=True, exist_ok=True)
                    name = f"{given.seed}-{f.structure}-{f.number}-{f.check}.toml"
                    (given.out / name).write_text(f"# {f.reason}\n{f.text}", "utf-8")
            whole.add(found)
    sys.exit(bool(whole.findings) or report(whole, given.only is None and given.count >= FULL))


def report(found: Found, full: bool) -> bool:
    """Print the counts; whether answers are withheld, or things occur, more rarely than allowed."""
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
    with loaded(net_cases.OWN):
        laws = {f"{kind_of(law)} {law.name}" for law in net_cases.every_law()}
    short = [v for v in sorted(laws) if found.laws[v] < LEAST]
    short += [v for v in STATUSES if found.statuses[v] < LEAST]
    if full and short:
        print(f"fewer than {LEAST} times: {', '.join(short)}")
    return found.withheld.total() > MOST * found.networks or (full and bool(short))


if __name__ == "__main__":
    main()
