"""Kept verdicts and the kept comparison are computed again in part: runs, rules and readings."""

import json
from pathlib import Path

import pytest

from fluidcc.bundled.validation.lab.check import BOUNDS
from fluidcc.bundled.validation.lab.judging import least, most
from fluidcc.bundled.validation.lab.lab import Lab
from fluidcc.bundled.validation.lab.ledger import verdict
from fluidcc.bundled.validation.lab.readings import DEFAULT
from fluidcc.bundled.validation.lab.store import Store

TEXT = (Path(__file__).parents[2] / "docs/papers/verdicts.json").read_text(encoding="utf-8")
KEPT = {row["id"]: row for row in json.loads(TEXT)["claims"]}
AGAIN = {
    "becn": ("BECN-08", "BECN-09"),
    "bmcc": ("BMCC-27", "BMCC-31"),
    "ecn_mod": ("EMOD-03", "EMOD-06"),
    "mark_front": ("MF-05", "MF-12", "MF-15"),
    "rwm": ("RWM-14",),
}


@pytest.mark.parametrize("paper", AGAIN)
def test_verdicts_come_out_as_kept(paper, tmp_path):
    lab = Lab(Store(tmp_path), paper, quick=True)
    for name in AGAIN[paper]:
        found, kept = verdict(lab, name).to_dict(), KEPT[name]
        assert {reading: own["verdict"] for reading, own in found["readings"].items()} == (
            kept["readings"]
        )
        for key in ("verdict", "engine", "reading", "counts", "why"):
            assert found[key] == kept[key], f"{name}: {key}"


def test_what_is_kept_adds_up():
    for row in KEPT.values():
        own = row["readings"]
        assert row["verdict"] == own[row["reading"]]
        ends = {"every": least(own.values()), "some": most(own.values())}
        assert row["counts"] == {"default": own[DEFAULT], "joint": row["verdict"], **ends}


def test_claims_and_bounds_name_each_other():
    named = {(claim, bound.id) for bound in BOUNDS.values() for claim in bound.claims}
    assert named == {(row["id"], name) for row in KEPT.values() for name in row["bounds"]}
