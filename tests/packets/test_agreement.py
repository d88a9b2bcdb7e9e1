"""Agreement with runs of ns-2.35 inside joint 95% intervals: the fast part of the comparison."""

import csv
import dataclasses
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
    "c_front": ("C_vqfront_TS200", "C_vqtail_TS10"),
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


@pytest.fixture
def whole(agree):
    return [agree.Row(**{**row, "seeds": int(row["seeds"])}) for row in KEPT]


def test_the_table_of_a_whole_run_is_what_the_page_says(agree, whole):
    assert {row.file for row in whole} == set(agree.FILES)
    page = " ".join((VALIDATION / "ns2" / "README.md").read_text(encoding="utf-8").split())
    for name, rows in agree.shares(whole).items():
        assert agree.share(name, rows) in page
    unexplained = [row for row in whole if row.verdict == "unexplained"]
    assert f"unexplained: {len(unexplained)}." in page
    assert f"{sum(agree.skipped(whole).values())} values of the records" in page


def test_every_value_passed_over_has_a_reason(agree, whole):
    left = agree.skipped(whole)
    assert left
    assert "unexplained" not in {why for why, _, _ in left}


def test_a_settled_comparison_agrees_or_repeats_one_that_does_not(whole):
    settled = [row for row in whole if row.settled]
    assert len(settled) > 2000
    assert {row.verdict for row in settled if row.settled != "repeated"} == {"agrees"}


def test_a_reason_excuses_the_number_that_was_tested_and_no_other(agree):
    """ns-2 with T + 1e-6 marks one packet later, as here; a queue of one more has no reason."""
    (record,) = [r for r in agree.records("c_front") if r["scenario"] == "C_vqtail_TS10"][:1]
    missed = [c for c in agree.judge("c_front", record) if not c.agrees]
    assert {c.metric for c in missed} == {"maxq_wait_ss", "t_first_response"}
    assert agree.reasons("c_front", record, missed).keys() == {c.metric for c in missed}
    other = [dataclasses.replace(c, ours=c.ours + 1) for c in missed]
    assert agree.reasons("c_front", record, other) == {}


def test_a_counter_of_answers_excuses_no_more_than_one_a_flow(agree):
    (record,) = agree.records("d_unmarked")
    name, flows = "ecn_responses", record["params"]["n"]
    counted = agree.Comparison(record["scenario"], name, flows, 0.0, 0.0, 0.0, 3)
    assert name in agree.reasons("d_unmarked", record, [counted])
    for change in ({"theirs": flows + 1}, {"ours": 1.0}):
        other = dataclasses.replace(counted, **change)
        assert agree.reasons("d_unmarked", record, [other]) == {}


# -- The fluid equilibrium beside packet runs: why the model errs by how much
@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(str(VALIDATION))
    beside = importlib.import_module("fluid_beside_packets")

    def measured(family, law, scenario=None):
        """Laws of the flows, their flight in the fluid model, and the rows of a case."""
        cases = beside.FAMILIES[family]()
        case = next(c for c in cases if c.law == law and scenario in (None, c.scenario))
        queue, signal, utilization = beside.measure(case)
        assert abs(queue.error) < 0.03 + 2 * queue.ci95 / queue.packets
        assert utilization.packets == pytest.approx(utilization.fluid, abs=1e-3)
        flight = beside.PER_FLOW * beside.TRIP + queue.fluid / beside.FLOWS
        return case.net.flows[0].window, flight, signal

    return measured


@pytest.mark.parametrize(
    ("family", "law"), [("queues", "adaptive_red"), ("queues", "rem"), ("windows", "ecn_mod")]
)
def test_marks_under_each_queue_law(measure, family, law):
    window, flight, signal = measure(family, law)
    seen = (flight + 0.5) * (1 + window.c2 / 2)
    expected = 1 / (1 + window.c2 / window.c1 * seen)
    assert signal.fluid == pytest.approx(1 / (1 + window.c2 / window.c1 * flight), rel=1e-3)
    assert signal.packets == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("law", "scenario"),
    [("becn", "original"), ("dctcp", None), ("newreno", "receiver_window, cwnd of 17")],
)
def test_signal_that_a_window_law_needs(measure, law, scenario):
    """Within what one packet more or less in the window does to a signal that goes as W^-2."""
    _, flight, signal = measure("windows", law, scenario)
    assert abs(signal.error) < 2 / flight + signal.ci95 / signal.packets
