"""The only description of the engine's data: aligned records, and accessors for each.

Times are in s, sizes in bytes, windows and queues in packets. Entities are the things with a next
event: senders, wires and ports. Everything refers to everything else by index.
"""

import numpy as np

from fluidcc.laws.law import Ack
from fluidcc.packets.engine.pointer import record_at

NEVER = 1e300

# kinds of entities
SENDER, WIRE, PORT, RETURN, QUENCH, TIMER, ROUTER = 0, 1, 2, 3, 4, 5, 6
# of sources of files: arrivals of sessions, sessions
SOURCE, SESSION = 7, 8
# of the traffic that no signal slows: cross traffic, arrivals of calls, calls
CROSS, CALLS, CALL = 10, 11, 12

# `talking` of a call that begins at its next event
FRESH = -1

# when the fate of a signal is decided
ENTRY, DEPARTURE, REVERSE, TRANSMITTED = 0, 1, 2, 3

# flags of packets; replies are acknowledgements and quenches
MARKABLE, MARKED, ECHO, CONFIRM, SETUP, REPLY = 1, 2, 4, 8, 16, 32
# packets of the class beside that of the flows, where a port serves two
BESIDE = 64

# what routes end with: the receiver, after which the way of the acknowledgement may follow; for
# datagrams the end of their link
RECEIVER, GONE = -1, -2

# sequence number of the last packet of a flow that always has something to send
ENDLESS = 2**31 - 2

# last reaction of a sender; 0 before the first
FAST, TIMEOUT, SIGNAL, LEFT = 1, 2, 3, 4

# what a sender with selective acknowledgements is doing; 0 for nothing special
RECOVERING, RESTARTED = 1, 2

# why the engine came back
MORE, FINISHED = -1, 0
POOL_EXHAUSTED, WINDOW_BEYOND_RING, ROUTE_ENDED, NOT_A_NUMBER = 1, 2, 3, 4
NO_FREE_PLACE = 5
NO_FREE_CALL = 6
TRACE_FULL = 7
TOO_MANY_PACKETS = 8
PART_MISSING = 9

# what a line of a trace tells
SEND, ENTER, DROP, MARK, LEAVE, RECEIVE, ACKNOWLEDGE, QUENCHED, EXPIRE, CHANGE = range(10)

# numbers of a queue law's block; its state and parameters follow
Q_COUNT, Q_ELAPSED, Q_QUEUE, Q_CAPACITY, Q_SIZE, Q_GAP = range(6)
Q_MARK, Q_DROP, Q_CHANCE, Q_CHANGED, Q_LOAD, Q_STATE = range(6, 12)
# of a window law's: the state beside the window and parameters follow
W_WINDOW, W_CHANGED, W_SLOW, W_PERIOD = range(4)
W_EVENT = {name: 4 + k for k, name in enumerate(Ack._fields[1:])}  # one packet at a time
W_ELAPSED, W_RTT, W_LOAD, W_MARKED, W_DELAY = W_EVENT.values()
W_STATE = 4 + len(W_EVENT)
# of a reaction's, a marking's, and a permitted window's: parameters follow
R_TIME, R_ROUND_TRIP, R_WINDOW, R_DROPPED, R_MARKED, R_RESULT = range(6)
M_PROBABILITY = 0
P_WINDOW, P_MARKED, P_RESULT = range(3)
# of an estimator's: parameters follow
E_ESTIMATE, E_HASHED, E_LOAD, E_PARAMETERS = range(4)
# of a source's: parameters follow
U_UNIFORM, U_RESULT = range(2)

# transfer times: the shortest [s] that is told apart, classes per factor e, and their number
HISTOGRAM_FIRST, HISTOGRAM_PARTS, HISTOGRAM_SIZE = 1e-6, 250, 6144


def _record(**fields: str) -> np.dtype:
    """Aligned record of fields given as type="name name ..."."""
    pairs = [(name, kind) for kind, names in fields.items() for name in names.split()]
    return np.dtype(pairs, align=True)


# identity: number of a data packet among those of its flow; of an acknowledgement, the sequence
# number that it answers
PACKET_RECORD = _record(
    f8="arrives since sent delay load", i4="flow sequence next size flags hop connection identity"
)

ENTITY_RECORD = _record(i4="kind index")
ENTRY_RECORD = _record(f8="time since")
INDEX_RECORD = _record(i4="value")
BYTE_RECORD = _record(u1="value")
NUMBER_RECORD = _record(f8="value")

WIRE_RECORD = _record(f8="delay rate free", i4="head tail count port onward")

PORT_RECORD = _record(
    f8="rate capacity limit unit idle_since started seen_at changed area squares bytes_area idle "
    "period spread waiting_idle bytes_squares",
    i8="bytes gap gap_bytes arrivals departures drops marks draws update arrive say tick block "
    "beside largest_bytes",
    u8="key",
    i4="head tail count serving busy armed by_bytes averages counts_system largest largest_system "
    "timer waits due loads link marks_sent",
)

GROUP_RECORD = _record(
    f8="tick min_rto max_rto overhead receiver_window floor mark_below",
    i8="on_ack on_mark on_loss observe ready growing marking permit law_block reaction_block "
    "marking_block permit_block on_tick period slow_start decode decode_block memory",
    i4="size ack_size quench_size syn_size syn dup_acks limited_transmit "
    "one_fast_retransmit integer_windows partial_deflation partial_timer_once newreno echoes "
    "markable quenched moment each_mark "
    "sticky grow_on_echo choice_waiting choice_arms states loads marks_tell_load sack "
    "recovery_burst window_validation",
)

FLOW_RECORD = _record(
    f8="window threshold initial_window deadline send_at rto timed_at boot reacted_at rtt "
    "acked_at changed tail_delay last_delay window_time window_acks rtt_sum "
    "permitted propagation delay_sum delay_squares delay_steps load tick_at asked began "
    "active_time "
    "told_window told_threshold full_at sent_at",
    i8="draws acks sent lost replies_lost marked received timeouts reactions recoveries quenches "
    "memory scoreboard delivered steps",
    u8="key hash_key",
    i4="group started inflation duplicates next_sequence highest_sent acked recover action "
    "timing timed_sequence smoothed deviation backoff capable at_one confirm partial sending "
    "return_wire connection limit repairing pipe known known_end repaired told_drop session "
    "request answers wanted next_free heard used",
)

# what a new connection of a flow leaves as it is: who it is, and its accounts
LASTING = frozenset(
    "boot propagation tail_delay window_time window_acks rtt_sum delay_sum delay_squares "
    "delay_steps "
    "steps changed asked began active_time draws acks sent lost replies_lost marked received "
    "timeouts reactions recoveries quenches memory scoreboard delivered key hash_key group started "
    "return_wire connection session request answers wanted next_free".split()
)
FLOW_WORDS = FLOW_RECORD.itemsize // 4
_PLACES = {name: place for name, place in (FLOW_RECORD.fields or {}).items()}
RENEWED = tuple(
    word
    for name, (kind, at, *_) in _PLACES.items()
    if name not in LASTING
    for word in range(at // 4, (at + kind.itemsize) // 4)
)

# sources of files; `free` and `next_free` chain places and sessions that are not in use
SOURCE_RECORD = _record(
    f8="span_sum span_squares",
    i8="draws arrival pages pause objects gap size block histogram transfers begun offered "
    "numbered most",
    u8="key session_key",
    i4="open waits free free_session request group",
)
SESSION_RECORD = _record(
    f8="pages", i8="draws", u8="key", i4="source entity flow objects under_way next_free"
)

# blocks that selective ACKs tell, the newest first; a right end of 0 where there is none
REPORT_RECORD = _record(i4="left right second_left second_right third_left third_right")

RECEIVER_RECORD = _record(f8="estimate", i4="expected echo")

# the second class of a port, and what fair queueing remembers of both: tags of the heads
CLASS_RECORD = _record(
    f8="weight own_weight tag own_tag virtual limit used",
    i8="bytes arrivals departures drops",
    i4="head tail count busy",
)

CROSS_RECORD = _record(f8="gap", i8="draws", u8="key", i4="flow size exponential")

# the calls of a link and their packets; `free` and `next` chain the calls that are not in use
VOICE_RECORD = _record(
    f8="gap holding talk pause active frame calls_time changed delay_steps",
    i8="draws offered refused steps",
    u8="key call_key",
    i4="flow size flags most present numbered free",
)
CALL_RECORD = _record(
    f8="ends switches frame_at last_delay",
    i8="draws",
    u8="key",
    i4="voice entity number talking heard next",
)

# a line of a trace; `link` and `flow` are -1 where there is none
LINE_RECORD = _record(
    f8="time window threshold", i4="event link flow sequence size flags connection"
)

SIMULATION_RECORD = _record(
    f8="now",
    i8="packets entities entries winners wires ports groups flows receivers routes quenches ring "
    "events crosses voices calls reports kept sources sessions fresh renewed trace "
    # addresses of parts that are compiled apart
    "parts_absent traces_note traces_note_sender ticks_tick ticks_catch_up sack_take sack_fill "
    "sack_restart blocks_report_blocks signals_quench signals_mark_front loads_decode "
    "senders_quenched routers_rewrite ports_serve_fairly ports_arrive_beside datagrams_cross "
    "datagrams_leave calls_speak calls_ring sources_proceed sources_come sources_conclude",
    i4="free places flow_count port_count ring_mask hops status voice_count done "
    "renewed_count traced trace_size",
)

packet_at = record_at(PACKET_RECORD)
entity_at = record_at(ENTITY_RECORD)
entry_at = record_at(ENTRY_RECORD)
index_at = record_at(INDEX_RECORD)
byte_at = record_at(BYTE_RECORD)
number_at = record_at(NUMBER_RECORD)
wire_at = record_at(WIRE_RECORD)
port_at = record_at(PORT_RECORD)
group_at = record_at(GROUP_RECORD)
flow_at = record_at(FLOW_RECORD)
receiver_at = record_at(RECEIVER_RECORD)
report_at = record_at(REPORT_RECORD)
class_at = record_at(CLASS_RECORD)
cross_at = record_at(CROSS_RECORD)
voice_at = record_at(VOICE_RECORD)
call_at = record_at(CALL_RECORD)
source_at = record_at(SOURCE_RECORD)
session_at = record_at(SESSION_RECORD)
line_at = record_at(LINE_RECORD)
simulation_at = record_at(SIMULATION_RECORD)
