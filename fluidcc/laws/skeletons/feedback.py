"""My law: what it is for, and who proposed it."""

from fluidcc.laws import AbstractFeedback, MarkingPoint


class MyLaw(AbstractFeedback):
    """Marks a packet as it leaves the queue; its acknowledgement brings the mark."""

    name = "my_law"  # in a scenario: feedback = "my_law"
    source = "author (year), equation"
    marking_point = MarkingPoint.DEPARTURE  # or ENTRY, TRANSMITTED, REVERSE
    quench = False  # True: the router itself notifies the sender
    carries = ("mark", "drop")  # the signals that senders receive; "load", "spacing" are others
