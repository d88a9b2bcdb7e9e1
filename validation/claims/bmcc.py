"""Rules for the claims of the BMCC paper (Qazi et al., 2010): numerals are its sections.

Starved means a goodput below a tenth of the other family's, much larger at least twice as large.
Windows and loads over time are those of the first seed, in ten equal parts of the time measured.
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
from fluidcc.papers.samples import interval

_LAW, _CODE, _PERIOD = BMCC(), ADPM(), 0.2
_TENTH = 0.1
_MUCH = 2.0


def _bound(lab, name):
    """Verdicts of a search for counterexamples, one for each set of definitions."""
    return lab.store.keep("bounds", {"name": name}, lambda: fc.check_bound(name).to_dict())[
        "bounds"
    ]


def _by_bound(lab, name, engine, unit=""):
    """Reproduced if a bound holds under a set of definitions, which is named."""
    found = _bound(lab, name)
    kept = [b for b in found if b["verdict"] == "holds"]
    parts = []
    for b in found:
        words = ", ".join(f"{key}: {value}" for key, value in b["definitions"].items())
        value = b["worst"]["value"] if b["worst"] else float("nan")
        parts.append(f"{b['verdict']} ({words or 'as printed'}; {value:.4g} in the worst case)")
    why = f"{name}: {found[0]['statement']}: " + "; ".join(parts)
    chosen = (kept or found)[0]["worst"]
    return shown(bool(kept), why, engine=engine, value=chosen and chosen["value"], unit=unit)


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
    ends = [told(*interval(v / 8000), "packet/s") for v in (one, other)]
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


def _much(lab, name, less="sack", more="bmcc", metric="goodput"):
    """Judge that a metric of one family is much larger than that of the other."""
    low, high = _seen(lab, name, metric, (less, more))
    found = ordered(
        low, high, what=f"{lab.experiment(name).title}: {metric} of {less} below {more}"
    )
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


def _variation(columns):
    """Coefficients of variation in ten equal parts of the time, mean over columns."""
    parts = np.array_split(columns, 10)
    return np.array([np.mean(p.std(axis=0) / p.mean(axis=0)) for p in parts])


@judge("BMCC-01", needs=("ternary", "two_bmcc_router"))
def three_codes(lab, claim):
    """VCP as three codes: low mean queue is at most a tenth of the pipe, slow a start that takes
    at least three times as long until 80 % of the link are used.
    """
    queue = lab.packets("ternary").values("links.bottleneck.queue_mean")[0]
    starts = []
    for name in ("ternary", "two_bmcc_router"):
        runs = lab.packets(name)
        times, busy = runs.series(0, "link_busy", "bottleneck")
        _, window = runs.series(0, "group_window", "bmcc")
        filled = np.convolve(np.nan_to_num(busy), np.full(10, 0.1))[: len(busy)] >= 0.8
        begun = times[np.flatnonzero(window > 0)[0]]
        starts.append(times[filled & (times > begun)][0] - begun)
    why = (
        f"VCP's three codes: queue {told(*interval(queue), 'packets')}, 80 % of the link after "
        f"{starts[0]:.2g} s, with BMCC after {starts[1]:.2g} s; 'little benefit' has no measure"
    )
    holds = queue.mean() <= 22.5 and starts[0] >= 3 * starts[1]
    return shown(holds, why, engine="packets", value=float(starts[0]), unit="s",
                 otherwise="not_reproduced")  # fmt: skip


@judge("BMCC-02", needs=("long_paths", "long_paths_sack", "three_flows"))
def long_paths(lab, claim):
    """High bandwidth-delay product: 300 ms. Efficient and fair mean a utilisation and a Jain index
    of at least 0.9, a low queue at most a tenth of the pipe, negligible a loss of at most 0.1 %,
    and files take less time than beside SACK over droptail.
    """
    runs, beside = lab.packets("long_paths"), lab.packets("long_paths_sack")
    link, group = "links.bottleneck", "flows.bmcc"
    use, queue = (runs.at(300, f"{link}.{m}").mean() for m in ("utilization", "queue_mean"))
    jain, loss = (runs.at(300, f"{group}.{m}").mean() for m in ("jain", "loss_fraction"))
    files, others = (r.at(300, "flows.ahead.transfer_mean").mean() for r in (runs, beside))
    alone = lab.packets("three_flows")
    at_rest = [
        alone.values(f"{link}.{m}").mean() for m in ("utilization", "queue_mean", "drop_fraction")
    ]
    good = [use >= 0.9, jain >= 0.9, queue <= 168.75, loss <= 1e-3, files < others]
    why = (
        f"two flows of 300 ms over a BMCC router: utilisation {use:.3f}, Jain index "
        f"{jain:.3f}, queue {queue:.1f} of 1687 packets, {100 * loss:.2g} % lost, files take "
        f"{files:.3g} s ({others:.3g} s beside SACK over droptail): {sum(good)} of 5 hold; three "
        f"flows of 150 to 250 ms alone on 100 Mbit/s use {at_rest[0]:.3f} of the link, queue "
        f"{at_rest[1]:.2g} packets and lose {at_rest[2]:.2g} %"
    )
    return shown(all(good), why, engine="packets", value=float(use), unit="utilisation",
                 otherwise="ordering_only" if sum(good) > 2 else "not_reproduced")  # fmt: skip


@judge("BMCC-03")
def load_factor(lab, claim):
    """Eq. 1 from the router's rules, with symbols."""
    arrived, queue, capacity, gamma = sp.symbols("lambda q C gamma", positive=True)
    law = LoadFactor(gamma=gamma)
    memory = Load(arrived, queue, sp.Integer(0))
    made = law.on_tick(memory, Arrival(0, 0, queue, capacity)).factor
    printed = (arrived + sp.Rational(3, 4) * queue) / (gamma * capacity * sp.Rational(1, 5))
    rest = sp.simplify(sp.nsimplify(made - printed, rational=True))
    return shown(rest == 0, f"router's sample less eq. 1: {rest}", engine="analytic", value=0.0)


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
    """The map of the load from one sample to the next, and whether its steps shrink."""
    return all_of(*(_by_bound(lab, f"bmcc.{n}", "analytic") for n in ("increase_map", "concave")))


@judge("BMCC-07")
def same_growth(lab, claim):
    """Growth in equal times at any two round trips."""
    return _by_bound(lab, "bmcc.same_growth", "analytic", "ratio of growths")


@judge("BMCC-08")
def equal_rates(lab, claim):
    """Rates of two flows of different round trips: alike within 10 %."""
    return _by_bound(lab, "bmcc.equal_rates", "packets", "rate ratio")


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


@judge("BMCC-12", needs=("three_flows",))
def allocation(lab, claim):
    """Three rates of 50 Mbit/s do not fit on 100 Mbit/s; what comes out in the last 100 s."""
    each, link = claim.value
    runs = lab.packets("three_flows")
    rates = [runs.values(f"flows.{n}.goodput")[0] / 1e6 for n in ("first", "second", "third")]
    use = runs.values("links.bottleneck.utilization")[0]
    fluid = 8e-3 * np.mean(_rest(lab, "three_flows")["flows"]["first"]["rate"])
    why = (
        f"three times {each} is more than {link} Mbit/s; packets, 100 to 200 s after the third "
        f"arrival: {', '.join(told(r.mean()) for r in rates)} Mbit/s, {100 * use.mean():.3g} % of "
        f"the link; fluid at rest: {fluid:.3g} Mbit/s each"
    )
    return shown(3 * each <= 1.1 * link, why, engine="analytic+packets+fluid",
                 value=float(np.mean(rates)), unit=claim.unit)  # fmt: skip


@judge("BMCC-13", needs=("three_flows",))
def tracking(lab, claim):
    """Quickly: at the end of its period of 200 ms a load is known within 5 % in nine of ten."""
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
    why = f"known within 5 % in {', '.join(f'{100 * s:.3g} %' for s in shares)} of the periods"
    return shown(min(shares) >= 0.9, why, engine="packets", value=min(shares), unit="1",
                 otherwise="not_reproduced")  # fmt: skip


@judge("BMCC-14", needs=("two_bmcc_router", "two_droptail", "two_red"))
def little_variation(lab, claim):
    """Variation of the windows beside that over other routers, and itself at most 0.2."""
    names = ("two_bmcc_router", "two_droptail", "two_red")
    own, *others = (_variation(_windows(lab, name)[0]) for name in names)
    parts = [
        ordered(own, other, what=f"variation of windows, BMCC router below {name}")
        for other, name in zip(others, ("droptail", "RED"), strict=True)
    ]
    small = shown(own.mean() <= 0.2, f"coefficient of variation {own.mean():.2g}", engine="packets",
                  value=float(own.mean()), otherwise="ordering_only")  # fmt: skip
    return all_of(small, *parts)


@judge("BMCC-15")
def first_estimate(lab, claim):
    """The load that a sender which knows none grows by."""
    grown = [float(_LAW.on_ack(1.0, Ack(1.0, 0.2, 0.2, f))) for f in (0.0, claim.value)]
    why = f"no load known: growth by {1 + grown[0]:.4g} per t_p, at 15 % by {1 + grown[1]:.4g}"
    return shown(grown[0] == grown[1], why, engine="analytic", value=float(_LAW.lowest))


@judge("BMCC-16", needs=("two_droptail",))
def droptail_cycle(lab, claim):
    """Growth per t_p and share kept by decreases, from the samples of windows of 40 ms."""
    growth, kept = _steps(lab, "two_droptail")
    exact = 1 + float(_LAW.on_ack(1.0, Ack(1.0, 0.2, 0.2, 0.0)))
    return all_of(
        near(claim.value[0], [growth], what=f"growth per t_p (by eq. 3: {exact:.4g})"),
        near(claim.value[1], [kept], what="share kept at a drop"),
    )


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
        f"an estimate of 15 % moves by {moved:g} on unmarked packets, of which droptail makes all "
        f"({marks:g} marks); one of 120 % would move by up to {later:.3g}"
    )
    return shown(moved == 0 and marks == 0, why, engine="analytic+packets", value=moved)


@judge("BMCC-19", needs=("two_red",))
def red_cycle(lab, claim):
    """Share kept by decreases over RED, and the estimate after a mark, by the law."""
    growth, kept = _steps(lab, "two_red")
    law = 1 + float(_LAW.on_mark(1.0, Ack(1.0, 0.0, 0.1, 0.15)))
    chances = [float(_CODE.share_above(y, 0.15, 20.0)) for y in (1.0, 0.75, 0.2)]
    said = (
        f"share kept at a mark (by the law {law:.3g}; growth {growth:.3g} per t_p between marks; "
        f"20 packets later the estimate is above 1, 0.75, 0.2 with chances "
        f"{', '.join(f'{c:.2g}' for c in chances)})"
    )
    return near(claim.value, [kept], what=said, engine="packets+analytic")


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
    return all_of(_much(lab, "mix_droptail", metric="window_mean"), _much(lab, "mix_droptail"))


@judge("BMCC-23", needs=("mix_droptail_300ms",), readings=("pipe", "wide"))
def sack_starved(lab, claim):
    """Goodputs at 300 ms, by how large a window of BMCC may grow."""
    return _starved(lab, "mix_droptail_300ms")


@judge("BMCC-24", needs=("mix_red", "mix_red_300ms"), readings=("pipe",))
def sack_over_red(lab, claim):
    """Windows at 40 ms, goodputs at 300 ms."""
    small = _much(lab, "mix_red", metric="window_mean")
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
    """SACK of 40 ms with all packets marked, or dropped, in overload; BMCC knows one factor."""
    return all_of(_starved(lab, "deterministic"), _starved(lab, "deterministic_drops"))


@judge("BMCC-29", needs=("shorter_period",))
def shorter_period(lab, claim):
    """Variation of the load factor for periods of 200 and of 50 ms, round trips of 300 ms."""
    runs, found = lab.packets("shorter_period"), []
    for k in range(3):
        times, loads = load_factors(runs, k)
        found.append(_variation(loads[times > runs.experiment.warmup][:, None]))
    middle = f"{found[1].mean():.3g} at 100 ms"
    return ordered(found[0], found[2],
                   what=f"variation of the load, t_p of 200 below 50 ms ({middle})")  # fmt: skip


@judge("BMCC-30", needs=("mix_bmcc_router_ecn",))
def marking_probability(lab, claim):
    """Share of packets that ADPM marks at the loads from 100 to 120 % that occur beside SACK."""
    runs = lab.packets("mix_bmcc_router_ecn")
    times, loads = load_factors(runs)
    loads = loads[(times > runs.experiment.warmup) & (loads >= 1) & (loads < 1.2)]
    marked = np.array([float(_CODE.distribution(f)) for f in loads])
    parts = np.array([part.mean() for part in np.array_split(marked, 10)])
    what = f"marked at the loads seen, {loads.mean():.3g} in the mean (0.5 at f = 1, 1 at 1.2)"
    return near(claim.value, parts, neutral=0.0, what=what, engine="analytic+packets")


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
    return all_of(
        near(claim.value[0], [far], unit="packets", what="300 ms", engine="analytic"),
        near(claim.value[1], [far / close], what="over 40 ms", engine="analytic"),
    )


@judge("BMCC-34", needs=("mix_modified_router_300ms",), readings=("pipe", "target"))
def bmcc_ahead(lab, claim):
    """Goodputs at 300 ms over the modified router."""
    name = "mix_modified_router_300ms"
    found = _much(lab, name)
    use = lab.packets(name).values("links.bottleneck.utilization").mean()
    why = f"{found.why}; {_rates_told(*_seen(lab, name))}, {100 * use:.2g} % of the link used"
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
    return all_of(_by_bound(lab, "bmcc.sack_exponent", "packets", "exponent z"), own)


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
    what = f"SACK keeps more beside BMCC by ({table}; shares lost beside BMCC and 10 ms: {pairs})"
    return near(claim.value, np.exp(np.log(factors).mean(axis=0)), neutral=1.0, what=what)


@judge("BMCC-38", needs=("small_trips", "small_trips_droptail"))
def small_trips(lab, claim):
    """BMCC above SACK at some small round trip, over the modified router or over droptail."""
    parts = []
    for name, groups in (
        ("small_trips", ("weak", "strong")),
        ("small_trips_droptail", ("sack", "bmcc")),
    ):
        runs = lab.packets(name)
        low, high = (runs.values(f"flows.{g}.goodput") / 8000 for g in groups)
        mean, half = interval(high - low)
        table = ", ".join(
            f"{x} ms: {h.mean():.4g} and {s.mean():.4g}"
            for x, h, s in zip(runs.x, high, low, strict=True)
        )
        why = f"{runs.experiment.title}, BMCC and SACK [packets/s]: {table}"
        parts.append((bool((mean > half).any()), why))
    why = "; ".join(text for _, text in parts)
    return shown(any(good for good, _ in parts), why, engine="packets", otherwise="not_reproduced")


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
    quick = shown(counts[0] < 225, why, engine="analytic", value=counts[0], unit="packets")
    return all_of(quick, like)


@judge("BMCC-42", needs=("mix_droptail", "mix_red", "starving", "starving_ecn"))
def both_ways(lab, claim):
    """SACK low over other routers, BMCC starved over its own."""
    low = [_much(lab, name) for name in ("mix_droptail", "mix_red")]
    return all_of(*low, *(_starved(lab, n, victim="bmcc") for n in ("starving", "starving_ecn")))
