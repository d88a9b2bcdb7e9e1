"""Commands on user-defined laws, one to begin with and conformance tests with a report; figures of
the papers, and verdicts on their claims.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fluidcc.bundled import module
from fluidcc.cli.options import (
    FAST_CPU,
    JSON,
    QUIET,
    Option,
    begin,
    check_file,
    completed,
    file,
    flag,
    read_scenario,
    takes,
    word,
    words,
)
from fluidcc.cli.run import SOME_FAILED, print_json, progress, report_faults, written
from fluidcc.errors import Fault, ScenarioError
from fluidcc.folders import own_folder, whole
from fluidcc.scenario.parsing import Faults

if TYPE_CHECKING:
    from fluidcc.check.verb import LawReport


@takes(
    file=word(None, "Python file with a law or several, which is run: read it first."),
    within=Option(
        "Scenario in which the law is tried (default: its `tried_in`, or ten flows at 10 Mbit/s).",
        str | None, None, "--scenario", {"metavar": "SCENARIO", "autocompletion": completed},
    ),
    json=JSON, quiet=QUIET, fast_cpu=FAST_CPU,
)  # fmt: skip
def check_law(file: str, within: str | None, json: bool, quiet: bool, fast_cpu: bool) -> None:
    """Run all law checks on your own laws. Exits with 3 if any fails or is undetermined."""
    begin(fast_cpu)
    from fluidcc.laws.own import load_laws, loaded
    from fluidcc.results.text import show as print_tables

    with loaded([]):  # added laws last as long as the command
        laws = load_laws(file)
        net = None if within is None else read_scenario(within)
        _require_in(net, laws, within)
        from fluidcc.check.verb import check_law as verb  # takes seconds; faults are found before

        reports = []
        for law in laws:
            with progress(law.name, quiet=quiet):
                reports.append(verb(law, scenario=net))
            if not json:
                print_tables(reports[-1])
    _end_check(reports, json)


@takes(
    kind=word(None, "window, queue, reaction or feedback."),
    file=word("FILE", "New file, such as my_law.py; the law is named after it.", Path),
)
def new_law(kind: str, file: Path) -> None:
    """Write a file with a law to begin with, which passes check-law."""
    from fluidcc.laws.own import write_skeleton

    with written("FILE", file):
        write_skeleton(kind, file)
    typer.echo(f"{file}: a {kind} law, {file.stem}; change it, and run `fluidcc check-law {file}`")


def _require_in(net: Any, laws: Any, name: str | None) -> None:
    """Raise ScenarioError if the scenario has none of the laws."""
    from fluidcc.laws.own import laws_in

    if net is not None and not set(laws) & set(laws_in(net)):
        names = ", ".join(law.name for law in laws)
        fault = Fault("--scenario", "", f"a scenario with {names} in it", f"'{name}'")
        raise ScenarioError([fault])


def _end_check(reports: "list[LawReport]", json: bool) -> None:

    if json:
        print_json({"laws": [report.to_dict() for report in reports]})
    if not all(report.sound for report in reports):
        raise typer.Exit(SOME_FAILED)


_RESULTS = file("Folder of finished runs, which are reused.")


def _bench(results: Path | None, quick: bool, quiet: bool) -> Any:
    from fluidcc.machine import processors

    try:
        folder = results or own_folder("results")
    except OSError as error:
        refused = Fault("--results", "", "a folder, as the cache has none", str(error))
        raise ScenarioError([refused]) from None
    with written("--results", folder):
        store = module("validation.lab.store").Store(folder)
    return module("validation.lab.making").Bench(
        store, quick, processors(), partial(progress, quiet=quiet)
    )


@takes(
    which=words("[PAPER|PAPER/FIGURE|all]...", "Figures to draw (default: all)."),
    quick=flag("Few seeds, and the longest runs shortened."),
    out=file("Folder for PDF, PNG and CSV.", Path("figures")),
    results=_RESULTS, json=JSON, quiet=QUIET, fast_cpu=FAST_CPU,
)  # fmt: skip
def figures(
    which: list[str] | None, quick: bool, out: Path, results: Path | None, json: bool,
    quiet: bool, fast_cpu: bool,
) -> None:  # fmt: skip
    """The figures of the papers, by packets and by the fluid model."""
    begin(fast_cpu)
    making, not_kept = module("validation.lab.making"), module("validation.lab.store").NotKept
    if out.exists() and not out.is_dir():
        raise ScenarioError([Fault("--out", "", "a folder", f"the file '{out}'")])
    bench, show = _bench(results, quick, quiet), (lambda _: None) if json else _print_figure
    with written("--out", out), written("--results", bench.store.folder, not_kept):
        done = making.make_figures(which or (), out, bench, show)
    if json:
        print_json({"figures": [made.to_dict() for made in done]})
    _finish({place: why for made in done for place, why in made.failures.items()})


def _print_figure(made: Any) -> None:
    from fluidcc.results.text import console

    out = console()
    head = f"{made.name}: {made.title}  [{made.seconds:.1f} s]"
    out.print(head, style="bold", markup=False)
    for line in made.notes[1:]:
        out.print(f"  {line}", markup=False)
    for picture in made.files[:1]:
        out.print(f"  {picture}", markup=False)


def _finish(failures: dict[str, str]) -> None:
    for place, why in failures.items():
        typer.echo(f"failed: {place}: {why}", err=True)
    if failures:
        raise typer.Exit(SOME_FAILED)


@takes(
    papers=words("[PAPER|all]...", "Papers (default: all)."),
    full=flag("Run all seeds (default: those of figures --quick)."),
    report=file("Write a report with figures: .html."),
    results=_RESULTS, json=JSON, quiet=QUIET, fast_cpu=FAST_CPU,
)  # fmt: skip
def validate(
    papers: list[str] | None, full: bool, report: Path | None, results: Path | None, json: bool,
    quiet: bool, fast_cpu: bool,
) -> None:  # fmt: skip
    """One verdict for each claim of the papers, with numbers, engine and reason."""
    begin(fast_cpu)
    named, bench = (
        module("validation.lab.ledger").chosen(papers or ()),
        _bench(results, not full, quiet),
    )
    if report is not None:
        faults = Faults()
        check_file("--report", report, (".html",), faults)
        faults.finish()
    with written("--results", bench.store.folder):
        verdicts, failures = module("validation.lab.making").validate(named, bench)
    rows = [verdict.to_dict() for verdict in verdicts]
    if json:
        print_json({"claims": rows})
    else:
        _print_verdicts(rows)
    if report is not None:
        text, failures = module("validation.lab.report").page(verdicts, bench, failures)
        with (
            report_faults(),
            written("--report", report),
            whole(report) as part,
        ):  # the JSON is printed
            part.write_text(text, encoding="utf-8")
    _finish(failures)


def _print_verdicts(rows: list[dict[str, Any]]) -> None:
    from fluidcc.results.text import console, table

    out, ledger = console(), module("validation.lab.ledger")
    for paper in dict.fromkeys(row["paper"] for row in rows):
        claims = [row for row in rows if row["paper"] == paper]
        shown = table(f"Claims of {paper}", "claim", "verdict", "engine", "why", left=4)
        for row in claims:
            shown.add_row(row["id"], row["verdict"], row["engine"], row["why"])
        out.print(shown)
    heading = "Reproduced by way of reading, others under the joint one"
    counts = table(heading, "paper", *ledger.tally([]))
    for paper, tally in ledger.tallies(rows).items():
        counts.add_row(paper, *map(str, tally.values()))
    out.print(counts)
