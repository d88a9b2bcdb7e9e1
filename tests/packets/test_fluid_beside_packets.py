"""The fluid equilibrium beside packet runs, where the error of the fluid model is understood.

Packets in flight are whole, so that a window is half a packet larger than its flight. Marks come by
packets, of which large windows have more: under the ECN-mod law, whose windows vary by c2/2 of
their squared mean, the mean over packets is larger than the one over time by as much.
"""

import importlib
from pathlib import Path

import pytest

VALIDATION = Path(__file__).parents[2] / "validation"


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(str(VALIDATION))
    beside = importlib.import_module("fluid_beside_packets")

    def measured(family, law, scenario=None):
        """Laws of the flows, their flight in the fluid model, and the rows of a case."""
        cases = beside.FAMILIES[family]()
        case = next(c for c in cases if c.law == law and scenario in (None, c.scenario))
        queue, signal, utilization = beside.measure(case)
        assert abs(queue.error) < 0.03 + 2 * queue.ci95 / queue.packets
        assert utilization.packets == pytest.approx(utilization.fluid, abs=1e-3)
        flight = beside.PER_FLOW * beside.TRIP + queue.fluid / beside.FLOWS
        return case.net.flows[0].window, flight, signal

    return measured


@pytest.mark.parametrize(
    ("family", "law"), [("queues", "adaptive_red"), ("queues", "rem"), ("windows", "ecn_mod")]
)
def test_marks_under_each_queue_law(measure, family, law):
    window, flight, signal = measure(family, law)
    seen = (flight + 0.5) * (1 + window.c2 / 2)
    expected = 1 / (1 + window.c2 / window.c1 * seen)
    assert signal.fluid == pytest.approx(1 / (1 + window.c2 / window.c1 * flight), rel=1e-3)
    assert signal.packets == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("law", "scenario"),
    [("becn", "original"), ("dctcp", None), ("newreno", "receiver_window, cwnd of 17")],
)
def test_signal_that_a_window_law_needs(measure, law, scenario):
    """Within what one packet more or less in the window does to a signal that goes as W^-2."""
    _, flight, signal = measure("windows", law, scenario)
    assert abs(signal.error) < 2 / flight + signal.ci95 / signal.packets
