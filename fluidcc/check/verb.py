"""`check_law`: one law through the conformance tests of checks and the network test, and what they
found.

The network test takes equilibrium, stability, trajectory and packets of a network with the law. A
step is left out if an earlier one that it needs has no answer. The linearisation is checked by
trajectories along the mode of a characteristic root.
"""

import dataclasses
import functools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis.configuration import set_hypothesis_home_dir
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import free_states
from fluidcc.analysis.operating_point import steady_state
from fluidcc.analysis.stability import Stability, stability
from fluidcc.arrays import jnp
from fluidcc.check.assertions import describe, line_of_error
from fluidcc.check.checks import RULES, Answer, Subject
from fluidcc.dde.integrate import Status, integrate
from fluidcc.dde.system import System
from fluidcc.laws.law import Law
from fluidcc.laws.own import laws_in
from fluidcc.laws.parameters import numeric_parameters
from fluidcc.laws.registry import LAWS, kind_of, own_laws, register, restore
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import Numbers, network_system, record_at_rest
from fluidcc.packets.hooks import compile_ahead
from fluidcc.result import Result, plain
from fluidcc.results.compare import Comparison, compare
from fluidcc.results.levels import WITHOUT_TRAINS
from fluidcc.scenario.build import build
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import replace
from fluidcc.scenario.tables import laws_of, tables

if TYPE_CHECKING:
    import xarray

_BESIDE = 1e-4  # of the equilibrium: largest distance from it
_TURN = 4.0  # times 1 / |s|: length of the trajectory
_TIMES = 201
_ROUNDING = 1e-12  # of the largest part of a mode
_RARE = 0.05  # periods of a queue law times |s|


class Course(NamedTuple):
    """A network along a mode: the distance from the equilibrium at times (t,) [s], relative to
    it, shape (t, n), and that of the mode alone; the status of the trajectory.
    """

    times: Array
    away: Array
    mode: Array
    status: Status

    @property
    def error(self) -> float:
        """The largest difference from the mode, relative to the mode's size at that time."""
        size = np.linalg.norm(np.abs(self.mode), axis=1)
        return float(np.max(np.linalg.norm(self.away - np.real(self.mode), axis=1) / size))


class _Along(NamedTuple):
    """A network's numbers, and the mode in its record."""

    own: Any
    mode: Any
    root: Any
    net = Numbers.net
    mean = Numbers.mean


def _history(times: Any, columns: Any, args: _Along) -> Any:
    ahead = jnp.exp(args.root * times.astype(args.root.dtype))
    return args.own.before[columns] + jnp.real(args.mode[columns] * ahead)


@functools.lru_cache(maxsize=64)
def _with_mode(system: System) -> System:
    changed = dataclasses.replace(system, history=_history)
    return changed.identify((_history, system.structure))


def ticks_matter(net: Network, root: complex) -> bool:
    """Whether a law counts between ticks, or ticks more rarely than every 0.05 / abs(root): the
    linearisation has ticks as change per period.
    """
    laws = [link.queue for link in net.links]
    rare = any(law.period and abs(root) * float(getattr(law, law.period)) > _RARE for law in laws)
    return rare or any(law.loads for law in (*laws, *(flows.window for flows in net.flows)))


def follow_mode(eq: Equilibrium, linear: Linear, root: complex) -> Course:
    """Follow a trajectory that has been on the mode of a root for ever, for 4 / abs(root).

    If s is a root of the linearisation, its characteristic matrix has a null vector v, and
    equilibrium + Re(v e^(s t)) is a solution to first order, for states and outputs alike.
    """
    net, end = eq.net, _TURN / abs(root)
    system, start, numbers = network_system(net, until=end)
    op = steady_state(numbers.net, eq.op)
    before = record_at_rest(numbers.net, op)
    flat, unflatten = ravel_pytree(op)
    at = np.concatenate([flat, before])
    scale = np.where(at == 0, 1.0, np.abs(at))

    vector = np.linalg.svd(linear.matrix(root))[2][-1].conj()
    states = np.zeros(flat.size, complex)
    states[free_states(net, eq)] = vector[: len(linear.A)]
    outputs = vector[len(linear.A) :]
    if net.delay == "fifo":
        places = unflatten(jnp.arange(flat.size, dtype=flat.dtype)).queues
        outputs = np.concatenate([outputs, states[np.asarray(places, int)]])

    mode = np.concatenate([states, outputs])
    sizes = np.abs(mode) / scale
    mode[sizes <= _ROUNDING * np.max(sizes)] = 0  # and stays there: laws may be steep at 0
    most = np.exp(max(-root.real * float(np.max(linear.lag, initial=0.0)), root.real * end))
    states, outputs = np.split(mode * _BESIDE / (np.max(sizes) * most), [flat.size])

    times = np.linspace(0.0, end, _TIMES)
    args = _Along(
        numbers.own._replace(before=before), jnp.asarray(outputs), jnp.asarray(complex(root))
    )
    beside = jnp.concatenate([flat + np.real(states), start[flat.size :]])  # and clocks
    run = integrate(_with_mode(system), beside, 0.0, end, args, mesh=uniform_mesh(net), ts=times)
    away = np.asarray(run.y)[:, : flat.size] - np.asarray(flat)
    course = states * np.exp(root * times)[:, None]
    scale = scale[: flat.size]
    return Course(times, away / scale, course / scale, Status(int(run.status)))


BASE = """
title = "ten flows over one link"

[links.bottleneck]
capacity    = "10 Mbit/s"
packet_size = "1000 B"
delay       = "5 ms"
buffer      = "2000 packet"
queue = { law = "red", min_th = 5, max_th = 205, p_max = 0.1, w_q = 0.002, gentle = true }

[flows.tcp]
n        = 10
rtt      = "80 ms"
window   = { law = "newreno" }
feedback = "mark_tail"
"""
"""The network in which a law is tried, in the place of the law of its kind."""

_TOLERANCE = 0.1  # of a mode: greatest distance of the trajectory from it
_FOLDS = 6.0  # e-folds of the slowest root before packets are measured
_LONGEST = 60.0  # s
_WARMUP, _MEASURED = 15.0, 25.0  # s of packets
_SEEDS = (1, 2, 3)
_GOODPUT, _QUEUE = 0.1, 1.0  # relative differences of packets from the equilibrium that pass


def _paths_of(kind: str) -> str:
    """Path of a law of this kind in the scenario."""
    inside = {"window": "flow.window.law", "queue": "link.queue.law",
              "reaction": "flow.window.reaction", "spreading": "link.queue.spreading"}  # fmt: skip
    return inside.get(kind, f"flow.{kind}")


def network_with(law: type[Law], kind: str) -> Network:
    """The network in which a law is tried."""
    from fluidcc.scenario.files import loads

    net, changes = loads(BASE), {_paths_of(kind): law.name}
    signals = [f for name in ("reads", "emits", "carries") for f in getattr(law, name, ())]
    if "load" in signals or kind == "estimator":
        changes = {"flow.window.law": "bmcc", "link.queue.law": "load_factor",
                   "flow.feedback": "load_factor"} | changes  # fmt: skip
    return replace(net, changes, where="the network of check-law")


class NetworkTest:
    """A law in a network, examined step by step; each step is done once."""

    def __init__(self, law: type[Law], kind: str, net: Network | None) -> None:
        self.law, self.kind, self.given = law, kind, net

    @functools.cached_property
    def net(self) -> Network:
        """The network."""
        return network_with(self.law, self.kind) if self.given is None else self.given

    @functools.cached_property
    def equilibrium(self) -> Equilibrium:
        """Its equilibrium."""
        return equilibrium(self.net)

    @functools.cached_property
    def roots(self) -> Stability:
        """Its stability."""
        return stability(self.net)

    @functools.cached_property
    def comparison(self) -> Comparison:
        """Packets versus the equilibrium, after the slowest mode has decayed."""
        root = self.roots.rightmost
        slow = 0.0 if root is None or root.real >= 0 else _FOLDS / -root.real
        warmup = min(max(_WARMUP, slow), _LONGEST)
        return compare(
            self.net, until=warmup + _MEASURED, warmup=warmup, seeds=_SEEDS, trajectory=False,
            levels=WITHOUT_TRAINS,
        )  # fmt: skip

    def scenario(self) -> Answer:
        """The law comes back from the text of a scenario, with parameters changed."""
        net, laws = self.net, laws_of(self.net)
        if self.law not in laws_in(net):
            return [f"the scenario has no {self.law.name} in it"], ""
        again = build(tables(net), "its own text", laws)
        faults = [] if tables(again) == tables(net) else ["its own text gives another network"]
        numbers = numeric_parameters(self.law)
        return faults, f"read, written and read again; parameters {', '.join(numbers) or 'none'}"

    def settles(self) -> Answer:
        """The network has an equilibrium."""
        eq = self.equilibrium
        link, summary = next(iter(eq.links.values())), f"equilibrium {eq.status}"
        if eq.status == "none":
            return [f"{summary}: {eq.message}"], ""
        if eq.status in ("continuum", "undetermined"):
            return None, eq.message
        flows = next(iter(eq.flows.values()))
        window = float(np.mean(np.asarray(flows.window)))
        numbers = (float(link.queue), float(link.utilization), window)
        if not all(map(math.isfinite, numbers)):
            return [f"{summary}, but its numbers are not finite: {numbers}"], ""
        queue, use, window = numbers
        summary = (
            f"{summary}: queue {queue:.4g} packets, utilization {use:.3g}, window {window:.4g}"
        )
        return [], f"{summary} packets{f' ({eq.message})' if eq.message else ''}"

    def stable(self) -> Answer:
        """The count of unstable roots is certain."""
        found = self.roots
        if found.stable is None:
            return None, f"undetermined: {found.message}"
        root = found.rightmost
        if root is None:
            return [f"no root is known: {found.message}"], ""
        verdict = "stable" if found.stable else f"unstable, {found.unstable} roots to the right"
        summary = f"{verdict}; rightmost root {_complex(root)} 1/s"
        return [] if found.certified else [f"{summary}: the count is not certain"], summary

    def course(self) -> Answer:
        """A trajectory that begins on the mode of the rightmost root stays on it."""
        if self.roots.stable is None or self.roots.rightmost is None or self.roots.linear is None:
            return None, "there are no roots to go by"
        root = self.roots.rightmost
        if root == 0:
            return None, "the rightmost root is 0"
        if ticks_matter(self.net, root):
            return (
                None,
                "ticks are rare at the rate of the rightmost root, or laws count between them",
            )
        run = follow_mode(self.equilibrium, self.roots.linear, root)
        if run.status is not Status.ok:
            return None, f"the trajectory ended early: {run.status.advice}"
        summary = (
            f"a trajectory that begins on the mode of {_complex(root)} 1/s is off by "
            f"{run.error:.1e} of it after {run.times[-1]:.3g} s"
        )
        return [] if run.error <= _TOLERANCE else [summary], summary

    def packets(self) -> Answer:
        """Packets come near the equilibrium, if the model has no validity warning."""
        rows = {row.name.rpartition(".")[2]: row for row in self.comparison.rows}
        summary, faults = [], []
        for name, limit in (("goodput", _GOODPUT), ("queue", _QUEUE)):
            row = rows[name]
            if row.equilibrium is None or row.packets is None:
                continue
            half = row.ci95 or 0.0
            text = f"{name} {row.packets:.4g} +- {half:.2g}, at equilibrium {row.equilibrium:.4g}"
            summary.append(f"{text} {row.unit}")
            size = max(abs(row.packets), abs(row.equilibrium))
            if abs(row.packets - row.equilibrium) > limit / (1 + limit) * size + half:
                faults.append(f"packets are far from the equilibrium: {summary[-1]}")
        line = "; ".join(summary)
        reasons = list(self.comparison.validity_warnings)
        if self.roots.stable is not True:
            reasons.append("the equilibrium is not stable")
        if faults and reasons:
            return None, f"{line}; they may differ, as {'; '.join(reasons)}"
        return faults, line


def _complex(root: complex) -> str:
    return f"{root.real:.4g}" if root.imag == 0 else f"{root.real:.4g} +- {abs(root.imag):.4g}i"


OK, FAILED, NOT_APPLICABLE = "ok", "failed", "not applicable"


_NETWORK: dict[str, Callable[[NetworkTest], Answer]] = {
    "scenario": NetworkTest.scenario,
    "equilibrium": NetworkTest.settles,
    "stability": NetworkTest.stable,
    "trajectory": NetworkTest.course,
    "packets": NetworkTest.packets,
}
_DECISIVE = ("results", "branches", "scenario", "equilibrium")
"""Checks that those in a network depend on."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One check of one law: its verdict, and why; `why` has one line for each fault."""

    check: str
    verdict: str
    why: str = ""


@dataclasses.dataclass(frozen=True, repr=False)
class LawReport(Result):
    """Every check of one law, in the order in which they were made.

    `law` and `kind` name it, `findings` has the checks.

    Examples
    --------
    >>> from fluidcc.check.verb import Finding, LawReport
    >>> LawReport("reno", "window", (Finding("units", "ok"),)).summary
    'reno: 1 ok, 0 failed, 0 not applicable'
    """

    _view = "verdicts.LawView"

    law: str
    kind: str
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(f for f in self.findings if f.verdict == FAILED)

    @property
    def summary(self) -> str:
        """The counts of the verdicts in a line."""
        count = len([f for f in self.findings if f.verdict == OK])
        none = len(self.findings) - count - len(self.failed)
        return f"{self.law}: {count} ok, {len(self.failed)} failed, {none} not applicable"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "law": self.law,
            "kind": self.kind,
            "sound": not self.failed,
            "summary": self.summary,
            "checks": plain(self.findings),
        }

    def to_xarray(self) -> "xarray.Dataset":
        """The verdict of each check, and why, along the dimension `check`."""
        import xarray as xr

        columns = {k: [getattr(f, k) for f in self.findings] for k in ("verdict", "why")}
        variables = {k: ("check", np.array(values, object)) for k, values in columns.items()}
        coordinates = {"check": [f.check for f in self.findings]}
        return xr.Dataset(variables, coordinates, {"law": self.law, "kind": self.kind})


def check_law(
    law: type[Law],
    *,
    scenario: Network | None = None,
    progress: Callable[[float], None] | None = None,
) -> LawReport:
    """Examine a law: its rules in every engine, and a network with it.

    Numbers to try rules with are drawn from the parameters' ranges, the same each time.

    Parameters
    ----------
    law
        A class of a law, registered or not.
    scenario
        A network with the law in it, if its defaults do not suit the usual one: ten flows over
        a link of 10 Mbit/s.
    progress
        Called with the finished share after each check.

    Returns
    -------
    LawReport
        One finding for each check: ok, failed or not applicable, and why.

    Raises
    ------
    ScenarioError
        If the class is no law that can be added; see `register`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.laws.window.reno import Reno
    >>> report = fc.check_law(Reno)
    >>> report.failed, report.to_dict()["sound"]
    ((), True)
    """
    before = own_laws()
    set_hypothesis_home_dir(Path(tempfile.gettempdir(), "fluidcc-hypothesis"))
    try:
        if not any(law in laws.values() for laws in LAWS.values()):
            register(law)
        kind = kind_of(law)
        compile_ahead()
        return LawReport(law.name, kind, tuple(_findings(law, kind, scenario, progress)))
    finally:
        restore(before)
        set_hypothesis_home_dir(None)


def _findings(law: type[Law], kind: str, scenario: Any, progress: Any) -> list[Finding]:
    subject, network = Subject(law), NetworkTest(law, kind, scenario)
    listed = [(name, check, subject) for name, check in RULES.items()]
    listed += [(name, check, network) for name, check in _NETWORK.items()]
    found: dict[str, Finding] = {}
    for name, check, thing in listed:
        bad = [n for n in _DECISIVE if n in found and found[n].verdict == FAILED]
        if thing is network and bad:
            why = "it needs a check above that failed"
            found[name] = Finding(name, NOT_APPLICABLE, why)
            continue
        found[name] = finding(name, check, thing)
        if progress is not None:
            progress(len(found) / len(listed))
    return list(found.values())


def finding(name: str, check: Callable[[Any], Answer], thing: Any) -> Finding:
    """The finding of one check; an error in a rule is a fault of the law."""
    try:
        faults, summary = check(thing)
    except Exception as error:
        where, why = line_of_error(error), describe(error)
        return Finding(name, FAILED, f"{where}: {why}" if where else why)
    if faults is None:
        return Finding(name, NOT_APPLICABLE, summary)
    lines = [fault for fault in faults if fault]
    return Finding(name, FAILED, "\n".join(lines)) if lines else Finding(name, OK, summary)
