"""About the machine: what fluidcc finds there, and compiling ahead."""

import contextlib
import warnings
from typing import Annotated

import typer

from fluidcc.cli.flags import FastCPU, Json, completed
from fluidcc.cli.options import begin, read_scenario
from fluidcc.cli.run import SOME_FAILED, print_json
from fluidcc.scenario.typed import Faults

_DEFAULT = ("hollot2001/slow", "misra2003/mixed")


def doctor(json: Json = False, fast_cpu: FastCPU = True) -> None:
    """What is there: versions, devices, memory, caches, optional parts; and what is wrong."""
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is missing or wrong stands below
        begin(fast_cpu)
    from fluidcc.cli.doctor import examine

    found = examine()
    if json:
        import dataclasses

        whole = {"findings": [dataclasses.asdict(finding) for finding in found]}
        print_json(whole)
    else:
        from rich.text import Text

        from fluidcc.cli.report import console, table

        out = table("", "", "what", "found")
        for column in out.columns:
            column.justify = "left"
        for topic in dict.fromkeys(finding.topic for finding in found):
            out.add_section()
            for k, f in enumerate(f for f in found if f.topic == topic):
                shown = Text(f.value, style="bold red" if f.good is False else "")
                out.add_row("" if k else topic, f.name, shown)
        console().print(out)
        for f in found:
            if f.advice and f.good is None:
                console().print(f"{f.name} ({f.value}): {f.advice}")
    wrong = [finding for finding in found if finding.good is False]
    for finding in wrong:
        typer.echo(f"{finding.name}: {finding.value}; {finding.advice}", err=True)
    if wrong:
        raise typer.Exit(SOME_FAILED)


def warm(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCENARIO]...", help="Yours, or two bundled ones.", autocompletion=completed
        ),
    ] = None,
    fast_cpu: FastCPU = True,
) -> None:
    """Compile now what the first commands on a scenario would compile; it is kept."""
    begin(fast_cpu)
    faults = Faults()
    names = scenarios or _DEFAULT
    nets = [faults.catch(read_scenario, name) for name in names]
    faults.finish()
    from fluidcc.cli.report import console
    from fluidcc.cli.warm_up import warm as compiled

    for name, net in zip(names, nets, strict=True):
        for done in compiled(net):
            note = f"  ({done.message.splitlines()[0]})" if done.message else ""
            console().print(f"{name}: {done.verb} {done.seconds:.1f} s{note}")
