"""Random numbers of one stream per purpose and object: splitmix64 as a function of a counter.

Source: Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators, figure 14. A
stream is a key; its draws depend on nothing else, so the same seed gives the same starts whatever
the senders do.
"""

import math
from typing import Any

import numpy as np

from fluidcc.packets.engine.pointer import compiled

_MASK = (1 << 64) - 1
_GAMMA, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GAMMA64, _FIRST64, _SECOND64 = np.uint64(_GAMMA), np.uint64(_FIRST), np.uint64(_SECOND)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_STEP = 1.0 / 9007199254740992.0  # 2^-53

PURPOSES = ("start", "boot", "send", "queue", "hash", "cross", "calls", "call", "arrivals",
            "sessions", "session", "source", "slot_boot", "slot_send",
            "slot_hash", "loss", "queue_rules", "window_rules")  # fmt: skip


def _mix(z: Any) -> Any:
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def stream_key(seed: int, purpose: str, index: Any) -> Any:
    """Key of the stream of one purpose and object under a seed; of many with an array of uint64."""
    key = _mix((seed * _GAMMA + _GAMMA) & _MASK)
    key = _mix((key + (PURPOSES.index(purpose) + 1) * _GAMMA) & _MASK)
    return _mix((key + (index + 1) * _GAMMA) & _MASK)


def block_key(seed: int, purpose: str, index: int) -> float:
    """Key of the stream of a law's block, whose numbers are floats."""
    return float(stream_key(seed, purpose, index) >> 11)


def uniform(key: Any, draw: Any = 1) -> Any:
    """Draw number `draw` of a stream, in [0, 1); one of each stream for an array of keys."""
    return (_mix((key + draw * _GAMMA) & _MASK) >> 11) * _STEP


@compiled
def _word(key, number):
    """Word number `number` of the stream of a key, as `_mix` has it."""
    z = np.uint64(key) + np.uint64(number) * _GAMMA64
    z = (z ^ (z >> _30)) * _FIRST64
    z = (z ^ (z >> _27)) * _SECOND64
    return z ^ (z >> _31)


@compiled
def hashed(key, number):
    """A number in [0, 1) that belongs to a number under a key, the same each time."""
    return np.float64(_word(key, number) >> _11) * _STEP


@compiled
def draw(stream):
    """Next number in [0, 1) of the stream held by a port or a flow."""
    stream.draws = stream.draws + 1
    return hashed(stream.key, stream.draws)


@compiled
def draw_own(block, slot):
    """Next number in [0, 1) of the stream held by a law's block, from `slot` on: the number, the
    key and the draws.
    """
    block[slot + 2] = block[slot + 2] + 1.0
    block[slot] = hashed(block[slot + 1], block[slot + 2])
    return block[slot]


@compiled
def derive(stream, key, number):
    """Begin the stream that belongs to a number under a key."""
    stream.key = int(_word(key, number))
    stream.draws = 0


@compiled
def exponential(stream, mean):
    """Next exponential number of a mean."""
    return -mean * math.log(1.0 - draw(stream))
