"""Pages that are made from the package itself before anything is read."""

from pathlib import Path

import beside_page
import cli_page
import key_pages
import law_pages
import paper_pages
import reference
import trace_page
from sphinx.application import Sphinx


def _write(app: Sphinx) -> None:
    """Write the pages; those that stay the same keep their time, so that builds are short."""
    home = Path(app.srcdir)
    modules = (
        reference, cli_page, key_pages, trace_page, law_pages, paper_pages, beside_page,
    )  # fmt: skip
    for module in modules:
        for name, text in module.pages().items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the pages when the builder starts."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
