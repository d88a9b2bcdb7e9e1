"""Files that flows send: when transfers begin and end, by the rules of a source.

A source that is not open is a flow with one session of its own. An open source begins sessions of
pages of objects, and gives each object to a flow that is free. In a step a source begins at most
one session and one object, and takes note of one that has ended; what is late is not lost.
"""

from typing import Any

import numpy as np

from fluidcc.arrays import jnp
from fluidcc.programs import map_tree
from fluidcc.trains.layout import Kind, KindNumbers
from fluidcc.trains.senders import select, take_sample
from fluidcc.trains.state import LARGEST, NEVER, FileState, OpenState

Array = Any


def _count(value: Array) -> Array:
    return jnp.ceil(jnp.clip(value, 1.0, LARGEST))


def _pick(values: Array, chosen: Array) -> Array:
    """The value (B) at the one place (m, B) that is chosen, or 0."""
    return jnp.sum(jnp.where(chosen, values, 0.0), axis=0)


def _first(mask: Array) -> Array:
    """The mask (m, B) with only its first place."""
    place = jnp.argmax(mask, axis=0)
    index = jnp.arange(mask.shape[0])[:, None]
    return mask & (index == place[None])


def _one(law: Any) -> Any:
    """A law of a source with numbers for (B): those of its first flow."""
    return map_tree(lambda v: v if np.ndim(v) == 0 else v[0], law)


def _end(f: FileState, done: Array, now: Array) -> FileState:
    span = jnp.where(done, now - f.requested_at, 0.0)
    return f._replace(
        transfers=f.transfers + jnp.where(done, 1.0, 0.0), span_sum=f.span_sum + span,
        span_squares=f.span_squares + span**2,
    )  # fmt: skip


def advance_files(kind: Kind, p: KindNumbers, s: Any, now: Array, refused: Array, u: Array) -> Any:
    """Senders after the files that end and begin in a step; `u` are its random numbers.

    `refused` is the probability (B) that a SYN is lost on its way.
    """
    ended = (s.need > 0) & (s.got >= s.need)
    advance = _advance_open if kind.sessions else _advance_closed
    files, ended, starting, size = advance(kind, p, s, ended, now, u)
    s = s._replace(need=jnp.where(ended, 0.0, s.need), files=_end(files, ended, now))
    lost = u[-1 if kind.sessions else -kind.count :] < refused[None]
    return _connect(p, _begin(p, s, starting, size, now), lost, now)


def _advance_closed(
    kind: Kind, p: KindNumbers, s: Any, ended: Array, now: Array, u: Array
) -> tuple[FileState, Array, Array, Array]:
    """Flows with a session each: their files, which end and which begin, and sizes (n, B)."""
    f = s.files
    over = ended & (f.pages == 1)
    pause = p.traffic.pause(u[: kind.count]) + 0.0 * s.sent
    next_at = jnp.where(ended, jnp.where(over, NEVER, now + pause), f.next_at)
    starting = ((s.need <= 0) | ended) & (now >= next_at)
    size = _count(p.traffic.size(u[kind.count : 2 * kind.count]) + 0.0 * s.sent)
    pages = jnp.where(ended & (f.pages > 0), f.pages - 1, f.pages)
    f = f._replace(next_at=jnp.where(starting, NEVER, next_at), pages=pages)
    return f, ended, starting, size


def _advance_open(
    kind: Kind, p: KindNumbers, s: Any, ended: Array, now: Array, u: Array
) -> tuple[FileState, Array, Array, Array]:
    """Flows of an open source: their files, which end and which begin, and sizes (n, B)."""
    f, law, free = s.files, _one(p.traffic), s.need <= 0
    ended = _first(ended)
    o = _after_end(f.open, ended, f.owner, law, now, u)
    o = _new_session(o, law, now, f.next_at[0], p.most, u)
    o, place, emits = _new_object(o, law, now, u)
    given = _first(free) & emits[None]
    crowded = jnp.where(emits & ~jnp.any(free, axis=0), 1.0, 0.0)
    size = _count(law.size(u[0]))[None] + 0.0 * s.sent
    owner = jnp.where(given, place[None] + 0.0 * f.owner, f.owner)
    o = o._replace(crowded=jnp.maximum(o.crowded, crowded))
    return f._replace(owner=owner, open=o), ended, given, size


def _after_end(
    o: OpenState, ended: Array, owner: Array, law: Any, now: Array, u: Array
) -> OpenState:
    """The sessions after the end of the object of a flow (n, B): the next page, or the end."""
    some = jnp.any(ended, axis=0)
    place = _pick(owner, ended)
    mine = (jnp.arange(o.pages.shape[0], dtype=float)[:, None] == place[None]) & some[None]
    under_way = o.under_way - jnp.where(mine, 1.0, 0.0)
    over = mine & (under_way < 0.5) & (o.objects < 0.5)
    pages = jnp.where(over, o.pages - 1, o.pages)
    pause = law.pause(u[1]) + 0.0 * now
    next_at = jnp.where(over, jnp.where(pages > 0, now + pause[None], NEVER), o.next_at)
    return o._replace(under_way=under_way, pages=pages, next_at=next_at)


def _new_session(
    o: OpenState, law: Any, now: Array, begin: Array, most: Array, u: Array
) -> OpenState:
    """A session that begins, if it is time."""
    due = (now >= o.arrives_at) & (o.begun < most) & (now >= begin)
    first = due & (o.arrives_at <= 0)  # the source itself begins, and waits
    gap = law.arrival(u[2])
    comes = due & ~first
    free = _first((o.pages < 0.5) & (o.under_way < 0.5))
    given = free & comes[None]
    crowded = comes & ~jnp.any((o.pages < 0.5) & (o.under_way < 0.5), axis=0)
    return o._replace(
        arrives_at=jnp.where(first, now + gap, jnp.where(comes, o.arrives_at + gap, o.arrives_at)),
        begun=o.begun + jnp.where(comes, 1.0, 0.0),
        pages=jnp.where(given, _count(law.pages(u[3]) + 0.0 * gap)[None], o.pages),
        objects=jnp.where(given, 0.0, o.objects),
        next_at=jnp.where(given, now, o.next_at),
        crowded=jnp.maximum(o.crowded, jnp.where(crowded, 1.0, 0.0)),
    )  # fmt: skip


def _new_object(o: OpenState, law: Any, now: Array, u: Array) -> tuple[OpenState, Array, Array]:
    """The next object of a session, if one is due: the place of its session, and whether."""
    chosen = _first((o.pages > 0.5) & (now >= o.next_at))
    emits = jnp.any(chosen, axis=0)
    fresh = _count(law.objects(u[4]) + 0.0 * now)
    before = jnp.where(o.objects < 0.5, fresh[None] + 0.0 * o.objects, o.objects)
    objects = jnp.where(chosen, before - 1, o.objects)
    gap = law.gap(u[5]) + 0.0 * now
    next_at = jnp.where(chosen, jnp.where(objects > 0.5, now + gap[None], NEVER), o.next_at)
    index = jnp.arange(o.pages.shape[0], dtype=float)[:, None] + 0.0 * o.pages
    under_way = o.under_way + jnp.where(chosen, 1.0, 0.0)
    after = o._replace(objects=objects, next_at=next_at, under_way=under_way)
    return after, _pick(index, chosen), emits


def _begin(p: KindNumbers, s: Any, starting: Array, size: Array, now: Array) -> Any:
    """Begin transfers on new connections."""
    zero = 0.0 * s.sent

    def new(value: Any, old: Array) -> Array:
        return jnp.where(starting, value, old)

    asked = now + p.asking * jnp.maximum(s.round_trip, p.trip)
    return s._replace(
        law=select(starting, p.window.start(p.initial + zero), s.law),
        threshold=new(p.threshold, s.threshold), need=new(size, s.need), got=new(0.0, s.got),
        recover=new(s.sent - 1.0, s.recover), reacted_at=new(-NEVER, s.reacted_at),
        dropped=new(0.0, s.dropped), repaired_at=new(-NEVER, s.repaired_at),
        resent=new(-1.0, s.resent), missing=new(0.0, s.missing),
        silent_until=new(-NEVER, s.silent_until), backoff=new(1.0, s.backoff),
        signalled=new(0.0, s.signalled), at_one=new(0.0, s.at_one), timed=new(s.sent, s.timed),
        smoothed=new(0.0, s.smoothed), timeout=new(p.first_rto, s.timeout),
        pending=new(0.0, s.pending), quiet=new(0.0, s.quiet), estimate=new(0.0, s.estimate),
        begin=new(NEVER, s.begin),
        files=s.files._replace(
            requested_at=new(now, s.files.requested_at), connects_at=new(asked, s.files.connects_at)
        ),
    )  # fmt: skip


def _connect(p: KindNumbers, s: Any, lost: Array, now: Array) -> Any:
    """Send the SYNs that are due. One that is `lost`, (n, B) or (1, B), is sent again after a
    timeout, as which it counts.
    """
    due = now >= s.files.connects_at
    lost = due & lost & (p.syn > 0)
    opened = due & ~lost
    again = now + jnp.minimum(p.first_rto * s.backoff, p.max_rto)
    trip = jnp.maximum(s.round_trip, p.trip)
    opens = now + p.syn * trip
    s = take_sample(p, s, opened & (s.backoff < 2) & (p.syn > 0), trip, opens)
    return s._replace(
        law=select(lost, p.window.start(1.0 + 0.0 * s.sent), s.law),
        threshold=jnp.where(lost, 2.0, s.threshold),
        backoff=jnp.where(lost, 2 * s.backoff, s.backoff),
        timeouts=s.timeouts + jnp.where(lost, 1.0, 0.0),
        begin=jnp.where(opened, opens, s.begin), tick_at=jnp.where(opened, opens, s.tick_at),
        files=s.files._replace(
            connects_at=jnp.where(lost, again, jnp.where(due, NEVER, s.files.connects_at)),
            syns=jnp.sum(jnp.where(due, p.syn, 0.0), axis=0),
        ),
    )  # fmt: skip
