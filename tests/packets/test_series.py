"""Time series: they change nothing, and agree with the accounts."""

import numpy as np
import pytest
from packet_cases import CASES, chain

from fluidcc.packets.layout.plan import PacketError
from fluidcc.packets.run import simulate_packets

SPAN = {"until": 30.0, "warmup": 6.0, "seeds": (3, 8)}


@pytest.fixture(scope="module")
def runs():
    return simulate_packets(chain(), **SPAN, sample=0.05)


def _late(runs, name):
    """A series after the warm-up: what lies in intervals that end later."""
    return runs.series[name].sel(time=runs.series.time > runs.warmup + 1e-9)


def _seen(runs, part, metric):
    """A metric of each run and each link or group."""
    return np.array([[values[metric] for values in run[part].values()] for run in runs.runs])


@pytest.mark.parametrize("name", ["chain", "voice", "sessions"])
def test_samples_change_no_bit(name):
    plain, sampled = (simulate_packets(CASES[name], **SPAN, sample=s) for s in (None, 0.137))
    assert plain.to_dict() == sampled.to_dict()
    assert plain.series is None and len(sampled.series.time) == 219


def test_rates_add_up_to_the_metrics(runs):
    span = SPAN["until"] - SPAN["warmup"]
    for series, part, metric, unit in (
        ("link_busy", "links", "utilization", 1.0),
        ("link_drop_rate", "links", "drops", span),
        ("link_mark_rate", "links", "marks", span),
        ("group_acked_rate", "flows", "goodput", 1.0),
    ):
        mean = unit * _late(runs, series).mean("time")
        assert mean.values == pytest.approx(_seen(runs, part, metric), rel=1e-9), series
    flows = [sum((g["goodput_flows"] for g in r["flows"].values()), ()) for r in runs.runs]
    assert _late(runs, "flow_acked_rate").mean("time").values == pytest.approx(np.array(flows))


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (0.0, r"a time in \(0, until\]"),
        (float("nan"), r"a time in \(0, until\]"),
        (31.0, r"a time in \(0, until\]"),
        (1e-9, r"at least 0\.00011 s, or fewer seeds"),
    ],
)
def test_faults_are_named_before_anything_runs(sample, said):
    with pytest.raises(PacketError, match=f"sample: expected {said}"):
        simulate_packets(chain(), **SPAN, sample=sample)
