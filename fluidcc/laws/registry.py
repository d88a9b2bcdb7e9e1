"""The laws by the names that scenarios use.

A new law is one file with one class, and one entry here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fluidcc.laws.estimator import Exact
from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.law import Law
from fluidcc.laws.loss import HalveOnly, Recovery
from fluidcc.laws.marking import EqualWindow, Plain
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.red import RED
from fluidcc.laws.queue.threshold import Threshold
from fluidcc.laws.reaction import OncePerRTT, Pause, PerMark, Refractory
from fluidcc.laws.spreading import Geometric, Uniform, Wait
from fluidcc.laws.traffic import Bulk, Web
from fluidcc.laws.window.binomial import Binomial
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.laws.window.reno import Reno


def _by_name(*laws: type[Law]) -> Mapping[str, type[Law]]:
    return MappingProxyType({law.name: law for law in laws})


LAWS: Mapping[str, Mapping[str, type[Law]]] = MappingProxyType(
    {
        "window": _by_name(Polynomial, Reno, NewReno, ECNMod, Binomial),
        "queue": _by_name(Droptail, Threshold, RED),
        "feedback": _by_name(MarkTail, MarkFront, Backward, Loss),
        "reaction": _by_name(PerMark, OncePerRTT, Refractory, Pause),
        "marking": _by_name(Plain, EqualWindow),
        "spreading": _by_name(Geometric, Uniform, Wait),
        "loss": _by_name(Recovery, HalveOnly),
        "estimator": _by_name(Exact),
        "traffic": _by_name(Bulk, Web),
    }
)
