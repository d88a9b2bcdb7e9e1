"""Senders: sending, duplicate ACKs, recovery and timeouts of Reno and NewReno, as in ns-2.35."""

from fluidcc.packets.pointer import compiled
from fluidcc.packets.ports import arrive
from fluidcc.packets.queues import allocate, release, travel
from fluidcc.packets.records import (
    CONFIRM,
    ECHO,
    FAST,
    LEFT,
    MARKABLE,
    MARKED,
    NEVER,
    PORT,
    SETUP,
    SIGNAL,
    TIMEOUT,
    entity_at,
    flow_at,
    group_at,
    index_at,
    packet_at,
)
from fluidcc.packets.streams import draw
from fluidcc.packets.timers import (
    back_off,
    cancel_timer,
    reschedule,
    set_timer,
    take_sample,
)
from fluidcc.packets.windows import (
    allowed,
    cut,
    grow,
    hear,
    hold,
    observe,
    permit,
    threshold_after,
)


@compiled
def _send(s, f, flow, group, sequence):
    """Send one data packet and see to its timing."""
    index = allocate(s)
    if index < 0:
        return
    packet = packet_at(s.packets, index)
    packet.flow = f
    packet.sequence = sequence
    packet.sent = s.now
    packet.hop = 1
    packet.size = group.size
    packet.flags = MARKABLE if group.markable == 1 else 0
    if flow.confirm == 1:
        packet.flags |= CONFIRM
        flow.confirm = 0
    if sequence == 0 and group.syn == 1:
        packet.size = group.syn_size
        packet.flags = SETUP
    nothing_out = flow.acked == flow.highest_sent
    flow.sent += 1
    if sequence > flow.highest_sent:
        flow.highest_sent = sequence
        if flow.timing == 0:
            flow.timing = 1
            if sequence > flow.timed_sequence:
                flow.timed_sequence = sequence
                flow.timed_at = s.now
    if flow.deadline >= NEVER or nothing_out:
        set_timer(s, f, flow, group)
    first = index_at(s.routes, f * s.hops).value
    if entity_at(s.entities, first).kind == PORT:
        arrive(s, first, index)
    else:
        travel(s, first, index, s.now, 0.0)


@compiled
def _send_allowed(s, f, flow, group, burst, forced):
    """Send what the window allows: at most `burst` packets, or any number for 0."""
    if forced == 0 and flow.sending == 1:
        return
    count = 0
    while flow.next_sequence <= flow.acked + allowed(flow) and s.status == 0:
        if group.overhead > 0 and forced == 0:
            flow.sending = 1
            flow.send_at = s.now + draw(flow) * group.overhead
            reschedule(s, f, flow)
            return
        _send(s, f, flow, group, flow.next_sequence)
        flow.next_sequence += 1
        forced = 0
        count += 1
        if count == burst:
            return


@compiled
def _restart_timer(s, f, flow, group, sequence):
    """After an ACK: wait for the rest, or for the timer alone where the window is below 1."""
    if flow.next_sequence > sequence or sequence < flow.highest_sent or flow.window < 1:
        set_timer(s, f, flow, group)
    else:
        cancel_timer(flow)


@compiled
def _advance(s, f, flow, group, sequence, echo):
    """Take an ACK of new data outside recovery, or the one that ends it."""
    flow.duplicates = 0
    flow.acked = sequence
    flow.next_sequence = max(flow.next_sequence, sequence + 1)
    if flow.timing == 1 and sequence >= flow.timed_sequence:
        if flow.capable == 0 or flow.at_one == 0 or echo == 0:
            flow.backoff = 1
            flow.at_one = 0
        flow.timing = 0
        take_sample(s, flow, group)
    _restart_timer(s, f, flow, group, sequence)
    grow(s, flow, group, sequence, echo)
    if flow.capable == 1 and echo == 0:
        flow.at_one = 0
    if echo == 1:
        flow.capable = 1
    if sequence == 0 and group.syn == 1:
        flow.window = flow.initial_window


@compiled
def _partial(s, f, flow, group, sequence):
    """Take an ACK of part of the window in NewReno's recovery: resend the next hole."""
    if flow.partial == 0 or group.partial_timer_once == 0:
        flow.partial = 1
        _restart_timer(s, f, flow, group, sequence)
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
    _send(s, f, flow, group, sequence + 1)


@compiled
def _retransmit(s, f, flow, group):
    """Answer the duplicate ACK that means a loss."""
    again = group.newreno == 0 and flow.action == FAST
    fresh = flow.acked > flow.recover or flow.acked == 0 or again
    if fresh or (group.one_fast_retransmit == 0 and flow.action != SIGNAL):
        flow.recover = flow.highest_sent
        flow.action = FAST
        flow.recoveries += 1
        target = cut(s, flow, group, group.on_loss)
        flow.threshold = threshold_after(target)
        flow.window = max(target, group.floor)
        flow.confirm = 1
    elif group.markable == 1 and flow.action == SIGNAL:
        flow.action = FAST
    else:
        return
    set_timer(s, f, flow, group)
    flow.timing = 0
    _send(s, f, flow, group, flow.acked + 1)
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
    elif group.limited_transmit == 1:
        ahead = flow.next_sequence - flow.acked
        if ahead <= flow.permitted and ahead <= flow.window + flow.duplicates:
            _send(s, f, flow, group, flow.next_sequence)
            flow.next_sequence += 1


@compiled
def _measure(s, flow, group, sent):
    """Account for the packet that an ACK stands for."""
    hold(s, flow, group)
    flow.acks += 1
    flow.rtt = s.now - sent
    flow.rtt_sum += flow.rtt
    flow.window_acks += min(flow.window, group.receiver_window)
    delay = flow.rtt - flow.return_delay
    flow.delay_sum += delay
    flow.delay_squares += delay * delay
    flow.delay_steps += abs(delay - flow.last_delay)
    flow.last_delay = delay


@compiled
def acknowledge(s, index):
    """Take an ACK: react to its echo, advance or repair, send."""
    packet = packet_at(s.packets, index)
    f = packet.flow
    flow = flow_at(s.flows, f)
    group = group_at(s.groups, flow.group)
    sequence = packet.sequence
    echo = 1 if packet.flags & ECHO else 0
    _measure(s, flow, group, packet.sent)
    if group.permit != 0:
        permit(flow, group, 1 if packet.flags & MARKED else 0)
    release(s, index)
    if group.observe != 0:
        observe(s, flow, group, echo)
    if echo == 1 and flow.capable == 1:
        hear(s, flow, group, sequence)
    if sequence > flow.acked:
        if group.newreno == 1 and flow.action == FAST and sequence < flow.recover:
            _partial(s, f, flow, group, sequence)
        else:
            if flow.action == FAST and (flow.inflation > 0 or group.newreno == 0):
                flow.action = LEFT
            flow.inflation = 0
            flow.partial = 0
            _advance(s, f, flow, group, sequence, echo)
    elif sequence == flow.acked:
        _duplicate(s, f, flow, group)
    flow.acked_at = s.now
    if flow.duplicates == 0:
        _send_allowed(s, f, flow, group, 0, 0)
    elif flow.duplicates >= group.dup_acks:
        _send_allowed(s, f, flow, group, 2 if group.newreno == 1 else 0, 0)


@compiled
def quenched(s, index):
    """Take a source quench."""
    packet = packet_at(s.packets, index)
    flow = flow_at(s.flows, packet.flow)
    group = group_at(s.groups, flow.group)
    hold(s, flow, group)
    hear(s, flow, group, packet.sequence)
    release(s, index)


@compiled
def _expire(s, f, flow, group):
    """Answer the retransmission timer: start over from one packet."""
    hold(s, flow, group)
    flow.inflation = 0
    flow.duplicates = 0
    flow.window = max(flow.window, 1.0)
    flow.recover = flow.highest_sent
    nothing_out = flow.acked == flow.highest_sent
    if flow.acked < 0:
        flow.initial_window = 1.0
    if not nothing_out and flow.action != SIGNAL:
        flow.timeouts += 1
        flow.threshold = threshold_after(cut(s, flow, group, group.on_loss))
    flow.window = 1.0
    flow.confirm = 1
    if not nothing_out:
        back_off(flow, group)
    set_timer(s, f, flow, group)
    flow.next_sequence = flow.acked + 1
    flow.timing = 0
    flow.action = TIMEOUT
    _send_allowed(s, f, flow, group, 0, 0)


@compiled
def wake(s, f):
    """Do what a sender's entry in the calendar is for: start, send late, or time out."""
    flow = flow_at(s.flows, f)
    group = group_at(s.groups, flow.group)
    if flow.started == 0:
        flow.started = 1
        flow.changed = s.now
        _send_allowed(s, f, flow, group, 0, 0)
    elif flow.sending == 1 and flow.send_at <= s.now:
        flow.sending = 0
        _send_allowed(s, f, flow, group, 0, 1)
    elif flow.deadline <= s.now:
        _expire(s, f, flow, group)
    reschedule(s, f, flow)
