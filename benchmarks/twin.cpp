// The packet engine's algorithm in C++17, for its benchmark: the dumbbell of becn.tcl.
//
//   g++ -O2 -march=native -ffp-contract=off -std=c++17 -o twin twin.cpp
//   ./twin FLOWS SECONDS SEED [hops]
//
//   source i --100 Mbit/s, 2 ms-- router --10 Mbit/s, 40 ms, RED-- receiver i, and back
//
// Same calendar, packet pool, random streams, senders, RED and accounts, and the same order of
// every sum, so that it prints the same bits as the engine gives: that makes it a twin. It leaves
// out what makes the engine general: laws by address, options, other senders and queues. With
// `hops`, every hop is simulated; without, as few events as give the same result.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "twin.hpp"

namespace {

[[noreturn]] void fail(const char* why) {
    std::fprintf(stderr, "twin: %s\n", why);
    std::exit(1);
}

struct Simulation : Calendar {
    double now = 0.0;
    int64_t events = 0;
    int32_t free = 0, hops = 0;
    std::vector<Packet> packets;
    std::vector<Wire> wires;
    std::vector<Port> ports;
    std::vector<Flow> flows;
    std::vector<Receiver> receivers;
    std::vector<int32_t> routes;
    std::vector<uint8_t> ring;

    // Packets, queues, wires.

    void release(int32_t index) {
        packets[index].next = free;
        free = index;
    }

    void append(Queue& queue, int32_t index) {
        packets[index].next = -1;
        (queue.count == 0 ? queue.head : packets[queue.tail].next) = index;
        queue.tail = index;
        ++queue.count;
    }

    int32_t take(Queue& queue) {
        const int32_t index = queue.head;
        queue.head = packets[index].next;
        --queue.count;
        return index;
    }

    void post(int32_t entity, int32_t index, double time, double since) {
        Wire& wire = wires[entities[entity].index];
        packets[index].arrives = time;
        packets[index].since = since;
        append(wire, index);
        if (wire.count == 1) schedule(entity, time, since);
    }

    void travel(int32_t entity, int32_t index, double start, double spent) {
        Wire& wire = wires[entities[entity].index];
        if (wire.rate > 0) {
            start = std::max(start, wire.free);
            spent = packets[index].size / wire.rate;
            wire.free = start + spent;
        }
        post(entity, index, start + (spent + wire.delay), start);
    }

    int32_t arrived(int32_t entity) {
        Wire& wire = wires[entities[entity].index];
        const int32_t index = take(wire);
        const Packet& head = packets[wire.head];
        if (wire.count > 0) schedule(entity, head.arrives, head.since);
        else schedule(entity, NEVER, now);
        return index;
    }

    void forward(int32_t index, double start, double spent) {
        Packet& packet = packets[index];
        if (packet.hop >= hops) fail("a packet left its route");
        const int32_t entity = routes[packet.flow * hops + packet.hop++];
        if (entity == RECEIVER) receive(index, start, spent);
        else if (entities[entity].kind == PORT) arrive(entity, index);
        else travel(entity, index, start, spent);
    }

    // Ports and RED.

    void account(Port& port) {
        const double span = now - port.changed, count = port.count, bytes = double(port.bytes);
        port.area += span * count;
        port.squares += span * count * count;
        port.bytes_area += span * bytes;
        port.bytes_squares += span * bytes * bytes;
        if (!port.busy) port.idle += span;
        port.changed = now;
    }

    // Whether a packet that the law chooses must be dropped for it; else it is marked.
    bool choose(Port& port, Packet& packet, double chance, bool full) {
        if (!(chance > 0) || (chance < 1 && uniform(port.key, ++port.draws) > chance)) return false;
        port.gap_bytes = 0;
        if (!(packet.flags & MARKABLE) || full) return true;
        if (!(packet.flags & MARKED)) {
            packet.flags |= MARKED;
            ++port.marks;
            ++flows[packet.flow].marked;
        }
        return false;
    }

    // RED in byte mode with ns-2's waiting between marks: whether an arriving packet is dropped.
    bool drops(Port& port, Packet& packet) {
        const bool full = double(port.bytes) >= LIMIT;
        if (!port.busy && port.count == 0) {  // as many empty samples as there was time for
            const auto idle = int64_t((now - port.idle_since) * CAPACITY);
            if (idle > 0) port.average += (1 - std::pow(1 - W_Q, double(idle))) * -port.average;
        }
        port.gap_bytes += packet.size;
        const double queue = double(port.bytes) / SIZE, size = double(packet.size) / SIZE;
        port.average += W_Q * (queue - port.average);
        const double ramp = std::clamp((port.average - MIN_TH) / (MAX_TH - MIN_TH), 0.0, 1.0);
        const double p = std::min(1.0, P_MAX * size * ramp), share = std::min(1.0, size);
        const double waited = p * double(port.gap_bytes / SIZE), left = 2 - waited;
        const bool above = port.average > MAX_TH;
        bool forced = false, lost = false;
        if (!((above || p > 0) && port.bytes >= 2)) {
            port.armed = 0;
        } else if (above && (share >= 1 || uniform(port.key, ++port.draws) < share)) {
            forced = true;
        } else if (!port.armed) {  // the first packet above the threshold is never chosen
            port.armed = 1;
            port.gap_bytes = packet.size;
        } else {
            const double chance = waited < 1 ? 0.0 : p < left ? p * (1 / left) : 1.0;
            lost = choose(port, packet, above ? share : chance, full);
        }
        if (forced || full) port.gap_bytes = 0;
        return forced || full || lost;
    }

    void serve(int32_t entity, Port& port) {
        if (port.count == 0) {
            schedule(entity, NEVER, now);
            if (port.busy) port.idle_since = now;
            port.busy = 0;
            return;
        }
        port.serving = take(port);
        port.bytes -= packets[port.serving].size;
        port.busy = 1;
        port.started = now;
        schedule(entity, now + packets[port.serving].size / port.rate, now);
    }

    void arrive(int32_t entity, int32_t index) {
        Port& port = ports[entities[entity].index];
        Packet& packet = packets[index];
        account(port);
        ++port.arrivals;
        if (port.red && drops(port, packet)) {
            ++port.drops;
            ++flows[packet.flow].lost;
            release(index);
            return;
        }
        append(port, index);
        port.bytes += packet.size;
        if (!port.busy) serve(entity, port);
        port.largest = std::max(port.largest, port.count);
        port.largest_bytes = std::max(port.largest_bytes, port.bytes);
        port.largest_system = std::max(port.largest_system, port.count + port.busy);
    }

    void depart(int32_t entity) {
        Port& port = ports[entities[entity].index];
        account(port);
        const int32_t index = port.serving;
        const double start = port.started, spent = packets[index].size / port.rate;
        ++port.departures;
        serve(entity, port);
        forward(index, start, spent);
    }

    // Receivers: an acknowledgement of each packet, with the echo of marks until it is confirmed.

    void receive(int32_t index, double start, double spent) {
        Packet& packet = packets[index];
        Flow& flow = flows[packet.flow];
        Receiver& receiver = receivers[packet.flow];
        uint8_t* noted = &ring[size_t(packet.flow) * RING];
        ++flow.received;
        if (packet.sequence == receiver.expected) {
            ++receiver.expected;
            for (; noted[receiver.expected & (RING - 1)]; ++receiver.expected)
                noted[receiver.expected & (RING - 1)] = 0;
        } else if (packet.sequence > receiver.expected) {
            if (packet.sequence - receiver.expected >= RING - 1) fail("a window beyond the ring");
            noted[packet.sequence & (RING - 1)] = 1;
        }
        if (packet.flags & CONFIRM) receiver.echo = 0;
        if (packet.flags & MARKED) receiver.echo = 1;
        const bool echo = packet.flags & SETUP || (packet.flags & MARKABLE && receiver.echo);
        packet.sequence = receiver.expected - 1;
        packet.flags = echo ? ECHO : 0;
        packet.size = SMALL;
        const double time = start + (spent + flow.tail_delay);
        packet.delay = time - packet.sent;
        post(flow.return_wire, index, time + wires[entities[flow.return_wire].index].delay, time);
    }

    // Senders: NewReno with ECN, timers in clock ticks.

    void set_timer(int32_t f, Flow& flow) {
        flow.deadline = now + flow.timeout();
        if (entries[f].time > flow.deadline) schedule(f, flow.deadline, now);
    }

    void restart_timer(int32_t f, Flow& flow, int32_t sequence) {
        if (flow.next_sequence > sequence || sequence < flow.highest_sent || flow.window < 1)
            set_timer(f, flow);
        else
            flow.deadline = NEVER;
    }

    void send(int32_t f, Flow& flow, int32_t sequence) {
        if (sequence - flow.acked > RING - 1) fail("a window beyond the ring");
        if (free < 0) fail("no packet is left");
        const int32_t index = free;
        Packet& packet = packets[index];
        free = packet.next;
        packet.flow = f;
        packet.sequence = sequence;
        packet.sent = now;
        packet.hop = 0;
        packet.size = sequence == 0 ? SMALL : SIZE;
        packet.flags = sequence == 0 ? SETUP : flow.confirm ? MARKABLE | CONFIRM : MARKABLE;
        flow.confirm = 0;
        const bool nothing_out = flow.acked == flow.highest_sent;
        ++flow.sent;
        if (sequence > flow.highest_sent) {
            flow.highest_sent = sequence;
            if (!flow.timing && sequence > flow.timed_sequence) {
                flow.timed_sequence = sequence;
                flow.timed_at = now;
            }
            flow.timing = 1;
        }
        if (flow.deadline >= NEVER || nothing_out) set_timer(f, flow);
        forward(index, now, 0.0);
    }

    void send_allowed(int32_t f, Flow& flow, int burst) {
        for (int count = 1; flow.next_sequence <= flow.acked + flow.allowed(); ++count) {
            send(f, flow, flow.next_sequence);
            ++flow.next_sequence;
            if (count == burst) return;
        }
    }

    // A mark counts once in a window of data.
    void hear(Flow& flow, int32_t sequence) {
        if (sequence <= flow.recover && flow.action != TIMEOUT) return;
        const double target = flow.half(flow.inflation);
        ++flow.reactions;
        flow.recover = flow.highest_sent;
        flow.action = SIGNAL;
        if (flow.window <= 1 && flow.at_one) flow.back_off();
        flow.at_one = flow.window <= 1;
        flow.set_threshold(target);
        flow.window = target;
        flow.confirm = 1;
    }

    void go_on(int32_t f, Flow& flow, int32_t sequence, bool echo) {
        if (flow.action == FAST && flow.inflation > 0) flow.action = LEFT;
        flow.inflation = flow.partial = flow.duplicates = 0;
        flow.acked = sequence;
        flow.next_sequence = std::max(flow.next_sequence, sequence + 1);
        if (flow.timing && sequence >= flow.timed_sequence) {
            if (!flow.capable || !flow.at_one || !echo) {
                flow.backoff = 1;
                flow.at_one = 0;
            }
            flow.timing = 0;
            flow.take_sample(now);
        }
        restart_timer(f, flow, sequence);
        if (!echo || !flow.capable) {
            const double growth = flow.window < flow.threshold ? 1.0 : 1 / flow.window;
            flow.window = std::min(flow.window + growth, MAX_WINDOW);
        }
        if (flow.capable && !echo) flow.at_one = 0;
        if (echo) flow.capable = 1;
        if (sequence == 0) flow.window = flow.initial_window;
    }

    // An acknowledgement of a part of the window in a recovery: the next hole is sent again.
    void repair(int32_t f, Flow& flow, int32_t sequence) {
        if (!flow.partial) restart_timer(f, flow, sequence);
        flow.partial = 1;
        const int32_t covered = sequence - flow.acked;
        if (flow.inflation > covered) {
            flow.inflation -= covered - 1;
        } else {
            flow.window = std::max(flow.window - (covered - flow.inflation), 1.0);
            flow.inflation = 1;
        }
        flow.acked = sequence;
        flow.next_sequence = std::max(flow.next_sequence, sequence + 1);
        if (flow.timing && sequence >= flow.timed_sequence) {
            flow.timing = 0;
            flow.backoff = 1;
        }
        send(f, flow, sequence + 1);
    }

    void retransmit(int32_t f, Flow& flow) {
        if (flow.acked > flow.recover || flow.acked == 0) {
            flow.recover = flow.highest_sent;
            ++flow.recoveries;
            flow.window = flow.half(flow.inflation);
            flow.set_threshold(flow.window);
            flow.confirm = 1;
        } else if (flow.action != SIGNAL) {
            return;
        }
        flow.action = FAST;
        set_timer(f, flow);
        flow.timing = 0;
        send(f, flow, flow.acked + 1);
        flow.inflation = DUP_ACKS;
    }

    void acknowledge(int32_t index) {
        const Packet& packet = packets[index];
        const int32_t f = packet.flow, sequence = packet.sequence;
        const bool echo = packet.flags & ECHO;
        Flow& flow = flows[f];
        flow.hold(now);
        flow.rtt_sum += now - packet.sent;
        flow.window_acks += std::min(flow.window, MAX_WINDOW);
        flow.delay_sum += packet.delay;
        flow.delay_squares += packet.delay * packet.delay;
        if (flow.acks++ > 0) flow.delay_steps += std::abs(packet.delay - flow.last_delay);
        flow.last_delay = packet.delay;
        release(index);
        if (echo && flow.capable) hear(flow, sequence);
        if (sequence > flow.acked && flow.action == FAST && sequence < flow.recover) {
            repair(f, flow, sequence);
        } else if (sequence > flow.acked) {
            go_on(f, flow, sequence, echo);
        } else if (sequence == flow.acked) {
            if (++flow.duplicates == DUP_ACKS) retransmit(f, flow);
            else if (flow.duplicates > DUP_ACKS && flow.action == FAST) ++flow.inflation;
        }
        if (flow.duplicates == 0) send_allowed(f, flow, 0);
        else if (flow.duplicates >= DUP_ACKS) send_allowed(f, flow, 2);
    }

    void expire(int32_t f, Flow& flow) {
        flow.hold(now);
        flow.inflation = flow.duplicates = flow.timing = 0;
        flow.window = std::max(flow.window, 1.0);
        flow.recover = flow.highest_sent;
        const bool nothing_out = flow.acked == flow.highest_sent;
        if (flow.acked < 0) flow.initial_window = 1.0;
        if (!nothing_out && flow.action != SIGNAL) {
            ++flow.timeouts;
            flow.set_threshold(flow.half(0));
        }
        flow.window = 1.0;
        flow.confirm = 1;
        if (!nothing_out) flow.back_off();
        set_timer(f, flow);
        flow.next_sequence = flow.acked + 1;
        flow.action = TIMEOUT;
        send_allowed(f, flow, 0);
    }

    void wake(int32_t f) {
        Flow& flow = flows[f];
        if (!flow.started) {
            flow.started = 1;
            flow.changed = now;
            send_allowed(f, flow, 0);
        } else if (flow.deadline <= now) {
            expire(f, flow);
        }
        schedule(f, flow.deadline, now);
    }

    // The network.

    int32_t wire(double delay, double rate = 0.0, Kind kind = WIRE) {
        wires.emplace_back();
        wires.back().delay = delay;
        wires.back().rate = rate;
        return add(kind, wires.size() - 1);
    }

    int32_t port(double rate) {
        ports.emplace_back();
        ports.back().rate = rate;
        return add(PORT, ports.size() - 1);
    }

    Simulation(int count, uint64_t seed, bool every_hop)
        : packets(400 + 64 * count), flows(count), receivers(count), ring(RING * count) {
        for (size_t k = 0; k < packets.size(); ++k) packets[k].next = int32_t(k) + 1;
        packets.back().next = -1;
        for (int k = 0; k < count; ++k) add(SENDER, k);
        const int32_t link = port(RATE);
        ports[0].red = 1;
        ports[0].key = stream_key(seed, QUEUE, 0);
        std::vector<std::vector<int32_t>> ways(count);
        for (int k = 0; every_hop && k < count; ++k) ways[k] = {port(ACCESS_RATE)};
        for (auto& way : ways) way.push_back(wire(ACCESS_DELAY, every_hop ? 0.0 : ACCESS_RATE));
        const int32_t ahead = wire(DELAY);
        for (int k = 0; k < count; ++k) {
            ways[k].push_back(link);
            if (every_hop) ways[k].push_back(ahead);
            ways[k].push_back(RECEIVER);
            routes.insert(routes.end(), ways[k].begin(), ways[k].end());
            const bool shared = !every_hop && k > 0;
            const double back = ROUND_TRIP - (ACCESS_DELAY + DELAY);
            flows[k].return_wire = shared ? flows[0].return_wire : wire(back, 0.0, RETURN);
            flows[k].tail_delay = every_hop ? 0.0 : DELAY;
            flows[k].boot = uniform(stream_key(seed, BOOT, k), 1) * TICK;
        }
        hops = int32_t(ways[0].size());
        begin();
        for (int k = 0; k < count; ++k)
            schedule(k, LAST_START * uniform(stream_key(seed, START, k), 1), 0.0);
    }

    // Perform the events up to a time, and bring the accounts there.
    void advance(double stop) {
        while (entries[winners[1]].time <= stop) {
            const int32_t entity = winners[1];
            now = entries[entity].time;
            ++events;
            switch (entities[entity].kind) {
                case SENDER: wake(entity); break;
                case PORT: depart(entity); break;
                case WIRE: forward(arrived(entity), now, 0.0); break;
                case RETURN: acknowledge(arrived(entity)); break;
            }
        }
        now = stop;
        for (Port& port : ports) account(port);
        for (Flow& flow : flows)
            if (flow.started) flow.hold(now);
    }
};

// A line for each account: its name, and its value for each port or flow.
template <typename T, typename Field>
void print(const char* name, const std::vector<T>& all, Field T::*field) {
    std::printf("%s", name);
    for (const T& one : all) std::printf(" %.17g", double(one.*field));
    std::printf("\n");
}

void print(const Simulation& run) {
    std::printf("state.events %lld\n", static_cast<long long>(run.events));
#define OF_PORTS(name) print("ports." #name, run.ports, &Port::name)
    OF_PORTS(area), OF_PORTS(squares), OF_PORTS(bytes_area), OF_PORTS(bytes_squares);
    OF_PORTS(idle), OF_PORTS(arrivals), OF_PORTS(departures), OF_PORTS(drops), OF_PORTS(marks);
    OF_PORTS(largest), OF_PORTS(largest_bytes), OF_PORTS(largest_system);
#define OF_FLOWS(name) print("flows." #name, run.flows, &Flow::name)
    OF_FLOWS(acked), OF_FLOWS(acks), OF_FLOWS(sent), OF_FLOWS(lost), OF_FLOWS(marked);
    OF_FLOWS(received), OF_FLOWS(timeouts), OF_FLOWS(reactions), OF_FLOWS(recoveries);
    OF_FLOWS(window_time), OF_FLOWS(window_acks), OF_FLOWS(rtt_sum), OF_FLOWS(delay_sum);
    OF_FLOWS(delay_squares), OF_FLOWS(delay_steps);
}

}  // namespace

int main(int count, char** words) {
    if (count < 4 || std::atoi(words[1]) < 1) fail("FLOWS SECONDS SEED [hops]");
    const double until = std::atof(words[2]);
    const bool every_hop = count > 4 && std::strcmp(words[4], "hops") == 0;
    Simulation run(std::atoi(words[1]), std::strtoull(words[3], nullptr, 10), every_hop);
    for (int k = 1; k <= 20; ++k) run.advance(until * k / 20);  // the engine's batches
    print(run);
}
