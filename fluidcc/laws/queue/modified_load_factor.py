"""Load factors together with marks by adaptive RED."""

from typing import ClassVar

from fluidcc.laws.law import Arrival, Signal, State
from fluidcc.laws.parameters import choice
from fluidcc.laws.queue.adaptive_red import AbstractAdaptiveRED
from fluidcc.laws.queue.load_factor import AbstractLoadFactor


class ModifiedLoadFactor(AbstractAdaptiveRED, AbstractLoadFactor):
    """Tells the load factor, and marks by adaptive RED. Qazi et al. (2010), section 5.2.

    p_max is adapted at the samples of the load, at the pace of adaptive RED: a step for an
    interval is spread over the samples in it.
    """

    name: ClassVar[str] = "modified_load_factor"
    source: ClassVar[str] = "qazi2010, section 5.2; floyd2001"
    pole: str = choice(
        "arrivals", "arrivals", doc="both averages see what arrives", engines=("fluid",)
    )

    def on_arrival(self, x: State, seen: Arrival) -> State:
        """Count arrivals, and move both averages."""
        counted = AbstractLoadFactor.on_arrival(self, x, seen)
        return counted._replace(v=self.moved(x.v, seen))

    def on_tick(self, x: State, seen: Arrival) -> State:
        """Take a sample of the load, and adapt p_max."""
        sampled = AbstractLoadFactor.on_tick(self, x, seen)
        return sampled._replace(p=self.step(x, self.t_p / self.interval))

    def signal(self, x: State, seen: Arrival) -> Signal:
        """Tell the last sample of the load; mark by the average."""
        return super().signal(x, seen)._replace(load=x.factor)
