"""Open sources in the fluid model: traffic at its mean rate, and on/off flows."""

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.traffic import Files, Sessions, Web
from fluidcc.laws.window.reno import Reno
from fluidcc.model.fluid import as_fluid
from fluidcc.scenario.network import Flows, Link, Network

LINK = Link(queue=PI(q_ref=30.0), capacity=1250.0, delay=0.02, buffer=100.0, cross=10.0)
BULK = Flows(
    window=Reno(), n=np.array([10.0]), rtt=np.array([0.1]), feedback=MarkTail(), reverse_route=(1,)
)


def _net(**groups):
    back = dataclasses.replace(LINK, queue=Droptail(), cross=0.0)
    return Network(
        links=(LINK, back), flows=tuple(groups.values()), link_names=("ahead", "back"),
        flow_names=tuple(groups),
    )  # fmt: skip


def _source(traffic, count=1.0, **changes):
    return dataclasses.replace(BULK, traffic=traffic, n=np.array([count]), **changes)


def test_results_are_those_of_cross_traffic_and_say_so():
    files = _source(Files(arrivals=8.0, file=25.0))
    plain = dataclasses.replace(LINK, cross=210.0)
    twin = Network(
        links=(plain,), flows=(dataclasses.replace(BULK, reverse_route=()),),
        link_names=("ahead",), flow_names=("bulk",),
    )  # fmt: skip
    net = _net(bulk=BULK, files=files)
    one, other = fc.equilibrium(net), fc.equilibrium(twin)
    assert one.links == other.links
    assert set(one.flows) == {"bulk"}
    assert one.flows["bulk"].rate == pytest.approx(other.flows["bulk"].rate)
    assert "flows.files: its files are traffic of 200 packet/s" in one.message
    assert fc.stability(net).rightmost == fc.stability(twin).rightmost
    assert np.array_equal(
        fc.simulate(net, until=1.0).links["ahead"].queue,
        fc.simulate(twin, until=1.0).links["ahead"].queue,
    )


def test_sessions_are_on_off_flows_of_the_same_rate():
    law = Sessions()
    seen = as_fluid(_net(bulk=BULK, web=_source(law)))
    assert seen.flows[1].traffic == Web(file=12.0, idle=9.0)
    assert float(seen.flows[1].n[0]) == 540.0
    offered = law.arrivals * law.page_count * law.object_count * law.file
    assert 540.0 / 9.0 * 12.0 == pytest.approx(offered)


def test_files_alone_are_no_fluid_model():
    with pytest.raises(ValueError, match="has no flows: all files come by themselves"):
        fc.equilibrium(_net(files=_source(Files())))
