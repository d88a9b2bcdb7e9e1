"""How the process ends outside of a command: by a fault of fluidcc, with a report in a file, or by
Ctrl-C, after which compiled loops may still run.
"""

import contextlib
import errno
import os
import platform
import signal
import sys
import threading
import time
import traceback
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import PackageNotFoundError, version
from types import CodeType, FrameType
from typing import Any

from fluidcc.cli.options import command_line
from fluidcc.cli.run import FAILED, INTERRUPTED, WRONG_USE, print_error
from fluidcc.folders import BESIDE, own_folder

VARIABLE = "FLUIDCC_TRACEBACK"
"""If it is 1, a failure shows its traceback."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_VERSIONS = ("fluidcc", *BESIDE, "xarray", "h5netcdf", "typer")


_AGAIN = 0.05  # s
_LOADING = (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)
_COMPILING = ("from_hlo", "pxla.py")  # a function of JAX, and the end of its file's name


def report(error: Exception) -> int:
    """Print a failure on stderr, with the file of its report and how to pass it on.

    Gives the exit code; a disk that is full is no failure of fluidcc.
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        where = f" '{error.filename}'" if error.filename else ""
        print(f"error: cannot write{where}: {error.strerror}", file=sys.stderr)
        return WRONG_USE
    summary = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}".rstrip(": ")
    lines = [f"error: fluidcc failed where it should not: {summary}"]
    text = _report()
    if os.environ.get(VARIABLE) == "1":
        lines.append(text)
    else:
        lines += _save(text)
    print("\n".join(lines), file=sys.stderr)
    if "--json" in sys.argv:
        print_error(lines[0].removeprefix("error: "))
    return FAILED


def _report() -> str:
    """The versions, the command and the traceback of the present failure."""
    head = [f"{name} {_version(name)}" for name in _VERSIONS]
    head += [f"Python {platform.python_version()}", platform.platform()]
    return "\n".join([*head, "", command_line(), "", traceback.format_exc()])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not installed"


def _save(text: str) -> list[str]:
    """The report in a file of the cache folder, or why it is not."""
    try:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        file = own_folder("faults") / f"fault-{stamp}-{os.getpid()}.txt"
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        return [
            f"Its report cannot be kept ({problem.strerror or problem}); "
            f"{VARIABLE}=1 shows it. It is a fault of fluidcc: please report it."
        ]
    return [
        f"This is a fault of fluidcc, not of your input. Its report is in '{file}':",
        f"please pass it on as described in README.md. {VARIABLE}=1 shows it here.",
    ]


class Interrupt:
    """Handles SIGINT, and records if one came: then the process has to end by `leave`."""

    def __init__(self) -> None:
        self.came = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            signal.signal(signal.SIGINT, self)
            sys.unraisablehook = self._lost

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt; while a C library loads, which would fail, or JAX compiles,
        which would go on, a little later.
        """
        self.came = True
        while frame is not None and not _loses_exceptions(frame.f_code):
            frame = frame.f_back
        if frame is None:
            raise KeyboardInterrupt
        _send_again()

    def _lost(self, what: Any) -> None:
        """Send the signal again if its exception was lost in a callback."""
        if what.exc_type is KeyboardInterrupt:
            _send_again()
        else:
            sys.__unraisablehook__(what)

    def leave(self, code: object) -> None:
        """End the process at once if a SIGINT came.

        Python would wait for compiled loops, which cannot be stopped.
        """
        if self.came:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            os._exit(code if isinstance(code, int) else INTERRUPTED)


def _loses_exceptions(code: CodeType) -> bool:
    """Whether a function takes any exception for a reason to do something else."""
    name, file = _COMPILING
    return code in _LOADING or (code.co_name == name and code.co_filename.endswith(file))


def _send_again() -> None:
    threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()
