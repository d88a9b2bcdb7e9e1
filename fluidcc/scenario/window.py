"""The window table of a group of flows, which holds the parameters of several laws.

Its `law` is the window law, `reaction` and `loss` name further laws, and the fields of all three
stand in the table, with those of the feedback law named next to it.
"""

from collections.abc import Mapping
from typing import Any

from fluidcc.laws.law import AbstractFeedback, AbstractReaction, AbstractWindowLaw
from fluidcc.laws.parameters import infos
from fluidcc.scenario.network import Flows
from fluidcc.scenario.reader import FAULTY, LABELS, Laws, Reader, got

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
    return cls(**_growth(cls, feedback))


def _growth(reaction: type[AbstractReaction], feedback: Any) -> dict[str, str]:
    """Changes of the reaction's defaults: quenches mark no ACK, so all let the window grow."""
    quench = feedback is not FAULTY and feedback.quench
    return {"growth": "all"} if quench and "growth" in infos(reaction) else {}


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
        "reaction": read(reaction, {} if reaction is FAULTY else _growth(reaction, feedback)),
        "loss": read(loss, {}),
        "feedback": read(feedback, inside),
    }
