"""The only description of the engine's data: aligned records, and accessors for each.

Times are in s, sizes in byte, windows and queues in packets. Entities are the things with a next
event: senders, wires and ports. Everything refers to everything else by index.
"""

from typing import Any

import numpy as np

from fluidcc.laws.law import MEASURES, WRITTEN, Ack
from fluidcc.packets.engine.pointer import record_at

NEVER = 1e300

# kinds of entities: senders, delay lines and transmitters; the wires on which ACKs and source
# quenches reach their sender; the timers of queue laws; routers that rewrite ACKs
SENDER, WIRE, PORT, ACK_WIRE, QUENCH_WIRE, QUEUE_TIMER, ROUTER = 0, 1, 2, 3, 4, 5, 6
# sources of files: arrivals of sessions, sessions
SOURCE, SESSION = 7, 8
# ends of flows, timers of delayed ACKs, and changes of links
STOP, ACK_TIMER, CHANGES = 9, 13, 14
# traffic without congestion control: cross traffic, arrivals of calls, calls
CROSS, CALLS, CALL = 10, 11, 12

# `talking` of a call that begins at its next event
NOT_BEGUN = -1

# when a queue law decides whether a packet is marked
ENTRY, DEPARTURE, REVERSE, TRANSMITTED = 0, 1, 2, 3

# flags of packets, as in RFC 3168 and RFC 9293; ACK also stands on source quenches
ECT, CE, ECE, CWR, SYN, ACK = 1, 2, 4, 8, 16, 32

# what routes end with: the receiver, after which the path of the ACKs may follow; for
# datagrams the end of their link
RECEIVER, LINK_END = -1, -2

# sequence number of the last packet of a flow that always has something to send
UNLIMITED = 2**31 - 2

# last reaction of a sender, 0 before the first; RECOVERED after a recovery of Reno or NewReno
FAST_RETRANSMIT, TIMEOUT, SIGNAL, RECOVERED = 1, 2, 3, 4

# state of a sender with selective acknowledgements, 0 outside of recovery and timeout
RECOVERING, RESTARTED = 1, 2

# why the engine came back
MORE, FINISHED = -1, 0
POOL_EXHAUSTED, WINDOW_BEYOND_RING, ROUTE_ENDED, NOT_A_NUMBER = 1, 2, 3, 4
TOO_MANY_TRANSFERS, TOO_MANY_CALLS, TRACE_FULL, TOO_MANY_PACKETS, PART_MISSING = 5, 6, 7, 8, 9

# events of a trace
SEND, ENTER, DROP, MARK, LEAVE, RECEIVE, ACKNOWLEDGE, QUENCHED, EXPIRE, CHANGE = range(10)

# numbers of a queue law's block; its state and parameters follow. Hooks that need a random number
# draw it, from the stream of the law's key, and count the draws
Q_COUNT, Q_ELAPSED, Q_QUEUE, Q_CAPACITY, Q_SIZE, Q_GAP = range(6)
Q_MARK, Q_DROP, Q_CHANCE, Q_CHANGED, Q_SOJOURN, Q_BUFFER = range(6, 12)
Q_RANDOM, Q_KEY, Q_DRAWS, Q_SPACING, Q_WRITTEN = range(12, 17)
NUMBERS = len(WRITTEN)  # that links write into a packet, in this order
SPACING, ROOM = NUMBERS, NUMBERS + 1  # that of the sender, behind them; and of all
LOAD = WRITTEN.index("load")
Q_STATE = Q_WRITTEN + NUMBERS
# of a window law's: the rest of its state and parameters follow
W_WINDOW, W_CHANGED, W_SLOW, W_PERIOD, W_ROUNDS, W_PACING = range(6)
W_ELAPSED, W_RTT, W_MARKED, W_DELAY, W_RANDOM, W_KEY, W_DRAWS, W_MEASURES = range(6, 14)
_MEASURED = {name: W_MEASURES + k for k, name in enumerate(MEASURES)}
W_TRIP, W_ONE_WAY, W_LEAST, W_GREATEST, W_ACKED, W_RATE, W_LOST, W_FLIGHT = _MEASURED.values()
W_WRITTEN = W_MEASURES + len(MEASURES)
W_STATE = W_WRITTEN + NUMBERS
_WRITTEN = {name: W_WRITTEN + k for k, name in enumerate(WRITTEN)}
_W_OF = {"elapsed": W_ELAPSED, "rtt": W_RTT, "marked": W_MARKED, "delay": W_DELAY,
         "earlier": W_DELAY, "random": W_RANDOM} | _MEASURED | _WRITTEN  # fmt: skip
W_EVENT = {name: _W_OF[name] for name in Ack._fields[1:]}  # one packet at a time
# of a reaction's, a marking's, and an advertised window's: parameters follow
R_TIME, R_ROUND_TRIP, R_WINDOW, R_DROPPED, R_MARKED, R_RESULT = range(6)
M_PROBABILITY = 0
A_WINDOW, A_MARKED, A_RESULT = range(3)
# of an estimator's: parameters follow
E_ESTIMATE, E_HASHED, E_LOAD, E_PARAMETERS = range(4)
# of a source's: parameters follow
U_UNIFORM, U_RESULT = range(2)

# histograms of delays and transfer times: bins by the exponent and first bits of the number,
# 2^DELAY_BITS of them for each power of 2 from 2^DELAY_FIRST s (7 ns) to 2^DELAY_LAST s (18 h),
# after one for what is shorter
DELAY_BITS, DELAY_FIRST, DELAY_LAST = 8, -27, 16
DELAY_SIZE = 1 + ((DELAY_LAST - DELAY_FIRST) << DELAY_BITS)


ADDRESSES: dict[np.dtype, set[str]] = {}
"""Fields of records that are addresses, of arrays or of code: no two runs have the same."""


def _record(*fields: str) -> tuple[np.dtype, Any]:
    """Aligned record of fields given as "type name name ...", and its accessor; addresses are of
    type "at".
    """
    words = [line.split() for line in fields]
    kinds = [(name, kind) for kind, *names in words for name in names]
    found = np.dtype([(name, "i8" if kind == "at" else kind) for name, kind in kinds], align=True)
    ADDRESSES[found] = {name for name, kind in kinds if kind == "at"}
    return found, record_at(found)


# identity: number of a data packet among those of its flow; of an ACK, the sequence number that it
# answers
PACKET_RECORD, packet_at = _record(
    "f8 arrives since sent delay",
    "i4 flow sequence next size flags hop connection identity",
)

# of a packet as it was sent, if its flow measures the delivery rate: ACKs that had come, when the
# last of them did and when the packet that it answered was sent, and packets found lost
SAMPLE_RECORD, sample_at = _record("f8 acked_at answered_sent lost", "i8 acks")

ENTITY_RECORD, entity_at = _record("i4 kind index")
ENTRY_RECORD, entry_at = _record("f8 time since")
INDEX_RECORD, index_at = _record("i4 value")
BYTE_RECORD, byte_at = _record("u1 value")
NUMBER_RECORD, number_at = _record("f8 value")
COUNT_RECORD, count_at = _record("u4 value")
TOTAL_RECORD, total_at = _record("i8 value")

WIRE_RECORD, wire_at = _record("f8 delay rate free", "i4 head tail count port onward")

PORT_RECORD, port_at = _record(
    "f8 rate capacity limit unit idle_since started seen_at changed area squares bytes_area idle",
    "f8 period spread waiting_idle bytes_squares random_loss delay_sum weight tag shift",
    "i8 bytes gap gap_bytes arrivals departures drops marks draws largest_bytes loss_draws",
    "at update arrive depart signal signalled tick block transmitter delays",
    "u8 key loss_key",
    "i4 head tail count serving busy armed by_bytes averages counts_system largest largest_system",
    "i4 timer waits due written reads link marks_transmitted entity sibling coupled judged shares",
    "i4 ahead",
)

GROUP_RECORD, group_at = _record(
    "f8 tick min_rto max_rto overhead receiver_window floor mark_below ack_delay",
    "at on_ack on_mark on_loss observe ready growing marking advertise law_block reaction_block",
    "at marking_block advertise_block on_tick period slow_start rounds decode decode_block memory",
    "at rtts pacing",
    "f8 memory_time",
    "i4 size ack_size quench_size syn_size syn dup_acks limited_transmit one_fast_retransmit",
    "i4 integer_windows partial_deflation partial_timer_once newreno ecn_echo ecn_capable",
    "i4 source_quench moment echo_until_cwr grow_on_echo choice_waiting choice_arms",
    "i4 states written loads marks_tell_load sack recovery_burst window_validation delayed_acks",
    "i4 byte_counting rate_based measures samples_rate",
)

FLOW_RECORD, flow_at = _record(
    # who it is, and its accounts
    "f8 clock_phase propagation forward tail_delay changed window_time window_acks rtt_sum",
    "f8 delay_sum delay_squares ipdv_sum requested_at connected_at active_time",
    "i8 draws acks sent lost acks_lost marked received timeouts window_reductions recoveries",
    "i8 source_quenches delivered ipdv_count",
    "at memory scoreboard",
    "u8 key hash_key",
    "i4 group started return_wire connection session request_flow data_flow requested_size",
    "i4 next_free",
    # the state of its connection, which the next connection begins anew
    "f8 window ssthresh initial_window deadline send_at rto timed_at reacted_at rtt acked_at",
    "f8 last_delay advertised tick_at traced_window traced_ssthresh full_at sent_at",
    "f8 paced_until one_way rate answered answered_sent found_lost lost_since least_rtt",
    "f8 least_before greatest_rtt greatest_before extremes_until",
    "i4 inflation duplicates next_sequence highest_sent acked recover last_reaction timing",
    "i4 timed_sequence srtt rttvar backoff ecn_on at_one cwr_due partial sending limit sack_state",
    "i4 pipe sacked sacked_end resent_end quench_for_drop delay_known used",
)
FLOW_WORDS = FLOW_RECORD.itemsize // 4
CONNECTION_WORD = (FLOW_RECORD.fields or {})["window"][1] // 4

# sources of files; `free` and `next_free` chain flows and sessions that are not in use
SOURCE_RECORD, source_at = _record(
    "f8 span_sum span_squares",
    "at arrival pages pause objects gap size block histogram",
    "i8 draws transfers begun offered sessions_begun most",
    "u8 key session_key",
    "i4 open waits free free_session request_size group",
)
SESSION_RECORD, session_at = _record(
    "f8 pages", "i8 draws", "u8 key", "i4 source entity flow objects under_way next_free"
)

# a transfer that has ended: its request and time, its packets
TRANSFER_RECORD, transfer_at = _record("f8 start time", "i4 size source")

# blocks of selective ACKs, so many for each ACK and receiver, the newest first; a right end of 0
# means no block
BLOCKS = 3
BLOCK_RECORD, block_at = _record("i4 left right")

# `held` is the number of the packet whose ACK is delayed, after 0 for none; `end` that after the
# highest sequence number that has arrived
RECEIVER_RECORD, receiver_at = _record("f8 estimate", "i4 expected echo end held ack_timer")

# changes of a link, of which number `next` comes next; numbers that are NEVER stay as they are
SCHEDULE_RECORD, schedule_at = _record("at changes wires", "i4 entity wire_count next count")
CHANGE_RECORD, change_at = _record("f8 time rate capacity delay")

# a transmitter of several ports, chained by `sibling` from the first to -1: the virtual time of
# fair queueing, and whether it sends
TRANSMITTER_RECORD, transmitter_at = _record("f8 virtual", "i4 first busy")

CROSS_RECORD, cross_at = _record("f8 gap", "i8 draws", "u8 key", "i4 flow size exponential")

# the calls of a link and their packets; `free` and `next` chain the calls that are not in use
VOICE_RECORD, voice_at = _record(
    "f8 gap holding talk pause active frame calls_time changed ipdv_sum",
    "i8 draws offered refused ipdv_count",
    "u8 key call_key",
    "i4 flow size flags most present calls_begun free",
)
CALL_RECORD, call_at = _record(
    "f8 ends switches frame_at last_delay",
    "i8 draws",
    "u8 key",
    "i4 voice entity number talking delay_known next",
)

# a line of a trace; `link` and `flow` are -1 where there is none
LINE_RECORD, line_at = _record(
    "f8 time window ssthresh", "i4 event link flow sequence size flags connection"
)

SIMULATION_RECORD, simulation_at = _record(
    "f8 now",
    "at packets samples entities entries winners wires ports groups flows receivers routes",
    "at quenches ring crosses voices calls ack_blocks receiver_blocks sources sessions",
    "at initial_flows trace schedules ended arrivals numbers",
    # addresses of parts that are compiled apart, by the name of the function
    "at report_missing trace_packet trace_sender tick_queue catch_up receive_sack send_sack",
    "at reset_sack report_blocks send_quench mark_departure receive_quench rewrite_ack",
    "at write_numbers begin_numbers take_numbers read_spacing decode_load",
    "at judge_heads serve_fairly mark_coupled send_cross receive_datagram advance_call admit_call",
    "at advance_session start_session finish_connection stop_flow delay_ack send_delayed_ack",
    "at change_link",
    "i8 events ended_count",
    "i4 free leaves flow_count port_count ring_mask hops status voice_count finished_flow",
    "i4 traced trace_size",
    "i4 ended_size ended_step group_count",
)
