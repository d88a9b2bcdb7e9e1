"""CSV files of the traces of runs: one line for each event, in order of time."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.packets.engine import records as r
from fluidcc.packets.entry import trace_addresses
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import Plan

HEADING = "time (s),event,link,group,flow,connection,sequence,size (B),flags,window,threshold"
EVENTS = (
    "send", "enter", "drop", "mark", "leave", "receive", "ack", "quench", "timeout", "window",
)  # fmt: skip
"""Names of events. A packet enters the queue of a link and leaves its transmitter; `ack` and
`quench` are arrivals at the sender; `timeout` is a retransmission timer that fires, `window` any
change of a window or slow-start threshold [packet]."""
FLAGS = ("ect", "ce", "ece", "cwr", "syn", "ack", "class2")  # from the lowest bit

SLICE = 1 << 10  # events between looks at the block of lines
_LINES = 32 * SLICE  # of the block
_MOST_BLOCKS = 64  # by which it grows
_OF_SENDERS = (r.EXPIRE, r.CHANGE)  # events with a window, but no packet


_FLAG_SETS = [
    "+".join(name for k, name in enumerate(FLAGS) if flags >> k & 1)
    for flags in range(1 << len(FLAGS))
]


def _cell(name: str) -> str:
    """A name as a CSV cell."""
    return '"{}"'.format(name.replace('"', '""')) if set(name) & set(',"\r\n') else name


def _flow_names(plan: Plan) -> Iterator[str]:
    """Group and number in it of each flow of the engine, as two columns."""
    names = plan.net.flow_names
    counters: dict[int, Iterator[int]] = {}
    requests = {f.group: plan.flows[f.data_flow].group for f in plan.flows if f.data_flow >= 0}
    for flow in plan.flows:
        group = flow.group
        name = f"{names[requests[group]]} requests" if group in requests else names[group]
        yield f"{_cell(name)},{next(counters.setdefault(group, itertools.count()))}"
    for traffic in plan.background:
        kind = "cross" if traffic.voice is None else "voice"
        yield _cell(f"{kind} of {plan.net.link_names[traffic.link]}") + ",0"


class TraceFile:
    """The trace of one run: a block of lines that the engine fills, written to a file in slices.

    A context manager, which opens and closes the file.
    """

    def __init__(self, simulation: Simulation, path: Path, scale: int) -> None:
        self._simulation, self._path = simulation, path
        self._lines = np.zeros(_LINES * min(scale, _MOST_BLOCKS), r.LINE_RECORD)
        self._flows = list(_flow_names(simulation.plan))
        self._links = ["", *map(_cell, simulation.plan.net.link_names)]
        state: Any = simulation.state[0]
        state["trace"], state["trace_size"] = self._lines.ctypes.data, len(self._lines)
        for name, address in trace_addresses().items():
            state[name] = address

    def __enter__(self) -> "TraceFile":
        self._file = self._path.open("w", encoding="utf-8")
        self._file.write(HEADING + "\n")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def flush(self) -> None:
        """Write the lines that the engine has filled since the last time."""
        count = int(self._simulation.state[0]["traced"])
        self._simulation.state[0]["traced"] = 0
        lines = self._lines[:count].tolist()
        self._file.writelines(map(self._line, lines))

    def _line(self, line: tuple) -> str:
        time, window, threshold, event, link, flow, sequence, size, flags, connection = line
        head = f"{time!r},{EVENTS[event]},{self._links[link + 1]},{self._flows[flow]}"
        if event in _OF_SENDERS:
            return f"{head},{connection},{sequence},,,{window!r},{threshold!r}\n"
        return f"{head},{connection},{sequence},{size},{_FLAG_SETS[flags]},,\n"
