"""Receivers: reassembly, the ECN echo, one ACK for each packet, and decoded load factors."""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.queues import put_on_wire
from fluidcc.packets.engine.sack import report_blocks
from fluidcc.packets.engine.streams import hashed
from fluidcc.packets.engine.traces import trace_packet


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
def decode_load(s, flow, group, receiver, packet):
    """Update the estimated load factor by a data packet, and write it into the ACK.

    The rule asks no more of the load than whether the hash is below it. A (11) mark of any router
    hides that bit, so its hash counts as 1, above every load factor. A mark that is taken for the
    largest load counts from the next packet on: the sender reacts to the mark itself by the
    estimate before it.
    """
    if packet.flags & r.ECT:
        marked = packet.flags & r.CE
        hash_value = 1.0 if marked else hashed(flow.hash_key, packet.identity)
        receiver.estimate = _decode(group, receiver.estimate, hash_value, packet.load)
        packet.load = receiver.estimate
        if marked and group.marks_tell_load == 1:
            receiver.estimate = _decode(group, receiver.estimate, hash_value, r.NEVER)
    else:
        packet.load = receiver.estimate


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
            decode_load(s, flow, group, receiver, packet)
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
    wire = r.wire_at(s.wires, r.entity_at(s.entities, flow.return_wire).index)
    put_on_wire(s, flow.return_wire, index, time + wire.delay, time)
