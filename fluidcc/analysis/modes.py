"""Trajectories along the mode of a characteristic root, as a check of the linearisation."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from jax.flatten_util import ravel_pytree

from fluidcc.analysis.equilibrium import Equilibrium
from fluidcc.analysis.linear import Array, Linear
from fluidcc.analysis.linearize import free_states
from fluidcc.analysis.operating_point import steady_state
from fluidcc.arrays import jnp
from fluidcc.dde.integrate import integrate
from fluidcc.dde.status import Status
from fluidcc.dde.system import System
from fluidcc.model.layout import initial_outputs
from fluidcc.model.network_mesh import uniform_mesh
from fluidcc.model.network_system import Numbers, network_system, record_of
from fluidcc.scenario.network import Network

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
    return dataclasses.replace(system, history=_history)


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
    before = record_of(numbers.net, op, initial_outputs(numbers.net, op))
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
