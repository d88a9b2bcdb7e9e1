"""Sending data packets, and the ACKs of new data, as in ns-2.35."""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.ports import arrive
from fluidcc.packets.engine.queues import allocate, send_on_wire
from fluidcc.packets.engine.streams import draw
from fluidcc.packets.engine.timers import cancel_timer, reschedule, set_timer, take_sample
from fluidcc.packets.engine.traces import trace_packet
from fluidcc.packets.engine.windows import allowed, grow, is_window_full, validate_window


@compiled
def send(s, f, flow, group, sequence):
    """Send one data packet and see to its timing."""
    if sequence - flow.acked > s.ring_mask:
        s.status = r.WINDOW_BEYOND_RING
        return
    if sequence >= r.UNLIMITED:
        s.status = r.TOO_MANY_PACKETS
        return
    index = allocate(s)
    if index < 0:
        return
    packet = r.packet_at(s.packets, index)
    packet.flow = f
    packet.sequence = sequence
    packet.sent = s.now
    packet.connection = flow.connection
    packet.identity = flow.sent
    packet.load = 0.0
    packet.hop = 1
    packet.size = group.size
    packet.flags = r.ECT if group.ecn_capable == 1 else 0
    if flow.cwr_due == 1:
        packet.flags |= r.CWR
        flow.cwr_due = 0
    if sequence == 0 and group.syn == 1:
        packet.size = group.syn_size
        packet.flags = r.SYN
    if s.trace != 0:
        trace_packet(s, r.SEND, -1, packet)
    if group.window_validation == 1:
        validate_window(s, flow, group, sequence)
    nothing_out = flow.acked == flow.highest_sent
    flow.sent += 1
    if sequence > flow.highest_sent:
        flow.highest_sent = sequence
        if flow.timing == 0:
            flow.timing = 1
            if sequence > flow.timed_sequence:
                flow.timed_sequence = sequence
                flow.timed_at = s.now
    if flow.deadline >= r.NEVER or nothing_out:
        set_timer(s, f, flow, group)
    first = r.index_at(s.routes, f * s.hops).value
    if r.entity_at(s.entities, first).kind == r.PORT:
        arrive(s, first, index)
    else:
        send_on_wire(s, first, index, s.now, 0.0)


@compiled
def wait_for_overhead(s, f, flow, group, forced):
    """Whether a packet must wait: 1 for a sender with `overhead` that has not waited yet."""
    if forced == 1 or group.overhead == 0:
        return 0
    flow.sending = 1
    flow.send_at = s.now + draw(flow) * group.overhead
    reschedule(s, f, flow)
    return 1


@compiled
def send_allowed(s, f, flow, group, burst, forced):
    """Send what the window allows: at most `burst` packets, or any number for 0."""
    if forced == 0 and flow.sending == 1:
        return
    count = 0
    while flow.next_sequence <= min(flow.acked + allowed(flow), flow.limit) and s.status == 0:
        if wait_for_overhead(s, f, flow, group, forced) == 1:
            return
        send(s, f, flow, group, flow.next_sequence)
        flow.next_sequence += 1
        count += 1
        if count == burst:
            return


@compiled
def send_limited_transmit(s, f, flow, group):
    """Limited transmit: one new packet on an early duplicate ACK. RFC 3042."""
    ahead = flow.next_sequence - flow.acked
    fits = ahead <= flow.advertised and ahead <= flow.window + flow.duplicates
    if group.limited_transmit == 1 and fits and flow.next_sequence <= flow.limit:
        send(s, f, flow, group, flow.next_sequence)
        flow.next_sequence += 1


@compiled
def restart_timer(s, f, flow, group, sequence):
    """After an ACK: wait for the rest, or for the timer alone if the window is below 1."""
    if flow.next_sequence > sequence or sequence < flow.highest_sent or flow.window < 1:
        set_timer(s, f, flow, group)
    else:
        cancel_timer(flow)


@inlined
def accept(s, f, flow, group, sequence, echo):
    """Take an ACK of new data that ends, or is outside, a recovery; the window stays as it is."""
    flow.duplicates = 0
    flow.acked = sequence
    flow.next_sequence = max(flow.next_sequence, sequence + 1)
    if flow.timing == 1 and sequence >= flow.timed_sequence:
        if flow.ecn_on == 0 or flow.at_one == 0 or echo == 0:
            flow.backoff = 1
            flow.at_one = 0
        flow.timing = 0
        take_sample(s, flow, group)
    restart_timer(s, f, flow, group, sequence)


@inlined
def accept_and_grow(s, f, flow, group, sequence, echo):
    """Take an ACK of new data, and grow."""
    used = group.window_validation == 0 or is_window_full(flow)
    accept(s, f, flow, group, sequence, echo)
    if used:
        grow(s, flow, group, sequence, echo)
    if flow.ecn_on == 1 and echo == 0:
        flow.at_one = 0
    if echo == 1:
        flow.ecn_on = 1
    if sequence == 0 and group.syn == 1:
        flow.window = flow.initial_window
