"""Lines of the user's own text from which errors come."""

import dataclasses
import inspect
import linecache
import os
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from fluidcc.laws.law import Law

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_ELSEWHERE = (
    _PACKAGE,
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("purelib", "stdlib", "platlib")),
    "<",
)


def own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """The innermost frame of text that is neither of this package nor of an installed one."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_ELSEWHERE) or "ipykernel" in frame.filename
    ]  # fmt: skip
    return frames[-1] if frames else None


def line_of_error(error: BaseException) -> str:
    """The line that an error comes from, with its text; empty if that is not the user's."""
    frame = own_frame(error)
    if frame is None:
        return ""
    text = (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
    return f"line {frame.lineno}, `{text}`"


def line_of_rule(law: Any, method: str) -> str:
    """The line that a rule begins at; empty for one that this package has."""
    function = inspect.unwrap(getattr(type(law), method))
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename.startswith(_PACKAGE):
        return ""
    return f"line {code.co_firstlineno}"


def describe(error: BaseException) -> str:
    """An error in a rule, in words for the author of the law."""
    if isinstance(error, dataclasses.FrozenInstanceError):
        return (
            f"{error}: a law has no attributes that change; its memory is its state, "
            "and a rule returns the change of that"
        )
    if isinstance(error, AttributeError) and (record := _record(error)) is not None:
        known = ", ".join(record._fields)
        return f"reads {error.name!r}, but {type(record).__name__} has only {known}"
    if isinstance(error, AttributeError) and isinstance(error.obj, Law):
        return f"reads {error.name!r}, which {type(error.obj).__name__} has not"
    if isinstance(error, AttributeError) and isinstance(error.obj, float):
        return f"reads {error.name!r} of a number: the state is one number, not a record"
    return f"{type(error).__name__}: {error}"


def _record(error: AttributeError) -> Any:
    return error.obj if isinstance(error.obj, tuple) and hasattr(error.obj, "_fields") else None
