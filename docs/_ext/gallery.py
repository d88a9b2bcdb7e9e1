"""Pictures of the gallery's scripts: figures that `fc.plot` returns are no windows of pyplot."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def figures_of_fluidcc(block: Any, block_vars: dict, gallery_conf: dict) -> str:
    """Save every figure that the code block made, and give the text that shows them."""
    seen = block_vars["example_globals"].setdefault("_shown", set())
    files = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and id(value) not in seen:
            seen.add(id(value))
            path = Path(next(block_vars["image_path_iterator"]))
            value.savefig(path, dpi=110)
            files.append(str(path))
    return figure_rst(files, gallery_conf["src_dir"])
