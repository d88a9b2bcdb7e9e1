"""All bounds by name."""

from collections.abc import Mapping
from types import MappingProxyType

from ..bounds import becn, relay, rwm
from ..bounds.bmcc.growth import Concave, Factor, IncreaseMap, ReturnTime, SameGrowth
from ..bounds.bmcc.router import OnlyBMCC, StandingQueue
from ..bounds.bmcc.sharing import EqualRates, Exponent
from ..bounds.bmcc.starving import Starved
from ..bounds.ecn_mod.dropping import Dropping
from ..bounds.ecn_mod.marks import AboveOne, Bounded, MarksPerTrip
from ..bounds.ecn_mod.sharing import EqualGoodput, EqualWindows, FullMarking
from ..bounds.mark_front.buffers import BufferClaim, Efficiency, NoLoss, Sooner
from ..bounds.mark_front.fluid import FluidFullUse, FluidSlowStart
from ..bounds.mark_front.full_use import FullUse
from ..bounds.mark_front.slow_start import SlowStart
from .bound import AbstractBound

_ALL: tuple[AbstractBound, ...] = (
    SlowStart(),
    FullUse(),
    BufferClaim(),
    NoLoss(),
    Efficiency(),
    Sooner(),
    FluidSlowStart(),
    FluidFullUse(),
    IncreaseMap(),
    Concave(),
    SameGrowth(),
    Factor(),
    ReturnTime(),
    EqualRates(),
    StandingQueue(),
    OnlyBMCC(),
    Starved(),
    Exponent(),
    Bounded(),
    MarksPerTrip(),
    AboveOne(),
    EqualWindows(),
    EqualGoodput(),
    FullMarking(),
    Dropping(),
    rwm.AboutMinTh(),
    rwm.EnoughPMax(),
    becn.Sooner(),
    becn.Reactions(),
    relay.StepMarking(),
)

BOUNDS: Mapping[str, AbstractBound] = MappingProxyType({bound.id: bound for bound in _ALL})
"""Every bound, in the order of the papers."""
