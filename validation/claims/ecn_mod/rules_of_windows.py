"""How windows answer marks and drops, by the rules: sections 1 to 3."""

import sympy as sp

import fluidcc as fc
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.symbolic import parameter_symbols, with_symbols
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import Polynomial

from ...lab.formulas import zero_drift
from ...lab.judging import all_of, judge, near, ordered, searched, shown, told
from .common import MUCH, of_flows

_W, _P = sp.Symbol("W", positive=True), sp.Symbol("p", positive=True)


def _bound(lab, name):
    """Readings of a bound, as `fluidcc check-bounds` judges them."""
    return lab.bound(f"ecn_mod.{name}")["bounds"]


def _text(formula):
    """A formula in plain letters."""
    return str(formula).replace("\\", "").replace("**", "^").replace("*", " ")


def _said(entry):
    """A reading of a bound in words, with the case that decides it."""
    words = ", ".join(entry["definitions"].values())
    worst = entry["worst"]
    return f"{words}: {entry['verdict']} ({told(worst['value'])}, bound {told(worst['bound'])})"


def _rules(law):
    """Growth per clean ACK and fall per mark of a law with symbols, and its drift by its rules."""
    bare, one = with_symbols(law), fc.laws.law.Ack(sp.Integer(1), sp.Integer(0), sp.Symbol("R"))
    share = PerMark().shares(_P, _W, one.rtt)
    grow, fall = sp.sympify(bare.on_ack(_W, one)), -sp.sympify(bare.on_mark(_W, one))
    return grow, fall, share.growing * grow - share.reacting * fall


@judge("EMOD-01")
def marking_and_dropping(lab, claim):
    """Three bounds by packets: no harm by marks, none by drops to 10 %, some by drops from 15 % on.

    The paper speaks of any undesirable behaviour: a bound holds if it does by all measures of harm
    (marks: unused capacity, losses; drops: timeouts, unused capacity, unequal shares). The claim is
    contradicted if none holds by any measure.
    """
    bounds = [_bound(lab, name) for name in ("marks_do_no_harm", "drops_do_harm")]
    holds = [[entry["verdict"] == "holds" for entry in entries] for entries in bounds]
    less = "not_reproduced" if any(map(any, holds)) else "contradicted"
    return all_of(*(
        shown(all(kept), f"{entries[0]['statement']}: {', '.join(map(_said, entries))}",
              engine="packets", otherwise=less)
        for entries, kept in zip(bounds, holds, strict=True)
    ))  # fmt: skip


@judge("EMOD-02", definition=True)
def drift(lab, claim):
    """The drift by the rules of the polynomial class is that of eq. 1, in both of its forms."""
    grow, fall, ours = _rules(Polynomial())
    forms = ((1 - _P) * grow - _P * fall, _P * grow * ((1 - _P) / _P - fall / grow))
    holds = all(sp.simplify(ours - form) == 0 for form in forms)
    return shown(holds, f"mean change per ACK by the rules: {_text(ours)}", engine="analytic")


@judge("EMOD-03")
def bounded(lab, claim):
    """The bound holds for alpha < beta at every p above 0, and fails for alpha = beta."""
    below, equal, *others = _bound(lab, "bounded_window")
    said = f"windows are bounded with {_said(below)}", f"they need not be with {_said(equal)}"
    return all_of(
        shown(below["verdict"] == "holds", said[0], engine="analytic"),
        shown(equal["verdict"] != "holds", said[1], engine="analytic"),
    ).noting(*map(_said, others))


@judge("EMOD-04")
def central_window(lab, claim):
    """Eq. 4 is the zero of the drift; the exact mean of ECN-mod over ACKs is compared with it."""
    _, _, ours = _rules(Polynomial())
    names = parameter_symbols(Polynomial())
    c1, alpha, c2, beta = (names[n] for n in ("c1", "alpha", "c2", "beta"))
    printed = (c1 / c2 * (1 - _P) / _P) ** (1 / (beta - alpha))
    gap = sp.symbols("g", positive=True)
    there = sp.powdenest(ours.subs(_W, printed).subs(beta, alpha + gap), force=True)
    left = sp.simplify(sp.sympify(there))
    numbers = {c1: 0.7, alpha: -0.5, c2: 0.3, gap: 1.25, _P: 0.2}
    zero = left == 0 or abs(sp.N(left.subs(numbers))) < 1e-12
    law, p = ECNMod(), 0.05
    exact = fc.window_distribution(law, p, reaction=PerMark()).window_per_packet
    window = float(law.c1 / law.c2) * (1 - p) / p
    said = f"at p = {p} ECN-mod has {told(exact)} in the mean for {told(window)}"
    return all_of(
        shown(zero, "the drift is zero at eq. 4", engine="analytic"),
        shown(abs(exact / window - 1) < 0.01, said, engine="analytic"),
    ).noting(value=exact, unit="packet")


@judge("EMOD-05", definition=True)
def tcp(lab, claim):
    """TCP's rules are those of the class with the four values, and give +1 in a window of ACKs."""
    (grow, fall, _), (wide, deep, _) = _rules(NewReno()), _rules(Polynomial())
    names = parameter_symbols(Polynomial())
    values = dict(zip((names[n] for n in ("c1", "alpha", "c2", "beta")), claim.value, strict=True))
    same = [sp.simplify(a - sp.nsimplify(b.subs(values))) for a, b in ((grow, wide), (fall, deep))]
    holds = same == [0, 0] and sp.simplify(_W * grow) == 1 and sp.simplify(fall - _W / 2) == 0
    why = f"+{_text(grow)} per ACK, {_W * grow} in a window of them, -{_text(fall)} per signal"
    return shown(holds, why, engine="analytic", value=claim.value)


@judge("EMOD-06")
def marks_per_trip(lab, claim):
    """Whether marks per round trip are within the range at the printed c1, searched over p; the
    limit of p w(p) for small p, which eq. 6 should give, is told.
    """
    law = ECNMod()
    (window,) = zero_drift(law, PerMark())
    names = parameter_symbols(law)
    limit = sp.limit(_P * window, _P, 0).subs(names["c2"], 0.125)
    ours = [float(limit.subs(names["c1"], c1)) for c1 in (0.025, 0.625)]
    figures = [float(limit.subs(names["c1"], c1)) for c1 in (0.0625, 0.125, 0.25)]
    printed, *others = _bound(lab, "marks_per_round_trip")
    return searched([printed], "analytic", claim.unit).noting(
        f"marks per round trip tend to {ours} at the printed c1 and to {figures} at those of the "
        "figures as p tends to 0; with c1 = 0.025 they are below 0.2 by the share p",
        *map(_said, others),
    )


@judge("EMOD-07", needs=("mixed",), readings=("every_mark",))
def equal_windows(lab, claim):
    """Windows at one queue to 5 %: at zero drift by the rules, and means over time in packets.

    Zero drift is what eq. 7 is derived from; other averages are told. As it stands NewReno reacts
    once in a window of data (2.1); in a reading it does for each mark.
    """
    law = ECNMod()
    mapped = EqualWindow().probability(0.1, law)
    printed = 1 / (1 + float(law.c2 / law.c1) * (2 * 0.9 / 0.1) ** 0.5)
    tcp = "a halving per mark" if lab.reading == "every_mark" else "one halving per round trip"
    rest, *others = (e for e in _bound(lab, "equal_windows") if e["definitions"]["tcp"] == tcp)
    holds = rest["verdict"] == "holds" and abs(float(mapped) - printed) < 1e-12
    runs = lab.packets("mixed")
    ratio = runs.values("flows.mod.window_mean") / runs.values("flows.newreno.window_mean")
    beside = near(1.0, ratio.mean(axis=0), tolerance=MUCH,
                  what="window of ECN-mod over NewReno's in one queue")  # fmt: skip
    return all_of(shown(holds, _said(rest), engine="analytic"), beside).noting(
        "other averages by the rules: " + "; ".join(map(_said, others))
    )


@judge("EMOD-08", needs=("mod", "newreno"), definition=True)
def every_mark(lab, claim):
    """Reactions over marked packets are 1 for ECN-mod to 1 %, below for NewReno; drops halve."""
    ratio = {
        name: of_flows(lab, name, "window_reductions")
        / (of_flows(lab, name, "mark_fraction") * of_flows(lab, name, "sent"))
        for name in ("mod", "newreno")
    }
    law, plain = with_symbols(ECNMod()), with_symbols(NewReno())
    one = fc.laws.law.Ack(sp.Integer(1), sp.Integer(0), sp.Symbol("R"))
    same = sp.simplify(law.on_loss(_W, one) - plain.on_loss(_W, one)) == 0
    count = near(
        1.0, ratio["mod"].mean(axis=0), tolerance=0.01, what="reactions over marks with ECN-mod"
    )
    fewer = ordered(ratio["newreno"], ratio["mod"], x=lab.experiment("mod").x,
                    what="reactions over marks, NewReno's below ECN-mod's")  # fmt: skip
    return all_of(count, fewer, shown(same, f"a loss takes {-law.on_loss(_W, one)} of both",
                                      engine="analytic"))  # fmt: skip
