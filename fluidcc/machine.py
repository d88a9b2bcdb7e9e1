"""What of the machine this process may use."""

import logging
import os
import shutil


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads() -> int:
    """How many threads of work a process may have: FLUIDCC_THREADS, or one for each processor."""
    told = os.environ.get("FLUIDCC_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else processors()


def card() -> bool:
    """Whether the machine has an NVIDIA card and its driver."""
    return shutil.which("nvidia-smi") is not None


def about_a_card(record: logging.LogRecord) -> bool:
    """For `logging`: what JAX says where its part for cards cannot start is a line, or nothing.

    Without a card that part, which the extra ``gpu`` brings, has nothing to do.
    """
    cause = record.exc_info[1] if record.exc_info else None
    if cause is None or not str(record.msg).startswith("Jax plugin"):
        return True
    record.msg, record.args = f"{record.getMessage()}: {cause}", ()
    record.exc_info = record.exc_text = None
    return card()
