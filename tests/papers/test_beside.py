"""The table of the fluid model beside the packets, as a run over all scenarios left it."""

import importlib
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.bundled import scenarios
from fluidcc.bundled.validation.lab.beside import causes, medians, table


def test_every_scenario_is_in_it_with_every_link():
    rows = table()
    assert {row.scenario for row in rows} == set(scenarios())
    assert all(row.unit and row.span.endswith(" s") for row in rows)


def test_where_the_model_says_nothing_against_itself_it_keeps_to_its_goals():
    inside = [row for row in table() if not row.outside]
    found = medians(inside)
    assert len({row.scenario for row in inside}) >= 4
    assert found["goodput"][0] <= 0.05 and found["queue"][0] <= 0.10
    for kind, goal in (("goodput", 0.05), ("queue", 0.10)):  # not in the median alone
        assert all(abs(r.difference) <= goal for r in inside if r.kind == kind and r.compares)


def test_a_scenario_comes_out_as_kept(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "validation"))
    script = importlib.import_module("compare_all")
    name = "hollot2001/pi"
    net = fc.load(name)
    warmup, until = script.duration(net, fc.equilibrium(net))
    found = fc.compare(net, until=until, warmup=warmup, seeds=script.SEEDS).to_dict()["rows"]
    kept = {row.quantity: row for row in table() if row.scenario == name}
    assert set(kept) == {row["name"] for row in found}
    for row in found:
        own = kept[row["name"]]
        assert row["packets"] == (own.packets and pytest.approx(own.packets, rel=1e-4))
        assert (row["equilibrium"] if row["fluid"] is None else row["fluid"]) == (
            own.fluid and pytest.approx(own.fluid, rel=1e-3)
        )


def test_causes_have_neither_places_nor_numbers_and_cover_what_is_outside():
    rows = table()
    found = causes(rows)
    assert not any(c.isdigit() for cause in found for c in cause)
    assert not any("links." in cause or "flows." in cause for cause in found)
    outside = {row.scenario for row in rows if row.outside}
    assert {row.scenario for own in found.values() for row in own} == outside
    counts = [len({row.scenario for row in own}) for own in found.values()]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
