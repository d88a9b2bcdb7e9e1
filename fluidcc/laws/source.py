"""What flows have to send: the interface of sources."""

import abc
import math
from typing import ClassVar

from fluidcc.laws.law import Law
from fluidcc.ops import Num


class AbstractSource(Law):
    """What a flow has to send: when it is active, and what an activity begins with.

    In packets a source brings sessions of pages of objects, by rules that turn a number `u`,
    uniform on [0, 1), into a count, a size or a time. An object is one transfer on a connection of
    its own. A source that is not open is a flow with one session.
    """

    starts: ClassVar[bool] = False  # activities begin and end
    open: ClassVar[bool] = False  # sessions come by themselves, however many are under way

    @abc.abstractmethod
    def ending(self, rate: Num) -> Num:
        """Activities of one active flow that end per second, at `rate` packets per second."""

    @abc.abstractmethod
    def beginning(self) -> Num:
        """Activities that one idle flow begins per second."""

    @abc.abstractmethod
    def first_window(self) -> Num:
        """Window that an activity begins with [packet]."""

    def load(self) -> Num | None:
        """Packets per second that come whatever the network does; None where that slows them."""
        return None

    def request(self) -> Num:
        """Size of the request before an object [packet]; 0 for none."""
        return 0.0

    def sources(self) -> Num:
        """Number of sources like `closed` that this one is in the fluid model."""
        return 1.0

    def in_all(self) -> float:
        """Sessions that come in all."""
        return math.inf

    def closed(self) -> "AbstractSource":
        """Source that is not open, of the same mean rate."""
        return self

    def arrival(self, u: Num) -> Num:
        """Time from session to session of an open source [s]."""
        return 0.0 * u

    def pages(self, u: Num) -> Num:
        """Pages of a session; 0 stands for no end."""
        return 0.0 * u

    def pause(self, u: Num) -> Num:
        """Time from the end of a page to the next [s]."""
        return 0.0 * u

    def objects(self, u: Num) -> Num:
        """Objects of a page; one."""
        return 1.0 + 0.0 * u

    def gap(self, u: Num) -> Num:
        """Time from the beginning of an object to that of the next of its page [s]."""
        return 0.0 * u

    def size(self, u: Num) -> Num:
        """Size of an object [packet]."""
        return 1.0 + 0.0 * u
