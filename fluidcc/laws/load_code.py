"""The load factor as routers code it, and how receivers decode it: exactly, or by ADPM."""

from typing import ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractEstimator, Law
from fluidcc.laws.parameters import check_order, param
from fluidcc.ops import Num


class AbstractLoadCode(Law):
    """Range of coded load factors: shared by the laws that code, decode or obey them.

    Source: Qazi, Znati and Andrew, section 3.2. One below `lowest` counts as `lowest`, one above
    `highest` as `highest`, coded as a (11) mark.
    """

    lowest: Num = param(0.15, r"\eta_0", unit="1", doc="least load factor", within="(0, 1)")
    mild: Num = param(
        0.75, r"\eta", unit="1", doc="load factor where the increase turns additive",
        within="(0, 1)",
    )  # fmt: skip
    highest: Num = param(1.2, "u", unit="1", doc="largest load factor", within="(1, inf)")

    def check(self) -> None:
        """Raise ValueError unless lowest < mild."""
        super().check()
        check_order(self, "lowest", "mild")


class Exact(AbstractEstimator):
    """The load factor itself, as old as the packet that brings it."""

    name: ClassVar[str] = "exact"
    source: ClassVar[str] = "qazi2010, eq. 1"

    def decode(self, estimate: Num, hashed: Num, load: Num) -> Num:
        """Take the load at once."""
        return load - estimate

    def mean(self, estimate: Num, load: Num) -> Num:
        """Take the load at once."""
        return load - estimate


class ADPM(AbstractLoadCode, AbstractEstimator):
    """The receiver's estimate of a load factor that is compared with a hash of each packet.

    Source: Qazi, Znati and Andrew, section 3.2. A packet shows on which side of its hash the load
    factor lies; the estimate moves to the hash if that narrows it. The hash falls below `mild`,
    between `mild` and 1, or above 1 with given shares, and is uniform within each part. A load
    factor of `highest` or more is coded by a (11) mark at once, one below `lowest` as `lowest`.
    """

    name: ClassVar[str] = "adpm"
    source: ClassVar[str] = "qazi2010, section 3.2; andrew2006"
    remembers: ClassVar[bool] = True
    low_share: Num = param(
        0.25, r"\pi_1", unit="1", doc="share of packets with a hash below mild", within="(0, 1)"
    )
    mild_share: Num = param(
        0.25, r"\pi_2", unit="1", doc="share of packets with a hash from mild to 1", within="(0, 1)"
    )

    def check(self) -> None:
        """Raise ValueError unless lowest < mild and the shares leave some for overload."""
        super().check()
        shares = (self.low_share, self.mild_share)
        if all(isinstance(v, float | int) for v in shares) and sum(shares) >= 1:
            raise ValueError(
                "adpm needs low_share + mild_share below 1, got "
                f"{self.low_share!r} and {self.mild_share!r}"
            )

    def parts(self) -> tuple[tuple[Num, Num, Num], ...]:
        """Lower end, upper end and share of packets of each part of the hash."""
        high_share = 1 - self.low_share - self.mild_share
        return (
            (self.lowest, self.mild, self.low_share),
            (self.mild, 1.0, self.mild_share),
            (1.0, self.highest, high_share),
        )

    def hash_value(self, hashed: Num) -> Num:
        """The load factor that a hash in [0, 1) stands for."""
        value, begin = self.lowest, 0.0
        for low, high, share in self.parts():
            inside = low + (hashed - begin) * (high - low) / share
            value = ops.where(hashed < begin, value, inside)
            begin = begin + share
        return value

    def distribution(self, value: Num) -> Num:
        """Share of packets whose hash is below `value`."""
        below = 0.0
        for low, high, share in self.parts():
            below = below + share * ops.clip((value - low) / (high - low), 0.0, 1.0)
        return below

    def coded(self, load: Num) -> Num:
        """The load factor clipped to the coded range."""
        return ops.clip(load, self.lowest, self.highest)

    def known_load(self, estimate: Num, load: Num) -> Num:
        """The estimate; a (11) mark gives the largest load at once."""
        return ops.where(load < self.highest, estimate, self.highest)

    def decode(self, estimate: Num, hashed: Num, load: Num) -> Num:
        """Move to the hash if it lies between the estimate and the load factor."""
        coded, value = self.coded(load), self.hash_value(hashed)
        up = ops.where(value < coded, ops.maximum(value - estimate, 0.0), 0.0)
        down = ops.where(value < coded, 0.0, ops.minimum(value - estimate, 0.0))
        return ops.where(load < self.highest, up + down, self.highest - estimate)

    def mean(self, estimate: Num, load: Num) -> Num:
        """Mean change per packet: the integral of hash minus estimate from one to the other.

        A fluid model that moves one number by this mean forgets half as fast as the mean of many
        receivers: its error tends to 2/(n F') after n packets, theirs to 1/(n F').
        """
        coded, change = self.coded(load), 0.0
        for low, high, share in self.parts():
            start, end = ops.clip(estimate, low, high), ops.clip(coded, low, high)
            width = ops.maximum(start, end) - ops.minimum(start, end)
            change = change + share / (high - low) * width * ((start + end) / 2 - estimate)
        return ops.where(load < self.highest, change, self.highest - estimate)
