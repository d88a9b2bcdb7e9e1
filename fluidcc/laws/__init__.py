"""Laws of congestion control as rules for single packet events, each written once.

To write a law, import from here: the abstract classes, the records of events and the descriptions
of parameters; also the laws of the package by the names of their classes.
"""

from typing import TYPE_CHECKING, Any

from fluidcc import ops as ops
from fluidcc.laws.law import AbstractEstimator as AbstractEstimator
from fluidcc.laws.law import AbstractFeedback as AbstractFeedback
from fluidcc.laws.law import AbstractMarking as AbstractMarking
from fluidcc.laws.law import AbstractMarkSpacing as AbstractMarkSpacing
from fluidcc.laws.law import AbstractQueueLaw as AbstractQueueLaw
from fluidcc.laws.law import AbstractReaction as AbstractReaction
from fluidcc.laws.law import AbstractWindowLaw as AbstractWindowLaw
from fluidcc.laws.law import Ack as Ack
from fluidcc.laws.law import Arrival as Arrival
from fluidcc.laws.law import MarkingPoint as MarkingPoint
from fluidcc.laws.law import PathTimes as PathTimes
from fluidcc.laws.law import Shares as Shares
from fluidcc.laws.law import Signal as Signal
from fluidcc.laws.law import Since as Since
from fluidcc.laws.parameters import check_order as check_order
from fluidcc.laws.parameters import choice as choice
from fluidcc.laws.parameters import param as param
from fluidcc.laws.parameters import state as state
from fluidcc.laws.window.hystart import AbstractHyStart as AbstractHyStart

if TYPE_CHECKING:
    from fluidcc.laws.feedback.backward import Backward as Backward
    from fluidcc.laws.feedback.explicit import Explicit as Explicit
    from fluidcc.laws.feedback.load_factor import LoadFactorFeedback as LoadFactorFeedback
    from fluidcc.laws.feedback.loss import Loss as Loss
    from fluidcc.laws.feedback.mark_front import MarkFront as MarkFront
    from fluidcc.laws.feedback.mark_tail import MarkTail as MarkTail
    from fluidcc.laws.feedback.receiver_window import ReceiverWindow as ReceiverWindow
    from fluidcc.laws.load_code import ADPM as ADPM
    from fluidcc.laws.load_code import Exact as Exact
    from fluidcc.laws.marking import Accumulated as Accumulated
    from fluidcc.laws.marking import Coupled as Coupled
    from fluidcc.laws.marking import EqualWindow as EqualWindow
    from fluidcc.laws.marking import Geometric as Geometric
    from fluidcc.laws.marking import Plain as Plain
    from fluidcc.laws.marking import Uniform as Uniform
    from fluidcc.laws.marking import Wait as Wait
    from fluidcc.laws.queue.adaptive_red import AdaptiveRED as AdaptiveRED
    from fluidcc.laws.queue.avq import AVQ as AVQ
    from fluidcc.laws.queue.blue import BLUE as BLUE
    from fluidcc.laws.queue.codel import CoDel as CoDel
    from fluidcc.laws.queue.droptail import Droptail as Droptail
    from fluidcc.laws.queue.load_factor import LoadFactor as LoadFactor
    from fluidcc.laws.queue.modified_load_factor import ModifiedLoadFactor as ModifiedLoadFactor
    from fluidcc.laws.queue.pi import PI as PI
    from fluidcc.laws.queue.pi2 import PI2 as PI2
    from fluidcc.laws.queue.pie import PIE as PIE
    from fluidcc.laws.queue.rcp import RateControl as RateControl
    from fluidcc.laws.queue.red import RED as RED
    from fluidcc.laws.queue.rem import REM as REM
    from fluidcc.laws.queue.step import Step as Step
    from fluidcc.laws.queue.telemetry import Telemetry as Telemetry
    from fluidcc.laws.queue.threshold import Threshold as Threshold
    from fluidcc.laws.queue.xcp import ExplicitControl as ExplicitControl
    from fluidcc.laws.reaction import PFTK as PFTK
    from fluidcc.laws.reaction import HalveOnly as HalveOnly
    from fluidcc.laws.reaction import OncePerInterval as OncePerInterval
    from fluidcc.laws.reaction import OncePerRTT as OncePerRTT
    from fluidcc.laws.reaction import Pause as Pause
    from fluidcc.laws.reaction import PerMark as PerMark
    from fluidcc.laws.reaction import Recovery as Recovery
    from fluidcc.laws.reaction import Refractory as Refractory
    from fluidcc.laws.traffic import Bulk as Bulk
    from fluidcc.laws.traffic import File as File
    from fluidcc.laws.traffic import Files as Files
    from fluidcc.laws.traffic import Sessions as Sessions
    from fluidcc.laws.traffic import Web as Web
    from fluidcc.laws.window.bbr import BBR as BBR
    from fluidcc.laws.window.bbr import BBR3 as BBR3
    from fluidcc.laws.window.becn import BECN as BECN
    from fluidcc.laws.window.binomial import Binomial as Binomial
    from fluidcc.laws.window.bmcc import BMCC as BMCC
    from fluidcc.laws.window.compound import Compound as Compound
    from fluidcc.laws.window.copa import Copa as Copa
    from fluidcc.laws.window.cubic import CUBIC as CUBIC
    from fluidcc.laws.window.dcqcn import DCQCN as DCQCN
    from fluidcc.laws.window.dctcp import DCTCP as DCTCP
    from fluidcc.laws.window.ecn_mod import ECNMod as ECNMod
    from fluidcc.laws.window.fast import FAST as FAST
    from fluidcc.laws.window.highspeed import HighSpeed as HighSpeed
    from fluidcc.laws.window.hpcc import HPCC as HPCC
    from fluidcc.laws.window.htcp import HTCP as HTCP
    from fluidcc.laws.window.illinois import Illinois as Illinois
    from fluidcc.laws.window.ledbat import LEDBAT as LEDBAT
    from fluidcc.laws.window.ledbat_plus_plus import LEDBATPlusPlus as LEDBATPlusPlus
    from fluidcc.laws.window.newreno import NewReno as NewReno
    from fluidcc.laws.window.polynomial import Polynomial as Polynomial
    from fluidcc.laws.window.prague import Prague as Prague
    from fluidcc.laws.window.rcp import RCP as RCP
    from fluidcc.laws.window.reno import Reno as Reno
    from fluidcc.laws.window.sack import SACK as SACK
    from fluidcc.laws.window.scalable import Scalable as Scalable
    from fluidcc.laws.window.swift import Swift as Swift
    from fluidcc.laws.window.timely import TIMELY as TIMELY
    from fluidcc.laws.window.vcp import VCP as VCP
    from fluidcc.laws.window.vegas import Vegas as Vegas
    from fluidcc.laws.window.westwood import Westwood as Westwood
    from fluidcc.laws.window.xcp import XCP as XCP


def __getattr__(name: str) -> Any:
    from fluidcc.laws.registry import LAWS

    for laws in LAWS.values():
        for law in laws.values():
            if law.__name__ == name and law.__module__.startswith("fluidcc."):
                return law
    raise AttributeError(f"module 'fluidcc.laws' has no attribute {name!r}")
