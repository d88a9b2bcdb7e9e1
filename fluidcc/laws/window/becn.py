"""The window law of senders with source quenches (BECN)."""

from typing import ClassVar

from fluidcc.laws.parameters import choice
from fluidcc.laws.window.polynomial import AbstractTCP


class BECN(AbstractTCP):
    """TCP that halves for source quenches, in the original or the enhanced form.

    Source: Akujobi et al. (2002), sections III and IV.B. Original: every quench counts, and the
    next ACK lets the window grow again. Enhanced: one round trip without growth and without a
    further reaction follows each reaction.
    """

    name: ClassVar[str] = "becn"
    source: ClassVar[str] = "akujobi2002, sections III and IV.B"
    recovery: ClassVar[str] = "newreno"
    pause: bool = choice(True, doc="wait for a round trip after a reaction: the enhanced form")

    @property
    def reaction(self) -> str:
        """Default reaction: which quenches count."""
        return "pause" if self.pause else "per_mark"
