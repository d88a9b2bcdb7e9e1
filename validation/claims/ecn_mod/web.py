"""Web sources beside voice: section 4.1, and what 4.2 adds of them."""

import numpy as np

from ...lab.judging import alike, all_of, judge, near, ordered, told
from ...lab.samples import interval
from .common import VARIATION, below, of_flows, of_link

_WEB = ("web_newreno", "web_mod", "web_mod_small")


def _gain(lab, name, plain):
    """Goodput over that of NewReno, less one [%], shape (points, seeds)."""
    return 100 * (of_flows(lab, name) / of_flows(lab, plain) - 1)


@judge("EMOD-09", needs=("web_newreno", "web_mod"), readings=("small", "short"))
def web_goodput(lab, claim):
    """Both parts at c1 = 0.125, which the text prefers: alike, and ECN-mod's goodput higher."""
    plain, own = of_flows(lab, "web_newreno"), of_flows(lab, "web_mod")
    x = lab.experiment("web_mod").x
    return all_of(alike(own, plain, x=x, what="TCP goodput of ECN-mod over NewReno's"),
                  ordered(plain, own, x=x, what="NewReno below ECN-mod", unit="bit/s"))  # fmt: skip


@judge("EMOD-10", needs=("web_mod_small", "web_mod"), readings=("small", "short"))
def web_increase(lab, claim):
    """Goodput with c1 = 0.0625 is below that with 0.125."""
    return below(lab, "web_mod_small", "web_mod", "goodput", "0.0625 below 0.125", "bit/s")


@judge("EMOD-12", needs=_WEB, readings=("small", "short"))
def web_marks(lab, claim):
    """Marks are higher with both c1 that the text names; not reproduced if with one alone."""
    parts = {
        c1: below(lab, "web_newreno", name, "mark_fraction", f"marks of NewReno below c1 = {c1}")
        for c1, name in (("0.125", "web_mod"), ("0.0625", "web_mod_small"))
    }
    both = all_of(*parts.values())
    right = [c1 for c1, part in parts.items() if part.verdict == "reproduced"]
    if len(right) != 1:
        return both
    return both.noting(
        f"higher for c1 = {right[0]} alone, so not reproduced", verdict="not_reproduced"
    )


@judge("EMOD-13", needs=_WEB, readings=("small", "short"))
def web_losses(lab, claim):
    """Losses of all three are 0 to 0.1 % of the packets at every load, in the mean."""
    losses = 100 * np.stack([of_flows(lab, name, "loss_fraction") for name in _WEB]).mean(axis=0)
    worst = losses[int(np.argmax(losses.mean(axis=1)))]
    return near(0.0, worst, absolute=0.1, unit="%", what="largest losses over the loads")


@judge("EMOD-14", needs=("web_newreno", "web_mod"), readings=("small", "short"))
def web_variation(lab, claim):
    """Lower at all loads at c1 = 0.125, and the largest reduction over the loads against 30 %."""
    plain, own = of_link(lab, "web_newreno", VARIATION), of_link(lab, "web_mod", VARIATION)
    x, less = lab.experiment("web_mod").x, 100 * (1 - own / plain)
    k = int(np.argmax(less.mean(axis=1)))
    most = near(claim.value, less[k], of="effect", unit="%", neutral=0.0,
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
    return order.noting(f"with p_max = 1 persistent flows gain {told(mean, half, '%')}")


@judge("EMOD-25", needs=("web_load_newreno", "web_load_mod"))
def web_load(lab, claim):
    """As for persistent flows with p_max = 1: more goodput, less variation with ECN-mod (0.125)."""
    plain, own = "web_load_newreno", "web_load_mod"
    return all_of(
        below(lab, plain, own, "goodput", "NewReno below ECN-mod", "bit/s"),
        below(lab, own, plain, VARIATION, "variation of ECN-mod below NewReno's"),
    )
