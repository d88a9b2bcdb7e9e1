"""The rules of router, code and window, as sections 3.1 to 3.3 have them."""

import numpy as np
import sympy as sp

from fluidcc.laws.law import Ack, Arrival
from fluidcc.laws.queue.load_factor import LoadFactor

from ...lab.formulas import mean_error
from ...lab.judging import all_of, judge, near, shown
from .common import CODE, LAW, by_bound


@judge("BMCC-03", definition=True)
def load_factor(lab, claim):
    """Eq. 1 from the router's rules, with symbols."""
    arrived, queue, capacity, gamma = sp.symbols("lambda q C gamma", positive=True)
    law = LoadFactor(gamma=gamma)
    memory = LoadFactor().state_of(arrived, queue, sp.Integer(0))
    made = law.on_tick(memory, Arrival(0, 0, queue, capacity)).factor
    printed = (arrived + sp.Rational(3, 4) * queue) / (gamma * capacity * sp.Rational(1, 5))
    rest = sp.simplify(sp.nsimplify(made - printed, rational=True))
    value = float(rest) if rest.is_number else None
    return shown(rest == 0, f"router's sample less eq. 1: {rest}", engine="analytic", value=value)


@judge("BMCC-04")
def lag(lab, claim):
    """Below u the mean estimate is off after any number of packets; from u on after none."""
    errors = [float(mean_error(CODE, load, 10.0)) for load in (0.2, 0.5, 0.8, 0.95, 1.05, 1.15)]
    at_once = [1.0 + float(CODE.decode(1.0, h, 1.2)) for h in np.linspace(0, 0.99, 12)]
    said = f"mean error 10 packets after a load above u: {min(errors):.3g} to {max(errors):.3g}"
    off = shown(min(errors) > 0, said, engine="analytic", value=max(errors), unit="1")
    said = f"one packet at f = 1.2 sets the estimate to {min(at_once):.3g}"
    return all_of(off, shown(min(at_once) == max(at_once) == 1.2, said, engine="analytic"))


@judge("BMCC-05", definition=True)
def hash_law(lab, claim):
    """Shares of evenly drawn hashes in each part, and what a load of 5 % is told as."""
    values = np.array([float(CODE.hash_value(h)) for h in (np.arange(4000) + 0.5) / 4000])
    shares = np.histogram(values, [0.15, 0.75, 1.0, 1.2])[0] / len(values)
    low = float(CODE.coded(0.05))
    even = np.allclose(shares, claim.value, atol=1e-3)
    said = f"shares {', '.join(f'{s:.3g}' for s in shares)}"
    return all_of(
        shown(even, said, engine="analytic", value=shares.tolist(), unit=claim.unit),
        shown(low == 0.15, f"5 % is told as {100 * low:g} %", engine="analytic"),
    )


@judge("BMCC-06")
def concave(lab, claim):
    """The map of the load from one sample to the next, and whether its steps shrink. Loads below
    15 % do not occur in eq. 2, as 3.2 rounds them up: they are told but not judged.
    """
    names = ("bmcc.increase_map", "bmcc.concave")
    return all_of(*(by_bound(lab, n, "analytic", apart=("any load",)) for n in names))


@judge("BMCC-07")
def same_growth(lab, claim):
    """Growth in equal times at any two round trips: the value is their ratio less 1."""
    found = by_bound(lab, "bmcc.same_growth", "analytic")
    return found.noting(value=abs(found.value - 1), unit=claim.unit)


@judge("BMCC-08", needs=("three_flows",))
def equal_rates(lab, claim):
    """Rates of two flows of different round trips: alike within 10 %; beside, those of figure 1."""
    found = by_bound(lab, "bmcc.equal_rates", "packets", "times")
    runs = lab.packets("three_flows")
    rates = (
        runs.values(f"flows.{n}.goodput")[0].mean() / 1e6 for n in ("first", "second", "third")
    )
    words = (
        "the paper's flows of 150, 200 and 250 ms get "
        f"{', '.join(f'{r:.3g}' for r in rates)} Mbit/s, 100 to 200 s after the last arrival"
    )
    return found.noting(words, unit=claim.unit)


@judge("BMCC-09", definition=True)
def decrease_factor(lab, claim):
    """Eq. 6 by the law at both ends and half way."""
    ends = [float(LAW.kept(load)) for load in (1.0, 1.2)]
    middle = float(LAW.kept(1.1)) - sum(ends) / 2
    why = f"shares kept: {ends[0]:.4g} at f = 1, {ends[1]:.4g} at 1.2, {middle:.1g} off a line"
    holds = np.allclose(ends, claim.value) and abs(middle) < 1e-12
    return shown(bool(holds), why, engine="analytic", value=ends)


@judge("BMCC-10", definition=True)
def loss_response(lab, claim):
    """What a loss and a mark leave of a window, by the law."""
    ack = Ack(1.0, 0.0, 0.1, 0.5)
    kept = [
        1 + float(change) / 100 for change in (LAW.on_loss(100.0, ack), LAW.on_mark(100.0, ack))
    ]
    found = near(claim.value, [kept[0]], engine="analytic", what="share of the window after a loss")
    return found.noting(f"after a (11) mark it is {kept[1]:.3g}")
