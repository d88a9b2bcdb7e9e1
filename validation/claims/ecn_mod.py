"""Rules for the claims of the ECN-mod paper (Misra and Ott, 2003): numerals are its sections.

Unless a rule says otherwise ECN-mod is that with c1 = 0.0625, and goodputs are compared seed by
seed: runs of one seed have the same calls. Words of size are read so, for all claims: "clearly" is
2 % of the goodput, "essentially" 1 %, of losses 0.1 % of the packets, "significantly" 5 %.
"""

import dataclasses

import numpy as np
import sympy as sp

import fluidcc as fc
from fluidcc.laws.marking import EqualWindow
from fluidcc.laws.reaction import PerMark
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.laws.window.newreno import NewReno
from fluidcc.laws.window.polynomial import Polynomial
from fluidcc.papers.judging import Judgement, alike, all_of, judge, near, ordered, shown, told
from fluidcc.papers.samples import interval
from fluidcc.symbolic import parameter_symbols, with_symbols, zero_drift

_LINK = "links.bottleneck."
_USED, _COV = _LINK + "utilization_left", _LINK + "queue_cov"
_CLEAR, _MUCH = 0.02, 0.05
_W, _P = sp.Symbol("W", positive=True), sp.Symbol("p", positive=True)


def _own(lab, name, metric="goodput"):
    """A metric of the only group of an experiment, shape (points, seeds)."""
    return lab.packets(name).values(f"flows.{'newreno' if 'newreno' in name else 'mod'}.{metric}")


def _link(lab, name, path):
    return lab.packets(name).values(path)


def _below(lab, less, more, metric, what, unit="", **how):
    """That a metric of one experiment is below that of another, group or link."""
    values = _link if metric.startswith("links.") else _own
    one, other = values(lab, less, metric, **how), values(lab, more, metric, **how)
    return ordered(one, other, x=lab.experiment(less).x, what=what, unit=unit)


def _gain(lab, name, plain):
    """Goodput over that of NewReno, less one [%], shape (points, seeds)."""
    return 100 * (_own(lab, name) / _own(lab, plain) - 1)


def _bound(lab, name):
    """Readings of a bound, as `fluidcc bounds` judges them."""
    return lab.bound(f"ecn_mod.{name}")["bounds"]


def _also(judgement, words):
    """A judgement with what the fluid says beside it, which does not decide."""
    return dataclasses.replace(
        judgement, why=f"{judgement.why}; {words}", engine=f"{judgement.engine}+fluid"
    )


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
    share = PerMark().shares(_P, _W)
    grow, fall = sp.sympify(bare.on_ack(_W, one)), -sp.sympify(bare.on_mark(_W, one))
    return grow, fall, share.growing * grow - share.heard * fall


# ---- sections 1 to 3: rules ----


@judge("EMOD-01")
def marking_and_dropping(lab, claim):
    """Three bounds by packets: no harm by marks, none by drops to 10 %, some by drops from 15 % on.

    The paper speaks of any undesirable behaviour: a bound holds if it does by all measures of harm
    (marks: unused capacity, losses; drops: timeouts, unused capacity, unequal shares). The claim is
    contradicted if none holds by any measure.
    """
    entries = (*_bound(lab, "marks_do_no_harm"), *_bound(lab, "drops_do_harm"))
    told_of = {}
    for entry in entries:
        told_of.setdefault(entry["statement"], []).append(_said(entry))
    why = "; ".join(f"{words}: {', '.join(found)}" for words, found in told_of.items())
    holds = [entry["verdict"] == "holds" for entry in entries]
    verdict = "reproduced" if all(holds) else "not_reproduced" if any(holds) else "contradicted"
    return Judgement(verdict, why, engine="packets")


@judge("EMOD-02")
def drift(lab, claim):
    """The drift by the rules of the polynomial class is that of eq. 1, in both of its forms."""
    grow, fall, ours = _rules(Polynomial())
    forms = ((1 - _P) * grow - _P * fall, _P * grow * ((1 - _P) / _P - fall / grow))
    holds = all(sp.simplify(ours - form) == 0 for form in forms)
    return shown(holds, f"mean change per ACK by the rules: {_text(ours)}", engine="analytic")


@judge("EMOD-03")
def bounded(lab, claim):
    """The bound holds for alpha < beta at every p above 0, and fails for alpha = beta."""
    entries = _bound(lab, "bounded_window")
    holds = [entry["verdict"] == "holds" for entry in entries[:2]] == [True, False]
    return shown(holds, "; ".join(map(_said, entries)), engine="analytic")


@judge("EMOD-04")
def central_window(lab, claim):
    """Eq. 4 is the zero of the drift; the exact mean of ECN-mod over ACKs is compared with it."""
    _, _, ours = _rules(Polynomial())
    names = parameter_symbols(Polynomial())
    c1, alpha, c2, beta = (names[n] for n in ("c1", "alpha", "c2", "beta"))
    printed = (c1 / c2 * (1 - _P) / _P) ** (1 / (beta - alpha))
    gap = sp.symbols("g", positive=True)
    left = sp.simplify(sp.powdenest(ours.subs(_W, printed).subs(beta, alpha + gap), force=True))
    numbers = {c1: 0.7, alpha: -0.5, c2: 0.3, gap: 1.25, _P: 0.2}
    zero = left == 0 or abs(float(left.subs(numbers))) < 1e-12
    law, p = ECNMod(), 0.05
    exact = fc.stationary_window(law, p, reaction=PerMark()).mean
    window = float(law.c1 / law.c2) * (1 - p) / p
    why = (
        f"drift is zero there; at p = {p} ECN-mod has {told(exact)} in the mean for {told(window)}"
    )
    holds = zero and abs(exact / window - 1) < 0.01
    return shown(holds, why, engine="analytic", value=exact, unit="packet")


@judge("EMOD-05")
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
    """The limit of p w(p) for small p against the ends of the range, which eq. 6 should give."""
    law = ECNMod()
    (window,) = zero_drift(law, PerMark())
    names = parameter_symbols(law)
    limit = sp.limit(_P * window, _P, 0).subs(names["c2"], 0.125)
    ours = [float(limit.subs(names["c1"], c1)) for c1 in (0.025, 0.625)]
    figures = [float(limit.subs(names["c1"], c1)) for c1 in (0.0625, 0.125, 0.25)]
    entries = _bound(lab, "marks_per_round_trip")
    why = (
        f"marks per round trip tend to {ours} at the printed c1 and to {figures} at those of the "
        "figures; the ends of the open interval are reached only as p tends to 0, and with c1 = "
        "0.025 marks are below 0.2 by the share p; searched: "
    )
    holds = np.allclose(ours, claim.value) and all(0.2 < v < 5 for v in figures)
    return shown(bool(holds), why + "; ".join(map(_said, entries)), engine="analytic", value=ours,
                 unit=claim.unit)  # fmt: skip


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
    entries = [e for e in _bound(lab, "equal_windows") if e["definitions"]["tcp"] == tcp]
    holds = entries[0]["verdict"] == "holds" and abs(float(mapped) - printed) < 1e-12
    runs = lab.packets("mixed")
    ratio = runs.values("flows.mod.window_mean") / runs.values("flows.newreno.window_mean")
    beside = near(1.0, ratio.mean(axis=0), tolerance=_MUCH,
                  what="window of ECN-mod over NewReno's in one queue")  # fmt: skip
    return all_of(shown(holds, "; ".join(map(_said, entries)), engine="analytic"), beside)


@judge("EMOD-08", needs=("mod", "newreno"))
def every_mark(lab, claim):
    """Reactions over marked packets are 1 for ECN-mod to 1 %, below for NewReno; drops halve."""
    ratio = {
        name: _own(lab, name, "reactions")
        / (_own(lab, name, "mark_fraction") * _own(lab, name, "sent"))
        for name in ("mod", "newreno")
    }
    law, plain = with_symbols(ECNMod()), with_symbols(NewReno())
    one = fc.laws.law.Ack(sp.Integer(1), sp.Integer(0), sp.Symbol("R"))
    same = sp.simplify(law.on_loss(_W, one) - plain.on_loss(_W, one)) == 0
    count = near(1.0, ratio["mod"].mean(axis=0), tolerance=0.01, what="reactions over marks")
    fewer = ordered(ratio["newreno"], ratio["mod"], x=lab.experiment("mod").x,
                    what="NewReno's below ECN-mod's")  # fmt: skip
    return all_of(count, fewer, shown(same, f"a loss takes {-law.on_loss(_W, one)} of both",
                                      engine="analytic"))  # fmt: skip


# ---- section 4.1: web sources ----

_WEB = ("web_newreno", "web_mod", "web_mod_small")


@judge("EMOD-09", needs=("web_newreno", "web_mod"), readings=("small", "short"))
def web_goodput(lab, claim):
    """Both parts at c1 = 0.125, which the text prefers: alike, and ECN-mod's goodput higher."""
    plain, own = _own(lab, "web_newreno"), _own(lab, "web_mod")
    x = lab.experiment("web_mod").x
    return all_of(alike(own, plain, x=x, what="TCP goodput of ECN-mod over NewReno's"),
                  ordered(plain, own, x=x, what="NewReno below ECN-mod", unit="bit/s"))  # fmt: skip


@judge("EMOD-10", needs=("web_mod_small", "web_mod"), readings=("small", "short"))
def web_increase(lab, claim):
    """Goodput with c1 = 0.0625 is below that with 0.125."""
    return _below(lab, "web_mod_small", "web_mod", "goodput", "0.0625 below 0.125", "bit/s")


@judge("EMOD-12", needs=_WEB, readings=("small", "short"))
def web_marks(lab, claim):
    """Marks are higher with both c1 that the text names; not reproduced if with one alone."""
    parts = {
        c1: _below(lab, "web_newreno", name, "mark_fraction", f"marks of NewReno below c1 = {c1}")
        for c1, name in (("0.125", "web_mod"), ("0.0625", "web_mod_small"))
    }
    both = all_of(*parts.values())
    right = [c1 for c1, part in parts.items() if part.verdict == "reproduced"]
    if len(right) != 1:
        return both
    why = f"higher for c1 = {right[0]} alone: {both.why}"
    return dataclasses.replace(both, verdict="not_reproduced", why=why)


@judge("EMOD-13", needs=_WEB, readings=("small", "short"))
def web_losses(lab, claim):
    """Losses of all three are 0 to 0.1 % of the packets at every load, in the mean."""
    losses = 100 * np.stack([_own(lab, name, "loss_fraction") for name in _WEB]).mean(axis=0)
    worst = losses[int(np.argmax(losses.mean(axis=1)))]
    return near(0.0, worst, absolute=0.1, unit="%", what="largest losses over the loads")


@judge("EMOD-14", needs=("web_newreno", "web_mod"), readings=("small", "short"))
def web_variation(lab, claim):
    """Lower at all loads at c1 = 0.125, and the largest reduction over the loads against 30 %."""
    plain, own = _link(lab, "web_newreno", _COV), _link(lab, "web_mod", _COV)
    x, less = lab.experiment("web_mod").x, 100 * (1 - own / plain)
    k = int(np.argmax(less.mean(axis=1)))
    most = near(claim.value, less[k], unit="%", neutral=0.0,
                what=f"largest reduction, at {x[k]} calls")  # fmt: skip
    return all_of(most, ordered(own, plain, x=x, what="variation of ECN-mod below NewReno's"))


@judge("EMOD-15", needs=("web_newreno", "web_mod", "newreno", "mod", "full_newreno", "full_mod"))
def web_gain(lab, claim):
    """The gain of web sources (c1 = 0.125) at 200 calls is below that of 10 persistent flows.

    Section 4.2 says that few persistent flows gain most. All have p_max = 0.2, as the web sources
    do; the gain of persistent flows with p_max = 1 is told.
    """
    calls = lab.experiment("web_mod").x.index(200)
    few = lab.experiment("mod").x.index(10)
    web = _gain(lab, "web_mod", "web_newreno")[calls]
    lasting = _gain(lab, "mod", "newreno")[few]
    mean, half = interval(_gain(lab, "full_mod", "full_newreno")[few])
    order = ordered(web, lasting, unit="%",
                    what="gain of web sources below that of 10 persistent flows")  # fmt: skip
    why = f"{order.why}; with p_max = 1 these gain {told(mean, half, '%')}"
    return dataclasses.replace(order, why=why)


# ---- section 4.2: persistent flows ----

_FIFTH, _FULL = ("newreno", "mod"), ("full_newreno", "full_mod")
_EACH = (*_FIFTH, *_FULL)


def _points(lab, name, low, high):
    """Which points of an experiment over the number of flows lie in a range."""
    x = np.array(lab.experiment(name).x)
    return (x >= low) & (x <= high)


@judge("EMOD-11", needs=("mod", "mod_large"))
def aggressive(lab, claim):
    """c1 = 0.25 against 0.0625 at up to 50 flows: more variation, less use of the link.

    More flows leave windows of few packets, which no increase fits; the fluid's rightmost root at
    10 flows is told beside it.
    """
    few = _points(lab, "mod", 10, 50)
    x = [n for n, take in zip(lab.experiment("mod").x, few, strict=True) if take]
    cov = ordered(_link(lab, "mod", _COV)[few], _link(lab, "mod_large", _COV)[few], x=x,
                  what="variation with 0.0625 below that with 0.25")  # fmt: skip
    low, high = (_link(lab, n, _USED)[few][0] for n in ("mod_large", "mod"))
    used = ordered(low, high, what="use at 10 flows with 0.25 below that with 0.0625")
    roots = [
        told(lab.ask(fc.stability, lab.experiment(n).net(0))["rightmost"][0])
        for n in ("mod", "mod_large")
    ]
    return _also(
        all_of(cov, used), f"rightmost roots of the fluid at 10 flows {' and '.join(roots)} 1/s"
    )


@judge("EMOD-16", needs=_FIFTH)
def many(lab, claim):
    """Goodputs at 100 flows and more are alike."""
    keep = _points(lab, "mod", 100, np.inf)
    return alike(_own(lab, "mod")[keep], _own(lab, "newreno")[keep], what="ECN-mod over NewReno")


@judge("EMOD-17", needs=_FIFTH, readings=("small",))
def few(lab, claim):
    """At 10 flows ECN-mod's goodput is higher, and clearly so: by 2 % at least."""
    plain, own = (_own(lab, name)[0] for name in _FIFTH)
    order = ordered(plain, own, what="NewReno below ECN-mod at 10 flows", unit="bit/s")
    mean, half = interval(100 * (own / plain - 1))
    why = f"{order.why}; ECN-mod has {told(mean, half, '%')} more"
    weak = order.verdict == "reproduced" and mean < 100 * _CLEAR
    verdict = "ordering_only" if weak else order.verdict
    return Judgement(verdict, why, float(mean), float(half), "%")


_LOST = [f"{name}{at}" for at in ("", "@small", "@abrupt") for name in _FIFTH]


@judge("EMOD-18", needs=_LOST)
def losses(lab, claim):
    """Losses at 200 flows, under all readings at once: under-specified if they lie on both sides.

    What RED does above max_th is not printed for ECN-capable packets: it marks them, or drops them.
    """
    found = []
    for name in _LOST:
        runs = lab.packets(name)
        group = "newreno" if "newreno" in name else "mod"
        lost = 100 * runs.values(f"flows.{group}.loss_fraction")[-1]
        found.append(near(claim.value, lost, unit="%", what=runs.experiment.title))
    means = [part.value for part in found]
    ends = [min(means), max(means)]
    why = "; ".join(part.why for part in found)
    if any(part.verdict == "reproduced" for part in found):
        return Judgement("reproduced", why, ends, unit="%")
    both = ends[0] < claim.value < ends[1]
    return Judgement("under_specified" if both else "not_reproduced", why, ends, unit="%")


@judge("EMOD-19", needs=_EACH)
def stronger(lab, claim):
    """At 150 flows and more losses with p_max = 1 are below those with 0.2, for both."""
    keep = _points(lab, "mod", 150, np.inf)
    pairs = (("full_mod", "mod"), ("full_newreno", "newreno"))
    parts = []
    for full, fifth in pairs:
        more, less = (_own(lab, name, "loss_fraction")[keep] for name in (fifth, full))
        parts.append(ordered(less, more, what=f"losses of {fifth}, p_max = 1 below p_max = 0.2"))
    return all_of(*parts)


@judge("EMOD-20", needs=_FULL)
def full_goodput(lab, claim):
    """NewReno's goodput is below ECN-mod's over all numbers of flows."""
    return _below(lab, "full_newreno", "full_mod", "goodput", "NewReno below ECN-mod", "bit/s")


@judge("EMOD-21", needs=_FULL)
def decline(lab, claim):
    """The use of the link at 200 flows is below that at 50 for NewReno, alike (1 %) for ECN-mod."""
    x, ends = lab.experiment("full_mod").x, {}
    for name in _FULL:
        used = _link(lab, name, _USED)
        ends[name] = used[x.index(50)], used[-1]
    fall = ordered(ends["full_newreno"][1], ends["full_newreno"][0],
                   what="NewReno's use at 200 flows below that at 50")  # fmt: skip
    high = alike(ends["full_mod"][1], ends["full_mod"][0], usual=0.01, most=0.01,
                 what="ECN-mod's use at 200 flows over that at 50")  # fmt: skip
    rests = dict(zip(x, lab.rests("full_newreno").status, strict=True))
    lost = [n for n, status in rests.items() if status == "none"]
    return _also(all_of(fall, high), f"in the fluid NewReno has no rest at {lost} flows")


@judge("EMOD-22", needs=_FULL, readings=("small",))
def marks(lab, claim):
    """The largest share of marks against 85 %, and 99 % of what voice leaves used there."""
    shares = 100 * _own(lab, "full_mod", "mark_fraction")
    k = int(np.argmax(shares.mean(axis=1)))
    x = lab.experiment("full_mod").x
    rest = 100 * lab.rests("full_mod").values("flows.mod.signal")[k]
    size = near(claim.value, shares[k], unit="%", what=f"marks at {x[k]} flows")
    used = _link(lab, "full_mod", _USED)[k]
    kept = shown(used.mean() > 0.99, f"use there {told(used.mean())}", engine="packets")
    windows = _own(lab, "full_mod", "window_mean").mean(axis=1)
    ones = [n for n, window in zip(x, windows, strict=True) if window < 1.1]  # one packet, to 10 %
    words = f"section 1 has 80 to 90 %; the fluid marks {told(rest)} % there"
    if ones:
        words += (
            f"; windows stand at one packet from {ones[0]} flows on, so marks lose their effect"
        )
    both = all_of(size, kept)
    return _also(dataclasses.replace(both, value=size.value, half=size.half, unit="%"), words)


@judge("EMOD-23", needs=_FULL)
def variation(lab, claim):
    """Variation is lower at all flows, and the gap wider at 100 flows and more than below 100."""
    plain, own = _link(lab, "full_newreno", _COV), _link(lab, "full_mod", _COV)
    x = lab.experiment("full_mod").x
    many = _points(lab, "full_mod", 100, np.inf)
    gap = plain - own
    wider = ordered(gap[~many].mean(axis=0), gap[many].mean(axis=0), what="gap at few below many")
    return all_of(ordered(own, plain, x=x, what="variation of ECN-mod below NewReno's"), wider)


@judge("EMOD-24", needs=("full_mod",))
def uniform(lab, claim):
    """ECN-mod uses 99 % of what voice leaves at all flows, and loses 0.1 % of them at most."""
    used = _link(lab, "full_mod", _USED)
    lost = 100 * _own(lab, "full_mod", "loss_fraction")
    k = int(np.argmax(lost.mean(axis=1)))
    least = float(used.mean(axis=1).min())
    high = shown(least > 0.99, f"use {told(least)} at least", engine="packets",
                 otherwise="not_reproduced", value=least, unit="1")  # fmt: skip
    return all_of(high, near(0.0, lost[k], absolute=0.1, unit="%", what="largest losses"))


@judge("EMOD-25", needs=("web_load_newreno", "web_load_mod"))
def web_load(lab, claim):
    """As for persistent flows with p_max = 1: more goodput, less variation with ECN-mod (0.125)."""
    names = ("web_load_newreno", "web_load_mod")
    return all_of(
        _below(lab, *names, "goodput", "NewReno below ECN-mod", "bit/s"),
        _below(lab, *names[::-1], _COV, "variation of ECN-mod below NewReno's"),
    )


@judge("EMOD-34", needs=_EACH)
def sensitivity(lab, claim):
    """Spread of the use of the link over the flows, and its step from p_max = 0.2 to 1."""
    used = {name: _link(lab, name, _USED) for name in _EACH}
    spread = {name: np.ptp(used[name], axis=0) for name in _FULL}
    step = {n: np.abs(used[n] - used[f"full_{n}"]).mean(axis=0) for n in _FIFTH}
    return all_of(
        ordered(spread["full_mod"], spread["full_newreno"],
                what="spread over the flows of ECN-mod below NewReno's, p_max = 1"),
        ordered(step["mod"], step["newreno"],
                what="step from p_max = 0.2 to 1 of ECN-mod below NewReno's"),
    )  # fmt: skip


# ---- section 5: one queue ----

_FIFO = ("fifo_newreno", "fifo_mod")


@judge("EMOD-26", needs=_FIFO)
def fifo_goodput(lab, claim):
    """NewReno's goodput is below ECN-mod's at all loads; the fluid fills the link with both."""
    return _below(lab, "fifo_newreno", "fifo_mod", "goodput", "NewReno below ECN-mod", "bit/s")


@judge("EMOD-27", needs=("fifo_newreno", "fifo_mod_large"), readings=("small", "instant"))
def fifo_aggressive(lab, claim):
    """Goodput of ECN-mod with c1 = 0.25 is below NewReno's at all loads."""
    return _below(
        lab, "fifo_mod_large", "fifo_newreno", "goodput", "c1 = 0.25 below NewReno", "bit/s"
    )


@judge("EMOD-28", needs=(*_FIFO, "fifo_mod_large", "voice_alone"))
def voice(lab, claim):
    """At any load and by any of the three laws voice loses at most 1 % more packets than alone.

    Its throughput is what is not lost, and 1 % is what "essentially" means in all rules here: a
    curve of the throughput would not show less.
    """
    path = _LINK + "voice_loss_fraction"
    alone = 100 * _link(lab, "voice_alone", path)
    x, laws = lab.experiment("voice_alone").x, (*_FIFO, "fifo_mod_large")
    more = np.stack([100 * _link(lab, name, path) - alone for name in laws])
    law, k = np.unravel_index(int(np.argmax(more.mean(axis=2))), more.shape[:2])
    what = f"voice lost beside {lab.experiment(laws[law]).title}, more than alone, at {x[k]} calls"
    return near(0.0, more[law, k], absolute=1.0, unit="%", what=what)


@judge("EMOD-29", needs=("mixed",), readings=("every_mark", "instant", "small"))
def share(lab, claim):
    """How much less NewReno gets, in the mean over the loads, which are not printed."""
    runs = lab.packets("mixed")
    less = 100 * (1 - runs.values("flows.newreno.goodput") / runs.values("flows.mod.goodput"))
    rests = [lab.rests("mixed").values(f"flows.{g}.rate") for g in ("newreno", "mod")]
    ends = less.mean(axis=1)
    what = f"less than ECN-mod in the mean over the loads ({told(ends[0])} to {told(ends[-1])} %)"
    found = near(claim.value, less.mean(axis=0), unit="%", neutral=0.0, what=what)
    fluid = 100 * float(np.mean(1 - rests[0] / rests[1]))
    return Judgement(found.verdict, f"{found.why}; fluid {told(fluid)} %", found.value, found.half,
                     "%", "packets+fluid")  # fmt: skip


@judge("EMOD-30", needs=("mixed", "pair"))
def better_off(lab, claim):
    """At some load NewReno's goodput is significantly higher beside ECN-mod than beside NewReno."""
    beside, alone = (lab.packets(n).values("flows.newreno.goodput") for n in ("mixed", "pair"))
    gain = 100 * (beside / alone - 1)
    mean, half = interval(gain)
    k = int(np.argmax(mean - half))
    x = lab.experiment("mixed").x
    higher = [n for n, up in zip(x, mean > half, strict=True) if up]
    lower = [n for n, down in zip(x, mean < -half, strict=True) if down]
    why = f"{told(mean[k], half[k])} % at {x[k]} calls; higher at {higher}, lower at {lower}"
    verdict = "contradicted" if len(lower) == len(x) else "not_reproduced"
    return Judgement("reproduced" if higher else verdict, why, float(mean[k]), float(half[k]), "%")


@judge("EMOD-31", needs=_FIFO)
def jitter(lab, claim):
    """The queue's variation and the standard deviation of voice's delay are lower with ECN-mod."""
    return all_of(
        _below(lab, "fifo_mod", "fifo_newreno", _COV, "variation of ECN-mod below NewReno's"),
        _below(lab, "fifo_mod", "fifo_newreno", _LINK + "voice_delay_jitter",
               "deviation of voice's delay with ECN-mod below that with NewReno", "s"),
    )  # fmt: skip


@judge("EMOD-32", needs=("blind",))
def unaware(lab, claim):
    """TCP without ECN gets less than ECN-mod at all loads, and never less than a tenth of it."""
    runs = lab.packets("blind")
    plain, own = (runs.values(f"flows.{g}.goodput") for g in ("newreno", "mod"))
    worst = float((plain / own).min())
    fed = shown(worst > 0.1, f"at least {told(worst)} of ECN-mod's in any run", engine="packets")
    return all_of(
        ordered(plain, own, x=runs.x, what="without ECN below ECN-mod", unit="bit/s"), fed
    )


@judge("EMOD-33", needs=("mod", "mod_large", "full_mod", "full_mod_large", "fifo_mod",
                         "fifo_mod_large"))  # fmt: skip
def too_large(lab, claim):
    """The largest loss of use with c1 = 0.25 for 0.0625 anywhere is 5 % at least."""
    pairs = (("mod_large", "mod"), ("full_mod_large", "full_mod"), ("fifo_mod_large", "fifo_mod"))
    lost, where = [], []
    for large, own in pairs:
        gap = 100 * (1 - _link(lab, large, _USED) / _link(lab, own, _USED))
        k = int(np.argmax(gap.mean(axis=1)))
        lost.append(gap[k])
        where.append(f"{large} at {lab.experiment(large).x[k]}")
    k = int(np.argmax([v.mean() for v in lost]))
    mean, half = interval(lost[k])
    why = f"{where[k]} calls or flows uses {told(mean, half, '%')} less than with 0.0625"
    if mean <= half:
        return Judgement("not_reproduced", why, mean, half, "%")
    verdict = "reproduced" if mean >= 100 * _MUCH else "ordering_only"
    return Judgement(verdict, why, float(mean), float(half), "%")


@judge("EMOD-35", needs=("mixed", "pair", "blind", "blind_pair"))
def fairness(lab, claim):
    """TCP's goodput beside ECN-mod is at most 5 % below that beside NewReno at any load.

    For NewReno with ECN and for TCP without; a gain is no penalty. ECN-mod gets more than either.
    """
    parts = []
    for beside, alone, words in (("mixed", "pair", "NewReno's"), ("blind", "blind_pair", "TCP's")):
        runs, other = lab.packets(beside), lab.packets(alone)
        own, rivals = (runs.values(f"flows.{g}.goodput") for g in ("newreno", "mod"))
        before = other.values("flows.newreno.goodput").mean(axis=1)
        change = own.mean(axis=1) / before - 1
        k = int(np.argmin(change))
        fine = change >= -_MUCH
        verdict = "reproduced" if fine.all() else "not_reproduced" if fine.any() else "contradicted"
        why = f"{words} goodput beside ECN-mod over that beside NewReno: {100 * change[k]:+.1f} %"
        parts.append(
            Judgement(verdict, f"{why} at the worst, {runs.x[k]} calls", float(change[k]), unit="1")
        )
        parts.append(
            ordered(own.mean(axis=0), rivals.mean(axis=0), unit="bit/s",
                    what=f"{words} below ECN-mod's in the mean over the loads")
        )  # fmt: skip
    return all_of(*parts)
