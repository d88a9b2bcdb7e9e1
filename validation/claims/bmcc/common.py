"""What the rules for the claims of the BMCC paper (Qazi et al., 2010) share.

Numerals are sections of the paper. Starved means a goodput below a tenth of the other family's,
much larger at least twice as large. Windows over time are those of the first seed. A bound is
judged under all plausible definitions.
"""

import dataclasses

import numpy as np

import fluidcc as fc
from fluidcc.laws.load_code import ADPM
from fluidcc.laws.window.bmcc import BMCC

from ...lab.judging import Judgement, ordered, searched
from ...lab.samples import interval

LAW, CODE, _PERIOD = BMCC(), ADPM(), 0.2
_TENTH = 0.1
_TWICE = 2.0


def by_bound(lab, name, engine, unit="", apart=()):
    """Judge by a bound under all plausible definitions, which are named; those in `apart` are told
    but not judged.
    """
    found = lab.bound(name)["bounds"]
    told_alone = [b for b in found if set(b["definitions"].values()) & set(apart)]
    judged = searched([b for b in found if b not in told_alone], engine, unit)
    return judged.noting(
        *(f"told but not judged: {searched([b], engine, unit).said}" for b in told_alone)
    )


def seen(lab, name, metric="goodput"):
    """A metric of BMCC and of SACK at the first point: two arrays of shape (seeds,)."""
    runs = lab.packets(name)
    return tuple(runs.values(f"flows.{group}.{metric}")[0] for group in ("bmcc", "sack"))


def rest(lab, name):
    """Equilibrium of the fluid model at the first point, with the load factor known as it is."""
    net = lab.experiment(name).net(0)
    told_it = [n for n, f in zip(net.flow_names, net.flows, strict=True) if f.feedback.loads]
    changes = {f"flows.{n}.estimator": "exact" for n in told_it}
    return lab.ask(fc.equilibrium, fc.replace(net, changes))


def rates_told(one, other):
    """Goodputs of both families in words."""
    ends = ["{:.4g} ± {:.3g} packets/s".format(*interval(v / 8000)) for v in (one, other)]
    return f"BMCC {ends[0]}, SACK {ends[1]}"


def starved(lab, name, *, victim="sack"):
    """Judge that a family is starved by the goodput of its flows over that of the other's."""
    bmcc, sack = seen(lab, name)
    own, other = (sack, bmcc) if victim == "sack" else (bmcc, sack)
    mean, half = (float(v) for v in interval(own / (own + other)))
    ratio = mean / (1 - mean)
    why = f"{lab.experiment(name).title}: {rates_told(bmcc, sack)}; {ratio:.2g} times the other's"
    verdict = "not_reproduced"
    if ratio <= _TENTH:
        verdict = "reproduced"
    elif mean + half < 0.5:
        verdict = "ordering_only"
    elif mean - half > 0.5:
        verdict = "contradicted"
    return Judgement(verdict, why, ratio, None, "ratio of goodputs")


_METRICS = {
    "goodput": (8000.0, "goodputs", "packets/s"),
    "window_mean": (1.0, "mean windows", "packets"),
}


def much(lab, name, metric="goodput"):
    """Judge that a metric of SACK is much smaller than that of BMCC."""
    scale, words, unit = _METRICS[metric]
    high, low = (v / scale for v in seen(lab, name, metric))
    what = f"{lab.experiment(name).title}: {words}, SACK below BMCC"
    found = ordered(low, high, what=what, unit=unit)
    if found.verdict == "reproduced" and high.mean() < _TWICE * low.mean():
        said = f"{found.said}, but less than twice"
        return dataclasses.replace(found, verdict="ordering_only", said=said)
    return found


def flow_windows(lab, name):
    """Window samples of the BMCC flows after the warmup, and the step between them [s]."""
    runs = lab.packets(name)
    times, windows = runs.series(0, "flow_window", "bmcc")
    return windows[times > runs.experiment.warmup], float(times[1] - times[0])


def steps(lab, name):
    """Growth in t_p, and the share that a decrease keeps: medians over the samples."""
    windows, step = flow_windows(lab, name)
    ratios = (windows[1:] / windows[:-1]).ravel()
    growth = float(np.exp(np.median(np.log(ratios[ratios > 1])) * _PERIOD / step))
    return growth, float(np.median(ratios[ratios < 0.9]))
