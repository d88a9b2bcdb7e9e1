"""What senders of every kind do, as in ns-2.35: retransmission timers, windows, and data packets.

Timers count round trips in clock ticks, smooth them in integers, and are moved lazily. Windows grow
and are cut by the hooks of the window law and its reaction.
"""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import allocate, next_time, schedule, send_on_wire
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled, inlined
from fluidcc.packets.engine.ports import arrive
from fluidcc.packets.engine.streams import draw
from fluidcc.packets.engine.traces import trace_packet


@compiled
def _timeout_after(flow, group):
    """Retransmission timeout with its back-off [s]."""
    span = max(flow.rto, group.min_rto) * flow.backoff
    return max(min(span, group.max_rto), 2 * group.tick)


@compiled
def set_timer(s, f, flow, group):
    """Restart the timer; the calendar is only touched when it must fire earlier."""
    flow.deadline = s.now + _timeout_after(flow, group)
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
    if flow.backoff < 64 or _timeout_after(flow, group) < group.max_rto:
        flow.backoff *= 2
    if flow.backoff > 8:
        flow.rttvar += flow.srtt >> 3
        flow.srtt = 0


@compiled
def _take_sample(s, flow, group):
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


@compiled
def integrate_window(s, flow, group):
    """Bring the integral of the window up to now; call before it changes."""
    flow.window_time += (s.now - flow.changed) * min(flow.window, group.receiver_window)
    flow.changed = s.now


@compiled
def allowed(flow, group):
    """Largest flight size [packet]: RFC 5681, with the inflation of fast recovery. A paced sender
    has a packet under way at any window, and one by rate alone any number.
    """
    if group.rate_based == 1:
        return int(flow.advertised)
    window = int(flow.window)
    if group.pacing != 0 and window < 1:
        window = 1
    return min(window + flow.inflation, int(flow.advertised))


@compiled
def _write_measures(flow, block):
    """Write what a sender measures."""
    r.number_at(block, r.W_TRIP).value = flow.propagation
    r.number_at(block, r.W_ONE_WAY).value = flow.one_way
    least = min(flow.least_rtt, flow.least_before)
    r.number_at(block, r.W_LEAST).value = least if least < r.NEVER else flow.rtt
    greatest = max(flow.greatest_rtt, flow.greatest_before)
    r.number_at(block, r.W_GREATEST).value = greatest if greatest > 0 else flow.rtt
    r.number_at(block, r.W_ACKED).value = flow.answered
    r.number_at(block, r.W_RATE).value = flow.rate
    r.number_at(block, r.W_LOST).value = flow.lost_since
    under_way = flow.next_sequence - 1 - flow.acked
    r.number_at(block, r.W_FLIGHT).value = float(under_way - flow.duplicates)


@inlined
def _write_block(s, flow, group, window):
    """Write the event and the state for a rule of the window law."""
    block = group.law_block
    r.number_at(block, r.W_WINDOW).value = window
    r.number_at(block, r.W_ELAPSED).value = s.now - flow.acked_at
    r.number_at(block, r.W_RTT).value = flow.rtt
    r.number_at(block, r.W_DELAY).value = flow.rtt - flow.propagation
    if group.measures == 1:
        _write_measures(flow, block)
    for k in range(group.states):
        r.number_at(block, r.W_STATE + k).value = r.number_at(flow.memory, k).value
    for k in range(group.written):
        known = r.number_at(flow.memory, group.states + k)
        r.number_at(block, r.W_WRITTEN + k).value = known.value


@compiled
def _apply_rule(s, flow, group, hook, window):
    """Window after a rule of the window law; the rest of the law's state changes in place."""
    block = group.law_block
    _write_block(s, flow, group, window)
    call(hook, block)
    for k in range(group.states):
        r.number_at(flow.memory, k).value = r.number_at(block, r.W_STATE + k).value
    after = r.number_at(block, r.W_WINDOW).value
    if after != after:
        s.status = r.NOT_A_NUMBER
        return 1.0
    return after


@compiled
def _ask_reaction(s, flow, group, hook, after_reaction, marked):
    """Answer of a rule of the reaction."""
    block = group.reaction_block
    time, span = s.now - flow.reacted_at, flow.rtt
    if group.rounds != 0:
        r.number_at(group.law_block, r.W_RTT).value = flow.rtt
        call(group.rounds, group.law_block)
        span = flow.rtt / r.number_at(group.law_block, r.W_ROUNDS).value
        after_reaction = after_reaction if time >= span else 0.0
    r.number_at(block, r.R_TIME).value = time
    r.number_at(block, r.R_ROUND_TRIP).value = span
    r.number_at(block, r.R_WINDOW).value = after_reaction
    r.number_at(block, r.R_DROPPED).value = float(flow.quench_for_drop)
    r.number_at(block, r.R_MARKED).value = marked
    call(hook, block)
    return r.number_at(block, r.R_RESULT).value


@compiled
def observe(s, flow, group, echo):
    """Let the window law learn from an ACK."""
    r.number_at(group.law_block, r.W_MARKED).value = float(echo)
    window = _apply_rule(s, flow, group, group.observe, flow.window)
    flow.window = min(window, group.receiver_window)


@compiled
def measure(s, flow, group, index):
    """Measure what the window law reads, by the packet of this index that an ACK answers.

    The delivery rate is that of the ACKs since the last one before the packet was sent, over the
    time in which they came or that in which their packets were sent, if that is longer
    (draft-cheng-iccrg-delivery-rate-estimation). The least and the greatest round trip are those of
    the present part of the law's memory, and of the part before it.
    """
    packet = r.packet_at(s.packets, index)
    flow.one_way = packet.delay - flow.forward
    if s.now >= flow.extremes_until:
        flow.least_before, flow.least_rtt = flow.least_rtt, r.NEVER
        flow.greatest_before, flow.greatest_rtt = flow.greatest_rtt, 0.0
        flow.extremes_until = s.now + group.memory_time / 2
    flow.least_rtt = min(flow.least_rtt, flow.rtt)
    flow.greatest_rtt = max(flow.greatest_rtt, flow.rtt)
    if group.samples_rate == 1:
        sample = r.sample_at(s.samples, index)
        flow.answered = float(flow.acks - sample.acks)
        flow.lost_since = flow.found_lost - sample.lost
        span = max(s.now - sample.acked_at, packet.sent - sample.answered_sent)
        if span > 0:
            flow.rate = flow.answered / span
        flow.answered_sent = packet.sent


@compiled
def read_advertised_window(flow, group, marked):
    """Take the advertised window from an ACK that a router may have rewritten."""
    block = group.advertise_block
    r.number_at(block, r.A_WINDOW).value = group.receiver_window
    r.number_at(block, r.A_MARKED).value = float(marked)
    call(group.advertise, block)
    flow.advertised = min(r.number_at(block, r.A_RESULT).value, group.receiver_window)


@compiled
def cut_window(s, flow, group, hook, inflation):
    """Window after a cut of the largest flight size, which it does not set."""
    window = min(flow.window + inflation, group.receiver_window)
    if group.integer_windows == 1:
        return float(int(_apply_rule(s, flow, group, hook, float(int(window)))))
    return _apply_rule(s, flow, group, hook, window)


@compiled
def ssthresh_after(target):
    """Slow-start threshold after a cut to `target`: whole packets, at least 2. ns-2.35."""
    return max(float(int(target)), 2.0)


@compiled
def cut_for_loss(s, flow, group, inflation):
    """Cut the window for a loss; what was sent before is then repaired without another cut."""
    target = cut_window(s, flow, group, group.on_loss, inflation)
    flow.recover = flow.highest_sent
    flow.recoveries += 1
    flow.ssthresh = ssthresh_after(target)
    flow.window = max(target, group.floor)
    flow.cwr_due = 1


@compiled
def _has_slow_start(flow, group):
    """Whether the law has slow start below ssthresh."""
    if group.slow_start == 0:
        return True
    block = group.law_block
    for k in range(group.states):
        r.number_at(block, r.W_STATE + k).value = r.number_at(flow.memory, k).value
    call(group.slow_start, block)
    return r.number_at(block, r.W_SLOW).value > 0


@compiled
def _pace(s, flow, group):
    """Set the time before which no other packet goes."""
    _write_block(s, flow, group, flow.window)
    call(group.pacing, group.law_block)
    rate = r.number_at(group.law_block, r.W_PACING).value
    if not rate > 0:
        s.status = r.NOT_A_NUMBER
        return
    flow.paced_until = max(flow.paced_until, s.now) + 1 / rate


@compiled
def set_tick(s, flow, group):
    """Set the time of the next tick of the window law."""
    _write_block(s, flow, group, flow.window)
    call(group.period, group.law_block)
    span = r.number_at(group.law_block, r.W_PERIOD).value
    if not span > 0:
        s.status = r.NOT_A_NUMBER
    flow.tick_at = s.now + span


@compiled
def tick_window(s, flow, group):
    """Perform a tick of the window law."""
    integrate_window(s, flow, group)
    window = _apply_rule(s, flow, group, group.on_tick, flow.window)
    flow.window = min(max(window, group.floor), group.receiver_window)
    set_tick(s, flow, group)


@compiled
def _count_packets(s, flow, group, covered):
    """Window after an ACK that covers so many packets: each counts as one ACK.

    In slow start at most `byte_counting` of them count, and one after a timeout. RFC 3465.
    """
    window, slow = flow.window, 0
    most = 1 if flow.last_reaction == r.TIMEOUT else group.byte_counting
    for _ in range(covered):
        if window < flow.ssthresh and _has_slow_start(flow, group):
            window += 1.0
            slow += 1
            if slow == most:
                break
        else:
            window = _apply_rule(s, flow, group, group.on_ack, window)
            flow.acked_at = s.now  # no time passes between them
    return window


@inlined
def grow(s, flow, group, sequence, echo, covered):
    """Grow on an ACK of `covered` new packets, by slow start or by the law, if the reaction
    permits.
    """
    if echo == 1 and flow.ecn_on == 1 and group.echo_until_cwr == 1 and group.grow_on_echo == 0:
        return
    if group.growing != 0:
        after = 1.0 if sequence > flow.recover else 0.0
        marked = float(echo) if flow.ecn_on == 1 else 0.0
        if not _ask_reaction(s, flow, group, group.growing, after, marked) > 0:
            return
    window = flow.window
    if group.byte_counting > 0:
        window = _count_packets(s, flow, group, covered)
    elif window < flow.ssthresh and _has_slow_start(flow, group):
        window += 1.0
    else:
        window = _apply_rule(s, flow, group, group.on_ack, window)
    flow.window = min(window, group.receiver_window)


@compiled
def _is_window_full(flow):
    """Whether the congestion window is what holds a sender back as an ACK comes. RFC 2861, 3.

    Call right after `read_advertised_window`: the flight size shows what earlier ACKs
    allowed. A packet that waits for its `overhead` counts as sent.
    """
    window = int(flow.window)
    out = flow.next_sequence - 1 - flow.acked
    return flow.advertised >= window and (flow.sending == 1 or out >= window)


@compiled
def _decay(s, flow, group, window):
    """Shrink a window that has not been used; slow start leads back to 3/4 of it. RFC 2861."""
    integrate_window(s, flow, group)
    flow.ssthresh = max(flow.ssthresh, 0.75 * flow.window)
    flow.window = min(flow.window, max(window, group.floor, 1.0))
    flow.full_at = s.now
    flow.used = 0


@compiled
def _validate_window(s, flow, group, sequence):
    """Let the window decay if it has not been used; call as packet `sequence` goes. RFC 2861, 3.

    A sender that the receiver's window holds back counts as one without data. The time that counts
    begins anew with each packet that fills the window, as the flight size does after an ACK that is
    not rewritten: only ACKs rewritten for a whole timeout on end count.
    """
    timeout, idle = _timeout_after(flow, group), s.now - flow.sent_at
    if idle >= timeout:
        _decay(s, flow, group, flow.window * 0.5 ** (idle // timeout))
    flow.sent_at = s.now
    out = max(flow.next_sequence - 1, sequence) - flow.acked
    if out >= int(flow.window):
        flow.full_at = s.now
        flow.used = 0
    elif out >= min(int(flow.advertised), flow.limit - flow.acked):  # not followed by others
        flow.used = max(flow.used, out)
        if s.now - flow.full_at >= timeout:
            _decay(s, flow, group, (flow.window + flow.used) / 2)


@compiled
def _note_reaction(s, flow, quench_for_drop):
    """Note the time of a reaction, and whether a quench for a drop was its cause."""
    flow.quench_for_drop = quench_for_drop
    flow.reacted_at = s.now
    flow.window_reductions += 1


@compiled
def _reduce_window(flow, group, target, goes_on):
    """Cut to a target; what was sent before is then repaired without a second cut.

    `goes_on` is 1 in a recovery, which goes on. At a window of 1 the timer backs off instead: RFC
    3168, 6.1.2.
    """
    if goes_on == 0:
        flow.recover = flow.highest_sent
        flow.last_reaction = r.SIGNAL
    if flow.window <= 1:
        if flow.at_one == 1:
            back_off(flow, group)
        flow.at_one = 1
    else:
        flow.at_one = 0
    flow.ssthresh = ssthresh_after(target)
    flow.window = max(target, group.floor)
    flow.cwr_due = 1


@compiled
def react_to_mark(s, flow, group, sequence):
    """React to a mark, if the reaction lets it count.

    A reaction that counts once per window or round trip also sets the point up to which losses
    are not answered by a second cut. ns-2.35.
    """
    after = 1.0 if sequence > flow.recover or flow.last_reaction == r.TIMEOUT else 0.0
    if group.ready != 0 and not _ask_reaction(s, flow, group, group.ready, after, 1.0) > 0:
        return
    target = cut_window(s, flow, group, group.on_mark, 0 if group.ready == 0 else flow.inflation)
    if r.number_at(group.law_block, r.W_CHANGED).value == 0:  # no signal to this law
        flow.cwr_due = 1  # receivers would echo it for ever
        return
    _note_reaction(s, flow, 0)
    if group.ready == 0:
        flow.window = max(target, group.floor)
        flow.ssthresh = flow.window
    else:
        _reduce_window(flow, group, target, 0)


@compiled
def react_to_quench(s, flow, group, sequence, dropped):
    """React to a quench for a marked or dropped packet, if the reaction lets it count.

    A drop is answered as a loss: a reaction that counts every signal counts one in a window, and
    the duplicate ACKs that follow only repair. Akujobi et al. (2002), IV.B.
    """
    after = 1.0 if sequence > flow.recover or flow.last_reaction == r.TIMEOUT else 0.0
    if dropped == 1 and group.ready == 0 and after == 0:
        return
    if group.ready != 0 and not _ask_reaction(s, flow, group, group.ready, after, 1.0) > 0:
        return
    target = cut_window(s, flow, group, group.on_loss if dropped == 1 else group.on_mark, 0)
    _note_reaction(s, flow, dropped)
    if dropped == 0 and group.ready == 0:
        flow.window = max(target, group.floor)
        flow.ssthresh = flow.window
    else:
        recovering = flow.last_reaction == r.FAST_RETRANSMIT and flow.acked < flow.recover
        _reduce_window(flow, group, target, 1 if recovering else 0)


@part(records="flow")
def begin_numbers(s, flow, index):
    """Begin the numbers that links write into a packet, at 0, and write the sender's spacing."""
    for k in range(r.NUMBERS):
        r.number_at(s.numbers, r.ROOM * index + k).value = 0.0
    r.number_at(s.numbers, r.ROOM * index + r.SPACING).value = flow.rtt / max(flow.window, 1.0)


@compiled
def _begin_sample(s, flow, index, sequence):
    """Note what the delivery rate of a packet that goes now is measured from."""
    if flow.next_sequence - 1 == flow.acked:  # nothing is under way
        flow.acked_at = flow.answered_sent = s.now
    if sequence <= flow.highest_sent:
        flow.found_lost += 1.0
    sample = r.sample_at(s.samples, index)
    sample.acks, sample.acked_at = flow.acks, flow.acked_at
    sample.answered_sent, sample.lost = flow.answered_sent, flow.found_lost


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
    if group.written > 0:
        begin_numbers(s, flow, index)
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
        _validate_window(s, flow, group, sequence)
    if group.samples_rate == 1:
        _begin_sample(s, flow, index, sequence)
    if group.pacing != 0:
        _pace(s, flow, group)
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
def must_wait(s, f, flow, group, forced):
    """Whether a packet must wait: 1 for a sender with `overhead` that has not waited yet, and
    until the pace of the law lets it go.
    """
    if group.pacing != 0 and s.now < flow.paced_until:
        flow.send_at = flow.paced_until
    elif forced == 1 or group.overhead == 0:
        return 0
    else:
        flow.send_at = s.now + draw(flow) * group.overhead
    flow.sending = 1
    reschedule(s, f, flow)
    return 1


@compiled
def send_allowed(s, f, flow, group, burst, forced):
    """Send what the window allows: at most `burst` packets, or any number for 0."""
    if forced == 0 and flow.sending == 1:
        return
    count = 0
    while s.status == 0:
        if flow.next_sequence > min(flow.acked + allowed(flow, group), flow.limit):
            return
        if must_wait(s, f, flow, group, forced) == 1:
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
        _take_sample(s, flow, group)
    restart_timer(s, f, flow, group, sequence)


@inlined
def accept_and_grow(s, f, flow, group, sequence, echo):
    """Take an ACK of new data, and grow."""
    used = group.window_validation == 0 or _is_window_full(flow)
    covered = sequence - flow.acked
    accept(s, f, flow, group, sequence, echo)
    if used:
        grow(s, flow, group, sequence, echo, covered)
    if flow.ecn_on == 1 and echo == 0:
        flow.at_one = 0
    if echo == 1:
        flow.ecn_on = 1
    if sequence == 0 and group.syn == 1:
        flow.window = flow.initial_window
