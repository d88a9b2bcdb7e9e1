"""Senders in scenarios: their packet rules by name, with the two profiles of ns-2 as sets of
defaults, and the window table of a group of flows.

That table holds the parameters of several laws: its `law` is the window law, `reaction` and `loss`
name further laws, and the fields of all three stand in it, with those of the feedback law named
next to it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any

from fluidcc.laws.law import AbstractFeedback, AbstractReaction, AbstractWindowLaw
from fluidcc.laws.parameters import ENGINES, EVENTS, choice, infos, param
from fluidcc.scenario.network import Flows
from fluidcc.scenario.reader import FAULTY, LABELS, Laws, Reader, got, sound

_POPULATION = ("population", *EVENTS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SenderOptions:
    """Rules of a packet sender apart from its window law; defaults are those of ns-2.35.

    The receiver's window is `max_window` of the window law. Trains and packets follow them, unless
    the rule says who does.
    """

    profile: str = choice(
        "ns-2.35", "ns-2.35", "ns-2.1b8a", doc="set of defaults", engines=_POPULATION
    )
    tick: float = param(0.01, unit="s", doc="clock of the round-trip timer", within="[1e-6, 10]")
    min_rto: float = param(
        0.2, unit="s", doc="smallest retransmission timeout", within="[0, 60]", engines=_POPULATION
    )
    max_rto: float = param(
        60.0, unit="s", doc="largest retransmission timeout", within="[0.1, 1e6]"
    )
    initial_rto: float = param(
        3.0, unit="s", doc="timeout before the first sample", within="[0.01, 60]"
    )
    initial_window: float = param(
        2.0, unit="packet", doc="window of the first data", within="[1, 1e6]", engines=_POPULATION
    )
    initial_ssthresh: float = param(
        inf, unit="packet", within="[1, inf]",
        doc="slow start ends here at first; at most the receiver's window", engines=_POPULATION,
    )  # fmt: skip
    syn: bool = choice(True, doc="a small packet opens the connection")
    syn_size: float = param(40.0, unit="B", doc="size of that packet", within="[1, 65535]")
    ack_size: float = param(40.0, unit="B", doc="size of an acknowledgement", within="[1, 65535]")
    quench_size: float = param(
        56.0, unit="B", doc="size of a source quench", within="[1, 65535]", engines=("packets",)
    )
    dup_acks: int = param(3, unit="1", doc="duplicate ACKs that mean a loss", within="[1, 100]")
    limited_transmit: bool = choice(
        True, doc="send new data on the duplicate ACKs before that", engines=_POPULATION
    )
    one_fast_retransmit: bool = choice(
        True, doc="at most one fast retransmit per window of data (ns-2's bugFix_)"
    )
    integer_windows: bool = choice(
        False, doc="windows are truncated before and after a cut", engines=_POPULATION
    )
    window_validation: bool = choice(
        False,
        doc="a window grows only while full; it decays where data or the receiver's window do not "
        "fill it for a timeout, or nothing is sent for one (RFC 2861, section 3)",
        engines=("packets",),
    )
    partial_deflation: bool = choice(
        True, doc="a partial ACK takes the packets it covers off the window", engines=("packets",)
    )
    partial_timer_once: bool = choice(
        True,
        doc="only the first partial ACK of a recovery restarts the timer",
        engines=("packets",),
    )
    recovery_burst: int = param(
        2, unit="packet", within="[0, 1e6]",
        doc="most that NewReno sends on one ACK in a recovery; 0 for any number",
        engines=("packets",),
    )  # fmt: skip
    recovery: str = choice("law", "law", "reno", "newreno", "sack", doc="how losses are repaired")
    echo: str = choice(
        "law", "law", "packet", "sticky",
        doc="receiver's echo of marks: of each packet, or until the sender confirms",
        engines=_POPULATION,
    )  # fmt: skip
    grow_on_echo: bool = choice(
        False, doc="windows grow on ACKs that carry a sticky echo", engines=_POPULATION
    )
    overhead: float = param(
        0.0, unit="s", doc="each send waits for a time uniform between 0 and this",
        within="[0, 10]", engines=("packets",),
    )  # fmt: skip
    delayed_acks: bool = choice(
        False,
        doc="receivers acknowledge every second packet, or after `ack_delay` (RFC 5681, 4.2)",
        engines=ENGINES,
    )
    ack_delay: float = param(
        0.1, unit="s", doc="longest that an acknowledgement waits", within="(0, 0.5]"
    )
    byte_counting: int = param(
        0, unit="packet", within="[0, 1e6]",
        doc="windows grow by the packets that an ACK covers, in slow start by this many at most "
        "(L of RFC 3465); 0: once on each ACK",
    )  # fmt: skip
    choice_waiting: int = param(
        2, unit="1", within="[0, 1e6]",
        doc="packets (bytes in byte mode) that wait before a queue with an average may choose",
    )  # fmt: skip
    choice_arms: bool = choice(
        True, doc="the first packet after the average crosses the threshold is never chosen"
    )
    mark_below: float = param(
        inf, unit="1", within="[0, inf]",
        doc="packets chosen at this long-run probability or above are dropped, not marked",
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
"""Changes of each profile to the defaults above."""


def read_sender(reader: Reader, raw: Any, key: str) -> tuple[tuple[str, Any], ...]:
    """Rules of the packet sender, as pairs of name and value in the order of their names."""
    values = reader.values(raw, key, infos(SenderOptions))
    for name in (f.name for f in dataclasses.fields(SenderOptions) if f.type is int):
        value = values.get(name)
        if isinstance(value, float):
            needs = f"{key}.{name}", "a whole number", got(raw[name])
            values[name] = int(value) if value.is_integer() else reader.fault(*needs)
    return tuple(sorted(sound(values).items()))


def sender_options(pairs: Iterable[tuple[str, Any]] | Mapping[str, Any] = ()) -> SenderOptions:
    """Options from (name, value) pairs over the defaults of the profile among them.

    Raises ScenarioError, which names the option, what was expected and the nearest valid name.
    """
    reader = Reader("")
    given = dict(read_sender(reader, dict(pairs), "sender"))
    reader.finish()
    return SenderOptions(**{**PROFILES[given.get("profile", "ns-2.35")], **given})


KINDS = {
    kind: LABELS[kind].removeprefix("a ") for kind in ("window", "reaction", "loss", "feedback")
}
"""Kinds of laws whose fields stand in the window table, with their names in messages."""

NAMED = ("reaction", "loss")
"""Kinds of laws that the table names by separate keys."""


def default_reaction(
    window: AbstractWindowLaw, feedback: AbstractFeedback, laws: Laws
) -> AbstractReaction:
    """The default reaction of a window law in scenarios."""
    cls: Any = laws["reaction"][window.reaction]
    return cls(**_growth(cls, feedback, window))


def _growth(reaction: type[AbstractReaction], feedback: Any, window: Any) -> dict[str, str]:
    """Changes of the reaction's defaults: quenches mark no ACK, so all let the window grow; else
    the window law may have a default of its own.
    """
    quench = feedback is not FAULTY and feedback.quench
    growth = "all" if quench else window is not FAULTY and window.growth
    return {"growth": growth} if growth and "growth" in infos(reaction) else {}


def read_sender_laws(
    reader: Reader, table: Mapping[str, Any], key: str, packet_size: float | None
) -> dict[str, Any]:
    """Window law, reaction, loss closure and feedback law of a group, faulty ones as FAULTY.

    Parameters
    ----------
    reader
        Where faults go.
    table, key
        The table of the group, and its key in the scenario.
    packet_size
        Bytes in a packet of the first link of the route.
    """
    at, raw = f"{key}.window", table.get("window")
    raw = {"law": raw} if isinstance(raw, str) else raw
    feedback, feedback_table = table.get("feedback", Flows.feedback.name), {}
    if isinstance(feedback, dict):
        feedback_table, feedback = feedback, reader.law_of(feedback, f"{key}.feedback", "feedback")
        if feedback is not FAULTY:
            reader.unknown(feedback_table, f"{key}.feedback", ["law", *infos(feedback)])
    else:
        feedback = reader.law_named(feedback, f"{key}.feedback", "feedback")
    within = raw if isinstance(raw, dict) else {}

    def read(cls: Any, besides: Mapping[str, Any]) -> Any:
        if cls is FAULTY:
            return FAULTY
        values = reader.fields(within, at, infos(cls), packet_size)
        return reader.made(cls, at, {**besides, **values})

    inside = {}
    if feedback is not FAULTY:
        for name in infos(feedback):
            if name in within and name in feedback_table:
                expected = f"it once, as {key}.feedback has it too"
                reader.fault(f"{at}.{name}", expected, got(within[name]))
        inside = reader.fields(feedback_table, f"{key}.feedback", infos(feedback), packet_size)
    if not isinstance(raw, dict):
        reader.fault(at, 'a table such as { law = "newreno" }', got(raw))
        return {"window": FAULTY, "feedback": read(feedback, inside)}
    window = reader.law_of(raw, at, "window")
    loss = reader.law_named(raw.get("loss", Flows.loss.name), f"{at}.loss", "loss")
    window_law = read(window, {})
    reaction: Any = FAULTY
    if "reaction" in raw:
        reaction = reader.law_named(raw["reaction"], f"{at}.reaction", "reaction")
    elif window_law is not FAULTY:
        reaction = reader.laws["reaction"][window_law.reaction]
    chosen = {"window": window, "reaction": reaction, "loss": loss, "feedback": feedback}
    reader.check_keys(raw, at, chosen, *NAMED)
    return {
        "window": window_law,
        "reaction": read(
            reaction, {} if reaction is FAULTY else _growth(reaction, feedback, window_law)
        ),
        "loss": read(loss, {}),
        "feedback": read(feedback, inside),
    }
