"""The network test: equilibrium, stability, trajectory and packets of a network with the law.

A step is left out if an earlier one that it needs has no answer.
"""

import functools
import math

import numpy as np

from fluidcc.analysis.equilibrium import Equilibrium, equilibrium
from fluidcc.analysis.modes import follow_mode, ticks_matter
from fluidcc.analysis.stability import Stability, stability
from fluidcc.check.checks import Answer
from fluidcc.dde.status import Status
from fluidcc.laws.law import Law
from fluidcc.laws.own import laws_in
from fluidcc.laws.parameters import numeric_parameters
from fluidcc.results.compare import Comparison, compare
from fluidcc.scenario.build import build
from fluidcc.scenario.network import Network
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

_TOLERANCE = 0.1  # of a mode: greatest distance of the trajectory from it
_FOLDS = 6.0  # e-folds of the slowest root before packets are measured
_LONGEST = 60.0  # s
_WARMUP, _MEASURED = 15.0, 25.0  # s of packets
_SEEDS = (1, 2, 3)
_GOODPUT, _QUEUE = 0.1, 1.0  # relative differences of packets from the equilibrium that pass


def paths_of(kind: str) -> str:
    """Path of a law of this kind in the scenario."""
    inside = {"window": "flow.window.law", "queue": "link.queue.law",
              "reaction": "flow.window.reaction", "spreading": "link.queue.spreading"}  # fmt: skip
    return inside.get(kind, f"flow.{kind}")


def network_with(law: type[Law], kind: str) -> Network:
    """The network in which a law is tried."""
    from fluidcc.scenario.files import loads

    net, changes = loads(BASE), {paths_of(kind): law.name}
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
            self.net, until=warmup + _MEASURED, warmup=warmup, seeds=_SEEDS, trajectory=False
        )

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
