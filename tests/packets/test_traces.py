"""Traces: they change nothing, agree with the accounts, and tell each packet's way in order."""

import csv
import ipaddress
import struct

import numpy as np
import pytest
from packet_cases import CASES, chain, dumbbell, flows

from fluidcc import read_trace, simulate_packets
from fluidcc.laws import Droptail
from fluidcc.packets.plan import PacketError
from fluidcc.packets.traces import COLUMNS, EVENTS
from fluidcc.quantities import PERCENTILES

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
        by_link = [
            _count(lines, "enter", group=name, link=link)
            + _count(lines, "drop", group=name, link=link)
            for link in run["links"]
        ]
        assert by_link == list(flow["link_arrivals"])
        assert _count(lines, "timeout", group=name) >= flow["timeouts"]


def test_the_reader_has_typed_columns_of_every_line(traced, tmp_path):
    file = tmp_path / "trace.csv"
    simulate_packets(chain(), **SPAN, trace=file)
    found = read_trace(file)
    assert list(found.columns) == [name for name, _, _ in COLUMNS]
    assert found.attrs["units"] == {"time": "s", "size": "B", "window": "packet",
                                    "threshold": "packet"}  # fmt: skip
    assert set(found.event) <= set(EVENTS) and set(found.link) == {"", "first", "second"}
    for text, (_, row) in zip(traced[1], found.iterrows(), strict=True):
        of_window = row.event in ("window", "timeout")
        assert row.time == float(text["time (s)"]) and row.flow == int(text["flow"])
        assert row.event == text["event"] and row.sequence == int(text["sequence"])
        assert np.isnan(row.window) != of_window
        assert of_window or row["size"] == int(text["size (B)"])
    (tmp_path / "other.csv").write_text("time,event\n")
    for name in ("other.csv", "absent.csv"):
        with pytest.raises(PacketError, match=f"read_trace.*{name}"):
            read_trace(tmp_path / name)


def _captured(path):
    """Packets of a pcap file: time, addresses, ports, ECN bits, and sequence, ACK, flags or UDP."""
    data = path.read_bytes()
    magic, major, minor, _, _, _, kind = struct.unpack_from("<IHHiIII", data)
    assert (magic, major, minor, kind) == (0xA1B23C4D, 2, 4, 101)
    place, out = 24, []
    while place < len(data):
        second, nanosecond, captured, length = struct.unpack_from("<IIII", data, place)
        packet = data[place + 16 : place + 16 + captured]
        place += 16 + captured
        first, ecn, total, _, _, _, protocol, _ = struct.unpack_from(">BBHHHBBH", packet)
        assert first == 0x45 and total == length
        words = sum(struct.unpack(">10H", packet[:20]))
        assert (words & 0xFFFF) + (words >> 16) == 0xFFFF  # RFC 1071
        source, target = (str(ipaddress.ip_address(packet[k : k + 4])) for k in (12, 16))
        ports = struct.unpack_from(">HH", packet, 20)
        if protocol == 6:
            rest = struct.unpack_from(">IIBB", packet, 24)
        else:
            rest = struct.unpack_from(">H", packet, 24)
            assert rest == (total - 20,)
        time = second + nanosecond * 1e-9
        out.append((time, source, target, *ports, ecn, protocol, length, *rest))
    return out


def test_a_capture_has_the_packets_of_the_senders(tmp_path):
    net = CASES["background_chain"]
    for name in ("trace.csv", "trace.pcap"):
        runs = simulate_packets(net, **SPAN, trace=tmp_path / name)
    lines, packets = _lines(tmp_path / "trace.csv"), _captured(tmp_path / "trace.pcap")
    lines = [line for line in lines if line["event"] in ("send", "ack")]
    assert len(lines) == len(packets) > 10_000
    tcp = {"both": 3, "one": 3, "two": 2}
    for line, (time, source, target, port, other, ecn, protocol, length, *rest) in zip(
        lines, packets, strict=True
    ):
        assert time == pytest.approx(float(line["time (s)"]), abs=1e-9)
        # no packet is shorter than its headers
        assert length == max(int(line["size (B)"]), 40 if protocol == 6 else 28)
        assert (protocol == 6) == (line["group"] in tcp)
        flags = set(line["flags"].split("+"))
        assert ecn == (3 if "ce" in flags else 2 if "ect" in flags else 0)
        assert ("192.168.0" in source) == (line["event"] == "ack")
        assert 5001 in (port, other) and {"10", "192"} == {
            a.split(".")[0] for a in (source, target)
        }
        if protocol == 6:
            _, _, offset, bits = rest
            assert offset == 5 << 4 and bool(bits & 0x40) == ("ece" in flags)
            assert bool(bits & 0x80) == ("cwr" in flags)
    # of each flow: what was acknowledged is the goodput, and no ACK is ahead of the data
    for number, (group, place) in enumerate((g, k) for g, n in tcp.items() for k in range(n)):
        host = str(ipaddress.ip_address((10 << 24) + 1 + number))
        sent = [p for p in packets if p[1] == host]
        heard = [p for p in packets if p[2] == host]
        assert sent[0][8] == 0 and sent[0][11] == 0x02 and heard[0][11] & 0x12 == 0x12
        assert heard[0][9] == 1 and sent[1][8] == 1
        acked = max(p[9] for p in heard) - 1
        payload = (1000 - 40) / 1000
        goodput = runs.runs[0]["flows"][group]["flow_goodput"][place]
        assert acked == pytest.approx(goodput * SPAN["until"] / 8 * payload, rel=1e-9)
        assert max(p[8] + p[7] - 40 for p in sent) >= acked + 1


def test_traces_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(PacketError, match=r"ends in \.csv or \.pcap"):
        simulate_packets(chain(), **SPAN, trace=tmp_path / "trace.txt")
    small = dumbbell(flows(1), Droptail(), packet_size=40.0)
    with pytest.raises(PacketError, match=r"packets of 41 to 65535 B.*got 40 to 40 B"):
        simulate_packets(small, **SPAN, trace=tmp_path / "trace.pcap")
    assert not list(tmp_path.iterdir())


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
    for name in ("first", "second"):
        enter, leave = (
            np.array([
                float(line["time (s)"]) for line in lines
                if line["link"] == name and line["event"] == event
            ])
            for event in ("enter", "leave")
        )  # fmt: skip
        delays = leave - enter[: len(leave)]
        found = runs.runs[0]["links"][name]
        for key, share in PERCENTILES.items():
            exact = np.quantile(delays, share, method="inverted_cdf")
            assert found[f"queueing_delay_{key}"] == pytest.approx(exact, rel=2**-8, abs=1e-8), key
        assert found["queueing_delay_mean"] == pytest.approx(delays.mean(), rel=1e-9)


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
        ("link_utilization_sampled", "links", "utilization", 1.0),
        ("link_drop_rate", "links", "drops", span),
        ("link_mark_rate", "links", "marks", span),
        ("group_goodput_sampled", "flows", "goodput", 1.0),
    ):
        mean = unit * _late(runs, series).mean("time")
        assert mean.values == pytest.approx(_seen(runs, part, metric), rel=1e-9), series
    flows = [sum((g["flow_goodput"] for g in r["flows"].values()), ()) for r in runs.runs]
    assert _late(runs, "flow_goodput_sampled").mean("time").values == pytest.approx(np.array(flows))


def test_fairness_by_time_scale_is_that_of_the_goodputs(runs):
    series, run = runs.to_xarray(), runs.runs[0]
    assert series.scale.values == pytest.approx([0.05, 0.5, 5.0])
    routes = {"first": ("both", "one"), "second": ("both", "two")}
    for link, groups in routes.items():
        own = series.isel(seed=0).where(series.flow_group.isin(groups), drop=True)
        rates = own.flow_goodput_sampled.sel(time=series.time > runs.warmup + 1e-9).values
        found = series.link_jain_by_scale.isel(seed=0).sel(link=link)
        for scale, count in zip(series.scale.values, (1, 10, 100), strict=True):
            windows = rates[: len(rates) // count * count].reshape(-1, count, rates.shape[1])
            goodput = windows.sum(axis=1)
            goodput = goodput[goodput.sum(axis=1) > 0]
            index = goodput.sum(axis=1) ** 2 / (goodput**2).sum(axis=1) / goodput.shape[1]
            assert found.sel(scale=scale) == pytest.approx(index.mean(), rel=1e-9)
        flows = np.concatenate([run["flows"][name]["flow_goodput"] for name in groups])
        jain = flows.sum() ** 2 / (flows**2).sum() / len(flows)
        assert run["links"][link]["jain"] == pytest.approx(jain, rel=1e-12)


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
