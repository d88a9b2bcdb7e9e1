"""The window table of a group of flows, which holds the parameters of several laws.

Its `law` is the window law, `reaction` and `loss` name further laws, and the fields of all three
stand in the table, with those of the feedback law that is named beside it.
"""

from collections.abc import Mapping
from typing import Any

from fluidcc.laws.law import AbstractFeedback, AbstractReaction, AbstractWindowLaw
from fluidcc.scenario.laws import (
    PLANNED_KEYS,
    Laws,
    law_named,
    law_of,
    make,
    owners_of,
    read_fields,
)
from fluidcc.scenario.network import Flows
from fluidcc.scenario.reader import FAULTY, Reader, described_fields, got

KINDS = {
    "window": "window law",
    "reaction": "reaction",
    "loss": "loss closure",
    "feedback": "feedback law",
}
"""Kinds of laws whose fields stand in the window table, and what messages call them."""

NAMED = ("reaction", "loss")
"""Those which the table names by keys of their own."""


def default_reaction(
    window: AbstractWindowLaw, feedback: AbstractFeedback, laws: Laws
) -> AbstractReaction:
    """The reaction of a window law unless a scenario says otherwise."""
    cls: Any = laws["reaction"][window.reaction]
    return cls(**_growth(cls, feedback))


def _growth(reaction: type[AbstractReaction], feedback: Any) -> dict[str, str]:
    """What differs from the reaction's defaults: quenches mark no ACK, so all let it grow."""
    quench = feedback is not FAULTY and feedback.quench
    return {"growth": "all"} if quench and "growth" in described_fields(reaction) else {}


def _told_twice(
    reader: Reader, raw: Mapping[str, Any], own: Mapping[str, Any], key: str, feedback: Any
) -> None:
    """Fields of the feedback law may stand in its own table or in the window table."""
    for name in () if feedback is FAULTY else described_fields(feedback):
        if name in raw and name in own:
            reader.fault(
                f"{key}.window.{name}", f"it once, as {key}.feedback has it too", got(raw[name])
            )


def _unknown(reader: Reader, raw: Any, key: str, chosen: Mapping[str, Any], laws: Laws) -> None:
    """Note keys that no chosen law has, and whose they are if laws not chosen have them."""
    known = ["law", *NAMED]
    for kind, law in chosen.items():
        for cls in laws[kind].values() if law is FAULTY else (law,):
            known += [name for name in described_fields(cls) if name not in known]
    for name, value in raw.items():
        if name in known:
            continue
        for kind, label in KINDS.items():
            owners = owners_of(name, kind, laws)
            if owners:
                expected = f"a {label} that has it ({', '.join(owners)}), not {chosen[kind].name}"
                reader.fault(f"{key}.{name}", expected, got(value))
                break
        else:
            reader.unknown({name: value}, key, known, PLANNED_KEYS["window"])


def _feedback(
    reader: Reader, table: Mapping[str, Any], key: str, laws: Laws
) -> tuple[Any, dict[str, Any]]:
    """The class of the feedback law, and its own table, which is empty where there is a name."""
    given = table.get("feedback", Flows.feedback.name)
    if isinstance(given, dict):
        cls = law_of(reader, given, f"{key}.feedback", "feedback", laws)
        if cls is not FAULTY:
            reader.unknown(given, f"{key}.feedback", ["law", *described_fields(cls)])
        return cls, given
    return law_named(reader, given, f"{key}.feedback", "feedback", laws), {}


def _reaction(
    reader: Reader, raw: Mapping[str, Any], key: str, window: Any, laws: Laws
) -> type[AbstractReaction] | Any:
    """The class of the reaction: the one named, or the window law's own."""
    if "reaction" in raw:
        return law_named(reader, raw["reaction"], f"{key}.reaction", "reaction", laws)
    return FAULTY if window is FAULTY else laws["reaction"][window.reaction]


def read_sender_laws(
    reader: Reader,
    table: Mapping[str, Any],
    key: str,
    *,
    packet_size: float | None,
    laws: Laws,
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
    laws
        The laws by kind and name.
    """
    at, given = f"{key}.window", table.get("window")
    raw: Mapping[str, Any] = given if isinstance(given, dict) else {}

    def read(cls: Any, besides: Mapping[str, Any] | None = None) -> Any:
        if cls is FAULTY:
            return FAULTY
        values = read_fields(reader, raw, at, cls, packet_size=packet_size, laws=laws)
        return make(reader, cls, at, {**(besides or {}), **values})

    feedback, own = _feedback(reader, table, key, laws)
    _told_twice(reader, raw, own, key, feedback)
    inside = {} if feedback is FAULTY else read_fields(
        reader, own, f"{key}.feedback", feedback, packet_size=packet_size, laws=laws
    )  # fmt: skip
    if not isinstance(given, dict):
        reader.fault(at, 'a table such as { law = "newreno" }', got(given))
        return {"window": FAULTY, "feedback": read(feedback, inside)}
    chosen = {"window": law_of(reader, raw, at, "window", laws), "feedback": feedback}
    chosen["loss"] = law_named(reader, raw.get("loss", Flows.loss.name), f"{at}.loss", "loss", laws)
    window = read(chosen["window"])
    reaction = chosen["reaction"] = _reaction(reader, raw, at, window, laws)
    _unknown(reader, raw, at, chosen, laws)
    return {
        "window": window,
        "reaction": read(reaction, None if reaction is FAULTY else _growth(reaction, feedback)),
        "loss": read(chosen["loss"]),
        "feedback": read(feedback, inside),
    }
