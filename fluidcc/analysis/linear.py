"""Linear delay systems as they come out of a network, and smaller ones made from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LINK = -1
"""Owner of what belongs to links: queues, memories of queue laws, signals, paces."""


@dataclasses.dataclass(frozen=True)
class Linear:
    """y' = A y + B z, u = C y + D z, z_k(t) = u_pick[k](t - lag[k]).

    y (n,) is what has memory, u (m,) what travels, z (k,) what is looked up; lags are in seconds.
    `state_owner` (n,) and `wire_owner` (m,) give the class of flows that a component belongs to,
    LINK for links; classes touch each other through links only. `signals` holds, per link, the
    indices in u of what it says. `conserved` roots at s = 0 belong to conserved quantities.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    pick: Array
    lag: Array
    state_owner: Array
    wire_owner: Array
    signals: tuple[tuple[int, ...], ...] = ()
    conserved: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Number of states and of wire components."""
        return len(self.A), len(self.C)

    @classmethod
    def retarded(cls, present: Array, delayed: Sequence[Array], lags: Sequence[float]) -> Linear:
        """The system y'(t) = present y(t) + sum over j of delayed[j] y(t - lags[j])."""
        present = np.atleast_2d(np.asarray(present, float))
        n, count = len(present), len(lags)
        blocks = [np.atleast_2d(np.asarray(block, float)) for block in delayed]
        return cls(
            A=present,
            B=np.hstack(blocks) if blocks else np.zeros((n, 0)),
            C=np.eye(n),
            D=np.zeros((n, n * count)),
            pick=np.tile(np.arange(n), count),
            lag=np.repeat(np.asarray(lags, float), n),
            state_owner=np.full(n, LINK),
            wire_owner=np.full(n, LINK),
        )

    def matrix(self, s: complex) -> Array:
        """The characteristic matrix [[s I - A, -B E], [-C, I - D E]], E = e^(-s lag), in full."""
        return self._with(s * np.eye(len(self.A)), np.eye(len(self.C)), np.exp(-s * self.lag))

    def matrix_slope(self, s: complex) -> Array:
        """Derivative of `matrix` by s."""
        n, m = self.size
        late = -self.lag * np.exp(-s * self.lag)
        return self._with(np.eye(n), np.zeros((m, m)), late, fixed=0.0)

    def _with(self, states: Array, wires: Array, late: Array, fixed: float = 1.0) -> Array:
        look = np.zeros((len(self.pick), len(self.C)), np.result_type(late))
        look[np.arange(len(self.pick)), self.pick] = late
        above = [states - fixed * self.A, -self.B @ look]
        return np.block([above, [-fixed * self.C, wires - self.D @ look]])

    def used(self) -> Array:
        """Mask (m,) of the wire components that anything depends on."""
        felt = np.any(self.B != 0, axis=0) | np.any(self.D != 0, axis=0)
        used = np.zeros(len(self.C), bool)
        used[self.pick[felt]] = True
        return used

    def pruned(self) -> Linear:
        """The same system without the wire components that nothing depends on."""
        used = self.used()
        index = np.cumsum(used) - 1
        look = used[self.pick]
        return dataclasses.replace(
            self,
            B=self.B[:, look],
            C=self.C[used],
            D=self.D[np.ix_(used, look)],
            pick=index[self.pick[look]],
            lag=self.lag[look],
            wire_owner=self.wire_owner[used],
            signals=tuple(tuple(int(index[j]) for j in s if used[j]) for s in self.signals),
        )


def cluster(system: Linear, count: int) -> Linear:
    """An approximation with at most `count` classes: neighbours in lag share one representative.

    What links feel of a class is felt of its representative; everything else of the class is left
    out. Classes whose equations have another shape (groups with other laws) are kept apart.
    """
    classes = np.unique(system.wire_owner[system.wire_owner != LINK])
    if len(classes) <= count:
        return system
    shape: dict[int, tuple] = {}
    for c in classes:
        rows = system.wire_owner == c
        own = np.any(system.D[rows] != 0, axis=0) | np.isin(system.pick, np.flatnonzero(rows))
        shape[c] = (int(np.sum(system.state_owner == c)), float(system.lag[own].max(initial=0.0)))
    order = sorted(classes, key=lambda c: shape[c])
    stand_in = {}
    for part in np.array_split(np.asarray(order), count):
        for c in part:
            same = [d for d in part if shape[d][0] == shape[c][0]]
            stand_in[c] = same[len(same) // 2]
    stand_in[LINK] = LINK
    return _merged(system, stand_in)


def _merged(system: Linear, stand_in: dict[int, int]) -> Linear:
    """Replace every class by its stand-in in what links feel; drop the equations of the others."""
    n, m = system.size
    owner = np.concatenate([system.state_owner, system.wire_owner])
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
        wire_owner=system.wire_owner[wires],
        signals=tuple(tuple(int(index[n + j]) - len(states) for j in s) for s in system.signals),
    )
