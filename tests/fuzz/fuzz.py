"""Spoiled scenarios and options by the hundred thousand: each is accepted or refused, in time.

Run it as `uv run python tests/fuzz/fuzz.py [COUNT] [SEED] [FIRST]`; the test beside it takes the
first few.
"""

import dataclasses
import resource
import sys
import time
import warnings

from mutations import Options, Scenarios

from fluidcc import ScenarioError, dumps, loads, replace
from fluidcc.cli.options import _grid, _split
from fluidcc.scenario.parsing import Faults, value_of

LONGEST = 1.0  # s for one of them
_LINE = 2000  # characters of the longest message for one fault


@dataclasses.dataclass
class Count:
    """How many were accepted and refused, the slowest of them, and what went wrong."""

    accepted: int = 0
    refused: int = 0
    slowest: tuple[float, int] = (0.0, -1)
    wrong: list[str] = dataclasses.field(default_factory=list)

    def judge(self, number: int, what: str, call) -> None:
        """Call and note how it went."""
        begun = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                call()
            self.accepted += 1
        except ScenarioError as error:
            self.refused += 1
            lines = list(map(str, error.faults))
            if not lines or any(len(t) > _LINE or not t.isprintable() for t in lines):
                self.wrong.append(f"{what} {number}: message {max(lines, default='', key=len)!r}")
        except Exception as error:
            self.wrong.append(f"{what} {number}: {type(error).__name__}: {error}"[:400])
        took = time.perf_counter() - begun
        self.slowest = max(self.slowest, (took, number))
        if took > LONGEST:
            self.wrong.append(f"{what} {number}: {took:.2f} s")


def load_and_return(text: str) -> None:
    """Load a text; what is accepted must survive the way out and back."""
    net = loads(text)
    again = dumps(net)
    if dumps(loads(again)) != again:
        raise AssertionError("dumps -> loads -> dumps differs")


def option(net, kind: str, text: str) -> None:
    """Read an option as the command line does."""
    faults = Faults()
    read = _split(kind, [text], faults)
    if kind == "--set":
        faults.finish()
        replace(net, {path: value_of(value) for path, value in read.items()}, where=kind)
    else:
        _grid([text], net, faults, 1000)
    faults.finish()


def scenarios(count: int, seed: int = 0, first: int = 0) -> Count:
    """Spoiled scenarios."""
    found, source = Count(), Scenarios()
    for number in range(first, first + count):
        text = source.spoiled(number, seed)
        found.judge(number, "scenario", lambda text=text: load_and_return(text))
    return found


def options(count: int, seed: int = 0, first: int = 0) -> Count:
    """Spoiled options."""
    found, source = Count(), Options()
    for number in range(first, first + count):
        kind, text = source.spoiled(number, seed)
        found.judge(number, "option", lambda k=kind, t=text: option(source.net, k, t))
    return found


def main() -> None:
    """Both, and what came out."""
    given = [int(word) for word in sys.argv[1:]]
    count, seed, first = given + [100_000, 0, 0][len(given) :]
    wrong = []
    for name, made in (
        ("scenarios", scenarios(count, seed, first)),
        ("options", options(count // 10, seed, first)),
    ):
        took, number = made.slowest
        print(f"{name}: {made.accepted} accepted, {made.refused} refused; ", end="")
        print(f"slowest {took:.3f} s (number {number}); {len(made.wrong)} wrong")
        wrong += made.wrong
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory at most {peak:.0f} MB")
    print("\n".join(wrong[:200]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
