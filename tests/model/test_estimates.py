"""Senders that estimate the load factor, in the fluid model."""

import dataclasses

import numpy as np
import pytest

import fluidcc as fc


def test_an_estimate_that_forgets_within_microseconds_needs_no_such_steps():
    """10^4 packets/s bring bits of a load factor; BMCC overshoots, comes down, and probes.

    Eq. 4: the window grows by T / t_p^2 a second, here by 0.15 s / (0.2 s)^2.
    """
    net = fc.load("qazi2010/three_flows")
    net = dataclasses.replace(net, flows=net.flows[:1], flow_names=net.flow_names[:1])
    run = fc.simulate(fc.replace(net, {"flows.first.estimator": "adpm"}), until=8.0)
    assert run.status == fc.Status.ok
    window, queue = run.flows["first"].window.ravel(), run.links["bottleneck"].queue
    assert queue.max() > 2000 and queue[run.time >= 5].max() == 0
    assert 0.75 < window[-1] / (0.15 * 12500) < 1  # between the growths by eqs 3 and 4, and full
    slope = np.polyfit(run.time[run.time >= 5], window[run.time >= 5], 1)[0]
    assert slope == pytest.approx(0.15 / 0.2**2, rel=1e-9)
