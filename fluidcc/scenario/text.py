"""Scenario text to tables: limited in size, and parsed as TOML."""

import re
import tomllib
from typing import Any

from fluidcc.errors import Fault, ScenarioError, shown
from fluidcc.text_files import LARGEST

_PLACE = re.compile(r"^(.*) \(at (.*)\)$", re.DOTALL)
_LINE = re.compile(r"^line (\d+), ")
_DEEP = re.compile(  # the parser takes the square of their number, or more
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){31}"""
)
_SHOWN = 60  # characters of a faulty line
_HINTS = (  # pattern of a line that is no TOML, and the remedy
    (re.compile(r"^\s*[{]"), "TOML, such as `capacity = 1250`, not JSON"),
    (re.compile(r"^\s*[\w.-]+\s*:"), "TOML, such as `capacity = 1250`, not YAML"),
    (re.compile(r"=\s*[-+]?\d+,\d"), "TOML, with a point in numbers, such as `0.08`"),
    (
        re.compile(r"=\s*[-+]?[\d.]+\s*[A-Za-z%]"),
        'TOML, with quantities in quotes, such as `"10 Mbit/s"`',
    ),
    (re.compile(r"=\s*[A-Za-z]"), 'TOML, with words in quotes, such as `"red"`'),
)


def parsed(text: str, where: str) -> dict[str, Any]:
    """The tables of scenario text.

    Raises ScenarioError with the place and the line that is no TOML.
    """
    if len(text) > LARGEST:
        expected = f"at most {LARGEST} characters"
        raise ScenarioError([Fault(where, "", expected, f"{len(text)}")])
    if _DEEP.search(text):
        raise ScenarioError([Fault(where, "", "TOML", "names with more than 30 dots")])
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")  # a byte-order mark
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.match(str(error))
        what, place = match.groups() if match else (str(error), "")
        raise ScenarioError([_fault(text, where, what, place)]) from None
    except RecursionError:
        what = "lists or tables nested too deeply"
    except ValueError:
        what = "a number of thousands of digits"
    raise ScenarioError([Fault(where, "", "TOML", what)])


def _fault(text: str, where: str, what: str, place: str) -> Fault:
    """A fault with its line, and the usual remedy for such lines."""
    number = _LINE.match(place)
    lines = re.split(r"\r?\n", text)
    line = lines[int(number[1]) - 1].strip() if number and int(number[1]) <= len(lines) else ""
    if not line:
        return Fault(where, place, "TOML", f"a fault ({what})")
    expected = next((hint for form, hint in _HINTS if form.search(line)), "TOML")
    return Fault(where, place, expected, f"`{shown(line, _SHOWN)}` ({what})")
