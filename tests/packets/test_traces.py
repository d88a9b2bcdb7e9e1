"""Traces: they change nothing, agree with the accounts, and tell each packet's way in order."""

import csv

import numpy as np
import pytest
from packet_cases import CASES, chain

from fluidcc import simulate_packets
from fluidcc.packets.plan import PacketError

SPAN = {"until": 12.0, "seeds": (5,)}


def _lines(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "chain.csv"
    runs = simulate_packets(chain(), **SPAN, sample=0.7, trace=path)
    return runs, _lines(path)


def _count(lines, event, **wanted):
    return sum(
        line["event"] == event and all(line[k] == v for k, v in wanted.items()) for line in lines
    )


@pytest.mark.parametrize("name", ["chain", "voice_fifo", "backward", "reverse_chain", "sessions"])
def test_a_trace_agrees_with_the_accounts(name, tmp_path):
    runs = simulate_packets(CASES[name], **SPAN, trace=tmp_path / "trace.csv")
    assert runs.to_dict() == simulate_packets(CASES[name], **SPAN).to_dict()
    lines = _lines(tmp_path / "trace.csv")
    _agree(runs.runs[0], lines)


def _agree(run, lines):
    times = [float(line["time (s)"]) for line in lines]
    assert times == sorted(times) and times[-1] <= SPAN["until"]
    for name, link in run["links"].items():
        entered, dropped = (_count(lines, event, link=name) for event in ("enter", "drop"))
        assert entered + dropped == link["arrivals"] and dropped == link["drops"]
        assert _count(lines, "mark", link=name) == link["marks"]
        assert _count(lines, "leave", link=name) == link["departures"]
    for name, flow in run["flows"].items():
        assert _count(lines, "send", group=name) == flow["sent"]
        assert _count(lines, "timeout", group=name) >= flow["timeouts"]


def test_links_serve_in_order(traced):
    for link in ("first", "second"):
        order = {
            event: [
                (line["group"], line["flow"], line["sequence"])
                for line in traced[1]
                if line["link"] == link and line["event"] == event
            ]
            for event in ("enter", "leave")
        }
        assert order["leave"] == order["enter"][: len(order["leave"])]
        assert len(order["leave"]) > 1000


def test_percentiles_of_queueing_delays_are_those_of_the_trace(traced):
    runs, lines = traced
    for name, link in zip(("first", "second"), chain().links, strict=True):
        enter, leave = (
            np.array([
                float(line["time (s)"]) for line in lines
                if line["link"] == name and line["event"] == event
            ])
            for event in ("enter", "leave")
        )  # fmt: skip
        delays = leave - 1 / link.capacity - enter[: len(leave)]
        found = runs.runs[0]["links"][name]
        for key, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999)):
            exact = np.quantile(delays, share, method="inverted_cdf")
            assert found[f"queueing_delay_{key}"] == pytest.approx(exact, rel=2**-7, abs=1e-8), key
        # but for the packet in service
        assert found["queueing_delay_mean"] == pytest.approx(delays.mean(), rel=1e-3)


def test_window_lines_tell_what_series_show(traced):
    runs, lines = traced
    windows = [line for line in lines if line["event"] == "window"]
    series = runs.series.isel(seed=0)
    for k, group in enumerate(series.flow_group.values):
        number = str(int(np.sum(series.flow_group.values[:k] == group)))
        own = [w for w in windows if w["group"] == group and w["flow"] == number]
        when, what = (np.array([float(w[c]) for w in own]) for c in ("time (s)", "window"))
        places = np.searchsorted(when, series.time.values, side="right") - 1
        shown = series.flow_window.values[:, k]
        started = ~np.isnan(shown)
        assert np.array_equal(places >= 0, started)
        limit = 60.0 if group == "two" else 100.0
        assert np.array_equal(np.minimum(what, limit)[places[started]], shown[started])


def test_a_run_that_is_interrupted_leaves_no_part_of_a_trace(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("of another run")

    def interrupt(share):
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_packets(CASES["ecn"], until=1e4, trace=file, progress=interrupt)
    assert file.read_text() == "of another run" and list(tmp_path.iterdir()) == [file]


# -- Time series: they change nothing, and agree with the accounts
SPAN_SERIES = {"until": 30.0, "warmup": 6.0, "seeds": (3, 8)}


@pytest.fixture(scope="module")
def runs():
    return simulate_packets(chain(), **SPAN_SERIES, sample=0.05)


def _late(runs, name):
    """A series after the warm-up: what lies in intervals that end later."""
    return runs.series[name].sel(time=runs.series.time > runs.warmup + 1e-9)


def _seen(runs, part, metric):
    """A metric of each run and each link or group."""
    return np.array([[values[metric] for values in run[part].values()] for run in runs.runs])


@pytest.mark.parametrize("name", ["chain", "voice", "sessions"])
def test_samples_change_no_bit(name):
    plain, sampled = (simulate_packets(CASES[name], **SPAN_SERIES, sample=s) for s in (None, 0.137))
    assert plain.to_dict() == sampled.to_dict()
    assert plain.series is None and len(sampled.series.time) == 219


def test_rates_add_up_to_the_metrics(runs):
    span = SPAN_SERIES["until"] - SPAN_SERIES["warmup"]
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
        simulate_packets(chain(), **SPAN_SERIES, sample=sample)
