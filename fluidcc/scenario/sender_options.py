"""Rules of packet senders by name, with the two profiles of ns-2 as sets of defaults.

Nothing here needs JAX or Numba, so that scenario files can be judged quickly.
"""

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

INF = math.inf


class SenderError(ValueError):
    """A sender option that does not exist or is out of its range."""


def _rule(
    default: Any, unit: str, doc: str, bounds: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    metadata = {"unit": unit, "doc": doc, "bounds": bounds, "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SenderOptions:
    """What a packet sender does beside its window law; defaults are those of ns-2.35.

    The metadata of each field holds its `unit`, `doc`, `bounds` (closed) or `choices`.
    The receiver's window is `max_window` of the window law.
    """

    profile: str = _rule("ns-2.35", "", "set of defaults", choices=("ns-2.35", "ns-2.1b8a"))
    tick: float = _rule(0.01, "s", "clock of the round-trip timer", (1e-6, 10.0))
    min_rto: float = _rule(0.2, "s", "smallest retransmission timeout", (0.0, 60.0))
    max_rto: float = _rule(60.0, "s", "largest retransmission timeout", (0.1, 1e6))
    initial_rto: float = _rule(3.0, "s", "timeout before the first sample", (0.01, 60.0))
    initial_window: float = _rule(2.0, "packet", "window of the first data", (1.0, 1e6))
    initial_ssthresh: float = _rule(
        INF, "packet", "slow start ends here at first; at most the receiver's window", (1.0, INF)
    )
    syn: bool = _rule(True, "", "a small packet opens the connection")
    syn_size: float = _rule(40.0, "B", "size of that packet", (1.0, 65535.0))
    ack_size: float = _rule(40.0, "B", "size of an acknowledgement", (1.0, 65535.0))
    quench_size: float = _rule(56.0, "B", "size of a source quench", (1.0, 65535.0))
    dup_acks: int = _rule(3, "1", "duplicate ACKs that mean a loss", (1, 100))
    limited_transmit: bool = _rule(True, "", "send new data on the duplicate ACKs before that")
    one_fast_retransmit: bool = _rule(
        True, "", "at most one fast retransmit per window of data (ns-2's bugFix_)"
    )
    integer_windows: bool = _rule(False, "", "windows are truncated before and after a cut")
    window_validation: bool = _rule(
        False,
        "",
        "a window grows only while full; it decays where data or the receiver's window do not fill "
        "it for a timeout, or nothing is sent for one (RFC 2861, section 3)",
    )
    partial_deflation: bool = _rule(
        True, "", "a partial ACK takes the packets it covers off the window"
    )
    partial_timer_once: bool = _rule(
        True, "", "only the first partial ACK of a recovery restarts the timer"
    )
    recovery_burst: int = _rule(
        2, "packet", "most that NewReno sends on one ACK in a recovery; 0 for any number",
        (0, 1_000_000),
    )  # fmt: skip
    recovery: str = _rule(
        "law", "", "how losses are repaired", choices=("law", "reno", "newreno", "sack")
    )
    echo: str = _rule(
        "law", "", "receiver's echo of marks: of each packet, or until the sender confirms",
        choices=("law", "packet", "sticky"),
    )  # fmt: skip
    grow_on_echo: bool = _rule(False, "", "windows grow on ACKs that carry a sticky echo")
    overhead: float = _rule(
        0.0, "s", "each send waits for a time uniform between 0 and this", (0.0, 10.0)
    )
    choice_waiting: int = _rule(
        2, "1", "packets (bytes in byte mode) that wait before a queue with an average may choose",
        (0, 1_000_000),
    )  # fmt: skip
    choice_arms: bool = _rule(
        True, "", "the first packet after the average crosses the threshold is never chosen"
    )
    mark_below: float = _rule(
        INF, "1", "packets chosen at this long-run probability or above are dropped, not marked",
        (0.0, INF),
    )  # fmt: skip


PROFILES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "ns-2.35": MappingProxyType({}),
        "ns-2.1b8a": MappingProxyType(
            {
                "min_rto": 1.0,
                "limited_transmit": False,
                "integer_windows": True,
                "partial_deflation": False,
                "partial_timer_once": False,
            }
        ),
    }
)
"""What each profile changes of the defaults above."""


def fields() -> dict[str, dataclasses.Field]:
    """The options by name."""
    return {f.name: f for f in dataclasses.fields(SenderOptions)}


def expected(field: dataclasses.Field, value: Any) -> str:
    """What the option needs where the value does not fit; empty where it does."""
    meta = field.metadata
    if meta["choices"]:
        return "" if value in meta["choices"] else f"one of {', '.join(meta['choices'])}"
    if field.type is bool:
        return "" if isinstance(value, bool) else "true or false"
    low, high = meta["bounds"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        unit = "" if meta["unit"] in ("", "1") else f" {meta['unit']}"
        return f"a number in [{low:g}, {high:g}]{unit}"
    return "a whole number" if field.type is int and value != int(value) else ""


def as_kept(field: dataclasses.Field, value: Any) -> Any:
    """A value that fits, in the type of its option."""
    return field.type(value) if field.type in (int, float) else value


def sender_options(pairs: Iterable[tuple[str, Any]] | Mapping[str, Any] = ()) -> SenderOptions:
    """Options from (name, value) pairs over the defaults of the profile among them.

    Raises SenderError, which names the option, what was expected and the nearest valid name.
    """
    given, known = dict(pairs), fields()
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
            raise SenderError(f"no option {name!r} of a sender{hint}")
    for name, value in given.items():
        needed = expected(known[name], value)
        if needed:
            raise SenderError(f"sender.{name}: expected {needed}, got {value!r}")
    values = {name: as_kept(known[name], value) for name, value in given.items()}
    profile = values.get("profile", "ns-2.35")
    return SenderOptions(**{**PROFILES[profile], **values})
