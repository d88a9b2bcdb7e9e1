"""One self-contained page: from claim to figure to scenario file to equation."""

import base64
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from latex2mathml.converter import convert

from fluidcc.bundled import scenarios
from fluidcc.results.latex import latex
from fluidcc.scenario.files import citations, load

from ...paper_figs.drawing.figure import recipes
from .beside import Beside, causes, medians, short_queues, table
from .experiments import PAPERS
from .lab import Lab
from .ledger import Verdict, tally
from .making import Bench, Made, make_figures
from .readings import questions


def page(
    verdicts: Sequence[Verdict], bench: Bench, failures: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """The report of some verdicts, with every figure of their papers, and of what failed.

    Returns the page (HTML), and what failed, in the figures too, by place.
    """
    papers = list(dict.fromkeys(v.claim.paper for v in verdicts))
    with tempfile.TemporaryDirectory() as folder:
        made = make_figures(papers, Path(folder), bench, judged=())  # their claims stand beside
        figures = {
            p: [_figure(m, bench.joint(p)) for m in made if m.paper == p and m.files]
            for p in papers
        }
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found = [_paper(p, verdicts, figures[p], bench.joint(p)) for p in papers]
    failed = {**failures, **{place: why for m in made for place, why in m.failures.items()}}
    text = environment.get_template("report.html").render(
        version=version("fluidcc"), quick=bench.quick, columns=list(tally([])),
        papers=found, counts=tally([row for own in found for row in own["claims"]]),
        beside=_beside(papers),
        failures=failed,
    )  # fmt: skip
    return text, failed


def _beside(papers: Sequence[str]) -> dict[str, Any]:
    """Errors of the fluid model over the scenarios of some papers."""
    own = tuple(f"{folder}/" for paper in papers for folder in PAPERS[paper])
    rows = [row for row in table() if row.scenario.startswith(own)]
    by_scenario: dict[str, list[Beside]] = {}
    for row in rows:
        by_scenario.setdefault(row.scenario, []).append(row)
    parts = {
        "where the model says nothing against itself": [r for r in rows if not r.validity_warnings],
        "elsewhere": [r for r in rows if r.validity_warnings],
    }
    return {
        "scenarios": by_scenario,
        "medians": {name: medians(part) for name, part in parts.items()},
        "short": {name: short_queues(part) for name, part in parts.items()},
        "kinds": (
            "goodput",
            "utilization",
            "queue",
            "mark_fraction",
            "drop_fraction",
            "queue_std",
            "period",
        ),
        "causes": [
            (cause, len({row.scenario for row in own}), medians(own))
            for cause, own in causes(rows).items()
        ],
    }


def _figure(made: Made, lab: Lab) -> dict[str, Any]:
    picture = next(f for f in made.files if f.suffix == ".png").read_bytes()
    needs = recipes(made.paper)[made.number].needs
    return {
        "name": made.name, "number": made.number, "title": made.title, "notes": made.notes,
        "experiments": [lab.experiment(name).name for name in needs],
        "png": base64.b64encode(picture).decode(),
    }  # fmt: skip


def _paper(
    paper: str, verdicts: Sequence[Verdict], figures: Sequence[Mapping[str, Any]], lab: Lab
) -> dict[str, Any]:
    own = [v for v in verdicts if v.claim.paper == paper]
    rows = [{**v.to_dict(), "shown": v.claim.numbers} for v in own]
    named = {name for f in figures for name in f["experiments"]}
    named |= {name for v in own for name in v.experiments}
    used = [lab.experiment(name) for name in sorted(named)]
    known = scenarios()
    found = []
    for name in sorted({e.scenario for e in used}):
        net = load(name)
        text = known[name].read_text(encoding="utf-8")
        found.append({"name": name, "title": net.title, "text": text, "equations": _math(net)})
    sources = [own for item in found for own in citations(load(item["name"])).items()]
    cited = dict(own for own in sources if own[0] in PAPERS[paper])
    return {
        "name": paper,
        "citation": "; ".join(cited.values()) or paper,
        "claims": rows,
        "questions": questions(paper),
        "figures": figures,
        "experiments": used,
        "scenarios": found,
        "counts": tally(rows),
    }


def _math(net: Any) -> str:
    """The equations of the fluid model as MathML, which browsers show by themselves."""
    return convert(latex(net), display="block")
