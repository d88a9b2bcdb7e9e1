"""The page on traces, made from the lists of columns and events."""

from fluidcc.packets.traces import COLUMNS, EVENTS

_HEAD = """# Traces of packet runs

`fluidcc packets SCENARIO --trace FILE` (`trace=` in Python) writes the run of the first seed:
`--seeds 7,9` traces seed 7, `--seeds 7,` runs it alone. The file changes no bit of the run.

## CSV

One line for each event in order of time. `fc.read_trace(FILE)` gives a pandas data frame with typed
columns.

| column | unit | meaning |
|---|---|---|
"""

_PCAP = """
## Captures

`FILE.pcap` has the packets as their senders see them, data that leave and ACKs that arrive, for
Wireshark, tcptrace and the like: raw IPv4 with TCP headers (UDP for cross traffic and voice), times
in ns, no payload. A packet's size contains its headers and is at least theirs, 40 or 28 bytes;
sequence numbers are bytes of what is left. Flow k of the run, all groups counted through, is
10.0.0.0 + k + 1 with a port for each connection, its receiver 192.168.0.0 + g + 1 by group, port
5001. ECN bits are those of IP and TCP;
blocks of SACK and advertised windows are left out, as are source quenches.
"""


def pages() -> dict[str, str]:
    """The page on traces."""
    columns = "".join(f"| `{name}` | {unit} | {text} |\n" for name, unit, text in COLUMNS)
    events = "".join(f"| `{name}` | {text} |\n" for name, text in EVENTS.items())
    table = f"\n| event | when |\n|---|---|\n{events}"
    return {"reference/traces.md": _HEAD + columns + table + _PCAP}
