"""Boundaries of stability over two parameters, by continuation from certified counts."""

from fluidcc.analysis.boundary.result import Boundary as Boundary
from fluidcc.analysis.boundary.result import BoundaryCurve as BoundaryCurve
from fluidcc.analysis.boundary.verb import boundary as boundary
