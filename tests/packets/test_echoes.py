"""Which receivers repeat marks, as packets have it and the fluid model's validity asks."""

import pytest
from packet_cases import dumbbell, flows, red

from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as LoadFeedback
from fluidcc.laws.reaction import OncePerRTT, Pause, PerMark, Refractory
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.laws.window.newreno import NewReno
from fluidcc.packets.layout.build import Simulation
from fluidcc.packets.layout.plan import plan
from fluidcc.scenario.echoes import repeated

TCP = {"window": NewReno(max_window=100.0), "reaction": OncePerRTT()}
GROUPS = {
    "waits for what it sent": (TCP, True),
    "by the option": (TCP | {"reaction": PerMark(), "sender": (("echo", "sticky"),)}, True),
    "of each packet by the option": (TCP | {"sender": (("echo", "packet"),)}, False),
    "reacts to each": (TCP | {"reaction": PerMark()}, False),
    "waits for a time": (TCP | {"reaction": Refractory()}, False),
    "pauses for a time": (TCP | {"reaction": Pause()}, False),
    "learns from each": (TCP | {"window": DCTCP(max_window=100.0)}, False),
    "hears loads": (
        TCP | {"window": BMCC(max_window=100.0), "feedback": LoadFeedback()},
        False,
    ),
}


@pytest.mark.parametrize(("given", "repeats"), GROUPS.values(), ids=GROUPS)
def test_receivers_repeat_marks_for_senders_that_wait_for_what_they_sent(given, repeats):
    """RFC 3168, 6.1.3: until the sender confirms; not where the mark of each packet is wanted."""
    group = flows(2, **given)
    assert repeated(group, dict(group.sender).get("echo", "law")) == repeats
    simulation = Simulation(plan(dumbbell(group, red())), 1, True)
    assert bool(simulation.groups[0]["sticky"]) == repeats
