"""Traces: they change nothing, agree with the accounts, and tell each packet's way in order."""

import csv

import numpy as np
import pytest
from packet_cases import CASES, chain

from fluidcc.packets.run import simulate_packets

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


@pytest.mark.parametrize("name", ["voice_fifo", "backward", "reverse_chain", "sessions"])
def test_a_trace_agrees_with_the_accounts(name, tmp_path):
    runs = simulate_packets(CASES[name], **SPAN, trace=tmp_path / "trace.csv")
    assert runs.to_dict() == simulate_packets(CASES[name], **SPAN).to_dict()
    lines = _lines(tmp_path / "trace.csv")
    _agree(runs.runs[0], lines)


def test_lines_agree_with_the_accounts(traced):
    runs, lines = traced
    _agree(runs.runs[0], lines)
    for name, flow in runs.runs[0]["flows"].items():
        assert _count(lines, "timeout", group=name) >= flow["timeouts"]


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
