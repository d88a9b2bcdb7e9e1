"""Load factors beside marks by adaptive RED."""

from typing import ClassVar, NamedTuple

from fluidcc.laws.law import Arrival, Signal
from fluidcc.laws.parameters import choice
from fluidcc.laws.queue.adaptive_red import AbstractAdaptiveRED
from fluidcc.laws.queue.load_factor import AbstractLoadFactor
from fluidcc.ops import Num


class ModifiedLoad(NamedTuple):
    """Memory of a load factor and of adaptive RED."""

    arrived: Num  # mean packets since the last sample
    slow: Num  # average queue of the load factor [packet]
    factor: Num  # load factor of the last sample
    average: Num  # average queue of RED [packet]
    p_max: Num


class ModifiedLoadFactor(AbstractLoadFactor, AbstractAdaptiveRED):
    """Tells the load factor, and marks by adaptive RED. Qazi et al. (2010), section 5.2.

    p_max is adapted at the samples of the load, at the pace of adaptive RED: a step for an
    interval is spread over the samples in it.
    """

    name: ClassVar[str] = "modified_load_factor"
    source: ClassVar[str] = "qazi2010, section 5.2; floyd2001"
    symbols: ClassVar[tuple[str, ...]] = (
        r"\lambda", r"q_{\mathrm{av}}", "f", "v", r"p_{\max}",
    )  # fmt: skip
    pole: str = choice("arrivals", "arrivals", doc="fluid: both averages see what arrives")

    def start(self, average: Num) -> ModifiedLoad:
        """Start from an average queue [packet]."""
        return ModifiedLoad(0.0, average, 0.0, average, self.p_max)

    def starts(self, average: Num) -> tuple[ModifiedLoad, ...]:
        """Start with each p_max that may persist."""
        first = self.start(average)
        return tuple(first._replace(p_max=top) for top in self.tops(average))

    def on_arrival(self, x: ModifiedLoad, seen: Arrival) -> ModifiedLoad:
        """Count arrivals, and move both averages."""
        return ModifiedLoad(*self.measured(x, seen), self.moved(x.average, seen), 0.0)

    def on_tick(self, x: ModifiedLoad, seen: Arrival) -> ModifiedLoad:
        """Take a sample of the load, and adapt p_max."""
        pace = self.t_p / self.interval
        return ModifiedLoad(*self.sampled(x, seen), 0.0, self.step(x, pace))

    def signal(self, x: ModifiedLoad, seen: Arrival) -> Signal:
        """Tell the last sample of the load; mark by the average."""
        return AbstractAdaptiveRED.signal(self, x, seen)._replace(load=x.factor)
