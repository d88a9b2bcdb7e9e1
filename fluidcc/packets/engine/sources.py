"""Sources of files: sessions of pages of objects, each object one transfer on a new connection.

A source that is open begins sessions by itself and gives each object to a free flow of its own;
other sources are flows with one session each. A transfer with a request begins with the
request's connection, whose last ACK begins the connection with the data. Numbers that a session
draws come from a stream of its own, in an order that no sender can change.
"""

import math

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled
from fluidcc.packets.engine.sack import clear_scoreboard
from fluidcc.packets.engine.senders import start_connection
from fluidcc.packets.engine.streams import derive, draw
from fluidcc.packets.engine.timers import reschedule
from fluidcc.packets.engine.windows import integrate_window

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
    for k in range(group.states):
        r.number_at(flow.memory, k).value = r.number_at(group.memory, k).value
    receiver = r.receiver_at(s.receivers, f)
    receiver.expected = 0
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
def _record_transfer(s, source, flow):
    """Account for a finished transfer."""
    span = s.now - flow.requested_at
    source.transfers += 1
    source.span_sum += span
    source.span_squares += span * span
    slot = int(r.HISTOGRAM_PARTS * math.log(max(span, r.HISTOGRAM_FIRST) / r.HISTOGRAM_FIRST))
    entry = r.index_at(source.histogram, min(slot, r.HISTOGRAM_SIZE - 1))
    entry.value = entry.value + 1


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
    flow.delivered += flow.limit + 1 - group.syn
    flow.active_time += s.now - flow.connected_at
    flow.connection += 1
    schedule(s, f, r.NEVER, s.now)
    if flow.data_flow >= 0:
        _connect(s, flow.data_flow, r.flow_at(s.flows, flow.data_flow).requested_size)
        return
    session = r.session_at(s.sessions, flow.session)
    source = r.source_at(s.sources, session.source)
    _record_transfer(s, source, flow)
    if source.open == 1:
        flow.next_free = source.free
        source.free = f
    _finish_object(s, source, session)
