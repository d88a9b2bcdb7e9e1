"""Streams of random numbers, and the calendar, against other ways to do the same."""

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fluidcc.packets.engine import records as r
from fluidcc.packets.engine.calendar import first, schedule, tournament
from fluidcc.packets.engine.records import simulation_at
from fluidcc.packets.engine.streams import uniform


def test_splitmix_gives_its_published_sequence():
    """First outputs of splitmix64 from state 1234567, as in its reference implementation."""
    expected = (6457827717110365317, 3203168211198807973, 9817491932198370423)
    assert [uniform(1234567, k) for k in (1, 2, 3)] == [(x >> 11) * 2.0**-53 for x in expected]


@numba.njit
def _replay(address, count, entities, times, sinces):
    s = simulation_at(address, 0)
    for k in range(len(entities)):
        schedule(s, entities[k], times[k], sinces[k])
    out = np.empty(count, np.int64)
    for k in range(count):  # empty it, earliest first
        out[k] = first(s)
        schedule(s, out[k], np.inf, 0.0)
    return out


_TIMES = st.integers(0, 3).map(float)


@given(
    st.lists(_TIMES, min_size=1, max_size=17),
    st.lists(st.tuples(st.integers(0, 16), _TIMES, _TIMES), min_size=1, max_size=60),
)
def test_calendar_orders_by_time_then_cause_then_number(starts, changes):
    count = len(starts)
    changes = [(entity % count, time, since) for entity, time, since in changes]
    entries, winners = tournament(np.array(starts))
    state = np.zeros(1, r.SIMULATION_RECORD)
    state["entries"], state["winners"] = entries.ctypes.data, winners.ctypes.data
    state["places"] = len(entries)
    order = _replay(state.ctypes.data, count, *map(np.array, zip(*changes, strict=True)))
    keys = {e: (time, 0.0) for e, time in enumerate(starts)}
    keys |= {e: (time, since) for e, time, since in changes}
    assert order.tolist() == sorted(keys, key=lambda e: (*keys[e], e))
