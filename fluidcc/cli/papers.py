"""Figures of the papers, and verdicts on their claims."""

from pathlib import Path
from typing import Any

import typer

from fluidcc.bundled import module
from fluidcc.cli.options import FAST_CPU, JSON, begin, check_file, file, flag, takes, words
from fluidcc.cli.run import SOME_FAILED, print_json, progress, report_faults, written
from fluidcc.errors import Fault, ScenarioError
from fluidcc.folders import own_folder, whole
from fluidcc.scenario.parsing import Faults

_RESULTS = file("Folder of finished runs, which are reused.")


def _bench(results: Path | None, quick: bool) -> Any:
    from fluidcc.machine import processors

    try:
        folder = results or own_folder("results")
    except OSError as error:
        refused = Fault("--results", "", "a folder, as the cache has none", str(error))
        raise ScenarioError([refused]) from None
    with written("--results", folder):
        store = module("validation.lab.store").Store(folder)
    return module("validation.lab.making").Bench(store, quick, processors(), progress)


@takes(
    which=words("[PAPER|PAPER/FIGURE|all]...", "Figures to draw (default: all)."),
    quick=flag("Few seeds, and the longest runs shortened."),
    out=file("Folder for PDF, PNG and CSV.", Path("figures")),
    results=_RESULTS, json=JSON, fast_cpu=FAST_CPU,
)  # fmt: skip
def figures(
    which: list[str] | None, quick: bool, out: Path, results: Path | None, json: bool,
    fast_cpu: bool,
) -> None:  # fmt: skip
    """The figures of the papers, by packets and by the fluid model."""
    begin(fast_cpu)
    making, not_kept = module("validation.lab.making"), module("validation.lab.store").NotKept
    if out.exists() and not out.is_dir():
        raise ScenarioError([Fault("--out", "", "a folder", f"the file '{out}'")])
    bench, show = _bench(results, quick), (lambda _: None) if json else _print_figure
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
    results=_RESULTS, json=JSON, fast_cpu=FAST_CPU,
)  # fmt: skip
def validate(
    papers: list[str] | None, full: bool, report: Path | None, results: Path | None, json: bool,
    fast_cpu: bool,
) -> None:  # fmt: skip
    """One verdict for each claim of the papers, with numbers, engine and reason."""
    begin(fast_cpu)
    named, bench = module("validation.lab.ledger").chosen(papers or ()), _bench(results, not full)
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
