"""Commands on the machine: `doctor`, and `precompile`."""

import contextlib
import dataclasses
import os
import platform
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fluidcc.cli.options import FAST_CPU, JSON, begin, completed, read_scenario, takes, words
from fluidcc.cli.run import SOME_FAILED, print_json
from fluidcc.folders import ELSEWHERE, damaged, is_sound, own_folder, require_room
from fluidcc.machine import card, processors, threads
from fluidcc.scenario.parsing import Faults

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_DEFAULT = ("hollot2001/slow", "misra2003/mixed")
_UNTIL = 1.0  # [s]: compiled code does not depend on it


_CONTENTS = {
    "programs": "compiled by JAX", "warp": "compiled kernels", "results": "runs for figures",
    "faults": "reports of failures", "loops": "steps of trains",
}  # fmt: skip
_ITSELF_FROM = (0, 12)  # from this version JAX compiles loops as a whole by default


@takes(json=JSON, fast_cpu=FAST_CPU)
def doctor(json: bool, fast_cpu: bool) -> None:
    """Versions, devices, memory, caches and optional parts, and their faults."""
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing parts are listed below
        begin(fast_cpu)
    findings = examine()
    if json:
        print_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        from rich.text import Text

        from fluidcc.results.text import console, table

        out = table("", "", "what", "found", left=3)
        for topic in dict.fromkeys(finding.topic for finding in findings):
            out.add_section()
            for k, f in enumerate(f for f in findings if f.topic == topic):
                shown = Text(f.value, style="bold red" if f.good is False else "")
                out.add_row("" if k else topic, f.name, shown)
        console().print(out)
        for f in findings:
            if f.advice and f.good is None:
                console().print(f"{f.name} ({f.value}): {f.advice}")
    wrong = [finding for finding in findings if finding.good is False]
    for finding in wrong:
        typer.echo(f"{finding.name}: {finding.value}; {finding.advice}", err=True)
    if wrong:
        raise typer.Exit(SOME_FAILED)


@takes(
    scenarios=words("[SCENARIO]...", "Scenarios (default: two bundled).", autocompletion=completed),
    fast_cpu=FAST_CPU,
)
def precompile_scenario(scenarios: list[str] | None, fast_cpu: bool) -> None:
    """Compile ahead for the first commands on a scenario; the compiled code is kept."""
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
    """Call each verb once on a network; compiled code is kept.

    Yields name, time of that call [s], and the error if there was one, as each verb ends. Other
    values in the same network compile nothing more; other laws, or other numbers of links and
    groups, do.
    """
    import fluidcc as fc

    verbs = {
        "equilibrium": fc.equilibrium,
        "stability": fc.stability,
        "simulate": partial(fc.simulate, until=_UNTIL),
        "packets": partial(fc.simulate_packets, until=_UNTIL, seeds=(1,)),
        "trains": partial(fc.simulate_trains, until=_UNTIL, seeds=(1, 2)),
        "compare": partial(fc.compare, until=_UNTIL, warmup=_UNTIL / 2, seeds=(1, 2)),
    }
    for name, verb in verbs.items():
        began, message = time.perf_counter(), ""
        try:
            verb(net)
        except ValueError as error:  # a verb that does not take such a network
            message = str(error)
        yield name, time.perf_counter() - began, message


def installed(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing found: `good` is None if it is neither good nor bad."""

    topic: str
    name: str
    value: str
    good: bool | None = None
    advice: str = ""


def examine() -> list[Finding]:
    """All findings, in the order in which they are printed; this starts JAX.

    If packages are missing, only these are reported, as the other checks need them.
    """
    versions = [*_versions()]
    if any(finding.good is False for finding in versions):
        return versions
    return [*versions, *_machine(), *_devices(), *_caches(), *_extras()]


def _versions() -> Iterator[Finding]:
    yield Finding("versions", "Python", platform.python_version())
    yield Finding("versions", "fluidcc", installed("fluidcc"))
    for requirement in _wanted():
        if requirement.marker is None:
            yield _core(requirement)


def _core(requirement: "Requirement") -> Finding:
    """A package that fluidcc requires."""
    name = requirement.name
    if any(_missing(requirement)):
        return Finding("versions", name, "missing or old", False, f"pip install '{requirement}'")
    return Finding("versions", name, installed(name))


def _machine() -> Iterator[Finding]:
    from fluidcc.memory import as_text, host

    yield Finding("machine", "system", platform.platform())
    used, available = threads(), processors()
    yield Finding(
        "machine",
        "processors",
        f"{available}" if used == available else f"{available}, {used} of them used",
    )
    yield Finding("machine", "memory", as_text(host()))


def _devices() -> Iterator[Finding]:
    from fluidcc.arrays import jax  # in double precision
    from fluidcc.dde.cpu import FLAG, VARIABLE
    from fluidcc.memory import as_text, available

    devices = jax.devices()
    for device in devices:
        with jax.default_device(device):
            usable = as_text(available())
        yield Finding("devices", str(device), f"{device.device_kind}, {usable} of memory for JAX")
    if card() and devices[0].platform == "cpu":
        yield Finding(
            "devices", "graphics card", "JAX does not see it", False,
            "pip install 'fluidcc[gpu]', and unset JAX_PLATFORMS",
        )  # fmt: skip
    double = bool(jax.config.values["jax_enable_x64"])
    yield Finding("devices", "double precision", "on" if double else "off", double)
    if jax.__version_info__ >= _ITSELF_FROM:
        mode, good, advice = "whole, by JAX itself", True, ""
    elif FLAG in os.environ.get("XLA_FLAGS", ""):
        mode, good, advice = "whole (XLA_FLAGS)", True, ""
    else:
        mode, good = "in parts: slower", None
        advice = f"commands do it; in Python fc.fast_cpu() first, or {VARIABLE}=1"
    yield Finding("devices", "loops compiled", mode, good, advice)


def _caches() -> Iterator[Finding]:
    try:
        home = own_folder("programs").parent
    except OSError as error:
        yield Finding("cache", "folder", str(error.filename), False, _cure(error))
        return
    try:
        require_room(home)
    except OSError as error:
        yield Finding("cache", "folder", str(home), False, _cure(error))
    else:
        yield Finding("cache", "folder", str(home), True)
    for folder in sorted(path for path in home.iterdir() if path.is_dir()):
        yield _cache(folder)


def _cache(folder: Path) -> Finding:
    """The contents of a folder of the cache, and faults of it."""
    from fluidcc.memory import as_text

    try:
        own_folder(folder.name)
    except OSError as error:
        return Finding("cache", folder.name, str(error.filename), False, _cure(error))
    sizes, bad = {}, damaged(folder)
    sealed = folder.name in ("results", "programs", "loops")
    for file in (file for file in folder.rglob("*") if file.is_file()):
        with contextlib.suppress(FileNotFoundError):  # another process has deleted it
            if sealed and not is_sound(file, file.read_bytes()):
                bad.append(file)
            sizes[file] = file.stat().st_size
    name = _CONTENTS.get(
        folder.name, "compiled packet engine" if "numba" in folder.name else "files"
    )
    contents = f"{name}: {len(sizes)} files, {as_text(float(sum(sizes.values())))}"
    if not bad:
        return Finding("cache", folder.name, contents)
    contents += f", damaged: {len(bad)}, as '{bad[0]}'"
    advice = "they are made anew when needed; delete the folder to renew all of it"
    return Finding("cache", folder.name, contents, False, advice)


def _cure(error: OSError) -> str:
    why = str(error.strerror)
    return why if "FLUIDCC_CACHE_DIR" in why else f"{why}; {ELSEWHERE}"


def _extras() -> Iterator[Finding]:
    from importlib.metadata import metadata

    for name in sorted(metadata("fluidcc").get_all("Provides-Extra") or ()):
        wanted = [r for r in _wanted() if _belongs(r, name)]
        missing = [lacking for requirement in wanted for lacking in _missing(requirement)]
        state = f"without {', '.join(missing)}" if missing else "installed"
        advice = f"pip install 'fluidcc[{name}]'" if missing else ""
        yield Finding("extras", name, state, None if missing else True, advice)


def _wanted(package: str = "fluidcc") -> "list[Requirement]":
    """Requirements of a package, with its extras."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    return [Requirement(text) for text in requires(package) or ()]


def _belongs(requirement: "Requirement", extra: str) -> bool:
    """Whether an extra asks for it, and the package without extras does not."""
    marker = requirement.marker
    return (
        marker is not None
        and marker.evaluate({"extra": extra})
        and not marker.evaluate({"extra": ""})
    )


def _missing(requirement: "Requirement") -> Iterator[str]:
    """Names of packages of a requirement, and of its extras, that are not installed."""
    found = installed(requirement.name)
    if not found or not requirement.specifier.contains(found, prereleases=True):
        yield requirement.name
        return
    for inner in _wanted(requirement.name):
        if any(_belongs(inner, extra) for extra in requirement.extras):
            yield from _missing(inner)
