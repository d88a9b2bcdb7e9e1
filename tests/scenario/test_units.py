"""Quantities in text: known values, round trips, refusals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidcc.scenario import units


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("88 ms", "s", 0.088),
        ("3 us", "s", 3e-6),
        ("2 min", "s", 120.0),
        (0.25, "s", 0.25),
        ("1.5 kB", "B", 1500.0),
        ("12 kbit", "B", 1500.0),
        ("1 KiB", "B", 1024.0),
        ("10 Mbit/s", "packet/s", 1250.0),
        ("10 Mbps", "packet/s", 1250.0),
        ("1.25 MB/s", "packet/s", 1250.0),
        ("1250 packet/s", "packet/s", 1250.0),
        ("150 packets", "packet", 150.0),
        ("90 kB", "packet", 90.0),
        ("10 %", "1", 0.1),
        ("64 kbit/s", "bit/s", 64e3),
        ("8 kB/s", "bit/s", 64e3),
        (64e3, "bit/s", 64e3),
        ("inf", "packet", math.inf),
        (7, "packet", 7.0),
    ],
)
def test_reads_the_exact_value(text, unit, value):
    assert units.read(text, unit, packet_size=1000.0) == value


@pytest.mark.parametrize(
    ("value", "unit", "close"),
    [
        ("10 Mbits/s", "packet/s", ("Mbit/s",)),
        ("5 mss", "s", ("ms",)),
        ("5 ms", "packet", ()),
        ("5 kB", "s", ()),
        ("fast", "s", ()),
        ("10", "s", ("10 s",)),
        ("0,5 ms", "s", ("0.5 ms",)),
        (True, "s", ()),
        (None, "s", ()),
        (math.nan, "s", ()),
        ("8 packet/s", "bit/s", ()),
        ("64 kbits/s", "bit/s", ("kbit/s",)),
        (10**400, "s", ()),
        ("1e400 s", "s", ()),
        ("1e999999999 s", "s", ()),
    ],
)
def test_refuses_other_quantities(value, unit, close):
    with pytest.raises(units.UnitError, match=r"a number") as error:
        units.read(value, unit, packet_size=1000.0)
    assert error.value.nearest == close


def test_bytes_need_a_packet_size():
    with pytest.raises(units.UnitError):
        units.read("90 kB", "packet")


@given(st.floats(1e-9, 1e12), st.sampled_from(["s", "B", "packet", "packet/s"]))
def test_a_number_with_its_own_unit_is_itself(value, unit):
    assert units.read(f"{value!r} {unit}", unit) == value


@given(st.integers(1, 10**9), st.sampled_from([("kB", 1000), ("KiB", 1024), ("MB", 10**6)]))
def test_sizes_become_packets_exactly(count, named):
    name, size = named
    assert units.read(f"{count} {name}", "packet", packet_size=float(size)) == count
