"""Make the papers' figures and verdicts that the documentation shows anew.

`uv run python docs/papers/refresh.py` runs `fluidcc figures all --quick` and `fluidcc validate all`
(some thirty minutes on two cores; finished runs are reused, from the folder `--results`
if one is named), and writes `verdicts.json` and the pictures in `figures` beside this file, the
table of verdicts in the README, and the pages on the laws of today. `refresh.py today` does it for
one paper, and leaves the others as they are.
"""

import argparse
import datetime
import itertools
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from PIL import Image

from fluidcc.bundled.paper_figs.drawing.figure import papers
from fluidcc.bundled.validation.lab.experiments import PAPERS
from fluidcc.bundled.validation.lab.ledger import claims, tallies, tally

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "_ext"))
from paper_pages import kept, parts, table  # noqa: E402 - lies beside the other extensions
from parts import rewrite  # noqa: E402

SCALES = (0.68, 0.6)  # of the pictures made: two panels are 1100 wide, or 970 if they are many
COLOURS = (128, 64)  # the most of these that the size allows; fewer mix up those of maps
SIZE = 60_000  # bytes
KEPT = ("id", "verdict", "engine", "reading", "counts", "bounds", "why")


def _run(*words: str) -> dict[str, Any]:
    """Output of a command."""
    called = ["fluidcc", *words, "--json"]
    done = subprocess.run(called, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def _smaller(picture: Path, to: Path) -> None:
    """A picture for the web: smaller, of few colours and at most SIZE."""
    with Image.open(picture) as image:
        whole = image.convert("RGB")
    for scale, colours in itertools.product(SCALES, COLOURS):
        size = (round(scale * whole.width), round(scale * whole.height))
        small = whole.resize(size, Image.Resampling.LANCZOS)
        few = small.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(to, optimize=True)
        if to.stat().st_size <= SIZE:
            break


def readme_table(rows: list[dict[str, Any]]) -> str:
    """The table of verdicts as the README has it."""
    return "\n".join(table({**tallies(rows), "all": tally(rows)}))


def _figures(which: list[str], results: list[str]) -> list[dict[str, Any]]:
    """Make figures, and keep their pictures."""
    figures = []
    (HERE / "figures").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for made in _run("figures", *which, "--quick", "--out", folder, *results)["figures"]:
            picture = next(Path(f) for f in made["files"] if f.endswith(".png"))
            name = f"{made['paper']}_{made['figure']}.png"
            _smaller(picture, HERE / "figures" / name)
            entry = {key: made[key] for key in ("paper", "figure", "title", "notes")}
            figures.append(entry | {"file": name})
    return figures


def _claims(papers: list[str], results: list[str]) -> list[dict[str, Any]]:
    """Judge the claims of papers."""
    found = []
    for row in _run("validate", *papers, *results)["claims"]:
        readings = {name: own["verdict"] for name, own in row["readings"].items()}
        found.append({k: row[k] for k in KEPT} | {"readings": readings})
    return found


def main() -> None:
    """Make all of it, or what belongs to some papers."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("papers", nargs="*", default=["all"], help="papers; all by default")
    reader.add_argument("--results", help="folder of finished runs")
    given = reader.parse_args()
    results = ["--results", given.results] if given.results else []
    judged = [paper for paper in given.papers if paper in PAPERS or paper == "all"]
    drawn = [name for name in given.papers if name.partition("/")[0] in ("all", *papers())]
    figures = _figures(drawn, results) if drawn else []
    rows = _claims(judged, results) if judged else []
    if given.papers != ["all"]:
        before, made = kept(), {(own["paper"], own["figure"]) for own in figures}
        new = {row["id"] for row in rows}
        others = [own for own in before["figures"] if (own["paper"], own["figure"]) not in made]
        figures = sorted([*others, *figures], key=lambda own: own["paper"])
        order = [name for paper in PAPERS for name in claims(paper)]
        rows += [row for row in before["claims"] if row["id"] not in new]
        rows.sort(key=lambda row: order.index(row["id"]))
    data = {
        "command": "uv run python docs/papers/refresh.py",
        "date": datetime.date.today().isoformat(),
        "version": version("fluidcc"),
        "beside": {name: version(name) for name in ("jax", "numba", "numpy", "scipy")},
        "figures": figures,
        "claims": rows,
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    (HERE / "verdicts.json").write_text(text + "\n", encoding="utf-8")
    rewrite({"README.md": {"verdicts": readme_table(rows)}, **parts()})


if __name__ == "__main__":
    main()
