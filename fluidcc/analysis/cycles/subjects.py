"""Networks and delay equations as one subject: a system with parameters, and what is reported."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.cycles.collocation import OrbitLostError
from fluidcc.analysis.cycles.model import Array, Model
from fluidcc.analysis.cycles.orbit import GUARD, Orbit
from fluidcc.analysis.cycles.result import Cycle, Label, not_known
from fluidcc.analysis.cycles.simulated import FEW_CLASSES, from_network, labels_of, observed
from fluidcc.analysis.delay_equation import DelayEquation, equation_equilibrium
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.operating_point import steady_state
from fluidcc.arrays import jax, jnp
from fluidcc.dde import equation as general
from fluidcc.dde.system import shapes_of, unraveler
from fluidcc.model.fluid import as_fluid, with_mean_calls
from fluidcc.model.layout import initial_state
from fluidcc.model.network_system import network_system
from fluidcc.model.rates import FREE, HIGH, LOW
from fluidcc.scenario.network import Network, Start, to_arrays

_PUSHED = 0.1  # of the state and of 1: distance of an equation's start from its equilibrium


@dataclasses.dataclass(frozen=True)
class Subject:
    """Interface of networks and delay equations for the algorithms of cycles.

    labels (R,): reported values; observe: computes them from states, (Q, n) to (Q, R).
    equilibrium: the state (n,) there; raises OrbitLostError if there is no smooth one.
    switches: messages on the events of an orbit.
    simulated: the cycle at the end of another simulation, given the reason for no orbit.
    build: the model, and the state (n,) that runs start from; raises OrbitLostError.
    """

    labels: tuple[Label, ...]
    observe: Callable[[Array], Array]
    equilibrium: Callable[[], Array]
    switches: Callable[[Orbit], list[str]]
    simulated: Callable[[str], Cycle]
    build: Callable[[], tuple[Model, Array]]

    @functools.cached_property
    def _built(self) -> tuple[Model, Array]:
        return self.build()

    @property
    def model(self) -> Model:
        """The system with its parameters; raises OrbitLostError if collocation does not apply."""
        return self._built[0]

    @property
    def start(self) -> Array:
        """The state (n,) that runs start from."""
        return self._built[1]


def subject_of(net: Network | DelayEquation) -> Subject:
    """A network long after its start, or a delay equation, as a subject."""
    return _of_equation(net) if isinstance(net, DelayEquation) else _of_network(net)


def _of_network(given: Network) -> Subject:
    net = steady(given)
    numbers = to_arrays(net)

    def equilibrium_state() -> Array:
        found = equilibrium(given)
        if not found.smooth:
            raise OrbitLostError(f"no smooth equilibrium: {found.message}")
        return np.asarray(ravel_pytree(steady_state(numbers, found.op))[0])

    return Subject(
        labels=labels_of(net),
        observe=functools.partial(observed, net),
        equilibrium=equilibrium_state,
        switches=functools.partial(_switches, net),
        simulated=functools.partial(from_network, net),
        build=functools.partial(_network_model, net),
    )


def _network_model(net: Network) -> tuple[Model, Array]:
    """The model; OrbitLostError if it repeats only in the mean or has no located events."""
    if jax.tree.leaves(initial_state(to_arrays(net)).clocks):
        raise OrbitLostError("laws with ticks repeat only in the mean")
    if any(link.queue.limits for link in net.links):
        raise OrbitLostError("the memory of a queue law has limits, at which no events are located")
    if net.delay == "fifo":
        raise OrbitLostError("delays of model.delay = 'fifo' depend on past queues")
    if net.rates == "self_clocked":
        raise OrbitLostError(
            "self-clocked flows conserve packets in flight, so cycles are not isolated"
        )
    if sum(np.size(f.rtt) for f in net.flows) > FEW_CLASSES:
        raise OrbitLostError(f"there are more than {FEW_CLASSES} distinct round trips")
    system, y0, args = network_system(net)
    return Model(system, args, len(y0)), np.asarray(y0)


def _switches(net: Network, orbit: Orbit) -> list[str]:
    out: list[str] = []
    links = len(net.links)
    for k, name in enumerate(net.link_names):
        words = {LOW: "runs empty", HIGH: "is full"}
        out += [f"links.{name} {words[m]}" for m in (LOW, HIGH) if np.any(orbit.modes[:, k] == m)]
    at = links
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        own = orbit.modes[:, at : at + np.size(flows.rtt)]
        at += np.size(flows.rtt)
        if np.any(own != FREE):
            out.append(f"windows of flows.{name} stay at a bound")
    guards = 2 * orbit.modes.shape[1]
    if any(e.kind == GUARD and e.index >= guards for e in orbit.events):
        out.append("queues pass corners of the marking function")
    return out


def _of_equation(equation: DelayEquation) -> Subject:
    rest = equation_equilibrium(equation)

    def equilibrium_state() -> Array:
        if not rest.smooth:
            raise OrbitLostError(rest.message)
        return rest.flat

    def build() -> tuple[Model, Array]:
        y = rest.flat + _PUSHED * (1.0 + np.abs(rest.flat))
        params = jax.tree.map(lambda v: jnp.asarray(v, float), dict(equation.params))
        shapes = shapes_of(general.as_state(rest.y))
        form = jax.tree.structure(params)
        system = _equation_system(equation.field, tuple(equation.lags), shapes, form)
        before = unraveler(shapes)(jnp.asarray(y))
        args = general.Arguments({"own": params, "before": before}, None)
        return Model(system, args, len(y)), y

    return Subject(
        labels=tuple(Label("states", str(k)) for k in range(rest.flat.size)),
        observe=lambda y: y,
        equilibrium=equilibrium_state,
        switches=lambda orbit: [],
        simulated=lambda why: not_known(f"no cycle found: {why}"),
        build=build,
    )


def steady(net: Network) -> Network:
    """The network long after its start: flows have all begun, and calls are at their mean."""
    net = as_fluid(net)
    flows = tuple(dataclasses.replace(f, start=Start()) for f in net.flows)
    return with_mean_calls(dataclasses.replace(net, flows=flows))


@functools.lru_cache(maxsize=64)
def _equation_system(field: Any, lags: tuple[Any, ...], shapes: Any, structure: Any) -> Any:
    """The system of equations of one form, whose constant history is among its parameters."""
    tree = unraveler(shapes)
    y = tree(jnp.zeros(sum(int(np.prod(shape)) for shape, _ in shapes[1])))
    params = jax.tree.unflatten(structure, [jnp.zeros(())] * structure.num_leaves)
    wrapped = tuple((lambda t, y, p, lag=lag: lag(t, y, p["own"])) for lag in lags)
    arguments = general.Arguments({"own": params, "before": y}, None)
    return general.build(
        lambda t, y, z, p: field(t, y, z, p["own"]), lambda t, p: p["before"], wrapped,
        None, y, jnp.zeros(()), arguments,
    )  # fmt: skip
