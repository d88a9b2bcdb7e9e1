"""Traces: they change nothing, agree with the accounts, and tell each packet's way in order."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from packet_cases import CASES, chain

from fluidcc.packets.accounts import trace_files
from fluidcc.packets.layout.plan import PacketError
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


def test_a_trace_changes_no_bit(traced):
    assert simulate_packets(chain(), **SPAN).to_dict() == traced[0].to_dict()


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


def test_a_packet_goes_its_way(traced):
    """Events of one packet that is sent once, with the delays between them."""
    way = [
        line
        for line in traced[1]
        if line["group"] == "both" and line["flow"] == "0" and line["sequence"] == "7"
    ]
    data = [line for line in way if line["flags"].split("+")[0] == "ect"]
    assert [line["event"] for line in data] == ["send", "enter", "leave", "enter", "leave",
                                                "receive"]  # fmt: skip
    assert [line["link"] for line in data] == ["", "first", "first", "second", "second", ""]
    times = np.diff([float(line["time (s)"]) for line in data])
    assert times[0] == pytest.approx(0.0021 + 1 / 12500, rel=1e-9)
    assert times[1] >= 1 / 1250 and times[3] >= 1 / 1000
    assert times[[2, 4]] == pytest.approx([0.0113, 0.0113], rel=1e-9)


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


def test_a_block_that_is_too_small_grows(traced, monkeypatch, tmp_path):
    monkeypatch.setattr(trace_files, "_LINES", 400)
    runs = simulate_packets(chain(), **SPAN, trace=tmp_path / "trace.csv")
    assert runs.to_dict() == traced[0].to_dict()
    assert _lines(tmp_path / "trace.csv") == traced[1]


def test_traffic_beside_the_flows_has_names(tmp_path):
    simulate_packets(CASES["cross"], until=1.0, trace=tmp_path / "trace.csv")
    lines = _lines(tmp_path / "trace.csv")
    assert {line["group"] for line in lines} == {"flows", "cross of bottleneck"}
    simulate_packets(CASES["sessions"], until=1.0, trace=tmp_path / "trace.csv")
    names = {line["group"] for line in _lines(tmp_path / "trace.csv")}
    assert {f"{name} requests" for name in names if "requests" not in name} & names


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "none" / "trace.csv"
    with pytest.raises(PacketError, match=f"trace: cannot write '{file}'"):
        simulate_packets(CASES["ecn"], until=1.0, trace=file)


def test_a_run_that_is_interrupted_leaves_no_part_of_a_trace(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("of another run")

    def interrupt(share):
        if share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_packets(CASES["ecn"], until=1e4, trace=file, progress=interrupt)
    assert file.read_text() == "of another run" and list(tmp_path.iterdir()) == [file]


def _short_trace(path):
    simulate_packets(CASES["loss"], until=1.5, trace=path)


def test_compiled_code_writes_what_plain_python_writes(tmp_path):
    script = f"import test_traces; test_traces._short_trace({str(tmp_path / 'plain.csv')!r})"
    subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    _short_trace(tmp_path / "compiled.csv")
    written = [(tmp_path / f"{name}.csv").read_text() for name in ("plain", "compiled")]
    assert written[0] == written[1] and written[0].count("\n") > 1000
