"""The rules by which claims are judged, on samples whose verdict is known."""

import numpy as np
import pytest

from fluidcc.bundled.validation.lab.judging import alike, all_of, near, ordered, searched, shown

RNG = np.random.default_rng(7)


def around(mean, spread=1.0, shape=(20,)):
    """Samples whose mean and standard deviation are exactly these along the last axis."""
    raw = RNG.normal(size=shape)
    raw -= raw.mean(axis=-1, keepdims=True)
    raw /= raw.std(axis=-1, ddof=1, keepdims=True)
    return np.asarray(mean)[..., None] * np.ones(shape) + spread * raw


@pytest.mark.parametrize(
    ("theirs", "mean", "neutral", "verdict"),
    [
        (43.0, 40.0, 0.0, "reproduced"),  # within 10 %, with its interval
        (43.0, 39.3, 0.0, "ordering_only"),  # within, but the end of its interval is not
        (43.0, 30.0, 0.0, "ordering_only"),
        (43.0, -30.0, 0.0, "contradicted"),
        (43.0, 0.1, 0.0, "not_reproduced"),  # no effect to be seen
        (43.0, 30.0, None, "not_reproduced"),  # no direction
        ([30.0, 50.0], 29.7, 0.0, "reproduced"),  # its interval reaches into the range
        ([30.0, 50.0], 29.0, 0.0, "ordering_only"),  # a range is its own tolerance
        ([30.0, 50.0], 60.0, 0.0, "ordering_only"),
        (-8.0, -3.0, 0.0, "ordering_only"),
    ],
)
def test_a_printed_number(theirs, mean, neutral, verdict):
    found = near(theirs, around(mean), of="effect", neutral=neutral, unit="%")
    assert found.verdict == verdict
    assert found.value == pytest.approx(mean)
    # Student's t for 20 samples of standard deviation 1
    assert found.half == pytest.approx(2.0930240544 / np.sqrt(20))


def test_an_interval_that_has_the_number_reproduces_it_if_it_is_tight():
    assert near(1.2, around(1.0, 0.5)).verdict == "reproduced"
    assert near(1.3, around(1.0, 0.5)).verdict == "not_reproduced"
    assert near(1.2, around(1.0, 4.0)).verdict == "not_reproduced"
    wide = around(100.0, 40.0)  # +- 19: more than the tolerance of a queue
    assert near(115.0, wide, of="queue").verdict == "not_reproduced"
    assert near(102.0, around(100.0, 8.0), of="queue").verdict == "reproduced"


def test_one_run_is_never_significant():
    assert near(43.0, [10.0], neutral=0.0).verdict == "not_reproduced"
    assert ordered(np.ones((9, 1)), 2 * np.ones((9, 1))).verdict == "not_reproduced"
    model = np.ones((3, 1))
    assert ordered(model, 2 * model, engine="fluid").verdict == "reproduced"


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([2.0, 3.0, 4.0], "reproduced"),
        ([2.0, 3.0, 0.1], "reproduced"),  # a point that is not significant
        ([2.0, 3.0, -2.0], "not_reproduced"),
        ([-2.0, -3.0, 0.1], "contradicted"),
        ([0.1, 0.1, 2.0], "not_reproduced"),
    ],
)
def test_an_order_over_points(gaps, verdict):
    less = around(np.full(3, 10.0), 0.0, (3, 20))
    found = ordered(less, less + around(np.array(gaps), 1.0, (3, 20)), x=[1, 2, 3])
    assert found.verdict == verdict
    assert found.value == pytest.approx(np.mean(gaps))


def test_quantities_that_are_alike():
    one = around(np.array([100.0, 100.0, 100.0]), 0.1, (3, 5))
    for shares, verdict in (
        ([1.01, 1.02, 1.09], "reproduced"),
        ([1.01, 1.02, 1.2], "not_reproduced"),
        ([1.2, 1.3, 0.8], "contradicted"),
    ):
        assert alike(one * np.array(shares)[:, None], one, x=[1, 2, 3]).verdict == verdict


def test_the_worst_part_decides():
    good = shown(True, "fine", engine="analytic")
    bad = shown(False, "wrong", engine="packets", otherwise="not_reproduced")
    both = all_of(good, bad)
    assert (both.verdict, both.engine) == ("not_reproduced", "analytic+packets")
    assert both.why == "fine; wrong"


def test_a_decrease_has_a_size():
    before = around(np.array([0.997]), 1e-4, (1, 20))
    slight, clear = before - 0.007, before - 0.02
    assert ordered(slight, before).verdict == "reproduced"
    found = ordered(slight, before, size=0.01)
    assert found.verdict == "not_reproduced" and "less than 1 % apart" in found.why
    assert ordered(clear, before, size=0.01).verdict == "reproduced"
    assert ordered(before, slight).verdict == "contradicted"
    assert ordered(before, slight, size=0.01).verdict == "not_reproduced"
    assert ordered(before, clear, size=0.01).verdict == "contradicted"


@pytest.mark.parametrize(
    ("held", "verdict"),
    [
        (["holds", "holds"], "reproduced"),
        (["holds", "violated"], "not_reproduced"),
        (["violated", "violated"], "contradicted"),
    ],
)
def test_a_search_decides(held, verdict):
    entries = [
        {
            "statement": "at most 3", "verdict": said, "largest_excess": 1.0,
            "definitions": {"marks": "tail"}, "worst": {"value": 4.0, "bound": 3.0},
        }
        for said in held
    ]  # fmt: skip
    found = searched(entries, "packets", "packets")
    assert found.verdict == verdict and "marks: tail" in found.why
