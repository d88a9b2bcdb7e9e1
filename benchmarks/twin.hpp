// What the twin of the packet engine (twin.cpp) simulates: the scenario, random streams, records.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

constexpr double NEVER = 1e300;
constexpr int RECEIVER = -1;  // ends a route
constexpr int RING = 256;     // packets beyond the one expected that a receiver can note

// The scenario: sizes in bytes, times in s, rates in bytes/s, windows and thresholds in packets.
constexpr int SIZE = 1000, SMALL = 40;  // data; acknowledgements and the first packet of a flow
constexpr double ACCESS_RATE = 1.25e7, ACCESS_DELAY = 0.002, LAST_START = 5.0;
constexpr double CAPACITY = 1250.0, RATE = 1.25e6, DELAY = 0.04, LIMIT = 90e3;
constexpr double ROUND_TRIP = 2 * 0.044 + 8000 / 1e8 + 2 * 320 / 1e8 + 320 / 1e7;
constexpr double MIN_TH = 15.0, MAX_TH = 45.0, P_MAX = 0.1, W_Q = 0.002;
constexpr double MAX_WINDOW = 100.0, INITIAL_WINDOW = 2.0;
constexpr double TICK = 0.1, MIN_RTO = 1.0, MAX_RTO = 60.0, INITIAL_RTO = 3.0;
constexpr int DUP_ACKS = 3;

enum Kind : int32_t { SENDER, WIRE, PORT, RETURN };
enum Flag : int32_t { MARKABLE = 1, MARKED = 2, ECHO = 4, CONFIRM = 8, SETUP = 16 };
enum Action : int32_t { NOTHING, FAST, TIMEOUT, SIGNAL, LEFT };
enum Purpose : uint64_t { START, BOOT, SEND, QUEUE };

// Random numbers: splitmix64 as a function of a counter, one stream per purpose and object.

constexpr uint64_t GAMMA = 0x9E3779B97F4A7C15;

inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

inline uint64_t stream_key(uint64_t seed, Purpose purpose, uint64_t index) {
    const uint64_t key = mix(mix(seed * GAMMA + GAMMA) + (purpose + 1) * GAMMA);
    return mix(key + (index + 1) * GAMMA);
}

inline double uniform(uint64_t key, uint64_t draw) {
    return double(mix(key + draw * GAMMA) >> 11) * (1.0 / 9007199254740992.0);
}

// What there is.

struct Packet {
    double arrives, since, sent, delay;
    int32_t flow, sequence, next, size, flags, hop;
};

struct Entity {
    Kind kind;
    int32_t index;
};

struct Entry {
    double time, since;
};

struct Queue {
    int32_t head = 0, tail = 0, count = 0;
};

struct Wire : Queue {  // a delay, behind a transmitter that never drops where there is a rate
    double delay = 0.0, rate = 0.0, free = 0.0;
};

struct Port : Queue {  // a transmitter behind a queue: RED in byte mode, or without limit or law
    double rate = 0.0, started = 0.0, idle_since = 0.0, average = 0.0;
    int64_t bytes = 0, gap = 0, gap_bytes = 0;
    uint64_t key = 0, draws = 0;
    int32_t serving = 0, busy = 0, armed = 0, red = 0;
    // accounts
    double changed = 0.0, area = 0.0, squares = 0.0, idle = 0.0, bytes_area = 0.0;
    double bytes_squares = 0.0;
    int64_t arrivals = 0, departures = 0, drops = 0, marks = 0, largest_bytes = 0;
    int32_t largest = 0, largest_system = 0;
};

struct Flow {
    double window = 1.0, threshold = MAX_WINDOW, initial_window = INITIAL_WINDOW;
    double deadline = NEVER, rto = INITIAL_RTO, timed_at = 0.0, boot = 0.0, tail_delay = 0.0;
    int32_t started = 0, inflation = 0, duplicates = 0, next_sequence = 0, highest_sent = -1;
    int32_t acked = -1, recover = 0, action = NOTHING, timing = 0, timed_sequence = -1;
    int32_t smoothed = 0, deviation = int(4 * INITIAL_RTO / TICK) << 2, backoff = 1;
    int32_t capable = 0, at_one = 0, confirm = 0, partial = 0, return_wire = 0;
    // accounts
    double changed = 0.0, window_time = 0.0, window_acks = 0.0, rtt_sum = 0.0;
    double delay_sum = 0.0, delay_squares = 0.0, delay_steps = 0.0, last_delay = 0.0;
    int64_t acks = 0, sent = 0, lost = 0, marked = 0, received = 0;
    int64_t timeouts = 0, reactions = 0, recoveries = 0;

    double timeout() const {
        return std::max(std::min(std::max(rto, MIN_RTO) * backoff, MAX_RTO), 2 * TICK);
    }
    double half(int32_t extra) const { return 0.5 * std::min(window + extra, MAX_WINDOW); }
    int32_t allowed() const { return std::min(int(window) + inflation, int(MAX_WINDOW)); }
    void set_threshold(double target) { threshold = std::max(double(int(target)), 2.0); }

    void hold(double now) {
        window_time += (now - changed) * std::min(window, MAX_WINDOW);
        changed = now;
    }

    void back_off() {
        if (backoff < 64 || timeout() < MAX_RTO) backoff *= 2;
        if (backoff > 8) {
            deviation += smoothed >> 3;
            smoothed = 0;
        }
    }

    void take_sample(double now) {
        const double phase = std::fmod(timed_at + boot, TICK);
        const int ticks = std::max(int((now - timed_at + phase) / TICK), 1);
        if (smoothed != 0) {
            const int error = ticks - (smoothed >> 3);
            smoothed = std::max(smoothed + error, 1);
            deviation = std::max(deviation + std::abs(error) - (deviation >> 2), 1);
        } else {
            smoothed = ticks << 3;
            deviation = ticks << 1;
        }
        rto = (((deviation << 3) + smoothed) >> 3) * TICK;
    }
};

struct Receiver {
    int32_t expected = 0, echo = 0;
};

// A knock-out tournament by time, then by when an event was set off, then by number of the entity.
struct Calendar {
    std::vector<Entity> entities;
    std::vector<Entry> entries;
    std::vector<int32_t> winners;  // of match k, which meets that of k ^ 1 in match k / 2
    uint32_t places = 2;

    int32_t add(Kind kind, size_t index) {
        entities.push_back({kind, int32_t(index)});
        return int32_t(entities.size()) - 1;
    }

    void begin() {
        while (places < entities.size()) places *= 2;
        entries.assign(places, {NEVER, 0.0});
        winners.resize(2 * places);
        for (uint32_t k = 0; k < places; ++k) winners[places + k] = int32_t(k);
        for (uint32_t k = places - 1; k > 0; --k) winners[k] = winners[2 * k];
    }

    void schedule(int32_t entity, double time, double since) {
        entries[entity] = {time, since};
        int32_t winner = entity;
        for (uint32_t match = places + uint32_t(entity); match > 1;) {
            const int32_t other = winners[match ^ 1];
            const Entry rival = entries[other];
            bool wins = rival.time < time;
            if (rival.time == time)
                wins = rival.since < since || (rival.since == since && other < winner);
            winner = wins ? other : winner;
            time = wins ? rival.time : time;
            since = wins ? rival.since : since;
            match >>= 1;
            if (winners[match] == winner && winner != entity) return;
            winners[match] = winner;
        }
    }
};
