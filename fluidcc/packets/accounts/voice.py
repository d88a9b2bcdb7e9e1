"""Metrics of voice calls on a link, from their accounts at two instants."""

from typing import Any

from fluidcc.packets.accounts.moments import deviation, ratio


def voice_metrics(
    flow: tuple[Any, Any], voice: tuple[Any, Any], size: int, span: float
) -> dict[str, float]:
    """Metrics from records before and after: of the flow that stands for all packets of `size`
    bytes, and of the calls.
    """

    def grown(records: tuple[Any, Any], name: str) -> float:
        return float(records[1][name] - records[0][name])

    received = grown(flow, "received")
    delay = ratio(grown(flow, "delay_sum"), received)
    squares = ratio(grown(flow, "delay_squares"), received)
    return {
        "voice_rate": 8.0 * size * received / span,
        "voice_loss_fraction": ratio(grown(flow, "lost"), grown(flow, "sent")),
        "voice_delay_mean": delay,
        "voice_delay_jitter": deviation(delay, squares),
        "voice_delay_difference": ratio(grown(voice, "delay_steps"), grown(voice, "steps")),
        "voice_calls": grown(voice, "calls_time") / span,
        "voice_refused_fraction": ratio(grown(voice, "refused"), grown(voice, "offered")),
    }


def of_the_link(link: dict[str, Any], used: float) -> dict[str, float]:
    """Utilization of a link that sends voice for a share `used` of the time beside its flows, and
    of what that leaves. In one queue, with `used` 0, they are the same.
    """
    own = link["utilization"]
    return {"utilization": own + used, "utilization_left": ratio(own, 1.0 - used)}
