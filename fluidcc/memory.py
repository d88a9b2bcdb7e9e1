"""The memory budget: runs that do not fit are refused before anything is allocated.

The limit is the total memory, not the memory free just now, so that other processes do not decide
whether a run is refused. Packet runs alone share the free memory, as they use all that they ask
for: those that do not fit yet wait, which does not change their results.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

LIMITS = (  # of containers, by their two kinds
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
USED = ("memory.current", "memory.usage_in_bytes")
MACHINE = Path("/proc/meminfo")

_thread_share = threading.local()
A = TypeVar("A")
T = TypeVar("T")


class TooLittleMemory(ValueError):
    """The requested computation does not fit in memory."""


def chosen() -> Any:
    """The setting `jax.default_device` of this thread: a device, a platform's name, or None."""
    from fluidcc.arrays import jax  # heavy, and packet runs do without

    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]


def place() -> Any:
    """The device where JAX computes with arrays that were put on none."""
    from fluidcc.arrays import jax

    device = chosen()
    return device if isinstance(device, jax.Device) else jax.local_devices(backend=device)[0]


def in_place(function: Callable[[A], T]) -> Callable[[A], T]:
    """The function for other threads to call: on the device chosen in this thread, as the choice
    belongs to each thread.
    """
    from fluidcc.arrays import jax

    device = chosen()

    def call(argument: A) -> T:
        with jax.default_device(device):
            return function(argument)

    return call


@contextlib.contextmanager
def shared_by(threads: int) -> Iterator[None]:
    """Limit this thread to its share of the memory, one of `threads` equal ones."""
    _thread_share.threads = threads
    try:
        yield
    finally:
        _thread_share.threads = 1


def available() -> float:
    """Bytes of memory where JAX computes, or the share of this thread; infinite if unknown."""
    return _memory(place()) / getattr(_thread_share, "threads", 1)


@functools.cache
def _memory(device: Any) -> float:
    if device.platform != "cpu":
        return float((device.memory_stats() or {}).get("bytes_limit", float("inf")))
    return host()


def host() -> float:
    """Bytes of memory of this machine, or of the container that it is; starts no JAX backend."""
    return min(_of_machine(), *map(_of_container, LIMITS))


def free() -> float:
    """Bytes that are free now, of those of `host`; all of them if that is unknown."""
    return min(host(), _labelled(MACHINE, "MemAvailable:") * 1024, *map(_left, LIMITS, USED))


def _left(limit: Path, used: str) -> float:
    """Bytes that a container may still take: cached pages of files can be dropped."""
    taken = _of_container(limit.with_name(used))
    files = _labelled(limit.with_name("memory.stat"), "inactive_file")
    return _of_container(limit) - taken + files if taken < float("inf") else taken


def _labelled(file: Path, name: str) -> float:
    """The number behind a name in a file of lines; infinite if there is none."""
    try:
        rows = map(str.split, file.read_text().splitlines())
        return next((float(row[1]) for row in rows if row[0] == name), float("inf"))
    except OSError:
        return float("inf")


class Share:
    """Memory that threads of this process share: together they hold at most what was free."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held = self._free = 0.0

    def take(self, needed: float, what: str, advice: str) -> None:
        """Hold so many bytes, as soon as others have given back enough.

        Raises TooLittleMemory with advice if they do not fit even alone.
        """
        with self._changed:
            while self._held and self._held + needed > self._free:
                self._changed.wait()
            if not self._held:
                self._free = free()
                if needed > self._free:
                    sizes = f"{as_text(needed)} of memory, and {as_text(self._free)} are free"
                    raise TooLittleMemory(f"{what} would take {sizes}: {advice}")
            self._held += needed

    def give(self, held: float) -> None:
        """Give back so many bytes."""
        with self._changed:
            self._held -= held
            self._changed.notify_all()


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
    """Raise TooLittleMemory, with advice, if `needed` bytes for `what` exceed `most`."""
    most = available() if most is None else most
    if needed > most:
        sizes = f"{as_text(needed)} of memory, and there are {as_text(most)}"
        raise TooLittleMemory(f"{what} would take {sizes}: {advice}")


def as_text(number: float) -> str:
    """A number of bytes as text."""
    for unit in ("B", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1e3
    return f"{number:.3g} GB"
