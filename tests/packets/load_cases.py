"""Networks with load factors: known ones, told by a queue law of their own, and measured ones."""

import ctypes
from typing import Any, ClassVar

import numpy as np
from packet_cases import dumbbell, flows

from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as Told
from fluidcc.laws.law import AbstractQueueLaw, Signal
from fluidcc.laws.parameters import param
from fluidcc.laws.queue.load_factor import LoadFactor
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.packets.engine import records as r
from fluidcc.packets.entry import entry_points
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import plan
from fluidcc.scenario.network import Network, Start


class KnownLoad(AbstractQueueLaw):
    """Tells one load factor, and marks every packet with one probability."""

    name: ClassVar[str] = "known_load"
    source: ClassVar[str] = "test"
    loads: ClassVar[bool] = True
    f: float = param(0.5, "f", unit="1", doc="load factor", within="[0, inf)")
    p: float = param(0.0, "p", unit="1", doc="probability", within="[0, 1]")

    def signal(self, x, seen):
        return Signal(mark=self.p, load=self.f)


def known_load(queue: AbstractQueueLaw, window: Any = None, **changes: Any) -> Network:
    """Flows of 100 ms that never fill their fast link."""
    given: dict[str, Any] = {
        "window": window or BMCC(max_window=1e4),
        "feedback": Told(),
        "rtt": np.array([0.1]),
        "start": Start(),
        "access_capacity": float("inf"),
        "sender": (("recovery", "newreno"),),
    }
    group = flows(changes.pop("count", 1), **(given | changes))
    return dumbbell(group, queue, capacity=1e6, delay=0.01, buffer=float("inf"))


def measured_load(count: int, queue: AbstractQueueLaw | None = None, **changes: Any) -> Network:
    """BMCC flows that share a link of 10 Mbit/s."""
    given: dict[str, Any] = {
        "window": BMCC(max_window=1e3),
        "feedback": Told(),
        "rtt": np.array([0.0413]),
        "access_delay": 0.0171,
        "start": Start(0.0, 1.0),
        "sender": (("recovery", "newreno"),),
    }
    group = flows(count, **(given | changes))
    return dumbbell(group, queue or LoadFactor(), delay=0.0021, buffer=50.0)


class Stepwise:
    """A run that stops at chosen times, to look at the state of the engine."""

    def __init__(self, net: Network, *, seed: int = 1) -> None:
        self.simulation = Simulation(plan(net), seed, True, scale=8)

    def until(self, time: float) -> "Stepwise":
        """Go on to a time."""
        advance, settle = entry_points()
        assert advance(self.simulation.address, time, 1 << 40) == 0
        settle(self.simulation.address, time)
        return self

    def flow(self, field: str) -> np.ndarray:
        """A field of all flows."""
        return self.simulation.flows[field].copy()

    def estimates(self) -> np.ndarray:
        """What the receivers know of the load factor."""
        return self.simulation.receivers["estimate"].copy()

    def memory(self, flow: int, count: int) -> np.ndarray:
        """What the window law of a flow remembers beside its window, to read and to write."""
        return _numbers(self.simulation.flows["memory"][flow], count)

    def queue_block(self, port: int, count: int) -> np.ndarray:
        """What the queue law of a port remembers; its parameters follow."""
        return _numbers(self.simulation.ports["block"][port] + 8 * r.Q_STATE, count)


def _numbers(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_double * count).from_address(int(address)))
