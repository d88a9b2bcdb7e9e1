"""Laws of one's own: registered, loaded from files, refused with the line of the fault."""

import dataclasses
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.analysis.validity import validity_warnings
from fluidcc.laws import PI, AbstractQueueLaw, AbstractWindowLaw, Signal, choice, ops, param, state
from fluidcc.laws.law import AbstractLossClosure
from fluidcc.laws.own import Carried, files, loaded, origins
from fluidcc.laws.registry import BASES, LAWS, own_laws, restore
from fluidcc.laws.trial import faults_of_rules
from fluidcc.results.export import provenance
from fluidcc.sweep.job import description

SLOW = "hollot2001/slow"
HEAD = """\
from fluidcc.laws import AbstractWindowLaw, param


class Mild(AbstractWindowLaw):
    name = "mild"
    source = "a test"
    reaction = "once_per_rtt"
    recovery = "newreno"
    b: float = param(0.25, "b", unit="1", doc="share given up", within="(0, 1)")

    def on_ack(self, s, ack):
        return ack.count / s

    def on_mark(self, s, ack):
        return -self.b * s
"""


class AbstractSound(AbstractWindowLaw):
    """Nothing is wrong with this."""

    source = "tests"
    reaction = "once_per_rtt"
    recovery = "newreno"
    b: float = param(0.5, "b", unit="1", doc="share given up", within="(0, 1)")

    def on_ack(self, s, ack):
        return ack.count / s

    def on_mark(self, s, ack):
        return -self.b * s


@pytest.fixture(autouse=True)
def _nothing_stays():
    before = own_laws()
    with loaded([]):
        yield
    assert own_laws() == before


def law(**words):
    """A class as a cell of a notebook would define it."""
    space = {"name": "mine", "__qualname__": "Mine", "__module__": "__main__", **words}
    return type(AbstractSound)("Mine", (AbstractSound,), space)


def test_a_registered_law_is_everywhere_by_its_name():
    mine = fc.register(law())
    assert LAWS["window"]["mine"] is mine
    net = fc.replace(fc.load(SLOW), {"flow.window.law": "mine", "flow.window.b": 0.25})
    assert type(net.flows[0].window) is mine
    assert fc.loads(fc.dumps(net)) == net
    assert fc.number_at(net, "flow.window.b") == 0.25
    with pytest.raises(fc.ScenarioError, match="did you mean 'mine'"):
        fc.replace(fc.load(SLOW), {"flow.window.law": "mina"})
    with pytest.raises(fc.ScenarioError, match=r"window\.b: expected a value in \(0, 1\)"):
        fc.replace(net, {"flow.window.b": 2.0})


def test_a_refused_file_leaves_the_former_as_it_was(tmp_path):
    file = tmp_path / "mild.py"
    file.write_text("\ufeff" + HEAD, encoding="utf-8")  # as some editors begin a file
    (mild,) = fc.load_laws(file)
    net = fc.replace(fc.load(SLOW), {"flow.window.law": "mild"})
    file.write_text(HEAD.replace("share given up", ""), encoding="utf-8")
    with pytest.raises(fc.ScenarioError, match="doc"):
        fc.load_laws(file)
    assert type(pickle.loads(pickle.dumps(net)).flows[0].window) is mild


def register_other():
    fc.register(law())
    fc.register(law(__module__="elsewhere"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fc.register(law(name="reno")), "got 'reno', which is Reno of fluidcc"),
        (register_other, "got 'mine', which is Mine of __main__"),
        (lambda: fc.register(law(name="No Name")), "expected small letters"),
        (lambda: fc.register(law(reaction="oncee_per_rtt")), "did you mean 'once_per_rtt'"),
        (lambda: fc.register(law(recovery="cubic")), "expected one of reno, newreno, sack"),
        (lambda: fc.register(law(source="")), r"Mine\.source: expected a text, got ''"),
        (lambda: fc.register(law()()), "expected a class below one of"),
        (lambda: fc.register(int), "got another class"),
        (lambda: fc.register(AbstractSound), r"AbstractSound\.name: expected a line `name"),
        (lambda: fc.register(AbstractLossClosure), "a loss closure, which cannot be added"),
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_told(make, says):
    with pytest.raises(fc.ScenarioError, match=says):
        make()


def test_every_fault_of_a_class_is_told_at_once():
    class Many(AbstractWindowLaw):
        name: str = "many"
        source = "a test"
        reaction = "per_mark"
        a: float = 1.0
        c: float = param(2.0, "", unit="", doc="", within="(0, 1)")
        growth: float = param(1.0, "g", unit="1", doc="a name that reactions have", within="(0, 2)")

        def on_ack(self, s, ack):
            return ack.count / s

    with pytest.raises(fc.ScenarioError) as told:
        fc.register(Many)
    for text in (
        "Many.on_mark: expected a method on_mark(self, s, ack), which every window law has, got",
        "Many.recovery: expected a line", "Many.name: expected a plain line `name = ...`, got a",
        "Many.a: expected param(default, symbol, unit=", "Many.c: expected its unit in unit=",
        "Many.c: expected its symbol", "Many.c: expected its meaning in doc=",
        "Many.c: expected a default in its own range (0, 1), got 2.0",
        "Many.growth: expected a name that nothing else",
    ):  # fmt: skip
        assert text in str(told.value).replace(f"{Many.__qualname__[:-4]}", "")


def test_every_fault_of_a_state_is_told_with_its_name():
    class Wrong(AbstractQueueLaw):
        name = "wrong"
        source = "tests"
        p: float = state(0.0, "p", unit="1", within="[0, 1]")
        q = state(2.0, "", unit="1", within="[0, 1]", when="flg")
        average = state("avrage", "v", unit="packet")
        flag: bool = choice(False, doc="a flag")

        def signal(self, x, seen):
            return Signal()

    with pytest.raises(fc.ScenarioError) as told:
        fc.register(Wrong)
    for text in (
        "Wrong.p: expected a plain line `p = state(...)`, without a type, got",
        "Wrong.q: expected its symbol for formulas, in LaTeX, got none",
        "Wrong.q: expected when= a yes/no parameter, flag, got 'flg'; did you mean 'flag'?",
        "Wrong.q: expected a start in its own range [0, 1], got 2.0",
        "Wrong.average: expected a name that nothing else in the law has, got 'average'",
        "Wrong.average: expected a start that is a number, or one of average, got 'avrage'",
    ):
        assert text in str(told.value)


def test_a_change_of_what_is_not_remembered_names_what_is():
    with pytest.raises(ValueError, match=r"pi\.change: expected p or before, got price"):
        PI().change(PI().start(0.0), price=1.0)


def test_a_file_brings_its_laws_as_long_as_wanted(tmp_path):
    file = tmp_path / "mild.py"
    file.write_text(HEAD)
    with loaded([file]):
        assert [c.name for c in own_laws()] == ["mild"] and len(files()) == 1
        net = fc.replace(fc.load(SLOW), {"flow.window.law": "mild"})
        assert fc.loads(fc.dumps(net)) == net
        (origin,) = origins(net)
        assert provenance(net, "")["laws"] == f"{file}, sha256 {origin.digest}"
        known = description(net, {}, fc.equilibrium, "")
        assert known["laws"] == [["mild.py", origin.digest]]
        file.write_text(HEAD.replace("0.25", "0.5"))
        fc.load_laws(file)  # the same file, changed: takes the place of what it said
        assert fc.replace(net, {"flow.n": 50}).flows[0].window.b == 0.25
        again = fc.replace(fc.load(SLOW), {"flow.window.law": "mild"})
        assert again.flows[0].window.b == 0.5
        assert description(again, {}, fc.equilibrium, "")["laws"] != known["laws"]
    assert own_laws() == [] and files() == ()
    assert "laws" not in provenance(fc.load(SLOW), "")


def test_a_pickle_brings_the_files_of_its_laws(tmp_path):
    file = tmp_path / "mild.py"
    file.write_text(HEAD)
    with loaded([file]):
        sent = pickle.dumps((Carried(files()), LAWS["window"]["mild"]()))
    file.unlink()  # what was read counts, not what is there by now
    assert own_laws() == []
    _, there = pickle.loads(sent)
    assert there.b == 0.25 and LAWS["window"]["mild"] is type(there)
    restore([])


FILES = {
    "law = (": ("line 1: expected Python, got '(' was never closed",),
    "import a_module_that_is_not_there": ("line 1: expected imports of installed packages alone",),
    "x = 1 / 0": ("line 1: expected a file that can be run, got ZeroDivisionError",),
    "class Plain:\n    pass\n": ("expected a class below one of AbstractWindowLaw", "got Plain"),
    HEAD.replace(', unit="1"', ""): ("line 9: Mild.b: expected param(default, symbol, unit=",
                                     "got it without 'unit'"),
    HEAD.replace('"1"', '""'): ('line 9: Mild.b: expected its unit in unit=, "1" for',),
    HEAD.replace("on_mark", "on_mork"): ("line 14: Mild.on_mork: expected a method on_mark(self",
                                       "did you mean 'on_mark'"),
    HEAD.replace('"mild"', '"reno"'): ("line 5: Mild.name: expected a name that no other window",),
    HEAD.replace("0.25", "1.25"): ("line 9: Mild.b: expected a default in its own range (0, 1)",),
    HEAD.replace("(0, 1)", "0 to 1"): ("line 9: Mild.b: expected a file that can", "an interval"),
}  # fmt: skip


@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
def test_faults_of_files_are_told_with_their_line(tmp_path, text):
    file = tmp_path / "faulty.py"
    file.write_text(text)
    with pytest.raises(fc.ScenarioError) as told:
        fc.load_laws(file)
    assert str(told.value).startswith(str(file))
    for words in FILES[text]:
        assert words in str(told.value)
    assert own_laws() == []


def test_laws_load_wherever_numpy_is_installed(tmp_path):
    """As by `pip install --target`, which is not the folder of Python's own packages."""
    (tmp_path / "mild.py").write_text(HEAD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for folder in Path(np.__file__).parents[1].glob("numpy*"):
        (elsewhere / folder.name).symlink_to(folder)
    code = "import numpy, fluidcc; print(numpy.__file__, *fluidcc.load_laws('mild.py'))"
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join([str(elsewhere), *sys.path[1:]])}
    asked = [sys.executable, "-c", code]
    done = subprocess.run(
        asked, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False
    )
    assert str(elsewhere) in done.stdout and ".Mild'" in done.stdout, done.stderr


def test_laws_of_the_package_pass_the_trial_of_their_rules():
    laws = [law for kind in BASES for law in LAWS[kind].values()]
    assert [fault for law in laws for fault in faults_of_rules(law)] == []


def test_a_state_may_start_from_constants_in_the_fluid_model():
    """Whole numbers from `start`, and changes that are constants, for a group of two classes."""

    class Constant(AbstractSound):
        name = "constant"
        count = state(0, "K", unit="1", doc="a constant", within="[0, inf)")

        def start(self, w):
            return self.state_of(w, 1)

        def on_ack(self, s, ack):
            return self.change(s, window=ack.count / s.window)

        def on_mark(self, s, ack):
            return self.change(s, window=-2, count=0)

    fc.register(Constant)
    try:
        changes = {"flow.window.law": "constant", "flow.rtt": [0.15, 0.2], "flow.n": [30, 30]}
        net = fc.replace(fc.load(SLOW), changes)
        assert fc.equilibrium(net).status == "regular"
        assert fc.simulate(net, until=1.0).status.name == "ok"
    finally:
        restore([])


WRITTEN = Path(__file__).parent / "laws"  # as researchers write them
EXAMPLES = Path(__file__).parents[2] / "docs" / "own_laws"


@pytest.mark.parametrize("changes", [{}, {"link.capacity": "1 Gbit/s", "flow.rtt": 0.8}])
def test_cubic_settles_at_its_closed_form(changes):
    """RFC 9438: between two marks, 1/(pW/R) s apart, the window grows by what a mark takes. Its
    memory of the last mark is that of rare ones where there are none, not the one of its start.
    """
    fc.load_laws(WRITTEN / "cubic_target.py")
    cubic = {"flow.window": {"law": "cubic_target", "reaction": "per_mark"}}
    rest = fc.equilibrium(fc.replace(fc.load(SLOW), cubic | changes))
    flows = rest.flows["tcp"]
    W, R, p = (v[0] for v in (flows.window, flows.rtt, flows.mark_probability))
    since, k = R / (p * W), (0.3 * W / 0.4) ** (1 / 3)
    cubic, reno = W + 0.4 * (since + R - k) ** 3, 0.7 * W + 0.9 / 1.7 * since / R
    assert rest.status == "regular" and (cubic > reno) == bool(changes)
    assert max(cubic, reno) - W == pytest.approx(0.3 * W**2 * p, rel=1e-10)


def test_cubic_keeps_its_largest_window_on_an_idle_link():
    fc.load_laws(WRITTEN / "cubic_target.py")
    capped = {"flow.window": {"law": "cubic_target", "max_window": 5}, "flow.initial.window": 2}
    rest = fc.equilibrium(fc.replace(fc.load(SLOW), capped))
    assert rest.status == "empty" and rest.flows["tcp"].window[0] == pytest.approx(5)


def test_a_population_that_its_steps_do_not_resolve_is_refused():
    """CUBIC by ACK comes to its curve within a round trip, of thousands between two losses."""
    fc.load_laws(WRITTEN / "cubic_target.py")
    lossy = {"flow.window": {"law": "cubic_target"}, "link.random_loss": 1e-6, "flow.n": 1,
             "link.capacity": "100 Gbit/s", "flow.feedback": "loss", "model.closure": "population",
             "model.rates": "ack"}  # fmt: skip
    rest = fc.equilibrium(fc.replace(fc.load(SLOW), lossy))
    assert (
        rest.status == "undetermined" and "distribution of windows is not resolved" in rest.message
    )


def test_vegas_has_all_equilibria_between_its_thresholds():
    """Each flow keeps 2 to 4 packets in the queue: any number from 2 N to 4 N is at rest."""
    vegas = {"flow.window": {"law": "vegas"}, "link.queue": {"law": "droptail"}}
    net = fc.replace(fc.load(SLOW), vegas)
    n = float(net.flows[0].n[0])
    rest = fc.equilibrium(net)
    assert rest.status == "continuum"
    assert f"at queues from {2 * n:g} to {4 * n:g} packets" in rest.message
    assert rest.links["bottleneck"].queue == pytest.approx(3 * n, rel=1e-9)


def test_windows_are_at_rest_at_a_jump_that_drives_them_back():
    """Vegas whose thresholds are one: up below 2 packets a flow, down above, by 2 / R in each R."""
    vegas = {"flow.window": {"law": "vegas", "beta": 2.0}, "link.queue": {"law": "droptail"}}
    net = fc.replace(fc.load(SLOW), vegas)
    flows, link = net.flows[0], net.links[0]
    n = float(flows.n[0])
    queue = 2 * n
    jump = 2 / (flows.rtt[0] + queue / link.capacity)
    rest = fc.equilibrium(net)
    assert rest.status == "discontinuity"
    assert rest.links["bottleneck"].queue == pytest.approx(queue, rel=1e-9)
    said = "a rule of flows.tcp jumps at the window found, from "
    assert f"{said}{jump / 2:.3g} packet/s at shorter windows to -{jump / 2:.3g}" in rest.message
    assert "next: `fluidcc cycle`" in rest.message  # the next step
    assert fc.stability(net).stable is None
    slope = fc.gradient(net, "queue", ["flow.rtt"])
    assert math.isnan(slope.derivatives["flow.rtt"]) and "no derivatives: rules" in slope.message
    assert "rules of senders jump at their windows" in validity_warnings(rest)[-1]
    run = fc.simulate(net, until=30.0)
    assert run.status.name == "ok"
    late = run.links["bottleneck"].queue[run.time > 20]
    assert late.mean() == pytest.approx(queue, rel=0.1)  # it hovers, as signals are a trip late


def test_a_queue_law_whose_memory_moves_has_no_equilibrium_at_any_level():
    """CoDel as a rate counts on above its target."""
    fc.load_laws(EXAMPLES / "codel_rate.py")
    net = fc.load(EXAMPLES / "codel_rate.toml")
    runs = fc.simulate_packets(net, until=40, warmup=10, seeds=range(1, 5))
    queue = runs.mean["links"]["bottleneck"]["number_in_system_mean"]
    assert round(queue, 1) == 25.4  # as the page has it
    for closure in ("mean", "population"):
        rest = fc.equilibrium(fc.replace(net, {"model.closure": closure}))
        assert rest.status == "undetermined"
        assert "memory count of links.bottleneck.queue still changes by" in rest.message
        assert "next: `fluidcc simulate` or `packets`" in rest.message


def test_a_law_of_ones_own_behind_a_second_queue_keeps_its_delay():
    fc.load_laws(EXAMPLES / "pi_power.py")
    net = fc.load(EXAMPLES / "two_queues.toml")
    rest = fc.equilibrium(net)
    assert rest.status == "regular"
    assert float(rest.links["classic"].queueing_delay) == pytest.approx(0.015, rel=1e-9)
    links = fc.simulate_packets(net, until=60, warmup=20, seeds=range(1, 5)).mean["links"]
    delays = [1e3 * links[name]["queueing_delay_mean"] for name in ("classic", "l4s")]
    assert [round(v, d) for v, d in zip(delays, (1, 2), strict=True)] == [15.3, 0.47]  # the page's


def test_a_jump_that_a_law_does_not_name_ends_a_trajectory_with_the_remedies():
    class Jumpy(AbstractQueueLaw):
        name = "jumpy"
        source = "a test"
        limit: float = param(60.0, "q_0", unit="packet", doc="marks above", within="(0, inf)")

        def signal(self, x, seen):
            return Signal(mark=ops.where(seen.queue > self.limit, 0.05, 0.001))

    def run(mesh=None, **members):
        kind = type(AbstractQueueLaw)("Jumpy", (Jumpy,), {"__module__": "__main__", **members})
        with loaded([]):
            fc.register(kind)
            net = fc.replace(fc.load(SLOW), {"link.queue.law": "jumpy"})
            return fc.simulate(net, until=2.0, mesh=mesh)

    assert run(name="jumpy").status.name == "ok"  # by uniform steps
    ended = run(fc.Located(rtol=1e-6), name="jumpy")
    assert ended.status.name == "tolerance_not_met"
    for words in ("(seen.queue - limit,), from breakpoints(x, seen)", "docs/own_queue_law.md"):
        assert words in ended.message
    declared = {"breakpoints": lambda self, x, seen: (seen.queue - self.limit,)}
    assert run(fc.Located(rtol=1e-6), name="jumpy", **declared).status.name == "ok"


def test_two_definitions_of_one_name_are_two_laws_in_packets():
    """What is compiled goes by the rules, not by the name."""

    def runs(b):
        class Mine(AbstractQueueLaw):
            name = "mine"
            source = "a test"

            def signal(self, x, seen):
                return Signal(mark=0.0 * seen.queue + b)

        Mine.__module__, Mine.__qualname__ = "__main__", "Mine"
        fc.register(Mine)
        net = fc.replace(fc.load(SLOW), {"link.queue.law": "mine"})
        return fc.simulate_packets(net, until=10.0, warmup=5.0, seeds=[1]).to_dict()["runs"][0]

    few, many = (runs(b)["links"]["bottleneck"]["mark_fraction"] for b in (0.001, 0.1))
    assert few < 0.005 and many == pytest.approx(0.1, abs=0.01)
    assert np.isfinite(few)


def test_packets_refuse_one_symbol_for_two_numbers():
    class Twice(AbstractSound):
        name = "twice_w"
        last = state(0.0, "W", unit="packet", doc="an earlier window")

        def on_ack(self, s, ack):
            return self.change(s, window=ack.count / s.window)

        def on_mark(self, s, ack):
            return self.change(s, window=-self.b * s.window, last=s.window - s.last)

    net = fc.load(SLOW)
    flows = dataclasses.replace(net.flows[0], window=Twice())
    with pytest.raises(ValueError, match=r"twice_w\.on_ack: W .* numbers, window and last"):
        fc.simulate_packets(dataclasses.replace(net, flows=(flows,)), until=2, seeds=(1,))
