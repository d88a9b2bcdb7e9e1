"""Windows and marks by the rules of the polynomial class, Misra and Ott (2003)."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import sympy as sp

from fluidcc.laws.law import Ack
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.symbolic import parameter_symbols, zero_drift
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.polynomial import AbstractPolynomial, Polynomial
from fluidcc.scenario.network import Network

from ...lab.bound import (
    AbstractBound,
    Definitions,
    Identity,
    Judged,
    Point,
    Range,
    at_least,
    at_most,
)
from .senders import resting

PRINTED, FIGURES = "0.025 to 0.625, as printed", "0.0625 to 0.25, as in the figures"
SMALL, ALL = "up to 0.1", "any"
BELOW, EQUAL = "alpha < beta", "alpha = beta"
_OPEN = 2e-9  # an end that must not be reached
_WIDE = (1e2, 1e4)  # packets


class Marked(NamedTuple):
    """A member of the family at c2 = 1/8, and how many packets are marked."""

    c1: float
    p: float


def member(c1: float) -> ECNMod:
    """ECN-mod with that increase."""
    return ECNMod(c1=c1)


class MarksPerTrip(AbstractBound):
    """How many marks a sender gets in a round trip."""

    id: ClassVar[str] = "ecn_mod.marks_per_round_trip"
    source: ClassVar[str] = "misra2003, after eq. 6"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-06",)
    statement: ClassVar[str] = "a sender gets between 1/5 and 5 marks per round trip"
    hypotheses: ClassVar[tuple[str, ...]] = ("c2 = 1/8", "independent marks")
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"c1": (PRINTED, FIGURES), "p": (SMALL, ALL)}
    )
    networks: ClassVar[tuple[str, ...]] = ("c1", "p")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"c1": PRINTED, "p": SMALL}, {"c1": FIGURES, "p": SMALL}, {"c1": FIGURES, "p": ALL},
    )  # fmt: skip
    quick: ClassVar[int] = 120

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """The stated range of c1."""
        low, high = (0.025, 0.625) if definitions["c1"] == PRINTED else (0.0625, 0.25)
        most = 0.1 if definitions["p"] == SMALL else 0.999
        return {"c1": Range(low, high, low, "log"), "p": Range(1e-5, most, 0.01, "log")}

    def subject(self, point: Point, definitions: Definitions) -> Marked:
        """A member and its marks."""
        return Marked(**point)

    def judge(self, subject: Marked, measured: None, definitions: Definitions) -> Judged:
        """The zero-drift window times p, in the open interval."""
        count = subject.p * resting(member(subject.c1), PerMark(), subject.p)
        low, high = 0.2 - count, count - 5.0
        return Judged(0.2 if low > high else 5.0, count, max(low, high) + _OPEN)

    def of_network(self, net: Network) -> Marked:
        """The first ECN-mod flows at rest."""
        from fluidcc.analysis.equilibrium import equilibrium

        k = _members(net)[0]
        rest, law = equilibrium(net), net.flows[k].window
        p = float(rest.flows[net.flow_names[k]].signal[0])
        p = float(net.flows[k].marking.probability(p, law))
        return Marked(float(law.c1), p)  # type: ignore[attr-defined]

    def obstacle(self, net: Network) -> str:
        """It needs ECN-mod flows that rest."""
        if not _members(net):
            return "it speaks of ECN-mod flows with c2 = 1/8"
        p = self.of_network(net).p
        return "" if 0 < p < 1 else "the network rests without marks, or nowhere"

    def found_in(self, net: Network) -> Definitions:
        """Whether its c1 is one of the figures, and its marks are few."""
        found = self.of_network(net)
        among = FIGURES if 0.0625 <= found.c1 <= 0.25 else PRINTED
        return {"c1": among, "p": SMALL if found.p <= 0.1 else ALL}

    def derivation(self) -> tuple[Identity, ...]:
        """The zero-drift window times p."""
        law, p = ECNMod(), sp.Symbol("p", positive=True)
        (window,) = zero_drift(law, PerMark())
        names = parameter_symbols(law)
        return (Identity("marks per round trip", p * window,
                         names["c1"] / names["c2"] * (1 - p)),)  # fmt: skip


def _members(net: Network) -> list[int]:
    return [
        k for k, f in enumerate(net.flows)
        if isinstance(f.window, ECNMod) and float(f.window.c2) == 0.125 and f.feedback.marks
    ]  # fmt: skip


class Powers(NamedTuple):
    """A member of the polynomial class under marks."""

    c1: float
    alpha: float
    c2: float
    beta: float
    p: float


_ONE = Ack(1, 0, 1)


def _unordered(c1: Any, alpha: Any, c2: Any, beta: Any) -> Any:
    """The rules of the class for any exponents, without the check of their order."""

    class Rules(NamedTuple):
        """What the rules of the class look up."""

        c1: Any
        alpha: Any
        c2: Any
        beta: Any

        on_ack = AbstractPolynomial.on_ack
        on_mark = AbstractPolynomial.on_mark

    return Rules(c1, alpha, c2, beta)


class Bounded(AbstractBound):
    """Which windows are bounded at every probability."""

    id: ClassVar[str] = "ecn_mod.bounded_window"
    source: ClassVar[str] = "misra2003, section 2, after eq. 3"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-03",)
    statement: ClassVar[str] = "windows fall from some size on, at every probability of marks"
    hypotheses: ClassVar[tuple[str, ...]] = ("independent marks, in the mean",)
    engine: ClassVar[str] = "rules"
    axes: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType(
        {"exponents": (BELOW, EQUAL), "p": ("above 0", "0 too")}
    )
    networks: ClassVar[tuple[str, ...]] = ("exponents", "p")
    readings: ClassVar[tuple[Mapping[str, str], ...]] = (
        {"exponents": BELOW}, {"exponents": EQUAL}, {"exponents": BELOW, "p": "0 too"},
    )  # fmt: skip
    quick: ClassVar[int] = 120

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """The whole class."""
        gap = Range(0.01, 3.0, 2.0) if definitions["exponents"] == BELOW else Range(0.0, 0.0, 0.0)
        low = 0.0 if definitions["p"] == "0 too" else 1e-6
        return {
            "c1": Range(0.01, 10.0, 1.0, "log"),
            "alpha": Range(-3.0, 2.0, -1.0),
            "gap": gap,
            "c2": Range(0.01, 0.9, 0.5, "log"),
            "p": Range(low, 0.999, low if low == 0.0 else 0.01, small=(low, 0.01, 0.1)),
        }

    def subject(self, point: Point, definitions: Definitions) -> Powers:
        """A member and its marks."""
        beta = point["alpha"] + point["gap"]
        return Powers(point["c1"], point["alpha"], point["c2"], beta, point["p"])

    def judge(self, subject: Powers, measured: None, definitions: Definitions) -> Judged:
        """Fall over growth per ACK as windows become endless, as a power of the window."""
        law = _unordered(*subject[:4])
        falls = [subject.p * -float(law.on_mark(w, _ONE)) for w in _WIDE]
        grows = [(1 - subject.p) * float(law.on_ack(w, _ONE)) for w in _WIDE]
        ratio = [f / g for f, g in zip(falls, grows, strict=True)]
        if ratio[0] == 0:
            return at_least(0.0, 1.0)
        power = math.log(ratio[1] / ratio[0]) / math.log(_WIDE[1] / _WIDE[0])
        if abs(power) < 1e-12:
            return at_least(ratio[0], 1.0)
        return Judged(0.0, power, -power)

    def derivation(self) -> tuple[Identity, ...]:
        """Fall over growth is the power beta - alpha of the window."""
        law, w = Polynomial(), sp.Symbol("W", positive=True)
        names = parameter_symbols(law)
        bare = _unordered(*(names[n] for n in ("c1", "alpha", "c2", "beta")))
        power = sp.diff(sp.log(-bare.on_mark(w, _ONE) / bare.on_ack(w, _ONE)), w) * w
        words = "power of the window in fall over growth"
        return (Identity(words, sp.expand_log(power, force=True), names["beta"] - names["alpha"]),)


class Pair(NamedTuple):
    """Parameters of ECN-mod, and the probability to mark its packets."""

    c1: float
    c2: float
    p: float


class AboveOne(AbstractBound):
    """Where ECN-mod has a window above one packet."""

    id: ClassVar[str] = "ecn_mod.window_above_one"
    source: ClassVar[str] = "misra2003, eqs 4 and 6"
    claims: ClassVar[tuple[str, ...]] = ("EMOD-22",)
    statement: ClassVar[str] = "the window is above one packet exactly for p below c1/(c1 + c2)"
    hypotheses: ClassVar[tuple[str, ...]] = ("independent marks",)
    engine: ClassVar[str] = "rules"
    quick: ClassVar[int] = 120

    def ranges(self, definitions: Definitions) -> Mapping[str, Range]:
        """Any member."""
        return {
            "c1": Range(0.01, 1.0, 0.125, "log"),
            "c2": Range(0.01, 0.5, 0.125, "log"),
            "p": Range(0.001, 0.999, 0.5),
        }

    def subject(self, point: Point, definitions: Definitions) -> Pair:
        """A member and its marks."""
        return Pair(**point)

    def judge(self, subject: Pair, measured: None, definitions: Definitions) -> Judged:
        """The zero-drift window on its side of 1."""
        law = ECNMod(c1=subject.c1, c2=subject.c2)
        window = resting(law, PerMark(), subject.p)
        below = subject.p <= subject.c1 / (subject.c1 + subject.c2)
        return at_least(window, 1.0) if below else at_most(window, 1.0)

    def derivation(self) -> tuple[Identity, ...]:
        """The window is 1 at that probability."""
        law, p = ECNMod(), sp.Symbol("p", positive=True)
        (window,) = zero_drift(law, PerMark())
        names = parameter_symbols(law)
        limit = names["c1"] / (names["c1"] + names["c2"])
        return (Identity("window at p = c1/(c1 + c2)", window.subs(p, limit), 1),)
