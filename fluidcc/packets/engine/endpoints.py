"""Ends of a connection: the receiver, with reassembly, the ECN echo, one ACK for each packet and
decoded load factors; the sender, with its reactions to ACKs and timers, and the recovery of Reno
and NewReno. ns-2.35, RFC 6582.
"""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine import sending
from fluidcc.packets.engine.calendar import put_on_wire, release, schedule, take_from_wire
from fluidcc.packets.engine.delays import count_delay
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.sack import receive_sack, report_blocks, reset_sack, send_sack
from fluidcc.packets.engine.streams import hashed
from fluidcc.packets.engine.traces import trace_packet, trace_sender, trace_window


@compiled
def _decode(group, estimate, hash_value, load):
    """The estimate after a packet with a hash of `hash_value` from links at `load`."""
    block = group.decode_block
    r.number_at(block, r.E_ESTIMATE).value = estimate
    r.number_at(block, r.E_HASHED).value = hash_value
    r.number_at(block, r.E_LOAD).value = load
    call(group.decode, block)
    return r.number_at(block, r.E_ESTIMATE).value


@part(records="flow group receiver packet")
def decode_load(s, flow, group, receiver, packet, index):
    """Update the estimated load factor by a data packet, and write it into the ACK.

    The rule asks no more of the load than whether the hash is below it. A (11) mark of any router
    hides that bit, so its hash counts as 1, above every load factor. A mark that is taken for the
    largest load counts from the next packet on: the sender reacts to the mark itself by the
    estimate before it.
    """
    load = r.number_at(s.numbers, r.ROOM * index + r.LOAD)
    if packet.flags & r.ECT:
        marked = packet.flags & r.CE
        hash_value = 1.0 if marked else hashed(flow.hash_key, packet.identity)
        receiver.estimate = _decode(group, receiver.estimate, hash_value, load.value)
        load.value = receiver.estimate
        if marked and group.marks_tell_load == 1:
            receiver.estimate = _decode(group, receiver.estimate, hash_value, r.NEVER)
    else:
        load.value = receiver.estimate


@part(records="flow group")
def take_numbers(s, flow, group, index):
    """Keep the numbers in a packet, behind the flow's memory of its law."""
    for k in range(group.written):
        number = r.number_at(s.numbers, r.ROOM * index + k)
        r.number_at(flow.memory, group.states + k).value = number.value


@compiled
def _reassemble(s, receiver, flow, sequence):
    ring = s.ring + flow * (s.ring_mask + 1)
    if sequence == receiver.expected:
        receiver.expected += 1
        while r.byte_at(ring, receiver.expected & s.ring_mask).value != 0:
            r.byte_at(ring, receiver.expected & s.ring_mask).value = 0
            receiver.expected += 1
    elif sequence > receiver.expected:
        if sequence - receiver.expected >= s.ring_mask:
            s.status = r.WINDOW_BEYOND_RING
        else:
            r.byte_at(ring, sequence & s.ring_mask).value = 1


@compiled
def _ece_flag(receiver, group, flags):
    """ECE flag for a packet: of its own CE mark, or repeated until CWR arrives. RFC 3168, 6.1.3."""
    if flags & r.SYN:
        return group.ecn_echo
    if group.echo_until_cwr == 0:
        return 1 if flags & r.CE else 0
    if flags & r.CWR:
        receiver.echo = 0
    if flags & r.CE:
        receiver.echo = 1
    return receiver.echo if flags & r.ECT else 0


@compiled
def _send_ack(s, flow, index):
    """Send an ACK back now."""
    wire = r.wire_at(s.wires, r.entity_at(s.entities, flow.return_wire).index)
    put_on_wire(s, flow.return_wire, index, s.now + wire.delay, s.now)


@part()
def delay_ack(s, index):
    """Send the ACK of a packet that arrives now, or hold it until another packet or the timer.

    At once go the ACKs of every second packet, of a SYN and the last packet of a file, of packets
    out of order, and of those that fill a gap or a part of one. RFC 5681, 4.2. If the ECN echo
    changes, the ACK that is held goes first, with its own. RFC 8257, 3.2.
    """
    packet = r.packet_at(s.packets, index)
    f, sequence = packet.flow, packet.identity
    flow, receiver = r.flow_at(s.flows, f), r.receiver_at(s.receivers, f)
    in_order = sequence >= receiver.end and packet.sequence == sequence
    receiver.end = max(receiver.end, sequence + 1)
    held, second = receiver.held - 1, 0
    if held >= 0:
        receiver.held = 0
        if (r.packet_at(s.packets, held).flags ^ packet.flags) & r.ECE:
            _send_ack(s, flow, held)
        else:
            release(s, held)
            second = 1
    if in_order and second == 0 and 0 < sequence < flow.limit:
        receiver.held = index + 1
        ack_delay = r.group_at(s.groups, flow.group).ack_delay
        schedule(s, receiver.ack_timer, s.now + ack_delay, s.now)
    else:
        schedule(s, receiver.ack_timer, r.NEVER, s.now)
        _send_ack(s, flow, index)


@part()
def send_delayed_ack(s, entity):
    """Send the ACK that a receiver has held until its timer fires."""
    f = r.entity_at(s.entities, entity).index
    receiver = r.receiver_at(s.receivers, f)
    held = receiver.held - 1
    receiver.held = 0
    schedule(s, entity, r.NEVER, s.now)
    _send_ack(s, r.flow_at(s.flows, f), held)


@inlined
def receive(s, index, start, spent):
    """Take a data packet, and send its ACK back.

    Its last transmission took `spent` from `start`; what is left of its path is `tail_delay`.
    """
    packet = r.packet_at(s.packets, index)
    flow = r.flow_at(s.flows, packet.flow)
    receiver = r.receiver_at(s.receivers, packet.flow)
    group = r.group_at(s.groups, flow.group)
    flow.received += 1
    if s.trace != 0:
        trace_packet(s, r.RECEIVE, -1, packet)
    current = packet.connection == flow.connection
    sequence, echo = packet.sequence, 0
    if current:  # packets of an earlier connection are acknowledged as well, but change nothing
        _reassemble(s, receiver, packet.flow, sequence)
        echo = _ece_flag(receiver, group, packet.flags)
        if group.loads == 1:
            decode_load(s, flow, group, receiver, packet, index)
        packet.sequence = receiver.expected - 1
    packet.flags = r.ACK
    if echo == 1 and group.ecn_echo == 1:
        packet.flags |= r.ECE
    if group.moment == r.REVERSE:
        packet.flags |= r.ECT
    packet.identity = sequence
    packet.size = group.ack_size
    if current and group.sack == 1:
        report_blocks(s, index, packet.flow, sequence, receiver.expected)
    time = start + (spent + flow.tail_delay)
    packet.delay = time - packet.sent
    if current and group.delayed_acks == 1:
        delay_ack(s, index)
        return
    wire = r.wire_at(s.wires, r.entity_at(s.entities, flow.return_wire).index)
    put_on_wire(s, flow.return_wire, index, time + wire.delay, time)


@compiled
def _take_partial_ack(s, f, flow, group, sequence):
    """Take a partial ACK in NewReno's recovery: resend the next hole. RFC 6582, 3.2."""
    if flow.partial == 0 or group.partial_timer_once == 0:
        flow.partial = 1
        sending.restart_timer(s, f, flow, group, sequence)
    covered = sequence - flow.acked
    if group.partial_deflation == 0:
        flow.inflation = 0
    elif flow.inflation > covered:
        flow.inflation -= covered - 1
    else:
        flow.window = max(flow.window - (covered - flow.inflation), 1.0)
        flow.inflation = 1
    flow.acked = sequence
    flow.next_sequence = max(flow.next_sequence, sequence + 1)
    if flow.timing == 1 and sequence >= flow.timed_sequence:
        flow.timing = 0
        flow.backoff = 1
    sending.send(s, f, flow, group, sequence + 1)


@compiled
def _retransmit(s, f, flow, group):
    """Fast retransmit: cut the window, unless a signal has just done so, and resend a packet."""
    again = group.newreno == 0 and flow.last_reaction == r.FAST_RETRANSMIT
    fresh = flow.acked > flow.recover or flow.acked == 0 or again
    if fresh or (group.one_fast_retransmit == 0 and flow.last_reaction != r.SIGNAL):
        sending.cut_for_loss(s, flow, group, flow.inflation)
    elif group.ecn_capable == 0 or flow.last_reaction != r.SIGNAL:
        return
    flow.last_reaction = r.FAST_RETRANSMIT
    sending.set_timer(s, f, flow, group)
    flow.timing = 0
    sending.send(s, f, flow, group, flow.acked + 1)
    flow.inflation = group.dup_acks


@compiled
def _take_duplicate_ack(s, f, flow, group):
    """Take a duplicate ACK."""
    flow.duplicates += 1
    if flow.duplicates == group.dup_acks:
        _retransmit(s, f, flow, group)
    elif flow.duplicates > group.dup_acks:
        if flow.last_reaction == r.FAST_RETRANSMIT:
            flow.inflation += 1
    else:
        sending.send_limited_transmit(s, f, flow, group)


@compiled
def _measure(s, flow, group, packet):
    """Measure round trip, delay and window by the packet that an ACK answers."""
    sending.integrate_window(s, flow, group)
    flow.acks += 1
    flow.rtt = s.now - packet.sent
    flow.rtt_sum += flow.rtt
    count_delay(group.rtts, flow.rtt)
    flow.window_acks += min(flow.window, group.receiver_window)
    delay = packet.delay
    flow.delay_sum += delay
    flow.delay_squares += delay * delay
    if flow.delay_known == 1:
        flow.ipdv_count += 1
        flow.ipdv_sum += abs(delay - flow.last_delay)
    flow.delay_known = 1
    flow.last_delay = delay


@inlined
def _take_ack(s, f, flow, group, sequence, echo):
    """Take an ACK without SACK blocks: accept or repair, then send."""
    if sequence > flow.acked:
        if (
            group.newreno == 1
            and flow.last_reaction == r.FAST_RETRANSMIT
            and sequence < flow.recover
        ):
            _take_partial_ack(s, f, flow, group, sequence)
        else:
            if flow.last_reaction == r.FAST_RETRANSMIT and (
                flow.inflation > 0 or group.newreno == 0
            ):
                flow.last_reaction = r.RECOVERED
            flow.inflation = 0
            flow.partial = 0
            sending.accept_and_grow(s, f, flow, group, sequence, echo)
    elif sequence == flow.acked:
        _take_duplicate_ack(s, f, flow, group)
    if flow.duplicates == 0:
        sending.send_allowed(s, f, flow, group, 0, 0)
    elif flow.duplicates >= group.dup_acks:
        sending.send_allowed(s, f, flow, group, group.recovery_burst, 0)


@inlined
def receive_ack(s, index):
    """Take an ACK: react to its ECE, accept or repair, then send."""
    packet = r.packet_at(s.packets, index)
    f = packet.flow
    flow = r.flow_at(s.flows, f)
    group = r.group_at(s.groups, flow.group)
    if s.trace != 0:
        trace_packet(s, r.ACKNOWLEDGE, -1, packet)
    if packet.connection != flow.connection:  # of an earlier connection
        release(s, index)
        return
    sequence = packet.sequence
    echo = 1 if packet.flags & r.ECE else 0
    _measure(s, flow, group, packet)
    if group.measures == 1:
        sending.measure(s, flow, group, index)
    if group.written > 0:
        take_numbers(s, flow, group, index)
    if group.advertise != 0:
        sending.read_advertised_window(flow, group, 1 if packet.flags & r.CE else 0)
    release(s, index)
    if group.observe != 0:
        sending.observe(s, flow, group, echo)
    if echo == 1 and flow.ecn_on == 1:
        sending.react_to_mark(s, flow, group, sequence)
    if group.sack == 1:
        receive_sack(s, f, flow, group, index, sequence, echo)
    else:
        _take_ack(s, f, flow, group, sequence, echo)
    flow.acked_at = s.now
    if s.trace != 0:
        trace_window(s, f, flow)
    if flow.acked >= flow.limit:
        s.finished_flow = f


@part()
def receive_quench(s, entity):
    """Take a source quench at the sender."""
    index = take_from_wire(s, entity)
    packet = r.packet_at(s.packets, index)
    flow = r.flow_at(s.flows, packet.flow)
    group = r.group_at(s.groups, flow.group)
    if s.trace != 0:
        trace_packet(s, r.QUENCHED, -1, packet)
    if packet.connection == flow.connection:
        sending.integrate_window(s, flow, group)
        sending.react_to_quench(s, flow, group, packet.sequence, 0 if packet.flags & r.CE else 1)
        if s.trace != 0:
            trace_window(s, packet.flow, flow)
    release(s, index)


@compiled
def _send_more(s, f, flow, group, forced):
    """Send what may be sent now; `forced` is 1 if it has waited for its overhead."""
    if group.sack == 1:
        send_sack(s, f, flow, group, forced)
    else:
        sending.send_allowed(s, f, flow, group, 0, forced)


@compiled
def _time_out(s, f, flow, group):
    """Handle the retransmission timer: start over from one packet."""
    nothing_out = flow.acked == flow.highest_sent
    if nothing_out and group.window_validation == 1 and flow.window >= 1:
        sending.cancel_timer(flow)  # the next packet tells how long the sender was idle
        return
    sending.integrate_window(s, flow, group)
    if s.trace != 0:
        trace_sender(s, r.EXPIRE, f, flow, flow.acked + 1)
    flow.inflation = 0
    flow.duplicates = 0
    flow.window = max(flow.window, 1.0)
    flow.recover = flow.highest_sent
    if flow.acked < 0:
        flow.initial_window = 1.0
    if not nothing_out and flow.last_reaction != r.SIGNAL:
        flow.timeouts += 1
        flow.ssthresh = sending.ssthresh_after(sending.cut_window(s, flow, group, group.on_loss, 0))
    flow.window = 1.0
    flow.cwr_due = 1
    if not nothing_out:
        sending.back_off(flow, group)
    sending.set_timer(s, f, flow, group)
    flow.next_sequence = flow.acked + 1
    flow.timing = 0
    flow.last_reaction = r.TIMEOUT
    if group.sack == 1:
        reset_sack(s, flow)
    _send_more(s, f, flow, group, 0)


@compiled
def start_connection(s, f, flow, group):
    """Begin a connection."""
    flow.started = 1
    flow.changed = s.now
    flow.connected_at = s.now
    flow.acked_at = s.now
    flow.full_at = s.now
    flow.sent_at = s.now
    if group.period != 0:
        sending.set_tick(s, flow, group)
    sending.send_allowed(s, f, flow, group, 0, 0)


@compiled
def wake(s, f):
    """Handle a sender's entry in the calendar: start, send late, time out, or tick."""
    flow = r.flow_at(s.flows, f)
    group = r.group_at(s.groups, flow.group)
    if flow.started == 0:
        start_connection(s, f, flow, group)
    elif flow.sending == 1 and flow.send_at <= s.now:
        flow.sending = 0
        _send_more(s, f, flow, group, 1)
    elif flow.deadline <= s.now:
        _time_out(s, f, flow, group)
    elif flow.tick_at <= s.now:
        sending.tick_window(s, flow, group)
        _send_more(s, f, flow, group, 0)
    sending.reschedule(s, f, flow)
    if s.trace != 0:
        trace_window(s, f, flow)
