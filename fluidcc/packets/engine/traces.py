"""Lines of a trace: what happens to each packet, and every change of a window.

Where a run has no trace, all of this costs one look at `trace` at each place. The lines fill a
block of memory that is emptied from outside between slices of the run.
"""

from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.records import CHANGE, EXPIRE, TRACE_FULL, line_at


@compiled
def _write(s, event, flow):
    """The next line; the last one again, and the run ends, where there is no room."""
    if s.traced >= s.trace_size:
        s.status = TRACE_FULL
        s.traced -= 1
    line = line_at(s.trace, s.traced)
    s.traced += 1
    line.time = s.now
    line.event = event
    line.flow = flow
    return line


@part(records="packet")
def note(s, event, link, packet):
    """Note what happens to a packet at a link, or at one of its ends for -1."""
    line = _write(s, event, packet.flow)
    line.link = link
    line.sequence = packet.sequence
    line.size = packet.size
    line.flags = packet.flags
    line.connection = packet.connection


@compiled
def note_at_port(s, event, port, packet):
    """Note what happens to a packet at a port, unless it belongs to no link of the network."""
    if port.link >= 0:
        note(s, event, port.link, packet)


@part(records="flow")
def note_sender(s, event, f, flow, sequence):
    """Note what happens to a sender."""
    line = _write(s, event, f)
    line.link = -1
    line.sequence = sequence
    line.size = 0
    line.flags = 0
    line.connection = flow.connection
    line.window = flow.window
    line.threshold = flow.threshold


@compiled
def note_timeout(s, f, flow):
    """Note that the retransmission timer fired: the packet that it asks for."""
    note_sender(s, EXPIRE, f, flow, flow.acked + 1)


@compiled
def note_window(s, f, flow):
    """Note a sender's window and slow-start threshold, if one of them has changed."""
    if flow.window != flow.told_window or flow.threshold != flow.told_threshold:
        flow.told_window = flow.window
        flow.told_threshold = flow.threshold
        note_sender(s, CHANGE, f, flow, flow.acked)
