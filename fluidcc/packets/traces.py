"""Files of traces: CSV with one line for each event in order of time, which `read_trace` reads, and
pcap for the tools that read captures.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.packets.build import Simulation
from fluidcc.packets.engine import records as r
from fluidcc.packets.hooks import trace_addresses
from fluidcc.packets.plan import PacketError, Plan

if TYPE_CHECKING:
    import pandas

ENDINGS = (".csv", ".pcap")
COLUMNS = (
    ("time", "s", "when it happened"),
    ("event", "", "its name"),
    ("link", "", "link of the event; empty at senders and receivers"),
    ("group", "", "group of flows, or traffic of a link"),
    ("flow", "", "number of the flow in its group"),
    ("connection", "", "number of the connection of the flow, or of a call"),
    ("sequence", "", "number of the packet in its connection, of an ACK the last one in order"),
    ("size", "B", "size of the packet"),
    ("flags", "", "flags of the packet, joined by +"),
    ("window", "packet", "window, of the events `window` and `timeout`"),
    ("threshold", "packet", "slow-start threshold, of these"),
)
"""Columns of a trace: name, unit and meaning."""

EVENTS = {
    "send": "a packet leaves its sender",
    "enter": "a packet enters the queue of a link",
    "drop": "a packet is dropped there",
    "mark": "a packet is marked there",
    "leave": "a packet leaves the transmitter of a link",
    "receive": "a data packet arrives at its receiver",
    "ack": "an ACK arrives at its sender",
    "quench": "a source quench arrives at its sender",
    "timeout": "a retransmission timer fires",
    "window": "a window or slow-start threshold changes",
}
"""Events by name, in the order of their numbers."""

FLAGS = ("ect", "ce", "ece", "cwr", "syn", "ack", "class2")  # from the lowest bit
HEADING = ",".join(f"{name} ({unit})" if unit == "B" or name == "time" else name
                   for name, unit, _ in COLUMNS)  # fmt: skip

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


class _Csv:
    """All events, as text."""

    def __init__(self, simulation: Simulation) -> None:
        self._flows = list(_flow_names(simulation.plan))
        self._links = ["", *map(_cell, simulation.plan.net.link_names)]
        self._events = list(EVENTS)

    def head(self) -> bytes:
        return f"{HEADING}\n".encode()

    def write(self, lines: np.ndarray) -> bytes:
        return "".join(map(self._line, lines.tolist())).encode()

    def _line(self, line: tuple) -> str:
        time, window, threshold, event, link, flow, sequence, size, flags, connection = line
        head = f"{time!r},{self._events[event]},{self._links[link + 1]},{self._flows[flow]}"
        if event in _OF_SENDERS:
            return f"{head},{connection},{sequence},,,{window!r},{threshold!r}\n"
        return f"{head},{connection},{sequence},{size},{_FLAG_SETS[flags]},,\n"


# a file of captured IP packets with times in ns; of packets, headers of IPv4 and TCP or UDP
_PCAP_HEAD = np.dtype([("magic", "<u4"), ("version", "<u2", 2), ("zone", "<u8"),
                       ("length", "<u4"), ("link", "<u4")])  # fmt: skip
_PCAP = np.dtype(
    [("second", "<u4"), ("nanosecond", "<u4"), ("captured", "<u4"), ("length", "<u4"),
     ("version", ">u1"), ("ecn", ">u1"), ("total", ">u2"), ("id", ">u2"), ("fragment", ">u2"),
     ("hops", ">u1"), ("protocol", ">u1"), ("checksum", ">u2"), ("source", ">u4"),
     ("target", ">u4"), ("source_port", ">u2"), ("target_port", ">u2"), ("sequence", ">u4"),
     ("ack", ">u4"), ("offset", ">u1"), ("flags", ">u1"), ("window", ">u2"), ("sum", ">u2"),
     ("urgent", ">u2")]
)  # fmt: skip
_MAGIC, _RAW_IP = 0xA1B23C4D, 101
_HEADERS = 40  # bytes of IPv4 and TCP
_TCP, _UDP, _PORT = 6, 17, 5001
_SENDERS, _RECEIVERS = 10 << 24, (192 << 24) + (168 << 16)  # 10.0.0.0, 192.168.0.0
_LARGEST = 65_535
_CWR, _ECE, _ACK, _SYN = 0x80, 0x40, 0x10, 0x02


class _Pcap:
    """Packets as their senders see them: data that leave, ACKs that arrive.

    Flow k has the address 10.0.0.0 + k + 1, and a port for each connection; its receiver is
    192.168.0.0 + g + 1, by its group. A packet's size contains the headers.
    """

    def __init__(self, simulation: Simulation) -> None:
        groups, self._group = simulation.groups, simulation.flows["group"].astype(np.int64)
        sizes = groups["size"][self._group].astype(np.int64)
        self._tcp = len(simulation.plan.flows)  # flows after these send datagrams
        if not np.all((_HEADERS < sizes) & (sizes <= _LARGEST)):
            raise PacketError(
                f"trace: expected packets of {_HEADERS + 1} to {_LARGEST} B, headers included, "
                f"for a pcap file, got {sizes.min()} to {sizes.max()} B"
            )
        self._payload, self._syn = sizes - _HEADERS, groups["syn"][self._group]
        self._answered = np.full(len(self._group), -1)  # connection of the last SYN, by flow

    def head(self) -> bytes:
        return np.array([(_MAGIC, (2, 4), 0, _LARGEST, _RAW_IP)], _PCAP_HEAD).tobytes()

    def write(self, lines: np.ndarray) -> bytes:
        lines = lines[np.isin(lines["event"], (r.SEND, r.ACKNOWLEDGE))]
        out = np.zeros(len(lines), _PCAP)
        flow, flags = lines["flow"], lines["flags"]
        back, tcp = lines["event"] == r.ACKNOWLEDGE, flow < self._tcp
        nanoseconds = np.rint(lines["time"] * 1e9).astype(np.int64)
        out["second"], out["nanosecond"] = np.divmod(nanoseconds, 10**9)
        out["captured"] = np.where(tcp, _HEADERS, _HEADERS - 12)
        out["total"] = out["length"] = np.maximum(lines["size"], out["captured"])
        out["version"], out["hops"], out["protocol"] = 0x45, 64, np.where(tcp, _TCP, _UDP)
        out["ecn"] = np.where(flags & r.CE, 3, np.where(flags & r.ECT, 2, 0))
        hosts = _SENDERS + 1 + flow.astype(np.int64), _RECEIVERS + 1 + self._group[flow]
        out["source"], out["target"] = (np.where(back, *pair) for pair in (hosts[::-1], hosts))
        ports = 1024 + lines["connection"] % (_LARGEST - 1023), _PORT
        out["source_port"], out["target_port"] = (
            np.where(back, *pair) for pair in (ports[::-1], ports)
        )
        self._transport(out, lines, back, tcp)
        if not len(out):
            return b""
        words = out.view(np.uint8).reshape(len(out), -1)[:, 16:36].astype(np.uint32)
        total = (words[:, ::2] << 8 | words[:, 1::2]).sum(axis=1)
        out["checksum"] = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        data = out.view(np.uint8).reshape(len(out), -1)
        kept = np.arange(_PCAP.itemsize) < 16 + out["captured"][:, None]
        return data[kept].tobytes()

    def _transport(
        self, out: np.ndarray, lines: np.ndarray, back: np.ndarray, tcp: np.ndarray
    ) -> None:
        """Fill in the headers of TCP: bytes are numbered from 1, after a SYN or without one."""
        flow, flags, number = lines["flow"], lines["flags"], lines["sequence"].astype(np.int64)
        syn = (flags & r.SYN > 0) & ~back
        place = 1 + np.maximum(number + back - self._syn[flow], 0) * self._payload[flow]
        out["sequence"] = np.where(back, 1, np.where(syn, 0, place)) & 0xFFFFFFFF
        out["ack"] = np.where(back, place, np.where(syn, 0, 1)) & 0xFFFFFFFF
        out["offset"], out["window"] = 5 << 4, _LARGEST
        answer = np.zeros(len(lines), bool)  # the first ACK of a connection with a SYN
        for k in np.flatnonzero(back & (number == 0) & (self._syn[flow] == 1)):
            answer[k] = self._answered[flow[k]] != lines["connection"][k]
            self._answered[flow[k]] = lines["connection"][k]
        out["sequence"][answer] = 0
        out["flags"] = (
            np.where(syn | answer, _SYN, 0) | np.where(syn, 0, _ACK)
            | np.where(flags & r.ECE, _ECE, 0) | np.where(flags & r.CWR, _CWR, 0)
        )  # fmt: skip
        # UDP has a length where TCP has the sequence number
        datagrams = np.flatnonzero(~tcp)
        out["sequence"][datagrams] = (out["total"][datagrams].astype(np.int64) - 20) << 16


class TraceFile:
    """The trace of one run: a block of lines that the engine fills, written to a file in slices.

    A context manager, which opens and closes the file.
    """

    def __init__(self, simulation: Simulation, path: Path, scale: int) -> None:
        self._simulation, self._path = simulation, path
        self._lines = np.zeros(_LINES * min(scale, _MOST_BLOCKS), r.LINE_RECORD)
        self._form = (_Pcap if path.suffix == ".pcap" else _Csv)(simulation)
        state: Any = simulation.state[0]
        state["trace"], state["trace_size"] = self._lines.ctypes.data, len(self._lines)
        for name, address in trace_addresses().items():
            state[name] = address

    def __enter__(self) -> "TraceFile":
        self._file = self._path.open("wb")
        self._file.write(self._form.head())
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def flush(self) -> None:
        """Write the lines that the engine has filled since the last time."""
        count = int(self._simulation.state[0]["traced"])
        self._simulation.state[0]["traced"] = 0
        self._file.write(self._form.write(self._lines[:count]))


def read_trace(path: str | os.PathLike[str]) -> "pandas.DataFrame":
    """Read the CSV file of a trace.

    Parameters
    ----------
    path
        What `simulate_packets` (``trace=``) or ``fluidcc packets --trace`` wrote.

    Returns
    -------
    pandas.DataFrame
        One row for each event in order of time: `time` [s], `event`, `link`, `group`, `flow`,
        `connection`, `sequence`, `size` [B], `flags`, `window` and `threshold` [packet]. A
        `timeout` and a `window` have the last two, all other events a size and flags.
        ``attrs["units"]`` has the units.

    Raises
    ------
    PacketError
        For a file that cannot be read, or is no trace.

    Examples
    --------
    >>> import tempfile, fluidcc as fc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/trace.csv"
    ...     runs = fc.simulate_packets(fc.load("hollot2001/slow"), until=2, trace=file)
    ...     trace = fc.read_trace(file)
    >>> int((trace.event == "send").sum())
    1017
    """
    import pandas

    names = [name for name, _, _ in COLUMNS]
    whole_numbers, texts = ("flow", "connection", "sequence"), ("event", "link", "group", "flags")
    kinds: dict[Any, Any] = dict.fromkeys(whole_numbers, "int64") | {"size": "Int64"}
    kinds |= dict.fromkeys(texts, "category") | dict.fromkeys(
        ("time", "window", "threshold"), float
    )
    try:
        with open(path, encoding="utf-8", newline="") as file:
            heading = file.readline().rstrip("\r\n")
            if heading != HEADING:
                raise PacketError(
                    f"read_trace: expected a file that begins with '{HEADING}', got "
                    f"{heading[:80]!r} in '{path}'"
                )
            empty = {name: [""] for name in ("size", "window", "threshold")}
            found = pandas.read_csv(
                file, names=names, dtype=kinds, keep_default_na=False, na_values=empty
            )
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise PacketError(f"read_trace: cannot read '{path}' ({reason})") from None
    found.attrs["units"] = {name: unit for name, unit, _ in COLUMNS if unit}
    return found
