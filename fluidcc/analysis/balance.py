"""Check an equilibrium against the equations of motion, which were not used to find it.

On a discontinuity senders receive the signals of both sides in turn, each for its share of the
time. The mean change vanishes: zero is a convex combination of both sides (Filippov, 1988, sec. 4).
So it is if a sender's own rule jumps at its window, and drives shorter and longer ones back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc import ops
from fluidcc.analysis.linear import Array
from fluidcc.analysis.local_model import constant_inputs, local_state, present
from fluidcc.analysis.operating_point import OperatingPoint, Regime
from fluidcc.analysis.sliding import (
    LOAD,
    SIGNAL,
    SlidingSurface,
    exact,
    mixed,
    shares,
    weighed,
    with_exact_loads,
)
from fluidcc.analysis.steady_laws import (
    after_arrivals,
    neighbour,
    offered_rate,
    queue_at,
    tick_change,
)
from fluidcc.laws.law import SIGNALS, Signal
from fluidcc.model.delays import (
    Outputs,
    State,
    breakpoint_distances,
    make_outputs,
    output_index,
    output_indices,
    signal_fields,
)
from fluidcc.model.rates import HIGH, LOW, SOME_ACTIVE, queue_law_rate
from fluidcc.ops import Num
from fluidcc.programs import batch, compiled, flatten, leaves, map_tree, ravel
from fluidcc.scenario.network import Network

_BALANCED = 1e-8  # of the scale of a row
_ROUNDING = 1e-12  # of a number itself
_ULPS = 4 * np.finfo(float).eps  # of a number itself, between two neighbouring points
_LEAST = 1e-14  # of probabilities, load factors and paces
_AGREE = 1e-5  # of the derivative along a direction
_STEPS = (1e-5, 1e-8)  # of each number, along a direction: central, and one-sided ones so short
# that an undeclared breakpoint of a law is crossed on one side at most
_SHORTEST = 1e-8
_JUMP = 1e-6  # of a number itself; changes by less between two neighbours are of rounding
_WITHIN = 0.1  # of the distance to the next breakpoint: longest step
_COARSE = 5e-3  # of a mean flight; cuts to whole packets leave steps of up to 0.4 % on any grid
_MIDDLE = np.zeros(())  # on a breakpoint itself, on neither side of it
_SIGNS = 4  # random directions
_SOME_USE = 1e-8  # utilization of a link; below it arrivals have few significant digits


class Rows(NamedTuple):
    """Residual of an equilibrium (n + m): change of the state per second, computed outputs less the
    assumed ones; its derivatives (3, K, n + m) by central, forward and backward differences along
    the directions (K, n + m) and their rounding errors (3, n + m); the longest step that crosses no
    breakpoint; the point itself, the tolerance of each row (n + m), per link the excess of arrivals
    [share of capacity] (L,), by how much the row of a sender jumps here (n + m), its value with
    windows a little shorter and a little longer (2, n + m), and whether these drive back (n + m).
    """

    value: Any
    slopes: Any
    rounding: Any
    directions: Any
    fits: Any
    point: Any
    allowed: Any
    excess: Any
    jump: Any
    beside: Any
    returns: Any


@compiled(static_argnames="held")
def _rows(
    net: Network, op: OperatingPoint, side: Num, regimes: Num, held: tuple[SlidingSurface, ...] = ()
) -> Rows:
    part, given = shares(op, held), {c.link for c in held if c.kind == SIGNAL}
    links, emitted = len(net.links), ()
    if given:
        emitted = tuple(op.emitted[k].signal if k in given else None for k in range(links))

    def received(u: Num) -> list[tuple[Num, Num]]:
        return weighed(net, op, held, part, u, np.arange(u.shape[-1]))

    at = local_state(net, op, side, emitted, received)
    v, unflatten = ravel(at.y)
    n, moves = len(v), 1 - at.frozen
    point = ops.concatenate([v, at.outputs])

    def rows(x: Num) -> tuple[Num, Num]:
        y, u, points = unflatten(x[..., :n]), x[..., n:], x.shape[:-1]

        def now(u: Num) -> tuple[Num, Num, Num]:
            found = present(net, at.modes, y, constant_inputs(net, u))[: -len(net.flows)]
            flat = flatten(found, points, (y, output_index(net), y.queues))
            return flat[..., :n], flat[..., n:-links], flat[..., -links:]

        drift, outputs, raw = mixed(received(u), now)
        return ops.concatenate([drift * moves, outputs - u], axis=-1), raw

    spread = np.random.default_rng(0).choice([-1.0, 1.0], (_SIGNS, len(point)))
    certain = ops.where(at.outputs == flatten(_certain(net)), 0.0, 1.0)
    free = ops.concatenate([flatten(_free(net, at.y)), certain])
    directions = spread * (abs(point) * free)[None]
    near = ops.concatenate([abs(breakpoint_distances(net, at.y)), np.array([np.inf])])
    longest = ops.maximum(ops.greatest(abs(v)), 1.0)
    fits = _WITHIN * ops.least(near) / longest
    steps = ops.stack([ops.minimum(step, fits) for step in _STEPS])
    steps = ops.where(
        fits < _SHORTEST, np.array(_STEPS), steps
    )  # on a breakpoint slopes only give scales
    away = steps[:, None, None] * directions[None]
    moved = ops.concatenate([away, -away]).reshape(-1, len(point))
    wider = steps[1] * ops.concatenate([_windows(net, at.y), 0.0 * at.outputs])[None]
    moved = ops.concatenate([0.0 * point[None], moved, -wider, wider])
    values, raws = batch(rows, point[None] + moved)
    up, down = values[1:-2].reshape(2, len(_STEPS), _SIGNS, len(point))
    value, raw, here, (long, short) = values[0], raws[0], values[:1], steps
    slopes = ops.stack(
        [(up[0] - down[0]) / (2 * long), (up[1] - here) / short, (here - down[1]) / short]
    )
    rounding = (_ULPS * abs(value))[None] / ops.stack([long, short, short])[:, None]
    capacity = ops.stack([link.capacity for link in net.links])
    ends = ops.stack(
        [ops.where(m == LOW, 1.0, ops.where(m == HIGH, -1.0, 0.0)) for m in at.modes.queues]
    )
    excess = ops.where(ends == 0, 0.0, ops.maximum(ends * raw, 0.0)) / capacity
    scale = abs(slopes[0]).max(axis=0)  # the largest term of each row
    least = scale * _BALANCED + _ROUNDING * abs(point) + _least(net, op)
    first = len(flatten(op.senders))
    growth = least[first : first + links] / capacity  # a pace is off by the growth of its queue
    least = ops.concatenate([least[:-links], ops.maximum(least[-links:], growth)])
    senders = np.arange(len(point)) < first  # queue laws declare their jumps
    jump = abs(up - down)[1].max(axis=0)
    real = senders & (jump > abs(up - down)[0].max(axis=0) / 2) & (jump > _JUMP * abs(point))
    jumps = ops.where(real & (fits >= _SHORTEST), jump, 0.0)
    allowed = ops.where(_unmoved(net, op, regimes), np.inf, least)
    beside = values[-2:]
    returns = _drive_back(beside, wider[0] != 0, jump, least)
    return Rows(
        value, slopes, rounding, directions, fits, point, allowed, excess, jumps, beside, returns
    )


def _drive_back(beside: Num, windows: Num, jump: Num, least: Num) -> Num:
    """Mask of the rows with zero between their values `beside` a jump: those of windows, which come
    back from both sides, and the other numbers of a sender, which follow its window either way.
    """
    shorter, longer = beside
    low, high = ops.minimum(shorter, longer), ops.maximum(shorter, longer)
    way = (shorter >= longer) | ~windows
    return way & (low <= least) & (high >= -least) & (high - low > jump / 2)


def _windows(net: Network, y: State) -> Num:
    """The state (n,) with all but its windows at zero."""
    pairs = zip(net.flows, y.senders, strict=True)
    none = [s._replace(law=f.window.with_window(s.law, 0.0 * f.window.window(s.law)))
            for f, s in pairs]  # fmt: skip
    return flatten(y) - flatten(y._replace(senders=tuple(none)))


def _free(net: Network, y: State) -> State:
    """Ones; zeros for memories at a bound of their law, beyond which they do not move."""
    laws = []
    for link, x in zip(net.links, y.laws, strict=True):
        limits = link.queue.limits
        inside = (lambda v, a, b: ((v > a) & (v < b)).astype(float)) if limits else ops.ones_like
        laws.append(map_tree(inside, x, *(limits or ())))
    return map_tree(ops.ones_like, y)._replace(laws=tuple(laws))


def _certain(net: Network) -> Outputs:
    """Outputs with mark and drop probabilities at their upper bound 1; -1 for all that has none."""
    never = tuple(np.full(np.shape(flows.rtt), -1.0) for flows in net.flows)
    tops = (1.0 if field.within.bounded else -1.0 for field in SIGNALS.values())
    sure, pace = Signal(*tops), -1.0
    return make_outputs(net, never, tuple(sure for _ in net.links), tuple(pace for _ in net.links))


def unbalanced(
    net: Network, op: OperatingPoint, regimes: tuple[Regime, ...]
) -> tuple[str, Rows | None]:
    """Message that names the worst residual of an equilibrium, empty if the equilibrium balances;
    and all residuals.

    Groups whose window is a formula of the loss rate have no equations of motion to check.
    """
    if any(flows.loss.window(0.0, 1.0) is not None for flows in net.flows):
        return "", None
    if net.closure == "population":
        return _unbalanced_populations(net, op, regimes), None
    kinds = {Regime.JUMP: SIGNAL, Regime.LOADED: LOAD}
    held = tuple(SlidingSurface(k, kinds[r], ()) for k, r in enumerate(regimes) if r in kinds)
    net, op = exact(net, held), with_exact_loads(op, held)
    rows: Rows = map_tree(np.asarray, _rows(net, op, _MIDDLE, np.array(regimes), held))
    passed = (rows.jump > 0) & ~rows.returns
    if np.any(passed):
        jumps = int(np.argmax(passed))
        name, unit = _names(net, op)[jumps]
        return (
            f"a rule of {name.split(' of ', 1)[1]} jumps at the queue found ({_queues(op)} "
            f"packets): {name} changes by {rows.jump[jumps]:.3g} {unit} more on one side of it, "
            "and there is no linearisation; windows that differ from flow to flow do not pass the "
            f"jump together (closure = 'population'); {FOLLOW}"
        ), rows
    over = np.where(rows.jump > 0, 0.0, np.abs(rows.value) / rows.allowed)
    worst = int(np.argmax(np.where(np.isnan(over), np.inf, over)))
    if not over[worst] <= 1:
        (name, unit), value = _names(net, op)[worst], f"{rows.value[worst]:.3g}"
        moves = worst < len(rows.value) - _wires(net)
        does = f"{'still changes' if moves else 'misses its value'} by {value}"
        does += "" if unit == "1" else f" {unit}"
        size = f"where {rows.allowed[worst]:.2g} is allowed for rounding"
        return f"{_unconfirmed(op)}: {name} {does}, {size}", rows
    for k, excess in enumerate(rows.excess):
        if not excess <= _BALANCED:
            by = f"{excess:.3g} of the capacity"
            return f"{_unconfirmed(op)}: links.{net.link_names[k]} is out of balance by {by}", rows
    return "", rows


def describe_switching(net: Network, op: OperatingPoint, rows: Rows) -> list[str]:
    """Messages on groups of flows that an equilibrium holds at a jump of their own rule."""
    out: dict[str, str] = {}
    names = _names(net, op)
    for j in np.flatnonzero(rows.jump):
        name, unit = names[j]
        part, group = name.split(" of ", 1)
        if part != "the window":
            continue
        shorter, longer = rows.beside[:, j]
        out.setdefault(group, (
            f"a rule of {group} jumps at the window found, from {shorter:.3g} {unit} at shorter "
            f"windows to {round(longer, 3) + 0.0:.3g} at longer ones; windows stay there, or "
            f"oscillate about it if the feedback is delayed; {FOLLOW}"
        ))  # fmt: skip
    return list(out.values())


def _unconfirmed(op: OperatingPoint) -> str:
    return f"the equations of motion are not at rest at the queue found ({_queues(op)} packets)"


def _queues(op: OperatingPoint) -> str:
    return ", ".join(f"{q:.4g}" for q in np.asarray(op.queues))


def _unbalanced_populations(net: Network, op: OperatingPoint, regimes: tuple[Regime, ...]) -> str:
    """The same for stationary laws of flows: their grids are fine enough, links carry what they
    can, if they have a queue, and what queue laws remember of arrivals rests.
    """
    for k, (name, regime) in enumerate(zip(net.link_names, regimes, strict=True)):
        link, x, backlog = net.links[k], op.laws[k], op.backlogs[k]
        excess = float(op.accepted[k] / link.capacity) - 1
        if regime == Regime.INTERIOR and abs(excess) > _BALANCED:
            return f"links.{name} is offered {excess:.3g} of its capacity more than it carries"
        if link.queue.period() is None:
            offered = offered_rate(link, backlog, op.lost[k])
            move = flatten(queue_law_rate(link, x, queue_at(backlog), offered))
            over = np.abs(move) > _BALANCED * (1 + np.abs(flatten(x)))
            if np.any(over):
                worst = int(np.argmax(over))
                what, unit = _memory(f"links.{name}.queue", link.queue, x, "memory")[worst]
                return f"{_unconfirmed(op)}: {what} still changes by {move[worst]:.3g} {unit}"
    for name, errors in zip(net.flow_names, op.errors, strict=True):
        error = float(np.max(errors))
        if not error <= _COARSE:
            return (
                f"flows.{name}: the distribution of windows is not resolved: on a grid twice as "
                f"fine the mean flight changes by {100 * error:.2g} %, expected at most "
                f"{100 * _COARSE:g} %"
            )
    return ""


def differ(
    net: Network,
    op: OperatingPoint,
    side: int,
    matrices: tuple[Array, ...],
    rows: Rows | None = None,
) -> str:
    """Message on derivatives A, B, C, D that disagree with finite differences; empty if none do.

    `rows` are those of the equilibrium itself, if they are known.
    """
    if rows is None or side:
        rows = _rows(net, op, np.asarray(float(side)), np.zeros(len(net.links), int))
    off = np.asarray(_off(net, rows, matrices))
    worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    if off[worst] <= _AGREE:
        return ""
    return (
        f"the derivatives of {_names(net, op)[worst][0]} disagree with differences of the moving "
        f"model, by {off[worst]:.2g} of their size"
    )


@compiled
def _off(net: Network, rows: Rows, matrices: tuple[Num, ...]) -> Num:
    """Misfit of derivatives and differences (n + m), as a share of their terms; 0 at a breakpoint,
    where steps are too short for differences with significant digits.
    """
    A, B, C, D = matrices
    n = len(A)
    index = np.concatenate([np.ravel(i) for i in leaves(output_indices(net))]).astype(int)
    by_state, by_wire = rows.directions[:, :n], rows.directions[:, n:]
    late = by_wire[:, index]
    drift, outputs = by_state @ A.T + late @ B.T, by_state @ C.T + late @ D.T - by_wire
    moves = (rows.slopes[0, :, :n] != 0).any(axis=0)  # states held at a bound do not
    linear = ops.concatenate([ops.where(moves[None], drift, 0.0), outputs], axis=1)
    state, past = abs(by_state), abs(late)
    by_row = [state @ abs(A).T + past @ abs(B).T, state @ abs(C).T + past @ abs(D).T + abs(by_wire)]
    terms = ops.concatenate(by_row, axis=1)
    error = abs(linear[None] - rows.slopes) - rows.rounding[:, None]
    each = ops.maximum(error, 0.0) / ops.maximum(terms, _LEAST)[None]
    off = each.min(axis=0).max(axis=0)
    return ops.where(rows.fits < _SHORTEST, 0.0, off)


def holds(net: Network, op: OperatingPoint, matrices: tuple[Num, ...]) -> Num:
    """Whether a smooth equilibrium balances and its A, B, C, D agree with finite differences."""
    rows = _rows(net, op, 0.0, np.zeros(len(net.links), int))
    balanced = ops.everywhere(abs(rows.value) <= rows.allowed) & ops.everywhere(
        rows.excess <= _BALANCED
    )
    smooth = ops.everywhere(rows.jump == 0)
    return balanced & smooth & ops.everywhere(_off(net, rows, matrices) <= _AGREE)


def _least(net: Network, op: OperatingPoint) -> Num:
    """Least tolerance of each row; for a queue, the rounding error of its arrivals."""
    senders, memories = (len(flatten(part)) for part in (op.senders, op.laws))
    capacities = ops.stack([link.capacity for link in net.links])
    return ops.concatenate(
        [
            np.full(senders, _ROUNDING), _ROUNDING * (1 + capacities),
            np.full(memories, _ROUNDING), np.full(_wires(net), _LEAST),
        ]
    )  # fmt: skip


def _unmoved(net: Network, op: OperatingPoint, regimes: Num) -> Num:
    """Mask of the rows that need not balance.

    Senders of which none is active; memories that ticks move up on one side of the equilibrium and
    down, or not at all, on the other; and memories of links with next to no arrivals, which only
    sum up rounding errors.
    """
    senders = [
        map_tree(lambda v, f=f, s=s: s.active < SOME_ACTIVE if f.traffic.starts else v != v, s)
        for f, s in zip(net.flows, op.senders, strict=True)
    ]
    laws = []
    for k, link in enumerate(net.links):
        x, backlog = op.laws[k], op.backlogs[k]
        low, high = (
            tick_change(link, after_arrivals(link, x, there), there)
            for there in (neighbour(backlog, -1), neighbour(backlog, 1))
        )
        stepped = (regimes[k] == Regime.ADAPTED) | (regimes[k] == Regime.END)
        idle = backlog <= _SOME_USE - 1
        laws.append(map_tree(lambda a, b, i=idle, s=stepped: i | (s & (a * b <= 0)), low, high))
    queues = [np.False_ for _ in net.links]
    mask = [ops.ravel(v) for v in leaves((senders, queues, laws))]
    return ops.concatenate([*mask, np.zeros(_wires(net), bool)])


def _wires(net: Network) -> int:
    """Number of outputs."""
    return sum(map(np.size, leaves(output_index(net))))


def _names(net: Network, op: OperatingPoint) -> list[tuple[str, str]]:
    """A name for each row with the unit of its number, for messages."""
    links = [f"links.{name}" for name in net.link_names]
    wheres = [f"flows.{name}" for name in net.flow_names]
    groups = list(zip(wheres, net.flows, op.senders, strict=True))
    out: list[tuple[str, str]] = []
    for where, flows, sender in groups:
        out += _memory(where, flows.window, sender.law, "window")
        for part in ("slow", "active", "estimate"):
            out += [(f"the {_PARTS[part]} of {where}", "per second")] * len(
                flatten(getattr(sender, part))
            )
    out += [(f"the queue of {where}", "packet/s") for where in links]
    for where, link, x in zip(links, net.links, op.laws, strict=True):
        out += _memory(f"{where}.queue", link.queue, x, "memory")
    for where, flows, _ in groups:
        out += [(f"the rate of {where}", "packet/s")] * np.size(flows.rtt)
    signals = [(k, part) for k in range(len(links)) for part in signal_fields(net, k)]
    out += [(f"the {part} of {links[k]}", "1") for k, part in signals]
    return out + [(f"the pace of acknowledgements of {where}", "1") for where in links]


_PARTS = {
    "slow": "share in slow start", "active": "share of active sources", "estimate": "load factor"
}  # fmt: skip


def _memory(where: str, law: Any, x: Any, alone: str) -> list[tuple[str, str]]:
    """A name for each number that a law remembers, `alone` if it is a single one without a name,
    and the unit of its rate of change.
    """
    units = {name: field.info.unit for name, field in law.states.items()} | {"window": "packet"}
    names = getattr(x, "_fields", None) or [alone] * len(leaves(x))
    sizes = [np.size(value) for value in leaves(x)]
    each = (
        (f"the {n if n in ('window', alone) else f'memory {n}'} of {where}", units.get(n, "1"))
        for n in names
    )
    return [
        (name, "per second" if unit in ("", "1") else f"{unit}/s")
        for (name, unit), size in zip(each, sizes, strict=True) for _ in range(size)
    ]  # fmt: skip


FOLLOW = "next: `fluidcc cycle` for the oscillation, `simulate` or `packets` for runs"
"""What to do about a jump."""
