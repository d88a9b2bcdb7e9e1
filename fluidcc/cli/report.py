"""Prints results on the console."""

from typing import Any

from fluidcc.results import text


def tell(result: Any) -> None:
    """Print all tables of a result."""
    text.printed(result.tables(), text.console())
