"""How receivers echo marks: each packet's own, or one until the sender confirms it."""

import functools
from typing import Any

import jax

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
    waits = _waits(jax.tree.structure(flows.reaction))
    return waits and not (flows.feedback.loads or _counts(jax.tree.structure(flows.window)))


def _bare(structure: Any) -> Any:
    """A law of a structure, whose parameters do not matter."""
    return jax.tree.unflatten(structure, [0.0] * structure.num_leaves)


@functools.cache
def _waits(structure: Any) -> bool:
    """Whether a reaction asks for an acknowledgement of what was sent after the last one."""
    told = rule(_bare(structure), "ready")
    return Since(*told.event).window in told.results[0].free_symbols


@functools.cache
def _counts(structure: Any) -> bool:
    """Whether a window law learns from the mark of each packet."""
    told = rule(_bare(structure), "observe")
    used = set().union(*(result.free_symbols for result in told.results))
    return Ack(*told.event).marked in used
