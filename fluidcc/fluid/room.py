"""Room for a run, asked for before anything is allocated.

What counts is all the memory that there is, not what is free just now: so a run is refused, or not,
whatever else goes on beside it.
"""

import functools
import os
from pathlib import Path

import jax

LIMITS = (  # of containers, by their two kinds
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@functools.cache
def memory() -> float:
    """Bytes of memory where JAX computes; infinite where nothing tells."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return float((device.memory_stats() or {}).get("bytes_limit", float("inf")))
    return host()


def host() -> float:
    """Bytes of memory of this machine, or of the container that it is; starts nothing."""
    return min(_of_machine(), *map(_of_container, LIMITS))


def _of_machine() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _of_container(limit: Path) -> float:
    try:
        return float(limit.read_text())
    except (OSError, ValueError):  # no such limit, or "max"
        return float("inf")


def require(needed: float, what: str, advice: str, most: float | None = None) -> None:
    """ValueError with advice where `needed` bytes for `what` are more than there are, or `most`."""
    most = memory() if most is None else most
    if needed > most:
        there = f"{as_text(needed)} of memory, and there are {as_text(most)}"
        raise ValueError(f"{what} would take {there}: {advice}")


def as_text(number: float) -> str:
    """A number of bytes as text."""
    for unit in ("B", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1e3
    return f"{number:.3g} GB"
