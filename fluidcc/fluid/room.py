"""Room for a run, asked for before anything is allocated."""

import os
from pathlib import Path

import jax

MEMORY_FILE = Path("/proc/meminfo")
LIMITS = (  # of containers: what may be used, and what is
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def free_memory() -> float:
    """Bytes that a run may still take where JAX computes; infinite where nothing tells."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        if "bytes_limit" not in stats:
            return float("inf")
        return float(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return min(_of_machine(), *(_of_container(*paths) for paths in LIMITS))


def _of_machine() -> float:
    try:
        lines = MEMORY_FILE.read_text().splitlines()
        found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return 1024.0 * float(found[0])
    except (OSError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _of_container(limit: str, used: str) -> float:
    try:
        return float(Path(limit).read_text()) - float(Path(used).read_text())
    except (OSError, ValueError):  # no such limit, or "max"
        return float("inf")


def require(needed: float, what: str, advice: str) -> None:
    """ValueError with advice where `needed` bytes for `what` are more than are free."""
    free = free_memory()
    if needed > free:
        raise ValueError(
            f"{what} would take {_bytes(needed)}, and {_bytes(free)} of memory are free: {advice}"
        )


def _bytes(number: float) -> str:
    """A number of bytes as text."""
    number = max(number, 0.0)
    for unit in ("B", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1e3
    return f"{number:.3g} GB"
