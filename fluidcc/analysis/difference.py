"""Whether the difference part of a neutral system decays by itself."""

import numpy as np

from fluidcc.analysis.linear import Linear

_ROUNDING = 1e-9
_STEP = 0.1  # of the inverse of the longest lag
_POINTS = (0.3 + 0.7j, 1.1 - 2.3j, -0.2 + 5.9j, 0.05 + 17.0j)  # the same


def settles(system: Linear) -> bool:
    """Whether u(t) = D u(t - lag) alone decays, for det(I - D E(s)) = 1 - k e^(-s T): |k| < 1.

    Retarded systems have k = 0, a self-clocked class the share of its link that other traffic has.
    False for other determinants. That of several classes at one link is zero at s = 0; almost
    periodic along the imaginary axis, it comes as near to zero there again and again.
    Hale and Verduyn Lunel (1993), 9.6.
    """
    system = system.pruned()
    m, unit = len(system.C), _STEP / np.max(system.lag, initial=1e-300)

    def loop(s: complex) -> complex:
        look = np.zeros((len(system.pick), m), complex)
        look[np.arange(len(system.pick)), system.pick] = np.exp(-s * system.lag)
        return 1 - complex(np.linalg.det(np.eye(m) - system.D @ look))

    share, next_to = loop(0.0), loop(unit)
    points = [s * unit / _STEP for s in _POINTS]
    if abs(share) <= _ROUNDING:
        return all(abs(loop(s)) <= _ROUNDING for s in points)
    time = -np.log(next_to / share) / unit
    misfit = [abs(loop(s) - share * np.exp(-s * time)) for s in points]
    return abs(share) < 1 - _ROUNDING and max(misfit) <= _ROUNDING
