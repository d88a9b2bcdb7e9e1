"""The command `sweep`: a verb over a grid, in chunks that are kept in a folder next to the file."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fluidcc.cli.options import (
    CHANGES,
    COLUMNS,
    FAST_CPU,
    JSON,
    ONE_SCENARIO,
    OUT,
    OVER,
    PLOT,
    QUIET,
    Task,
    command_line,
    completed,
    flag,
    prepare,
    takes,
    text,
    word,
    words,
)
from fluidcc.cli.run import SOME_FAILED, print_error, print_json, progress, save_files
from fluidcc.cli.verbs import VERBS, Options
from fluidcc.errors import SweepStopped, nearest, shown
from fluidcc.scenario.parsing import Faults

if TYPE_CHECKING:
    from fluidcc.scenario.grid import Grid
    from fluidcc.sweep.chunks import SweepData, SweepStatus

SWEPT = tuple(name for name, verb in VERBS.items() if verb.swept)
"""Verbs that a sweep takes."""

_LONGEST = 2000  # characters of a command that is shown
_REASONS = 1000  # of points in JSON


_OPTIONS = {
    name: option._replace(default="") if isinstance(option.default, str) else option
    for verb in SWEPT for name, option in VERBS[verb].choices.items()
}  # fmt: skip
"""Options of all verbs that a sweep takes; the verb has the defaults."""


@takes(
    verb=word("VERB", ", ".join(SWEPT), str | None, None),
    scenario=word(None, ONE_SCENARIO, str | None, None, autocompletion=completed),
    words=words("[WORD]...", "Further words of the verb, such as PATH=LO:HI."),
    over=OVER, changes=CHANGES, out=OUT, columns=COLUMNS, plot=PLOT,
    workers=text("N", "Number of worker processes (default: one per core)."),
    scheduler=text("ADDRESS", "Address of a Dask cluster, such as tcp://host:8786."),
    status=flag("Print counts of done, failed and missing points; run nothing."),
    **_OPTIONS, json=JSON, quiet=QUIET, fast_cpu=FAST_CPU,
)  # fmt: skip
def sweep(
    verb: str | None, scenario: str | None, words: list[str] | None, over: Any, changes: Any,
    out: Path | None, columns: str | None, plot: Path | None, workers: str | None,
    scheduler: str | None, status: bool, json: bool, quiet: bool, fast_cpu: bool, **given: Any,
) -> None:  # fmt: skip
    """A verb over a grid in chunks, on all cores; finished chunks are kept in FILE.sweep."""
    faults = Faults()
    if status and verb is None:
        _print_status(_folder(out, faults), json, faults)
        return
    if verb in SWEPT and "closure" in VERBS[verb].choices and given["closure"]:
        changes, given = [*(changes or ()), f"model.closure={given['closure']}"], {**given}
        given["closure"] = _OPTIONS["closure"].default
    shared = {"columns": columns, "plot": plot, "fast_cpu": fast_cpu, "quiet": quiet}
    task = _prepare(faults, verb, scenario, words or (), changes, over, json, out, shared)
    options = _options(verb or "", words or (), given, task, faults)
    count = _workers(workers, scheduler, faults)
    folder = _folder(out, faults)
    faults.finish()
    call = VERBS[str(verb)].call(options)
    if status:
        _print_status(folder, json, faults, (task, call))
    else:
        _deliver(task, _run(task, call, folder, count, scheduler), folder)


def _prepare(
    faults: Faults, verb: str | None, scenario: str | None, words: Sequence[str], changes: Any,
    over: Any, json: bool, out: Path | None, shared: Mapping[str, Any],
) -> Task:  # fmt: skip
    if verb not in SWEPT and scenario in SWEPT:
        faults.add("sweep", "", f"the verb first: fluidcc sweep {scenario} {verb} ...", f"{verb!r}")
        faults.finish()
    if verb not in SWEPT:
        close = nearest(verb or "", list(SWEPT), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        got = "none" if verb is None else f"{verb!r}{hint}"
        faults.add("sweep", "VERB", f"one of {', '.join(SWEPT)}", got)
    task = prepare(faults, scenario, changes, over, json, out, chunked=True, **shared)
    if verb in SWEPT:
        VERBS[verb].check_columns(task, faults, {"along": words}, chunked=True)
    if scenario is None:
        faults.add("sweep", "SCENARIO", "a bundled scenario or a file", "none")
    if not over:
        faults.add("sweep", "", "a grid: --over PATH=A:B:STEP", "none")
    return task


def _options(
    name: str, words: Sequence[str], given: Mapping[str, Any], task: Task, faults: Faults
) -> Options:
    """Options of a verb, from the words after the scenario and those of its options that are given.

    Too many or too few words, and options of other verbs, are faults.
    """
    given = {key: value for key, value in given.items() if value != _OPTIONS[key].default}
    taken = {verb: VERBS[verb].choices for verb in SWEPT}
    for key in given:
        if key not in taken.get(name, given):
            able = ", ".join(verb for verb, names in taken.items() if key in names)
            faults.add(f"--{key}", "", f"a verb that takes it ({able})", f"{name!r}")
    if name not in SWEPT:
        return {}
    verb = VERBS[name]
    wanted = " ".join(option.more["metavar"] for option in verb.words.values())
    least = len(wanted.split())
    if len(words) < least or (len(words) > least and not wanted.endswith("...")):
        got = " ".join(words) or "nothing"
        faults.add("sweep", "", f"{wanted or 'nothing'} after the scenario", repr(got))
        return {}
    values = {key: option.default for key, option in verb.options.items()}
    values |= {key: value for key, value in given.items() if key in taken[name]}
    for k, (key, option) in enumerate(verb.words.items()):
        values[key] = words[k] if option.type is str else list(words[k:])
    return verb.read(task, faults, **values)


def _folder(out: Path | None, faults: Faults) -> Path:
    """The folder of the chunks of a file."""
    if out is None:
        faults.add("sweep", "", "--out FILE; chunks are kept next to it", "none")
        faults.finish()
    return Path(f"{out}.sweep")


def _workers(text: str | None, scheduler: str | None, faults: Faults) -> int | None:
    if text is None:
        return None
    if scheduler is not None:
        faults.add("--workers", "", "no --scheduler, which has its own", f"{text!r} with it")
    if not text.isdecimal():
        faults.add("--workers", "", "a whole number of at least 0", f"{text!r}")
        return None
    return int(text)


def _run(
    task: Task, verb: Any, folder: Path, workers: int | None, scheduler: str | None
) -> "SweepData":
    from fluidcc.scenario.grid import Grid
    from fluidcc.sweep.chunks import sweep_in_chunks

    grid = Grid.of(task.net, task.axes)
    _set_aside(folder, task, grid, verb)
    try:
        with progress("sweep", quiet=task.quiet):
            return sweep_in_chunks(
                task.net, grid, verb, folder=folder, workers=workers, scheduler=scheduler,
                command=command_line(),
            )  # fmt: skip
    except (SweepStopped, KeyboardInterrupt) as error:
        message = f"stopped: {error}"
        if isinstance(error, KeyboardInterrupt):
            advice = f"what is finished is kept in '{folder}', and the same command goes on"
            message = f"interrupted: {advice}"
        typer.echo(message, err=True)
        if task.json:
            print_error(message)
        raise typer.Exit(SOME_FAILED) from None


def _set_aside(folder: Path, task: Task, grid: "Grid", verb: Any) -> None:
    """Rename the folder of another sweep that is finished, for a file that is written again."""
    from fluidcc.sweep.chunks import sweep_status

    try:
        state = sweep_status(folder)
    except ValueError:  # there is none, or `sweep_in_chunks` says what is wrong
        return
    if not state.missing and not state.busy and state.asks_another(task.net, grid, verb):
        free = (folder.with_name(f"{folder.name}.{k}") for k in itertools.count(1))
        kept = folder.rename(next(path for path in free if not path.exists()))
        command = shown(state.origin["command"], _LONGEST)
        typer.echo(f"kept: the chunks of the earlier sweep ({command}) are in '{kept}'", err=True)


def _deliver(task: Task, result: "SweepData", folder: Path) -> None:
    from fluidcc.result import LISTED

    data, out = result.to_xarray(), task.out
    save_files(task, result)
    count, total = int(data["failed"].sum()), data["failed"].size
    if task.json:
        counts = {"points": total, "failed": count, "file": str(out), "folder": str(folder)}
        reasons = [found._asdict() for found in result.reasons]
        left = {"further_reasons": len(reasons) - _REASONS} if len(reasons) > _REASONS else {}
        print_json({"sweep": {**counts, "reasons": reasons[:_REASONS], **left}})
    else:
        from fluidcc.results.text import MOST, console, printed

        printed(result.tables(MOST), console(), rest=f"'{out}' has them all")
        typer.echo(f"{total} points, {count} failed: {out}")
    if count:
        failed = result.failed
        for point in failed[:LISTED]:
            typer.echo(point.describe(), err=True)
        if count > LISTED:
            typer.echo(f"... and {count - LISTED} more: failed = 1 in '{out}'", err=True)
        raise typer.Exit(SOME_FAILED)


def _print_status(
    folder: Path, json: bool, faults: Faults, wanted: tuple[Task, Any] | None = None
) -> None:
    """Print how far the sweep in a folder has come, if it is the one that is wanted."""
    faults.finish()
    from fluidcc.scenario.grid import Grid
    from fluidcc.sweep.chunks import sweep_status

    state: SweepStatus = sweep_status(folder)
    if wanted is not None:
        task, verb = wanted
        state.check(task.net, Grid.of(task.net, task.axes), verb)
    if json:
        print_json({"sweep": state.to_dict()})
        return
    typer.echo(f"{state.done} of {state.total} points done, {state.failed} of them failed")
    typer.echo(f"{state.missing} missing; {state.working}")
    typer.echo(f"begun by: {shown(state.origin['command'], _LONGEST)}")
