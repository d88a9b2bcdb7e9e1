"""Lines of a trace: events of packets, and every change of a window.

In a run without a trace, all of this costs one test of `trace` at each event. The lines fill a
block of memory that is emptied from outside between slices of the run.
"""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled


@compiled
def _next_line(s, event, flow):
    """The next line of the trace; the last one again if the block is full, which ends the run."""
    if s.traced >= s.trace_size:
        s.status = r.TRACE_FULL
        s.traced -= 1
    line = r.line_at(s.trace, s.traced)
    s.traced += 1
    line.time = s.now
    line.event = event
    line.flow = flow
    return line


@part(records="packet")
def trace_packet(s, event, link, packet):
    """Trace an event of a packet at a link, or at its sender or receiver for -1."""
    line = _next_line(s, event, packet.flow)
    line.link = link
    line.sequence = packet.sequence
    line.size = packet.size
    line.flags = packet.flags
    line.connection = packet.connection


@compiled
def trace_at_port(s, event, port, packet):
    """Trace an event of a packet at a port, unless it is an access link."""
    if port.link >= 0:
        trace_packet(s, event, port.link, packet)


@part(records="flow")
def trace_sender(s, event, f, flow, sequence):
    """Trace an event of a sender; `sequence` is the packet that a timeout sends again."""
    line = _next_line(s, event, f)
    line.link = -1
    line.sequence = sequence
    line.size = 0
    line.flags = 0
    line.connection = flow.connection
    line.window = flow.window
    line.ssthresh = flow.ssthresh


@compiled
def trace_window(s, f, flow):
    """Trace a sender's window and slow-start threshold, if one of them has changed."""
    if flow.window != flow.traced_window or flow.ssthresh != flow.traced_ssthresh:
        flow.traced_window = flow.window
        flow.traced_ssthresh = flow.ssthresh
        trace_sender(s, r.CHANGE, f, flow, flow.acked)
