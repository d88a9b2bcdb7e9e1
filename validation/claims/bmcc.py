"""Rules for the claims of the BMCC paper (Qazi et al., 2010): numerals are its sections.

Starved means a goodput below a tenth of the other family's, much larger at least twice as large.
Windows over time are those of the first seed. A bound that holds under some plausible definitions
and not under others gives "ordering_only".
"""

import dataclasses

import numpy as np
import sympy as sp

import fluidcc as fc
from fluidcc.laws.adpm import ADPM
from fluidcc.laws.law import Ack, Arrival
from fluidcc.laws.queue.load_factor import Load, LoadFactor
from fluidcc.laws.window.bmcc import BMCC
from fluidcc.papers.judging import Judgement, alike, all_of, judge, near, ordered, shown, told
from fluidcc.papers.loads import estimates, load_factors
from fluidcc.papers.samples import Runs, interval
from fluidcc.scenario.files import dumps

_LAW, _CODE, _PERIOD = BMCC(), ADPM(), 0.2
_TENTH = 0.1
_MUCH = 2.0


def _by_bound(lab, name, engine, unit="", apart=()):
    """Reproduced if a bound holds under all plausible definitions, all of which are named; those
    in `apart` are told but not judged.
    """
    found, parts = lab.bound(name)["bounds"], []
    for b in found:
        words = ", ".join(f"{key.replace('_', ' ')}: {v}" for key, v in b["definitions"].items())
        value = f"{b['worst']['value']:.6g} {unit}".rstrip() if b["worst"] else "no"
        parts.append(f"{b['verdict']} ({words or 'as printed'}; {value} in the worst case)")
    why = f"{found[0]['statement']}: " + "; ".join(parts).replace("eta_0", "15 %")
    judged = [b for b in found if not set(b["definitions"].values()) & set(apart)]
    kept = [b["verdict"] == "holds" for b in judged]
    worst = max(judged, key=lambda b: b["largest_excess"] or 0.0)["worst"]
    return shown(all(kept), why, engine=engine, value=worst and worst["value"], unit=unit,
                 otherwise="ordering_only" if any(kept) else "contradicted")  # fmt: skip


def _seen(lab, name, metric="goodput", groups=("bmcc", "sack"), k=0):
    """A metric of both groups at a point: two arrays of shape (seeds,)."""
    runs = lab.packets(name)
    return tuple(runs.values(f"flows.{group}.{metric}")[k] for group in groups)


def _rest(lab, name):
    """Equilibrium of the fluid model at the first point, with the load factor known as it is."""
    net = lab.experiment(name).net(0)
    told_it = [n for n, f in zip(net.flow_names, net.flows, strict=True) if f.feedback.loads]
    changes = {f"flows.{n}.estimator": "exact" for n in told_it}
    return lab.ask(fc.equilibrium, fc.replace(net, changes))


def _rates_told(one, other, names=("BMCC", "SACK")):
    ends = ["{:.4g} ± {:.3g} packets/s".format(*interval(v / 8000)) for v in (one, other)]
    return f"{names[0]} {ends[0]}, {names[1]} {ends[1]}"


def _starved(lab, name, *, victim="sack", k=0):
    """Judge that a family is starved by the goodput of its flows over that of the other's."""
    bmcc, sack = _seen(lab, name, k=k)
    own, other = (sack, bmcc) if victim == "sack" else (bmcc, sack)
    mean, half = (float(v) for v in interval(own / (own + other)))
    ratio = mean / (1 - mean)
    why = f"{lab.experiment(name).title}: {_rates_told(bmcc, sack)}; {ratio:.2g} times the other's"
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


def _much(lab, name, metric="goodput"):
    """Judge that a metric of SACK is much smaller than that of BMCC."""
    scale, words, unit = _METRICS[metric]
    high, low = (v / scale for v in _seen(lab, name, metric))
    what = f"{lab.experiment(name).title}: {words}, SACK below BMCC"
    found = ordered(low, high, what=what, unit=unit)
    if found.verdict == "reproduced" and high.mean() < _MUCH * low.mean():
        return dataclasses.replace(
            found, verdict="ordering_only", why=f"{found.why}; less than twice"
        )
    return found


def _windows(lab, name):
    """Window samples of the BMCC flows after the warmup, and the step between them [s]."""
    runs = lab.packets(name)
    times, windows = runs.series(0, "flow_window", "bmcc")
    return windows[times > runs.experiment.warmup], float(times[1] - times[0])


def _steps(lab, name):
    """Growth in t_p, and the share that a decrease keeps: medians over the samples."""
    windows, step = _windows(lab, name)
    ratios = (windows[1:] / windows[:-1]).ravel()
    growth = float(np.exp(np.median(np.log(ratios[ratios > 1])) * _PERIOD / step))
    return growth, float(np.median(ratios[ratios < 0.9]))


def _to_fair(lab, name):
    """Seconds after the second flow's arrival until the Jain index of the rates of both, in means
    over 5 s, is 0.9; infinite where it is not within 95 s.
    """
    runs, rates = lab.packets(name), []
    for group in ("first", "second"):
        times, own = runs.series(0, "flow_acked_rate", group)
        rates.append(np.convolve(np.nan_to_num(own[:, 0]), np.full(100, 0.01), "same"))
    jain = sum(rates) ** 2 / np.maximum(2 * sum(r**2 for r in rates), 1.0)
    there = times[(jain >= 0.9) & (times > 100.0) & (times <= 195.0)]
    return float(there[0]) - 100.0 if there.size else np.inf


@judge("BMCC-01", needs=("ternary", "ternary_arrivals", "three_flows"))
def three_codes(lab, claim):
    """VCP as three codes: low mean queue is at most a tenth of the pipe; slow is at least three
    times the time of BMCC until two flows have a Jain index of 0.9.
    """
    queue = lab.packets("ternary").values("links.bottleneck.queue_mean")[0]
    vcp, own = (_to_fair(lab, n) for n in ("ternary_arrivals", "three_flows"))
    said = f"VCP's three codes: queue {told(*interval(queue), 'packets')}"
    low = shown(queue.mean() <= 22.5, said, engine="packets", otherwise="not_reproduced")
    ends = [f"after {t:.3g} s" if np.isfinite(t) else "not within 95 s" for t in (vcp, own)]
    slow = shown(
        np.isfinite(own) and vcp >= 3 * own,
        f"a second flow on 100 Mbit/s brings the Jain index of the rates to 0.9 {ends[0]}, with "
        f"BMCC {ends[1]}",
        engine="packets", otherwise="not_reproduced",
    )  # fmt: skip
    open_ = Judgement(
        "under_specified",
        "the paper gives no measure of 'little benefit'",
        float(vcp) if np.isfinite(vcp) else None,
        unit="s",
    )
    return all_of(low, slow, open_)


@judge("BMCC-02", needs=("long_paths", "long_paths_sack", "three_flows"), readings=("target",))
def long_paths(lab, claim):
    """High bandwidth-delay product: 300 ms on 45 Mbit/s, and the paper's own flows of 150 to 250 ms
    on 100 Mbit/s. Efficient and fair mean a utilisation and a Jain index of at least 0.9, a low
    queue at most a tenth of the pipe, negligible a loss of at most 0.1 %; at 300 ms files take less
    time than beside SACK over droptail. If all hold in one of both cases: ordering only.
    """
    runs, beside, alone = (lab.packets(n) for n in ("long_paths", "long_paths_sack", "three_flows"))
    link = "links.bottleneck"
    use, queue = (runs.at(300, f"{link}.{m}").mean() for m in ("utilization", "queue_mean"))
    jain, loss = (runs.at(300, f"flows.bmcc.{m}").mean() for m in ("jain", "loss_fraction"))
    files, others = (r.at(300, "flows.ahead.transfer_mean").mean() for r in (runs, beside))
    far = [use >= 0.9, jain >= 0.9, queue <= 168.75, loss <= 1e-3, files < others]
    own_use, own_queue, own_loss = (
        alone.values(f"{link}.{m}").mean() for m in ("utilization", "queue_mean", "drop_fraction")
    )
    rates = np.array([alone.values(f"flows.{n}.goodput")[0] for n in ("first", "second", "third")])
    own_jain = float(np.mean(rates.sum(axis=0) ** 2 / (3 * (rates**2).sum(axis=0))))
    own = [own_use >= 0.9, own_jain >= 0.9, own_queue <= 250, own_loss <= 1e-3]
    why = (
        f"three flows of 150 to 250 ms alone on 100 Mbit/s: utilisation {own_use:.3f}, Jain index "
        f"{own_jain:.3f}, queue {own_queue:.2g} of 2500 packets, {100 * own_loss:.2g} % lost: "
        f"{sum(own)} of 4 hold; two flows of 300 ms on 45 Mbit/s, a round trip longer than the "
        f"router's 200 ms: utilisation {use:.3f}, Jain index {jain:.3f}, queue {queue:.3g} of 1687 "
        f"packets, {100 * loss:.2g} % lost, files take {files:.3g} s ({others:.3g} s beside SACK "
        f"over droptail): {sum(far)} of 5 hold"
    )
    less = "ordering_only" if all(own) or all(far) else "not_reproduced"
    return shown(all(own) and all(far), why, engine="packets", otherwise=less,
                 value=[float(own_use), float(use)], unit="utilisation")  # fmt: skip


@judge("BMCC-03")
def load_factor(lab, claim):
    """Eq. 1 from the router's rules, with symbols."""
    arrived, queue, capacity, gamma = sp.symbols("lambda q C gamma", positive=True)
    law = LoadFactor(gamma=gamma)
    memory = Load(arrived, queue, sp.Integer(0))
    made = law.on_tick(memory, Arrival(0, 0, queue, capacity)).factor
    printed = (arrived + sp.Rational(3, 4) * queue) / (gamma * capacity * sp.Rational(1, 5))
    rest = sp.simplify(sp.nsimplify(made - printed, rational=True))
    value = float(rest) if rest.is_number else None
    return shown(rest == 0, f"router's sample less eq. 1: {rest}", engine="analytic", value=value)


@judge("BMCC-04")
def lag(lab, claim):
    """Below u the mean estimate is off after any number of packets; from u on after none."""
    errors = [float(_CODE.mean_error(load, 10.0)) for load in (0.2, 0.5, 0.8, 0.95, 1.05, 1.15)]
    at_once = [1.0 + float(_CODE.decode(1.0, h, 1.2)) for h in np.linspace(0, 0.99, 12)]
    why = (
        f"mean error 10 packets after a load above u: {min(errors):.3g} to {max(errors):.3g}; one "
        f"packet at f = 1.2 sets the estimate to {min(at_once):.3g}"
    )
    holds = min(errors) > 0 and min(at_once) == max(at_once) == 1.2
    return shown(holds, why, engine="analytic", value=max(errors), unit="1")


@judge("BMCC-05")
def hash_law(lab, claim):
    """Shares of evenly drawn hashes in each part, and what a load of 5 % is told as."""
    values = np.array([float(_CODE.hash_value(h)) for h in (np.arange(4000) + 0.5) / 4000])
    shares = np.histogram(values, [0.15, 0.75, 1.0, 1.2])[0] / len(values)
    low = float(_CODE.coded(0.05))
    holds = np.allclose(shares, claim.value, atol=1e-3) and low == 0.15
    why = f"shares {', '.join(f'{s:.3g}' for s in shares)}; 5 % is told as {100 * low:g} %"
    return shown(bool(holds), why, engine="analytic", value=shares.tolist(), unit=claim.unit)


@judge("BMCC-06")
def concave(lab, claim):
    """The map of the load from one sample to the next, and whether its steps shrink. Loads below
    15 % do not occur in eq. 2, as 3.2 rounds them up: they are told but not judged.
    """
    names = ("bmcc.increase_map", "bmcc.concave")
    return all_of(*(_by_bound(lab, n, "analytic", apart=("any load",)) for n in names))


@judge("BMCC-07")
def same_growth(lab, claim):
    """Growth in equal times at any two round trips: the value is their ratio less 1."""
    found = _by_bound(lab, "bmcc.same_growth", "analytic")
    return dataclasses.replace(found, value=abs(found.value - 1), unit=claim.unit)


@judge("BMCC-08", needs=("three_flows",))
def equal_rates(lab, claim):
    """Rates of two flows of different round trips: alike within 10 %; beside, those of figure 1."""
    found = _by_bound(lab, "bmcc.equal_rates", "packets", "times")
    runs = lab.packets("three_flows")
    rates = (
        runs.values(f"flows.{n}.goodput")[0].mean() / 1e6 for n in ("first", "second", "third")
    )
    why = (
        f"{found.why}; the paper's flows of 150, 200 and 250 ms get "
        f"{', '.join(f'{r:.3g}' for r in rates)} Mbit/s, 100 to 200 s after the last arrival"
    )
    return dataclasses.replace(found, why=why, unit=claim.unit)


@judge("BMCC-09")
def decrease_factor(lab, claim):
    """Eq. 6 by the law at both ends and half way."""
    ends = [float(_LAW.kept(load)) for load in (1.0, 1.2)]
    middle = float(_LAW.kept(1.1)) - sum(ends) / 2
    why = f"shares kept: {ends[0]:.4g} at f = 1, {ends[1]:.4g} at 1.2, {middle:.1g} off a line"
    holds = np.allclose(ends, claim.value) and abs(middle) < 1e-12
    return shown(bool(holds), why, engine="analytic", value=ends)


@judge("BMCC-10")
def loss_response(lab, claim):
    """What a loss and a mark leave of a window, by the law."""
    ack = Ack(1.0, 0.0, 0.1, 0.5)
    kept = [
        1 + float(change) / 100 for change in (_LAW.on_loss(100.0, ack), _LAW.on_mark(100.0, ack))
    ]
    why = f"a loss leaves {kept[0]:.3g} of the window, a (11) mark {kept[1]:.3g}"
    return near(claim.value, [kept[0]], engine="analytic", what=why)


def _shares_after(lab, delay):
    """Rates of the second and third flow over their fair shares, around a time after arrival, and
    when, in means over 5 s, they first reach 70 % within 100 s.
    """
    runs, out = lab.packets("three_flows"), []
    for k, group in enumerate(("second", "third")):
        times, rates = runs.series(0, "flow_acked_rate", group)
        begin, fair = 100.0 * (k + 1), 100e6 / (k + 2)
        near_it = (times > begin + delay - 5) & (times <= begin + delay + 5)
        smooth = np.convolve(np.nan_to_num(rates[:, 0]), np.full(100, 0.01), "same") / fair
        there = np.flatnonzero((smooth >= 0.7) & (times > begin) & (times <= begin + 100))
        reached = f"after {times[there[0]] - begin:.3g} s" if there.size else "not at all"
        out.append((float(rates[near_it, 0].mean() / fair), reached))
    return out


@judge("BMCC-11", needs=("three_flows",), readings=("per_rtt", "target"))
def near_fair(lab, claim):
    """Quickly: 20 s after the arrival, a fifth of the time to the next one, the flow has 70 %."""
    (second, t2), (third, t3) = _shares_after(lab, 20.0)
    why = (
        f"20 s after arrival the second and third flow have {100 * second:.3g} and "
        f"{100 * third:.3g} % of their fair share; within 100 s 70 % are reached {t2} and {t3}; "
        "additive increase adds 25 packets/s each second to a rate (1/t_p^2), a third of the link "
        "is 4167 packets/s"
    )
    value = 100 * min(second, third)
    return shown(value >= 70, why, engine="packets", value=value, unit=claim.unit,
                 otherwise="not_reproduced")  # fmt: skip


@judge("BMCC-12", needs=("three_flows",), readings=("two_flows",))
def allocation(lab, claim):
    """Three rates of 50 Mbit/s do not fit on 100 Mbit/s; what comes out in the last 100 s. Read as
    of the time when two flows are there: rates from 150 to 200 s, first seed.
    """
    each, link = claim.value
    runs = lab.packets("three_flows")
    if lab.reading == "two_flows":
        rates = []
        for group in ("first", "second"):
            times, own = runs.series(0, "flow_acked_rate", group)
            rates.append(float(np.nanmean(own[(times > 150) & (times <= 200), 0])) / 1e6)
        said = [f"{n} flow, 50 to 100 s after the second arrival" for n in ("first", "second")]
        parts = [near(each, [r], unit="Mbit/s", what=w) for r, w in zip(rates, said, strict=True)]
        whole = near(link, [sum(rates)], unit="Mbit/s", what="both")
        return dataclasses.replace(all_of(*parts, whole), value=[*rates, sum(rates)])
    rates = [runs.values(f"flows.{n}.goodput")[0] / 1e6 for n in ("first", "second", "third")]
    use = runs.values("links.bottleneck.utilization")[0]
    fluid = 8e-3 * np.mean(_rest(lab, "three_flows")["flows"]["first"]["rate"])
    why = (
        f"three times {each} is more than {link} Mbit/s, so all three cannot have it; packets, 100 "
        f"to 200 s after the third arrival: {', '.join(told(r.mean()) for r in rates)} Mbit/s, "
        f"{100 * use.mean():.3g} % of the link; fluid at rest: {fluid:.3g} Mbit/s each"
    )
    return shown(3 * each <= 1.1 * link, why, engine="analytic+packets+fluid",
                 value=[*(float(r.mean()) for r in rates), float(sum(rates).mean())],
                 unit=claim.unit)  # fmt: skip


@judge("BMCC-13", needs=("three_flows",))
def tracking(lab, claim):
    """Quickly: at the end of its period of 200 ms a load is known within 5 % in nine of ten. Loads
    and numbers of packets are those of the runs, estimates are made from them by the rule of 3.2.
    """
    runs = lab.packets("three_flows")
    ends, loads = load_factors(runs)
    shares = []
    for k, group in enumerate(("first", "second", "third")):
        times, rates = runs.series(0, "flow_acked_rate", group)
        packets = np.nan_to_num(rates[1:, 0]) * (times[1] - times[0]) / 8000
        count = len(loads) - 1
        periods = packets.reshape(-1, 4).sum(axis=1)[
            1 : count + 1
        ]  # loads are told in the next one
        found, coded = estimates(loads[:-1], periods, seed=k + 1), np.clip(loads[:-1], 0.15, 1.2)
        after = ends[:-1] > 100.0 * k + 2.0
        shares.append(float(np.mean(np.abs(found - coded)[after] <= 0.05 * coded[after])))
    why = (
        f"known within 5 % in {', '.join(f'{100 * s:.3g} %' for s in shares)} of the periods; "
        "made by the receivers' rule for as many packets as each flow got, not the senders' own"
    )
    return shown(min(shares) >= 0.9, why, engine="packets+analytic", value=min(shares), unit="1",
                 otherwise="not_reproduced")  # fmt: skip


@judge("BMCC-14", needs=("two_bmcc_router", "two_droptail", "two_red"))
def little_variation(lab, claim):
    """Coefficient of variation of each flow's window over the whole time: at most 0.2. If it is
    only below that over both other routers: ordering only.
    """
    found = []
    for name in ("two_bmcc_router", "two_droptail", "two_red"):
        windows = _windows(lab, name)[0]
        found.append(windows.std(axis=0) / windows.mean(axis=0))
    own, *others = found
    texts = [" and ".join(f"{v:.2g}" for v in each) for each in found]
    why = (
        f"coefficients of variation of both windows: {texts[0]} over a BMCC router, {texts[1]} "
        f"over droptail, {texts[2]} over RED"
    )
    below = max(own) < min(np.concatenate(others))
    return shown(max(own) <= 0.2 and below, why, engine="packets", value=own.tolist(), unit="1",
                 otherwise="ordering_only" if below else "not_reproduced")  # fmt: skip


@judge("BMCC-15")
def first_estimate(lab, claim):
    """The load that a sender which knows none grows by."""
    grown = [float(_LAW.on_ack(1.0, Ack(1.0, 0.2, 0.2, f))) for f in (0.0, claim.value)]
    why = f"no load known: growth by {1 + grown[0]:.4g} per t_p, at 15 % by {1 + grown[1]:.4g}"
    return shown(grown[0] == grown[1], why, engine="analytic", value=float(_LAW.lowest))


@judge("BMCC-16", needs=("two_droptail", "two_droptail_300ms"), readings=("pipe",))
def droptail_cycle(lab, claim):
    """Growth per t_p and share kept by decreases, from the samples of windows."""
    parts, values = [], []
    for name, trip in (("two_droptail", "40 ms"), ("two_droptail_300ms", "300 ms")):
        growth, kept = _steps(lab, name)
        parts += [
            near(claim.value[0], [growth], what=f"{trip}: growth per t_p"),
            near(claim.value[1], [kept], what="share kept at a drop"),
        ]
        values += [growth, kept]
    found, most = all_of(*parts), lab.experiment("two_droptail_300ms").net(0).flows[0].window
    why = (
        f"{found.why}; 300 ms with a largest window of {float(most.max_window):g} packets, which "
        "the paper does not state"
    )
    return dataclasses.replace(found, why=why, value=values, half=None)


@judge("BMCC-17")
def no_convergence(lab, claim):
    """Common increases and decreases of two windows, with symbols."""
    one, other, up, down = sp.symbols("w1 w2 a b", positive=True)
    fixed = sp.simplify(up * down * one / (up * down * other) - one / other) == 0
    why = "a common factor up or down leaves the ratio of two windows as it is"
    return shown(fixed, why, engine="analytic")


@judge("BMCC-18", needs=("two_droptail",))
def no_change(lab, claim):
    """Unmarked packets at the first estimate, and no marks over droptail."""
    hashes = np.linspace(0, 0.999, 200)
    moved = max(abs(float(_CODE.decode(0.15, h, 0.0))) for h in hashes)
    later = min(float(_CODE.decode(1.2, h, 0.0)) for h in hashes)
    marks = lab.packets("two_droptail").values("links.bottleneck.marks").sum()
    why = (
        f"unmarked packets move an estimate of 15 % by {moved:g}, and droptail marks none "
        f"({marks:g} marks); an estimate of 120 % they would lower by up to {-later:.3g}"
    )
    return shown(moved == 0 and marks == 0, why, engine="analytic+packets", value=moved)


@judge("BMCC-19", needs=("two_red", "two_red_300ms"))
def red_cycle(lab, claim):
    """Growth per t_p and share kept over RED; the estimate decays if a flow gets more packets
    between two back-offs than bring an estimate of 120 % below 20 % with a chance of 95 %.
    """
    enough = float(np.log(0.05) / np.log(_CODE.share_above(0.2, 0.15, 1.0)))
    parts, values = [], []
    for name, trip in (("two_red", "40 ms"), ("two_red_300ms", "300 ms")):
        growth, kept = _steps(lab, name)
        runs = lab.packets(name)
        span = runs.experiment.until - runs.experiment.warmup
        rates, counts = (runs.values(f"flows.bmcc.{m}")[0] for m in ("goodput", "reactions"))
        count = float(counts.mean() / np.sum(runs.experiment.net(0).flows[0].n))  # of one flow
        between = float(rates.mean() / 8000 * span) / count
        said = f"{between:.3g} packets between back-offs, {enough:.3g} needed for the decay to 15 %"
        parts += [
            near(3.0, [growth], what=f"{trip}: growth per t_p"),
            near(claim.value, [kept], what="share kept at a mark"),
            shown(between >= enough, said, engine="packets+analytic", otherwise="not_reproduced"),
        ]
        values += [growth, kept]
    return dataclasses.replace(all_of(*parts), value=values, half=None, unit=claim.unit)


def _both(lab, red, droptail, metric):
    """A metric of two BMCC flows over RED and over droptail at 40 and 300 ms."""
    return [
        np.stack([lab.packets(n).values(f"flows.bmcc.{metric}")[0] for n in names])
        for names in (red, droptail)
    ]


_REDS, _DROPS = ("two_red", "two_red_300ms"), ("two_droptail", "two_droptail_300ms")


@judge("BMCC-20", needs=(*_REDS, *_DROPS), readings=("pipe",))
def lower_windows(lab, claim):
    """Mean windows over RED and droptail at 40 and 300 ms."""
    red, drop = _both(lab, _REDS, _DROPS, "window_mean")
    return ordered(red, drop, x=("40 ms", "300 ms"), unit="packets",
                   what="mean windows, RED below droptail")  # fmt: skip


@judge("BMCC-21", needs=(*_REDS, *_DROPS))
def not_faster(lab, claim):
    """A round trip with larger windows over droptail, but no larger goodput."""
    windows, rates = (_both(lab, _REDS, _DROPS, m) for m in ("window_mean", "goodput"))
    gaps = [interval(pair[1] - pair[0]) for pair in (windows, rates)]
    found = (gaps[0][0] > gaps[0][1]) & (gaps[1][0] < gaps[1][1])
    why = "; ".join(
        f"{t}: windows {windows[0][k].mean():.4g} over RED, {windows[1][k].mean():.4g} over "
        f"droptail, goodputs {rates[0][k].mean() / 8000:.4g}, {rates[1][k].mean() / 8000:.4g} "
        "packets/s"
        for k, t in enumerate(("40 ms", "300 ms"))
    )
    return shown(bool(found.any()), why, engine="packets", otherwise="not_reproduced")


@judge("BMCC-22", needs=("mix_droptail",))
def larger_share(lab, claim):
    """Windows and goodputs at 40 ms."""
    return all_of(_much(lab, "mix_droptail"), _much(lab, "mix_droptail", "window_mean"))


@judge("BMCC-23", needs=("mix_droptail_300ms",), readings=("pipe", "wide"))
def sack_starved(lab, claim):
    """Goodputs at 300 ms, by how large a window of BMCC may grow."""
    return _starved(lab, "mix_droptail_300ms")


@judge("BMCC-24", needs=("mix_red", "mix_red_300ms"), readings=("pipe",))
def sack_over_red(lab, claim):
    """Windows at 40 ms, goodputs at 300 ms."""
    small = _much(lab, "mix_red", "window_mean")
    return all_of(small, _starved(lab, "mix_red_300ms"))


def _bmcc_starved(lab, name):
    """BMCC starved at the paper's router, with the fluid and other target utilisations beside."""
    runs = lab.packets(name)
    ratios = runs.values("flows.bmcc.goodput") / runs.values("flows.sack.goodput")
    table = ", ".join(f"{x:g}: {r.mean():.2g}" for x, r in zip(runs.x, ratios, strict=True))
    rest = _rest(lab, name)
    fluid = [np.mean(rest["flows"][group]["rate"]) for group in ("bmcc", "sack")]
    found = _starved(lab, name, victim="bmcc")
    why = (
        f"{found.why}; by target utilisation {table}; fluid at rest: BMCC {fluid[0]:.3g}, "
        f"SACK {fluid[1]:.4g} packets/s ({rest['status']})"
    )
    return dataclasses.replace(found, why=why, engine="packets+fluid")


@judge("BMCC-25", needs=("starving",))
def starving(lab, claim):
    """Goodputs over a BMCC router, and whether any standing queue tells overload."""
    return all_of(_bmcc_starved(lab, "starving"), _by_bound(lab, "bmcc.standing_queue", "analytic"))


@judge("BMCC-26", needs=("starving_ecn",))
def starving_ecn(lab, claim):
    """Goodputs over a BMCC router, SACK with ECN."""
    return _bmcc_starved(lab, "starving_ecn")


@judge("BMCC-27")
def only_bmcc(lab, claim):
    """Marks and decreases from 100 to 120 %, by the rules."""
    return _by_bound(lab, "bmcc.only_bmcc_backs_off", "analytic")


@judge("BMCC-28", needs=("deterministic", "deterministic_drops"))
def all_marked(lab, claim):
    """SACK of 40 ms with all packets marked, or dropped, in overload; what BMCC keeps then."""
    law = lab.experiment("deterministic").net(0).flows[0].window
    kept = [float(law.kept(f)) for f in (1.01, 1.1, 1.2)]
    said = f"BMCC keeps {', '.join(f'{k:.3g}' for k in kept)} at loads of 101, 110 and 120 %"
    one = shown(max(kept) == min(kept), said, engine="analytic")
    return all_of(_starved(lab, "deterministic"), _starved(lab, "deterministic_drops"), one)


def _load_variation(lab, name):
    """Coefficient of variation of the measured load factor, shape (points, seeds)."""
    experiment, found = lab.experiment(name), []
    for k in range(len(experiment.x)):
        row = []
        for seed in range(1, experiment.seeds + 1):

            def make(k=k, seed=seed):
                done = fc.simulate_packets(
                    experiment.net(k), until=experiment.until, warmup=experiment.warmup,
                    seeds=[seed], sample=experiment.sample, threads=1,
                )  # fmt: skip
                points = [None] * k + [{"series": done.series.isel(seed=0).to_dict()}]
                times, loads = load_factors(Runs(experiment, points), k)
                loads = loads[times > experiment.warmup]
                return {"variation": float(loads.std() / loads.mean())}

            about = {
                "load variation": dumps(experiment.net(k)), "until": experiment.until,
                "warmup": experiment.warmup, "seed": seed, "sample": experiment.sample,
            }  # fmt: skip
            row.append(lab.store.keep("packets", about, make)["variation"])
        found.append(row)
    return np.array(found)


@judge("BMCC-29", needs=("shorter_period",), readings=("joint",))
def shorter_period(lab, claim):
    """Variation of the load factor for router periods of 200 and of 50 ms, round trips of 300 ms;
    senders keep their 200 ms, or shorten it too.
    """
    found = _load_variation(lab, "shorter_period")
    what = (
        "coefficient of variation of the measured load, period of 200 below 50 ms "
        f"({found[1].mean():.3g} at 100 ms)"
    )
    return ordered(found[0], found[-1], what=what)


@judge("BMCC-30", needs=("mix_bmcc_router_ecn",))
def marking_probability(lab, claim):
    """Share of packets that ADPM marks at the loads from 100 to 120 % that occur beside SACK."""
    runs = lab.packets("mix_bmcc_router_ecn")
    times, loads = load_factors(runs)
    loads = loads[(times > runs.experiment.warmup) & (loads >= 1) & (loads < 1.2)]
    marked = np.array([float(_CODE.distribution(f)) for f in loads])
    parts = np.array([part.mean() for part in np.array_split(marked, 10)])
    what = f"marked at the loads seen, {loads.mean():.3g} in the mean (0.5 at f = 1, 1 at 1.2)"
    return near(claim.value, parts, what=what, engine="analytic+packets")


@judge("BMCC-31", needs=("mix_modified_router", "mix_bmcc_router_ecn"), readings=("target",))
def equal_backoffs(lab, claim):
    """Back-offs of both families: alike within a quarter, as "roughly" says; the share of BMCC in
    the goodput nearer to a half than over the plain router.
    """
    bmcc, sack = _seen(lab, "mix_modified_router", "reactions")
    counts = f"{bmcc.mean():.3g} and {sack.mean():.3g}, BMCC only while its estimate is 1 or more"
    often = alike(bmcc, sack, usual=0.25, most=0.25, what=f"back-offs of BMCC and SACK ({counts})")
    off = []
    for name in ("mix_modified_router", "mix_bmcc_router_ecn"):
        one, other = _seen(lab, name)
        off.append(np.abs(one / (one + other) - 0.5))
    fairer = ordered(*off, what="distance of BMCC's share from a half, modified below plain router")
    return all_of(fairer, often)


@judge("BMCC-32", needs=("mix_modified_router",))
def sharing(lab, claim):
    """Effectively shared: neither family has less than half of the other's goodput."""
    bmcc, sack = _seen(lab, "mix_modified_router")
    ratio = float(bmcc.mean() / sack.mean())
    why = f"{_rates_told(bmcc, sack)}: BMCC over SACK {ratio:.2g}"
    return shown(0.5 <= ratio <= 2, why, engine="packets", value=ratio, unit="ratio of goodputs",
                 otherwise="not_reproduced")  # fmt: skip


@judge("BMCC-33")
def pipe(lab, claim):
    """Capacity times round trip by the scenarios of figures 9 and 10."""
    nets = [lab.experiment(n).net(0) for n in ("mix_modified_router_300ms", "mix_modified_router")]
    far, close = (float(n.links[0].capacity) * float(n.flows[0].rtt[0]) for n in nets)
    found = all_of(
        near(claim.value[0], [far], unit="packets", what="pipe at 300 ms", engine="analytic"),
        near(claim.value[1], [far / close], what="over that at 40 ms", engine="analytic"),
    )
    return dataclasses.replace(found, value=[far, far / close], half=None, unit=claim.unit)


@judge("BMCC-34", needs=("mix_modified_router_300ms",), readings=("pipe", "target"))
def bmcc_ahead(lab, claim):
    """Goodputs at 300 ms over the modified router. Where less than half of the link is used the
    network has collapsed, and shares of it are an order at most.
    """
    name = "mix_modified_router_300ms"
    found = _much(lab, name)
    use = lab.packets(name).values("links.bottleneck.utilization").mean()
    why = f"{found.why}; {_rates_told(*_seen(lab, name))}, {100 * use:.2g} % of the link used"
    if use < 0.5 and found.verdict == "reproduced":
        found = dataclasses.replace(found, verdict="ordering_only")
    return dataclasses.replace(found, why=why)


@judge("BMCC-35", needs=("gain_short",))
def exponent(lab, claim):
    """Exponents of two SACK flows: of 10 ms and T at the modified router, and in a search."""
    runs = lab.packets("gain_short")
    rates, trips = (
        [runs.values(f"flows.{group}.{metric}") for group in ("strong", "weak")]
        for metric in ("goodput", "rtt_mean")
    )
    z = np.log(rates[0] / rates[1]) / np.log(trips[1] / trips[0])
    worst = int(np.argmax(np.abs(z.mean(axis=1) - 1.5)))
    said = ", ".join(f"{x} ms: {v:.3g}" for x, v in zip(runs.x, z.mean(axis=1), strict=True))
    own = near(
        claim.value, z[worst], what=f"10 ms beside T, measured round trips, z = {said}; worst"
    )
    return all_of(_by_bound(lab, "bmcc.sack_exponent", "packets"), own)


def _ratios(lab, name, group):
    """Goodputs of a pair of figure 11 over those of two SACK flows, shape (points, seeds)."""
    own, base = (lab.packets(n).values(f"flows.{group}.goodput") for n in (name, "gain_baseline"))
    return own / base


_PAIRS = ("gain_baseline", "gain_bmcc", "gain_short")


@judge("BMCC-36", needs=_PAIRS)
def gain(lab, claim):
    """Gain of BMCC below that of a SACK flow of 10 ms, for all T."""
    bmcc, short = (_ratios(lab, n, "strong") for n in _PAIRS[1:])
    return ordered(
        bmcc, short, x=lab.packets("gain_short").x, what="gain of BMCC below SACK of 10 ms"
    )


@judge("BMCC-37", needs=_PAIRS)
def loss(lab, claim):
    """How many times more BMCC leaves to SACK than a flow of 10 ms does, geometric mean over T."""
    bmcc, short = (_ratios(lab, n, "weak") for n in _PAIRS[1:])
    factors, x = bmcc / short, lab.packets("gain_short").x
    table = ", ".join(f"{t} ms: {f.mean():.2g}" for t, f in zip(x, factors, strict=True))
    lost = 1 - np.stack([bmcc.mean(axis=1), short.mean(axis=1)], axis=1)
    pairs = ", ".join(f"{a:.2g} and {b:.2g}" for a, b in lost)
    what = (
        f"times that SACK keeps more beside BMCC than beside SACK of 10 ms ({table}); shares that "
        f"it loses beside the one and the other, by T: {pairs}; geometric mean of the times"
    )
    return near(claim.value, np.exp(np.log(factors).mean(axis=0)), neutral=1.0, what=what)


@judge("BMCC-38", needs=("small_trips", "small_trips_droptail"))
def small_trips(lab, claim):
    """BMCC above SACK at some small round trip over the modified router, of which the footnote
    speaks; droptail is told beside.
    """
    above, texts = [], []
    for name, groups in (
        ("small_trips", ("weak", "strong")), ("small_trips_droptail", ("sack", "bmcc"))
    ):  # fmt: skip
        runs = lab.packets(name)
        low, high = (runs.values(f"flows.{g}.goodput") / 8000 for g in groups)
        mean, half = interval(high - low)
        above.append(bool((mean > half).any()))
        texts.append(", ".join(
            f"{x} ms: {h.mean():.4g} and {s.mean():.4g}"
            for x, h, s in zip(runs.x, high, low, strict=True)
        ))  # fmt: skip
    why = (
        f"BMCC and SACK over the modified router: {texts[0]} packets/s; over droptail, of which "
        f"the footnote does not speak: {texts[1]} packets/s"
    )
    return shown(above[0], why, engine="packets", otherwise="not_reproduced")


@judge("BMCC-39", needs=("fallback_droptail", "two_droptail", "sack_droptail"))
def falls_back(lab, claim):
    """In the fallback windows grow as TCP's, less than 1.1 per t_p, and goodput is that of SACK."""
    growth, plain = (_steps(lab, n)[0] for n in ("fallback_droptail", "two_droptail"))
    like = alike(
        *(
            lab.packets(n).values("flows.bmcc.goodput")
            for n in ("fallback_droptail", "sack_droptail")
        ),
        what="goodput beside that of two SACK flows",
    )
    why = f"growth per t_p {growth:.3g}, without the fallback {plain:.3g}"
    slow = shown(growth <= 1.1, why, engine="packets", value=growth, otherwise="not_reproduced")
    return all_of(slow, like)


@judge("BMCC-40")
def cut_more(lab, claim):
    """A halving beside the decreases from full load on, and what the law does on the switch."""
    kept = [float(_LAW.kept(f)) for f in (1.0, 1.2, 1.5)]
    law = BMCC(fallback=True)
    change = law.on_loss(law.start(100.0), Ack(1.0, 0.0, 0.1, 0.5))
    why = (
        f"a halving keeps 0.5, overload {min(kept):.3g} to {max(kept):.3g}; the law changes the "
        f"window by {float(change.window):g} on the loss that switches"
    )
    holds = min(kept) > 0.5 and float(change.window) == 0 and float(change.sack) == 1
    return shown(holds, why, engine="analytic", value=min(kept))


@judge("BMCC-41", needs=("mix_modified_router", "modified_fallback"))
def left_soon(lab, claim):
    """Packets until a lagging estimate passes 1, and goodputs with the fallback beside those
    without: at the modified router every entry is a mistake.
    """
    counts = [float(_CODE.packets_needed(f - 1, 1.0, 0.05)) for f in (1.01, 1.05)]
    pairs = [_seen(lab, n) for n in ("modified_fallback", "mix_modified_router")]
    both = [np.stack(pair) for pair in pairs]
    like = alike(*both, x=("BMCC", "SACK"), what="goodputs with the fallback and without")
    why = (
        f"at f = 1.01 and 1.05 the estimate is above 1 after {counts[0]:.3g} and {counts[1]:.3g} "
        f"packets with 95 %; {_rates_told(*pairs[0])} with, {_rates_told(*pairs[1])} without"
    )
    why = f"{why}; soon is within one bandwidth-delay product, 225 packets"
    quick = shown(counts[0] < 225, why, engine="analytic", value=counts[0], unit="packets")
    return all_of(quick, like)


@judge("BMCC-42", needs=("mix_droptail", "mix_red", "starving", "starving_ecn"))
def both_ways(lab, claim):
    """SACK low over other routers, BMCC starved over its own."""
    low = [_much(lab, name) for name in ("mix_droptail", "mix_red")]
    return all_of(*low, *(_starved(lab, n, victim="bmcc") for n in ("starving", "starving_ecn")))
