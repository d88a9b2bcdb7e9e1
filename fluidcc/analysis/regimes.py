"""What a rest is: its regime, and what is to be said about it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.analysis.rest import EMPTY, FULL, INTERIOR, JUMP, NEUTRAL, NONE, Rest, fill
from fluidcc.analysis.sender_rest import LARGEST_WINDOW, SMALLEST_WINDOW, like
from fluidcc.analysis.settle import held
from fluidcc.laws.law import Ack, Signal
from fluidcc.model.delays import round_trip
from fluidcc.model.rates import link_signal, touched
from fluidcc.model.senders import sender_change
from fluidcc.ops import Num
from fluidcc.scenario.network import Network

ADAPTED, LOADED, STEADY, END = 10, 11, 12, 13
"""What a jump turns out to be: ticks hold the signal from both sides, the load factor does, the
law's memory holds it at rest, or it rests at the end of a range that ticks leave alone."""

_BELOW = math.nextafter(1.0, 0.0)  # full load
_NO_WINDOW = 1.001 * SMALLEST_WINDOW
AGREE = 1e-8  # relative difference up to which two numbers are the same


def resolved(net: Network, rest: Rest) -> tuple[Rest, tuple[int, ...]]:
    """The rest with the memories that hold links at jumps, and each link's regime."""
    laws, regimes = list(rest.laws), [int(c) for c in rest.codes]
    for k, link in enumerate(net.links):
        if regimes[k] != JUMP:
            continue
        below, now = rest.signals_below[k], rest.said[k].signal
        if float(below.drop) != float(now.drop):
            continue
        if float(below.mark) == float(now.mark):
            if link.queue.loads:
                regimes[k] = LOADED
                continue
            filled, count = fill(net, rest, k)
            if count:
                rest, regimes[k] = filled, INTERIOR if count == 1 else NEUTRAL
        elif jax.tree.leaves(laws[k]):
            memory = held(link, rest.places[k], now.mark, rest.lost[k])
            if bool(memory.found):
                laws[k] = memory.memory
                moved = ADAPTED if bool(memory.sliding) else END
                regimes[k] = STEADY if bool(memory.smooth) else moved
    return rest._replace(laws=tuple(laws)), tuple(regimes)


def unbounded(net: Network, rest: Rest, i: int) -> bool:
    """Whether nothing that a group of flows hears ends the growth of its windows."""
    cap = float(net.flows[i].window.max_window)
    return math.isinf(cap) and float(np.max(rest.windows[i])) >= LARGEST_WINDOW


def starved(rest: Rest, i: int) -> bool:
    """Whether the windows of a group fall without end."""
    return float(np.min(rest.windows[i])) <= _NO_WINDOW


def status_of(net: Network, rest: Rest, regimes: tuple[int, ...], *, many: bool) -> str:
    """The status of a network with links in these regimes; `many` starts end at many places."""
    endless = any(unbounded(net, rest, i) or starved(rest, i) for i in range(len(net.flows)))
    if NONE in regimes or (endless and NEUTRAL not in regimes):
        return "none"
    if many or NEUTRAL in regimes or END in regimes:
        return "continuum"
    if JUMP in regimes or FULL in regimes:
        return "saturated"
    return "empty" if all(r == EMPTY for r in regimes) else "interior"


def sliding(net: Network, regimes: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the links that are held at a jump from both sides."""
    held_there = (JUMP, ADAPTED, LOADED, NEUTRAL)
    return tuple(n for n, r in zip(net.link_names, regimes, strict=True) if r in held_there)


def apart(first: Rest, second: Rest) -> bool:
    """Whether two searches ended at different places or signals."""

    def numbers(rest: Rest) -> np.ndarray:
        signals = [v for s in rest.signals for v in (s.mark, s.drop)]
        return np.asarray([*np.ravel(rest.places), *signals], float)

    one, other = numbers(first), numbers(second)
    return bool(np.any(np.abs(one - other) > AGREE * (1 + np.abs(one))))


def either(signal: Signal) -> float:
    """Probability to be marked or lost."""
    return float(signal.either)


_ADVICE = {
    JUMP: "no smooth equilibrium: the marking needed ({needed:.3g}) is above the {given:.3g} that "
    "links.{name}.queue gives below its jump at {queue:.6g} packets; the queue sits there, in "
    "small cycles if the feedback is delayed",
    FULL: "the buffer of links.{name} is full ({queue:.6g} packets): beyond a marking of "
    "{signal.mark:.3g} it drops {signal.drop:.3g}",
    NONE: "no equilibrium: with every packet marked, or the longest queue ({queue:.6g} packets), "
    "links.{name} is still offered more than its capacity; losses govern. Fewer flows, a longer "
    "buffer or a law that backs off further would settle",
    EMPTY: "the windows keep links.{name} at a utilization of {used:.3g}: its queue is empty",
    ADAPTED: "links.{name}.queue slides: every {period:.3g} s it steps the marking up on one side "
    "of this queue and down on the other",
    LOADED: "links.{name} slides at full load: the senders increase below a load factor of 1 and "
    "decrease from there; the windows are those whose increases and decreases balance{cycle}",
    NEUTRAL: "any windows that fill links.{name} are at rest: the senders neither increase nor "
    "decrease there",
}


def link_advice(net: Network, rest: Rest, k: int, regime: int) -> str:
    """What is to be said about link k."""
    alone, law, signal, cycle = len(net.links) == 1, net.links[k].queue, rest.said[k].signal, ""
    if regime not in _ADVICE or (regime == EMPTY and not alone):
        return ""
    turn = sawtooth(net, rest) if regime == LOADED and alone else None
    if turn is not None:
        cycle = (
            f"; one decrease of all leaves {turn.low:.4g} of the load, which is back after "
            f"{turn.time:.4g} s"
        )
    return _ADVICE[regime].format(
        name=net.link_names[k], queue=float(rest.queues[k]), needed=either(signal),
        given=either(rest.signals_below[k]), signal=Signal(*map(float, signal)), cycle=cycle,
        used=float(rest.accepted[k]) / float(net.links[k].capacity),
        period=float(getattr(law, str(law.period), 0.0)),
    )  # fmt: skip


class Sawtooth(NamedTuple):
    """One common decrease from full load and the way back."""

    low: float  # share of the load that is left
    time: float  # s until full load is back


@jax.jit
def _turns(net: Network, rest: Rest) -> tuple[Num, Num, Num]:
    """Total rate of the flows, its change by one decrease, and its growth per second."""
    total, fall, growth = jnp.zeros(()), jnp.zeros(()), jnp.zeros(())
    for flows, s, rate in zip(net.flows, rest.senders, rest.rates, strict=True):
        rtt, law = round_trip(net, flows, tuple(rest.queues)), flows.window
        share = flows.n / rtt
        change = sender_change(
            flows, s, growth=rate, acks=rate, carried=rate, signal=like(Signal(load=_BELOW), rtt),
            rtt=rtt,
        )  # fmt: skip
        tick = law.on_tick(s.law, Ack(1.0, 0.0, rtt, 1.0))
        total = total + jnp.sum(flows.n * rate)
        fall = fall + jnp.sum(share * law.window(tick))
        growth = growth + jnp.sum(share * law.window(change.law))
    return total, fall, growth


def sawtooth(net: Network, rest: Rest) -> Sawtooth | None:
    """The sawtooth at full load of one link; None where nothing decreases at once.

    For BMCC (Qazi et al., 2010, eqs 4 and 5) the time is gamma C (1 - beta) t_p^2/n.
    """
    total, fall, growth = (float(v) for v in _turns(net, rest))
    if fall >= 0 or growth <= 0:
        return None
    return Sawtooth(1 + fall / total, -fall / growth)


def escape_advice(net: Network, rest: Rest, k: int) -> str:
    """Whether link k is overloaded at longer queues than the one found."""
    place = float(rest.escapes[k])
    if not math.isfinite(place):
        return ""
    return (
        f"not the only regime: at a queue of {place:.3g} packets links.{net.link_names[k]} is "
        "overloaded again, so that longer queues do not come back"
    )


def sampled_advice(net: Network, k: int, regime: int) -> str:
    """What the linearisation makes of a law with ticks."""
    law, name = net.links[k].queue, net.link_names[k]
    if law.period is None:
        return ""
    if regime != STEADY and not law.loads:
        return f"links.{name}.queue has adapted as far as it can: what its ticks move is at a limit"
    return (
        f"links.{name}.queue is sampled every {float(getattr(law, law.period)):.3g} s: the roots "
        "take its change per period"
    )


def growth_advice(net: Network, rest: Rest, i: int) -> str:
    """Why the windows of a group are nowhere at rest."""
    flows = net.flows[i]
    told = float(touched(flows, tuple(rest.signals[k] for k in flows.route)))
    if starved(rest, i):
        return (
            f"no equilibrium: the window of flows.{net.flow_names[i]} falls without end, with "
            f"{told:.3g} of its packets marked or lost; trajectories hold it at min_window = "
            f"{float(flows.window.min_window):g}"
        )
    if not unbounded(net, rest, i):
        return ""
    queues = " and ".join(
        f"{float(rest.queues[k]):.6g} in links.{net.link_names[k]}" for k in flows.route
    )
    return (
        f"no equilibrium: the window of flows.{net.flow_names[i]} still grows at "
        f"{LARGEST_WINDOW:.3g} packets, with {told:.3g} of its packets marked or lost and a queue "
        f"of {queues}; give max_window, a buffer that ends, or a law or feedback that backs off"
    )


def window_advice(net: Network, i: int, window: np.ndarray) -> list[str]:
    """What is to be said about the windows (m,) at which a group rests."""
    flows, name = net.flows[i], net.flow_names[i]
    out = []
    low, floor = float(np.min(window)), float(flows.window.min_window)
    if low <= floor and floor > 1:
        out.append(f"flows.{name}: the window rests on its floor, min_window = {floor:g}")
    if low < 1:
        out.append(f"flows.{name}: a window of {low:.3g} is below one packet per window")
    return out


def quench_ratio(net: Network, k: int, rest: Rest) -> float | None:
    """Quenches as a share of all packets on the way back from link k; None without quenches."""
    if not any(f.feedback.quench and k in f.route for f in net.flows):
        return None
    signal: Any = rest.said[k].signal
    quenches = packets = 0.0
    for flows, rate in zip(net.flows, rest.rates, strict=True):
        if k in flows.route:
            sent, own = np.asarray(flows.n) * np.asarray(rate), link_signal(flows, signal)
            quenches += float(np.sum(sent * own.either)) if flows.feedback.quench else 0.0
            packets += float(np.sum(sent * (1 - own.drop)))
    return quenches / (quenches + packets) if packets else None
