"""BMCC flows alone over a router that tells them its load: sections 2, 3.4 and 4.1."""

import numpy as np

from ...lab.judging import Judgement, all_of, judge, near, shown, told
from ...lab.loads import estimates, load_factors
from ...lab.samples import interval
from .common import flow_windows, rest


def _to_fair(lab, name):
    """Seconds after the second flow's arrival until the Jain index of the rates of both, in means
    over 5 s, is 0.9; infinite where it is not within 95 s.
    """
    runs, rates = lab.packets(name), []
    for group in ("first", "second"):
        times, own = runs.series(0, "flow_goodput_sampled", group)
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
    files, others = (r.at(300, "flows.ahead.fct_mean").mean() for r in (runs, beside))
    far = [use >= 0.9, jain >= 0.9, queue <= 168.75, loss <= 1e-3, files < others]
    own_use, own_queue, own_loss = (
        alone.values(f"{link}.{m}").mean() for m in ("utilization", "queue_mean", "drop_fraction")
    )
    rates = np.array([alone.values(f"flows.{n}.goodput")[0] for n in ("first", "second", "third")])
    own_jain = float(np.mean(rates.sum(axis=0) ** 2 / (3 * (rates**2).sum(axis=0))))
    own = [own_use >= 0.9, own_jain >= 0.9, own_queue <= 250, own_loss <= 1e-3]
    words = (
        f"three flows of 150 to 250 ms alone on 100 Mbit/s: utilisation {own_use:.3f}, Jain index "
        f"{own_jain:.3f}, queue {own_queue:.2g} of 2500 packets, {100 * own_loss:.2g} % lost: "
        f"{sum(own)} of 4 hold"
    )
    paper = shown(all(own), words, engine="packets", otherwise="not_reproduced")
    words = (
        "two flows of 300 ms on 45 Mbit/s, a round trip longer than the router's 200 ms: "
        f"utilisation {use:.3f}, Jain index {jain:.3f}, queue {queue:.3g} of 1687 packets, "
        f"{100 * loss:.2g} % lost, files take {files:.3g} s ({others:.3g} s beside SACK over "
        f"droptail): {sum(far)} of 5 hold"
    )
    longer = shown(all(far), words, engine="packets", otherwise="not_reproduced")
    values = [float(own_use), float(use)]
    found = all_of(paper, longer).noting(value=values, unit="utilisation")
    if all(own) != all(far):
        return found.noting("ordering only, as all hold in one case", verdict="ordering_only")
    return found


def _shares_after(lab, delay):
    """Rates of the second and third flow over their fair shares, around a time after arrival, and
    when, in means over 5 s, they first reach 70 % within 100 s.
    """
    runs, out = lab.packets("three_flows"), []
    for k, group in enumerate(("second", "third")):
        times, rates = runs.series(0, "flow_goodput_sampled", group)
        begin, fair = 100.0 * (k + 1), 100e6 / (k + 2)
        near_it = (times > begin + delay - 5) & (times <= begin + delay + 5)
        smooth = np.convolve(np.nan_to_num(rates[:, 0]), np.full(100, 0.01), "same") / fair
        there = np.flatnonzero((smooth >= 0.7) & (times > begin) & (times <= begin + 100))
        reached = f"after {times[there[0]] - begin:.3g} s" if there.size else "not at all"
        out.append((float(rates[near_it, 0].mean() / fair), reached))
    return out


@judge("BMCC-11", needs=("three_flows",), readings=("target",))
def near_fair(lab, claim):
    """Quickly: 20 s after the arrival, a fifth of the time to the next one, the flow has 70 %."""
    (second, t2), (third, t3) = _shares_after(lab, 20.0)
    said = (
        f"20 s after arrival the second and third flow have {100 * second:.3g} and "
        f"{100 * third:.3g} % of their fair share"
    )
    value = 100 * min(second, third)
    found = shown(value >= 70, said, engine="packets", value=value, unit=claim.unit,
                  otherwise="not_reproduced")  # fmt: skip
    return found.noting(
        f"within 100 s 70 % are reached {t2} and {t3}",
        "additive increase adds 25 packets/s each second to a rate (1/t_p^2), a third of the link "
        "is 4167 packets/s",
    )


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
            times, own = runs.series(0, "flow_goodput_sampled", group)
            rates.append(float(np.nanmean(own[(times > 150) & (times <= 200), 0])) / 1e6)
        said = [f"{n} flow, 50 to 100 s after the second arrival" for n in ("first", "second")]
        parts = [
            near(each, [r], of="about", unit="Mbit/s", what=w)
            for r, w in zip(rates, said, strict=True)
        ]
        whole = near(link, [sum(rates)], of="about", unit="Mbit/s", what="both")
        return all_of(*parts, whole).noting(value=[*rates, sum(rates)])
    rates = [runs.values(f"flows.{n}.goodput")[0] / 1e6 for n in ("first", "second", "third")]
    use = runs.values("links.bottleneck.utilization")[0]
    fluid = 8e-3 * np.mean(rest(lab, "three_flows")["flows"]["first"]["rate"])
    said = f"three times {each} is more than {link} Mbit/s, so all three cannot have it"
    found = shown(3 * each <= 1.1 * link, said, engine="analytic",
                  value=[*(float(r.mean()) for r in rates), float(np.sum(rates, axis=0).mean())],
                  unit=claim.unit)  # fmt: skip
    return found.noting(
        f"packets, 100 to 200 s after the third arrival: {', '.join(told(r.mean()) for r in rates)}"
        f" Mbit/s, {100 * use.mean():.3g} % of the link",
        f"fluid at rest: {fluid:.3g} Mbit/s each",
    )


@judge("BMCC-13", needs=("three_flows",))
def tracking(lab, claim):
    """Quickly: at the end of its period of 200 ms a load is known within 5 % in nine of ten. Loads
    and numbers of packets are those of the runs, estimates are made from them by the rule of 3.2.
    """
    runs = lab.packets("three_flows")
    ends, loads = load_factors(runs)
    shares = []
    for k, group in enumerate(("first", "second", "third")):
        times, rates = runs.series(0, "flow_goodput_sampled", group)
        packets = np.nan_to_num(rates[1:, 0]) * (times[1] - times[0]) / 8000
        count = len(loads) - 1
        periods = packets.reshape(-1, 4).sum(axis=1)[
            1 : count + 1
        ]  # loads are told in the next one
        found, coded = estimates(loads[:-1], periods, seed=k + 1), np.clip(loads[:-1], 0.15, 1.2)
        after = ends[:-1] > 100.0 * k + 2.0
        shares.append(float(np.mean(np.abs(found - coded)[after] <= 0.05 * coded[after])))
    said = f"known within 5 % in {', '.join(f'{100 * s:.3g} %' for s in shares)} of the periods"
    found = shown(min(shares) >= 0.9, said, engine="packets+analytic", value=min(shares), unit="1",
                  otherwise="not_reproduced")  # fmt: skip
    return found.noting(
        "the estimates are made by the receivers' rule for as many packets as each flow got, they "
        "are not the senders' own"
    )


@judge("BMCC-14", needs=("two_bmcc_router", "two_droptail", "two_red"))
def little_variation(lab, claim):
    """Coefficient of variation of each flow's window over the whole time: at most 0.2. If it is
    only below that over both other routers: ordering only.
    """
    found = []
    for name in ("two_bmcc_router", "two_droptail", "two_red"):
        windows = flow_windows(lab, name)[0]
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
