"""`check_law`: one law through the conformance tests of checks and the network test, and what they
found.

The network test takes equilibrium, stability, trajectory and packets of a network with the law. A
step is left out if an earlier one that it needs has no answer. The linearisation is checked by
trajectories along the mode of a characteristic root, packets by the level that is recommended.
"""

import collections
import dataclasses
import functools
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis.configuration import set_hypothesis_home_dir
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import free_states
from fluidcc.analysis.operating_point import steady_state
from fluidcc.analysis.stability import Stability, is_population, stability
from fluidcc.arrays import jnp
from fluidcc.check.arms import Arms, never_taken, watch_equilibrium, watch_packets
from fluidcc.check.checks import RULES, Answer, Subject
from fluidcc.dde.integrate import Status, integrate
from fluidcc.dde.system import System
from fluidcc.laws.law import AbstractWindowLaw, Ack, Law
from fluidcc.laws.own import laws_in
from fluidcc.laws.parameters import numeric_parameters
from fluidcc.laws.registry import LAWS, kind_of, own_laws, register, restore
from fluidcc.laws.trial import describe, line_of_error
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import Numbers, network_system, record_at_rest
from fluidcc.packets.hooks import compile_ahead
from fluidcc.packets.run import simulate_packets
from fluidcc.progress import Progress, report, reporting
from fluidcc.quantities import about, labels
from fluidcc.result import Result, plain
from fluidcc.results.blocks import quantity
from fluidcc.results.compare import Comparison, compare
from fluidcc.results.levels import RESOLVED, WITHOUT_TRAINS
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
    joined = Numbers.joined
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
    laws, windows = ([link.queue for link in net.links], [flows.window for flows in net.flows])
    trip = Ack(1.0, 0.0, max(float(np.max(flows.rtt)) for flows in net.flows))
    periods = [law.period() for law in laws] + [law.period(trip) for law in windows]
    rare = any(abs(root) * float(period or 0.0) > _RARE for period in periods)
    observes = (type(law).observe is not AbstractWindowLaw.observe for law in windows)
    counts = any(law.period(trip) and own for law, own in zip(windows, observes, strict=True))
    return rare or counts or any(law.loads for law in (*laws, *windows))


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
buffer      = "400 packet"
queue = { law = "red", min_th = 50, max_th = 250, p_max = 0.1, w_q = 0.002, gentle = true }

[flows.tcp]
n        = 10
rtt      = "80 ms"
window   = { law = "newreno" }
feedback = "mark_tail"
"""
"""The network in which a law is tried, in the place of the law of its kind. Its queue is far enough
from empty for fluctuations to be small: the population of windows predicts what packets do.
"""

_CAPACITIES = (4.0, 0.25)  # times that of the network, for arms not taken at its equilibrium
_FASTEST = 6000.0  # packet/s of such a network: packets take their time

OK, FAILED, UNDETERMINED = "ok", "failed", "undetermined"
NOT_COVERED, NOT_APPLICABLE = "not covered", "not applicable"
VERDICTS = (OK, FAILED, UNDETERMINED, NOT_COVERED, NOT_APPLICABLE)
"""What a check may find."""

_TOLERANCE = 0.1  # of a mode: greatest distance of the trajectory from it
_FOLDS = 6.0  # e-folds of the slowest root before packets are measured
_LONGEST = 60.0  # s
_WARMUP, _MEASURED = 15.0, 25.0  # s of packets
_TRIP = 0.008  # s; for shorter round trips less time passes
_SEEDS, _MORE_SEEDS = (1, 2, 3), tuple(range(1, 11))
_PASSES = 0.15  # of a prediction: largest difference of packets beyond their interval
_SMALLEST = 1.0  # packet; a shorter queue is judged as one of this length
_IDLE = 0.9  # utilization of a link below which something has to hold bulk flows back
_NO_SIGNAL = 1e-9  # probability to be marked or lost that holds nothing back


def _paths_of(kind: str) -> str:
    """Path of a law of this kind in the scenario."""
    inside = {"window": "flow.window.law", "queue": "link.queue.law",
              "reaction": "flow.window.reaction", "spreading": "link.queue.spreading"}  # fmt: skip
    return inside.get(kind, f"flow.{kind}")


def network_with(law: type[Law], kind: str) -> Network:
    """The network in which a law is tried."""
    from fluidcc.scenario.files import load, loads

    if law.tried_in:
        net = load(law.tried_in)
        change = {} if law in laws_in(net) else {_paths_of(kind): law.name}
        return replace(net, change, where=law.tried_in)
    net, changes = loads(BASE), {_paths_of(kind): law.name}
    signals = [f for name in ("reads", "emits", "carries") for f in getattr(law, name, ())]
    if {"spacing", "positive", "negative"} & {*signals}:
        pair = "xcp" if {"positive", "negative"} & {*signals} else "rcp"
        changes = {"flow.window.law": pair, "link.queue.law": pair,
                   "flow.feedback": "explicit"} | changes  # fmt: skip
    elif "load" in signals or kind == "estimator":
        changes = {"flow.window.law": "bmcc", "link.queue.law": "load_factor",
                   "flow.feedback": "load_factor"} | changes  # fmt: skip
    return replace(net, changes, where="the network of check-law")


def _of_means(check: Callable[["NetworkTest"], Answer]) -> Callable[["NetworkTest"], Answer]:
    """A check that does not apply to laws without a mean."""

    @functools.wraps(check)
    def judge(test: "NetworkTest") -> Answer:
        return (None, test.alone) if test.alone else check(test)

    return judge


class NetworkTest:
    """A law in a network, examined step by step; each step is done once."""

    def __init__(self, law: type[Law], kind: str, net: Network | None) -> None:
        self.law, self.kind, self.given = law, kind, net
        self.arms, self.without_mean = Arms(law), ""

    @functools.cached_property
    def net(self) -> Network:
        """The network."""
        return network_with(self.law, self.kind) if self.given is None else self.given

    @property
    def alone(self) -> str:
        """Why packets alone follow the law; empty if the mean does too."""
        why = getattr(self.law, "no_mean", "")
        return f"the rules have no mean, as {why}" if why else ""

    @functools.cached_property
    def equilibrium(self) -> Equilibrium:
        """Its equilibrium; that of the population if mean windows have none that is known."""
        eq = equilibrium(self.net)
        if eq.status == "undetermined":
            self.without_mean = eq.message
            whole = equilibrium(dataclasses.replace(self.net, closure="population"))
            return whole if whole.status == "regular" else eq
        return eq

    @functools.cached_property
    def roots(self) -> Stability:
        """The stability of this equilibrium."""
        return stability(dataclasses.replace(self.net, closure=self.equilibrium.net.closure))

    @functools.cached_property
    def nets(self) -> list[Network]:
        """The network, and those of other capacities at whose equilibrium the law takes arms of its
        rules that it does not take at those before.
        """
        chosen = [self.net]
        self._meet(self.net)
        fastest = max(float(link.capacity) for link in self.net.links)
        for factor in _CAPACITIES:
            if self.arms.known == self.arms.taken or factor * fastest > _FASTEST:
                continue
            before, net = len(self.arms.taken), _scaled(self.net, factor)
            self._meet(net)
            if len(self.arms.taken) > before:
                chosen.append(net)
        return chosen

    def _meet(self, net: Network) -> None:
        """Note the arms that the rules take at an equilibrium; in packets if there is none."""
        if not self.alone:
            eq = self.equilibrium if net is self.net else equilibrium(net)
            if eq.status not in ("none", "undetermined") and not is_population(eq):
                watch_equilibrium(self.arms, self.law, eq)
                return
        watch_packets(self.arms, self.law, net, _WARMUP * _share(net))

    def scenario(self) -> Answer:
        """The law comes back from the text of a scenario, with parameters changed."""
        net, laws = self.net, laws_of(self.net)
        if self.law not in laws_in(net):
            return [f"the scenario has no {self.law.name} in it"], ""
        again = build(tables(net), "its own text", laws)
        faults = [] if tables(again) == tables(net) else ["its own text gives another network"]
        numbers = numeric_parameters(self.law)
        parameters = f"parameters {', '.join(numbers) or 'none'}"
        return faults, f"{_describe(net)}; read, written and read again; {parameters}"

    @_of_means
    def settles(self) -> Answer:
        """The network has an equilibrium, with links in use or something that holds the flows."""
        eq = self.equilibrium
        link, summary = next(iter(eq.links.values())), f"equilibrium {eq.status}"
        if eq.status == "none":
            return [f"{summary}: {eq.message}"], ""
        if eq.status == "undetermined":
            return UNDETERMINED, eq.message
        if eq.status == "continuum":
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
        summary = f"{summary} packets{f' ({eq.message})' if eq.message else ''}"
        if self.without_mean:
            summary = f"{summary}, by the population; mean windows: {self.without_mean}"
        return [f"{summary}: {fault}" for fault in _unheld(eq)], summary

    @_of_means
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
        if is_population(self.equilibrium):
            return [], f"{summary}; counted by the frequency response of the population's loop"
        return [] if found.certified else [f"{summary}: the count is not certain"], summary

    @_of_means
    def course(self) -> Answer:
        """A trajectory that begins on the mode of the rightmost root stays on it."""
        if self.roots.stable is None or self.roots.rightmost is None or self.roots.linear is None:
            return None, "there are no roots to go by"
        root = self.roots.rightmost
        if root == 0:
            return None, "the rightmost root is 0"
        if is_population(self.equilibrium):
            return None, "the population has no trajectories"
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
            f"{run.error:.1e} of it after {run.times[-1]:.3g} s (tolerance {_TOLERANCE:.0%})"
        )
        return [] if run.error <= _TOLERANCE else [summary], summary

    def packets(self) -> Answer:
        """Packets do what the level that is recommended predicts, in each network; of a law without
        a mean, they use the link.
        """
        if self.alone:
            return used_by_packets(self.net)
        found = [compare_packets(net) for net in self.nets]
        faults = [line for verdict, line in found if verdict == FAILED]
        open_ = [line for verdict, line in found if verdict == UNDETERMINED]
        if faults or not open_:
            return faults, "\n".join(line for _, line in found)
        return UNDETERMINED, "\n".join(line for _, line in found)

    def covered(self) -> Answer:
        """Every arm of the choices in the rules was taken, at an equilibrium or in packets."""
        if self.kind not in ("window", "queue"):
            return None, "arms are watched in the rules of window laws and queue laws"
        for net in self.nets:
            watch_packets(self.arms, self.law, net, (_WARMUP + _MEASURED) * _share(net))
        known, missing = self.arms.known, self.arms.known - self.arms.taken
        if not known:
            return None, "the rules have no where, minimum, maximum or clip"
        summary = f"{len(known) - len(missing)} of {len(known)} arms were taken in the network test"
        if not missing:
            return [], summary
        remedy = "the checks of the rules alone tried the others (a scenario may take them):"
        return NOT_COVERED, "\n".join([f"{summary}; {remedy}", *never_taken(missing)])


def _scaled(net: Network, factor: float) -> Network:
    """The network with other capacities."""
    return replace(net, {
        f"links.{name}.capacity": f"{factor * float(link.capacity)!r} packet/s"
        for name, link in zip(net.link_names, net.links, strict=True)
    })  # fmt: skip


def _share(net: Network) -> float:
    """The share of the time that a network with short round trips takes, at most 1."""
    return min(max(float(np.max(flows.rtt)) for flows in net.flows) / _TRIP, 1.0)


def _describe(net: Network) -> str:
    """A network in a line: its links, and its groups of flows."""
    links = [
        f"{quantity(float(k.capacity) * 8 * float(k.packet_size), 'bit/s')}, buffer "
        f"{float(k.buffer):g} packets, {k.queue.name}"
        for k in net.links
    ]
    flows = [
        f"{float(np.sum(f.n)):g} flows of {f.window.name} with an RTT of "
        f"{' and '.join(f'{1e3 * v:g}' for v in np.ravel(f.rtt))} ms and queues"
        for f in net.flows
    ]
    return f"{' and '.join(flows)} over {', '.join(links)}"


def _unheld(eq: Equilibrium) -> Iterator[str]:
    """Groups of bulk flows that leave their links idle with nothing to hold them."""
    for (name, group), flows in zip(eq.flows.items(), eq.net.flows, strict=False):
        use = max(eq.links[eq.net.link_names[k]].utilization for k in flows.route)
        capped = np.max(group.window) > 0.999 * float(flows.window.max_window)
        heard = np.max(group.mark_probability) > _NO_SIGNAL or flows.window.written
        if use < _IDLE and not (capped or heard or flows.traffic.starts):
            yield (
                f"flows.{name} have data without end, yet leave a link at a utilization of "
                f"{use:.3g} (expected at least {_IDLE:g}) though no mark, loss or max_window "
                "holds them: the rules themselves hold the window there"
            )


def compare_packets(net: Network) -> tuple[str, str]:
    """The verdict on packets of a network versus what the recommended level predicts, and why.

    Packets are measured after the slowest mode has decayed, by more seeds if the intervals of a few
    are too wide to tell. If the equilibrium is unstable, a trajectory decides whether mean windows
    apply. Trains are asked if neither the population nor the mean windows do.
    """
    root, share = stability(net).rightmost, _share(net)
    longest = _LONGEST * share
    slow = longest if root is None or root.real >= 0 else _FOLDS / -root.real
    warmup = min(max(_WARMUP * share, slow), longest)
    until, unstable = warmup + _MEASURED * share, root is not None and root.real >= 0
    run = functools.partial(compare, net, until=until, warmup=warmup, trajectory=unstable)
    verdict, line = UNDETERMINED, ""
    for seeds in (_SEEDS, _MORE_SEEDS):
        measured = predicted = run(levels=WITHOUT_TRAINS, seeds=seeds)
        if measured.level == "packets":
            predicted = run(levels=("mean", "population", "trains"), seeds=seeds)
        verdict, line = _judge(measured, predicted, f"at {_rates(net)}, {len(seeds)} seeds")
        if verdict != UNDETERMINED or predicted.level == "packets":
            break
    return verdict, line


def used_by_packets(net: Network) -> Answer:
    """Packets of a network with nothing to hold them against use one of its links."""
    warmup, measured = (time * _share(net) for time in (_WARMUP, _MEASURED))
    runs = simulate_packets(net, until=warmup + measured, warmup=warmup, seeds=_SEEDS)
    links = runs.mean["links"]
    texts = [
        f"{name} is used to {100 * link['utilization']:.3g} %, with {link['queue_mean']:.4g} "
        f"packets of queue and a share of {link['drop_fraction']:.2g} lost"
        for name, link in links.items()
    ]
    summary = f"at {_rates(net)}, {len(_SEEDS)} seeds: {', '.join(texts)}"
    used = max(link["utilization"] for link in links.values()) >= _IDLE
    return [] if used else [f"no link is used: {summary}"], summary


def _judge(measured: Comparison, predicted: Comparison, where: str) -> tuple[str, str]:
    """The verdict on measured packets, and why."""
    texts, wrong, wide = [], False, []
    for row, other in zip(measured.rows, predicted.rows, strict=True):
        name, value, seen = row.name.rpartition(".")[2], other.recommended, row.packets
        if name not in ("goodput", "queue") or seen is None:
            continue
        half, text = row.ci95 or 0.0, f"{row.name} {seen:.4g} +- {row.ci95 or 0.0:.2g}"
        if value is not None:
            chance = (other.trains_ci95 or 0.0) if predicted.level == "trains" else 0.0
            size = _PASSES * max(abs(value), _SMALLEST if name == "queue" else 0.0)
            share = f" ({100 * (seen - value) / value:+.1f} %)" if value else ""
            text += f", predicted {value:.4g}{f' +- {chance:.2g}' if chance else ''}{share}"
            if name == "queue" and _unresolved(row.name, measured, predicted):
                text += ", less than a waiting packet, of which trains say nothing"
            else:
                wrong = wrong or abs(seen - value) > size + math.hypot(half, chance)
                wide += [row.name] if max(half, chance) > size else []
        if row.mean is not None and predicted.level != "mean":
            text += f", mean windows {row.mean:.4g}"
        texts.append(f"{text} {row.unit}")
    where = f"{where} (tolerance {_PASSES:.0%} of the prediction, beyond +-):"
    line = "\n".join([where, *texts])
    if predicted.level == "packets":
        return UNDETERMINED, f"{predicted.level_reason}; {line}"
    line = f"by the level {predicted.level}, {line}"
    if wrong:
        return FAILED, f"packets are not as predicted {line}"
    if wide:
        return UNDETERMINED, f"{', '.join(wide)}: intervals are too wide to tell, {line}"
    return OK, line


def _unresolved(queue: str, measured: Comparison, predicted: Comparison) -> bool:
    """Whether fewer packets wait in a queue, by trains and by packets, than trains resolve."""
    if predicted.level != "trains":
        return False
    runs, link = (measured.packets, predicted.trains), queue.split(".")[1]
    waiting = (r.mean["links"][link]["queue_mean"] for r in runs if r is not None)
    return max(waiting, default=math.inf) <= RESOLVED


def _rates(net: Network) -> str:
    return ", ".join(
        quantity(float(k.capacity) * 8 * float(k.packet_size), "bit/s") for k in net.links
    )


def _complex(root: complex) -> str:
    return f"{root.real:.4g}" if root.imag == 0 else f"{root.real:.4g} +- {abs(root.imag):.4g}i"


_NETWORK: dict[str, Callable[[NetworkTest], Answer]] = {
    "scenario": NetworkTest.scenario,
    "equilibrium": NetworkTest.settles,
    "stability": NetworkTest.stable,
    "trajectory": NetworkTest.course,
    "packets": NetworkTest.packets,
    "arms": NetworkTest.covered,
}
_DECISIVE = ("results", "branches", "scenario", "equilibrium")
"""Checks that those in a network depend on."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One check of one law: its verdict, and why; `why` has one line for each fault.

    The verdict is `ok`, `failed`, `undetermined` (evidence is missing, and `why` says which),
    `not covered` (arms of rules that the network test did not take) or `not applicable`.
    """

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
    def sound(self) -> bool:
        """Whether no check failed or is undetermined."""
        return not any(f.verdict in (FAILED, UNDETERMINED) for f in self.findings)

    @property
    def summary(self) -> str:
        """The counts of the verdicts in a line, of rare ones if there are any."""
        found = collections.Counter(f.verdict for f in self.findings)
        always = (OK, FAILED, NOT_APPLICABLE)
        counts = (f"{found[v]} {v}" for v in VERDICTS if found[v] or v in always)
        return f"{self.law}: {', '.join(counts)}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "law": self.law,
            "kind": self.kind,
            "sound": self.sound,
            "summary": self.summary,
            "checks": plain(self.findings),
        }

    def to_xarray(self) -> "xarray.Dataset":
        """The verdict of each check, and why, along the dimension `check`."""
        import xarray as xr

        columns = {k: [getattr(f, k) for f in self.findings] for k in ("verdict", "why")}
        variables = {k: ("check", np.array(v, object), about(k)) for k, v in columns.items()}
        coordinates = labels(check=[f.check for f in self.findings])
        return xr.Dataset(variables, coordinates, {"law": self.law, "kind": self.kind})


@reporting
def check_law(
    law: type[Law],
    *,
    scenario: Network | None = None,
    progress: Callable[[float], object] | None = None,
) -> LawReport:
    """Examine a law: its rules in every engine, and a network with it.

    Numbers to try rules with are drawn from the parameters' ranges, the same each time. Packets of
    the network are held against the level that `compare` recommends, within 15 % of its prediction
    and their interval; other capacities are tried for arms of the rules (`where`, `minimum`,
    `maximum`, `clip`) that the law does not take at the equilibrium.

    Parameters
    ----------
    law
        A class of a law, registered or not.
    scenario
        A network with the law in it, if its defaults do not suit the usual one: that which the
        law names as `tried_in`, else ten flows over a link of 10 Mbit/s.
    progress
        Called with the finished share before each check, whose name the share prints, and at the
        end.

    Returns
    -------
    LawReport
        One finding for each check: ok, failed, undetermined, not covered or not applicable, and
        why.

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
        return LawReport(law.name, kind, tuple(_findings(law, kind, scenario)))
    finally:
        restore(before)
        set_hypothesis_home_dir(None)


def _findings(law: type[Law], kind: str, scenario: Any) -> list[Finding]:
    subject, network = Subject(law), NetworkTest(law, kind, scenario)
    listed = [(name, check, subject) for name, check in RULES.items()]
    listed += [(name, check, network) for name, check in _NETWORK.items()]
    found: dict[str, Finding] = {}
    for done, (name, check, thing) in enumerate(listed):
        doing = f"{name}, check {done + 1} of {len(listed)}"
        report(Progress(done, 0, len(listed), doing=doing))
        bad = [n for n in _DECISIVE if n in found and found[n].verdict == FAILED]
        if thing is network and bad:
            why = "it needs a check above that failed"
            found[name] = Finding(name, NOT_APPLICABLE, why)
            continue
        found[name] = finding(name, check, thing)
    return list(found.values())


def finding(name: str, check: Callable[[Any], Answer], thing: Any) -> Finding:
    """The finding of one check; an error in a rule is a fault of the law."""
    try:
        faults, summary = check(thing)
    except Exception as error:
        where, why = line_of_error(error), describe(error)
        return Finding(name, FAILED, f"{where}: {why}" if where else why)
    if faults is None or isinstance(faults, str):
        return Finding(name, faults or NOT_APPLICABLE, summary)
    lines = [fault for fault in faults if fault]
    return Finding(name, FAILED, "\n".join(lines)) if lines else Finding(name, OK, summary)
