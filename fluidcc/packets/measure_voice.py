"""Metrics of voice calls on a link, from their accounts at two instants."""

from typing import Any

import numpy as np

VOICE_UNITS = {
    "utilization_left": "1",
    "voice_rate": "bit/s",
    "voice_loss_fraction": "1",
    "voice_delay_mean": "s",
    "voice_delay_jitter": "s",
    "voice_delay_difference": "s",
    "voice_calls": "1",
    "voice_refused_fraction": "1",
}
"""Metrics of links with voice; `utilization_left` is of the time that voice leaves to the flows."""


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else float("nan")


def voice_metrics(
    flow: tuple[Any, Any], voice: tuple[Any, Any], size: int, span: float
) -> dict[str, float]:
    """Metrics from records before and after: of the flow that stands for all packets of `size`
    bytes, and of the calls.
    """

    def grown(records: tuple[Any, Any], name: str) -> float:
        return float(records[1][name] - records[0][name])

    received = grown(flow, "received")
    delay = _ratio(grown(flow, "delay_sum"), received)
    squares = _ratio(grown(flow, "delay_squares"), received)
    return {
        "voice_rate": 8.0 * size * received / span,
        "voice_loss_fraction": _ratio(grown(flow, "lost"), grown(flow, "sent")),
        "voice_delay_mean": delay,
        "voice_delay_jitter": float(np.sqrt(max(squares - delay**2, 0.0))),
        "voice_delay_difference": _ratio(grown(voice, "delay_steps"), grown(voice, "steps")),
        "voice_calls": grown(voice, "calls_time") / span,
        "voice_refused_fraction": _ratio(grown(voice, "refused"), grown(voice, "offered")),
    }


def of_the_link(link: dict[str, Any], used: float) -> dict[str, float]:
    """Utilization of a link that sends voice for a share `used` of the time beside its flows, and
    of what that leaves. In one queue, with `used` 0, they are the same.
    """
    own = link["utilization"]
    return {"utilization": own + used, "utilization_left": _ratio(own, 1.0 - used)}
