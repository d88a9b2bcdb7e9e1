"""Parts of the engine that are compiled apart, for the runs that need them."""

import pytest
from packet_cases import CASES

from fluidcc.packets.engine.parts import PARTS
from fluidcc.packets.engine.records import PART_MISSING, SIMULATION_RECORD
from fluidcc.packets.entry import entry_points, part_address
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import plan

ABSENT = part_address("report_missing")
NEEDED = {
    "ecn": "",
    "front": "mark_departure",
    "sack": "receive_sack",
    "pi": "tick_queue",
    "reverse": "rewrite_ack",
    "cross": "receive_datagram",
    "voice": "serve_fairly",
    "files": "finish_connection",
    "pause": "send_quench",
    "load_factor": "decode_load",
}


def test_each_part_has_a_place_in_the_record_of_the_simulation():
    assert set(PARTS) <= set(SIMULATION_RECORD.names)


@pytest.mark.parametrize("case", NEEDED)
def test_a_run_has_the_parts_that_it_needs(case):
    state = Simulation(plan(CASES[case]), 1, True).state[0]
    present = {field for field in PARTS if state[field] != ABSENT}
    wanted = {NEEDED[case]} - {""}
    assert wanted <= present if wanted else not present


@pytest.mark.parametrize("case", [case for case, part in NEEDED.items() if part])
def test_a_run_without_a_part_that_it_needs_ends_and_says_so(case):
    advance, _ = entry_points()
    simulation = Simulation(plan(CASES[case]), 1, True, scale=8)
    simulation.state[0][NEEDED[case]] = ABSENT
    assert advance(simulation.address, 20.0, 1 << 40) == PART_MISSING
