"""Hypothesis draws that depend on the seed alone.

Hypothesis mixes the constants of every local module that is loaded at the time into its numbers, so
that a check draws other examples after other checks, and after each change of the code.
"""

from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

BACKEND = "seed-alone"
"""Name of a backend of Hypothesis."""


class SeedAlone(HypothesisProvider):
    """Draws without the constants of modules."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        return None


AVAILABLE_PROVIDERS[BACKEND] = SeedAlone
