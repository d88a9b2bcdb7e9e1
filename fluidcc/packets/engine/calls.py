"""Voice calls that come and go, and their talkers: packets at the ticks of a codec while talking.

What happens in a call is drawn from a stream of its own, so that the calls of a seed are the same
whatever the senders do. The codec's clock runs through pauses: its phase is that of chance, so
that a talker sends at its mean rate however short the spurts are.
"""

from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.datagrams import launch
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.records import FRESH, NEVER, NO_FREE_CALL, call_at, entity_at, voice_at
from fluidcc.packets.engine.streams import derive, draw, exponential


@compiled
def count_calls(s, voice):
    """Bring the integral of the calls in progress up to now; call before they change."""
    voice.calls_time += (s.now - voice.changed) * voice.present
    voice.changed = s.now


@compiled
def _wait(s, voice, call):
    """Set the next event of a call: its end, the end of a spurt or pause, or a packet."""
    time = min(call.ends, call.switches)
    if call.talking == 1:
        time = min(time, call.frame_at)
    schedule(s, call.entity, time, s.now)


@compiled
def _begin(s, voice, call):
    """Begin a call: in a spurt or a pause as it is at any instant."""
    voice.numbered += 1
    call.number = voice.numbered
    derive(call, voice.call_key, voice.numbered)
    call.heard = 0
    call.ends = s.now + exponential(call, voice.holding)
    call.frame_at = s.now + voice.frame * draw(call)
    call.talking = 1 if draw(call) < voice.active else 0
    call.switches = s.now + exponential(call, voice.talk if call.talking == 1 else voice.pause)
    _wait(s, voice, call)


@compiled
def _switch(s, voice, call):
    """Fall silent, or talk again and send at the next tick of the codec."""
    call.talking = 1 - call.talking
    call.switches = s.now + exponential(call, voice.talk if call.talking == 1 else voice.pause)
    if call.talking == 1 and call.frame_at < s.now:
        ticks = int((s.now - call.frame_at) / voice.frame) + 1
        call.frame_at += ticks * voice.frame


@part()
def ring(s, entity):
    """Let a new call in, or refuse it where there are as many as may be; wait for the next."""
    voice = voice_at(s.voices, entity_at(s.entities, entity).index)
    schedule(s, entity, s.now + exponential(voice, voice.gap), s.now)
    voice.offered += 1
    if voice.present >= voice.most:
        voice.refused += 1
        return
    if voice.free < 0:
        s.status = NO_FREE_CALL
        return
    count_calls(s, voice)
    voice.present += 1
    call = call_at(s.calls, voice.free)
    voice.free = call.next
    _begin(s, voice, call)


@part()
def speak(s, entity):
    """Do what is next in a call."""
    index = entity_at(s.entities, entity).index
    call = call_at(s.calls, index)
    voice = voice_at(s.voices, call.voice)
    if call.talking == FRESH:
        _begin(s, voice, call)
    elif call.ends <= s.now:
        count_calls(s, voice)
        voice.present -= 1
        call.next = voice.free
        voice.free = index
        schedule(s, entity, NEVER, s.now)
    elif call.switches <= s.now:
        _switch(s, voice, call)
        _wait(s, voice, call)
    else:
        call.frame_at += voice.frame
        _wait(s, voice, call)
        launch(s, voice.flow, voice.size, voice.flags, index, call.number)
