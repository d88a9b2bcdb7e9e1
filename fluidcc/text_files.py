"""Text files from a user, read within limits of size."""

import codecs
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from fluidcc.errors import Fault, ScenarioError

LARGEST: Final = 1_000_000
"""Bytes of a file, and characters of text."""

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_file(name: str | os.PathLike[str], expected: str) -> str:
    """The text of a file, without a byte-order mark.

    `expected` names such files in messages. Raises FileNotFoundError, and ScenarioError if
    the file is no text, too large or not readable.
    """
    where = os.fspath(name)
    if not where or "\0" in where:
        raise FileNotFoundError(where)

    return _read(lambda: Path(where).open("rb"), where, expected)


def read_standard_input(expected: str) -> str:
    """The text of standard input, within the same bounds as a file's."""
    return _read(lambda: nullcontext(sys.stdin.buffer), "standard input", expected)


def _read(opened: Callable[[], Any], where: str, expected: str) -> str:
    def refused(reason: str) -> ScenarioError:
        return ScenarioError([Fault(where, "", expected, reason)])

    try:
        with opened() as file:
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
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"a file that is no UTF-8 text (byte {error.start})") from None
