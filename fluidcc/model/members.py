"""Networks over a grid that differ in numbers alone, prepared together as arrays."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluidcc.arrays import jax
from fluidcc.ops import is_tracer
from fluidcc.programs import map_tree
from fluidcc.scenario.network import Network
from fluidcc.scenario.paths import check_number, full_path, replace, replace_unchecked

_ROUNDING = 1e-12

Box = tuple[range, ...]
"""Indices along each axis of a grid."""


class Members(NamedTuple):
    """P networks that differ in numbers alone.

    Their `numbers` (P,) in the grid, the network of the first, the `values` (P,) by full path of
    what varies, and what was prepared of them, with a first axis (P,).
    """

    numbers: NDArray[np.int64]
    first: Network
    values: dict[str, NDArray[np.float64]]
    stacked: Any

    def network(self, k: int) -> Network:
        """The network of one of them."""
        return replace_unchecked(self.first, {p: float(v[k]) for p, v in self.values.items()})


class MemberGrid:
    """The networks at the points of a grid, the last axis fastest.

    `prepare` makes a tree of numbers of a network, whose numbers may be traced; or it raises an
    error.
    """

    def __init__(
        self, net: Network, axes: Mapping[str, Sequence[Any]], prepare: Callable[[Network], Any]
    ) -> None:
        self.net, self.axes, self.prepare = net, axes, prepare
        self.box: Box = tuple(range(len(values)) for values in axes.values())
        self._known: dict[tuple[int, ...], tuple[Network, Any] | str] = {}

    def parts(self, box: Box | None = None) -> Iterator[Members | tuple[int, str]]:
        """All points in boxes of `together`, and the number of each that fails with its error."""
        box = self.box if box is None else box
        found = self.together(box)
        if found is not None:
            yield found
            return
        d = max(range(len(box)), key=lambda d: (not self._numeric(d, box), len(box[d])))
        if len(own := box[d]) == 1:
            message = self._at(tuple(side[0] for side in box))
            assert isinstance(message, str)
            yield int(self._numbers(box)[0]), message
            return
        size = len(own) // 2 if self._numeric(d, box) else 1
        for first in range(0, len(own), size):
            yield from self.parts((*box[:d], own[first : first + size], *box[d + 1 :]))

    def together(self, box: Box | None = None) -> Members | None:
        """The networks of a box, by default of the whole grid, if they differ in numbers alone.

        Each number is checked in its place, and at the corners the whole network is: conditions
        between numbers are met between corners if they are met there.
        """
        box = self.box if box is None else box
        if not all(self._numeric(d, box) for d in range(len(box))):
            return None
        sides = [
            [values[k] for k in own] for values, own in zip(self.axes.values(), box, strict=True)
        ]
        corners = list(itertools.product(*map(_ends, sides)))
        trials = []
        for corner in corners:
            trial = self._at(tuple(own[k] for own, k in zip(box, corner, strict=True)))
            if isinstance(trial, str):
                return None
            trials.append(trial)
        first = trials[0][0]
        moving = {
            full_path(self.net, path): d
            for d, (path, own) in enumerate(zip(self.axes, box, strict=True)) if len(own) > 1
        }  # fmt: skip
        shape = tuple(map(len, box))
        try:
            for path, d in moving.items():
                for value in sides[d]:
                    check_number(first, path, value)
            grids = np.meshgrid(*(sides[d] for d in moving.values()), indexing="ij")
            values = {p: np.ravel(v).astype(float) for p, v in zip(moving, grids, strict=True)}
            stacked = self._stack(first, values, int(np.prod(shape)))
        except Exception:  # one by one, so that what is wrong at one point ends no others
            return None
        found = Members(self._numbers(box), first, values, stacked)
        for corner, trial in zip(corners, trials, strict=True):
            row = int(np.ravel_multi_index(corner, shape))
            prepared = map_tree(lambda v, row=row: v[row], stacked)
            if not _agree((found.network(row), prepared), trial):
                return None
        return found

    def _stack(self, first: Network, values: Mapping[str, Any], count: int) -> Any:
        """What is prepared of so many networks, from the first and the values of the others."""
        found: list[Any] = []
        structure: Any = None

        def prepare(moved: Mapping[str, Any]) -> list[Any]:
            nonlocal found, structure
            found, structure = jax.tree.flatten(self.prepare(replace_unchecked(first, moved)))
            return [v for v in found if is_tracer(v)]

        moved = iter(jax.vmap(prepare)(values) if values else prepare(values))
        numbers = [
            np.asarray(next(moved)) if is_tracer(v)
            else np.broadcast_to(np.asarray(v, float), (count, *np.shape(v)))
            for v in found
        ]  # fmt: skip
        return jax.tree.unflatten(structure, numbers)

    def _numeric(self, d: int, box: Box) -> bool:
        """Whether the values of a box along an axis are numbers, or there is but one."""
        values = list(self.axes.values())[d]
        return len(box[d]) == 1 or all(
            isinstance(values[k], int | float) and not isinstance(values[k], bool) for k in box[d]
        )

    def _numbers(self, box: Box) -> NDArray[np.int64]:
        indices = np.meshgrid(*box, indexing="ij")
        return np.ravel_multi_index([k.ravel() for k in indices], tuple(map(len, self.box)))

    def _at(self, place: tuple[int, ...]) -> tuple[Network, Any] | str:
        """The network at a point and what is prepared of it, or why there is none."""
        if place not in self._known:
            pairs = zip(self.axes.items(), place, strict=True)
            try:
                net = replace(self.net, {path: values[k] for (path, values), k in pairs})
                self._known[place] = net, self.prepare(net)
            except MemoryError:
                raise
            except Exception as error:  # an error at one point must not end the others
                self._known[place] = str(error) or type(error).__name__
        return self._known[place]


def _ends(side: Sequence[Any]) -> list[int]:
    """Places of the first, last, least and largest of some numbers, and of zeros."""
    if len(side) == 1:
        return [0]
    zeros = np.flatnonzero(np.equal(side, 0.0))[:1]
    ends = (0, len(side) - 1, int(np.argmin(side)), int(np.argmax(side)), *zeros.tolist())
    return list(dict.fromkeys(ends))


def _agree(tree: Any, other: Any) -> bool:
    """Whether two trees have one structure and, to rounding, the same numbers."""
    (own, structure), (others, expected) = jax.tree.flatten(tree), jax.tree.flatten(other)
    if structure != expected or list(map(np.shape, own)) != list(map(np.shape, others)):
        return False
    a, b = (np.concatenate([np.ravel(v) for v in each]) for each in (own, others))
    return np.allclose(a, b, rtol=_ROUNDING, atol=0.0, equal_nan=True)
