"""The only description of the engine's data: aligned records, and accessors for each.

Times are in s, sizes in bytes, windows and queues in packets. Entities are the things with a next
event: senders, wires and ports. Everything refers to everything else by index.
"""

import numpy as np

from fluidcc.packets.pointer import record_at

NEVER = 1e300

# kinds of entities
SENDER, WIRE, PORT, RETURN, QUENCH, TIMER, ROUTER = 0, 1, 2, 3, 4, 5, 6

# when the fate of a signal is decided
ENTRY, DEPARTURE, REVERSE = 0, 1, 2

# flags of packets
MARKABLE, MARKED, ECHO, CONFIRM, SETUP = 1, 2, 4, 8, 16

# last reaction of a sender; 0 before the first
FAST, TIMEOUT, SIGNAL, LEFT = 1, 2, 3, 4

# why the engine came back
MORE, FINISHED = -1, 0
POOL_EXHAUSTED, WINDOW_BEYOND_RING, ROUTE_ENDED, NOT_A_NUMBER = 1, 2, 3, 4

# numbers of a queue law's block; its state and parameters follow
Q_COUNT, Q_ELAPSED, Q_QUEUE, Q_CAPACITY, Q_SIZE, Q_GAP = range(6)
Q_MARK, Q_DROP, Q_CHANCE, Q_CHANGED, Q_STATE = range(6, 11)
# of a window law's: the state beside the window and parameters follow
W_WINDOW, W_ELAPSED, W_RTT, W_MARKED, W_STATE = range(5)
# of a reaction's, a marking's, and a permitted window's: parameters follow
R_TIME, R_ROUND_TRIP, R_WINDOW, R_MARKED, R_RESULT = range(5)
M_PROBABILITY = 0
P_WINDOW, P_MARKED, P_RESULT = range(3)


def _record(**fields: str) -> np.dtype:
    """Aligned record of fields given as type="name name ..."."""
    pairs = [(name, kind) for kind, names in fields.items() for name in names.split()]
    return np.dtype(pairs, align=True)


PACKET_RECORD = _record(f8="arrives since sent", i4="flow sequence next size flags hop")

ENTITY_RECORD = _record(i4="kind index slot")
NODE_RECORD = _record(f8="time since", i4="entity")
INDEX_RECORD = _record(i4="value")
BYTE_RECORD = _record(u1="value")
NUMBER_RECORD = _record(f8="value")

WIRE_RECORD = _record(f8="delay rate free", i4="head tail count port onward")

PORT_RECORD = _record(
    f8="rate capacity limit unit idle_since started seen_at changed area squares bytes_area idle "
    "period spread",
    i8="bytes gap gap_bytes arrivals departures drops marks draws update arrive say tick block",
    u8="key",
    i4="head tail count serving busy armed by_bytes averages counts_system largest largest_system "
    "timer waits due",
)

GROUP_RECORD = _record(
    f8="tick min_rto max_rto overhead receiver_window floor mark_below",
    i8="on_ack on_mark on_loss observe ready growing marking permit law_block reaction_block "
    "marking_block permit_block",
    i4="size syn_size syn dup_acks limited_transmit one_fast_retransmit integer_windows "
    "partial_deflation partial_timer_once newreno echoes markable quenched moment each_mark "
    "sticky grow_on_echo choice_waiting choice_arms states",
)

FLOW_RECORD = _record(
    f8="window threshold initial_window deadline send_at rto timed_at boot reacted_at rtt "
    "acked_at changed return_delay tail_delay last_delay window_time window_acks rtt_sum "
    "permitted delay_sum delay_squares delay_steps",
    i8="draws acks sent lost marked received timeouts reactions recoveries quenches memory",
    u8="key",
    i4="group started inflation duplicates next_sequence highest_sent acked recover action "
    "timing timed_sequence smoothed deviation backoff capable at_one confirm partial sending "
    "return_wire",
)

RECEIVER_RECORD = _record(i4="expected echo")

SIMULATION_RECORD = _record(
    f8="now",
    i8="packets entities heap wires ports groups flows receivers routes quenches ring events",
    i4="free entity_count flow_count port_count ring_mask hops status",
)

packet_at = record_at(PACKET_RECORD)
entity_at = record_at(ENTITY_RECORD)
node_at = record_at(NODE_RECORD)
index_at = record_at(INDEX_RECORD)
byte_at = record_at(BYTE_RECORD)
number_at = record_at(NUMBER_RECORD)
wire_at = record_at(WIRE_RECORD)
port_at = record_at(PORT_RECORD)
group_at = record_at(GROUP_RECORD)
flow_at = record_at(FLOW_RECORD)
receiver_at = record_at(RECEIVER_RECORD)
simulation_at = record_at(SIMULATION_RECORD)
