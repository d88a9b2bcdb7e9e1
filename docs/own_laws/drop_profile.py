"""A drop profile, as routers have them: marks by how full the buffer is."""

from fluidcc.laws import AbstractQueueLaw, Signal, ops, param


class DropProfile(AbstractQueueLaw):
    """Marks nothing up to one fill level, then more and more, and everything at a full buffer."""

    name = "drop_profile"
    source = "an example"
    level: float = param(0.5, r"\ell", unit="1", doc="fill level of first marks", within="[0, 1)")

    def signal(self, x, seen):
        """From 0 at the level to 1 at a full buffer, in proportion."""
        full = seen.queue / seen.buffer
        return Signal(mark=ops.clip((full - self.level) / (1 - self.level), 0.0, 1.0))

    def breakpoints(self, x, seen):
        """Where the mark probability bends."""
        return (seen.queue - self.level * seen.buffer,)
