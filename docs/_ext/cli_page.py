"""The page on the command line, made from the commands themselves."""

from collections.abc import Iterator
from typing import Any

import typer

from fluidcc.cli.app import app


def _row(param: Any, context: Any) -> tuple[str, str]:
    if param.param_type_name == "option":
        return param.get_help_record(context) or ("", "")
    return param.metavar or param.name.upper(), param.help or ""


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=f"fluidcc {name}")
    yield from (f"## {name}", "", command.help or "", "", "```text", command.get_usage(context))
    yield from ("```", "")
    for flag, text in (_row(param, context) for param in command.params):
        if flag:
            yield from (f"`{flag}`", f": {' '.join(text.split()) or 'See the usage above.'}", "")


def pages() -> dict[str, str]:
    """The page on the command line."""
    group: Any = typer.main.get_command(app)
    lines = ["# Command line", "", group.help or "", "", group.epilog or "", ""]
    for name, command in group.commands.items():
        lines += _command(name, command)
    return {"reference/cli.md": "\n".join(lines) + "\n"}
