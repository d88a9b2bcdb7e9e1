"""All bounds by name."""

from collections.abc import Mapping
from types import MappingProxyType

from fluidcc.bounds import becn, relay, rwm
from fluidcc.bounds.bmcc.growth import Concave, Factor, IncreaseMap, ReturnTime, SameGrowth
from fluidcc.bounds.bmcc.router import OnlyBMCC, StandingQueue
from fluidcc.bounds.bmcc.sharing import EqualRates, Exponent
from fluidcc.bounds.bmcc.starving import Starved
from fluidcc.bounds.bound import AbstractBound
from fluidcc.bounds.ecn_mod.dropping import Dropping
from fluidcc.bounds.ecn_mod.marks import AboveOne, Bounded, MarksPerTrip
from fluidcc.bounds.ecn_mod.sharing import EqualGoodput, EqualWindows, FullMarking
from fluidcc.bounds.mark_front.buffers import BufferClaim, Efficiency, NoLoss, Sooner
from fluidcc.bounds.mark_front.fluid import FluidFullUse, FluidSlowStart
from fluidcc.bounds.mark_front.full_use import FullUse
from fluidcc.bounds.mark_front.slow_start import SlowStart

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
