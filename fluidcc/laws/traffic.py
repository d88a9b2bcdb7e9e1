"""Traffic of flows: always something to send, or files with pauses in between.

Distributions of sizes and times: Crovella and Bestavros (1997) for heavy tails; the second Pareto
form is that of ns-2's Web traffic.
"""

from typing import Any, ClassVar

from fluidcc import ops
from fluidcc.laws.law import AbstractSource
from fluidcc.laws.parameters import EVENTS, choice, param
from fluidcc.ops import Num

_FIRST: dict[str, Any] = {
    "unit": "packet",
    "doc": "window of a new connection",
    "within": "(0, inf)",
    "engines": ("fluid",),
}
_SIZED = ("population", *EVENTS)
_SHAPE: dict[str, Any] = {"unit": "1", "within": "(1, inf)", "engines": EVENTS}
_SIZE: dict[str, Any] = {"unit": "packet", "within": "(0, inf)"}
_TIME: dict[str, Any] = {"unit": "s", "within": "(0, inf)"}
_CUT: dict[str, Any] = {
    "unit": "1",
    "doc": "ratio of the largest size to the smallest; of cut_pareto",
    "within": "(1, 1e12]",
    "engines": _SIZED,
}


NAMES = ("exponential", "constant", "pareto", "pareto2", "cut_pareto")
"""Known distributions; `pareto` and `pareto2` have a shape, `cut_pareto` has a cut."""


def quantile(name: str, u: Num, shape: Num, cut: Num) -> Num:
    """The number of mean 1 that a share `u` of all draws lies below.

    `pareto` starts at its smallest value, `pareto2` at 0 (Lomax), both fall as x^-shape;
    `cut_pareto` has shape 1, and is capped at `cut` times the smallest value.
    """
    if name == "exponential":
        return -ops.log(1 - u)
    if name == "pareto":
        return (shape - 1) / shape * (1 - u) ** (-1 / shape)
    if name == "pareto2":
        return (shape - 1) * ops.expm1(-ops.log(1 - u) / shape)
    if name == "cut_pareto":
        return ops.minimum(1 / (1 - u), cut) / (1 + ops.log(cut))
    return 1.0 + 0.0 * u


class Bulk(AbstractSource):
    """Always something to send."""

    name: ClassVar[str] = "bulk"
    source: ClassVar[str] = "akujobi2002, section V"

    def ending(self, rate: Num) -> Num:
        """Never."""
        return 0.0

    def beginning(self) -> Num:
        """Never."""
        return 0.0

    def first_window(self) -> Num:
        """Not used."""
        return 1.0


class File(AbstractSource):
    """One file, then silence."""

    name: ClassVar[str] = "file"
    source: ClassVar[str] = "akujobi2002, section V"
    starts: ClassVar[bool] = True
    file: Num = param(100.0, "S", unit="packet", doc="size of the file", within="(0, inf)")
    first: Num = param(2.0, "W_1", **_FIRST)

    def ending(self, rate: Num) -> Num:
        """The file ends after its packets."""
        return rate / self.file

    def beginning(self) -> Num:
        """Nothing follows."""
        return 0.0

    def first_window(self) -> Num:
        """Window of the connection."""
        return self.first

    def pages(self, u: Num) -> Num:
        """One."""
        return 1.0 + 0.0 * u

    def size(self, u: Num) -> Num:
        """Always the same."""
        return self.file + 0.0 * u


class AbstractFiles(AbstractSource):
    """Files whose sizes are random."""

    starts: ClassVar[bool] = True
    file: Num = param(12.0, "S", doc="mean size of a file", **_SIZE)
    sizes: str = choice("exponential", *NAMES, doc="distribution of the sizes", engines=_SIZED)
    shape: Num = param(1.2, "a_S", doc="shape of the sizes", **{**_SHAPE, "engines": _SIZED})
    cut: Num = param(60000.0, "c_S", **_CUT)

    def ending(self, rate: Num) -> Num:
        """A file ends after its packets."""
        return rate / self.file

    def size(self, u: Num) -> Num:
        """Size of a file."""
        return self.file * quantile(self.sizes, u, self.shape, self.cut)


class AbstractOpen(AbstractFiles):
    """Files of sessions that arrive as a Poisson process."""

    open: ClassVar[bool] = True
    arrivals: Num = param(1.0, r"\lambda_S", unit="1/s", doc="files per second", within="(0, inf)")

    def arrival(self, u: Num) -> Num:
        """Time from session to session."""
        return quantile("exponential", u, 1.0, 1.0) / self.arrivals


class Web(AbstractFiles):
    """Files, one after the other on new connections, with idle times in between.

    The fluid model takes sizes and idle times as exponential with the given means. Packets round
    sizes up to whole packets.
    """

    name: ClassVar[str] = "web"
    source: ClassVar[str] = "misra2003, section 4.1"
    idle: Num = param(3.0, r"T_{\mathrm{off}}", doc="mean idle time", **_TIME)
    first: Num = param(2.0, "W_1", **_FIRST)
    idles: str = choice(
        "exponential", *NAMES[:4], doc="distribution of the idle times", engines=EVENTS
    )
    idle_shape: Num = param(1.5, "a_T", doc="shape of the idle times", **_SHAPE)

    def beginning(self) -> Num:
        """An idle time ends after its mean."""
        return 1.0 / self.idle

    def first_window(self) -> Num:
        """Window of a new connection."""
        return self.first

    def pause(self, u: Num) -> Num:
        """An idle time."""
        return self.idle * quantile(self.idles, u, self.idle_shape, 1.0)


class Files(AbstractOpen):
    """Files that arrive as a Poisson process, each on a new connection.

    In the fluid model they are unresponsive traffic at its mean rate.
    """

    name: ClassVar[str] = "files"
    source: ClassVar[str] = "qazi2010, section 4"
    file: Num = param(30.0, "S", doc="mean size of a file", **_SIZE)

    def beginning(self) -> Num:
        """Files arrive independently of the network."""
        return self.arrivals

    def first_window(self) -> Num:
        """Not used: no signal slows these files in the fluid model."""
        return 1.0

    def load(self) -> Num:
        """Packets per second."""
        return self.arrivals * self.file

    def pages(self, u: Num) -> Num:
        """One."""
        return 1.0 + 0.0 * u


class Sessions(AbstractOpen):
    """Web sessions of pages of objects: the Web traffic of ns-2, by default with Table I.

    Sessions come at exponential times. The next page of a session begins `page_gap` after the end
    of the last object of a page. Each object is a request on a new connection, along the route of
    the acknowledgements, then the object on another. The fluid model has on/off sources
    of the same mean rate: `sources` of them, one for each object of a page of each session.
    Packets round numbers of sessions, pages and objects up.
    """

    name: ClassVar[str] = "sessions"
    source: ClassVar[str] = "akujobi2002, table I"
    arrivals: Num = param(
        2.0, r"\lambda_S", unit="1/s", doc="sessions per second", within="(0, inf)"
    )
    most: Num = param(1000.0, "N_S", unit="1", doc="number of sessions", within="[1, inf]")
    page_count: Num = param(10.0, "N_P", unit="1", doc="pages of a session", within="(1, inf)")
    page_gap: Num = param(10.0, "T_P", doc="mean time from page to page", **_TIME)
    page_gaps: str = choice(
        "pareto2", *NAMES[:4], doc="distribution of these times", engines=EVENTS
    )
    page_shape: Num = param(2.0, "a_P", doc="shape of the times from page to page", **_SHAPE)
    object_count: Num = param(3.0, "N_O", unit="1", doc="mean objects of a page", within="[1, inf)")
    object_counts: str = choice(
        "pareto2", *NAMES[:4], doc="distribution of the objects", engines=EVENTS
    )
    count_shape: Num = param(1.5, "a_N", doc="shape of the number of objects", **_SHAPE)
    object_gap: Num = param(0.1, "T_O", doc="mean time from object to object", **_TIME)
    object_gaps: str = choice(
        "pareto2", *NAMES[:4], doc="distribution of these times", engines=EVENTS
    )
    gap_shape: Num = param(1.5, "a_O", doc="shape of the times from object to object", **_SHAPE)
    file: Num = param(12.0, "S", doc="mean size of an object", **_SIZE)
    sizes: str = choice("pareto2", *NAMES, doc="distribution of the sizes", engines=_SIZED)
    ask: Num = param(
        1.0,
        "S_G",
        unit="packet",
        doc="size of a request; 0 for none",
        within="[0, inf)",
        engines=EVENTS,
    )
    first: Num = param(2.0, "W_1", **_FIRST)

    def beginning(self) -> Num:
        """Objects of all sessions begin independently of the network."""
        return self.arrivals * self.page_count * self.object_count

    def first_window(self) -> Num:
        """Window of a new connection."""
        return self.first

    def request(self) -> Num:
        """Size of a request."""
        return self.ask

    def in_all(self) -> float:
        """The number of sessions."""
        return float(self.most)

    def sources(self) -> Num:
        """By Little's law the objects of all pages of the sessions that are under way."""
        return self.arrivals * (self.page_count - 1) * self.page_gap * self.object_count

    def closed(self) -> Web:
        """One object a page, the gaps of a session shared by its pages."""
        idle = self.page_gap * (self.page_count - 1) / self.page_count
        return Web(file=self.file, idle=idle, first=self.first)

    def pages(self, u: Num) -> Num:
        """Pages of a session."""
        return self.page_count + 0.0 * u

    def pause(self, u: Num) -> Num:
        """Time from the end of a page to the next."""
        return self.page_gap * quantile(self.page_gaps, u, self.page_shape, 1.0)

    def objects(self, u: Num) -> Num:
        """Objects of a page."""
        return self.object_count * quantile(self.object_counts, u, self.count_shape, 1.0)

    def gap(self, u: Num) -> Num:
        """Time from object to object of a page."""
        return self.object_gap * quantile(self.object_gaps, u, self.gap_shape, 1.0)
