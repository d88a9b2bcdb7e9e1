"""Traffic without congestion control: Poisson cross traffic and voice calls.

Its packets are datagrams, which nobody acknowledges, sent to one link and gone at its end. What
happens in a call is drawn from a stream of its own, so that the calls of a seed are the same
whatever the senders do. The codec's clock runs through pauses, with a random phase, so that a
talker sends at its mean rate however short the talk spurts are.
"""

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.ports import arrive
from fluidcc.packets.engine.queues import allocate, release
from fluidcc.packets.engine.streams import derive, draw, exponential
from fluidcc.packets.engine.traces import trace_packet

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
    packet.load = 0.0
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
def _schedule_call(s, voice, call):
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
    _schedule_call(s, voice, call)


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
        _schedule_call(s, voice, call)
    else:
        call.frame_at += voice.frame
        _schedule_call(s, voice, call)
        send_datagram(s, voice.flow, voice.size, voice.flags, index, call.number)
