"""The claims of the papers, and a verdict on each of them."""

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fluidcc.bundled import bundled, declared, modules
from fluidcc.errors import Fault, ScenarioError, nearest

from .check import BOUNDS
from .experiments import PAPERS
from .judging import VERDICTS, Judgement, Rule, least, most
from .lab import Lab
from .readings import DEFAULT, meaning


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
class Verdict:
    """A claim judged by default and under each reading that bears on it.

    `reading` names the one that is part of the paper's joint reading, under which the claim is
    judged: `experiments`, `scenarios` and `seeds` are those under it. `bounds` are those published
    bounds whose search for counterexamples bears on the claim.
    """

    claim: Claim
    reading: str
    readings: Mapping[str, Judgement]
    experiments: tuple[str, ...]
    scenarios: tuple[str, ...]
    seeds: tuple[int, ...]
    bounds: tuple[str, ...]

    @property
    def judgement(self) -> Judgement:
        """The judgement under the joint reading."""
        return self.readings[self.reading]

    @property
    def counts(self) -> dict[str, str]:
        """The verdict by default, under the joint reading, the least and the most favourable."""
        found = [own.verdict for own in self.readings.values()]
        return {
            "default": self.readings[DEFAULT].verdict, "joint": self.judgement.verdict,
            "every": least(found), "some": most(found),
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the contract's fields and what lies behind them."""
        c, j = self.claim, self.judgement
        return {
            "id": c.id, "verdict": j.verdict, "engine": j.engine, "expected": c.value,
            "value": j.value, "ci95": j.half, "unit": j.unit or c.unit, "why": j.why,
            "expected_unit": c.unit, "paper": c.paper, "where": c.where,
            "figures": list(c.figures), "kind": c.kind, "claim": c.claim, "reading": self.reading,
            "counts": self.counts,
            "parts": [{"verdict": p.verdict, "why": p.said} for p in j.parts or (j,)],
            "remarks": list(j.remarks),
            "readings": {
                name: {"means": meaning(c.paper, name), "verdict": own.verdict, "why": own.why}
                for name, own in self.readings.items()
            },
            "experiments": list(self.experiments), "scenarios": list(self.scenarios),
            "seeds": list(self.seeds), "bounds": list(self.bounds),
        }  # fmt: skip

    def line(self) -> str:
        """The verdict in a line."""
        return f"{self.claim.id} {self.judgement.verdict}: {self.judgement.why}"


READ = {"default": "default", "joint": "joint reading", "every": "every reading",
        "some": "some reading"}  # fmt: skip
"""Ways to count over readings, in words."""


def tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Verdicts as plain data, counted under the columns of the table of verdicts: how many are
    reproduced by each way to read, then how many have each other verdict under the joint reading.
    """
    found = {"claims": len(rows)}
    for way, words in READ.items():
        found[words] = sum(row["counts"][way] == "reproduced" for row in rows)
    for verdict in VERDICTS[1:]:
        found[verdict.replace("_", " ")] = sum(row["verdict"] == verdict for row in rows)
    return found


def tallies(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The same of each paper that has any of these claims."""
    own = {paper: [row for row in rows if row["id"] in claims(paper)] for paper in PAPERS}
    return {paper: tally(some) for paper, some in own.items() if some}


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
    places = modules(f"validation.claims.{paper}")
    found = (rule for place in places for rule in declared(place, Rule))
    return MappingProxyType({name: rule for rule in found for name in rule.ids})


def verdict(lab: Lab, name: str) -> Verdict:
    """Judge one claim: by default, and under each of its readings."""
    claim, rule = claims(lab.paper)[name], rules(lab.paper)[name]
    labs = rule.labs(lab)
    found = {reading: rule.judge(own, claim) for reading, own in labs.items()}
    reading = rule.joint(lab)
    used = [labs[reading].experiment(n) for n in rule.needs]
    bounds = tuple(own.id for own in BOUNDS.values() if name in own.claims)
    return Verdict(
        claim, reading, found,
        tuple(dict.fromkeys(e.name for e in used)), tuple(dict.fromkeys(e.scenario for e in used)),
        tuple(sorted({e.seeds for e in used})), bounds,
    )  # fmt: skip


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
