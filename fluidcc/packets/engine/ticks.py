"""Ticks of queue laws: timers, and ticks that wait until there is something to do."""

from fluidcc.packets.engine.calendar import schedule
from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import call, compiled
from fluidcc.packets.engine.records import (
    NEVER,
    NOT_A_NUMBER,
    Q_CHANGED,
    entity_at,
    number_at,
    port_at,
)
from fluidcc.packets.engine.signals import tell, waiting
from fluidcc.packets.engine.streams import draw


@compiled
def _perform(s, port):
    """Perform a tick and set the timer; 0 if the tick waits for a better moment."""
    queue = waiting(port)
    if port.counts_system == 1:
        queue += port.busy
    tell(s, port, port.unit, queue)
    call(port.tick, port.block)
    changed = number_at(port.block, Q_CHANGED).value
    if changed != changed:
        s.status = NOT_A_NUMBER
    if changed == 0 and port.waits == 1:
        return 0
    span = port.period
    if port.spread > 0:
        span += port.spread * draw(port)
    schedule(s, port.timer, s.now + span, s.now)
    return 1


@part()
def tick(s, entity):
    """Answer the timer of a queue law."""
    port = port_at(s.ports, entity_at(s.entities, entity).index)
    if _perform(s, port) == 0:
        port.due = 1
        schedule(s, entity, NEVER, s.now)


@part(records="port")
def catch_up(s, port):
    """Perform a tick that is due, if it does something now."""
    if _perform(s, port) == 1:
        port.due = 0
