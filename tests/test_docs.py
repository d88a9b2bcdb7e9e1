"""What the documentation keeps and lists is all there is, and no more."""

import importlib
import inspect
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

import fluidcc
from fluidcc.bundled.paper_figs.drawing.figure import wanted
from fluidcc.bundled.validation.lab.experiments import PAPERS
from fluidcc.bundled.validation.lab.judging import VERDICTS
from fluidcc.bundled.validation.lab.ledger import claims
from fluidcc.laws.law import KINDS
from fluidcc.laws.registry import LAWS
from fluidcc.quantities import TABLE
from fluidcc.scenario.build import build
from fluidcc.scenario.keys import keys

DOCS = Path(__file__).parents[1] / "docs"
KEPT = json.loads((DOCS / "papers" / "verdicts.json").read_text(encoding="utf-8"))


@pytest.fixture
def extension(monkeypatch):
    """Import a module of the documentation's own extensions."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if "_ext" in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_every_claim_of_the_ledger_has_a_kept_verdict():
    ledger = [name for paper in PAPERS for name in claims(paper)]
    assert sorted(row["id"] for row in KEPT["claims"]) == sorted(ledger)
    assert {row["verdict"] for row in KEPT["claims"]} <= set(VERDICTS)
    assert all(row["why"] for row in KEPT["claims"])


def parts_of_pages(extension, monkeypatch):
    """Each part that kept pages have between comments, with the text that it should have."""
    monkeypatch.syspath_prepend(str(DOCS / "papers"))
    readme = extension("refresh").readme_table(KEPT["claims"])
    yield "README.md", {"verdicts": readme}
    for module in ("beside_page", "law_pages"):
        yield from extension(module).parts().items()


def test_parts_of_pages_that_are_made_from_data_are_current(extension, monkeypatch):
    made = list(parts_of_pages(extension, monkeypatch))
    for name, parts in made:
        written = (DOCS.parent / name).read_text(encoding="utf-8")
        assert extension("parts").with_parts(written, parts) == written, (
            f"{name}: run the command that the page names above the part"
        )
    assert "| default | joint reading | every reading | some reading |" in made[0][1]["verdicts"]
    with pytest.raises(ValueError, match="no part <!-- verdicts -->"):
        extension("parts").with_parts("a page without parts", {"verdicts": ""})


def test_every_figure_is_kept_and_small_enough_for_the_web():
    drawn = [(figure["paper"], figure["figure"]) for figure in KEPT["figures"]]
    assert sorted(drawn) == sorted((recipe.paper, recipe.number) for recipe in wanted(()))
    sizes = {f.name: f.stat().st_size for f in (DOCS / "papers" / "figures").iterdir()}
    assert set(sizes) == {figure["file"] for figure in KEPT["figures"]}
    assert max(sizes.values()) <= 60_000 and sum(sizes.values()) <= 4_000_000


def test_every_public_name_stands_once_in_the_reference_with_an_example(extension):
    names = [name for group in extension("reference").GROUPS for name in group.names]
    assert sorted(names) == sorted(dir(fluidcc))
    bare = {name for name in names if ">>> " not in (getattr(fluidcc, name).__doc__ or "")}
    assert bare == {"Optimum"}  # seconds to make: that of `optimize` serves both


def test_the_pages_on_laws_have_every_law_and_none_without_its_parameters(extension):
    pages = extension("law_pages").pages()
    for kind, laws in LAWS.items():
        page = pages[f"laws/{kind}.md"]
        assert [f"## `{name}`" in page for name in laws] == [True] * len(laws)
    assert r"\dot W &= " in pages["laws/window.md"] and "`w_q`" in pages["laws/queue.md"]


def merged(table, changes):
    """A scenario with tables of links and groups laid over its own."""
    both = {**table}
    for name, value in changes.items():
        deep = isinstance(value, dict) and isinstance(table.get(name), dict) and "law" not in value
        both[name] = merged(table[name], value) if deep else value
    return both


def test_what_the_page_on_scenarios_says_is_read():
    page = (DOCS / "scenario_keys.md").read_text(encoding="utf-8")
    texts = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    base, *changes = map(tomllib.loads, texts)
    build(base, "base")
    for change in changes:
        build(merged(base, change), str(change))
    assert len(changes) > 15


def test_pages_have_every_key_and_every_quantity(extension):
    pages = extension("key_pages").pages()
    for key in keys():
        assert f"| `{key.path.rpartition('.')[2]}` |" in pages["scenario_keys_tables.md"]
    for name in (name for row in TABLE for name in row.names):
        assert f"| `{name}` |" in pages["quantities_tables.md"]
    written = {name: (DOCS / name).read_text(encoding="utf-8") for name in pages}
    assert written == pages, "run python docs/_ext/key_pages.py"


@pytest.mark.parametrize("kind", ["window", "queue", "reaction", "feedback"])
def test_the_tables_of_laws_have_every_method_with_when_it_is_called(extension, kind):
    base = KINDS[kind]
    text = "\n".join(extension("law_pages").members(kind))
    rows = set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE))
    methods = {n for n, _ in inspect.getmembers(base, inspect.isfunction) if n[0] != "_"}
    assert methods - rows <= {*"check change state_of move_memory window with_window".split()}


def test_notes_on_papers_name_each_other_without_links():
    """They lie elsewhere in the documentation than in the repository."""
    notes = (DOCS.parent / "models").glob("*/*.md")
    assert [str(note) for note in notes if "](../" in note.read_text(encoding="utf-8")] == []
