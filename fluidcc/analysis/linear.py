"""Linear delay systems of networks, and smaller approximations of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LINK = -1
"""Owner of components of links: queues, memories of queue laws, signals, paces."""


@dataclasses.dataclass(frozen=True)
class Linear:
    """y' = A y + B z, u = C y + D z, z_k(t) = u_pick[k](t - lag[k]).

    y (n,) are the states, u (m,) the outputs, z (k,) the delayed inputs; lags are in seconds.
    A, B, C, D and lag may have a first axis (P,): several systems, of which `system[i]` is one.
    `state_owner` (n,) and `output_owner` (m,) give the class of flows that a component belongs to,
    LINK for links; classes couple through links only. `signals` holds, per link, the indices in u
    of its signals. `conserved` roots at s = 0 belong to conserved quantities.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    pick: Array
    lag: Array
    state_owner: Array
    output_owner: Array
    signals: tuple[tuple[int, ...], ...] = ()
    conserved: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Number of states and of outputs."""
        return self.A.shape[-1], self.C.shape[-2]

    @property
    def structure(self) -> tuple:
        """All but the numbers: systems that are equal in it can be stacked."""
        owners = (self.pick, self.state_owner, self.output_owner)
        return (self.size, self.signals, self.conserved, *(tuple(o.tolist()) for o in owners))

    def __getitem__(self, index: Any) -> Linear:
        """One of several systems, or those with some indices."""
        return self._of(*(x[index] for x in (self.A, self.B, self.C, self.D, self.lag)))

    def _of(self, A: Array, B: Array, C: Array, D: Array, lag: Array) -> Linear:
        return dataclasses.replace(self, A=A, B=B, C=C, D=D, lag=lag)

    @classmethod
    def stack(cls, systems: Sequence[Linear]) -> Linear:
        """Several systems as one; raises ValueError if their structures differ."""
        first = systems[0]
        for i, other in enumerate(systems):
            if other.structure != first.structure:
                raise ValueError(f"system {i} has another structure than the first")
        parts = zip(*((s.A, s.B, s.C, s.D, s.lag) for s in systems), strict=True)
        return first._of(*(np.stack(part) for part in parts))

    @classmethod
    def retarded(cls, present: Any, delayed: Any, lags: Any) -> Linear:
        """The system y'(t) = present y(t) + sum over j of delayed[j] y(t - lags[j]).

        Shapes (n, n), (j, n, n) and (j,), for several systems with the same first axis.
        """
        present = np.atleast_2d(np.asarray(present, float))
        *many, n, _ = present.shape
        lags = np.asarray(lags, float)
        count = lags.shape[-1]
        blocks = np.moveaxis(np.asarray(delayed, float).reshape(*many, count, n, n), -3, -2)
        return cls(
            A=present,
            B=blocks.reshape(*many, n, n * count),
            C=np.broadcast_to(np.eye(n), (*many, n, n)),
            D=np.zeros((*many, n, n * count)),
            pick=np.tile(np.arange(n), count),
            lag=np.repeat(lags, n, axis=-1),
            state_owner=np.full(n, LINK),
            output_owner=np.full(n, LINK),
        )

    def matrix(self, s: complex) -> Array:
        """The characteristic matrix [[s I - A, -B E], [-C, I - D E]], E = e^(-s lag), in full."""
        n, m = self.size
        late = np.exp(-s * self.lag)[:, None] * np.eye(m)[self.pick]
        return np.block(
            [[s * np.eye(n) - self.A, -self.B @ late], [-self.C, np.eye(m) - self.D @ late]]
        )

    def matrix_slope(self, s: complex) -> Array:
        """Derivative of `matrix` by s."""
        n, m = self.size
        late = (self.lag * np.exp(-s * self.lag))[:, None] * np.eye(m)[self.pick]
        return np.block([[np.eye(n), self.B @ late], [np.zeros((m, n)), self.D @ late]])

    def used(self) -> Array:
        """Mask (m,) of the outputs that anything depends on."""
        late = np.concatenate([self.B, self.D], axis=-2)
        is_read = np.any(late != 0, axis=tuple(range(late.ndim - 1)))
        used = np.zeros(self.size[1], bool)
        used[self.pick[is_read]] = True
        return used

    def pruned(self) -> Linear:
        """The same system without the outputs that nothing depends on."""
        used = self.used()
        index = np.cumsum(used) - 1
        look = used[self.pick]
        return dataclasses.replace(
            self,
            B=self.B[..., look],
            C=self.C[..., used, :],
            D=self.D[..., used, :][..., look],
            pick=index[self.pick[look]],
            lag=self.lag[..., look],
            output_owner=self.output_owner[used],
            signals=tuple(tuple(int(index[j]) for j in s if used[j]) for s in self.signals),
        )


def cluster(system: Linear, count: int) -> Linear:
    """An approximation with at most `count` classes: neighbours in lag share one representative.

    The effect of a class on links is replaced by that of its representative; everything else of the
    class is left out. Classes with equations of different shape (other laws) are not merged.
    """
    classes = np.unique(system.output_owner[system.output_owner != LINK])
    if len(classes) <= count:
        return system
    shape: dict[int, tuple] = {}
    for c in classes:
        rows = system.output_owner == c
        own = np.any(system.D[rows] != 0, axis=0) | np.isin(system.pick, np.flatnonzero(rows))
        shape[c] = (int(np.sum(system.state_owner == c)), float(system.lag[own].max(initial=0.0)))
    order = sorted(classes, key=lambda c: shape[c])
    stand_in = {}
    for part in np.array_split(np.asarray(order), count):
        for c in part:
            same = [d for d in part if shape[d][0] == shape[c][0]]
            stand_in[c] = same[len(same) // 2]
    stand_in[LINK] = LINK
    return _merge(system, stand_in)


def _merge(system: Linear, stand_in: dict[int, int]) -> Linear:
    """Replace every class by its representative in the equations of links; drop the others."""
    n, m = system.size
    owner = np.concatenate([system.state_owner, system.output_owner])
    target = np.arange(n + m)
    for c, d in stand_in.items():
        if c != d:
            target[owner == c] = np.flatnonzero(owner == d)
    kept = target == np.arange(n + m)
    states, wires = np.flatnonzero(kept[:n]), np.flatnonzero(kept[n:])
    fold = np.zeros((n + m, n + m))
    fold[np.arange(n + m), target] = 1.0
    index = np.cumsum(kept) - 1
    present = np.vstack([system.A, system.C]) @ fold[:n, :n]
    return dataclasses.replace(
        system,
        A=present[:n][np.ix_(states, states)],
        B=system.B[states],
        C=present[n:][np.ix_(wires, states)],
        D=system.D[wires],
        pick=index[target[n + system.pick]] - len(states),
        state_owner=system.state_owner[states],
        output_owner=system.output_owner[wires],
        signals=tuple(tuple(int(index[n + j]) - len(states) for j in s) for s in system.signals),
    )
