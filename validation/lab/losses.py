"""A window law between losses that are exactly evenly spaced."""

from typing import Any

from fluidcc.laws.law import Ack


def mean_window(law: Any, p: float, rtt: float) -> float:
    """Mean window [packet] of a law whose losses are exactly 1/p packets apart, after many."""
    window = max((rtt / p) ** 0.75, p**-0.5)
    s = law.start(window)
    step = max(rtt / 8, rtt / (p * window) / 500)  # an eighth of a round trip, or 1/500 of a cycle
    lost, area, since, packets = 0, 0.0, 0.0, 0.0
    while lost < 40:
        now = float(law.window(s))
        sent = now * step / rtt
        s = _moved(s, law.on_ack(s, Ack(sent, step, rtt)))
        packets, area, since = packets + sent, area + now * step, since + step
        if packets >= 1 / p:
            s = _moved(s, law.on_loss(s, Ack(sent, step, rtt)))
            packets, lost = packets - 1 / p, lost + 1
            if lost == 20:
                area = since = 0.0
    return area / since


def _moved(state: Any, change: Any) -> Any:
    """A state of a window law after a change."""
    if not isinstance(state, tuple):
        return state + change
    return type(state)(*(a + b for a, b in zip(state, change, strict=True)))
