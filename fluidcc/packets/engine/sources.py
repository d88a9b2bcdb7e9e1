"""Traffic: sources of files; Poisson cross traffic and voice calls, without congestion control.

Files come in sessions of pages of objects, each object one transfer on a new connection. A source
that is open begins sessions by itself and gives each object to a free flow of its own; other
sources are flows with one session each. A transfer with a request begins with the request's
connection, whose last ACK begins the connection with the data. Numbers that a session draws come
from a stream of its own, in an order that no sender can change.

Packets of cross traffic and calls are datagrams, which nobody acknowledges, sent to one link and
gone at its end. What happens in a call is drawn from a stream of its own, so that the calls of a
seed are the same whatever the senders do. The codec's clock runs through pauses, with a random
phase, so that a talker sends at its mean rate however short the talk spurts are.
"""

import math

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import allocate, release, schedule
from fluidcc.packets.engine.delays import count_delay
from fluidcc.packets.engine.endpoints import start_connection
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled
from fluidcc.packets.engine.ports import arrive
from fluidcc.packets.engine.sack import clear_scoreboard
from fluidcc.packets.engine.sending import integrate_window, reschedule
from fluidcc.packets.engine.streams import derive, draw, exponential
from fluidcc.packets.engine.traces import trace_packet

_LARGEST = 1e9  # packets of a transfer, objects of a page, pages of a session


@compiled
def _draw_sample(s, source, stream, hook):
    """Result of a rule of the source for the next number of a stream."""
    r.number_at(source.block, r.U_UNIFORM).value = draw(stream)
    call(hook, source.block)
    value = r.number_at(source.block, r.U_RESULT).value
    if value != value:
        s.status = r.NOT_A_NUMBER
        return 0.0
    return value


@compiled
def _draw_count(s, source, stream, hook):
    """A whole number drawn by a rule of the source, at least 1."""
    return math.ceil(min(max(_draw_sample(s, source, stream, hook), 1.0), _LARGEST))


@compiled
def _reset_connection(s, f, flow, group):
    """Forget the last connection of a flow, but not its accounts."""
    if group.sack == 1:
        clear_scoreboard(s, flow)
        for k in range(r.BLOCKS):
            r.block_at(s.receiver_blocks, r.BLOCKS * f + k).right = 0
    for k in range(f * r.FLOW_WORDS + r.CONNECTION_WORD, (f + 1) * r.FLOW_WORDS):
        r.index_at(s.flows, k).value = r.index_at(s.initial_flows, k).value
    for k in range(group.states + group.written):
        r.number_at(flow.memory, k).value = r.number_at(group.memory, k).value
    receiver = r.receiver_at(s.receivers, f)
    receiver.expected = 0
    receiver.end = 0
    receiver.echo = 0
    receiver.estimate = 0.0


@compiled
def _connect(s, f, size):
    """Begin a connection of a flow with `size` packets to send."""
    flow = r.flow_at(s.flows, f)
    group = r.group_at(s.groups, flow.group)
    _reset_connection(s, f, flow, group)
    flow.limit = size - 1 + group.syn
    start_connection(s, f, flow, group)
    reschedule(s, f, flow)


@compiled
def _start_transfer(s, k, session):
    """Begin the transfer of an object of a session."""
    source = r.source_at(s.sources, session.source)
    size = _draw_count(s, source, session, source.size)
    f = session.flow
    if source.open == 1:
        f = source.free
        if f < 0:
            s.status = r.TOO_MANY_TRANSFERS
            return
        source.free = r.flow_at(s.flows, f).next_free
    flow = r.flow_at(s.flows, f)
    flow.session = k
    flow.requested_at = s.now
    source.begun += 1
    source.offered += size
    if flow.request_flow >= 0:
        flow.requested_size = size
        _connect(s, flow.request_flow, source.request_size)
    else:
        _connect(s, f, size)


@part()
def advance_session(s, entity):
    """Begin the next object of a session, and first the next page if none is under way."""
    k = r.entity_at(s.entities, entity).index
    session = r.session_at(s.sessions, k)
    source = r.source_at(s.sources, session.source)
    if session.objects == 0:
        session.objects = _draw_count(s, source, session, source.objects)
    session.objects -= 1
    session.under_way += 1
    _start_transfer(s, k, session)
    time = r.NEVER
    if session.objects > 0:
        time = s.now + _draw_sample(s, source, session, source.gap)
    schedule(s, entity, time, s.now)


@part()
def start_session(s, entity):
    """Begin a session of an open source, and wait for the next."""
    source = r.source_at(s.sources, r.entity_at(s.entities, entity).index)
    if source.waits == 1:  # the source itself begins
        source.waits = 0
    else:
        k = source.free_session
        if k < 0:
            s.status = r.TOO_MANY_TRANSFERS
            return
        session = r.session_at(s.sessions, k)
        source.free_session = session.next_free
        source.sessions_begun += 1
        derive(session, source.session_key, source.sessions_begun)
        session.pages = math.ceil(min(_draw_sample(s, source, session, source.pages), _LARGEST))
        session.objects = 0
        session.under_way = 0
        advance_session(s, session.entity)
    time = r.NEVER
    if source.sessions_begun < source.most:
        time = s.now + _draw_sample(s, source, source, source.arrival)
    schedule(s, entity, time, s.now)


@compiled
def _list_transfer(s, k, flow, size):
    """Write a finished transfer of source `k` into the list, if it is one of every `ended_step`.

    If the list is full, every second one leaves it.
    """
    number = s.ended_count
    s.ended_count += 1
    if number % s.ended_step > 0:
        return
    if number // s.ended_step == s.ended_size:
        for j in range(s.ended_size // 2):
            kept, line = r.transfer_at(s.ended, 2 * j), r.transfer_at(s.ended, j)
            line.start = kept.start
            line.time = kept.time
            line.size = kept.size
            line.source = kept.source
        s.ended_step *= 2
    line = r.transfer_at(s.ended, number // s.ended_step)
    line.start = flow.requested_at
    line.time = s.now - flow.requested_at
    line.size = size
    line.source = k


@compiled
def _record_transfer(s, source, flow):
    """Account for a finished transfer."""
    span = s.now - flow.requested_at
    source.transfers += 1
    source.span_sum += span
    source.span_squares += span * span
    count_delay(source.histogram, span)


@compiled
def _finish_object(s, source, session):
    """After an object: wait for others, pause until the next page, or end the session."""
    session.under_way -= 1
    if session.under_way > 0 or session.objects > 0:
        return
    session.pages -= 1.0
    if session.pages != 0.0:
        time = s.now + _draw_sample(s, source, session, source.pause)
        schedule(s, session.entity, time, s.now)
    elif source.open == 1:
        session.next_free = source.free_session
        source.free_session = r.entity_at(s.entities, session.entity).index


@part()
def finish_connection(s, f):
    """End a connection whose packets are all acknowledged, and its request or transfer."""
    s.finished_flow = -1
    flow = r.flow_at(s.flows, f)
    group = r.group_at(s.groups, flow.group)
    integrate_window(s, flow, group)
    flow.started = 0
    flow.delivered += max(flow.limit + 1 - group.syn, 0)
    flow.active_time += s.now - flow.connected_at
    flow.connection += 1
    schedule(s, f, r.NEVER, s.now)
    if flow.data_flow >= 0:
        _connect(s, flow.data_flow, r.flow_at(s.flows, flow.data_flow).requested_size)
        return
    if flow.session < 0:  # it was stopped
        return
    session = r.session_at(s.sessions, flow.session)
    source = r.source_at(s.sources, session.source)
    _record_transfer(s, source, flow)
    _list_transfer(s, session.source, flow, flow.limit + 1 - group.syn)
    if source.open == 1:
        flow.next_free = source.free
        source.free = f
    _finish_object(s, source, session)


@part()
def stop_flow(s, entity):
    """Let a flow have no new data from now on; what is under way is still repaired."""
    f = r.entity_at(s.entities, entity).index
    flow = r.flow_at(s.flows, f)
    schedule(s, entity, r.NEVER, s.now)
    flow.limit = flow.highest_sent
    if flow.acked >= flow.limit:
        finish_connection(s, f)


NO_CALL = -1


@compiled
def send_datagram(s, f, size, flags, call, connection):
    """Send a packet of flow `f` to its link; of number `connection` of a call, or of none."""
    index = allocate(s)
    if index < 0:
        return
    packet = r.packet_at(s.packets, index)
    flow = r.flow_at(s.flows, f)
    packet.flow = f
    packet.sequence = flow.sent
    packet.sent = s.now
    packet.size = size
    packet.flags = flags
    packet.hop = 1
    packet.identity = call
    packet.connection = connection
    flow.sent += 1
    if s.trace != 0:
        trace_packet(s, r.SEND, -1, packet)
    arrive(s, r.index_at(s.routes, f * s.hops).value, index)


@part()
def send_cross(s, entity):
    """Send a packet of cross traffic, and wait for the next."""
    source = r.cross_at(s.crosses, r.entity_at(s.entities, entity).index)
    size = source.size
    if source.exponential == 1:  # in whole bytes
        size = max(int(exponential(source, float(source.size)) + 0.5), 1)
    schedule(s, entity, s.now + exponential(source, source.gap), s.now)
    send_datagram(s, source.flow, size, r.ECT, NO_CALL, 0)


@part(floats="start spent")
def receive_datagram(s, index, start, spent):
    """Account for a packet at the end of its link, whose transmission took `spent` from `start`."""
    packet = r.packet_at(s.packets, index)
    flow = r.flow_at(s.flows, packet.flow)
    delay = start + (spent + flow.tail_delay) - packet.sent
    flow.received += 1
    if s.trace != 0:
        trace_packet(s, r.RECEIVE, -1, packet)
    flow.delay_sum += delay
    flow.delay_squares += delay * delay
    if packet.identity != NO_CALL:
        call = r.call_at(s.calls, packet.identity)
        if call.number == packet.connection:
            if call.delay_known == 1:
                voice = r.voice_at(s.voices, call.voice)
                voice.ipdv_sum += abs(delay - call.last_delay)
                voice.ipdv_count += 1
            call.delay_known = 1
            call.last_delay = delay
    release(s, index)


@compiled
def count_calls(s, voice):
    """Bring the integral of the calls in progress up to now; call before they change."""
    voice.calls_time += (s.now - voice.changed) * voice.present
    voice.changed = s.now


@compiled
def _schedule_call(s, call):
    """Set the next event of a call: its end, the end of a spurt or pause, or a packet."""
    time = min(call.ends, call.switches)
    if call.talking == 1:
        time = min(time, call.frame_at)
    schedule(s, call.entity, time, s.now)


@compiled
def _begin_call(s, voice, call):
    """Begin a call: in a spurt or a pause as it is at any instant."""
    voice.calls_begun += 1
    call.number = voice.calls_begun
    derive(call, voice.call_key, voice.calls_begun)
    call.delay_known = 0
    call.ends = s.now + exponential(call, voice.holding)
    call.frame_at = s.now + voice.frame * draw(call)
    call.talking = 1 if draw(call) < voice.active else 0
    call.switches = s.now + exponential(call, voice.talk if call.talking == 1 else voice.pause)
    _schedule_call(s, call)


@compiled
def _switch_talking(s, voice, call):
    """Fall silent, or talk again and send at the next tick of the codec."""
    call.talking = 1 - call.talking
    call.switches = s.now + exponential(call, voice.talk if call.talking == 1 else voice.pause)
    if call.talking == 1 and call.frame_at < s.now:
        ticks = int((s.now - call.frame_at) / voice.frame) + 1
        call.frame_at += ticks * voice.frame


@part()
def admit_call(s, entity):
    """Admit a new call, or refuse it if there are as many as may be; wait for the next."""
    voice = r.voice_at(s.voices, r.entity_at(s.entities, entity).index)
    schedule(s, entity, s.now + exponential(voice, voice.gap), s.now)
    voice.offered += 1
    if voice.present >= voice.most:
        voice.refused += 1
        return
    if voice.free < 0:
        s.status = r.TOO_MANY_CALLS
        return
    count_calls(s, voice)
    voice.present += 1
    call = r.call_at(s.calls, voice.free)
    voice.free = call.next
    _begin_call(s, voice, call)


@part()
def advance_call(s, entity):
    """Handle the next event of a call: its begin, end, a switch, or a packet."""
    index = r.entity_at(s.entities, entity).index
    call = r.call_at(s.calls, index)
    voice = r.voice_at(s.voices, call.voice)
    if call.talking == r.NOT_BEGUN:
        _begin_call(s, voice, call)
    elif call.ends <= s.now:
        count_calls(s, voice)
        voice.present -= 1
        call.next = voice.free
        voice.free = index
        schedule(s, entity, r.NEVER, s.now)
    elif call.switches <= s.now:
        _switch_talking(s, voice, call)
        _schedule_call(s, call)
    else:
        call.frame_at += voice.frame
        _schedule_call(s, call)
        send_datagram(s, voice.flow, voice.size, voice.flags, index, call.number)
