"""Every level beside the packets over all scenarios, as a run of the comparison left it."""

import csv
import dataclasses
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import fluidcc as fc
from fluidcc.bundled import bundled, scenarios

LEAST = {"queue": 1.0, "mark_fraction": 1e-3, "drop_fraction": 1e-3, "queue_std": 1.0}
"""By kind of quantity, what packets must have for a relative error to tell something."""

BETWEEN = " | "
"""What stands between the reasons of one scenario in the table."""


def with_mean() -> list[str]:
    """Names of the bundled scenarios whose laws all have a mean, sorted; the others are for packets
    alone.
    """
    names = sorted(scenarios())
    return [n for n in names if not any(flows.window.no_mean for flows in fc.load(n).flows)]


@dataclasses.dataclass(frozen=True)
class Beside:
    """One quantity of a scenario at every level; None where a level has no number.

    `equilibrium` is that of mean windows, `population` that of all of them, and why its
    fluctuations are `refused`; `recommended` is the number of the `level` to trust, None if that is
    packets, and `level_reason` says why. `validity_warnings` has the reasons for which the fluid
    model says itself that it does not hold there.
    """

    scenario: str
    span: str
    status: str
    quantity: str
    unit: str
    fluid: float | None
    packets: float | None
    ci95: float | None
    difference: float | None
    validity_warnings: tuple[str, ...]
    equilibrium: float | None = None
    population: float | None = None
    refused: str = ""
    trains: float | None = None
    trains_ci95: float | None = None
    recommended: float | None = None
    level: str = ""
    level_reason: str = ""

    @property
    def kind(self) -> str:
        """The last part of the quantity, such as ``queue``."""
        return self.quantity.rpartition(".")[2]

    @property
    def compares(self) -> bool:
        """Whether there is enough in packets for a relative error."""
        return self.difference is not None and self._enough

    @property
    def _enough(self) -> bool:
        return self.packets is not None and self.packets >= LEAST.get(self.kind, 0.0)

    def error_of(self, value: float | None) -> float | None:
        """Relative error of another number; None if packets have too little for one."""
        known = value is not None and self.packets and self._enough
        return value / self.packets - 1 if known else None


def table(file: Path | None = None) -> list[Beside]:
    """Every quantity of every scenario, in the order of a file, by default
    ``validation/compare_all.csv``, if it is there.
    """

    def number(text: str) -> float | None:
        return float(text) if text else None

    file, found = file or bundled("validation") / "compare_all.csv", []
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for row in csv.DictReader(text.splitlines()):
        fluid = number(row["fluid"])
        found.append(
            Beside(
                row["scenario"],
                f"{row['from_s']} to {row['until_s']} s",
                row["status"],
                row["quantity"],
                row["unit"],
                number(row["mean"]) if fluid is None else fluid,
                number(row["packets"]),
                number(row["ci95"]),
                number(row["difference"]),
                tuple(filter(None, row["validity_warnings"].split(BETWEEN))),
                number(row["mean"]),
                number(row["population"]),
                row["refused"],
                number(row["trains"]),
                number(row["trains_ci95"]),
                number(row["recommended"]),
                row["level"],
                row["level_reason"],
            )
        )
    return found


LEVELS = ("equilibrium", "population", "trains", "fluid", "recommended")
"""Numbers of a quantity that are held against packets."""

WITHIN = {
    "queue": 0.10, "queue_std": 0.20, "mark_fraction": 0.05, "goodput": 0.02, "period": 0.10,
}  # fmt: skip
"""Kinds of quantities that tell how good a level is, with the relative error they should keep."""


def judged(rows: Sequence[Beside], kind: str) -> list[Beside]:
    """Quantities of a kind of which packets have enough: queues, and their deviations, of links
    with more than a packet in the mean, and any period.
    """
    long = {
        (row.scenario, row.quantity.rpartition(".")[0])
        for row in rows
        if row.kind == "queue" and (row.packets or 0.0) > LEAST["queue"]
    }
    return [
        row
        for row in rows
        if row.kind == kind and (row.packets or 0.0) > 0
        and (
            (row.scenario, row.quantity.rpartition(".")[0]) in long
            if kind in ("queue", "queue_std")
            else (row.packets or 0.0) >= LEAST.get(kind, 0.0)
        )
    ]  # fmt: skip


class LevelError(NamedTuple):
    """How far a level is from packets: the median of the relative errors of the `known` numbers,
    and the share of all `count` within a tolerance, where a number that is refused is a miss.
    """

    median: float
    within: float
    known: int
    count: int


def level_error(rows: Sequence[Beside], level: str, most: float) -> LevelError | None:
    """The error of a level over quantities that packets have; None if there are none."""
    if not rows:
        return None
    pairs = ((getattr(row, level), row.packets) for row in rows)
    sizes = [abs(value / seen - 1) for value, seen in pairs if value is not None]
    median = statistics.median(sizes) if sizes else math.nan
    within = sum(size <= most for size in sizes) / len(rows)
    return LevelError(median, within, len(sizes), len(rows))


def medians(rows: Sequence[Beside]) -> Mapping[str, tuple[float, int]]:
    """Median of the absolute relative errors by kind of quantity, and how many there are."""
    sizes: dict[str, list[float]] = {}
    for row in rows:
        if row.compares and row.difference is not None:
            sizes.setdefault(row.kind, []).append(abs(row.difference))
    return {kind: (statistics.median(found), len(found)) for kind, found in sizes.items()}


def short_queues(rows: Sequence[Beside]) -> list[float]:
    """Errors [packet] of the queues that packets keep below one in the mean, where a relative error
    says nothing.
    """
    return [
        abs(row.fluid - row.packets)
        for row in rows
        if row.kind == "queue" and row.fluid is not None and row.packets is not None
        and row.packets < LEAST["queue"]
    ]  # fmt: skip


def causes(rows: Sequence[Beside]) -> Mapping[str, list[Beside]]:
    """What the fluid model says against itself, without places and numbers, and the rows of the
    scenarios of which it says so; what it says most often comes first.
    """
    found: dict[str, list[Beside]] = {}
    for row in rows:
        for cause in dict.fromkeys(map(_cause, row.validity_warnings)):
            found.setdefault(cause, []).append(row)
    often = {cause: len({row.scenario for row in own}) for cause, own in found.items()}
    return dict(sorted(found.items(), key=lambda pair: -often[pair[0]]))


def _cause(reason: str) -> str:
    """A reason without where it holds and how much."""
    said = re.sub(r"^(links|flows)\.\w+(, \w+)*: ", "", reason)
    said = re.sub(r"(links|flows)\.\w+", "a link", said)
    return re.sub(r"…(, …)+", "…", re.sub(r"\d[\d.]*\d|\d", "…", said))
