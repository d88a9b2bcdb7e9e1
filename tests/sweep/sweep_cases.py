"""A small scenario and quick verbs for sweeps, which processes of their own can import."""

import dataclasses
import os
import signal
import time
from pathlib import Path

import numpy as np
import xarray as xr

import fluidcc as fc

NET = fc.loads("""
[links.near]
capacity = "10 Mbit/s"
packet_size = "1000 B"
delay = "5 ms"
queue = { law = "red", min_th = 20, max_th = 60, p_max = 0.2, w_q = 0.002 }

[flows.tcp]
n = 5
rtt = "80 ms"
window = { law = "newreno" }
""")
DELAYS = tuple(k / 1000 for k in range(1, 9))
OVER = {"flows.tcp.n": (2, 3, 5, 8), "links.near.delay": DELAYS}
SIZE = 32


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Some random numbers, more of them where there are more flows."""

    values: np.ndarray
    delay: float
    status: str = "drawn"
    message: str = ""

    def to_dict(self):
        return {"values": self.values.tolist()}

    def to_xarray(self):
        data = {"value": ("draw", self.values, {"units": "s"}), "delay": self.delay}
        coords = {"kind": ("draw", ["random"] * len(self.values))}
        attrs = {"status": self.status, "message": self.message, "law": "uniform", "d": self.delay}
        return xr.Dataset(data, coords, attrs)


def draw(net, *, seeds=(1,), pause=0.0):
    """Numbers that depend on the network and the seeds; none at 3 flows and 7 ms."""
    delay, n = float(net.links[0].delay), int(np.sum(net.flows[0].n))
    time.sleep(pause)
    if n == 3 and delay == 0.007:
        raise RuntimeError("nothing to draw")
    rng = np.random.default_rng([*seeds, n, int(1e6 * delay)])
    return Drawn(rng.random(n), delay)


def draw_after_a_death(net, *, mark):
    """As `draw`, but the first process that comes to 5 flows and 3 ms is killed there."""
    if int(np.sum(net.flows[0].n)) == 5 and float(net.links[0].delay) == 0.003:
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            return draw(net)
        os.kill(os.getpid(), signal.SIGKILL)
    return draw(net)


def deadly(net):
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


def same(one, other):
    """Raise AssertionError unless two datasets agree in every bit, the command apart."""
    plain = [d.assign_attrs(command="") for d in (one, other)]
    xr.testing.assert_identical(*plain)
    for name, variable in plain[0].variables.items():
        assert variable.dtype == plain[1][name].dtype, name
