"""The levels of description side by side, and the formulas of the model that they share."""

import numpy as np
import pytest
import sympy as sp
from scipy import stats

import fluidcc as fc
from fluidcc.check.verb import BASE
from fluidcc.laws import RED, HalveOnly, Loss, PerMark, Reno
from fluidcc.results.compare import throughputs
from fluidcc.results.latex import queue_equations, sender_equations
from fluidcc.results.levels import LEVELS, choose_level, depends_on_step, loses_most


@pytest.fixture(scope="module")
def both():
    """The published mix, long enough for both engines to settle."""
    return fc.compare(fc.load("misra2003/mixed"), until=60.0, warmup=30.0, seeds=(1, 2, 3))


def test_a_stable_trajectory_ends_at_the_equilibrium(both):
    rows = {row.name.split(".")[2]: row for row in both.rows}
    assert rows.pop("queue_std").fluid < 0.1
    assert rows.pop("period").fluid is None
    for row in rows.values():
        assert row.fluid == pytest.approx(row.mean, rel=2e-3, abs=1e-12)
    delay = both.equilibrium.links["bottleneck"].queueing_delay
    assert rows["queueing_delay"].mean == delay == rows["queue"].mean / 1250


def test_what_capacity_decides_agrees_between_the_engines(both):
    rows = {row.name: row for row in both.rows}
    queue = rows["links.bottleneck.queue"]
    assert abs(queue.fluid - queue.packets) < 0.05 * queue.packets
    for engine in ("fluid", "packets"):
        shares = [getattr(rows[f"flows.{name}.goodput"], engine) for name in ("mod", "newreno")]
        assert 10 * sum(shares) == pytest.approx(10e6, rel=0.01)


def test_the_paper_is_right_that_ecn_mod_gets_more_in_packets(both):
    """Misra and Ott (2003), section 5; the fluid model, which counts no bursts, denies it."""
    rows = {row.name: row for row in both.rows}
    mod, newreno = rows["flows.mod.goodput"], rows["flows.newreno.goodput"]
    assert mod.packets - mod.ci95 > newreno.packets + newreno.ci95
    assert mod.fluid < newreno.fluid


def test_the_fluid_model_says_that_its_shares_are_wrong_there(both):
    mod, newreno, empties = both.validity_warnings
    assert "flows.mod" in mod and "too low" in mod
    assert "flows.newreno" in newreno and "too high" in newreno
    assert empties == both.population.message and "often empties" in empties
    assert both.to_dict()["validity_warnings"] == [mod, newreno, empties]
    assert mod in repr(both) and mod in both.to_xarray().attrs["validity_warnings"]


def test_trains_are_near_packets_there_and_trusted(both):
    """Tolerances of the levels' goals, beside intervals of three seeds."""
    assert both.level == "trains" and "individuals" in both.level_reason
    for row in both.rows:
        assert row.recommended == row.trains
    rows = {row.name.split(".")[2]: row for row in both.rows}
    for name, share in (("queue", 0.05), ("queue_std", 0.2), ("mark_fraction", 0.05)):
        row = rows[name]
        slack = row.ci95 + row.trains_ci95
        assert abs(row.trains - row.packets) < share * row.packets + slack
        assert row.recommended_difference == pytest.approx(row.trains / row.packets - 1)
    data = both.to_xarray()
    known = sum(row.trains is not None for row in both.rows)
    assert data["to_trust"].item() == "trains" and data["recommended"].notnull().sum() == known
    assert "Level to trust: trains" in repr(both)


def test_trains_oscillate_with_the_period_of_packets():
    both = fc.compare(
        fc.load("misra2003/aggressive"), until=60.0, warmup=16.0, seeds=(1, 2, 3),
        levels=("trains", "packets"),
    )  # fmt: skip
    (period,) = (row for row in both.rows if row.name.endswith(".period"))
    assert period.recommended == period.trains
    assert period.trains == pytest.approx(period.packets, rel=0.1)


def rule(name, levels=LEVELS, against="", **changes):
    """The level to trust for a network, by what is known without runs."""
    net = fc.replace(fc.load(name), changes)
    both = fc.compare(net, until=1.0, levels=("mean", "population"), trajectory=False)
    return choose_level(
        levels, equilibrium=both.equilibrium, population=both.population,
        warnings=both.validity_warnings, against=against,
    )  # fmt: skip


def test_trains_are_trusted_unless_they_refuse():
    assert rule("misra2003/mixed").level == "trains"
    level, reason = rule("hollot2001/pi", against="flows.x: a law without trains")
    assert level == "population" and reason.endswith("trains: flows.x: a law without trains")


def test_trains_hold_heavy_losses_and_the_step_against_themselves():
    heavy = fc.simulate_trains(fc.load("qazi2010/two_droptail"), until=12.0, warmup=2.0)
    assert loses_most(heavy).startswith("flows.bmcc: ")
    span = {"until": 60.0, "warmup": 20.0, "seeds": (1, 2, 3), "estimate_error": True}
    bursts = fc.simulate_trains(fc.load("qazi2010/three_flows"), step=0.15 / 8, **span)
    assert depends_on_step(bursts).startswith(
        "links.bottleneck: with a step twice as long the mean"
    )
    smooth = fc.simulate_trains(fc.load("hollot2001/slow"), **span)
    assert not loses_most(smooth) and not depends_on_step(smooth)


BMCC = {"flow.window.law": "bmcc", "flow.feedback": "load_factor"}
FAST = {"link.capacity": "40 Mbit/s"}


@pytest.mark.parametrize(
    ("changes", "converges"),
    [
        (BMCC | {"link.queue.law": "modified_load_factor"}, False),
        (BMCC | {"link.queue.law": "load_factor"}, False),
        (FAST | {"link.queue.law": "threshold"}, False),
        (BMCC | {"link.queue.law": "load_factor", "flow.estimator": "adpm"}, True),
        ({"link.capacity": "2.5 Mbit/s", "link.queue.law": "threshold"}, True),
        (FAST, True),
    ],
)
def test_short_queues_are_those_of_shorter_steps_where_trains_apply(changes, converges):
    net, span = fc.replace(fc.loads(BASE), changes), {"until": 55.0, "warmup": 15.0}
    trains = fc.simulate_trains(net, **span, seeds=(1, 2, 3, 4), estimate_error=True)
    fine = fc.simulate_trains(net, **span, seeds=(1, 2, 3, 4), step=trains.step / 8)
    waits, fine_waits = (run.mean["links"]["bottleneck"]["queue_mean"] for run in (trains, fine))
    assert (abs(waits - fine_waits) < 0.12 * fine_waits) == converges
    assert bool(depends_on_step(trains)) != converges


def test_where_steps_resolve_no_queue_a_change_is_not_put_down_to_chance():
    net = fc.replace(fc.loads(BASE), BMCC | {"link.queue.law": "modified_load_factor"})
    span = {"until": 40.0, "warmup": 15.0, "seeds": (1, 2, 3)}
    trains = fc.simulate_trains(net, **span, estimate_error=True)
    said = depends_on_step(trains)
    assert "with a step twice as long" in said and "packets wait in shorter queues" in said
    assert trains.step_ci95 is not None and trains.step_error is not None
    error, chance = (
        each["links"]["bottleneck"]["queue_mean"] for each in (trains.step_error, trains.step_ci95)
    )
    assert error < 2 * chance  # a long queue would be excused


def test_listed_starts_are_named_as_what_the_fluid_does_not_have():
    net = fc.replace(fc.loads(BASE), {"flow.n": 3, "flow.start": [0.0, 2.0, 5.0]})
    both = fc.compare(net, until=8.0, seeds=(1,), levels=("mean", "trains"))
    assert both.fluid is not None and both.message in both.fluid.message
    assert both.message.startswith("flows.tcp: in the fluid all run from time 0")
    assert both.message in repr(both) and both.to_dict()["message"] == both.message
    alone = fc.compare(net, until=1.0, levels=("mean", "trains"), seeds=(1,), trajectory=False)
    assert not alone.message  # equilibria know no starts


def test_a_network_that_trains_refuse_is_compared_all_the_same():
    net = fc.replace(fc.load("hollot2001/slow"), {"flow.n": 1e6})
    both = fc.compare(net, until=1.0, levels=("mean", "trains"), trajectory=False)
    assert both.trains is None and "expected at most 200000" in both.trains_message
    assert both.level == "packets" and both.trains_message in both.level_reason
    assert not both.message and all(row.recommended is None for row in both.rows)
    assert both.trains_message in repr(both) and both.to_dict()["trains"] is None


def test_levels_that_are_left_out_are_not_trusted():
    level, reason = rule("hollot2001/pi", ("mean", "population", "packets"))
    assert level == "population" and "trains: not asked for" in reason
    level, reason = rule("hollot2001/pi", ("mean", "packets"))
    assert level == "mean" and reason.startswith("there is no validity warning")


def test_no_level_below_packets_has_every_reason():
    level, reason = rule("misra2003/mixed", against="a fault")
    assert level == "packets" and reason.startswith("no level below packets applies: ")
    for said in ("trains: a fault", "population: ", "often empties", "mean: validity warnings (3)"):
        assert said in reason
    jump = rule("akujobi2002/homogeneous_ecn", ("mean", "packets"))
    assert (
        jump.level == "packets"
        and "mean: the equilibrium has the status discontinuity" in jump.reason
    )


def test_goodput_at_rest_is_what_arrives():
    """A full buffer: the link carries its rate, and sources send more by what is lost."""
    text = """
[links.l]
capacity = 1250
buffer = 30
queue = { law = "droptail" }
[flows.f]
n = 20
rtt = "80 ms"
window = { law = "newreno", max_window = 100 }
"""
    both = fc.compare(fc.loads(text), until=2.0, seeds=(1,), levels=("mean",))
    rows = {row.name: row for row in both.rows}
    assert rows["links.l.drop_fraction"].mean > 0.01
    assert 20 * rows["flows.f.goodput"].mean == pytest.approx(1250 * 8e3, rel=1e-9)


def test_window_equations_follow_from_the_rules():
    net = fc.load("misra2003/mixed")
    w, x, p, rtt, c1, c2 = (
        sp.Symbol(s, positive=True) for s in ("W", "x_d", "p_d", "R", "c_1", "c_2")
    )
    mod, newreno = net.flows
    expected = x * ((1 - p) * c1 - p * c2 * w)  # Misra and Ott (2003), eq. 1 times the ACK rate
    assert sp.simplify(sender_equations(mod, "ack")[r"\dot W"] - expected) == 0
    block = x * (1 / w - (1 - (1 - p) ** w) / 2)  # once per window of data
    assert sp.simplify(sender_equations(newreno, "ack")[r"\dot W"] - block) == 0
    reno = fc.load("hollot2001/slow").flows[0]
    mgt = 1 / rtt - x * p * w / 2  # Misra, Gong and Towsley (2000)
    assert sp.simplify(sender_equations(reno, "mgt")[r"\dot W"] - mgt) == 0


def test_queue_equations_follow_from_the_rules():
    link = fc.load("hollot2001/slow").links[0]
    average = queue_equations(link)[r"\dot v"]
    q, c, w_q = (sp.Symbol(s, positive=True) for s in ("q", "C", "w_q"))
    v = sp.Symbol("v", nonnegative=True)
    assert sp.simplify(average + c * sp.log(1 - w_q) * (q - v)) == 0


# -- Gain and loss of throughput against closed forms
def pair(short=0.1):
    """Two classes of TCP; by W = sqrt(2/l) their rates are as 1/R."""
    link = fc.Link(RED(min_th=10.0, max_th=400.0, p_max=0.5), capacity=1000.0, buffer=500.0)
    parts = {"reaction": PerMark(), "feedback": Loss(), "loss": HalveOnly()}
    groups = tuple(fc.Flows(Reno(), n=np.ones(1), rtt=np.array([t]), **parts) for t in (short, 0.1))
    return fc.Network((link,), groups, flow_names=("short", "long"))


def test_a_short_round_trip_gains_what_it_takes():
    baseline, mix = fc.equilibrium(pair()), fc.equilibrium(pair(short=0.01))
    for eq in (baseline, mix):
        assert sum(throughputs(eq).values()) == pytest.approx(1000.0, rel=1e-9)
    assert throughputs(baseline)["short"] == pytest.approx(500.0, rel=1e-9)
    wait = mix.links["bottleneck"].queue / 1000.0
    ratio = (0.1 + wait) / (0.01 + wait)
    out = fc.gain_and_loss(mix, baseline, aggressive="short", other="long")
    assert out.loss == pytest.approx(2 / (1 + ratio), rel=1e-8)
    assert out.gain == pytest.approx(2 * ratio / (1 + ratio), rel=1e-8)


def test_measured_throughputs_do_as_well():
    out = fc.gain_and_loss({"a": 6.0, "b": 2.0}, {"a": 4.0, "b": 4.0}, aggressive="a", other="b")
    assert out[:2] == (1.5, 0.5)


def runs(*goodputs, seeds):
    """Packet runs that differ in their goodputs only."""
    made = [{"flows": {k: {"goodput": v} for k, v in g.items()}, "links": {}} for g in goodputs]
    return fc.PacketRuns.of(seeds, made, made, until=1.0, warmup=0.0)


def test_packet_runs_are_compared_seed_by_seed():
    mix = runs({"a": 6.0, "b": 2.0}, {"a": 5.0, "b": 3.0}, {"a": 8.0, "b": 1.0}, seeds=(1, 2, 3))
    alone = runs({"a": 5.0, "b": 4.0}, {"a": 4.0, "b": 4.0}, seeds=(2, 1))
    out = fc.gain_and_loss(mix, alone, aggressive="a", other="b")
    gains, losses = np.array([1.5, 1.0]), np.array([0.5, 0.75])
    assert out[:2] == pytest.approx((gains.mean(), losses.mean()))
    width = stats.t.ppf(0.975, 1) * np.array([gains.std(ddof=1), losses.std(ddof=1)]) / np.sqrt(2)
    assert out[2:] == pytest.approx(width)
    with pytest.raises(ValueError, match=r"runs of the same seeds, got \(1, 2, 3\) and \(4,\)"):
        fc.gain_and_loss(mix, runs({"a": 1.0, "b": 1.0}, seeds=(4,)), aggressive="a", other="b")
