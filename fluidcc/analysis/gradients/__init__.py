"""Derivatives of equilibria, roots and margins, at the solution and never through iterations."""

from fluidcc.analysis.gradients.gradient import gradient as gradient
from fluidcc.analysis.gradients.result import Gradient as Gradient
