"""Verdicts on claims, and the rules by which they are reached.

The rules that all claims share:

* Significant means that the 95 % interval over seeds (Student's t, of differences seed by seed)
  excludes equality.
* A number is `reproduced` if it lies within our interval, and this is no wider to each side than
  the tolerance of its quantity (`TOLERANCES`, with their reasons); or if our whole interval is
  within that. A printed range is its own tolerance, and our interval then no wider than a quarter
  of our mean. If it is not, but our
  runs show an effect in the same direction, significantly, it is `ordering_only`; in the opposite
  direction `contradicted`.
* An order is `reproduced` if it is significant at more than half of the points and significantly
  wrong at none, `contradicted` if the opposite order is, and `not_reproduced` otherwise. If a claim
  says that something rises or falls, it does so by 1 % or more.
* Quantities are alike if their means differ by at most 5 % at more than half of the points and by
  no more than 10 % at any, where a claim does not state other tolerances.
* What a search for counterexamples says of a bound decides the claim that states it.
* What follows from a definition, or is arithmetic, is no result: `by_definition`.

Nothing is tuned to meet a printed number. What a paper leaves open is varied, and each claim is
judged under the joint reading of its paper (`readings`).
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .readings import DEFAULT, joint
from .samples import interval

if TYPE_CHECKING:
    from .lab import Lab
    from .ledger import Claim

_TIGHT = 0.25  # of the mean: a wider interval says nothing for a range
_ROUNDING = 1e-9  # relative: what differs by less is the same
_FEW = 2  # searches that are told one by one
SIZE = 0.01
"""Least relative change that counts as a rise or a decrease; what differs by less is alike."""

TOLERANCES = MappingProxyType({
    "loss": (0.10, "the difference of two rates that are nearly alike: 1 % more sent is 10 % more "
                   "of a loss of 10 %"),
    "queue": (0.05, "whether the packet in service counts is one packet in twenty"),
    "effect": (0.10, "a gain or a reduction has the errors of two means, each to 5 %"),
    "share": (0.05, "marks or quenches among packets, each to 2 or 3 %"),
    "factor": (0.05, "what a law multiplies by, seen in windows of twenty packets and more"),
    "about": (0.10, "the paper says about, or prints one digit"),
})  # fmt: skip
"""Relative distances to printed numbers that are allowed, by quantity, and why."""

VERDICTS = (
    "reproduced", "by_definition", "ordering_only", "not_reproduced", "contradicted",
    "under_specified", "not_applicable",
)  # fmt: skip

RANK = (
    "reproduced", "by_definition", "ordering_only", "not_reproduced", "under_specified",
    "contradicted", "not_applicable",
)  # fmt: skip
"""Verdicts from the most to the least favourable."""


def most(verdicts: Iterable[str]) -> str:
    """The most favourable verdict."""
    return min(verdicts, key=RANK.index)


def least(verdicts: Iterable[str]) -> str:
    """The least favourable verdict of those that judge."""
    found = list(verdicts)
    return max([v for v in found if v != "not_applicable"] or found, key=RANK.index)


@dataclasses.dataclass(frozen=True)
class Judgement:
    """A verdict with its numbers.

    Parameters
    ----------
    verdict
        One of `VERDICTS`.
    said
        A sentence that says why, with the numbers.
    value, half
        Our number or numbers, and half widths of their 95 % intervals; None where there are none.
    unit
        Of both.
    engine
        ``packets``, ``fluid``, ``analytic``, or several joined by ``+``.
    parts
        Of a claim of several parts the judgement of each; `said` and the numbers are those of the
        least favourable.
    remarks
        What decides nothing and should be known.
    """

    verdict: str
    said: str
    value: Any = None
    half: Any = None
    unit: str = ""
    engine: str = "packets"
    parts: tuple["Judgement", ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """All that is said, in one sentence."""
        return "; ".join([*(p.said for p in self.parts or (self,)), *self.remarks])

    def noting(self, *remarks: str, **changes: Any) -> "Judgement":
        """The same with remarks, and with other fields changed."""
        return dataclasses.replace(self, remarks=(*self.remarks, *remarks), **changes)

    def beside_fluid(self, verdict: str, *remarks: str) -> "Judgement":
        """The same with remarks on the fluid model, which is an engine of the verdict if it gives
        the same one; two numbers that miss need not be alike.
        """
        alike = verdict == self.verdict != "not_reproduced"
        engine = f"{self.engine}+fluid" if alike else self.engine
        return self.noting(*remarks, engine=engine)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How claims are judged: their ids, the function, the experiments that it asks for, and the
    readings that bear on them; whether they are definitions or arithmetic.
    """

    ids: tuple[str, ...]
    rule: Callable[["Lab", "Claim"], Judgement]
    needs: tuple[str, ...]
    readings: tuple[str, ...]
    definition: bool

    def judge(self, lab: "Lab", claim: "Claim") -> Judgement:
        """The judgement of a claim; one that is a definition is no result if it holds."""
        found = self.rule(lab, claim)
        if self.definition and found.verdict == "reproduced":
            return dataclasses.replace(found, verdict="by_definition")
        return found

    def labs(self, lab: "Lab") -> dict[str, "Lab"]:
        """Experiments by reading: the default, those that bear on its claims, the joint one."""
        names = dict.fromkeys([DEFAULT, *self.readings, self.joint(lab)])
        return {name: lab if name == DEFAULT else lab.under(name) for name in names}

    def joint(self, lab: "Lab") -> str:
        """What the joint reading of the paper says of its claims, in one name."""
        own = [
            reading for reading in joint(lab.paper)
            if reading in self.readings or any(lab.under(reading).changes(n) for n in self.needs)
        ]  # fmt: skip
        return "+".join(own) or DEFAULT

    def experiments(self, lab: "Lab") -> list[str]:
        """What it needs under all of its readings, as full names."""
        labs = self.labs(lab).values()
        return list(dict.fromkeys(each.experiment(n).name for each in labs for n in self.needs))


def judge(
    *ids: str, needs: Sequence[str] = (), readings: Sequence[str] = (), definition: bool = False
) -> Callable[[Callable], Rule]:
    """Declare a function of ``validation/claims`` as the rule of some claims.

    Parameters
    ----------
    ids
        Of the claims.
    needs
        Names of the experiments that the rule asks for.
    readings
        Readings of ``validation/readings.toml`` that bear on the claims: those of experiments, or
        others that the rule itself tells apart by `lab.reading`.
    definition
        Whether the claims are definitions or arithmetic, which hold or are misprinted.
    """
    return lambda rule: Rule(ids, rule, tuple(needs), tuple(readings), definition)


def _sure(half: np.ndarray, engine: str) -> np.ndarray:
    """What a difference must exceed: one packet run tells nothing, a model needs no interval."""
    return np.where(np.isnan(half), np.inf if "packets" in engine else 0.0, half)


def told(mean: Any, half: Any = None, unit: str = "") -> str:
    """A number with its interval and unit, in few digits."""
    text = f"{float(mean):.3g}"
    if half is not None and np.isfinite(half):
        text += f" ± {float(half):.2g}"
    return f"{text} {unit}".rstrip()


def near(
    theirs: float | Sequence[float],
    samples: Any,
    *,
    of: str = "",
    unit: str = "",
    tolerance: float = 0.0,
    absolute: float = 0.0,
    neutral: float | None = None,
    what: str = "",
    engine: str = "packets",
) -> Judgement:
    """Judge a printed number, or a range [low, high], by our samples, shape (seeds,).

    Parameters
    ----------
    theirs, samples
        What is printed, and ours; one number of a model is an array of one.
    of
        Which of `TOLERANCES` holds for a number; a range is its own.
    unit, what, engine
        Unit, the quantity in words, and the engine.
    tolerance, absolute
        Allowed distance that a claim states itself, relative to our mean and in the unit.
    neutral
        The value of no effect (0 for a difference, 1 for a ratio), where there is a direction.
    """
    mean, half = (float(v) for v in interval(np.atleast_1d(np.asarray(samples, float))))
    low, high = float(np.min(theirs)), float(np.max(theirs))
    sure = _sure(np.asarray(half), engine).item()
    printed = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    said = f"{what}: {told(mean, half, unit)} against {printed} {unit}".removeprefix(": ").rstrip()
    common = {"value": mean, "half": half, "unit": unit, "engine": engine}
    if not np.isfinite(mean):
        return Judgement("not_reproduced", f"{said}: no number came out", **common)
    allowed = TOLERANCES[of][0] if of and low == high else tolerance
    width, slack = half if np.isfinite(half) else 0.0, _ROUNDING * max(abs(low), abs(high))
    below, above = low - mean, mean - high
    apart = max(below, above, 0.0)
    reach = max(allowed * abs(mean), absolute)
    tight = width <= (reach or _TIGHT * abs(mean)) and apart <= width + slack
    if tight or max(below, above) + width <= reach + slack:
        return Judgement("reproduced", said, **common)
    if neutral is not None:
        sure = max(sure, _ROUNDING * max(abs(low), abs(high), abs(neutral)))
        ours, sign = mean - neutral, np.sign((low + high) / 2 - neutral)
        if ours * sign > sure:
            return Judgement("ordering_only", f"{said}: the direction alone is right", **common)
        if ours * sign < -sure:
            return Judgement("contradicted", f"{said}: the other way round", **common)
    return Judgement("not_reproduced", said, **common)


def ordered(
    less: np.ndarray,
    more: np.ndarray,
    *,
    x: Sequence[Any] = (),
    what: str = "",
    unit: str = "",
    size: float = 0.0,
    engine: str = "packets",
) -> Judgement:
    """Judge the claim that `less` is below `more`; samples of shape (points, seeds) or (seeds,).

    `x` labels the points, `what` says which is claimed to be below which; `size` is the least
    difference that counts, relative to `more`. The value is the mean difference over all points.
    """
    one, other = np.atleast_2d(less), np.atleast_2d(more)
    gaps = other - one
    mean, half = interval(gaps)
    sound = np.isfinite(mean)
    least = _ROUNDING * np.maximum(np.abs(one), np.abs(other)).max(axis=-1)
    sure, count = np.maximum(_sure(half, engine), least), sound.size
    enough = mean > size * np.abs(other.mean(axis=-1))
    far = mean < -size * np.abs(other.mean(axis=-1))
    right, wrong = (mean > sure) & enough & sound, (mean < -sure) & far & sound
    if not sound.any():
        return Judgement("not_reproduced", f"{what}: no number came out", engine=engine)
    ends = " and ".join(told(part[sound].mean(), unit=unit) for part in (one, other))
    if count > 1:
        sized = f" and {100 * size:g} % or more" if size else ""
        tally = f" in the mean; significant{sized} at {right.sum()} of {count} points"
        tally += f", the other way round at {_listed(wrong, x)}" if wrong.any() else ""
        tally += f", no number at {_listed(~sound, x)}" if not sound.all() else ""
    else:
        small = f", less than {100 * size:g} % apart" if not enough.any() else ", not significant"
        tally = ", significant" if right.any() else small if size else ", not significant"
        tally = ", significant, the other way round" if wrong.any() else tally
    said = f"{what}: {ends}{tally}"
    verdict = "not_reproduced"
    if 2 * right.sum() > count and not wrong.any():
        verdict = "reproduced"
    elif 2 * wrong.sum() > count and not right.any():
        verdict = "contradicted"
    whole, width = interval(gaps[sound].mean(axis=0))
    return Judgement(verdict, said, float(whole), float(width), unit, engine)


def _listed(which: np.ndarray, x: Sequence[Any]) -> str:
    """The points where something holds: their labels, or how many."""
    points = np.flatnonzero(which).tolist()
    return ", ".join(str(x[k]) for k in points) if len(x) else f"{len(points)} points"


def alike(
    one: np.ndarray,
    other: np.ndarray,
    *,
    x: Sequence[Any] = (),
    usual: float = 0.05,
    most: float = 0.1,
    what: str = "",
    engine: str = "packets",
) -> Judgement:
    """Judge the claim that two quantities are comparable; samples as in `ordered`.

    `usual` and `most` are the relative differences allowed at more than half of the points, and at
    any. The value is the largest relative difference.
    """
    ours, theirs = (np.atleast_2d(v).mean(axis=1) for v in (one, other))
    with np.errstate(divide="ignore"):  # endlessly far from zero
        apart = np.where(ours == theirs, 0.0, (ours - theirs) / np.where(ours == theirs, 1, theirs))
    sound = ~np.isnan(apart)
    if not sound.any():
        return Judgement("not_reproduced", f"{what}: no number came out", engine=engine)
    apart, sizes = apart[sound], np.abs(apart[sound])
    worst = int(np.argmax(sizes))
    place = f" at {x[int(np.flatnonzero(sound)[worst])]}" if len(x) else ""
    said = (
        f"{what}: they differ by {100 * apart[worst]:+.1f} % at most{place}, "
        f"by {100 * np.median(sizes):.1f} % in the median"
    )
    if 2 * (sizes <= usual).sum() > sizes.size and sizes.max() <= most:
        verdict = "reproduced"
    else:
        verdict = "contradicted" if (sizes > most).all() else "not_reproduced"
    return Judgement(verdict, said, float(apart[worst]), None, "1", engine)


def shown(
    holds: bool, why: str, *, engine: str, otherwise: str = "contradicted", **numbers: Any
) -> Judgement:
    """Judge by a condition that was computed: `reproduced` if it holds, else `otherwise`."""
    return Judgement("reproduced" if holds else otherwise, why, engine=engine, **numbers)


def searched(entries: Sequence[Mapping[str, Any]], engine: str, unit: str = "") -> Judgement:
    """Judge by what a search for counterexamples found, under each of the definitions given.

    `reproduced` if there is none under any, `contradicted` if there is one under each; else
    `not_reproduced`.
    """
    held = [entry["verdict"] == "holds" for entry in entries]
    excess = max(entries, key=lambda entry: entry["largest_excess"] or 0.0)
    words = "; ".join(_defined(entry, unit) for entry in entries)
    if len(entries) > _FEW:
        words = f"holds under {sum(held)} of {len(held)} definitions; {_defined(excess, unit)}"
    said = f"{entries[0]['statement']}: {words}"
    verdict = "not_reproduced" if any(held) else "contradicted"
    worst = excess["worst"]
    return Judgement(
        "reproduced" if all(held) else verdict, said, worst and worst["value"], unit=unit,
        engine=engine,
    )  # fmt: skip


def _defined(entry: Mapping[str, Any], unit: str) -> str:
    """What a search found under its definitions, in words."""
    words = ", ".join(f"{key.replace('_', ' ')}: {v}" for key, v in entry["definitions"].items())
    worst, excess = entry["worst"], entry["largest_excess"]
    case = f"{told(worst['value'], unit=unit)} in the worst case" if worst else "no case"
    if entry["verdict"] != "holds" and worst:
        case = f"{worst['value']:.6g} against {worst['bound']:.6g} {unit}".rstrip()
        case += f" in the smallest counterexample, beyond it by up to {excess:.3g}"
    return f"{entry['verdict']} ({words or 'as printed'}; {case})"


def all_of(*parts: Judgement) -> Judgement:
    """Judge a claim of several parts by the least favourable of them; all are told."""
    single = [own for part in parts for own in part.parts or (part,)]
    verdict = least(part.verdict for part in single)
    worst = next(part for part in single if part.verdict == verdict)
    engines = "+".join(dict.fromkeys(e for part in parts for e in part.engine.split("+")))
    remarks = tuple(remark for part in parts for remark in part.remarks)
    plain = tuple(dataclasses.replace(part, remarks=()) for part in single)
    return dataclasses.replace(worst, engine=engines, parts=plain, remarks=remarks)


def outside(why: str) -> Judgement:
    """What a model cannot judge, or a reading under which there is nothing to judge."""
    return Judgement("not_applicable", why, engine="")
