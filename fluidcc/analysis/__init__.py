"""Analysis of a model without running it: equilibria, roots, margins, boundaries."""

from fluidcc import arrays as arrays
