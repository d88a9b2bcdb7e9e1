"""Slow start in the fluid model: the peak of the queue and its published bounds."""

import numpy as np
import pytest

from fluidcc import Located
from fluidcc.dde.status import Status
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT
from fluidcc.laws.window.reno import Reno
from fluidcc.model.simulate import simulate
from fluidcc.scenario.network import Flows, FlowsInitial, Link, Network

C, T = 187.5, 0.248  # packet/s, s: a link of 1.5 Mbit/s with packets of 1000 B, TS = 59 ms
PIPE = C * T


def peak(feedback, at: float) -> float:
    """Largest queue of one flow that starts with one packet."""
    flows = Flows(
        Reno(), n=np.ones(1), rtt=np.array([T]), reaction=OncePerRTT(), feedback=feedback,
        initial=FlowsInitial(window=1.0, slow_start=True),
    )  # fmt: skip
    net = Network(
        (Link(Threshold(at=at), capacity=C),), (flows,), rates="self_clocked", delay="fifo"
    )
    points = np.linspace(1.2, 3.6, 30001)  # the peak is a corner
    run = simulate(net, until=3.6, points=points, mesh=Located(step=0.02))
    assert run.status is Status.ok
    assert run.flows["flows"].slow[-1, 0] < 1e-3
    return float(run.links["bottleneck"].queue.max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feedback", "times"), [(MarkTail(), 2.0), (MarkFront(), 1.0)], ids=["tail", "front"]
)
def test_slow_start_peaks_at_the_published_bounds(feedback, times):
    """Durresi et al. (2001), section 4: 2 T + r d - 1 for tail and T + r d for front marking.

    The fluid bounds are 2 T + r d and T + r d; they are met once the link has been busy for a
    round trip when the queue crosses the threshold, and not below.
    """
    for at in (40.0, 60.0):
        bound = times * at + PIPE
        found = peak(feedback, at)
        assert found <= bound * (1 + 1e-9)
        assert found == pytest.approx(bound, rel=1e-3)
    assert peak(feedback, 5.0) < 0.9 * (times * 5.0 + PIPE)
