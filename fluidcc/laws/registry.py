"""The laws by the names that scenarios use: those of the package, and those added to them.

A new law of the package is one file with one class, and one entry here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from fluidcc.errors import ScenarioError
from fluidcc.laws.feedback.backward import Backward
from fluidcc.laws.feedback.load_factor import LoadFactorFeedback
from fluidcc.laws.feedback.loss import Loss
from fluidcc.laws.feedback.mark_front import MarkFront
from fluidcc.laws.feedback.mark_tail import MarkTail
from fluidcc.laws.feedback.receiver_window import ReceiverWindow
from fluidcc.laws.law import Law
from fluidcc.laws.load_code import ADPM, Exact
from fluidcc.laws.loss import PFTK, HalveOnly, Recovery
from fluidcc.laws.marking import EqualWindow, Plain
from fluidcc.laws.queue.adaptive_red import AdaptiveRED
from fluidcc.laws.queue.avq import AVQ
from fluidcc.laws.queue.blue import BLUE
from fluidcc.laws.queue.droptail import Droptail
from fluidcc.laws.queue.load_factor import LoadFactor
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

AnyLaw = TypeVar("AnyLaw", bound=type[Law])


def _by_name(*laws: type[Law]) -> dict[str, type[Law]]:
    return {law.name: law for law in laws}


_KINDS: dict[str, dict[str, type[Law]]] = {
    "window": _by_name(Polynomial, Reno, NewReno, SACK, ECNMod, Binomial, BECN, BMCC, DCTCP),
    "queue": _by_name(
        Droptail,
        Threshold,
        RED,
        AdaptiveRED,
        BLUE,
        LoadFactor,
        ModifiedLoadFactor,
        PI,
        REM,
        AVQ,
    ),
    "feedback": _by_name(MarkTail, MarkFront, Backward, Loss, LoadFactorFeedback, ReceiverWindow),
    "reaction": _by_name(PerMark, OncePerRTT, Refractory, Pause),
    "marking": _by_name(Plain, EqualWindow),
    "spreading": _by_name(Geometric, Uniform, Wait),
    "loss": _by_name(Recovery, HalveOnly, PFTK),
    "estimator": _by_name(Exact, ADPM),
    "traffic": _by_name(Bulk, File, Web, Files, Sessions),
}

LAWS: Mapping[str, Mapping[str, type[Law]]] = MappingProxyType(
    {kind: MappingProxyType(laws) for kind, laws in _KINDS.items()}
)
"""All laws by kind and name, those that were added included."""

_BUILT_IN = frozenset(law for laws in _KINDS.values() for law in laws.values())


def own_laws() -> list[type[Law]]:
    """The laws that were added."""
    return [law for laws in _KINDS.values() for law in laws.values() if law not in _BUILT_IN]


def register(law: AnyLaw) -> AnyLaw:
    """Add a law of one's own, so that scenarios can name it; also as a decorator of its class.

    The kind follows from its abstract base. A class that is defined again, as when a cell of a
    notebook runs again, takes the place of the former; networks made before keep theirs.

    Parameters
    ----------
    law
        A class below AbstractWindowLaw, AbstractQueueLaw, AbstractFeedback, AbstractReaction,
        AbstractMarking, AbstractSpreading or AbstractEstimator, with `name`, `source` and
        described parameters.

    Raises
    ------
    ScenarioError
        If it is no law that can be added, with every reason, or if its name is taken.

    Examples
    --------
    >>> import fluidcc as fc
    >>> from fluidcc.laws import AbstractWindowLaw, param
    >>> @fc.register
    ... class Gentle(AbstractWindowLaw):
    ...     name = "gentle"
    ...     source = "an example"
    ...     reaction = "once_per_rtt"
    ...     recovery = "newreno"
    ...     b: float = param(0.2, "b", unit="1", doc="share given up", within="(0, 1)")
    ...
    ...     def on_ack(self, s, ack):
    ...         return ack.count / s
    ...
    ...     def on_mark(self, s, ack):
    ...         return -self.b * s
    >>> net = fc.replace(fc.load("hollot2001/slow"), {"flow.window.law": "gentle"})
    >>> round(float(fc.equilibrium(net).flows["tcp"].window[0]), 2)
    16.89
    """
    from fluidcc.laws.addable import fault, faults_of, kind_of

    if faults := faults_of(law):
        raise ScenarioError(faults)
    kind = kind_of(law)
    known = _KINDS[kind].get(law.name)
    if known is not None and _place(known) != _place(law):
        owner = "fluidcc" if known in _BUILT_IN else known.__module__
        got = f"{law.name!r}, which is {known.__qualname__} of {owner}"
        raise ScenarioError([fault(law, "name", f"a name that no other {kind} law has", got)])
    _KINDS[kind][law.name] = law
    return law


def _place(law: type[Law]) -> tuple[str, str]:
    return law.__module__, law.__qualname__


def restore(before: list[type[Law]]) -> None:
    """Let the added laws be those of `before`, a former answer of `own_laws`."""
    from fluidcc.laws.addable import kind_of

    for law in own_laws():
        del _KINDS[kind_of(law)][law.name]
    for law in before:
        _KINDS[kind_of(law)][law.name] = law
