"""Parts of kept pages that are made from data: what stands between two comments of a page,
``<!-- NAME, written by COMMAND -->`` and ``<!-- end -->``.
"""

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""


def with_parts(page: str, parts: Mapping[str, str]) -> str:
    """A page with parts, by name, made anew.

    Raises ValueError if the page lacks one of them.
    """
    for name, text in parts.items():
        place = rf"(<!-- {re.escape(name)}(?:, [^>]*)? -->\n).*?(?=<!-- end -->)"
        made = text.replace("\\", r"\\")
        page, found = re.subn(place, rf"\g<1>{made}\n", page, flags=re.DOTALL)
        if not found:
            raise ValueError(f"no part <!-- {name} --> ... <!-- end -->")
    return page


def rewrite(pages: Mapping[str, Mapping[str, str]]) -> None:
    """Make parts of pages anew, by the place of the page in the checkout."""
    for name, parts in pages.items():
        page = ROOT / name
        text = with_parts(page.read_text(encoding="utf-8"), parts)
        page.write_text(text, encoding="utf-8")
