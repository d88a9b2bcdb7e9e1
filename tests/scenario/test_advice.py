"""What is odd about a network without being wrong, one sentence each."""

import pytest
from scenario_cases import spoiled

from fluidcc.model.advice import advice
from fluidcc.scenario.build import build

BMCC = {
    "flows.mod.window": {"law": "bmcc"},
    "flows.mod.marking": "plain",
    "flows.mod.feedback": "load_factor",
}
ROUTER = BMCC | {"links.near.queue": {"law": "load_factor"}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (BMCC, ["flows.mod: no link of its route tells a load factor, so bmcc takes the least "]),
        (BMCC | {"flows.mod.window": {"law": "bmcc", "lowest": 0.2}}, ["knows, 20 %, and grows"]),
        (ROUTER, []),
        (
            ROUTER | {"flows.mod.window": {"law": "bmcc", "t_p": 0.1}},
            ["flows.mod: t_p of bmcc is 0.1 s, that of load_factor of links.near is 0.2 s"],
        ),
        (
            ROUTER | {"flows.mod.estimator": {"law": "adpm", "mild": 0.8, "highest": 1.3}},
            [
                "flows.mod: mild of bmcc is 0.75, that of adpm is 0.8",
                "flows.mod: highest of bmcc is 1.2, that of adpm is 1.3",
            ],
        ),
        (
            {"flows.tcp.window": {"law": "becn"}},
            ["flows.tcp: becn is made for source quenches, and mark_front has none"],
        ),
        ({"flows.tcp.window": {"law": "becn"}, "flows.tcp.feedback": "backward"}, []),
        ({"links.near.cross": 1249.0}, []),
        (
            {"links.near.cross": 1250.0},
            ["links.near: traffic that no signal slows comes at 1250 packet/s and leaves nothing"],
        ),
        ({"links.near.voice": {"calls": 322}}, []),  # 998.2 of 1000 packet/s
        (
            {"links.near.voice": {"calls": 323}},
            ["links.near: the mean rate of the voice calls, 1001.3 packet/s, is above their share"],
        ),
        (
            {"links.near.voice": {"calls": 323}, "links.near.cross": 250.0},
            ["is above their share", "comes at 250 packet/s and leaves nothing of 250 packet/s"],
        ),
        ({"links.near.voice": {"calls": 403, "discipline": "fifo"}}, []),
        (
            {"links.near.voice": {"calls": 404, "discipline": "fifo"}},
            ["links.near: traffic that no signal slows comes at 1252.4 packet/s"],
        ),
    ],
)
def test_one_sentence_for_each_thing(changes, says):
    found = advice(build(spoiled(changes), "x"))
    assert len(found) == len(says)
    assert all(part in line for part, line in zip(says, found, strict=True))
