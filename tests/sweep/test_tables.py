"""Blocks cover a grid; tables join alike however they are cut, and come back from bytes."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_cases import NET, OVER, draw, same

import fluidcc as fc
from fluidcc.sweep.grid import Blocks, Grid
from fluidcc.sweep.job import of_point
from fluidcc.sweep.plan import Clock, Progress
from fluidcc.sweep.point import evaluated
from fluidcc.sweep.table import Column, Table, dataset, from_bytes, join, to_bytes

GRID = Grid.of(NET, OVER)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(1, 300))
def test_blocks_hold_every_point_once_and_are_no_larger_than_asked(shape, most):
    grid = Grid({f"p{k}": tuple(range(n)) for k, n in enumerate(shape)}, {})
    blocks = Blocks.of(grid, most)
    numbers = [blocks.numbers(k) for k in range(len(blocks))]
    assert max(map(len, numbers)) <= most
    assert sorted(np.concatenate(numbers)) == list(range(len(grid)))
    last = len(blocks) - 1
    axes = blocks.axes(last)
    first = {path: values[0] for path, values in axes.items()}
    assert grid.point(int(numbers[last][0])) == first


@pytest.fixture(scope="module")
def points():
    return [of_point(evaluated(NET, GRID.point(k), draw), k) for k in range(len(GRID))]


@settings(max_examples=10)
@given(st.lists(st.integers(1, 31), max_size=6), st.booleans())
def test_results_do_not_depend_on_how_points_are_put_together(points, cuts, through_bytes):
    ends = [0, *sorted(set(cuts)), len(points)]
    pieces = [join(points[a:b]) for a, b in itertools.pairwise(ends)]
    if through_bytes:
        pieces = [from_bytes(to_bytes(piece)) for piece in pieces]
    same(dataset(GRID, join(pieces[::-1])), dataset(GRID, join(points)))


def test_what_points_have_in_common_is_said_once(points):
    data = dataset(GRID, join(points))
    assert data["kind"].dims == ("draw",) and "kind" in data.coords
    assert data.attrs == {"law": "uniform"}
    assert data["d"].dims == tuple(OVER)  # an attribute that differs between points
    assert data["value"].shape == (4, 8, 8) and data["value"].attrs == {"units": "s"}
    value, delay = data["value"].values, data["delay"].values
    assert np.array_equal(np.isfinite(value).sum(axis=2)[:, 0], OVER["flows.tcp.n"])
    alone = draw(fc.replace(NET, {"flows.tcp.n": 8, "links.near.delay": 0.004}))
    assert np.array_equal(value[3, 3], alone.values) and delay[3, 3] == 0.004
    assert np.argwhere(data["failed"].values).tolist() == [[1, 6]]
    assert data["message"].values[1, 6] == "nothing to draw" and np.isnan(delay[1, 6])


def test_tables_of_any_kind_come_back_from_bytes():
    values = {
        "text": np.array(["", "eta \N{GREEK SMALL LETTER ETA}\n"], object),
        "number": np.array([[np.nan, np.inf], [-0.0, 1 / 3]]),
        "count": np.array([2**53 + 1, -1]), "none": np.zeros((2, 0)),
    }  # fmt: skip
    dims = {"number": ("root",), "none": ("nothing",)}
    columns = {k: Column(dims.get(k, ()), v, {"units": "s"}, "variable") for k, v in values.items()}
    labels = {"root": np.array(["a", "b"], object), "nothing": np.arange(0)}
    back = from_bytes(to_bytes(Table(np.array([5, 7]), labels, columns)))
    assert back.numbers.tolist() == [5, 7] and back.labels["root"].tolist() == ["a", "b"]
    for name, column in back.columns.items():
        assert column.attrs == {"units": "s"} and column.dims == dims.get(name, ())
        if name == "text":
            assert column.values.tolist() == values[name].tolist()
        else:
            assert column.values.tobytes() == values[name].tobytes()


def test_progress_tells_points_and_the_time_left(monkeypatch):
    now = [5.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = Clock(100, 50, 2)
    now[0] = 15.0
    share = clock.passed(10, 1)
    assert share == 0.6 and (share.done, share.failed, share.total) == (60, 3, 100)
    assert share.left == pytest.approx(40.0)  # fifty were there before
    assert repr(share) == "60 of 100 points, 3 failed, 40 s left"
    assert repr(Progress(1, 0, 2)) == "1 of 2 points, 0 failed"
