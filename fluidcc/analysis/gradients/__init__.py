"""Derivatives of equilibria, roots and margins, at the solution and never through iterations."""
