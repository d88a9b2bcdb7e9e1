"""Windows of senders: growth and cuts by the hooks of the window law and its reaction."""

from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.records import (
    FAST,
    NOT_A_NUMBER,
    P_MARKED,
    P_RESULT,
    P_WINDOW,
    R_DROPPED,
    R_MARKED,
    R_RESULT,
    R_ROUND_TRIP,
    R_TIME,
    R_WINDOW,
    SIGNAL,
    TIMEOUT,
    W_CHANGED,
    W_DELAY,
    W_ELAPSED,
    W_LOAD,
    W_MARKED,
    W_PERIOD,
    W_RTT,
    W_SLOW,
    W_STATE,
    W_WINDOW,
    number_at,
)
from fluidcc.packets.engine.timers import back_off, timeout_after


@compiled
def hold(s, flow, group):
    """Bring the integral of the window up to now; call before it changes."""
    flow.window_time += (s.now - flow.changed) * min(flow.window, group.receiver_window)
    flow.changed = s.now


@compiled
def allowed(flow):
    """Packets that may be in flight."""
    return min(int(flow.window) + flow.inflation, int(flow.permitted))


@compiled
def _rule(s, flow, group, hook, window):
    """Window after a rule of the window law; what else the law remembers changes in place."""
    block = group.law_block
    number_at(block, W_WINDOW).value = window
    number_at(block, W_ELAPSED).value = s.now - flow.acked_at
    number_at(block, W_RTT).value = flow.rtt
    number_at(block, W_DELAY).value = flow.rtt - flow.propagation
    number_at(block, W_LOAD).value = flow.load
    for k in range(group.states):
        number_at(block, W_STATE + k).value = number_at(flow.memory, k).value
    call(hook, block)
    for k in range(group.states):
        number_at(flow.memory, k).value = number_at(block, W_STATE + k).value
    after = number_at(block, W_WINDOW).value
    if after != after:
        s.status = NOT_A_NUMBER
        return 1.0
    return after


@compiled
def _asked(s, flow, group, hook, after_reaction, marked):
    """Answer of a rule of the reaction."""
    block = group.reaction_block
    number_at(block, R_TIME).value = s.now - flow.reacted_at
    number_at(block, R_ROUND_TRIP).value = flow.rtt
    number_at(block, R_WINDOW).value = after_reaction
    number_at(block, R_DROPPED).value = float(flow.told_drop)
    number_at(block, R_MARKED).value = marked
    call(hook, block)
    return number_at(block, R_RESULT).value


@compiled
def observe(s, flow, group, echo):
    """Let the window law learn from an ACK."""
    number_at(group.law_block, W_MARKED).value = float(echo)
    window = _rule(s, flow, group, group.observe, flow.window)
    flow.window = min(window, group.receiver_window)


@compiled
def permit(flow, group, marked):
    """Take the receiver's window from an ACK that a router may have changed."""
    block = group.permit_block
    number_at(block, P_WINDOW).value = group.receiver_window
    number_at(block, P_MARKED).value = float(marked)
    call(group.permit, block)
    flow.permitted = min(number_at(block, P_RESULT).value, group.receiver_window)


@compiled
def cut(s, flow, group, hook, inflation):
    """Window after a cut, from what may be in flight now."""
    window = min(flow.window + inflation, group.receiver_window)
    if group.integer_windows == 1:
        return float(int(_rule(s, flow, group, hook, float(int(window)))))
    return _rule(s, flow, group, hook, window)


@compiled
def threshold_after(target):
    """Slow-start threshold after a cut to `target`: whole packets, at least 2. ns-2.35."""
    return max(float(int(target)), 2.0)


@compiled
def _starts_slowly(flow, group):
    """Whether the law has slow start below the threshold."""
    if group.slow_start == 0:
        return True
    block = group.law_block
    for k in range(group.states):
        number_at(block, W_STATE + k).value = number_at(flow.memory, k).value
    call(group.slow_start, block)
    return number_at(block, W_SLOW).value > 0


@compiled
def set_tick(s, flow, group):
    """Set the time of the next tick of the window law."""
    number_at(group.law_block, W_RTT).value = flow.rtt
    call(group.period, group.law_block)
    span = number_at(group.law_block, W_PERIOD).value
    if not span > 0:
        s.status = NOT_A_NUMBER
    flow.tick_at = s.now + span


@compiled
def tick(s, flow, group):
    """Perform a tick of the window law."""
    hold(s, flow, group)
    window = _rule(s, flow, group, group.on_tick, flow.window)
    flow.window = min(max(window, group.floor), group.receiver_window)
    set_tick(s, flow, group)


@inlined
def grow(s, flow, group, sequence, echo):
    """Grow on an ACK of new data: by slow start or by the law, where the reaction permits."""
    if echo == 1 and flow.capable == 1 and group.sticky == 1 and group.grow_on_echo == 0:
        return
    if group.growing != 0:
        after = 1.0 if sequence > flow.recover else 0.0
        heard = float(echo) if flow.capable == 1 else 0.0
        if not _asked(s, flow, group, group.growing, after, heard) > 0:
            return
    window = flow.window
    if window < flow.threshold and _starts_slowly(flow, group):
        window += 1.0
    else:
        window = _rule(s, flow, group, group.on_ack, window)
    flow.window = min(window, group.receiver_window)


@compiled
def full(flow):
    """Whether the congestion window is what holds a sender back as an ACK comes. RFC 2861, 3.

    Call when `permit` has read the ACK, and nothing else has: what ACKs before it permitted shows
    in the flight. A packet that waits for its `overhead` is as good as sent.
    """
    window = int(flow.window)
    out = flow.next_sequence - 1 - flow.acked
    return flow.permitted >= window and (flow.sending == 1 or out >= window)


@compiled
def _decay(s, flow, group, window):
    """Shrink a window that has not been used; slow start leads back to 3/4 of it. RFC 2861."""
    hold(s, flow, group)
    flow.threshold = max(flow.threshold, 0.75 * flow.window)
    flow.window = min(flow.window, max(window, group.floor, 1.0))
    flow.full_at = s.now
    flow.used = 0


@compiled
def validate(s, flow, group, sequence):
    """Let the window decay if it has not been used; call as packet `sequence` goes. RFC 2861, 3.

    A sender that the receiver's window holds back counts as one without data. The time that counts
    begins anew with each packet that fills the window, as the flight does after an ACK that is not
    rewritten: ACKs must be rewritten for a whole timeout on end.
    """
    timeout, idle = timeout_after(flow, group), s.now - flow.sent_at
    if idle >= timeout:
        _decay(s, flow, group, flow.window * 0.5 ** (idle // timeout))
    flow.sent_at = s.now
    out = max(flow.next_sequence - 1, sequence) - flow.acked
    if out >= int(flow.window):
        flow.full_at = s.now
        flow.used = 0
    elif out >= min(int(flow.permitted), flow.limit - flow.acked):  # not followed by others
        flow.used = max(flow.used, out)
        if s.now - flow.full_at >= timeout:
            _decay(s, flow, group, (flow.window + flow.used) / 2)


@compiled
def _reacted(s, flow, told_drop):
    """Note the time of a reaction, and whether a quench for a drop was its cause."""
    flow.told_drop = told_drop
    flow.reacted_at = s.now
    flow.reactions += 1


@compiled
def _close(flow, group, target, goes_on):
    """Shrink to a target; what was sent before is then repaired without a second cut.

    `goes_on` is 1 in a recovery that is not disturbed.
    """
    if goes_on == 0:
        flow.recover = flow.highest_sent
        flow.action = SIGNAL
    if flow.window <= 1:
        if flow.at_one == 1:
            back_off(flow, group)
        flow.at_one = 1
    else:
        flow.at_one = 0
    flow.threshold = threshold_after(target)
    flow.window = max(target, group.floor)
    flow.confirm = 1


@compiled
def hear(s, flow, group, sequence):
    """React to a mark, if the reaction lets it count.

    A reaction that counts once per window or round trip also sets the point up to which losses
    are not answered by a second cut. ns-2.35.
    """
    after = 1.0 if sequence > flow.recover or flow.action == TIMEOUT else 0.0
    if not _asked(s, flow, group, group.ready, after, 1.0) > 0:
        return
    target = cut(s, flow, group, group.on_mark, 0 if group.each_mark == 1 else flow.inflation)
    if number_at(group.law_block, W_CHANGED).value == 0:  # the law takes it for no signal
        return
    _reacted(s, flow, 0)
    if group.each_mark == 1:
        flow.window = max(target, group.floor)
        flow.threshold = flow.window
    else:
        _close(flow, group, target, 0)


@compiled
def hear_quench(s, flow, group, sequence, dropped):
    """React to a quench for a marked or dropped packet, if the reaction lets it count.

    A drop is answered as a loss: a reaction that counts every signal counts one in a window, and
    the duplicate ACKs that follow only repair. Akujobi et al. (2002), IV.B.
    """
    after = 1.0 if sequence > flow.recover or flow.action == TIMEOUT else 0.0
    if dropped == 1 and group.each_mark == 1 and after == 0:
        return
    if not _asked(s, flow, group, group.ready, after, 1.0) > 0:
        return
    target = cut(s, flow, group, group.on_loss if dropped == 1 else group.on_mark, 0)
    _reacted(s, flow, dropped)
    if dropped == 0 and group.each_mark == 1:
        flow.window = max(target, group.floor)
        flow.threshold = flow.window
    else:
        recovering = flow.action == FAST and flow.acked < flow.recover
        _close(flow, group, target, 1 if recovering else 0)
