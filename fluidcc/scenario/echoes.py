"""How receivers echo marks: each packet's own, or one until the sender confirms it."""

from fluidcc.laws.law import Ack, Since
from fluidcc.laws.symbolic import rule
from fluidcc.scenario.network import Flows


def repeated(flows: Flows, echo: str = "law") -> bool:
    """Whether receivers echo a mark until the sender confirms it. RFC 3168, 6.1.3.

    By `echo`, the senders' option: `sticky`, `packet`, or `law`. A law leaves it to a sender that
    waits for what it sent after its last reaction, unless the receiver tells of each packet: where
    the law learns from each mark, and under load factors.
    """
    if echo != "law":
        return echo == "sticky"
    return _waits(flows) and not (flows.feedback.loads or _counts(flows))


def _waits(flows: Flows) -> bool:
    """Whether a reaction asks for an acknowledgement of what was sent after the last one."""
    told = rule(flows.reaction, "ready")
    return Since(*told.event).window in told.results[0].free_symbols


def _counts(flows: Flows) -> bool:
    """Whether a window law learns from the mark of each packet."""
    told = rule(flows.window, "observe")
    used = set().union(*(result.free_symbols for result in told.results))
    return Ack(*told.event).marked in used
