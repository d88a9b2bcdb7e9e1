"""Retransmission timers: round trips in clock ticks, integer smoothing, lazy moving. ns-2.35."""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import next_time, schedule
from fluidcc.packets.engine.pointer import compiled


@compiled
def timeout_after(flow, group):
    """Retransmission timeout with its back-off [s]."""
    span = max(flow.rto, group.min_rto) * flow.backoff
    return max(min(span, group.max_rto), 2 * group.tick)


@compiled
def set_timer(s, f, flow, group):
    """Restart the timer; the calendar is only touched when it must fire earlier."""
    flow.deadline = s.now + timeout_after(flow, group)
    if next_time(s, f) > flow.deadline:
        schedule(s, f, flow.deadline, s.now)


@compiled
def cancel_timer(flow):
    """Stop the timer; its entry in the calendar goes when its time comes."""
    flow.deadline = r.NEVER


@compiled
def reschedule(s, f, flow):
    """Move a sender's entry in the calendar to the first event that it waits for."""
    time = flow.deadline
    if flow.sending == 1 and flow.send_at < time:
        time = flow.send_at
    if flow.tick_at < time:
        time = flow.tick_at
    schedule(s, f, time, s.now)


@compiled
def back_off(flow, group):
    """Double the timeout; far out, forget the smoothed round trip."""
    if flow.backoff < 64 or timeout_after(flow, group) < group.max_rto:
        flow.backoff *= 2
    if flow.backoff > 8:
        flow.rttvar += flow.srtt >> 3
        flow.srtt = 0


@compiled
def take_sample(s, flow, group):
    """Smooth the round trip of the timed packet: srtt + 4 rttvar in ticks. Jacobson (1988)."""
    span = s.now - flow.timed_at
    phase = (flow.timed_at + flow.clock_phase) % group.tick
    ticks = max(int((span + phase) / group.tick), 1)
    if flow.srtt != 0:
        error = ticks - (flow.srtt >> 3)
        flow.srtt = max(flow.srtt + error, 1)
        error = abs(error) - (flow.rttvar >> 2)
        flow.rttvar = max(flow.rttvar + error, 1)
    else:
        flow.srtt = ticks << 3
        flow.rttvar = ticks << 1
    flow.rto = (((flow.rttvar << 3) + flow.srtt) >> 3) * group.tick
