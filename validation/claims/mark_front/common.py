"""What the rules for the claims of the mark-front paper (Durresi et al., 2001) share."""

from ...lab.judging import ordered

SIDES = ("tail", "front")
LINK = "links.bottleneck"


def sides(*names):
    """The experiments of both sides."""
    return tuple(f"{name}_{side}" for name in names for side in SIDES)


def largest(runs):
    """Largest queue [packets], shape (points, seeds)."""
    return runs.values(f"{LINK}.queue_max")


def drops(runs):
    """Packets dropped, shape (points, seeds)."""
    return runs.values(f"{LINK}.drops")


def both(lab, name, value):
    """Samples at the tail and at the front, and the thresholds."""
    runs = [lab.packets(f"{name}_{side}") for side in SIDES]
    return value(runs[0]), value(runs[1]), runs[0].x


def better(lab, name, value, what, unit="", *, more=False):
    """The front has less, or more, at every threshold."""
    tail, front, x = both(lab, name, value)
    if more:
        return ordered(tail, front, x=x, what=f"{what}, tail and front", unit=unit)
    return ordered(front, tail, x=x, what=f"{what}, front and tail", unit=unit)
