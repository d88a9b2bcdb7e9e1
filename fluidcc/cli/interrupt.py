"""Ctrl-C, beside compiled loops that run on and code in which exceptions are lost."""

import contextlib
import os
import signal
import sys
import threading
from importlib.machinery import ExtensionFileLoader
from types import FrameType
from typing import Any

from fluidcc.cli.run import INTERRUPTED

_AGAIN = 0.05  # s
_LOADING = (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)


class Interrupt:
    """Handles SIGINT, and knows if one came: then the process is to end by `leave`."""

    def __init__(self) -> None:
        self.came = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
            signal.signal(signal.SIGINT, self)
            sys.unraisablehook = self._lost

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt; a little later while a library of C loads, which would fail."""
        self.came = True
        while frame is not None and frame.f_code not in _LOADING:
            frame = frame.f_back
        if frame is None:
            raise KeyboardInterrupt
        _send_again()

    def _lost(self, what: Any) -> None:
        """Send the signal again if its exception came up in a callback, from which none returns."""
        if what.exc_type is KeyboardInterrupt:
            _send_again()
        else:
            sys.__unraisablehook__(what)

    def leave(self, code: object) -> None:
        """End the process at once if a SIGINT came.

        Python would wait for the compiled loops that still run, and nothing ends these.
        """
        if self.came:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            os._exit(code if isinstance(code, int) else INTERRUPTED)


def _send_again() -> None:
    threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT)).start()
