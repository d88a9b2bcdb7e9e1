"""Agreement with runs of ns-2.35 inside joint 95% intervals: the fast part of the comparison."""

import csv
import importlib
import json
from pathlib import Path

import pytest

VALIDATION = Path(__file__).parents[2] / "validation"
with (VALIDATION / "ns2" / "agreement.csv").open(encoding="utf-8") as _table:
    KEPT = list(csv.DictReader(_table))
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
    """Inside the joint intervals, and as the table of a whole run has it."""
    found = agree.rows(family, record)
    assert WANTED.get(family, set()) <= {row.metric for row in found}
    assert not [row for row in found if row.verdict == "unexplained"]
    kept = [row for row in KEPT if (row["file"], row["record"]) == (family, record["scenario"])]
    mine = [{name: str(v) for name, v in vars(row).items()} for row in found]
    assert all(row in kept for row in mine)


def test_the_table_of_a_whole_run_is_what_the_page_says(agree):
    found = [agree.Row(**{**row, "seeds": int(row["seeds"])}) for row in KEPT]
    assert {row.file for row in found} == set(agree.FILES)
    *_, whole = agree.summary(found)
    total, agreed, differ, unexplained = map(int, whole.split()[1:])
    page = (VALIDATION / "ns2" / "README.md").read_text(encoding="utf-8")
    assert f"{agreed} of {total} comparisons agree" in page
    assert agreed + differ == total and unexplained == 0
