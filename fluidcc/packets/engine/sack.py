"""Recovery by selective acknowledgements: a scoreboard and an estimate of the pipe.

What follows is Fall and Floyd's Sack1 as ns-2.35 has it: the pipe falls by one for each ACK, by
two for each partial one; retransmissions come first and go out once; one packet more is sent
while the pipe is below the window. After a recovery, or a timeout, the scoreboard is empty.

The scoreboard is a ring of numbers a flow: where a block of received packets begins stands the
number of the packet behind it, everywhere else 0. A receiver's block of packets only grows, so
blocks in the scoreboard lie inside new ones or outside.
"""

from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.records import (
    FAST,
    RECOVERING,
    RESTARTED,
    SIGNAL,
    index_at,
    report_at,
)
from fluidcc.packets.engine.sending import accept, advance, delayed, restart_timer, send, send_ahead
from fluidcc.packets.engine.timers import set_timer
from fluidcc.packets.engine.windows import allowed, cut, threshold_after


@compiled
def _behind(s, flow, sequence):
    """The scoreboard's entry for a packet."""
    return index_at(flow.scoreboard, sequence & s.ring_mask)


@compiled
def _forget(s, flow, end):
    """Take everything below packet `end` off the scoreboard; call before `acked` changes."""
    sequence = flow.acked + 1
    while sequence < min(end, flow.known_end):
        entry = _behind(s, flow, sequence)
        if entry.value > sequence:
            flow.known -= entry.value - sequence
            sequence = entry.value
            entry.value = 0
        else:
            sequence += 1


@compiled
def clear(s, flow):
    """Empty the scoreboard; call before `acked` changes."""
    if flow.known > 0:
        _forget(s, flow, flow.known_end)
    flow.known_end = 0
    flow.repaired = 0


@compiled
def _enter(s, flow, left, right):
    """Put the packets from `left` up to `right` on the scoreboard; how many are new."""
    fresh, sequence = 0, left
    while sequence < right:
        entry = _behind(s, flow, sequence)
        if entry.value > sequence:
            sequence, entry.value = entry.value, 0
        else:
            fresh += 1
            sequence += 1
    _behind(s, flow, left).value = right
    flow.known += fresh
    flow.known_end = max(flow.known_end, right)
    if left < flow.repaired < right:
        flow.repaired = right
    return fresh


@compiled
def _learn(s, flow, index):
    """Take in the blocks that an ACK tells; how many packets were not known of."""
    report, fresh = report_at(s.reports, index), 0
    if report.right > flow.acked + 1:
        fresh += _enter(s, flow, report.left, report.right)
    if report.second_right > flow.acked + 1:
        fresh += _enter(s, flow, report.second_left, report.second_right)
    if report.third_right > flow.acked + 1:
        fresh += _enter(s, flow, report.third_left, report.third_right)
    return fresh


@compiled
def _next_hole(s, flow):
    """First packet not resent yet and missing below one that arrived; -1 for none."""
    if flow.known == 0:
        return -1
    sequence = max(flow.repaired, flow.acked + 1)
    while sequence < flow.known_end:
        right = _behind(s, flow, sequence).value
        if right <= sequence:
            break
        sequence = right
    flow.repaired = sequence
    return sequence if sequence < flow.known_end else -1


@part(records="flow group")
def fill(s, f, flow, group, forced):
    """Send what the window, or in a recovery the pipe, allows: holes first."""
    if forced == 0 and flow.sending == 1:
        return
    while s.status == 0:
        recovering = flow.repairing == RECOVERING
        if recovering:
            end = flow.acked + int(flow.permitted)
            if flow.pipe >= int(flow.window):
                return
        else:
            end = flow.acked + allowed(flow)
            if flow.next_sequence > end:
                return
        sequence = _next_hole(s, flow)
        resent = sequence >= 0
        if resent and (flow.recover <= 0 or sequence > flow.acked + int(flow.permitted)):
            return
        if not resent:
            sequence = flow.next_sequence
            if sequence > min(end, flow.limit):
                return
        if delayed(s, f, flow, group, forced) == 1:
            return
        if resent:
            flow.repaired = sequence + 1
        send(s, f, flow, group, sequence)
        flow.next_sequence = max(flow.next_sequence, sequence + 1)
        flow.pipe += 1


@compiled
def _begin(s, f, flow, group):
    """Answer the duplicate ACK that means a loss: cut, unless a signal has done so, and resend."""
    fresh = flow.acked > flow.recover or flow.acked == 0
    if fresh or (group.one_fast_retransmit == 0 and flow.action != SIGNAL):
        flow.recover = flow.highest_sent
        flow.recoveries += 1
        target = cut(s, flow, group, group.on_loss, 0)
        flow.threshold = threshold_after(target)
        flow.window = max(target, group.floor)
        flow.confirm = 1
    elif group.markable == 0 or flow.action != SIGNAL:
        return
    flow.action = FAST
    flow.repairing = RECOVERING
    flow.pipe = flow.highest_sent - flow.acked - group.dup_acks
    flow.repaired = max(flow.repaired, flow.acked + 2)
    set_timer(s, f, flow, group)
    flow.timing = 0
    send(s, f, flow, group, flow.acked + 1)


@compiled
def _recover(s, f, flow, group, index, sequence, echo):
    """Take an ACK during a recovery."""
    flow.pipe -= 1
    if sequence >= flow.recover:
        flow.recover = 0
        flow.repairing = 0
        clear(s, flow)
        accept(s, f, flow, group, sequence, echo)
    elif sequence > flow.acked:
        _forget(s, flow, sequence + 1)
        flow.acked = sequence
        _learn(s, flow, index)
        flow.pipe -= 1
        restart_timer(s, f, flow, group, sequence)
        flow.backoff = 1
    elif sequence == flow.acked:
        _learn(s, flow, index)
    fill(s, f, flow, group, 0)


@part(records="flow group")
def take(s, f, flow, group, index, sequence, echo):
    """Take an ACK with blocks, in packet `index`: advance or repair, send."""
    if flow.repairing == RECOVERING:
        _recover(s, f, flow, group, index, sequence, echo)
        return
    if sequence > flow.acked:
        clear(s, flow)
        flow.repairing = 0
        advance(s, f, flow, group, sequence, echo)
    elif sequence == flow.acked and flow.repairing != RESTARTED and _learn(s, flow, index) > 0:
        flow.duplicates += 1
        if flow.duplicates == group.dup_acks:
            _begin(s, f, flow, group)
        elif flow.duplicates < group.dup_acks:
            send_ahead(s, f, flow, group)
    if flow.duplicates == 0:
        fill(s, f, flow, group, 0)


@part(records="flow")
def restart(s, flow):
    """Forget everything for a timeout: duplicate ACKs mean nothing until new data arrive."""
    clear(s, flow)
    flow.repairing = RESTARTED
