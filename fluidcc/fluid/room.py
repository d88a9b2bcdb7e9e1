"""Room for a run, asked for before anything is allocated.

What counts is all the memory that there is, not what is free just now: so a run is refused, or not,
whatever else goes on beside it.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import jax

LIMITS = (  # of containers, by their two kinds
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

_beside = threading.local()
A = TypeVar("A")
T = TypeVar("T")


class NoRoom(ValueError):
    """What was asked for does not fit in memory."""


def chosen() -> Any:
    """What `jax.default_device` says here: a device, a platform's name, or nothing."""
    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]


def place() -> Any:
    """The device where JAX computes what was put on none."""
    device = chosen()
    return device if isinstance(device, jax.Device) else jax.local_devices(backend=device)[0]


def in_place(function: Callable[[A], T]) -> Callable[[A], T]:
    """The function as other threads call it: on the device chosen here, which each thread has of
    its own.
    """
    device = chosen()

    def call(argument: A) -> T:
        with jax.default_device(device):
            return function(argument)

    return call


@contextlib.contextmanager
def shared_by(threads: int) -> Iterator[None]:
    """Leave this thread its share of the memory, as so many do such work at a time."""
    _beside.threads = threads
    try:
        yield
    finally:
        _beside.threads = 1


def memory() -> float:
    """Bytes of memory where JAX computes, or the share of this thread; infinite if unknown."""
    return _memory(place()) / getattr(_beside, "threads", 1)


@functools.cache
def _memory(device: Any) -> float:
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
    """NoRoom with advice where `needed` bytes for `what` are more than there are, or `most`."""
    most = memory() if most is None else most
    if needed > most:
        there = f"{as_text(needed)} of memory, and there are {as_text(most)}"
        raise NoRoom(f"{what} would take {there}: {advice}")


def as_text(number: float) -> str:
    """A number of bytes as text."""
    for unit in ("B", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1e3
    return f"{number:.3g} GB"
