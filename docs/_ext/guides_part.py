"""The guides that are there, as a part of the front page."""

from pathlib import Path

_HOME = Path(__file__).parents[1]


def pages() -> dict[str, str]:
    """A table of contents of the pages on one's own laws, and on the explorer."""
    names = sorted(f.stem for pattern in ("own_*.md", "explorer.md") for f in _HOME.glob(pattern))
    lines = ["```{toctree}", ":hidden:", ":caption: Guides", "", *names, "```"] if names else []
    return {"guides.md": "\n".join([*lines, ""])}
