"""Processors, threads and cards that this process may use."""

import logging
import os
import platform
import shutil
from pathlib import Path


def processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def instructions() -> str:
    """Kind of the processor, with its instruction sets if the system names them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return " ".join([platform.machine(), platform.processor(), *sorted(set(named))])


def threads() -> int:
    """Number of worker threads of a process: FLUIDCC_THREADS, or one for each processor."""
    setting = os.environ.get("FLUIDCC_THREADS", "")
    return int(setting) if setting.isdecimal() and int(setting) else processors()


def card() -> bool:
    """Whether the machine has an NVIDIA card and its driver."""
    return shutil.which("nvidia-smi") is not None


def about_a_card(record: logging.LogRecord) -> bool:
    """Filter for `logging`: one line, or none, if JAX's plugin for cards cannot start.

    Without a card that plugin, which the extra ``gpu`` installs, has nothing to do.
    """
    cause = record.exc_info[1] if record.exc_info else None
    if cause is None or not str(record.msg).startswith("Jax plugin"):
        return True
    record.msg, record.args = f"{record.getMessage()}: {cause}", ()
    record.exc_info = record.exc_text = None
    return card()
