"""What the rules for the BECN paper read from sampled windows."""

import numpy as np
import pytest

from fluidcc.bundled import module


def test_falls_tell_what_is_left_and_when_growth_begins_again():
    """A window of 20 falls to 10 at 1 s and grows from 1.2 s on; the round trip is 0.1 s."""
    time = np.arange(0.0, 2.0, 0.01)
    window = np.where(time < 0.995, 20.0, np.where(time < 1.195, 10.0, 10.0 + (time - 1.19)))
    left, waits = module("validation.claims.becn.quenches").falls(time, window[:, None], 0.1)
    assert left == pytest.approx([0.5])
    assert waits == pytest.approx([2.0])
