"""Maps of the queue laws of today: their networks, edges of stability, places without answer."""

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.bundled import module
from fluidcc.bundled.paper_figs.drawing.draw import draw, rows
from fluidcc.bundled.paper_figs.drawing.figure import Field, Panel, recipes

today = module("paper_figs.today")
Lab, Store = module("validation.lab.lab").Lab, module("validation.lab.store").Store
Points = module("validation.lab.samples").Points
experiments = module("validation.lab.experiments").experiments


@pytest.mark.parametrize("name", today.AQMS)
@pytest.mark.parametrize("label", today.SENDERS)
def test_every_queue_law_has_every_sender_at_every_place(name, label):
    aqm, sender = today.AQMS[name], today.SENDERS[label]
    net = today.place(today.network(aqm, sender), 0.1, 5.0)
    assert net.links[0].queue == fc.load(aqm.scenario).links[0].queue
    assert net.flows[0].window == fc.load(sender.scenario).flows[sender.group].window
    assert sum(float(np.sum(flows.n)) for flows in net.flows) == pytest.approx(20)
    assert {float(np.max(flows.rtt)) for flows in net.flows} == {0.1}
    assert (len(net.flows) == 2) == (name in ("coupled", "dualpi2"))


@pytest.mark.parametrize("name", ["red", "pi2"])
def test_prague_is_dctcp_beyond_25_ms(tmp_path, name):
    """Queues of 7 ms and more over RED, of 15 ms over PI2."""
    lab, found = Lab(Store(tmp_path), "today"), []
    for label in ("DCTCP", "Prague"):
        net = today.network(today.AQMS[name], today.SENDERS[label])
        found.append(today.margins_of(lab, net, [0.005, 0.02, 0.1], [5.0]))
    dctcp, prague = ((own.gain[0], own.phase[0], own.stable[0]) for own in found)
    for one, other in zip(dctcp, prague, strict=True):
        assert one[1:] == pytest.approx(other[1:], rel=1e-9)
    assert dctcp[1][0] > prague[1][0] + 10  # degrees


def test_shares_are_of_flows_at_three_rates():
    for name in ("coupled_reno", "dualpi2_cubic", "dualpi2_apart"):
        experiment = experiments("today")[name]
        points = Points(experiment, [None] * len(experiment.x))
        assert points.equal_share == pytest.approx(np.repeat([1.5, 6.0, 24.0], 7))


def test_there_is_a_map_of_every_queue_law_that_has_margins():
    assert {name for name in today.AQMS if name != "step"} <= set(recipes("today"))


def margins(gain, stable, reason):
    one = np.array([gain], float)
    return today.Margins(
        np.array([0.01, 0.1, 1.0]), np.array([5.0]), one, one, np.array([stable]),
        np.array([reason]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gain", "stable", "reason", "level", "end"),
    [
        ([20, 10, -10], [True, True, False], ["", "", ""], 0.0, 10**-0.5),  # by a line in log R
        ([20, 10, -10], [True, True, False], ["", "", ""], 15.0, 0.01**0.5 * 10**-0.5),
        ([20, 10, 40], [True, True, False], ["", "", ""], 0.0, 10**-0.5),  # a jump: the middle
        ([20, 20, 40], [True, True, False], ["", "", ""], 10.0, 10**-0.5),
        ([20, np.nan, -10], [True, False, False], ["", "why", ""], 0.0, np.nan),
        ([np.nan, 10, -10], [False, True, False], ["why", "", ""], 0.0, 10**-0.5),
        ([-5, -10, -20], [False, False, False], ["", "", ""], 0.0, np.nan),
        ([20, 10, 5], [True, True, True], ["", "", ""], 0.0, np.nan),  # stable everywhere
    ],
)
def test_the_farthest_round_trip(gain, stable, reason, level, end):
    found = margins(gain, stable, reason).farthest(level)
    assert found == pytest.approx([end], nan_ok=True)


def test_places_without_an_answer_have_their_reason(tmp_path):
    lab = Lab(Store(tmp_path), "today")
    step = today.network(today.AQMS["step"], today.SENDERS["DCTCP"])
    found = today.margins_of(lab, step, [0.1], [5.0])
    (why,) = found.blank
    assert "jump of the marking" in why and np.isnan(found.gain).all()
    unstable = today.network(today.AQMS["pi2"], today.SENDERS["DCTCP"])
    found = today.margins_of(lab, unstable, [0.05, 0.3], [5.0])
    assert list(found.blank) == ["unstable"] and found.stable.tolist() == [[True, False]]


def test_a_map_names_and_hatches_what_it_lacks():
    z = np.array([[1.0, np.nan], [np.nan, 7.0]])
    blank = {"unstable": np.array([[False, True], [False, False]]),
             "no answer": np.array([[False, False], [True, False]])}  # fmt: skip
    field = Field("margin (dB)", np.array([1.0, 2.0]), np.array([1.0, 2.0]), z, bands=(0, 3, 6),
                  blank=blank)  # fmt: skip
    panel, recipe = Panel("x (1)", "y (1)", field=field), recipes("today")["pi2"]
    words = [text.get_text() for text in draw(recipe, [panel]).legends[0].get_texts()]
    assert words == ["unstable", "no answer"]
    assert [row[4] for row in rows(recipe, [panel])[1:]] == [1.0, "unstable", "no answer", 7.0]
