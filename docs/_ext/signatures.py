"""Signatures as the source has them; results, which nobody builds by hand, have none."""

import ast
import inspect
import textwrap
from typing import Any

from reference import BUILT_BY_HAND
from sphinx.application import Sphinx


def _as_written(app: Any, what: str, name: str, thing: Any, *_: Any) -> tuple[str, str] | None:
    if isinstance(thing, type):
        plain = issubclass(thing, Exception) or name.removeprefix("fluidcc.") in BUILT_BY_HAND
        return None if plain else ("", "")
    if not inspect.isfunction(thing):
        return None
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except OSError:  # written by dataclasses
        return None
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef):
        return None
    if what == "method" and node.args.args[:1]:
        node.args.args.pop(0)
    returns = "" if node.returns is None else ast.unparse(node.returns).strip("'")
    return f"({ast.unparse(node.args)})".replace("'", ""), returns


def setup(app: Sphinx) -> dict[str, bool]:
    """Read signatures of functions from their source."""
    app.connect("autodoc-process-signature", _as_written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
