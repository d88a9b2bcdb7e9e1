"""What the rules for the claims of the ECN-mod paper (Misra and Ott, 2003) share.

Numerals are sections of the paper. Unless a rule says otherwise ECN-mod is that with c1 = 0.0625,
and goodputs are compared seed by seed: runs of one seed have the same calls. Words of size are read
so, for all claims: "clearly" is 2 % of the goodput, "essentially" 1 %, of losses 0.1 % of the
packets, "significantly" 5 %.
"""

from ...lab.judging import ordered

LINK = "links.bottleneck."
USED, VARIATION = LINK + "utilization_left", LINK + "queue_cov"
MUCH = 0.05


def of_flows(lab, name, metric="goodput"):
    """A metric of the only group of an experiment, shape (points, seeds)."""
    return lab.packets(name).values(f"flows.{'newreno' if 'newreno' in name else 'mod'}.{metric}")


def of_link(lab, name, path):
    """A metric of the link, shape (points, seeds)."""
    return lab.packets(name).values(path)


def below(lab, less, more, metric, what, unit=""):
    """Judge that a metric of one experiment is below that of another, of flows or of the link."""
    values = of_link if metric.startswith("links.") else of_flows
    one, other = values(lab, less, metric), values(lab, more, metric)
    return ordered(one, other, x=lab.experiment(less).x, what=what, unit=unit)
