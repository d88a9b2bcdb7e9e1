"""Values as users type them, on a command line or in a URL; their faults are collected."""

from collections.abc import Callable
from typing import Any

from fluidcc.errors import Fault, ScenarioError

_COUNTED = 1_000_000  # seeds, trials, starts and the like


class Faults:
    """Collects the faults of typed values, to report all of them in one error."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def add(self, option: str, key: str, expected: str, got: str) -> None:
        """Note a fault of an option."""
        self.found.append(Fault(option, key, expected, got))

    def catch(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Result of the call; if it raises ScenarioError, None, and its faults are kept."""
        try:
            return call(*args, **options)
        except ScenarioError as error:
            self.found += error.faults
            return None

    def finish(self) -> None:
        """Raise ScenarioError if there is any fault."""
        if self.found:
            raise ScenarioError(self.found)


def value_of(text: str) -> Any:
    """A value as typed: a number, a list, a table or a yes/no as in TOML; otherwise text.

    Numbers may be written as in Python too, such as ``.5``.
    """
    from fluidcc.scenario.text import parsed  # starts JAX, as below
    from fluidcc.scenario.units import NUMBER

    try:
        read = parsed(f"value = {text}", "")
    except ScenarioError:
        bare = text.strip()
        return float(bare) if NUMBER.fullmatch(bare) else bare
    return read["value"] if len(read) == 1 else text.strip()


def seconds(option: str, text: str, faults: Faults, *, within: str = "(0, inf)") -> float:
    """A time such as ``60`` or ``500 ms`` [s]; 0 if it is faulty."""
    from fluidcc.laws.parameters import Interval
    from fluidcc.scenario.units import UnitError, read

    try:
        value = read(value_of(text), "s")
    except UnitError as error:
        faults.add(option, "", str(error), f"{text!r}")
        return 0.0
    if value not in Interval(within):
        faults.add(option, "", f"a time in {within} s", f"{text!r}")
        return 0.0
    return value


def count(option: str, text: str, faults: Faults, *, least: int = 1, most: int = _COUNTED) -> int:
    """A whole number from `least` to `most`; `least` if it is faulty."""
    typed = text.strip()
    digits = typed.lstrip("0") or typed[:1]
    if digits.isdecimal() and len(digits) <= len(str(most)) and least <= int(digits) <= most:
        return int(digits)
    faults.add(option, "", f"a whole number of at least {least} and at most {most}", f"{text!r}")
    return least


def share(option: str, text: str, faults: Faults) -> float:
    """A number between 0 and 1; 0.5 if it is faulty."""
    try:
        if 0 < float(text) < 1:
            return float(text)
    except ValueError:
        pass
    faults.add(option, "", "a number between 0 and 1", f"{text!r}")
    return 0.5
