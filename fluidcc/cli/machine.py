"""About the machine: what fluidcc finds there, and compiling ahead."""

import contextlib
import dataclasses
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import typer

from fluidcc.cli.flags import FastCPU, Json, completed
from fluidcc.cli.options import begin, read_scenario
from fluidcc.cli.run import SOME_FAILED, print_json
from fluidcc.scenario.typed import Faults

_DEFAULT = ("hollot2001/slow", "misra2003/mixed")
_UNTIL = 1.0  # [s]: lengths of runs change nothing that is compiled


def doctor(json: Json = False, fast_cpu: FastCPU = True) -> None:
    """What is there: versions, devices, memory, caches, optional parts; and what is wrong."""
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is missing or wrong stands below
        begin(fast_cpu)
    from fluidcc.cli.doctor import examine

    found = examine()
    if json:
        print_json({"findings": [dataclasses.asdict(finding) for finding in found]})
    else:
        from rich.text import Text

        from fluidcc.results.text import console, table

        out = table("", "", "what", "found", left=3)
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
    from fluidcc.results.text import console

    for name, net in zip(names, nets, strict=True):
        for verb, spent, message in precompile(net):
            note = f"  ({message.splitlines()[0]})" if message else ""
            console().print(f"{name}: {verb} {spent:.1f} s{note}")


def precompile(net: Any) -> Iterator[tuple[str, float, str]]:
    """Call each verb once on a network; what they compile is kept where `keep_compiled` says.

    Yields name, time of that call [s], and why it gave nothing, if so, as each verb ends. Other
    numbers in the same network compile nothing more; other laws, or other numbers of links and
    groups, do.
    """
    import fluidcc as fc

    verbs = {
        "equilibrium": fc.equilibrium,
        "stability": fc.stability,
        "simulate": partial(fc.simulate, until=_UNTIL),
        "packets": partial(fc.simulate_packets, until=_UNTIL, seeds=(1,)),
        "compare": partial(fc.compare, until=_UNTIL, warmup=_UNTIL / 2, seeds=(1, 2)),
    }
    for name, verb in verbs.items():
        began, message = time.perf_counter(), ""
        try:
            verb(net)
        except ValueError as error:  # a verb that does not take such a network
            message = str(error)
        yield name, time.perf_counter() - began, message
