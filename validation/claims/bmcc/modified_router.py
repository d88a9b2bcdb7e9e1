"""The modified router, and what the paper rejects in its place: sections 5.1 and 5.2."""

import dataclasses

import numpy as np

import fluidcc as fc
from fluidcc.scenario.files import dumps

from ...lab.judging import alike, all_of, judge, near, ordered, shown
from ...lab.loads import load_factors
from ...lab.samples import Runs
from .common import CODE, much, rates_told, seen, starved


@judge("BMCC-28", needs=("deterministic", "deterministic_drops"))
def all_marked(lab, claim):
    """SACK of 40 ms with all packets marked, or dropped, in overload; what BMCC keeps then."""
    law = lab.experiment("deterministic").net(0).flows[0].window
    kept = [float(law.kept(f)) for f in (1.01, 1.1, 1.2)]
    said = f"BMCC keeps {', '.join(f'{k:.3g}' for k in kept)} at loads of 101, 110 and 120 %"
    one = shown(max(kept) == min(kept), said, engine="analytic")
    return all_of(starved(lab, "deterministic"), starved(lab, "deterministic_drops"), one)


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
                assert done.series is not None  # the experiment asks for samples
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


@judge("BMCC-29", needs=("shorter_period",), readings=("senders_too",))
def shorter_period(lab, claim):
    """Variation of the load factor for router periods of 200 and of 50 ms, round trips of 300 ms;
    senders keep their 200 ms, or shorten it too.
    """
    found = _load_variation(lab, "shorter_period")
    what = "coefficient of variation of the measured load, period of 200 below 50 ms"
    words = f"with a period of 100 ms it is {found[1].mean():.3g}"
    return ordered(found[0], found[-1], what=what).noting(words)


@judge("BMCC-30", needs=("mix_bmcc_router_ecn",))
def marking_probability(lab, claim):
    """Share of packets that ADPM marks at the loads from 100 to 120 % that occur beside SACK."""
    runs = lab.packets("mix_bmcc_router_ecn")
    times, loads = load_factors(runs)
    loads = loads[(times > runs.experiment.warmup) & (loads >= 1) & (loads < 1.2)]
    marked = np.array([float(CODE.distribution(f)) for f in loads])
    parts = np.array([part.mean() for part in np.array_split(marked, 10)])
    what = f"marked at the loads seen, {loads.mean():.3g} in the mean (0.5 at f = 1, 1 at 1.2)"
    return near(claim.value, parts, of="about", what=what, engine="analytic+packets")


@judge("BMCC-31", needs=("mix_modified_router", "mix_bmcc_router_ecn"), readings=("target",))
def equal_backoffs(lab, claim):
    """Back-offs of both families: alike within a quarter, as "roughly" says; the share of BMCC in
    the goodput nearer to a half than over the plain router.
    """
    bmcc, sack = seen(lab, "mix_modified_router", "window_reductions")
    counts = f"{bmcc.mean():.3g} and {sack.mean():.3g}, BMCC only while its estimate is 1 or more"
    often = alike(bmcc, sack, usual=0.25, most=0.25, what=f"back-offs of BMCC and SACK ({counts})")
    off = []
    for name in ("mix_modified_router", "mix_bmcc_router_ecn"):
        one, other = seen(lab, name)
        off.append(np.abs(one / (one + other) - 0.5))
    fairer = ordered(*off, what="distance of BMCC's share from a half, modified below plain router")
    return all_of(fairer, often)


@judge("BMCC-32", needs=("mix_modified_router",))
def sharing(lab, claim):
    """Effectively shared: neither family has less than half of the other's goodput."""
    bmcc, sack = seen(lab, "mix_modified_router")
    ratio = float(bmcc.mean() / sack.mean())
    why = f"{rates_told(bmcc, sack)}: BMCC over SACK {ratio:.2g}"
    return shown(0.5 <= ratio <= 2, why, engine="packets", value=ratio, unit="ratio of goodputs",
                 otherwise="not_reproduced")  # fmt: skip


@judge("BMCC-33", definition=True)
def pipe(lab, claim):
    """Capacity times round trip by the scenarios of figures 9 and 10."""
    nets = [lab.experiment(n).net(0) for n in ("mix_modified_router_300ms", "mix_modified_router")]
    far, close = (float(n.links[0].capacity) * float(n.flows[0].rtt[0]) for n in nets)
    found = all_of(
        near(
            claim.value[0],
            [far],
            of="about",
            unit="packets",
            what="pipe at 300 ms",
            engine="analytic",
        ),
        near(
            claim.value[1],
            [far / close],
            of="about",
            what="over the pipe at 40 ms",
            engine="analytic",
        ),
    )
    return found.noting(value=[far, far / close], half=None, unit=claim.unit)


@judge("BMCC-34", needs=("mix_modified_router_300ms",), readings=("pipe", "target"))
def bmcc_ahead(lab, claim):
    """Goodputs at 300 ms over the modified router. Where less than half of the link is used the
    network has collapsed, and shares of it are an order at most.
    """
    name = "mix_modified_router_300ms"
    found = much(lab, name)
    use = lab.packets(name).values("links.bottleneck.utilization").mean()
    rates, used = rates_told(*seen(lab, name)), f"{100 * use:.2g} % of the link used"
    if use < 0.5 and found.verdict == "reproduced":
        said = f"{found.said}, but in a network that has collapsed, {used}"
        return dataclasses.replace(found, verdict="ordering_only", said=said).noting(rates)
    return found.noting(rates, used)
