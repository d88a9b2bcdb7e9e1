"""Analysis of a model without running it: equilibria, roots, margins, boundaries."""
