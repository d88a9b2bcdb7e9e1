"""The command `check-law`: conformance tests of user-defined laws, with a report."""

from typing import TYPE_CHECKING, Any

import typer

from fluidcc.cli.options import FAST_CPU, JSON, Option, begin, completed, read_scenario, takes, word
from fluidcc.cli.run import SOME_FAILED, print_json, progress
from fluidcc.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from fluidcc.check.verb import LawReport


@takes(
    file=word(None, "Python file with a law or several, which is run: read it first."),
    within=Option(
        "Scenario in which the law is tried (default: ten flows over 10 Mbit/s).", str | None, None,
        "--scenario", {"metavar": "SCENARIO", "autocompletion": completed},
    ),
    json=JSON, fast_cpu=FAST_CPU,
)  # fmt: skip
def check_law(file: str, within: str | None, json: bool, fast_cpu: bool) -> None:
    """Run all law checks on your own laws. Exits with 3 if any fails."""
    begin(fast_cpu)
    from fluidcc.check.verb import check_law as verb
    from fluidcc.laws.own import load_laws, loaded
    from fluidcc.results.text import show as print_tables

    with loaded([]):  # added laws last as long as the command
        laws = load_laws(file)
        net = None if within is None else read_scenario(within)
        _require_in(net, laws, within)
        reports = []
        for law in laws:
            with progress(law.name) as show:
                reports.append(verb(law, scenario=net, progress=show))
            if not json:
                print_tables(reports[-1])
    _finish(reports, json)


def _require_in(net: Any, laws: Any, name: str | None) -> None:
    """Raise ScenarioError if the scenario has none of the laws."""
    from fluidcc.laws.own import laws_in

    if net is not None and not set(laws) & set(laws_in(net)):
        names = ", ".join(law.name for law in laws)
        fault = Fault("--scenario", "", f"a scenario with {names} in it", f"'{name}'")
        raise ScenarioError([fault])


def _finish(reports: "list[LawReport]", json: bool) -> None:

    if json:
        print_json({"laws": [report.to_dict() for report in reports]})
    if any(report.failed for report in reports):
        raise typer.Exit(SOME_FAILED)
