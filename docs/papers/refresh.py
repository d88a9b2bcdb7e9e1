"""Make the papers' figures and verdicts that the documentation shows anew.

`uv run python docs/papers/refresh.py` runs `fluidcc figures all --quick` and `fluidcc validate all`
(some twenty minutes on two cores; finished runs are reused, from the folder `--results`
if one is named), and writes `verdicts.json` and the pictures in `figures` beside this file, and
the table of verdicts in the README.
"""

import datetime
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from PIL import Image

from fluidcc.bundled.validation.lab.ledger import tallies, tally

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "_ext"))
from paper_pages import table  # noqa: E402 - lies beside the other extensions
from parts import rewrite  # noqa: E402

SCALE = 0.68  # of the pictures made, whose letters are all of one size: two panels are 1100 wide
COLOURS = (128, 64, 32)  # the most of these that the size allows
SIZE = 60_000  # bytes
KEPT = ("id", "verdict", "engine", "reading", "counts", "bounds", "why")


def _run(*words: str) -> dict[str, Any]:
    """Output of a command, run with the arguments of this script."""
    called = ["fluidcc", *words, "--json", *sys.argv[1:]]
    done = subprocess.run(called, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def _smaller(picture: Path, to: Path) -> None:
    """A picture for the web: smaller by SCALE, of few colours and at most SIZE."""
    with Image.open(picture) as whole:
        size = (round(SCALE * whole.width), round(SCALE * whole.height))
        small = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    for colours in COLOURS:
        few = small.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(to, optimize=True)
        if to.stat().st_size <= SIZE:
            break


def readme_table(rows: list[dict[str, Any]]) -> str:
    """The table of verdicts as the README has it."""
    return "\n".join(table({**tallies(rows), "all": tally(rows)}))


def main() -> None:
    """Make all of it."""
    figures = []
    (HERE / "figures").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for made in _run("figures", "all", "--quick", "--out", folder)["figures"]:
            picture = next(Path(f) for f in made["files"] if f.endswith(".png"))
            name = f"{made['paper']}_{made['figure']}.png"
            _smaller(picture, HERE / "figures" / name)
            entry = {key: made[key] for key in ("paper", "figure", "title", "notes")}
            figures.append(entry | {"file": name})
    claims = []
    for row in _run("validate", "all")["claims"]:
        readings = {name: own["verdict"] for name, own in row["readings"].items()}
        claims.append({k: row[k] for k in KEPT} | {"readings": readings})
    data = {
        "command": "uv run python docs/papers/refresh.py",
        "date": datetime.date.today().isoformat(),
        "version": version("fluidcc"),
        "beside": {name: version(name) for name in ("jax", "numba", "numpy", "scipy")},
        "figures": figures,
        "claims": claims,
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    (HERE / "verdicts.json").write_text(text + "\n", encoding="utf-8")
    rewrite({"README.md": {"verdicts": readme_table(claims)}})


if __name__ == "__main__":
    main()
