"""Selective acknowledgements: blocks at the receiver, a scoreboard and the pipe at the sender.

A block is the run of received packets around one that arrived out of order, `right` being the
number after the last; 0 there means no block. ACKs carry three at most, the newest first: RFC 2018.

The sender is Fall and Floyd's Sack1 as ns-2.35 has it: the pipe falls by one for each ACK, by two
for each partial one; retransmissions come first and go out once; one packet more is sent while the
pipe is below the window. After a recovery, or a timeout, the scoreboard is empty.

The scoreboard is a ring of numbers for each flow: the entry of the first packet of a block holds
the number of the packet after the block, every other entry 0. So a run of received packets is
skipped in one step. A receiver's blocks only grow, so that a new block holds the blocks on the
scoreboard that it touches, or lies outside of them.
"""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine import sending
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled

BLOCKS = r.BLOCKS
_BLOCK_SIZE = 8  # byte of an ACK for each block: two sequence numbers


@compiled
def _discard_between(s, flow, left, right):
    """Discard a receiver's blocks that lie between two numbers."""
    kept = 0
    for k in range(BLOCKS):
        block = r.block_at(s.receiver_blocks, BLOCKS * flow + k)
        if block.left < left or block.right > right:
            _copy(block, r.block_at(s.receiver_blocks, BLOCKS * flow + kept))
            kept += 1
    for k in range(kept, BLOCKS):
        empty = r.block_at(s.receiver_blocks, BLOCKS * flow + k)
        empty.left = empty.right = 0


@compiled
def _copy(block, other):
    other.left, other.right = block.left, block.right


@compiled
def _find_run(s, newest, flow, sequence):
    """The run of received packets around one of them."""
    ring = s.ring + flow * (s.ring_mask + 1)
    left, right = sequence, sequence + 1
    if newest.left <= sequence <= newest.right:  # the usual case, and no search then
        left = newest.left
    if newest.left <= right <= newest.right:
        right = newest.right
    while r.byte_at(ring, (left - 1) & s.ring_mask).value != 0:
        left -= 1
    while r.byte_at(ring, right & s.ring_mask).value != 0:
        right += 1
    return left, right


@part()
def report_blocks(s, index, flow, sequence, expected):
    """Write the blocks into the ACK of a packet that has arrived, and make it longer by them."""
    newest = r.block_at(s.receiver_blocks, BLOCKS * flow)
    if sequence > expected:
        left, right = _find_run(s, newest, flow, sequence)
        _discard_between(s, flow, left, right)
        for k in range(BLOCKS - 1, 0, -1):
            older = r.block_at(s.receiver_blocks, BLOCKS * flow + k)
            _copy(r.block_at(s.receiver_blocks, BLOCKS * flow + k - 1), older)
        newest.left, newest.right = left, right
    elif newest.right > 0:
        _discard_between(s, flow, 0, expected)
    for k in range(BLOCKS):
        block = r.block_at(s.receiver_blocks, BLOCKS * flow + k)
        _copy(block, r.block_at(s.ack_blocks, BLOCKS * index + k))
        if block.right > 0:
            r.packet_at(s.packets, index).size += _BLOCK_SIZE


@compiled
def _block_end(s, flow, sequence):
    """The scoreboard's entry for a packet."""
    return r.index_at(flow.scoreboard, sequence & s.ring_mask)


@compiled
def _remove_below(s, flow, end):
    """Take everything below packet `end` off the scoreboard; call before `acked` changes."""
    sequence = flow.acked + 1
    while sequence < min(end, flow.sacked_end):
        entry = _block_end(s, flow, sequence)
        if entry.value > sequence:
            flow.sacked -= entry.value - sequence
            sequence = entry.value
            entry.value = 0
        else:
            sequence += 1


@compiled
def clear_scoreboard(s, flow):
    """Empty the scoreboard; call before `acked` changes."""
    if flow.sacked > 0:
        _remove_below(s, flow, flow.sacked_end)
    flow.sacked_end = 0
    flow.resent_end = 0


@compiled
def _add_block(s, flow, left, right):
    """Put the packets from `left` up to `right` on the scoreboard; how many are new."""
    fresh, sequence = 0, left
    while sequence < right:
        entry = _block_end(s, flow, sequence)
        if entry.value > sequence:
            sequence, entry.value = entry.value, 0
        else:
            fresh += 1
            sequence += 1
    _block_end(s, flow, left).value = right
    flow.sacked += fresh
    flow.sacked_end = max(flow.sacked_end, right)
    if left < flow.resent_end < right:
        flow.resent_end = right
    return fresh


@compiled
def _read_blocks(s, flow, index):
    """Take in the blocks of an ACK; how many packets are new to the scoreboard."""
    fresh = 0
    for k in range(BLOCKS):
        block = r.block_at(s.ack_blocks, BLOCKS * index + k)
        if block.right > flow.acked + 1:
            fresh += _add_block(s, flow, block.left, block.right)
    return fresh


@compiled
def _next_hole(s, flow):
    """First packet not resent yet and missing below one that arrived; -1 for none."""
    if flow.sacked == 0:
        return -1
    sequence = max(flow.resent_end, flow.acked + 1)
    while sequence < flow.sacked_end:
        right = _block_end(s, flow, sequence).value
        if right <= sequence:
            break
        sequence = right
    flow.resent_end = sequence
    return sequence if sequence < flow.sacked_end else -1


@part(records="flow group")
def send_sack(s, f, flow, group, forced):
    """Send what the window, or in a recovery the pipe, allows: holes first."""
    if forced == 0 and flow.sending == 1:
        return
    while s.status == 0:
        recovering = flow.sack_state == r.RECOVERING
        if recovering:
            end = flow.acked + int(flow.advertised)
            if flow.pipe >= sending.allowed(flow, group):
                return
        else:
            end = flow.acked + sending.allowed(flow, group)
            if flow.next_sequence > end:
                return
        sequence = _next_hole(s, flow)
        resent = sequence >= 0
        if resent and (flow.recover <= 0 or sequence > flow.acked + int(flow.advertised)):
            return
        if not resent:
            sequence = flow.next_sequence
            if sequence > min(end, flow.limit):
                return
        if sending.must_wait(s, f, flow, group, forced) == 1:
            return
        if resent:
            flow.resent_end = sequence + 1
        sending.send(s, f, flow, group, sequence)
        flow.next_sequence = max(flow.next_sequence, sequence + 1)
        flow.pipe += 1


@compiled
def _enter_recovery(s, f, flow, group):
    """Fast retransmit: cut the window, unless a signal has just done so, and resend a packet."""
    fresh = flow.acked > flow.recover or flow.acked == 0
    if fresh or (group.one_fast_retransmit == 0 and flow.last_reaction != r.SIGNAL):
        sending.cut_for_loss(s, flow, group, 0)
    elif group.ecn_capable == 0 or flow.last_reaction != r.SIGNAL:
        return
    flow.last_reaction = r.FAST_RETRANSMIT
    flow.sack_state = r.RECOVERING
    flow.pipe = flow.highest_sent - flow.acked - group.dup_acks
    flow.resent_end = max(flow.resent_end, flow.acked + 2)
    sending.set_timer(s, f, flow, group)
    flow.timing = 0
    sending.send(s, f, flow, group, flow.acked + 1)


@compiled
def _take_ack_in_recovery(s, f, flow, group, index, sequence, echo):
    """Take an ACK during a recovery."""
    flow.pipe -= 1
    if sequence >= flow.recover:
        flow.recover = 0
        flow.sack_state = 0
        clear_scoreboard(s, flow)
        sending.accept(s, f, flow, group, sequence, echo)
    elif sequence > flow.acked:
        _remove_below(s, flow, sequence + 1)
        flow.acked = sequence
        _read_blocks(s, flow, index)
        flow.pipe -= 1
        sending.restart_timer(s, f, flow, group, sequence)
        flow.backoff = 1
    elif sequence == flow.acked:
        _read_blocks(s, flow, index)
    send_sack(s, f, flow, group, 0)


@part(records="flow group")
def receive_sack(s, f, flow, group, index, sequence, echo):
    """Take an ACK with blocks, in packet `index`: advance or repair, send."""
    if flow.sack_state == r.RECOVERING:
        _take_ack_in_recovery(s, f, flow, group, index, sequence, echo)
        return
    if sequence > flow.acked:
        clear_scoreboard(s, flow)
        flow.sack_state = 0
        sending.accept_and_grow(s, f, flow, group, sequence, echo)
    elif (
        sequence == flow.acked
        and flow.sack_state != r.RESTARTED
        and _read_blocks(s, flow, index) > 0
    ):
        flow.duplicates += 1
        if flow.duplicates == group.dup_acks:
            _enter_recovery(s, f, flow, group)
        elif flow.duplicates < group.dup_acks:
            sending.send_limited_transmit(s, f, flow, group)
    if flow.duplicates == 0:
        send_sack(s, f, flow, group, 0)


@part(records="flow")
def reset_sack(s, flow):
    """Forget everything for a timeout: duplicate ACKs mean nothing until new data arrive."""
    clear_scoreboard(s, flow)
    flow.sack_state = r.RESTARTED
