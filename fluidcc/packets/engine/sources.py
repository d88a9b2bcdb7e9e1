"""Sources of files: sessions of pages of objects, each object one transfer on a new connection.

A source that is open begins sessions by itself and gives each object to a free place, a flow of
its own; other sources are flows with one session each. A transfer with a request begins with the
request's connection, whose last ACK begins the connection with the data. Numbers that a session
draws come from a stream of its own, in an order that no sender can change.
"""

import math

from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled
from fluidcc.packets.engine.records import (
    FLOW_WORDS,
    HISTOGRAM_FIRST,
    HISTOGRAM_PARTS,
    HISTOGRAM_SIZE,
    NEVER,
    NO_FREE_PLACE,
    NOT_A_NUMBER,
    U_RESULT,
    U_UNIFORM,
    entity_at,
    flow_at,
    group_at,
    index_at,
    number_at,
    receiver_at,
    report_at,
    session_at,
    source_at,
)
from fluidcc.packets.engine.sack import clear
from fluidcc.packets.engine.senders import start
from fluidcc.packets.engine.streams import derive, draw
from fluidcc.packets.engine.timers import reschedule
from fluidcc.packets.engine.windows import hold

_LARGEST = 1e9  # packets of a transfer, objects of a page, pages of a session


@compiled
def _sample(s, source, stream, hook):
    """What a rule of the source makes of the next number of a stream."""
    number_at(source.block, U_UNIFORM).value = draw(stream)
    call(hook, source.block)
    value = number_at(source.block, U_RESULT).value
    if value != value:
        s.status = NOT_A_NUMBER
        return 0.0
    return value


@compiled
def _count(s, source, stream, hook):
    """The same in whole numbers, at least 1."""
    return math.ceil(min(max(_sample(s, source, stream, hook), 1.0), _LARGEST))


@compiled
def _renew(s, f, flow, group):
    """Forget the last connection of a flow, but not its accounts."""
    if group.sack == 1:
        clear(s, flow)
        report = report_at(s.kept, f)
        report.right = 0
        report.second_right = 0
        report.third_right = 0
    here, fresh = s.flows + f * FLOW_WORDS * 4, s.fresh + f * FLOW_WORDS * 4
    for k in range(s.renewed_count):
        word = index_at(s.renewed, k).value
        index_at(here, word).value = index_at(fresh, word).value
    for k in range(group.states):
        number_at(flow.memory, k).value = number_at(group.memory, k).value
    receiver = receiver_at(s.receivers, f)
    receiver.expected = 0
    receiver.echo = 0
    receiver.estimate = 0.0


@compiled
def _connect(s, f, size):
    """Begin a connection of a flow with `size` packets to send."""
    flow = flow_at(s.flows, f)
    group = group_at(s.groups, flow.group)
    _renew(s, f, flow, group)
    flow.limit = size - 1 + group.syn
    start(s, f, flow, group)
    reschedule(s, f, flow)


@compiled
def _transfer(s, k, session):
    """Begin the transfer of an object of a session."""
    source = source_at(s.sources, session.source)
    size = _count(s, source, session, source.size)
    f = session.flow
    if source.open == 1:
        f = source.free
        if f < 0:
            s.status = NO_FREE_PLACE
            return
        source.free = flow_at(s.flows, f).next_free
    flow = flow_at(s.flows, f)
    flow.session = k
    flow.asked = s.now
    source.begun += 1
    source.offered += size
    if flow.request >= 0:
        flow.wanted = size
        _connect(s, flow.request, source.request)
    else:
        _connect(s, f, size)


@compiled
def _proceed(s, entity):
    """Begin the next object of a session, and the next page where none is under way."""
    k = entity_at(s.entities, entity).index
    session = session_at(s.sessions, k)
    source = source_at(s.sources, session.source)
    if session.objects == 0:
        session.objects = _count(s, source, session, source.objects)
    session.objects -= 1
    session.under_way += 1
    _transfer(s, k, session)
    time = NEVER
    if session.objects > 0:
        time = s.now + _sample(s, source, session, source.gap)
    schedule(s, entity, time, s.now)


@part()
def proceed(s, entity):
    """Go on with a session."""
    _proceed(s, entity)


@part()
def come(s, entity):
    """Begin a session of an open source, and wait for the next."""
    source = source_at(s.sources, entity_at(s.entities, entity).index)
    if source.waits == 1:  # the source itself begins
        source.waits = 0
    else:
        k = source.free_session
        if k < 0:
            s.status = NO_FREE_PLACE
            return
        session = session_at(s.sessions, k)
        source.free_session = session.next_free
        source.numbered += 1
        derive(session, source.session_key, source.numbered)
        session.pages = math.ceil(min(_sample(s, source, session, source.pages), _LARGEST))
        session.objects = 0
        session.under_way = 0
        _proceed(s, session.entity)
    time = NEVER
    if source.numbered < source.most:
        time = s.now + _sample(s, source, source, source.arrival)
    schedule(s, entity, time, s.now)


@compiled
def _account(s, source, flow):
    """Account for a finished transfer."""
    span = s.now - flow.asked
    source.transfers += 1
    source.span_sum += span
    source.span_squares += span * span
    slot = int(HISTOGRAM_PARTS * math.log(max(span, HISTOGRAM_FIRST) / HISTOGRAM_FIRST))
    entry = index_at(source.histogram, min(slot, HISTOGRAM_SIZE - 1))
    entry.value = entry.value + 1


@compiled
def _end_object(s, source, session):
    """After an object: nothing, or the pause to the next page, or the end of the session."""
    session.under_way -= 1
    if session.under_way > 0 or session.objects > 0:
        return
    session.pages -= 1.0
    if session.pages != 0.0:
        time = s.now + _sample(s, source, session, source.pause)
        schedule(s, session.entity, time, s.now)
    elif source.open == 1:
        session.next_free = source.free_session
        source.free_session = entity_at(s.entities, session.entity).index


@part()
def conclude(s, f):
    """End a connection all of whose packets are acknowledged, and what it was for."""
    s.done = -1
    flow = flow_at(s.flows, f)
    group = group_at(s.groups, flow.group)
    hold(s, flow, group)
    flow.started = 0
    flow.delivered += flow.limit + 1 - group.syn
    flow.active_time += s.now - flow.began
    flow.connection += 1
    schedule(s, f, NEVER, s.now)
    if flow.answers >= 0:
        _connect(s, flow.answers, flow_at(s.flows, flow.answers).wanted)
        return
    session = session_at(s.sessions, flow.session)
    source = source_at(s.sources, session.source)
    _account(s, source, flow)
    if source.open == 1:
        flow.next_free = source.free
        source.free = f
    _end_object(s, source, session)
