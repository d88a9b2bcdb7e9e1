"""Runs a verb at one point or over a grid, and delivers the result."""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fluidcc.cli.options import Task, command_line
from fluidcc.errors import Fault, ScenarioError
from fluidcc.progress import Progress, listening

if TYPE_CHECKING:
    from fluidcc.scenario.network import Network
    from fluidcc.sweep.result import Sweep

FAILED, WRONG_USE, SOME_FAILED, INTERRUPTED, CUT_OFF = 1, 2, 3, 130, 141
EXIT_CODES: Mapping[int, str] = {
    0: "done",
    FAILED: "fluidcc itself failed",
    WRONG_USE: "wrong use or a faulty scenario",
    SOME_FAILED: "finished, but some points have no answer",
    INTERRUPTED: "interrupted",
    CUT_OFF: "the output is no longer read",
}

_UsageError: Any = typer.BadParameter.__base__
_FORM = re.compile(r"(?:(?P<where>.*?): )?expected (?P<expected>.*), got (?P<got>.*)", re.DOTALL)


@contextmanager
def report_faults(json: bool = False) -> Iterator[None]:
    """Wrong use ends with every fault on stderr and exit code 2, never with a traceback.

    With `json` the faults are on stdout too, as one object.
    """
    try:
        yield
    except _UsageError as error:  # whose text Typer prints
        if json:
            print_error(error.format_message())
        raise
    except (MemoryError, ValueError) as error:
        faults = _faults(error)
        for fault in faults:
            typer.echo(f"error: {fault}", err=True)
        if json:
            print_error(*faults)
        raise typer.Exit(WRONG_USE) from None


def _faults(error: Exception) -> Sequence[Fault | str]:
    if isinstance(error, MemoryError):
        what = f" ({error})" if str(error) else ""
        advice = "take fewer points, flows or seeds, or a shorter run"
        return [f"there is not enough memory for this{what}: {advice}"]
    return error.faults if isinstance(error, ScenarioError) else [str(error)]


def print_error(first: Fault | str, *others: Fault | str) -> None:
    """Print faults, or texts in the form of one, as one JSON object."""
    more = {"more": [_plain(fault) for fault in others]} if others else {}
    typer.echo(dumps({"error": _plain(first), **more}, ensure_ascii=False))


def _plain(fault: Fault | str) -> dict[str, Any]:
    if isinstance(fault, Fault):
        return fault.to_dict()
    match = _FORM.fullmatch(fault)
    parts = match.groupdict("") if match else {"where": "", "expected": "", "got": ""}
    return {"message": fault, **parts, "nearest": []}


def print_json(whole: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    from fluidcc.results.export import to_json

    typer.echo(to_json(whole))


EVERY = 10.0
"""Time between the lines of progress if stderr is no terminal [s]."""


@contextmanager
def progress(doing: str, *, quiet: bool = False) -> Iterator[None]:
    """Report the progress of verbs on stderr until this ends, unless `quiet`: a bar with the time
    left, or lines if it is no terminal.
    """
    with nullcontext() if quiet else _shown(doing) as show, listening(show):
        yield


@contextmanager
def _shown(doing: str) -> Iterator[Callable[[float], None]]:
    """The function that shows a finished share until this ends."""
    if not sys.stderr.isatty():
        with _lines(doing) as lines:
            yield lines
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn())
    times = (rich.TimeElapsedColumn(), rich.TimeRemainingColumn())
    with rich.Progress(*columns, *times, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(f"{doing} (compiling first)", total=1.0)

        def show(share: float) -> None:
            words = ": ".join([doing, *_words(share)])
            bar.update(shown, completed=share, description=words)

        yield show


@contextmanager
def _lines(doing: str) -> Iterator[Callable[[float], None]]:
    """A line of progress now and then, whether the share is known or not."""
    begun, ended, shares = time.monotonic(), threading.Event(), [0.0]

    def report() -> None:
        while not ended.wait(EVERY):
            typer.echo(_line(doing, shares[0], time.monotonic() - begun), err=True)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield lambda share: shares.__setitem__(0, share)
    finally:
        ended.set()
        thread.join()


def _words(share: float) -> list[str]:
    """The words that a share brings, if any: counts, or what is being done."""
    return [repr(share)] if isinstance(share, Progress) else []


def _line(doing: str, share: float, elapsed: float) -> str:
    """What is being done, its share, and the times gone and left [s], if they are known."""
    words = _words(share)
    if not words and 0.0 < share < 1.0:
        words = [f"{share:.0%}, {elapsed * (1.0 - share) / share:.0f} s left"]
    return f"{doing}: {'; '.join([*words, f'{elapsed:.0f} s so far'])}"


def evaluate(task: Task, verb: Callable[..., Any], doing: str, grid: bool = False) -> "Sweep | Any":
    """The verb's result, or a sweep of results over the grid of ``--over``, which a verb of a
    `grid` takes itself.
    """
    with progress(doing, quiet=task.quiet):
        if task.axes and not grid:
            from fluidcc.sweep.run import sweep

            return sweep(task.net, task.axes, verb)
        return verb(task.net, task.axes) if grid else verb(task.net)


def deliver(task: Task, result: Any, *, listed: bool = False, fluid: bool = True) -> None:
    """Write, draw and print a result; exit with 3 if some points failed.

    Files come first: a reader that closes the output, such as `head`, costs none.

    Parameters
    ----------
    task
        The command line as read.
    result
        A verb's result, or a sweep of them over a grid.
    listed
        Whether the JSON is a list of points even if there is only one.
    fluid
        Whether the result is of the fluid model, so that notes on it are due.
    """
    points = result.to_dict()["points"] if task.axes else [{"set": {}, **result.to_dict()}]
    points = [{**p, "set": {**task.typed, **p["set"]}} for p in points]
    from fluidcc.result import failure

    if task.axes:
        failures = [point.describe() for point in result.failed]
    else:
        failures = [why] if (why := failure(result)) else []
    unsaved = None
    if len(failures) < len(points) or not task.axes:
        try:
            save_files(task, result)
        except (MemoryError, ValueError) as error:
            unsaved = error
    if task.json:
        whole = {"points": points} if task.axes or listed else result.to_dict()
        print_json(whole)
    else:
        from fluidcc.results.text import show

        shown = " ".join(show(result))
        failures = [_ABOVE if not task.axes and why in shown else why for why in failures]
    if task.net is not None and not task.quiet:
        advise(task.net, points, fluid=fluid)
    for line in failures:
        typer.echo(line if task.axes else f"failed: {line}", err=True)
    if unsaved is not None:
        with report_faults():  # the one JSON object is printed
            raise unsaved
    if failures:
        raise typer.Exit(SOME_FAILED)


_ABOVE = "no answer, for the reason in the output"


def advise(net: "Network", points: Sequence[Mapping[str, Any]] = (), *, fluid: bool = True) -> None:
    """Print advice on a network on stderr, unless the messages of results have it."""
    from fluidcc.model.advice import advice

    messages = [point.get("message") or "" for point in points]
    for line in advice(net, fluid=fluid):
        if not any(line in message for message in messages):
            typer.echo(f"note: {line}", err=True)


def save_files(task: Task, result: Any) -> None:
    """The files of ``--out`` and ``--plot``."""
    from fluidcc.results.export import save

    if task.out is not None:
        with written("--out", task.out):
            save(result, task.out, net=task.net, columns=task.columns, command=command_line())
    if task.plot is not None:
        with written("--plot", task.plot):
            try:
                save(result, task.plot, net=task.net)
            except (TypeError, ValueError) as error:
                expected = "a result that has a picture"
                raise ScenarioError([Fault("--plot", "", expected, str(error))]) from None


@contextmanager
def written(option: str, path: Path, kind: type[OSError] = OSError) -> Iterator[None]:
    """Turn an error of writing a file into a fault of its option."""
    try:
        yield
    except kind as error:
        reason = error.strerror or str(error)
        expected = "a file that can be written"
        raise ScenarioError([Fault(option, "", expected, f"'{path}' ({reason})")]) from None
