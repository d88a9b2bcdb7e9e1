"""What of the machine this process may use."""

import os


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads() -> int:
    """How many threads of work a process may have: FLUIDCC_THREADS, or one for each processor."""
    told = os.environ.get("FLUIDCC_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else processors()
