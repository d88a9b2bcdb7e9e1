"""Two classes at one port by self-clocked fair queueing: the port's own queue, and one beside it.

Source: Golestani (1994), A self-clocked fair queueing scheme for broadband applications. A packet
of `size` bytes of a class of weight w gets the tag max(tag of the one before it, virtual time) +
size/w; the smallest tag is served next, and is the virtual time while it is served. Within a class
tags grow, so that only that of the head is needed, which is set when a packet becomes the head.
Equal tags: the class beside the port's own goes first.
"""

from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.queues import take
from fluidcc.packets.engine.records import packet_at


@compiled
def tag_own(port, beside, size):
    """Tag a packet that comes to the port's own queue; call before it is put there."""
    if port.count == 0:
        beside.own_tag = beside.virtual + size / beside.own_weight


@compiled
def tag_beside(beside, size):
    """Tag a packet that comes to the queue beside; call before it is put there."""
    if beside.count == 0:
        beside.tag = beside.virtual + size / beside.weight


@compiled
def turn_of_beside(port, beside):
    """Whether the queue beside is served next (1), or the port's own, which may be empty (0)."""
    if beside.count == 0:
        return 0
    return 1 if port.count == 0 or beside.tag <= beside.own_tag else 0


@compiled
def take_own(s, port, beside):
    """Take the head of the port's own queue, which holds a packet."""
    index = take(s, port)
    beside.virtual = beside.own_tag
    if port.count > 0:
        beside.own_tag += packet_at(s.packets, port.head).size / beside.own_weight
    return index


@compiled
def take_beside(s, beside):
    """Take the head of the queue beside, which holds a packet."""
    index = take(s, beside)
    beside.virtual = beside.tag
    if beside.count > 0:
        beside.tag += packet_at(s.packets, beside.head).size / beside.weight
    return index
