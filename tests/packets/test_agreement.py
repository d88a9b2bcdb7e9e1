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
    "a_web": ("A_web_ecn_40ms_n5",),
    "b_rwm": ("B_ARED_cong0_n4", "B_ARED-ECN_cong1_n10", "B_extra_REM-ECN_cong0_n20"),
    "c_ca": ("C_ca_TS59",),
    "c_single": ("C_single_bw1.5_acc10_TS30_exact1", "C_single_bw1.5_acc10_TS30_exact0"),
    "c_multi": ("C_two_TS59_B1rd", "C_ten_diffrtt_TS59_inf"),
    "c_front": ("C_vqfront_TS59",),
    "d_ecnmod": ("D_fixedcap_pmax0.2_N50",),
    "d_voip": ("D_voipcbq_pmax1.0_N10",),
    "e_sack": ("E_nocross_DropTail_40ms_n6", "E_nocross_RED_40ms_n2"),
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
