"""A law in a network: where it rests, whether that is stable, and what flows and packets do there.

What each step finds is told; steps that need an earlier one are left out where that has no answer.
"""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.rest import state_at_rest
from fluidcc.analysis.stability import Stability, stability
from fluidcc.battery.checks import Answer
from fluidcc.compare import Comparison, compare
from fluidcc.fluid.integrate import integrate
from fluidcc.fluid.layout import initial_wire
from fluidcc.fluid.network_mesh import uniform_mesh
from fluidcc.fluid.network_system import Numbers, network_system
from fluidcc.fluid.status import Status
from fluidcc.laws.law import Law
from fluidcc.laws.own import laws_in
from fluidcc.laws.parameters import infos
from fluidcc.network import Network
from fluidcc.scenario.build import build
from fluidcc.scenario.paths import replace
from fluidcc.scenario.tables import laws_of, tables

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

_AWAY = 1e-4  # of the rest: how far beside it trajectories start
_FOLDS = 6.0  # e-folds that a trajectory is followed for
_FROM = 0.3  # of that: when other roots are thought to have died out
_ROUNDING = 1e-10  # of the rest: no distance any more
_LONGEST = 60.0  # s
_WITHIN = 0.4  # relative difference of the rates by trajectory and by root
_WARMUP, _MEASURED = 15.0, 25.0  # s of packets
_SEEDS = (1, 2, 3)
_GOODPUT, _QUEUE = 0.1, 1.0  # relative differences of packets from the rest that are none


def paths_of(kind: str) -> str:
    """Where a law of this kind stands in the scenario."""
    inside = {"window": "flow.window.law", "queue": "link.queue.law",
              "reaction": "flow.window.reaction", "spreading": "link.queue.spreading"}  # fmt: skip
    return inside.get(kind, f"flow.{kind}")


def network_with(law: type[Law], kind: str) -> Network:
    """The network in which a law is tried."""
    from fluidcc.scenario.files import loads

    net, changes = loads(BASE), {paths_of(kind): law.name}
    if getattr(law, "loads", False) or kind == "estimator":
        changes = {"flow.window.law": "bmcc", "link.queue.law": "load_factor",
                   "flow.feedback": "load_factor"} | changes  # fmt: skip
    return replace(net, changes, where="the network of the battery")


class Whole:
    """A law in a network, examined step by step; each step is done once."""

    def __init__(self, law: type[Law], kind: str, net: Network | None) -> None:
        self.law, self.kind, self.given = law, kind, net

    @functools.cached_property
    def net(self) -> Network:
        """The network."""
        return network_with(self.law, self.kind) if self.given is None else self.given

    @functools.cached_property
    def rest(self) -> Equilibrium:
        """Where it rests."""
        return equilibrium(self.net)

    @functools.cached_property
    def roots(self) -> Stability:
        """Its stability."""
        return stability(self.net)

    @functools.cached_property
    def beside(self) -> Comparison:
        """Packets beside the rest, once the slowest root has died out."""
        root = self.roots.rightmost
        slow = 0.0 if root is None or root.real >= 0 else _FOLDS / -root.real
        warmup = min(max(_WARMUP, slow), _LONGEST)
        return compare(
            self.net, until=warmup + _MEASURED, warmup=warmup, seeds=_SEEDS, trajectory=False
        )

    def scenario(self) -> Answer:
        """The law comes back from the text of a scenario, with parameters changed."""
        net, laws = self.net, laws_of(self.net)
        if self.law not in laws_in(net):
            return [f"the scenario has no {self.law.name} in it"], ""
        again = build(tables(net), "its own text", laws)
        faults = [] if tables(again) == tables(net) else ["its own text gives another network"]
        numbers = [n for n, info in infos(self.law).items() if info.within is not None]
        return faults, f"read, written and read again; parameters {', '.join(numbers) or 'none'}"

    def settles(self) -> Answer:
        """The network has an equilibrium."""
        rest = self.rest
        link, told = next(iter(rest.links.values())), f"equilibrium {rest.status}"
        if rest.status == "none":
            return [f"{told}: {rest.message}"], ""
        if rest.status in ("continuum", "undetermined"):
            return None, rest.message
        flows = next(iter(rest.flows.values()))
        window = float(np.mean(np.asarray(flows.window)))
        numbers = (float(link.queue), float(link.utilization), window)
        if not all(map(math.isfinite, numbers)):
            return [f"{told}, but its numbers are not finite: {numbers}"], ""
        queue, use, window = numbers
        told = f"{told}: queue {queue:.4g} packets, utilization {use:.3g}, window {window:.4g}"
        return [], f"{told} packets{f' ({rest.message})' if rest.message else ''}"

    def stable(self) -> Answer:
        """The count of unstable roots is certain."""
        found = self.roots
        if found.stable is None:
            return None, f"no verdict: {found.message}"
        root = found.rightmost
        if root is None:
            return [f"no root is known: {found.message}"], ""
        verdict = "stable" if found.stable else f"unstable, {found.unstable} roots to the right"
        told = f"{verdict}; rightmost root {_complex(root)} 1/s"
        return [] if found.certified else [f"{told}: the count is not certain"], told

    def course(self) -> Answer:
        """A trajectory beside the rest moves as the rightmost root says."""
        if self.roots.stable is None or self.roots.rightmost is None:
            return None, "there are no roots to go by"
        pace = self.roots.rightmost.real
        if pace == 0:
            return None, "the rightmost root is 0"
        end = min(_FOLDS / abs(pace), _LONGEST)
        rate, status = rate_beside(self.net, self.rest, end)
        if status is not Status.ok:
            return None, f"the trajectory ended early: {status.advice}"
        if math.isnan(rate):
            return None, "what the rightmost root moves is 0 at rest, and was not moved"
        told = (
            f"from {_AWAY:.0e} beside the rest the distance changes by {rate:+.3g} 1/s, the "
            f"rightmost root says {pace:+.3g}"
        )
        return [] if abs(rate - pace) <= _WITHIN * abs(pace) else [told], told

    def packets(self) -> Answer:
        """Packets come near the rest where the model says that they should."""
        rows = {row.name.rpartition(".")[2]: row for row in self.beside.rows}
        told, faults = [], []
        for name, limit in (("goodput", _GOODPUT), ("queue", _QUEUE)):
            row = rows[name]
            if row.equilibrium is None or row.packets is None:
                continue
            half = row.ci95 or 0.0
            text = f"{name} {row.packets:.4g} +- {half:.2g}, at rest {row.equilibrium:.4g}"
            told.append(f"{text} {row.unit}")
            size = max(abs(row.packets), abs(row.equilibrium))
            if abs(row.packets - row.equilibrium) > limit / (1 + limit) * size + half:
                faults.append(f"packets are far from the rest: {told[-1]}")
        line = "; ".join(told)
        reasons = list(self.beside.outside)
        if self.roots.stable is not True:
            reasons.append("the rest is not stable")
        if faults and reasons:
            return None, f"{line}; they may differ, as {'; '.join(reasons)}"
        return faults, line


def _complex(root: complex) -> str:
    return f"{root.real:.4g}" if root.imag == 0 else f"{root.real:.4g} +- {abs(root.imag):.4g}i"


def rate_beside(net: Network, eq: Equilibrium, end: float) -> tuple[float, Status]:
    """Relative change per second of the distance from the rest, over the later part of a run.

    NaN if all of it dies out sooner than the later part: what is slow was not moved.
    """
    system, start, numbers = network_system(net, until=end)
    rest = state_at_rest(numbers.net, eq.rest)
    flat = ravel_pytree(rest)[0]
    before = ravel_pytree(initial_wire(numbers.net, rest))[0]
    numbers = Numbers(numbers.own._replace(before=before))
    beside = jnp.concatenate([flat * (1 + _AWAY), start[flat.size :]])  # and clocks
    times = np.linspace(0.0, end, 401)
    run = integrate(system, beside, 0.0, end, numbers, mesh=uniform_mesh(net), ts=times)
    scale = np.where(np.asarray(flat) == 0, 1.0, np.abs(np.asarray(flat)))
    away = (np.asarray(run.y)[:, : flat.size] - np.asarray(flat)) / scale
    far = np.linalg.norm(away, axis=1)
    later = times >= _FROM * end
    late = later & (far > _ROUNDING)
    if np.count_nonzero(late) < np.count_nonzero(later) / 2:
        return math.nan, Status(int(run.status))
    return float(np.polyfit(times[late], np.log(far[late]), 1)[0]), Status(int(run.status))
