"""Blocks cover a grid; tables join alike however they are cut, and come back from bytes."""

import itertools
import time

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_cases import NET, OVER, draw, same

import fluidcc as fc
from fluidcc.sweep.grid import Blocks, Grid
from fluidcc.sweep.job import Job, of_point
from fluidcc.sweep.plan import Clock, Plan, Progress
from fluidcc.sweep.result import evaluated
from fluidcc.sweep.table import dataset, from_bytes, join, table_of, to_bytes

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


def test_labels_are_united_and_counts_stay_whole_numbers():
    def table(number, labels, values):
        data = xr.Dataset({"x": ("at", values), "n": 3 + number}, {"at": labels})
        return table_of(data, np.array([number]))

    joined = join([table(0, [0.0, 2.0], [1, 2]), table(1, [1.0, 2.0], [3, 4])])
    assert joined["at"].values.tolist() == [0.0, 1.0, 2.0]
    expected = [[1, np.nan, 2], [np.nan, 3, 4]]
    assert np.array_equal(joined["x"].values, expected, equal_nan=True)
    assert joined["n"].values.dtype.kind == "i"


def test_tables_of_any_kind_come_back_from_bytes():
    values = {
        "text": np.array(["", "eta \N{GREEK SMALL LETTER ETA}\n"], object),
        "number": np.array([[np.nan, np.inf], [-0.0, 1 / 3]]),
        "count": np.array([2**53 + 1, -1]), "none": np.zeros((2, 0)),
    }  # fmt: skip
    dims = {"number": ("root",), "none": ("nothing",)}
    given = {k: (("point", *dims.get(k, ())), v, {"units": "s"}) for k, v in values.items()}
    labels = {"point": [5, 7], "root": np.array(["a", "b"], object), "nothing": np.arange(0)}
    back = from_bytes(to_bytes(xr.Dataset(given, labels)))
    assert back["point"].values.tolist() == [5, 7] and back["root"].values.tolist() == ["a", "b"]
    for name, value in values.items():
        found = back[name]
        assert found.attrs == {"units": "s"} and found.dims == ("point", *dims.get(name, ()))
        if name == "text":
            assert found.values.tolist() == value.tolist()
        else:
            assert found.values.tobytes() == value.tobytes()


def test_results_of_different_shapes_are_told():
    one = table_of(xr.Dataset({"x": ("a", [1.0])}), np.array([0]))
    other = table_of(xr.Dataset({"x": 1.0}), np.array([1]))
    with pytest.raises(ValueError, match="results have x in different shapes"):
        join([one, other])


class _Done:
    """Stands for a chunk of known weight."""

    def __init__(self, task, size):
        self.first, self.last = task
        self.data = b"." * (size * (self.last - self.first))


def test_chunks_grow_until_they_are_heavy_and_shrink_at_the_end(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    plan = Plan(None, [(0, 100_000)], 2, lambda _: None)  # pyright: ignore[reportArgumentType]
    sizes = []
    while (task := plan.next()) is not None:
        sizes.append(task[1] - task[0])
        now[0] += 0.01 * sizes[-1]
        plan.done(_Done(task, 1000))  # pyright: ignore[reportArgumentType]
    assert sum(sizes) == 100_000
    assert sizes[:4] == [1, 8, 64, 512] and max(sizes) in (999, 1000)  # ten seconds
    assert sizes[-2] == 100  # a second is worth a file


def test_blocks_of_a_process_that_dies_are_halved_until_one_is_at_fault():
    job = Job.of(NET, GRID, draw)
    plan = Plan(job, [(8, 12)], 1, lambda _: None)
    plan._size = 4
    assert plan.next() == (8, 12)
    plan.lost(8, 12, "exit code -9")
    plan._size = 4
    assert plan.next() == (8, 10) and plan.next() == (10, 12)
    plan.lost(8, 10, "exit code -9", guilty=False)  # it had not begun
    assert plan.next() == (8, 10)
    plan.lost(8, 10, "exit code -9")
    assert plan.next() == (8, 9)
    plan.lost(8, 9, "exit code -9")
    assert plan.next() == (8, 9)
    with pytest.raises(fc.SweepStopped) as told:
        plan.lost(8, 9, "exit code -9")
    assert "died 2 times at flows.tcp.n = 3, links.near.delay = 0.001 (exit" in str(told.value)
    assert "use fewer workers, or leave this out" in str(told.value)


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
