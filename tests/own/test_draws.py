"""Laws of one's own that read the buffer of their link, or a random number of the engine."""

from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.laws import AbstractQueueLaw, AbstractWindowLaw, Signal, ops, param, state
from fluidcc.laws.law import Ack, Arrival
from fluidcc.laws.own import loaded
from fluidcc.packets.plan import PacketError

EXAMPLES = Path(__file__).parents[2] / "docs" / "own_laws"
RED = {"min_th": 50.0, "max_th": 250.0, "p_max": 0.1, "w_q": 0.002, "gentle": True}


class Coin(AbstractWindowLaw):
    """Cuts the window as TCP does, at acknowledgements that a coin chooses."""

    name = "coin"
    source = "a test"
    reaction = "per_mark"
    recovery = "newreno"
    draws = ("on_ack",)
    p: float = param(0.02, "p_c", unit="1", doc="probability of a cut", within="(0, 1)")

    def on_ack(self, s, ack):
        return ops.where(ack.random < self.p * ack.count, -s / 2, ack.count / s)

    def on_mark(self, s, ack):
        return -s / 2

    def slow_start(self, s):
        return 0


class Even(AbstractQueueLaw):
    """Marks two packets of a hundred, whatever the queue."""

    name = "even"
    source = "a test"

    def signal(self, x, seen):
        return Signal(mark=0.02 + 0.0 * seen.queue)


class Sampled(AbstractQueueLaw):
    """An average of the queue that looks at a share of the packets."""

    name = "sampled"
    source = "a test"
    draws = ("on_arrival",)
    v = state("average", "v", unit="packet", doc="average queue", within="[0, inf)")
    share: float = param(0.1, "a", unit="1", doc="of packets that are looked at", within="(0, 1]")
    weight: float = param(0.02, "w_q", unit="1", doc="of one packet", within="(0, 1)")
    slope: float = param(5e-4, "b", unit="1/packet", doc="of the marking", within="(0, inf)")

    def on_arrival(self, x, seen):
        change = self.weight * (seen.queue - x)
        return ops.where(seen.random < self.share * seen.count, change, 0.0)

    def signal(self, x, seen):
        return Signal(mark=ops.minimum(self.slope * x, 1.0))


class Steady(Sampled):
    """The same average, of a part of each packet."""

    name = "steady"
    draws = ()

    def on_arrival(self, x, seen):
        return self.share * seen.count * self.weight * (seen.queue - x)


class Jittered(Sampled):
    """Ticks that move the average by a random part."""

    name = "jittered"
    draws = ("on_tick",)

    def period(self):
        return 0.01

    def on_arrival(self, x, seen):
        return 0.0 * x

    def on_tick(self, x, seen):
        return 0.2 * (0.5 + seen.random) * (seen.queue - x)


@pytest.fixture
def own():
    with loaded([EXAMPLES / "early_response.py", EXAMPLES / "drop_profile.py"]):
        for law in (Coin, Even, Sampled, Steady, Jittered):
            fc.register(law)
        yield


def test_flows_that_toss_a_coin_have_the_windows_of_flows_that_are_marked_by_one(own):
    base = {"link.capacity": "1 Gbit/s", "flow.n": 20, "flow.rtt": "100 ms"}
    tossed = {"flow.window.law": "coin", "link.queue.law": "droptail"}
    marked = {"flow.window": {"law": "reno", "reaction": "per_mark"}, "link.queue.law": "even"}
    nets = [fc.replace(fc.load("hollot2001/slow"), base | each) for each in (tossed, marked)]
    means = [
        next(iter(run.mean["flows"].values()))["window_mean"]
        for run in (fc.simulate_packets(n, until=200.0, warmup=20.0, seeds=[1, 2]) for n in nets)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.01)
    net = nets[0]
    again = fc.simulate_packets(net, until=20.0, seeds=[1, 2])
    same = fc.simulate_packets(net, until=20.0, seeds=[1, 2])
    assert again.to_dict()["runs"] == same.to_dict()["runs"]
    first, second = again.to_dict()["runs"]
    assert first["flows"] != second["flows"]


def test_a_rule_by_chance_has_the_equilibrium_of_its_mean(own):
    """Early response: growth of 1/W an ACK beside cuts of cut W by slope (delay - low)."""
    net = fc.load(EXAMPLES / "early_response.toml")
    rest = fc.equilibrium(net)
    flows, link = rest.flows["tcp"], rest.links["bottleneck"]
    delay, w = float(link.queueing_delay), float(flows.window[0])
    assert rest.status == "regular"
    assert 2.0 * (delay - 0.005) == pytest.approx(1 / (0.35 * w**2), rel=1e-9)
    assert w == pytest.approx(1250 * (0.06 + delay) / 10, rel=1e-9)
    runs = fc.simulate_packets(net, until=60.0, warmup=20.0, seeds=range(1, 5))
    queue = runs.mean["links"]["bottleneck"]["queue_mean"]
    assert (round(float(link.queue), 1), round(queue, 1)) == (24.3, 21.5)  # as the page has them


def test_a_sampled_average_is_in_the_mean_one_of_parts(own):
    base = {"link.queue": {"law": "sampled"}}
    sampled, steady = (
        fc.replace(fc.load("hollot2001/slow"), base | {"link.queue.law": law})
        for law in ("sampled", "steady")
    )
    found = [fc.stability(net) for net in (sampled, steady)]
    assert found[0].stable == found[1].stable
    roots = [np.array(each.roots)[:4] for each in found]
    assert roots[0] == pytest.approx(roots[1], rel=1e-9)
    runs = [
        fc.simulate_packets(net, until=200.0, warmup=50.0, seeds=range(1, 4)).mean
        for net in (sampled, steady)
    ]
    queues = [run["links"]["bottleneck"]["queue_mean"] for run in runs]
    assert queues[0] == pytest.approx(queues[1], rel=0.1)


def test_a_random_number_that_is_no_decision_has_its_mean(own):
    law = Jittered()
    seen = Arrival(1.0, 0.0, 80.0, 1000.0)
    assert float(law.on_tick(30.0, seen)) == pytest.approx(0.2 * 50.0)
    drawn = [law.on_tick(30.0, seen._replace(random=u)) for u in (0.0, 0.5, 1.0)]
    assert drawn == pytest.approx([5.0, 10.0, 15.0])
    net = fc.replace(fc.load("hollot2001/slow"), {"link.queue.law": "jittered"})
    rest = fc.equilibrium(net)
    queue = float(rest.links["bottleneck"].queue)
    assert rest.status == "regular"
    runs = fc.simulate_packets(net, until=100.0, warmup=30.0, seeds=range(1, 4))
    assert runs.mean["links"]["bottleneck"]["queue_mean"] == pytest.approx(queue, rel=0.15)


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0, 1.7])
def test_means_over_a_decision_hold_beyond_probabilities(chance):
    class Bold(Coin):
        name = "bold"

        def on_ack(self, s, ack):
            return ops.where(chance > ack.random, -s / 2, 0.0)

    assert float(Bold().on_ack(8.0, Ack(1.0, 0.0, 0.1))) == pytest.approx(-4.0 * min(chance, 1.0))


REFUSED = {
    "no line": ((), "ops.where(ack.random < 0.1 * ack.count, s / 2, 0.0)",
                "expected a line `draws = ('on_ack',)` in the class"),
    "no rule": (("on_acks",), "0.0", "a tuple of on_ack, on_mark, on_loss, observe, on_tick"),
    "two decisions": (("on_ack",), "ack.count * ops.where(ack.random < 0.1, 0.0, "
                      "ops.where(ack.random < 0.2, 1.0, 0.0))", "compares `random` once"),
    "a root": (("on_ack",), "ack.count * ops.sqrt(ack.random)", "or uses it by +, -, * and /"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_rules_whose_mean_is_not_known_are_refused_with_their_line(case, tmp_path):
    draws, taken, words = REFUSED[case]
    text = (EXAMPLES / "early_response.py").read_text()
    head, tail = text.split("        return ack.count / s - ")
    tail = tail.split("\n", 1)[1]
    text = f"{head}        return ack.count / s - {taken}\n{tail}"
    text = text.replace('draws = ("on_ack",)  # the rules that read ack.random', f"draws = {draws}")
    file = tmp_path / "law.py"
    file.write_text(text)
    with loaded([]), pytest.raises(fc.ScenarioError) as refusal:
        fc.load_laws(file)
    assert words in str(refusal.value) and "law.py" in str(refusal.value)


def test_levels_that_do_not_draw_say_so(own):
    net = fc.load(EXAMPLES / "early_response.toml")
    with pytest.raises(PacketError, match=r"flows\.tcp\.window: early_response draws a random"):
        fc.simulate_trains(net, until=1.0)
    noise = fc.fluctuations(net)
    assert noise.status == "refused" and "random numbers of its own" in noise.message
    sampled = fc.replace(fc.load("hollot2001/pi"), {"link.queue.law": "sampled"})
    noise = fc.fluctuations(sampled)
    assert noise.status == "refused" and "sampled draws random numbers" in noise.message
    groups = fc.window_distributions(net, p=0.01).groups
    assert "tcp" not in groups


class Fixed(AbstractQueueLaw):
    """The drop profile of the page, at a level in packets."""

    name = "fixed"
    source = "a test"
    first: float = param(20.0, "q_0", unit="packet", doc="first marks", within="[0, inf)")
    full: float = param(200.0, "q_1", unit="packet", doc="all are marked", within="(0, inf)")

    def signal(self, x, seen):
        share = (seen.queue / self.full - self.first / self.full) / (1 - self.first / self.full)
        return Signal(mark=ops.clip(share, 0.0, 1.0))

    def breakpoints(self, x, seen):
        return (seen.queue - self.first,)


def test_a_law_by_the_fill_level_is_one_in_packets_at_each_buffer(own):
    fc.register(Fixed)
    for buffer in (100.0, 200.0, 1000.0):
        net = fc.replace(fc.load(EXAMPLES / "drop_profile.toml"), {"link.buffer": buffer})
        level = {"law": "fixed", "first": 0.1 * buffer, "full": buffer}
        other = fc.replace(net, {"link.queue": level})
        rests = [fc.equilibrium(each) for each in (net, other)]
        queue, same = (float(each.links["bottleneck"].queue) for each in rests)
        p = float(rests[0].links["bottleneck"].mark_probability)
        assert queue == pytest.approx(same, rel=1e-9)
        assert p == pytest.approx((queue / buffer - 0.1) / 0.9, rel=1e-9)
        assert [f"{r:.6g}" for r in np.array(fc.stability(net).roots)[:4]] == [
            f"{r:.6g}" for r in np.array(fc.stability(other).roots)[:4]
        ]
        for run in (fc.simulate_packets, fc.simulate_trains):
            both = [run(each, until=10.0, seeds=[1]).to_dict()["runs"] for each in (net, other)]
            mean, same = (each[0]["links"]["bottleneck"]["queue_mean"] for each in both)
            assert mean == pytest.approx(same, rel=1e-6)
    net = fc.load(EXAMPLES / "drop_profile.toml")
    courses = [
        fc.simulate(each, until=5.0).links["bottleneck"].queue
        for each in (net, fc.replace(net, {"link.queue": {"law": "fixed"}}))
    ]
    assert courses[0] == pytest.approx(courses[1], abs=1e-6)
