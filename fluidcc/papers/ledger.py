"""The claims of the papers, and a verdict on each of them."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fluidcc.bundled import bundled
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.papers.content import contents
from fluidcc.papers.experiments import PAPERS
from fluidcc.papers.judging import RANK, Judgement
from fluidcc.papers.lab import Lab

AS_IS = "as in the files"


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim as the ledger has it; `figures` are those that show it."""

    id: str
    paper: str
    where: str
    figures: tuple[str, ...]
    algorithms: tuple[str, ...]
    claim: str
    value: Any
    unit: str
    kind: str

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of its figures, without the letters of panels."""
        return tuple(dict.fromkeys(named.rstrip("abcd") for named in self.figures))


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a claim is judged: the function, what it needs, and its readings with their meaning."""

    judge: Callable[[Lab, Claim], Judgement]
    needs: tuple[str, ...]
    readings: Mapping[str, str]

    def experiments(self, lab: Lab) -> list[str]:
        """What it needs under all of its readings, as full names."""
        labs = [lab, *(lab.under(reading) for reading in self.readings)]
        return list(dict.fromkeys(each.experiment(n).name for each in labs for n in self.needs))

    def meaning(self, lab: Lab, reading: str) -> str:
        """What a reading means: as the rule says, or the experiments that have it."""
        told = (lab.under(reading).experiment(name).reading for name in self.needs)
        return self.readings[reading] or next(filter(None, told), "")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim judged: the most favourable judgement over all readings, and that of each.

    `reading` names the one that the verdict needs, "" where all give the same; `experiments`,
    `scenarios` and `seeds` are those under it. `meanings` says what each reading is.
    """

    claim: Claim
    judgement: Judgement
    reading: str
    readings: Mapping[str, Judgement]
    meanings: Mapping[str, str]
    experiments: tuple[str, ...]
    scenarios: tuple[str, ...]
    seeds: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the contract's fields and what lies behind them."""
        c, j = self.claim, self.judgement
        return {
            "id": c.id, "verdict": j.verdict, "engine": j.engine, "expected": c.value,
            "value": j.value, "ci95": j.half, "unit": j.unit or c.unit, "why": j.why,
            "expected_unit": c.unit, "paper": c.paper, "where": c.where,
            "figures": list(c.figures), "kind": c.kind, "claim": c.claim, "reading": self.reading,
            "parts": [{"verdict": p.verdict, "why": p.said} for p in j.parts or (j,)],
            "remarks": list(j.remarks),
            "readings": {
                name: {"means": self.meanings[name], "verdict": own.verdict, "why": own.why}
                for name, own in self.readings.items()
            },
            "experiments": list(self.experiments), "scenarios": list(self.scenarios),
            "seeds": list(self.seeds),
        }  # fmt: skip

    def line(self) -> str:
        """The verdict in a line."""
        return f"{self.claim.id} {self.judgement.verdict}{self.under()}: {self.judgement.why}"

    def under(self) -> str:
        """The reading and how many give the same verdict, where not all do."""
        if not self.reading:
            return ""
        same = sum(one.verdict == self.judgement.verdict for one in self.readings.values())
        return f" ({self.reading}; {same} of {len(self.readings)} readings)"


@functools.cache
def claims(paper: str) -> Mapping[str, Claim]:
    """The claims of a paper by id."""
    text = (bundled("validation") / "claims.json").read_text(encoding="utf-8")
    found = {}
    for row in json.loads(text)["claims"]:
        if row["paper"] == paper:
            found[row["id"]] = Claim(
                row["id"], paper, row["where"], tuple(row["figure"] or ()),
                tuple(row["algorithms"]), row["claim"], row["value"], row["unit"] or "",
                row["kind"],
            )  # fmt: skip
    return MappingProxyType(found)


@functools.cache
def rules(paper: str) -> Mapping[str, Rule]:
    """The rules of a paper's claims, by the claims' ids."""
    found = {}
    for module in contents(f"validation/claims/{paper}"):
        for value in vars(module).values():
            if "judges" in getattr(value, "__dict__", {}):
                ids, needs, readings = value.judges
                found |= {name: Rule(value, needs, readings) for name in ids}
    return MappingProxyType(found)


def verdict(lab: Lab, name: str) -> Verdict:
    """Judge one claim: as the files have it, and under each of its readings.

    The most favourable reading counts, so that a claim is contradicted only if it is so under all.
    """
    claim, rule = claims(lab.paper)[name], rules(lab.paper)[name]
    labs = {AS_IS: lab, **{reading: lab.under(reading) for reading in rule.readings}}
    found = {reading: rule.judge(own, claim) for reading, own in labs.items()}
    best = most_favourable(found)
    alike = len({judgement.verdict for judgement in found.values()}) == 1
    used = [labs[best].experiment(n) for n in rule.needs]
    meanings = {AS_IS: "", **{reading: rule.meaning(lab, reading) for reading in rule.readings}}
    return Verdict(
        claim, found[best], "" if alike else best, found, meanings,
        tuple(dict.fromkeys(e.name for e in used)), tuple(dict.fromkeys(e.scenario for e in used)),
        tuple(sorted({e.seeds for e in used})),
    )  # fmt: skip


def most_favourable(found: Mapping[str, Judgement]) -> str:
    """The reading whose verdict is the most favourable; the first of those that are equal."""
    return min(found, key=lambda reading: RANK.index(found[reading].verdict))


def chosen(papers: Sequence[str]) -> list[str]:
    """Papers by short name; all for none or ``all``.

    Raises ScenarioError for a paper that there is not.
    """
    faults = [
        Fault("validate", "", f"all, {', '.join(PAPERS)}", f"'{p}'", nearest(p, [*PAPERS], 1))
        for p in papers
        if p not in (*PAPERS, "all")
    ]
    if faults:
        raise ScenarioError(faults)
    return [p for p in PAPERS if not papers or "all" in papers or p in papers]
