"""Many linear delay systems of one structure, and one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from fluidcc.analysis.linear import Array, Linear


@dataclasses.dataclass(frozen=True)
class Systems:
    """`Linear` systems that differ in numbers only, first axis (P,) of the arrays.

    A (P, n, n), B (P, n, k), C (P, m, n), D (P, m, k) and lag (P, k) [s]; everything else is that
    of `structure`.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    lag: Array
    structure: Linear

    def __len__(self) -> int:
        return len(self.A)

    def __getitem__(self, index: int) -> Linear:
        return dataclasses.replace(
            self.structure, A=self.A[index], B=self.B[index], C=self.C[index], D=self.D[index],
            lag=self.lag[index],
        )  # fmt: skip

    def __repr__(self) -> str:
        n, m = self.structure.size
        return f"Systems: {len(self)} of {n} states, {m} on the wire, {self.lag.shape[1]} look-ups"

    @classmethod
    def stack(cls, systems: Sequence[Linear]) -> Systems:
        """The systems as one batch; raises ValueError where their structures differ."""
        first = systems[0]
        for i, other in enumerate(systems):
            if _structure(other) != _structure(first):
                raise ValueError(f"system {i} has another structure than the first")
        A, B, C, D, lag = (
            np.stack(parts)
            for parts in zip(*((s.A, s.B, s.C, s.D, s.lag) for s in systems), strict=True)
        )
        return cls(A, B, C, D, lag, first)

    @classmethod
    def retarded(cls, present: Array, delayed: Array, lags: Array) -> Systems:
        """The systems y'(t) = present y(t) + sum over j of delayed[j] y(t - lags[j]).

        Shapes (P, n, n), (P, j, n, n) and (P, j).
        """
        first = Linear.retarded(present[0], list(delayed[0]), list(lags[0]))
        count, n = len(present), len(first.A)
        B = np.moveaxis(np.asarray(delayed, float), 1, 2).reshape(count, n, -1)
        C, D = (np.broadcast_to(x, (count, *x.shape)) for x in (first.C, first.D))
        return cls(
            np.asarray(present, float), B, C, D, np.repeat(np.asarray(lags, float), n, 1), first
        )

    def take(self, index: Array) -> Systems:
        """The systems with these indices."""
        return Systems(
            self.A[index], self.B[index], self.C[index], self.D[index], self.lag[index],
            self.structure,
        )  # fmt: skip

    def pattern(self) -> Linear:
        """Ones in the places of A, B, C and D that matter in any of the systems.

        What is sent without depending on anything is zero, and so is what looks it up.
        """
        A, B, C, D = (np.any(x, axis=0).astype(float) for x in (self.A, self.B, self.C, self.D))
        pick = self.structure.pick
        for _ in range(len(C)):
            silent = ~(np.any(C, axis=1) | np.any(D, axis=1))
            B[:, silent[pick]] = D[:, silent[pick]] = 0.0
        return dataclasses.replace(self.structure, A=A, B=B, C=C, D=D)

    def pruned(self) -> Systems:
        """The same systems without the wire components that do not matter in any of them."""
        pattern = self.pattern()
        used = pattern.used()
        look = used[self.structure.pick]
        return Systems(
            self.A, self.B[:, :, look], self.C[:, used], self.D[:, used][:, :, look],
            self.lag[:, look], pattern.pruned(),
        )  # fmt: skip


def _structure(system: Linear) -> tuple:
    owners = (system.pick, system.state_owner, system.wire_owner)
    return (system.size, system.signals, system.conserved, *(tuple(o.tolist()) for o in owners))
