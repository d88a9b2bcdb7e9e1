"""Agreement with runs of ns-2.35 inside joint 95% intervals: the fast part of the comparison."""

import importlib
import json
from pathlib import Path

import pytest

VALIDATION = Path(__file__).parents[2] / "validation"
FAST = {
    "a_homog": (
        "A_homog_plain_40ms_n25",
        "A_homog_ecn_40ms_n25",
        "A_homog_plain_40ms_n45",
        "A_homog_ecn_40ms_n45",
        "A_homog_plain_250ms_n45",
        "A_homog_ecn_250ms_n45",
    ),
    "b_rwm": ("B_ARED_cong0_n4", "B_ARED-ECN_cong1_n10"),
    "c_ca": ("C_ca_TS59",),
    "d_ecnmod": ("D_fixedcap_pmax0.2_N50",),
    "f_fluid": ("F_PI_ecn",),
}
WANTED = {"a_homog": {"goodput_mean_bps", "util", "q_pkts_mean", "q_pkts_var", "loss_pct",
                      "mark_pct", "necnresponses_total"}}  # fmt: skip


def _records(family, names):
    records = json.loads((VALIDATION / "ns2" / f"{family}.json").read_text())
    return [r for r in records if r["scenario"] in names]


@pytest.fixture
def agree(monkeypatch):
    monkeypatch.syspath_prepend(str(VALIDATION))
    return importlib.import_module("agree_ns2")


@pytest.mark.parametrize(
    ("family", "record"),
    [
        pytest.param(family, record, id=f"{record['scenario']}-{k}")
        for family, names in FAST.items()
        for k, record in enumerate(_records(family, names))
    ],
)
def test_agrees_with_ns2(agree, family, record):
    found = agree.judge(family, record)
    assert WANTED.get(family, set()) <= {c.metric for c in found}
    params = record["params"]
    wrong = [c for c in found if not c.agrees and agree.reason(family, params, c) is None]
    assert not wrong, wrong
