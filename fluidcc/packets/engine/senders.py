"""Senders: what ACKs and timers do; duplicate ACKs and recovery of Reno and NewReno. ns-2.35."""

from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.queues import arrived, release
from fluidcc.packets.engine.records import (
    ACKNOWLEDGE,
    ECHO,
    FAST,
    LEFT,
    MARKED,
    QUENCHED,
    SIGNAL,
    TIMEOUT,
    flow_at,
    group_at,
    packet_at,
)
from fluidcc.packets.engine.sack import fill, restart, take
from fluidcc.packets.engine.sending import advance, restart_timer, send, send_ahead, send_allowed
from fluidcc.packets.engine.timers import back_off, cancel_timer, reschedule, set_timer
from fluidcc.packets.engine.traces import note, note_timeout, note_window
from fluidcc.packets.engine.windows import (
    cut,
    hear,
    hear_quench,
    hold,
    observe,
    permit,
    set_tick,
    threshold_after,
    tick,
)


@compiled
def _partial(s, f, flow, group, sequence):
    """Take an ACK of part of the window in NewReno's recovery: resend the next hole."""
    if flow.partial == 0 or group.partial_timer_once == 0:
        flow.partial = 1
        restart_timer(s, f, flow, group, sequence)
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
    send(s, f, flow, group, sequence + 1)


@compiled
def _retransmit(s, f, flow, group):
    """Answer the duplicate ACK that means a loss."""
    again = group.newreno == 0 and flow.action == FAST
    fresh = flow.acked > flow.recover or flow.acked == 0 or again
    if fresh or (group.one_fast_retransmit == 0 and flow.action != SIGNAL):
        flow.recover = flow.highest_sent
        flow.action = FAST
        flow.recoveries += 1
        target = cut(s, flow, group, group.on_loss, flow.inflation)
        flow.threshold = threshold_after(target)
        flow.window = max(target, group.floor)
        flow.confirm = 1
    elif group.markable == 1 and flow.action == SIGNAL:
        flow.action = FAST
    else:
        return
    set_timer(s, f, flow, group)
    flow.timing = 0
    send(s, f, flow, group, flow.acked + 1)
    flow.inflation = group.dup_acks


@compiled
def _duplicate(s, f, flow, group):
    """Take a duplicate ACK."""
    flow.duplicates += 1
    if flow.duplicates == group.dup_acks:
        _retransmit(s, f, flow, group)
    elif flow.duplicates > group.dup_acks:
        if flow.action == FAST:
            flow.inflation += 1
    else:
        send_ahead(s, f, flow, group)


@compiled
def _measure(s, flow, group, packet):
    """Account for the packet that an ACK stands for."""
    hold(s, flow, group)
    flow.acks += 1
    flow.rtt = s.now - packet.sent
    flow.rtt_sum += flow.rtt
    flow.window_acks += min(flow.window, group.receiver_window)
    delay = packet.delay
    flow.delay_sum += delay
    flow.delay_squares += delay * delay
    if flow.heard == 1:
        flow.steps += 1
        flow.delay_steps += abs(delay - flow.last_delay)
    flow.heard = 1
    flow.last_delay = delay


@inlined
def _take(s, f, flow, group, sequence, echo):
    """Take an ACK without blocks: advance or repair, send."""
    if sequence > flow.acked:
        if group.newreno == 1 and flow.action == FAST and sequence < flow.recover:
            _partial(s, f, flow, group, sequence)
        else:
            if flow.action == FAST and (flow.inflation > 0 or group.newreno == 0):
                flow.action = LEFT
            flow.inflation = 0
            flow.partial = 0
            advance(s, f, flow, group, sequence, echo)
    elif sequence == flow.acked:
        _duplicate(s, f, flow, group)
    if flow.duplicates == 0:
        send_allowed(s, f, flow, group, 0, 0)
    elif flow.duplicates >= group.dup_acks:
        send_allowed(s, f, flow, group, group.recovery_burst, 0)


@inlined
def acknowledge(s, index):
    """Take an ACK: react to its echo, advance or repair, send."""
    packet = packet_at(s.packets, index)
    f = packet.flow
    flow = flow_at(s.flows, f)
    group = group_at(s.groups, flow.group)
    if s.trace != 0:
        note(s, ACKNOWLEDGE, -1, packet)
    if packet.connection != flow.connection:  # left over from before
        release(s, index)
        return
    sequence = packet.sequence
    echo = 1 if packet.flags & ECHO else 0
    _measure(s, flow, group, packet)
    if group.loads == 1:
        flow.load = packet.load
    if group.permit != 0:
        permit(flow, group, 1 if packet.flags & MARKED else 0)
    release(s, index)
    if group.observe != 0:
        observe(s, flow, group, echo)
    if echo == 1 and flow.capable == 1:
        hear(s, flow, group, sequence)
    if group.sack == 1:
        take(s, f, flow, group, index, sequence, echo)
    else:
        _take(s, f, flow, group, sequence, echo)
    flow.acked_at = s.now
    if s.trace != 0:
        note_window(s, f, flow)
    if flow.acked >= flow.limit:
        s.done = f


@part()
def quenched(s, entity):
    """Take the source quench that has come."""
    index = arrived(s, entity)
    packet = packet_at(s.packets, index)
    flow = flow_at(s.flows, packet.flow)
    group = group_at(s.groups, flow.group)
    if s.trace != 0:
        note(s, QUENCHED, -1, packet)
    if packet.connection == flow.connection:
        hold(s, flow, group)
        hear_quench(s, flow, group, packet.sequence, 0 if packet.flags & MARKED else 1)
        if s.trace != 0:
            note_window(s, packet.flow, flow)
    release(s, index)


@compiled
def _send_more(s, f, flow, group, forced):
    """Send what may be sent now; `forced` where it has waited already."""
    if group.sack == 1:
        fill(s, f, flow, group, forced)
    else:
        send_allowed(s, f, flow, group, 0, forced)


@compiled
def _expire(s, f, flow, group):
    """Answer the retransmission timer: start over from one packet."""
    nothing_out = flow.acked == flow.highest_sent
    if nothing_out and group.window_validation == 1 and flow.window >= 1:
        cancel_timer(flow)  # what is sent next tells for how long the sender was idle
        return
    hold(s, flow, group)
    if s.trace != 0:
        note_timeout(s, f, flow)
    flow.inflation = 0
    flow.duplicates = 0
    flow.window = max(flow.window, 1.0)
    flow.recover = flow.highest_sent
    if flow.acked < 0:
        flow.initial_window = 1.0
    if not nothing_out and flow.action != SIGNAL:
        flow.timeouts += 1
        flow.threshold = threshold_after(cut(s, flow, group, group.on_loss, 0))
    flow.window = 1.0
    flow.confirm = 1
    if not nothing_out:
        back_off(flow, group)
    set_timer(s, f, flow, group)
    flow.next_sequence = flow.acked + 1
    flow.timing = 0
    flow.action = TIMEOUT
    if group.sack == 1:
        restart(s, flow)
    _send_more(s, f, flow, group, 0)


@compiled
def start(s, f, flow, group):
    """Begin a connection."""
    flow.started = 1
    flow.changed = s.now
    flow.began = s.now
    flow.acked_at = s.now
    flow.full_at = s.now
    flow.sent_at = s.now
    if group.period != 0:
        set_tick(s, flow, group)
    send_allowed(s, f, flow, group, 0, 0)


@compiled
def wake(s, f):
    """Do what a sender's entry in the calendar is for: start, send late, or time out."""
    flow = flow_at(s.flows, f)
    group = group_at(s.groups, flow.group)
    if flow.started == 0:
        start(s, f, flow, group)
    elif flow.sending == 1 and flow.send_at <= s.now:
        flow.sending = 0
        _send_more(s, f, flow, group, 1)
    elif flow.deadline <= s.now:
        _expire(s, f, flow, group)
    elif flow.tick_at <= s.now:
        tick(s, flow, group)
        _send_more(s, f, flow, group, 0)
    reschedule(s, f, flow)
    if s.trace != 0:
        note_window(s, f, flow)
