"""Words and options as rows, those that several commands share, and their values as read: a
scenario, changes to it, a grid, and files of results.
"""

import dataclasses
import inspect
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from fluidcc import bundled
from fluidcc.errors import Fault, ScenarioError
from fluidcc.folders import read_standard_input, writable
from fluidcc.results.export import DATA, PICTURES
from fluidcc.scenario.parsing import NUMBER, Faults, count, seconds, value_of

if TYPE_CHECKING:
    from fluidcc.scenario.network import Network


def completed(incomplete: str) -> list[str]:
    """Scenarios that a shell may complete a word to: bundled ones, TOML files, folders."""
    names = [name for name in bundled.scenarios() if name.startswith(incomplete)]
    head = incomplete[: incomplete.rfind("/") + 1]
    for path in sorted(Path(os.path.expanduser(head or ".")).glob("*")):
        name = head + path.name + "/" * path.is_dir()
        if name.startswith(incomplete) and (path.is_dir() or path.suffix == ".toml"):
            names.append(name)
    return names


_NEEDED = inspect.Parameter.empty


class Option(NamedTuple):
    """A word or an option of a command, as it is typed and shown.

    Parameters
    ----------
    help
        Its line of help.
    type, default
        Type of its value, and the value if it is not given; a word without a default is
        required.
    names
        The option on the command line, by default ``--name``; None for a word.
    more
        Further arguments for Typer, such as the `metavar`.
    """

    help: str
    type: Any
    default: Any
    names: str | None = ""
    more: Mapping[str, Any] = MappingProxyType({})

    def parameter(self, name: str) -> inspect.Parameter:
        """The parameter of the command."""
        if self.names is None:
            shown: Any = typer.Argument(help=self.help, **self.more)
        else:
            typed = self.names or f"--{name.replace('_', '-')}"
            shown = typer.Option(typed, help=self.help, **self.more)
        return inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=self.default,
            annotation=Annotated[self.type, shown],
        )  # fmt: skip


def word(
    metavar: str | None, help: str, type: Any = str, default: Any = _NEEDED, **more: Any
) -> Option:
    """A word, or words; required if there is no default."""
    more |= {} if metavar is None else {"metavar": metavar}
    return Option(help, type, default, None, more)


def words(metavar: str, help: str, **more: Any) -> Option:
    """Any number of words."""
    return word(metavar, help, list[str] | None, None, **more)


def text(metavar: str, help: str, default: str | None = None, **more: Any) -> Option:
    """An option with a value."""
    kind = str | None if default is None else str
    return Option(help, kind, default, "", {"metavar": metavar, **more})


def several(metavar: str, help: str, names: str = "") -> Option:
    """An option that may be repeated."""
    return Option(help, list[str] | None, None, names, {"metavar": metavar})


def flag(help: str, names: str = "", *, default: bool = False) -> Option:
    """Yes or no."""
    return Option(help, bool, default, names)


def file(help: str, default: Path | None = None) -> Option:
    """The name of a file or a folder."""
    return Option(help, Path | None if default is None else Path, default)


def takes(**options: Option) -> Callable[[Callable[..., None]], Any]:
    """Declare the words and options of a command by the names of its function's parameters."""

    def declare(function: Any) -> Any:
        parameters = [option.parameter(name) for name, option in options.items()]
        function.__signature__ = inspect.Signature(parameters)
        return function

    return declare


ONE_SCENARIO = "Bundled scenario (fluidcc list), a TOML file, or - for standard input."
SCENARIO = word(None, ONE_SCENARIO, autocompletion=completed)
CHANGES = several("PATH=VALUE", "Change a parameter. Repeatable.", "--set")
OVER = several("PATH=A:B:STEP|v1,v2", "Sweep a parameter. Repeat for a grid.", "--over")
JSON = flag("Print one JSON object.")
OUT = file("Write the result: .nc, .csv, .json, or its tables as .tex.")
COLUMNS = text("a,b,c", "Columns of the tables of --out FILE.tex, by heading without unit.")
PLOT = file("Draw the result: .png, .pdf or .svg.")
UNTIL = text("TIME", "End of the run [s].", "60")
WARMUP = text("TIME", "Statistics start here [s]. [default: --until / 3]", "")
SEEDS = text("K|a,b", "Packet runs: seeds 1 to K, or those listed (7, is seed 7 alone).", "5")
QUIET = flag("No progress and no notes on stderr.")
FAST_CPU = flag("Compile integration loops as a whole.", "--fast-cpu/--no-fast-cpu", default=True)


_MOST, _MOST_CHUNKED = 100_000, 10_000_000  # points of a grid


@dataclasses.dataclass(frozen=True)
class Task:
    """A command line once it is read.

    `net` has the changes of ``--set``, which `typed` keeps, and `axes` is the grid of ``--over``;
    `net` is None if there are faults, which end the command, or if it needs none. `chunked`
    is for `sweep`: points go to chunks in a folder, and may be done by other processes. `quiet`
    runs do not report their progress.
    """

    net: Any
    typed: Mapping[str, Any]
    axes: Mapping[str, list[Any]]
    json: bool
    out: Path | None
    plot: Path | None
    columns: Sequence[str] | None = None
    chunked: bool = False
    quiet: bool = False


def prepare(
    faults: Faults,
    scenario: str | None,
    changes: Sequence[str] | None,
    over: Sequence[str] | None,
    json: bool,
    out: Path | None = None,
    columns: str | None = None,
    plot: Path | None = None,
    fast_cpu: bool = False,
    chunked: bool = False,
    quiet: bool = False,
) -> Task:
    """Read the options that most commands share; faults go to `faults`.

    Without a scenario there is no network, and nothing to change.
    """
    begin(fast_cpu)
    typed = {path: value_of(text) for path, text in _split("--set", changes or (), faults).items()}
    from fluidcc.scenario.paths import replace

    loaded = None if scenario is None else faults.catch(read_scenario, scenario)
    if scenario is None and typed:
        faults.add("--set", "", "a scenario to change", "none")
    net = loaded
    if loaded is not None and typed:
        net = faults.catch(replace, loaded, typed, where="--set")
    if net is not None:
        from fluidcc.model.advice import milliseconds

        for line in milliseconds(net):
            typer.echo(f"note: {line}", err=True)
    axes = _grid(over or (), net or loaded, faults, _MOST_CHUNKED if chunked else _MOST)
    for path in axes:
        _check_kept(net or loaded, {"--set": typed}, path, "--over", faults)
    for option, path, endings in (("--out", out, DATA), ("--plot", plot, PICTURES)):
        if path is not None:
            check_file(option, path, endings, faults)
    if columns is not None and (out is None or out.suffix != ".tex"):
        faults.add("--columns", "", "--out FILE.tex", "none" if out is None else f"--out {out}")
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    return Task(net, typed, axes, json, out, plot, names, chunked, quiet)


def check_columns(
    task: Task, faults: Faults, result: Any, along: Sequence[str] = (), *, chunked: bool = False
) -> None:
    """Note columns that a result of the network cannot have, before anything runs.

    `result` is its class, and `along` are the parameters in the words of the verb; `chunked` is a
    sweep to a data set.
    """
    from fluidcc.results.tex import check_columns

    view, over = result.view_class(), list(task.axes)
    if chunked and not view.in_lines:
        from fluidcc.results.views.grids import SweepDataView

        known = SweepDataView.columns(task.net, [*over, *along], view.engines)
    elif over and result.__name__ != "StabilityMap":
        known = [*over, *["status"] * (not view.in_lines), *view.quantities(task.net, along)]
    else:
        known = view.columns(task.net, [*over, *along])
    faults.catch(check_columns, task.columns, known, "--columns")


def read_scenario(name: str) -> "Network":
    """The network of a scenario as typed: a bundled one, a file, or standard input as ``-``."""
    from fluidcc.scenario.files import load, loads

    if name != "-":
        return load(name)
    return loads(read_standard_input("a scenario (TOML, UTF-8 text)"), where="standard input")


def _check_kept(
    net: Any, given: Mapping[str, Iterable[str]], path: str, where: str, faults: Faults
) -> None:
    """Note values that options give to a path that is varied too, or inside: they would be lost."""
    from fluidcc.scenario.paths import full_path

    for option, paths in given.items():
        for changed in paths:
            if f"{full_path(net, changed)}.".startswith(f"{full_path(net, path)}."):
                expected = f"a path that {option} leaves alone"
                faults.add(where, path, expected, f"{changed!r} in {option}")


def begin(fast_cpu: bool) -> None:
    """Prepare JAX for a command, before it is imported."""
    if fast_cpu:
        from fluidcc.dde.cpu import fast_cpu as switch_on

        switch_on()


def _split(
    option: str, texts: Iterable[str], faults: Faults, form: str = "PATH=VALUE"
) -> dict[str, str]:
    """``PATH=TEXT`` options as a dictionary; `form` is how they are written, for messages."""
    out: dict[str, str] = {}
    for text in texts:
        path, _, value = (part.strip() for part in text.partition("="))
        if not path or not value:
            faults.add(option, "", form, f"{text!r}", respelt([text], listed="," in form))
        elif path in out:
            faults.add(option, path, "each path once", f"{text!r}")
        else:
            out[path] = value
    return out


_PATH = re.compile(r"[A-Za-z]\w*(?:\.\w+)+")
_BETWEEN = re.compile(r"\s*(?:\.\.+|[,;:]|(?<=[\d.])-|\bto\b|\s)\s*")


def _numbers(text: str) -> list[str]:
    """The numbers of a list or a range, whatever is between them; none if there is another word."""
    parts = _BETWEEN.split(text.replace("range(", "").strip(" []()"))
    return parts if all(map(NUMBER.fullmatch, parts)) else []


def respelt(words: Iterable[str], *, listed: bool = False) -> tuple[str, ...]:
    """Paths with the ends of their ranges as they are to be typed, from words with other marks
    between these; values that are `listed` stay a list. Empty if there are no numbers.
    """
    text, found = " ".join(words), []
    for path, rest in zip(_PATH.findall(text), _PATH.split(text)[1:], strict=True):
        numbers, ends = _numbers(rest.lstrip("=: ")), re.search(r"range|\d(?:\.\.|:|-)\d", rest)
        if len(numbers) < 2:
            return ()
        shown = ",".join(numbers) if listed and not ends else ":".join(numbers[: 2 + listed])
        found.append(f"{path}={shown}{':STEP' if listed and ends and numbers[2:] == [] else ''}")
    return (" ".join(found),) if found else ()


def _grid(
    over: Sequence[str], net: "Network | None", faults: Faults, most: int
) -> dict[str, list[Any]]:
    """The axes of ``--over``: path to values."""
    texts = _split("--over", over, faults, "PATH=A:B:STEP or PATH=v1,v2,...")
    if net is None:
        return {}
    axes = {path: faults.catch(_axis, net, path, text, most) or [] for path, text in texts.items()}
    points = math.prod(map(len, axes.values()))
    if points > most:
        expected = f"a grid of at most {most} points"
        if most == _MOST:
            expected += ", or `fluidcc sweep` for more"
        faults.add("--over", "", expected, f"{points} points")
    return axes


def _axis(net: "Network", path: str, text: str, most: int) -> list[Any]:
    """The values of ``A:B:STEP`` (both ends included) or ``v1,v2,...``."""
    from fluidcc.scenario.paths import check_paths, value_at

    close = respelt([f"{path}={text}"], listed=True)

    def fault(expected: str, close: tuple[str, ...] = ()) -> ScenarioError:
        return ScenarioError([Fault("--over", path, expected, f"{text!r}", close)])

    check_paths(net, [path], where="--over")
    separator = ":" if ":" in text else ","
    typed = [part.strip() for part in text.split(separator) if part.strip()]
    if close and _numbers(text) != typed:
        raise fault("A:B:STEP or v1,v2,...", close)
    if separator == ":" and len(typed) > 3:  # such as 1e-6:1e-3:13:log
        raise fault("A:B:STEP, or v1,v2,... for values at other distances")
    parts = [value_of(part) for part in typed]
    values = [value_at(net, path, part, where="--over") for part in parts]
    if separator == "," and values:
        _judge(net, path, values)
        return values
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if len(values) != 3 or not numbers:
        raise fault("A:B:STEP or v1,v2,...", close)
    low, high, step = values
    if not (0 < step < math.inf and -math.inf < low <= high < math.inf):
        raise fault("A <= B and STEP > 0")
    _judge(net, path, [low, high])
    first, last, gap = (Fraction(str(v)) for v in values)  # exact, so that no end is lost
    count = int((last - first) / gap) + 1
    if count > most:
        raise fault(f"at most {most} points")
    steps = [first + k * gap for k in range(count)]
    return [int(v) if v.denominator == 1 else float(v) for v in steps]


def _judge(net: "Network", path: str, values: Sequence[Any]) -> None:
    """Raise ScenarioError with every value that the parameter cannot take by itself."""
    from fluidcc.scenario.paths import info_at
    from fluidcc.scenario.reader import Reader

    info = info_at(net, path)
    reader = Reader("--over")
    if info is not None and (info.within is not None or info.choices):
        for value in values:
            if not isinstance(value, list | dict):  # a list is for a group, judged at its point
                reader.described(value, path, info, None)
    reader.finish()


def interval(
    text: str, task: Task, faults: Faults, where: str = "crossings"
) -> tuple[str, float, float]:
    """The path and the ends of ``PATH=LO:HI``."""
    path, _, ends = (part.strip() for part in text.partition("="))
    if ends.count(":") != 1 or not path:
        faults.add(where, "", "PATH=LO:HI", f"{text!r}", respelt([text]))
    elif task.net is not None:
        low, high = faults.catch(_ends, task.net, path, ends, where) or (0.0, 1.0)
        if where != "--vary":  # of `optimize`, whose search begins at the set values
            given = {"--set": task.typed, "--over": task.axes}
            _check_kept(task.net, given, path, where, faults)
        if low < high:
            return path, low, high
        faults.add(where, path, "LO < HI", f"{ends!r}")
    return path, 0.0, 1.0


def _ends(net: "Network", path: str, ends: str, where: str) -> tuple[float, ...]:
    from fluidcc.scenario.paths import check_paths, number_at, value_at

    check_paths(net, [path], where=where)
    number_at(net, path)
    values = [value_at(net, path, value_of(v), where=where) for v in ends.split(":")]
    if not all(isinstance(v, int | float) for v in values):
        raise ScenarioError([Fault(where, path, "two numbers, LO:HI", f"{ends!r}")])
    return tuple(float(v) for v in values)


def times(until: str, warmup: str, seeds: str, faults: Faults) -> dict[str, Any]:
    """End, start of the statistics (a third of it by default), and seeds."""
    end = end_of(until, faults)
    begin = seconds("--warmup", warmup, faults, within="[0, inf)") if warmup else end / 3
    if 0 < end <= begin:
        faults.add("--warmup", "", f"a time before --until ({end:g} s)", f"{warmup!r}")
    return {"until": end, "warmup": begin, "seeds": _seeds(seeds, faults)}


def _seeds(typed: str, faults: Faults) -> Sequence[int]:
    """Seeds 1 to K, or those that are listed with commas."""
    if ends := re.fullmatch(r"\s*(\d{1,4})\s*(?::|-|\.\.)\s*(\d{1,4})\s*", typed):
        low, high = map(int, ends.groups())
        listed = ",".join(map(str, range(low, high + 1)))
        close = (str(high) if low == 1 else listed,) if low <= high < low + 20 else ()
        faults.add("--seeds", "", "K, or different whole numbers such as 7,9", f"{typed!r}", close)
        return range(1)
    if "," not in typed:
        return range(1, count("--seeds", typed, faults) + 1)
    listed = [word.strip() for word in typed.removesuffix(",").split(",")]
    if not all(map(str.isdecimal, listed)) or len(set(map(int, listed))) < len(listed):
        faults.add("--seeds", "", "K, or different whole numbers such as 7,9", f"{typed!r}")
        return range(1)
    return [int(word) for word in listed]


def end_of(until: str, faults: Faults) -> float:
    """The end of a run [s], as typed."""
    from fluidcc.scenario.network import LONGEST

    return seconds("--until", until, faults, within=f"(0, {LONGEST:g}]")


def check_file(option: str, path: Path, endings: Sequence[str], faults: Faults) -> None:
    """Note an ending that is not among those known, and a file that cannot be written."""
    if path.suffix not in endings:
        faults.add(option, "", f"a file that ends in {', '.join(endings)}", f"'{path}'")
    if not path.parent.is_dir():
        faults.add(option, "", "a file in a folder that exists", f"'{path}'")
    elif path.is_dir():
        faults.add(option, "", "a file", f"the folder '{path}'")
    elif not (os.access(path, os.W_OK) if path.exists() else writable(path.parent)):
        faults.add(option, "", "a file that can be written", f"'{path}'")


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["fluidcc", *sys.argv[1:]])
