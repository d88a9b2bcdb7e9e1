"""Distributions of sizes and times: a number of mean 1 from one that is uniform on [0, 1).

Crovella and Bestavros (1997) for heavy tails; the second Pareto form is that of ns-2's Web traffic.
"""

from fluidcc import ops
from fluidcc.ops import Num

NAMES = ("exponential", "constant", "pareto", "pareto2", "cut_pareto")
"""Known distributions; `pareto` and `pareto2` have a shape, `cut_pareto` has a cut."""


def quantile(name: str, u: Num, shape: Num, cut: Num) -> Num:
    """The number of mean 1 that a share `u` of all draws lies below.

    `pareto` starts at its smallest value, `pareto2` at 0 (Lomax), both fall as x^-shape;
    `cut_pareto` has shape 1 and what exceeds `cut` times the smallest value becomes that.
    """
    if name == "exponential":
        return -ops.log(1 - u)
    if name == "pareto":
        return (shape - 1) / shape * (1 - u) ** (-1 / shape)
    if name == "pareto2":
        return (shape - 1) * ops.expm1(-ops.log(1 - u) / shape)
    if name == "cut_pareto":
        return ops.minimum(1 / (1 - u), cut) / (1 + ops.log(cut))
    return 1.0 + 0.0 * u
