"""The laws by the names that scenarios use.

A new law is one file with one class, and one entry here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fluidcc.laws.adpm import ADPM
from fluidcc.laws.estimator import Exact
from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.load_factor import LoadFactor
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Law
from fluidcc.laws.loss import PFTK, HalveOnly, Recovery
from fluidcc.laws.marking import EqualWindow, Plain
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor as LoadFactorQueue
from fluidcc.laws.queue.modified_load_factor import ModifiedLoadFactor
from fluidcc.laws.queue.pi import PI
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.rem import REM
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, Pause, PerMark, Refractory
from fluidcc.laws.spreading import Geometric, Uniform, Wait
from fluidcc.laws.traffic import Bulk, File, Files, Sessions, Web
from fluidcc.laws.window.becn import BECN
from fluidcc.laws.window.binomial import Binomial
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.laws.window.dctcp import DCTCP
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno
from fluidcc.laws.window.sack import SACK


def _by_name(*laws: type[Law]) -> Mapping[str, type[Law]]:
    return MappingProxyType({law.name: law for law in laws})


LAWS: Mapping[str, Mapping[str, type[Law]]] = MappingProxyType(
    {
        "window": _by_name(Polynomial, Reno, NewReno, SACK, ECNMod, Binomial, BECN, BMCC, DCTCP),
        "queue": _by_name(
            Droptail,
            Threshold,
            RED,
            AdaptiveRED,
            BLUE,
            LoadFactorQueue,
            ModifiedLoadFactor,
            PI,
            REM,
            AVQ,
        ),
        "feedback": _by_name(MarkTail, MarkFront, Backward, Loss, LoadFactor, ReceiverWindow),
        "reaction": _by_name(PerMark, OncePerRTT, Refractory, Pause),
        "marking": _by_name(Plain, EqualWindow),
        "spreading": _by_name(Geometric, Uniform, Wait),
        "loss": _by_name(Recovery, HalveOnly, PFTK),
        "estimator": _by_name(Exact, ADPM),
        "traffic": _by_name(Bulk, File, Web, Files, Sessions),
    }
)
