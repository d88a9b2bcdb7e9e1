"""Stability of many systems at once: equilibria, roots and counts in lanes."""

from fluidcc.analysis.batch.roots import ManyRoots as ManyRoots
from fluidcc.analysis.batch.roots import many_roots as many_roots
from fluidcc.analysis.batch.stability_map import StabilityMap as StabilityMap
from fluidcc.analysis.batch.stability_map import stability_map as stability_map
