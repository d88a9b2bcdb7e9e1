"""A small scenario for tests, and ways to spoil it."""

import copy
import tomllib

BASE = """
title = "a test"

[links.near]
capacity = "10 Mbit/s"
packet_size = "1000 B"
delay = "5 ms"
buffer = "90 kB"
queue = { law = "red", min_th = 20, max_th = 60, p_max = 0.2, w_q = 0.002, gentle = true }

[links.far]
capacity = 2500
delay = "10 ms"
queue = { law = "droptail" }

[flows.mod]
n = [3, 4]
rtt = ["80 ms", 0.12]
route = ["near", "far"]
access_delay = "2 ms"
window = { law = "ecn_mod", c1 = 0.0625 }
marking = "equal_window"

[flows.tcp]
n = 5
rtt = { min = "60 ms", max = "100 ms" }
route = ["near"]
window = { law = "newreno", max_window = "64 kB" }
feedback = "mark_front"
start = { uniform = ["0 s", "5 s"] }
access_capacity = "100 Mbit/s"
sender = { profile = "ns-2.35", initial_window = 4 }
initial = { window = 5 }
"""

REMOVED = object()


def spoiled(changes):
    """The base scenario with values by path changed, or REMOVED."""
    raw = copy.deepcopy(tomllib.loads(BASE))
    for path, value in changes.items():
        *inner, last = path.split(".")
        here = raw
        for part in inner:
            here = here.setdefault(part, {})
        if value is REMOVED:
            del here[last]
        else:
            here[last] = value
    return raw
