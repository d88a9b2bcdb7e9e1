"""Load factors on their way from routers to senders, as one bit per packet tells them.

A router compares its load factor with a hash of the packet, and marks (01) where it is larger. Here
the packet carries the number, the largest of its route, and the receiver does the comparison: what
it learns is the same, as `decode` uses the number in no other way but to ask whether it can be
coded at all, which (11) says. A hash of 1 is above every load factor and tells nothing: (11) marks
of other routers, and of RED in the same one, hide the bit. Qazi et al. (2010), section 3.2.
"""

from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled
from fluidcc.packets.engine.records import (
    E_ESTIMATE,
    E_HASHED,
    E_LOAD,
    MARKABLE,
    MARKED,
    NEVER,
    Q_LOAD,
    REPLY,
    number_at,
)
from fluidcc.packets.engine.streams import hashed


@compiled
def stamp(port, packet):
    """Tell the load factor of a port to a data packet that it takes in."""
    if packet.flags & REPLY == 0:
        packet.load = max(packet.load, number_at(port.block, Q_LOAD).value)


@compiled
def _decoded(group, estimate, place, load):
    """The estimate after a packet with a hash at `place` from links at `load`."""
    block = group.decode_block
    number_at(block, E_ESTIMATE).value = estimate
    number_at(block, E_HASHED).value = place
    number_at(block, E_LOAD).value = load
    call(group.decode, block)
    return number_at(block, E_ESTIMATE).value


@part(records="flow group receiver packet")
def decode(s, flow, group, receiver, packet):
    """Learn from a data packet, and write what the acknowledgement of it tells.

    A mark that is taken for the largest load counts from the next packet on, as the sender reacts
    to the mark itself by what it knew before.
    """
    if packet.flags & MARKABLE:
        marked = packet.flags & MARKED
        place = 1.0 if marked else hashed(flow.hash_key, packet.identity)
        receiver.estimate = _decoded(group, receiver.estimate, place, packet.load)
        packet.load = receiver.estimate
        if marked and group.marks_tell_load == 1:
            receiver.estimate = _decoded(group, receiver.estimate, place, NEVER)
    else:
        packet.load = receiver.estimate
