"""Scenario text to tables: read from a file, kept within bounds, and parsed as TOML."""

import codecs
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from fluidcc.errors import Fault, ScenarioError, shown

LARGEST: Final = 1_000_000
"""Bytes of a scenario file, and characters of scenario text."""

_PLACE = re.compile(r"^(.*) \(at (.*)\)$", re.DOTALL)
_LINE = re.compile(r"^line (\d+), ")
_DEEP = re.compile(  # the parser takes the square of their number, or more
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){31}"""
)
_SHOWN = 60  # characters of a faulty line
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HINTS = (  # what a line that is no TOML looks like, and what is missing
    (re.compile(r"^\s*[{]"), "TOML, such as `capacity = 1250`, not JSON"),
    (re.compile(r"^\s*[\w.-]+\s*:"), "TOML, such as `capacity = 1250`, not YAML"),
    (re.compile(r"=\s*[-+]?\d+,\d"), "TOML, with a point in numbers, such as `0.08`"),
    (
        re.compile(r"=\s*[-+]?[\d.]+\s*[A-Za-z%]"),
        'TOML, with quantities in quotes, such as `"10 Mbit/s"`',
    ),
    (re.compile(r"=\s*[A-Za-z]"), 'TOML, with words in quotes, such as `"red"`'),
)


def read_file(name: str | os.PathLike[str]) -> str:
    """The text of a scenario file.

    Raises FileNotFoundError, and ScenarioError for what is no text, too large or not readable.
    """
    where = os.fspath(name)
    if not where or "\0" in where:
        raise FileNotFoundError(where)

    def refused(reason: str) -> ScenarioError:
        return ScenarioError([Fault(where, "", "a scenario file (TOML, UTF-8 text)", reason)])

    try:
        with Path(where).open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise refused("a folder") from None
    except OSError as error:
        raise refused(error.strerror or str(error)) from None
    if len(data) > LARGEST:
        raise refused(f"more than {LARGEST} bytes")
    if data.startswith(_WIDE):
        raise refused("text in UTF-16: save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"a file that is no UTF-8 text (byte {error.start})") from None


def parsed(text: str, where: str) -> dict[str, Any]:
    """The tables of scenario text.

    Raises ScenarioError with the place and the line where it is no TOML.
    """
    if len(text) > LARGEST:
        expected = f"at most {LARGEST} characters"
        raise ScenarioError([Fault(where, "", expected, f"{len(text)}")])
    if _DEEP.search(text):
        raise ScenarioError([Fault(where, "", "TOML", "names with more than 30 dots")])
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")  # what some editors begin files with
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
    """A fault with the line that it is in, and what such lines most often lack."""
    number = _LINE.match(place)
    lines = re.split(r"\r?\n", text)
    line = lines[int(number[1]) - 1].strip() if number and int(number[1]) <= len(lines) else ""
    if not line:
        return Fault(where, place, "TOML", f"a fault ({what})")
    expected = next((hint for form, hint in _HINTS if form.search(line)), "TOML")
    return Fault(where, place, expected, f"`{shown(line, _SHOWN)}` ({what})")
