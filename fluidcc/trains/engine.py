"""One step of trains: senders hear and send, links pass on, in the order of the routes."""

import functools
from typing import Any, NamedTuple

import numpy as np

from fluidcc.arrays import jnp, lax
from fluidcc.executables import compile_once
from fluidcc.laws.law import SIGNALS, MarkingPoint
from fluidcc.trains import links, senders
from fluidcc.trains.files import advance_files
from fluidcc.trains.layout import (
    LATE,
    Kind,
    KindNumbers,
    Numbers,
    Shape,
    draws_of_files,
    draws_of_law,
    draws_of_port,
    draws_to_respond,
)
from fluidcc.trains.rings import (
    between,
    event_row,
    last,
    read,
    read_flows,
    whole,
    write,
)
from fluidcc.trains.state import Run, SenderState

Array = Any


class _Path(NamedTuple):
    """A way back in time: when packets were sent, and when they came to and left each hop."""

    sent: Array
    came: tuple[Array, ...]
    left: tuple[Array, ...]


class _Train(NamedTuple):
    """What flows have sent in a step, which passes one flow after the other; (n, B) but for the row
    before it and what of all flows together has come.
    """

    low: Array
    sent: Array  # up to that row
    count: Array
    before: Array  # of other flows
    came: Array

    def passed(self) -> Array:
        """Packets (n, B) that have passed since the start."""
        return whole(self.sent + jnp.clip(self.came - self.before, 0.0, self.count))

    def row(self) -> Array:
        """The last row (n, B) whose events have been reached, by the middle of each train."""
        middle = self.before + 0.5 * self.count
        return self.low + jnp.where(self.came >= middle, 1.0, 0.0)


class _Step:
    """What the parts of one step share."""

    def __init__(self, shape: Shape, numbers: Numbers, run: Run, u: Array) -> None:
        self.shape, self.numbers, self.record, self.k = shape, numbers, run.record, run.k
        self.done: set[int] = set()  # links of this step
        self.known: list[tuple[Array, Array]] = []  # (n, B) of each kind, before and after ACKs
        self._random, self._drawn = u, 0

    def draw(self, count: int) -> Array:
        """The next random numbers (count, B)."""
        self._drawn += count
        return self._random[self._drawn - count : self._drawn]

    def _known(self, link: int, time: Array) -> Array:
        """The time, or the last that a link has a record of."""
        return jnp.minimum(time, (self.k if link in self.done else self.k - 1).astype(float))

    def back_to(self, kind: Kind, p: KindNumbers, time: Array, hops: int) -> _Path:
        """The way of packets that arrive, at `time`, after the first `hops` hops."""
        came, left = [], []
        for hop in reversed(range(hops)):
            link = kind.route[hop]
            out = self._known(link, time)
            place = between(self.record.ports[link].place, out)
            came.append(place)
            left.append(out)
            time = place if hop == 0 else place - p.legs[hop] / self.numbers.step
        return _Path(time, tuple(reversed(came)), tuple(reversed(left)))

    def to_receiver(self, kind: Kind, p: KindNumbers, time: Array, back: int) -> Array:
        """When packets left their last link whose ACKs arrive, at `time`, after `back` links."""
        for hop in reversed(range(back)):
            link = kind.back[hop]
            place = between(self.record.ports[link].place, self._known(link, time))
            time = place - p.home[hop] / self.numbers.step
        return time

    def train(self, kind: Kind, time: Array) -> _Train:
        """What each flow sent in the step of a time."""
        record, low, own = self.record, jnp.floor(time), (0, kind.count)
        ring = record.sent[kind.number]
        sent = read_flows(ring, low, *own)
        came = (time - low) * read(record.together[kind.route[0]], low + 1)
        before = read_flows(record.before[kind.number], low + 1, *own)
        return _Train(low, sent, read_flows(ring, low + 1, *own) - sent, before, came)

    def lost(self, kind: Kind, path: _Path, train: _Train) -> Array:
        """Packets (n, B) of a path that were lost at each hop, in all, since the start."""
        total = jnp.zeros(())
        for hop, time in enumerate(path.came):
            ring = self.record.ports[kind.route[hop]].lost
            if ring.shape[0]:
                row = event_row(time) if hop else train.row()
                total = total + read_flows(ring, row, kind.offsets[hop], kind.count)
            ring = self.record.ports[kind.route[hop]].shed
            if not isinstance(ring, tuple):
                row = event_row(path.left[hop])
                total = total + read_flows(ring, row, kind.offsets[hop], kind.count)
        return total

    def come(self, kind: Kind, path: _Path) -> Array:
        """Packets (n, B) that have come along a path, without those lost on it, since the start."""
        train = self.train(kind, path.sent)
        return train.passed() - self.lost(kind, path, train)

    def now(self) -> Array:
        """The time (1, 1) at the end of the step, in steps."""
        return self.k.astype(float)[None, None]

    def hear(self, kind: Kind, p: KindNumbers, s: SenderState) -> tuple[senders.Heard, Array]:
        """What reaches the senders of a kind, and the age (B) of what was sent first [steps]."""
        record, step = self.record, self.numbers.step
        end = self.to_receiver(kind, p, self.now() - p.home[-1] / step, len(kind.back))
        path = self.back_to(kind, p, end, len(kind.route))
        zero = jnp.zeros_like(s.sent)
        train = self.train(kind, path.sent)
        marks, quenched, spared = zero, zero, 1.0 + zero
        written = dict.fromkeys(kind.written, zero)
        for hop, link in enumerate(kind.route):
            port = record.ports[link]
            where = kind.offsets[hop], kind.count
            told = jnp.minimum(self.now() - p.quench[hop] / step, self.k.astype(float) - 1)
            if port.marks.shape[0] and kind.marking_point is not MarkingPoint.REVERSE:
                if kind.quench:
                    row = event_row(told)
                elif kind.marking_point in LATE or self.shape.ports[link].departs:
                    row = event_row(path.left[hop])
                else:
                    row = event_row(path.came[hop]) if hop else train.row()
                marks = marks + read_flows(port.marks, row, *where)
            if kind.quench and port.lost.shape[0]:
                quenched = quenched + jnp.ceil(
                    read_flows(port.lost, event_row(told), *where) - 1e-6
                )
            met = path.left if self.shape.ports[link].departs else path.came
            for name, ring in zip(self.shape.ports[link].written, port.written, strict=True):
                if name in written:
                    number = read(ring, event_row(met[hop]))
                    written[name] = SIGNALS[name].combine(written[name], number)
            if kind.marking_point is MarkingPoint.REVERSE and port.chance.shape[0]:
                spared = spared * (1 - read(port.chance, jnp.floor(told)))
        heard = senders.Heard(
            known=jnp.maximum(train.passed(), s.known),
            lost=jnp.maximum(self.lost(kind, path, train) + zero, s.lost),
            marks=marks, quenched=quenched, written=written,
            rtt=jnp.maximum((self.now() - path.sent) * step + zero, p.trip),
            modified=1 - spared,
        )  # fmt: skip
        return heard, jnp.max(self.now() - path.sent, axis=0)

    def refused(self, kind: Kind, p: KindNumbers, run: Run) -> Array:
        """Probability (B) that the SYN of a connection is lost, or its acknowledgement."""
        kept, least = 1.0 + 0.0 * run.oldest, jnp.max(p.least)
        entry = 1.0 if kind.marking_point is MarkingPoint.ENTRY else 0.0
        for link, size in zip((*kind.route, *kind.back), (*p.opener, *p.ack), strict=True):
            port, numbers = self.shape.ports[link], self.numbers.ports[link]
            state, step, size = run.ports[link], self.numbers.step, jnp.max(size)
            kept = kept * (1 - links.chance_of_loss(port, numbers, state, step, size, least, entry))
        return 1 - kept

    def offer(self, link: int, run: Run) -> tuple[links.Offer, Run]:
        """What comes to a link, and the run that knows of it."""
        shape, numbers = self.shape, self.numbers
        arrived, returned = [list(a) for a in run.arrived], [list(r) for r in run.returned]
        parts, paces, facts = [], [], []
        zero = jnp.zeros_like(run.ports[link].accepted)
        work, number, voice, loose, loose_work = (zero,) * 5
        port, own = shape.ports[link], numbers.ports[link]
        if port.voice:
            state, talk = links.talk(own, run.ports[link], numbers.step, self.draw(4))
            run = run._replace(ports=(*run.ports[:link], state, *run.ports[link + 1 :]))
            if port.second:
                voice = talk * own.voice.size
            else:
                loose, loose_work = talk, talk * own.voice.size
        if port.cross:
            came = links.poisson(own.cross * numbers.step + zero, self.draw(1)[0])
            loose, loose_work = loose + came, loose_work + came
        for kind, p in zip(shape.kinds, numbers.kinds, strict=True):
            for hop in (h for h, k in enumerate(kind.route) if k == link):
                before = arrived[kind.number][hop]
                if hop == 0:  # senders sit at their first link
                    here = run.senders[kind.number].sent
                else:
                    path = self.back_to(kind, p, self.now() - p.legs[hop] / numbers.step, hop)
                    here = jnp.maximum(self.come(kind, path), before)
                parts.append(here - before)
                if port.single:
                    known, now = self.known[kind.number]
                    paces.append(parts[-1] if hop else now - known)
                if kind.starts:  # SYNs, which are at all links at once
                    syns = run.senders[kind.number].files.syns
                    number, work = number + syns, work + syns * jnp.max(p.opener[hop])
                arrived[kind.number][hop] = here
                facts.append((kind, p))
            for hop in (h for h, k in enumerate(kind.back) if k == link):
                end = self.to_receiver(kind, p, self.now() - p.home[hop] / numbers.step, hop)
                path = self.back_to(kind, p, end, len(kind.route))
                before = returned[kind.number][hop]
                total = jnp.maximum(jnp.sum(self.come(kind, path), axis=0), before)
                number = number + total - before
                work = work + (total - before) * jnp.max(p.ack[hop])
                returned[kind.number][hop] = total
        run = run._replace(arrived=tuple(map(tuple, arrived)), returned=tuple(map(tuple, returned)))
        maps = port.beside < 0 and any(kind.mapped for kind, _ in facts)
        return _offer(facts, parts, paces, work, number, voice, loose, loose_work, maps), run

    def _beside(self, link: int, run: Run, point: MarkingPoint) -> Array:
        """Probability (B) of a signal by the queue beside a link, to a packet that leaves now."""
        other = self.shape.ports[link].beside
        port, numbers, state = self.shape.ports[other], self.numbers.ports[other], run.ports[other]
        return links.chance_of_leaving(port, numbers, state, self.numbers.step, point, 0.0)

    def coupled(self, link: int, run: Run, offer: links.Offer) -> Array:
        """Marks (N, B) of packets that enter a link by the queue beside it."""
        chances = offer.chances(self._beside(link, run, MarkingPoint.DEPARTURE))
        u = self.draw(self.shape.ports[link].flows)
        return links.draw_signals(chances, offer.flows, u) * offer.entry * offer.capable

    def judged(
        self, link: int, run: Run, leaving: links.Leaving, u: Array
    ) -> tuple[Array, Array, Run]:
        """Marks and losses (N, B) of packets that a link's law has decided upon as they left, and
        the run that knows of them.
        """
        departed, parts, facts = [list(d) for d in run.departed], [], []
        for kind, p in zip(self.shape.kinds, self.numbers.kinds, strict=True):
            for hop in (h for h, k in enumerate(kind.route) if k == link):
                path = self.back_to(kind, p, self.now(), hop + 1)
                before = departed[kind.number][hop]
                here = jnp.maximum(self.come(kind, path), before)
                departed[kind.number][hop] = here
                parts.append(here - before)
                facts.append((kind, p))
        flows = jnp.concatenate(parts)
        shares = [v / jnp.maximum(leaving.number, 1.0) for v in (leaving.marked, leaving.dropped)]
        chosen, shed = (
            links.deal(flows * share[None], u) for share, u in zip(shares, u[:2], strict=True)
        )
        if any(kind.mapped for kind, _ in facts):
            mapped, own = _column(facts, lambda kind, _: kind.mapped), _chances(facts, shares[0])
            own = links.draw_signals(own, flows, u[2:])
            chosen = jnp.where(mapped > 0, own, chosen)
        marks = chosen * _column(facts, lambda kind, _: kind.capable)
        lost = jnp.minimum(chosen - marks + shed, flows)
        return marks, lost, run._replace(departed=tuple(map(tuple, departed)))

    def departing(self, link: int, run: Run, arms: Array) -> tuple[Array, Run]:
        """Marks (N, B) that are set as packets leave a link, and the run that knows of it."""
        shape, numbers = self.shape, self.numbers
        departed, marks = [list(d) for d in run.departed], []
        port, state = shape.ports[link], run.ports[link]
        own, lanes, chances = numbers.ports[link], state.accepted.shape[0], {}
        for kind, p in zip(shape.kinds, numbers.kinds, strict=True):
            for hop in (h for h, k in enumerate(kind.route) if k == link):
                if kind.marking_point not in LATE:
                    marks.append(jnp.zeros((kind.count, lanes)))
                    continue
                if kind.marking_point not in chances:
                    chances[kind.marking_point] = links.chance_of_leaving(
                        port, own, state, numbers.step, kind.marking_point, arms
                    )
                chance = chances[kind.marking_point]
                before, path = (
                    departed[kind.number][hop],
                    self.back_to(kind, p, self.now(), hop + 1),
                )
                here = jnp.maximum(self.come(kind, path), before)
                departed[kind.number][hop] = here
                u = self.draw(kind.count)
                if port.beside >= 0:
                    other = self._beside(link, run, kind.marking_point)
                    chance = chance + (1 - chance) * p.marking.probability(other, p.window)
                elif kind.mapped:
                    chance = p.marking.probability(chance, p.window)
                marks.append(links.draw_signals(chance[None], here - before, u))
        return jnp.concatenate(marks), run._replace(departed=tuple(map(tuple, departed)))


def _column(facts: list, value: Any) -> Array:
    """A number (N, 1) of the flows of a link, from their kinds and numbers."""
    each = [
        jnp.broadcast_to(jnp.asarray(value(kind, p), float), (kind.count, 1)) for kind, p in facts
    ]
    return jnp.concatenate(each) if each else jnp.zeros((0, 1))


def _chances(facts: list, mark: Array) -> Array:
    """Probabilities (N, B) of a mark for the flows of a link whose own is `mark` (B)."""
    each = [
        jnp.broadcast_to(
            p.marking.probability(mark, p.window) if kind.mapped else mark,
            (kind.count, mark.shape[0]),
        )
        for kind, p in facts
    ]
    return jnp.concatenate(each)


def _offer(
    facts: list, parts: list, paces: list, work: Array, number: Array, voice: Array, loose: Array,
    loose_work: Array, maps: bool,
) -> links.Offer:  # fmt: skip
    """What comes to a link, with what its flows are like."""
    column, lanes = functools.partial(_column, facts), voice.shape[0]
    return links.Offer(
        flows=jnp.concatenate(parts) if parts else jnp.zeros((0, lanes)),
        pace=jnp.concatenate(paces) if paces else (),
        work=work, number=number, voice=voice, loose=loose, loose_work=loose_work,
        mapped=column(lambda kind, _: maps and kind.mapped),
        maps=maps,
        chances=functools.partial(_chances, facts),
        capable=column(lambda kind, _: kind.capable),
        entry=column(lambda kind, _: kind.marking_point is MarkingPoint.ENTRY),
        below=column(lambda _, p: p.mark_below),
        least=jnp.max(facts[0][1].least) if facts else jnp.zeros(()),
        arms=jnp.max(facts[0][1].arms) if facts else jnp.zeros(()),
    )  # fmt: skip


def _order(shape: Shape) -> list[int]:
    """Links so that what leaves one in a step can come to those after it."""
    depth = dict.fromkeys(range(len(shape.ports)), 0)
    for kind in shape.kinds:
        for hop, link in enumerate((*kind.route, *kind.back)):
            depth[link] = max(depth[link], hop)
    for link, port in enumerate(shape.ports):
        if port.after >= 0:  # what is left to it
            depth[link] = max(depth[link], depth[port.after])
    return sorted(depth, key=lambda link: (depth[link], shape.ports[link].after >= 0))


def advance_step(shape: Shape, numbers: Numbers, run: Run, u: Array) -> Run:
    """One step, with its random numbers (draws, B)."""
    step, k = numbers.step, run.k
    now = k.astype(float) * step
    this = _Step(shape, numbers, run, u)
    states, sent_rings, before_rings, oldest = [], [], [], run.oldest
    together = [0.0 * oldest for _ in shape.ports]
    for kind, p, s in zip(shape.kinds, numbers.kinds, run.senders, strict=True):
        heard, age = this.hear(kind, p, s)
        oldest = jnp.maximum(oldest, age)
        this.known.append((s.known, heard.known))
        s = senders.respond(kind, p, s, heard, now, step, this.draw(draws_to_respond(kind)))
        if kind.starts:
            refused = this.refused(kind, p, run)
            s = advance_files(kind, p, s, now, refused, this.draw(draws_of_files(kind)))
        had, s = s.sent, senders.send(kind, p, s, now, step)
        ends = together[kind.route[0]][None] + jnp.cumsum(s.sent - had, axis=0)
        together[kind.route[0]] = ends[-1]
        before = ends - (s.sent - had)
        states.append(s)
        sent_rings.append(write(run.record.sent[kind.number], k, s.sent))
        before_rings.append(write(run.record.before[kind.number], k, before))
    begun = zip(run.record.together, together, strict=True)
    this.record = run.record._replace(
        sent=tuple(sent_rings),
        before=tuple(before_rings),
        together=tuple(write(ring, k, total) for ring, total in begun),
    )
    run = run._replace(senders=tuple(states), oldest=oldest)
    records, had_served = list(run.record.ports), [s.served for s in run.ports]
    for link in _order(shape):
        port = shape.ports[link]
        offer, run = this.offer(link, run)
        ports, before = list(run.ports), run.ports[link].served
        own = draws_of_port(port) - 4 * port.voice - port.cross - (port.beside >= 0) * port.flows
        first = port.after  # its transmitter serves that queue first
        taken = run.ports[first].served - had_served[first] if first >= 0 else 0.0
        ahead = links.waited(records[first], k + 1) if first >= 0 else 0.0
        whole = links.room_of(port, link, numbers.ports[link], step, run, taken)
        outcome = links.pass_through(
            port,
            numbers.ports[link],
            ports[link],
            records[link],
            offer,
            k,
            now,
            step,
            whole,
            ahead,
            drawn := this.draw(own),
        )
        ports[link], records[link] = outcome.state, outcome.record
        this.record = this.record._replace(ports=tuple(records))
        this.done.add(link)
        if port.signals:
            marks = outcome.marks
            if port.beside >= 0:
                marks = jnp.minimum(marks + this.coupled(link, run, offer), offer.flows)
            if outcome.leaving:
                run = run._replace(ports=tuple(ports))
                own = drawn[port.blocks : draws_of_law(port)]
                late, lost, run = this.judged(link, run, outcome.leaving, own)
                marks = marks + late
                ring, shed = records[link].shed, jnp.sum(lost, axis=0)
                records[link] = records[link]._replace(shed=write(ring, k, last(ring, k) + lost))
                state = ports[link]
                ports[link] = state._replace(shed=shed, dropped=state.dropped + shed)
            elif any(kind.marking_point in LATE and link in kind.route for kind in shape.kinds):
                late, run = this.departing(link, run._replace(ports=tuple(ports)), offer.arms)
                marks = marks + late
            ring = records[link].marks
            records[link] = records[link]._replace(marks=write(ring, k, last(ring, k) + marks))
            ports[link] = ports[link]._replace(marked=ports[link].marked + jnp.sum(marks, axis=0))
        if port.rewrites:
            ports[link], records[link] = links.rewrite(
                port, numbers.ports[link], ports[link], records[link], before, k, step, offer.arms
            )
        this.record = this.record._replace(ports=tuple(records))
        run = run._replace(ports=tuple(ports))
    return run._replace(k=k + 1, record=this.record)


def uniform(keys: Array, k: Array, count: int) -> Array:
    """Random numbers (count, B) in (0, 1) of step k for the keys (B) of lanes.

    Each is a hash of its number: the finalizer of MurmurHash3 (Appleby), twice.
    """
    number = k.astype(jnp.uint32) * np.uint32(count) + jnp.arange(count, dtype=jnp.uint32)
    mixed = _mixed(_mixed(number)[:, None] ^ keys[None])
    return (mixed.astype(float) + 0.5) * 2.0**-32


def _mixed(v: Array) -> Array:
    v = (v ^ (v >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    v = (v ^ (v >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return v ^ (v >> np.uint32(16))


@compile_once(static_argnames=("shape",))
def advance(shape: Shape, numbers: Numbers, run: Run, keys: Array, count: Array) -> Run:
    """Perform `count` steps for the keys (B) of the lanes."""

    def one(_: Array, run: Run) -> Run:
        return advance_step(shape, numbers, run, uniform(keys, run.k, shape.draws))

    return lax.fori_loop(0, count, one, run)
