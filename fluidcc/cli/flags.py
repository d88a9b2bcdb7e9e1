"""Arguments and options that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fluidcc import bundled


def completed(incomplete: str) -> list[str]:
    """Scenarios that a shell may complete a word to: bundled ones, TOML files, folders."""
    found = [name for name in bundled.scenarios() if name.startswith(incomplete)]
    head = incomplete[: incomplete.rfind("/") + 1]
    for path in sorted(Path(os.path.expanduser(head or ".")).glob("*")):
        name = head + path.name + "/" * path.is_dir()
        if name.startswith(incomplete) and (path.is_dir() or path.suffix == ".toml"):
            found.append(name)
    return found


ONE_SCENARIO = "Bundled scenario (fluidcc list), a TOML file, or - for standard input."
Scenario = Annotated[str, typer.Argument(help=ONE_SCENARIO, autocompletion=completed)]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a parameter. Repeatable."),
]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over", metavar="PATH=A:B:STEP|v1,v2", help="Sweep a parameter. Repeat for a grid."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write the result: .nc, .csv, or its tables as .tex.")
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the result: .png, .pdf or .svg.")]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="End of the run [s].")]
Warmup = Annotated[
    str,
    typer.Option(
        "--warmup", metavar="TIME", help="Statistics start here [s]. [default: --until / 3]"
    ),
]
Seeds = Annotated[str, typer.Option("--seeds", metavar="K", help="Packet runs: seeds 1 to K.")]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample", metavar="TIME", help="Sample queues and windows, for --out or --plot [s]."
    ),
]
Trace = Annotated[
    Path | None, typer.Option("--trace", help="Write every event of seed 1's run: .csv.")
]
FastCPU = Annotated[
    bool,
    typer.Option("--fast-cpu/--no-fast-cpu", help="Compile integration loops as a whole."),
]
