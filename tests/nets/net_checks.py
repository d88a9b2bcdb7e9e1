"""What must hold of the answers to any network; each check yields a line for what does not."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from fuzz_cases import check
from packet_cases import conserved, finished

import fluidcc as fc
from fluidcc.analysis.cycles.result import Course
from fluidcc.analysis.linearize import at_kink
from fluidcc.check.verb import follow_mode, ticks_matter
from fluidcc.laws.law import Law
from fluidcc.laws.parameters import infos
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.scenario.tables import tables, to_toml

STATUSES = ("regular", "empty", "discontinuity", "continuum", "none")
_EPS = float(np.finfo(float).eps)
_SAME = 1e-6  # relative difference of the same network written otherwise
_SECONDS = 60.0  # of the unit of time in which a network is written again
_OFF = 0.1  # of a mode: how far from it a trajectory may come, with ticks
_STEPS = 3e5  # that a trajectory may take
_MODES = 3  # of a network
_OFTEN = 0.2  # times the round trip: the slowest mode that a tick must be short beside
_FOLDS = 6.0
_PACKETS = 3e5  # in one run
_QUEUE, _GOODPUT = 0.10, 0.05  # what no warning of the model promises

Faults = Iterator[str]


def known_numbers(eq: fc.Equilibrium) -> Faults:
    """The status is one of those known, and numbers are finite unless it says there are none."""
    if eq.status not in STATUSES:
        yield f"status {eq.status}: {eq.message}"
        return
    many = [
        v
        for link in eq.links.values()
        for v in (link.queue, link.mark_probability, link.utilization)
    ]
    senders = [x for f in eq.flows.values() for v in vars(f).values() for x in np.ravel(v)]
    if eq.status == "none":
        return
    if not all(map(math.isfinite, many)):
        yield f"status {eq.status} with links at {eq.links}"
    if eq.status != "continuum" and not np.all(np.isfinite(senders)):
        yield f"status {eq.status} with flows at {eq.flows}"


def loads_of_links(eq: fc.Equilibrium) -> Faults:
    """No link carries more than its capacity, and one with a queue carries all of it.

    Windows that grow until all but a few of the ACKs are rewritten hang on the digits that 1 - p
    has left.
    """
    if eq.status in ("none", "undetermined"):
        return
    left = [
        1 - link.mark_probability
        for link in eq.links.values()
        if 0 < 1 - link.mark_probability < 1e-6
    ]
    lost = max((4 * _EPS / share for share in left), default=0.0)
    for name, link in eq.links.items():
        if not 0 <= link.utilization <= 1 + 1e-9:
            yield f"links.{name}: utilization {link.utilization!r}"
        if link.queue < 0 or not 0 <= link.mark_probability <= 1 + 1e-9:
            yield f"links.{name}: queue {link.queue!r}, signal {link.mark_probability!r}"
        if link.queue > 0 and abs(link.utilization - 1) > 1e-9 + lost:
            yield f"links.{name}: queue {link.queue!r} at a utilization of {link.utilization!r}"


def _answer(eq: fc.Equilibrium, time: float = 1.0) -> dict[str, float]:
    """The numbers of an equilibrium by name, with `time` seconds in the unit of time."""
    out = {}
    for name, link in eq.links.items():
        for key in ("queue", "average", "mark_probability", "utilization"):
            out[f"links.{name}.{key}"] = getattr(link, key)
    for name, flows in eq.flows.items():
        for key, unit in (
            ("window", 1.0),
            ("rtt", time),
            ("rate", 1 / time),
            ("mark_probability", 1.0),
        ):
            for j, value in enumerate(np.ravel(getattr(flows, key))):
                out[f"flows.{name}.{key}[{j}]"] = float(value) / unit
    return out


def _unlike(one: fc.Equilibrium, other: fc.Equilibrium, time: float = 1.0) -> Faults:
    """Differences of two answers that should be the same."""
    if "undetermined" in (one.status, other.status):
        return  # found by `known_numbers`
    if one.status != other.status:
        yield f"status {other.status} instead of {one.status} ({other.message}; {one.message})"
        return
    if one.sliding != other.sliding and set(one.sliding) != set(other.sliding):
        yield f"sliding {other.sliding} instead of {one.sliding}"
    if one.status in ("none", "continuum") or "not unique" in one.message:
        return
    first, second = _answer(one), _answer(other, time)
    far = {
        name: (value, second[name])
        for name, value in first.items()
        if name in second and not np.isclose(value, second[name], rtol=_SAME, atol=1e-9)
    }
    for name, (value, again) in sorted(far.items(), key=lambda v: -abs(v[1][0] - v[1][1]))[:3]:
        yield f"{name}: {again!r} instead of {value!r}"


def split_and_permuted(net: fc.Network, *, split: bool = True, permuted: bool = True) -> fc.Network:
    """The same network with its first group as two of half the flows, and all in reverse order."""
    flows, names = list(net.flows), list(net.flow_names)
    if split:
        half = dataclasses.replace(flows[0], n=flows[0].n / 2)
        flows, names = [half, *flows[1:], half], [*names, "other_half"]
    links = list(range(len(net.links)))
    if permuted:
        flows, names, links = flows[::-1], names[::-1], links[::-1]
    place = {k: j for j, k in enumerate(links)}
    flows = [dataclasses.replace(f, route=tuple(place[k] for k in f.route)) for f in flows]
    return dataclasses.replace(
        net, links=tuple(net.links[k] for k in links), flows=tuple(flows),
        link_names=tuple(net.link_names[k] for k in links), flow_names=tuple(names),
    )  # fmt: skip


def order(net: fc.Network, eq: fc.Equilibrium) -> Faults:
    """The order of links and groups, and one group as two, change nothing."""
    found = list(_unlike(eq, fc.equilibrium(split_and_permuted(net))))
    if found:
        yield f"split and permuted: {'; '.join(found)}"


def _seconds(unit: str) -> int:
    """The power of the second in a unit."""
    above, _, below = unit.partition("/")
    return above.split().count("s") - below.strip("()").split().count("s")


def rescaled(thing: Any, factor: float) -> Any:
    """A network, or a part of it, with every time `factor` times as long."""
    values: dict[str, Any] = {}
    for name, info in infos(thing).items():
        value = getattr(thing, name)
        if isinstance(value, Law):
            values[name] = rescaled(value, factor)
        elif info.within is not None and value is not None and _seconds(info.unit):
            values[name] = value * factor ** _seconds(info.unit)
    if isinstance(thing, fc.Link):
        values["queue"] = rescaled(thing.queue, factor)
        values["voice"] = thing.voice and rescaled(thing.voice, factor)
    if isinstance(thing, fc.Flows):
        parts = ("window", "reaction", "feedback", "marking", "loss", "estimator", "traffic")
        values |= {name: rescaled(getattr(thing, name), factor) for name in parts}
    if isinstance(thing, fc.Network):
        values["links"] = tuple(rescaled(link, factor) for link in thing.links)
        values["flows"] = tuple(rescaled(flows, factor) for flows in thing.flows)
    return dataclasses.replace(thing, **values)


def time(net: fc.Network, eq: fc.Equilibrium) -> Faults:
    """The unit of time changes nothing."""
    slow = fc.equilibrium(rescaled(net, _SECONDS))
    for fault in _unlike(eq, slow, _SECONDS):
        yield f"{_SECONDS:g} times as slow: {fault}"


_WRITTEN = {"s": ("ms", 1e3), "B": ("kB", 1e-3), "packet/s": ("Mbit/s", 8e-6)}


def in_other_units(net: fc.Network) -> str:
    """Scenario text of a network with times in ms, sizes in kB and rates in Mbit/s."""
    known = tables(net)
    for table, link in zip(known["links"].values(), net.links, strict=True):
        for name, info in infos(fc.Link).items():
            if info.unit in _WRITTEN and name in table:
                text, factor = _WRITTEN[info.unit]
                factor *= link.packet_size if info.unit == "packet/s" else 1.0
                table[name] = f"{factor * float(table[name])!r} {text}"
    return to_toml(known)


def units(net: fc.Network, eq: fc.Equilibrium) -> Faults:
    """Text in other units is the same network."""
    for fault in _unlike(eq, fc.equilibrium(fc.loads(in_other_units(net)))):
        yield f"written in ms, kB and Mbit/s: {fault}"
    if fc.dumps(fc.loads(fc.dumps(net))) != fc.dumps(net):
        yield "the network's own text gives another text"


def no_derivatives(net: fc.Network, eq: fc.Equilibrium) -> str | None:
    """Why a smooth equilibrium has no linearisation that its own check lets pass."""
    try:
        if eq.smooth:
            fc.linearize(net, eq)
    except ValueError as refused:
        return str(refused)
    return None


def linear(net: fc.Network, eq: fc.Equilibrium) -> Faults:
    """There is a linearisation of finite numbers where the equilibrium is smooth."""
    if not eq.smooth:
        return
    sides = (-1, 1) if at_kink(eq.net, eq) else (0,)
    for side in sides:
        try:
            found = fc.linearize(net, eq, side=side)
        except ValueError as refused:
            yield f"no linearisation at a smooth equilibrium: {refused}"
            continue
        numbers = [found.A, found.B, found.C, found.D, found.lag]
        if not all(np.all(np.isfinite(v)) for v in numbers):
            yield "the linearisation has numbers that are not finite"


def count(found: fc.Stability, proven: fc.Stability) -> Faults:
    """The count of unstable roots is the one that ball arithmetic proves."""
    if found.certified and proven.proof == "ball arithmetic" and found.unstable != proven.unstable:
        yield f"{found.unstable} unstable roots, {proven.unstable} by ball arithmetic"


def has_modes(net: fc.Network, eq: fc.Equilibrium) -> bool:
    """Whether an equilibrium may have modes to follow: smooth, windows above their floor, laws that
    tick often if at all.
    """
    often = _OFTEN / min(float(np.min(flows.rtt)) for flows in net.flows)
    above = eq.smooth and min(np.min(v.window) for v in eq.flows.values()) > 1.01
    return bool(above) and not ticks_matter(net, often)


def growth(found: fc.Stability) -> Faults | None:
    """Disturbances along the modes of the rightmost roots stay on them; None if none can be tried.

    Left out are kinks at the rest, and ticks that are rare for a mode. Ticks move a network a
    little off any mode; modes farther to the right outgrow the others then.
    """
    eq: Any = found.equilibrium
    if found.linear is None or not found.certified or "kink" in found.message:
        return None
    longest = _STEPS * float(uniform_mesh(eq.net).step)
    most = 1 if any(link.queue.period() for link in eq.net.links) else _MODES
    roots = [complex(s) for s in found.roots[: found.proven] if s.imag >= 0][:most]
    fit = [s for s in roots if abs(s) * longest > 4 and not ticks_matter(eq.net, s)]
    runs = [(root, follow_mode(eq, found.linear, root)) for root in fit]
    runs = [(root, run) for root, run in runs if run.status is not fc.Status.lag_below_step]
    return _off_modes(runs) if runs else None


def _off_modes(runs: list[tuple[complex, Course]]) -> Faults:
    for root, run in runs:
        if run.status is not fc.Status.ok:
            yield f"the trajectory on the mode of {root:.4g} 1/s ended early: {run.status.advice}"
        elif not run.error < _OFF:
            yield f"a trajectory on the mode of {root:.4g} 1/s leaves it by {run.error:.2g}"


def _fits_packets(net: fc.Network) -> fc.Network | None:
    """The network with whole numbers of flows; None where packets would be too many."""
    flows = [dataclasses.replace(f, n=np.ceil(f.n)) for f in net.flows]
    if sum(float(np.sum(f.n)) * float(f.traffic.sources()) for f in flows) > 200:
        return None
    return dataclasses.replace(net, flows=tuple(flows))


def packets(net: fc.Network) -> Faults | None:
    """Packets conserve and repeat, and meet the rest where no warning stands; None for refusals."""
    whole = _fits_packets(net)
    if whole is None:
        return None
    until = min(_PACKETS / 10 / max(float(link.capacity) for link in whole.links), 600.0)
    try:
        runs = [fc.simulate_packets(whole, until=until, warmup=until / 3, seeds=(7,)) for _ in "ab"]
    except ValueError:
        return None
    return _of_packets(whole, until, runs)


def _of_packets(net: fc.Network, until: float, runs: list[Any]) -> Faults:
    for what in (lambda: check(net, runs[0]), lambda: conserved(finished(net, until))):
        try:
            what()
        except AssertionError as wrong:
            yield f"packets: {' '.join(str(wrong).split())[:300]}"
        except ValueError:  # more packets are under way than there is memory for
            return
    if runs[0].to_dict() != runs[1].to_dict():
        yield "packets: the same run again gives other numbers"


def meet(net: fc.Network, found: fc.Stability) -> Faults | None:
    """Packets meet the rest where no warning stands; None where one does, or runs are too long."""
    whole = _fits_packets(net)
    if whole is None or found.stable is not True or found.rightmost is None:
        return None
    trip = max(float(np.max(v.rtt)) for v in found.equilibrium.flows.values())
    warmup = max(20 * trip, _FOLDS / -found.rightmost.real)
    until = warmup + 100 * trip
    if until * sum(float(link.capacity) for link in whole.links) > _PACKETS or until > 3000:
        return None
    try:
        both = fc.compare(
            whole, until=until, warmup=warmup, seeds=(1, 2, 3), trajectory=False,
            levels=("mean", "population", "packets"),
        )  # fmt: skip
    except ValueError:
        return None
    if both.validity_warnings or both.equilibrium.status not in ("regular", "empty"):
        return None
    return _apart(both, until - warmup)


def _apart(both: Any, measured: float) -> Faults:
    for row in both.rows:
        kind, _, quantity = row.name.split(".")
        limit = {"queue": _QUEUE, "goodput": _GOODPUT}.get(quantity)
        if limit is None or row.mean is None or row.packets is None:
            continue
        slack = (row.ci95 or 0.0) + (1.0 if kind == "links" else 0.0)
        if abs(row.packets - row.mean) > limit * abs(row.mean) + slack:
            yield (
                f"packets: {row.name} {row.packets:.4g} +- {row.ci95 or 0:.2g} {row.unit}, at rest "
                f"{row.mean:.4g}, and nothing warns"
            )


def judged(net: fc.Network, *, certify: bool) -> tuple[fc.Stability, fc.Stability | None]:
    """Stability, and the same with a proof of the count where asked for."""
    return fc.stability(net), fc.stability(net, certify=True) if certify else None
