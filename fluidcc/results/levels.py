"""Levels of description, from mean windows to single packets, and which of them to trust."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fluidcc.errors import Fault, ScenarioError, nearest, ours, shown

if TYPE_CHECKING:
    from fluidcc.analysis.equilibrium import Equilibrium
    from fluidcc.analysis.fluctuations import Fluctuations
    from fluidcc.trains.run import TrainRuns

LEVELS = ("mean", "population", "trains", "packets")
"""Mean windows, all windows with their fluctuations, trains of packets, packets."""
WITHOUT_TRAINS = ("mean", "population", "packets")
"""For those who ask where equilibria are beside packets."""


class Choice(NamedTuple):
    """The level to trust, and why in a sentence."""

    level: str
    reason: str


def known_levels(levels: str | Iterable[str], *, where: str = "levels") -> tuple[str, ...]:
    """The levels in their order, from names or from text with commas.

    Raises ScenarioError, with the nearest names, if one is not known, or there is none.
    """
    names = [n.strip() for n in levels.split(",")] if isinstance(levels, str) else [*levels]
    unknown = [name for name in names if name not in LEVELS]
    if unknown or not names:
        got = shown(", ".join(map(repr, unknown))) or "none"
        each = [ours("levels").get(n) or nearest(n, LEVELS, 1) for n in map(str, unknown)]
        close = tuple(dict.fromkeys(itertools.chain(*each)))
        raise ScenarioError([Fault(where, "", f"some of {', '.join(LEVELS)}", got, close)])
    return tuple(level for level in LEVELS if level in names)


_MANY = 0.1  # of packets, lost
_STEADY = 0.1  # relative change of a queue that twice the step may bring
RESOLVED = 1.0  # waiting packets; of less the steps of trains say nothing


def depends_on_step(trains: TrainRuns) -> str:
    """Which queue, of more than a waiting packet, twice the step changes, and by how much; else
    empty.

    What comes in a step and is served before it ends has not waited, so that a step resolves queues
    that outlast it. The packets that wait are in queues of `E[q^2] / E[q]` in the mean. If twice
    the step, with which the runs are compared, resolves these, a change within chance is no error
    of the step. If not, there is no reason to put a change down to chance.
    """
    if trains.step_error is None or trains.step_ci95 is None:
        return ""
    for name, link in trains.mean["links"].items():
        mean = link["queue_mean"]
        error = trains.step_error["links"][name]["queue_mean"]
        if mean + error <= RESOLVED or error <= _STEADY * mean:
            continue
        why = (
            f"links.{name}: with a step twice as long the mean queue of {mean:.3g} packets changes "
            f"by {error:.3g}"
        )
        chance = 2 * trains.step_ci95["links"][name]["queue_mean"]
        if not (math.isfinite(chance) and error <= _STEADY * mean + chance):
            return why
        rate = (link["arrivals"] - link["drops"]) / (trains.until - trains.warmup)
        brought, squares = 2 * trains.step * rate, mean**2 + link["queue_var"]
        if squares < brought * mean:
            waits = f"{squares / mean:.3g}" if mean else "0"
            return (
                f"{why}, and {brought:.3g} packets come in such a step; packets wait in shorter "
                f"queues, of {waits}"
            )
    return ""


def loses_most(trains: TrainRuns) -> str:
    """Which group loses more than a tenth of its packets; empty if none.

    What such senders do hangs on which packet is lost when, of which trains know the number alone.
    """
    for name, group in trains.mean["flows"].items():
        lost = group["loss_fraction"]
        if lost > _MANY:
            return f"flows.{name}: {lost:.0%} of the packets are lost"
    return ""


def choose_level(
    levels: Sequence[str],
    *,
    equilibrium: Equilibrium,
    population: Fluctuations,
    warnings: Sequence[str],
    against: str = "",
    changes: str = "",
) -> Choice:
    """The level to trust: the first of trains, population and mean that holds nothing against
    itself; packets if there is none.

    Trains hold against themselves what they refuse, that the step decides a queue
    (`depends_on_step`), and heavy losses (`loses_most`); the population, that its fluctuations
    are not small; mean windows, an equilibrium that is not regular or a validity warning. Packets
    are not asked.

    Parameters
    ----------
    levels
        Those that were asked for.
    equilibrium
        That of mean windows.
    population
        The fluctuations of the population.
    warnings
        Validity warnings of the mean windows.
    against
        Why trains do not take the network, or are not to be trusted; empty if they are.
    changes
        Why no level below packets follows the network; empty if it does not change.
    """
    fluctuates = changes or ("" if population.status == "regular" else population.message)
    warned = f"validity warnings ({len(warnings)}), such as {warnings[0]}" if warnings else ""
    regular = equilibrium.status == "regular"
    rules = (
        ("trains", against, "flows are individuals, with their losses, timeouts and cycles"),
        ("population", fluctuates, "its fluctuations are small"),
        ("mean", warned if regular else f"the equilibrium has the status {equilibrium.status}",
         "there is no validity warning"),
    )  # fmt: skip
    passed: list[str] = []
    for level, against, reason in rules:
        if level not in levels:
            passed.append(f"{level}: not asked for")
        elif against:
            passed.append(f"{level}: {against}")
        else:
            return Choice(level, "; ".join([reason, *passed]))
    return Choice("packets", f"no level below packets applies: {'; '.join(passed)}")
