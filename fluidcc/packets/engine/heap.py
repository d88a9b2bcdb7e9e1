"""The calendar: an indexed binary heap of entities by next event time.

Every entity is in the heap all the time, idle ones with the time NEVER, so nothing is allocated
or cancelled. Events of the same instant come in the order in which they were set off (a packet's
arrival when its transmission began), then by entity number: results do not depend on the heap's
shape, and equal round trips on a lattice of packet times resolve as in ns-2.
"""

from fluidcc.packets.engine.pointer import compiled, inlined
from fluidcc.packets.engine.records import entity_at, node_at


@inlined
def _place(s, slot, time, since, entity):
    node = node_at(s.heap, slot)
    node.time = time
    node.since = since
    node.entity = entity
    entity_at(s.entities, entity).slot = slot


@inlined
def _earlier(time, since, entity, node):
    if time != node.time:
        return time < node.time
    if since != node.since:
        return since < node.since
    return entity < node.entity


@compiled
def next_time(s, entity):
    """Time of the next event of an entity."""
    return node_at(s.heap, entity_at(s.entities, entity).slot).time


@compiled
def schedule(s, entity, time, since):
    """Move the next event of an entity, set off at `since`, to `time`."""
    slot = entity_at(s.entities, entity).slot
    if _earlier(time, since, entity, node_at(s.heap, slot)):
        while slot > 0:
            above = (slot - 1) >> 1
            node = node_at(s.heap, above)
            if not _earlier(time, since, entity, node):
                break
            _place(s, slot, node.time, node.since, node.entity)
            slot = above
    else:
        last = s.entity_count - 1
        while True:
            below = 2 * slot + 1
            if below > last:
                break
            node = node_at(s.heap, below)
            if below < last:
                other = node_at(s.heap, below + 1)
                if _earlier(other.time, other.since, other.entity, node):
                    below += 1
                    node = other
            if _earlier(time, since, entity, node):
                break
            _place(s, slot, node.time, node.since, node.entity)
            slot = below
    _place(s, slot, time, since, entity)
