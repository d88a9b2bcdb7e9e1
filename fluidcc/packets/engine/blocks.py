"""Blocks of received packets that selective ACKs tell: the newest first, three at most. RFC 2018.

A block is the run of received packets around one that arrived out of order, `right` being the
number behind the last; 0 there means no block.
"""

from fluidcc.packets.engine.parts import part
from fluidcc.packets.engine.pointer import compiled
from fluidcc.packets.engine.records import byte_at, packet_at, report_at

_BLOCK_SIZE = 8  # byte of an ACK for each block: two sequence numbers


@compiled
def _drop(kept, left, right):
    """Drop the blocks that lie between two numbers."""
    if kept.third_left >= left and kept.third_right <= right:
        kept.third_left = kept.third_right = 0
    if kept.second_left >= left and kept.second_right <= right:
        kept.second_left, kept.second_right = kept.third_left, kept.third_right
        kept.third_left = kept.third_right = 0
    if kept.left >= left and kept.right <= right:
        kept.left, kept.right = kept.second_left, kept.second_right
        kept.second_left, kept.second_right = kept.third_left, kept.third_right
        kept.third_left = kept.third_right = 0


@compiled
def _copy(kept, report):
    report.left, report.right = kept.left, kept.right
    report.second_left, report.second_right = kept.second_left, kept.second_right
    report.third_left, report.third_right = kept.third_left, kept.third_right


@compiled
def _run(s, kept, flow, sequence):
    """The run of received packets around one of them."""
    ring = s.ring + flow * (s.ring_mask + 1)
    left, right = sequence, sequence + 1
    if kept.left <= sequence <= kept.right:  # the usual case, and no search then
        left = kept.left
    if kept.left <= right <= kept.right:
        right = kept.right
    while byte_at(ring, (left - 1) & s.ring_mask).value != 0:
        left -= 1
    while byte_at(ring, right & s.ring_mask).value != 0:
        right += 1
    return left, right


@part()
def report_blocks(s, index, flow, sequence, expected):
    """Write the blocks into the ACK of a packet that has arrived, and make it longer by them."""
    kept, report = report_at(s.kept, flow), report_at(s.reports, index)
    if sequence > expected:
        left, right = _run(s, kept, flow, sequence)
        _drop(kept, left, right)
        kept.third_left, kept.third_right = kept.second_left, kept.second_right
        kept.second_left, kept.second_right = kept.left, kept.right
        kept.left, kept.right = left, right
    elif kept.right > 0:
        _drop(kept, 0, expected)
    _copy(kept, report)
    told = (1 if kept.right > 0 else 0) + (kept.second_right > 0) + (kept.third_right > 0)
    packet_at(s.packets, index).size += _BLOCK_SIZE * told
