"""Both engines side by side, and the formulas of the model that they share."""

import importlib
from typing import Any

import pytest
import sympy as sp

import fluidcc as fc
from fluidcc.packets.accounts import series
from fluidcc.packets.layout.plan import plan
from fluidcc.results.latex import queue_equations, sender_equations

sides = importlib.import_module("fluidcc.results.compare")  # not the function


@pytest.fixture(scope="module")
def both():
    """The published mix, long enough for both engines to settle."""
    return fc.compare(fc.load("misra2003/mixed"), until=60.0, warmup=30.0, seeds=(1, 2, 3))


def test_every_quantity_is_there_with_its_unit(both):
    units = {row.name: row.unit for row in both.rows}
    assert units == {
        "links.bottleneck.utilization": "1",
        "links.bottleneck.queue": "packet",
        "links.bottleneck.marked": "1",
        "links.bottleneck.dropped": "1",
        "links.bottleneck.deviation": "packet",
        "links.bottleneck.period": "s",
        "flows.mod.goodput": "bit/s",
        "flows.newreno.goodput": "bit/s",
    }
    assert all(row.ci95 is not None for row in both.rows[:5])


def test_a_stable_trajectory_ends_at_the_equilibrium(both):
    rows = {row.name.split(".")[2]: row for row in both.rows}
    assert rows.pop("deviation").fluid < 0.1
    assert rows.pop("period").fluid is None
    for row in rows.values():
        assert row.fluid == pytest.approx(row.equilibrium, rel=2e-3, abs=1e-12)


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
    mod, newreno = both.outside
    assert "flows.mod" in mod and "too small" in mod
    assert "flows.newreno" in newreno and "too large" in newreno
    assert both.to_dict()["outside"] == [mod, newreno]
    assert mod in repr(both) and mod in both.to_dataset().attrs["outside"]


def test_results_as_table_dataset_and_text(both):
    table = both.to_dict()
    assert table["rows"][1]["name"] == "links.bottleneck.queue"
    assert both.to_dataset()["fluid"].sizes == {"quantity": 8}
    assert "flows.mod.goodput" in repr(both)


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
    rows = {row.name: row for row in fc.compare(fc.loads(text), until=2.0, seeds=(1,)).rows}
    assert rows["links.l.dropped"].equilibrium > 0.01
    assert 20 * rows["flows.f.goodput"].equilibrium == pytest.approx(1250 * 8e3, rel=1e-9)


def test_an_equilibrium_may_stand_for_the_trajectory():
    both = fc.compare(fc.load("misra2003/mixed"), until=4.0, seeds=(1,), trajectory=False)
    queue = next(row for row in both.rows if row.name.endswith(".queue"))
    assert both.fluid is None and queue.fluid is None and queue.model == queue.equilibrium
    assert queue.difference == pytest.approx(queue.equilibrium / queue.packets - 1)
    assert both.to_dict()["fluid_status"] is None


@pytest.mark.slow
def test_a_cycle_of_a_thousandth_of_the_run_keeps_its_period():
    """Half a minute; 4001 samples of this run would tell one of 15 ms. Steps of 2.5 us that are
    located at the threshold give 1.09775 ms, the uniform ones are right to the first order.
    """
    both = fc.compare(fc.load("alizadeh2010/dctcp"), until=3.6, warmup=0.72, seeds=(1,))
    period = next(row for row in both.rows if row.name.endswith(".period"))
    assert period.fluid == pytest.approx(1.09775e-3, rel=5e-3)


def of_few_numbers(monkeypatch, most, **options) -> Any:
    """One run of DCTCP, whose queue swings, with so many numbers to keep at most."""
    monkeypatch.setattr(series, "_MOST", most)
    monkeypatch.setattr(sides, "_MOST", most)
    both = fc.compare(fc.load("alizadeh2010/dctcp"), warmup=0.02, seeds=(1,), **options)
    rows: Any = {row.name.split(".")[2]: row for row in both.rows}
    assert rows["deviation"].packets > 1
    return both, rows["period"]


def test_samples_too_coarse_for_a_period_tell_none_and_why(monkeypatch):
    """Two samples in each round trip of 100 us are 4401; 4300 are too coarse, if by little."""
    both, period = of_few_numbers(monkeypatch, 4300 * 29, until=0.22, trajectory=False)
    assert both.packets.series.sizes["time"] == 4001 and period.packets is None
    said = both.to_dict()["message"]
    assert "no period is told for packets: that needs a sample every 5e-05 s" in said
    assert "fewer seeds" in said and said in repr(both)
    assert said == both.to_dataset().attrs["periods"]
    both, period = of_few_numbers(monkeypatch, 4300 * 17, until=0.22)
    assert (period.fluid, period.packets, both.packets.series) == (None, None, None)
    assert "for fluid and packets" in both.message and both.fluid.time.size == 4001


def test_a_short_run_of_many_numbers_keeps_its_period(monkeypatch):
    """Of 2001 samples that it needs, 3000 may be taken: the period is that of 4001."""
    fewer = of_few_numbers(monkeypatch, 3000 * 29, until=0.1)
    usual = of_few_numbers(monkeypatch, 20_000_000, until=0.1)
    sizes = [both.packets.series.sizes["time"] for both, _ in (fewer, usual)]
    assert sizes == [3001, 4001] and fewer[0].message == usual[0].message == ""
    assert fewer[1].packets == pytest.approx(usual[1].packets, rel=1e-2)
    assert fewer[1].fluid == usual[1].fluid


def test_a_minute_of_a_fast_network_in_numbers():
    """The default of the command line: 1 200 001 points of the fluid, too many of five runs."""
    net = fc.load("alizadeh2010/dctcp")
    wanted = sides._wanted(net, 60.0)
    assert wanted == 1_200_001 and wanted <= sides._MOST // sides._width(net)
    least = series.shortest(plan(net), 60.0, 5)
    assert least == pytest.approx(60 * 5 * 29 / 20e6)
    assert sides._sample(wanted, 60.0, least) == (60.0 / 4000, False)


def test_a_warmup_beyond_the_end_is_refused():
    with pytest.raises(ValueError, match=r"warmup: expected a time in \[0, 10"):
        fc.compare(fc.load("misra2003/mixed"), until=10.0, warmup=10.0)


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
    q, v, c, w_q = (sp.Symbol(s, positive=True) for s in ("q", "v", "C", "w_q"))
    assert sp.simplify(average + c * sp.log(1 - w_q) * (q - v)) == 0


def test_latex_is_one_aligned_block_with_a_line_per_equation():
    text = fc.latex(fc.load("misra2003/mixed"))
    assert text.startswith(r"\begin{align*}") and text.endswith(r"\end{align*}")
    assert text.count(r"\dot W") == 2 and text.count(r"\dot q") == 1
