"""How receivers echo marks: that of each packet, or one until the sender confirms it."""

import itertools
import math

from fluidcc.laws.law import AbstractReaction, AbstractWindowLaw, Ack, Since
from fluidcc.scenario.network import Flows


def repeated(flows: Flows, echo: str = "law") -> bool:
    """Whether receivers echo a mark until the sender confirms it. RFC 3168, 6.1.3.

    By `echo`, the senders' option: `sticky`, `packet`, or `law`. Under `law`, marks are
    echoed until confirmed if the reaction waits for data sent after the last one, except if
    receivers report each packet: if the law learns from each mark, and under load factors.
    """
    if echo != "law":
        return echo == "sticky"
    return _waits_for_new_data(flows.reaction) and not (
        flows.feedback.loads or _learns_from_marks(flows.window)
    )


def _waits_for_new_data(law: AbstractReaction) -> bool:
    """Whether a reaction needs an acknowledgement of data sent after the last reaction."""
    cases = itertools.product((0.0, 1e9), (0.0, 1.0))  # at once and late; after a quench for a drop
    return any(
        law.ready(Since(time, 1.0, 0.0, dropped)) != law.ready(Since(time, 1.0, 1.0, dropped))
        for time, dropped in cases
    )


def _learns_from_marks(law: AbstractWindowLaw) -> bool:
    """Whether a window law learns from the mark of each packet."""
    state = law.start(10.0)
    # a product with NaN is NaN even if a gain is too small to move the state
    unmarked, *others = (
        law.observe(state, Ack(1.0, 1.0, 1.0, marked=share)) for share in (0.0, 1.0, math.nan)
    )
    return any(bool(other != unmarked) for other in others)
