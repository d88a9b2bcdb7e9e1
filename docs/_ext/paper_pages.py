"""Pages on the papers and their peers: notes, verdicts on their claims, figures, scenarios.

`python docs/_ext/paper_pages.py` rewrites the parts of the pages on the laws of today.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from parts import rewrite

from fluidcc.bundled import bundled, scenarios, titles
from fluidcc.bundled.validation.lab.experiments import PAPERS
from fluidcc.bundled.validation.lab.judging import VERDICTS
from fluidcc.bundled.validation.lab.ledger import Claim, claims, tallies, tally
from fluidcc.bundled.validation.lab.readings import DEFAULT, Reading, meaning, questions

_KEPT = Path(__file__).parents[1] / "papers" / "verdicts.json"
_JUDGED = re.compile(rf"(\S+-\d+\w*) ({'|'.join(VERDICTS)})\b")  # a note that is a verdict
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>$#|])")

TODAY = "today"
APART = (TODAY, "senders")
"""Queue and window laws of today, which have pages of their own."""

_ALONE = (  # figures between its paragraphs
    "plants", "gains", "capacity", "packets", "fairness", "step",
)  # fmt: skip

MEANINGS = {
    "reproduced": "the number, order or statement comes out",
    "by_definition": "a definition or arithmetic, which holds: no result",
    "ordering_only": "the direction comes out, significantly; the number does not",
    "not_reproduced": "neither comes out, nor the opposite",
    "contradicted": "the opposite comes out, significantly",
    "under_specified": "the text leaves too much open to tell",
    "not_applicable": "outside the scope of a model, or nothing to judge",
}
"""Verdicts in words; the rules are in `validation/lab/judging.py`."""


def kept() -> dict[str, Any]:
    """Verdicts and figures as `refresh.py` left them."""
    return json.loads(_KEPT.read_text(encoding="utf-8"))


def plain(text: Any) -> str:
    """Text in which no character means anything to Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def badge(verdict: str) -> str:
    """A verdict with its colour."""
    return f"[{verdict.replace('_', ' ')}]{{.verdict .{verdict.replace('_', '-')}}}"


def _card(folder: str) -> tuple[str, str, str]:
    """Title, opening and the sections of the notes on a paper."""
    text = (bundled("models") / folder / f"{folder}.md").read_text(encoding="utf-8")
    text = re.sub(r"<!-- .*? -->\n", "", text)
    title, _, rest = text.partition("\n")
    opening, _, sections = rest.partition("\n## ")
    return title.removeprefix("# "), opening.strip(), f"## {sections}"


def _counts(rows: list[dict[str, Any]]) -> Iterator[str]:
    found = Counter(row["verdict"] for row in rows)
    yield from ("| verdict | claims | meaning |", "|---|---|---|")
    for verdict in VERDICTS:
        yield f"| {badge(verdict)} | {found[verdict]} | {MEANINGS[verdict]} |"


def _figures(
    figures: list[dict[str, Any]], level: str = "###", folder: str = "figures"
) -> Iterator[str]:
    for made in figures:
        yield from (f"{level} {plain(made['title'])}", "", f"```{{image}} {folder}/{made['file']}")
        yield from (f":alt: {made['title']}", ":class: paper-figure", "```", "")
        judged = [found for note in made["notes"] if (found := _JUDGED.match(note))]
        said = [note for note in made["notes"] if not _JUDGED.match(note)]
        yield from (line for note in said for line in (plain(note), ""))
        if judged:
            yield "Claims: " + ", ".join(f"`{j[1]}` {badge(j[2])}" for j in judged)
        yield from ("", f"`fluidcc figures {made['paper']}/{made['figure']}` draws it.", "")


def _expected(claim: Claim) -> str:
    """The printed value as text; long lists by their ends."""
    value = claim.value
    if value is None:
        return ""
    if isinstance(value, list | dict) and len(json.dumps(value)) > 60:
        return ""
    text = json.dumps(value) if isinstance(value, list | dict) else str(value)
    return f"printed: {text} {'' if claim.unit == '1' else claim.unit}".strip()


def _claim(row: dict[str, Any], claim: Claim) -> Iterator[str]:
    read = meaning(claim.paper, row["reading"])
    under = f" (joint reading: {plain(read)})" if row["reading"] != DEFAULT else ""
    printed = plain(_expected(claim))
    printed = f"; {printed}" if printed else ""
    yield from (f"`{claim.id}` {badge(row['verdict'])}{under}", "")
    yield from (f": {plain(claim.claim)} ({plain(claim.where)}{printed})", "")
    yield from (f"  *Found* ({row['engine'] or 'no engine'}): {plain(row['why'])}", "")
    others = {name: v for name, v in row["readings"].items() if name != row["reading"]}
    if others:
        said = "; ".join(f"{plain(meaning(claim.paper, n))}: {badge(v)}" for n, v in others.items())
        yield from (f"  *Read otherwise*: {said}", "")


def _reading(reading: Reading) -> str:
    return plain(reading.means) + "".join(f" ({plain(place)})" for place in reading.departs)


def _readings(short: str) -> Iterator[str]:
    """Open points of a paper, with the reading taken first."""
    yield from (
        "| question | reading taken (and its departures) | others |",
        "|---|---|---|",
    )
    for question in questions(short).values():
        taken = question.chosen
        rest = "; ".join(_reading(other) for other in question.readings if other != taken)
        asked = f"{plain(question.asks)} ({plain(question.where)})"
        yield f"| {asked} | {_reading(taken)} | {rest} |"
    yield ""


def _paper(short: str, folder: str, data: dict[str, Any]) -> str:
    title, opening, sections = _card(folder)
    ledger = claims(short)
    rows = [row for row in data["claims"] if row["id"] in ledger]
    figures = [made for made in data["figures"] if made["paper"] == short]
    lines = [f"# {title}", "", opening, "", "## Verdicts on its claims", "", *_counts(rows), ""]
    lines += [
        f"{len(rows)} claims, judged on {data['date']} with fluidcc {data['version']} by "
        f"`fluidcc validate {short}`, which repeats it and has every number with its interval. "
        "[How claims are judged](index.md#how-claims-are-judged).", "",
    ]  # fmt: skip
    lines += ["## Figures", ""]
    lines += [
        "Packets with 95 % intervals over seeds, the fluid model over them if it applies, "
        "and the numbers that the paper prints marked.", "", *_figures(figures),
    ]  # fmt: skip
    lines += ["## Open points", "", (
        "All verdicts and figures are under the readings taken: for each question the one that "
        "departs from the fewest statements of the paper on its set-up."
    ), "", *_readings(short), "## Claims one by one", ""]  # fmt: skip
    for row in rows:
        lines += _claim(row, ledger[row["id"]])
    return "\n".join([*lines, sections]) + "\n"


def table(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Lines of the table of verdicts; counts by the first cell of their line."""
    columns = tally([])
    yield from (f"| paper | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|")
    for first, own in counts.items():
        yield f"| {first} | {' | '.join(map(str, own.values()))} |"


def _table(data: dict[str, Any]) -> str:
    """Verdicts of all papers, counted."""
    found = tallies(data["claims"])
    pages = {short: f"{short}.md" for short in found} | {k: f"../{k}.md" for k in APART}
    lines = [*table({f"[{short}]({pages[short]})": own for short, own in found.items()})]
    lines += ["", f"{len(data['claims'])} claims, judged on {data['date']} with five seeds by "
              f"`fluidcc validate all` (fluidcc {data['version']})."]  # fmt: skip
    return "\n".join(lines) + "\n"


def _beyond(data: dict[str, Any]) -> str:
    """Figures that no paper has."""
    lines = ["# Beyond the papers", "", (
        "Figures that the papers do not have, on their laws: stability, margins, bounds."
    ), ""]  # fmt: skip
    lines += _figures([made for made in data["figures"] if made["paper"] == "beyond"], "##")
    return "\n".join(lines) + "\n"


def _published(data: dict[str, Any], which: str) -> str:
    """Published numbers of laws of today beside ours."""
    lines = ["| law | published | where | ours | verdict |", "|---|---|---|---|---|"]
    verdicts = {row["id"]: row for row in data["claims"]}
    for claim in claims(which).values():
        row, printed = verdicts[claim.id], _printed(claim)
        lines.append(
            f"| {', '.join(claim.algorithms)} | {plain(claim.claim)}{printed} "
            f"| {plain(claim.where)} | {plain(row['why'])} | {badge(row['verdict'])} |"
        )
    return "\n".join(lines)


def _printed(claim: Claim) -> str:
    """The number of a claim, or its list in a few words."""
    value, unit = claim.value, "" if claim.unit == "1" else claim.unit
    if isinstance(value, dict):
        own = value.get("windows", value)
        value = ", ".join(f"{number:g} at {key}" for key, number in own.items())
    return "" if value is None else f": {plain(value)} {plain(unit)}".rstrip()


def parts() -> dict[str, dict[str, str]]:
    """Parts of the pages on the laws of today: figures, and tables of published numbers."""
    data = kept()
    own = {made["figure"]: made for made in data["figures"] if made["paper"] == TODAY}
    alone = {name: [own.pop(name)] for name in _ALONE if name in own}
    shown = {"maps": list(own.values())} | {f"figure {k}": made for k, made in alone.items()}
    pictures = {
        name: "\n".join(_figures(made, "###", "papers/figures")) for name, made in shown.items()
    }
    tables = {f"docs/{which}.md": {"published numbers": _published(data, which)} for which in APART}
    tables[f"docs/{TODAY}.md"] |= pictures
    return tables


def _listed(folder: str) -> Iterator[str]:
    yield from ("| scenario | title |", "|---|---|")
    for name, title in titles().items():
        if name.startswith(f"{folder}/"):
            yield f"| `{name}` | {plain(title)} |"
    yield ""


def _all_scenarios(pages: dict[str, str]) -> str:
    lines = ["# Scenarios", "", (
        "Every bundled scenario (`fluidcc list`) by the name that commands and `fc.load` take. "
        "Each folder has notes with the sources of its values."
    ), ""]  # fmt: skip
    for folder, page in pages.items():
        lines += [f"## {folder}", "", f"[Paper notes]({page})", "", *_listed(folder)]
    lines += ["```{toctree}", ":hidden:", "", *(p[:-3] for p in pages.values() if "/" not in p)]
    return "\n".join([*lines, "```"]) + "\n"


def pages() -> dict[str, str]:
    """A page for each paper and each peer, and the list of scenarios."""
    data = kept()
    papers = {short: folders[0] for short, folders in PAPERS.items() if short not in APART}
    found = {f"papers/{s}.md": _paper(s, folder, data) for s, folder in papers.items()}
    found |= {"papers/counts.md": _table(data), "papers/beyond.md": _beyond(data)}
    where = {folder: f"../papers/{short}.md" for short, folder in papers.items()}
    for folder in dict.fromkeys(name.split("/")[0] for name in scenarios()):
        if folder not in where:
            title, opening, sections = _card(folder)
            found[f"scenarios/{folder}.md"] = f"# {title}\n\n{opening}\n\n{sections}\n"
            where[folder] = f"{folder}.md"
    found["scenarios/index.md"] = _all_scenarios(where)
    return found


if __name__ == "__main__":
    rewrite(parts())
