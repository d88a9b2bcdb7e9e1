"""Laws of one's own on the command line, with the examples that the pages show."""

import json
import math
import re
import runpy
import shutil
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.check import verb
from fluidcc.check.checks import RULES, Subject
from fluidcc.check.verb import FAILED, NOT_APPLICABLE, OK
from fluidcc.laws import BBR, DCTCP, HPCC, AbstractMarking
from fluidcc.laws.own import loaded
from fluidcc.laws.registry import own_laws, register

EXAMPLES = Path(__file__).parents[2] / "docs" / "own_laws"
NAMES = ("large_window", "pi_power", "cube", "drop_profile", "early_response")
SLOW = "hollot2001/slow"
FAST = ("symbols", "results", "branches", "declarations", "means")


@pytest.fixture
def here(tmp_path):
    """The folder of a new user: the examples, and nothing else."""
    for name in (*NAMES, "codel_rate"):
        for ending in ("py", "toml"):
            shutil.copy(EXAMPLES / f"{name}.{ending}", tmp_path)
    return tmp_path


def test_a_scenario_alone_never_loads_a_law(run, here):
    mark = here / "ran"
    (here / "evil.py").write_text(f"open({str(mark)!r}, 'w')")
    text = (here / "pi_power.toml").read_text()
    (here / "evil.toml").write_text(f'law_file = "evil.py"\n{text.replace("pi_power", "evil")}')
    code, _, err = run("show", "evil.toml", heavy=False)
    assert code == 2 and "law_file" in err and '"evil"' in err
    assert not mark.exists()


@pytest.mark.parametrize("name", [*NAMES, "codel_rate"])
def test_files_bring_their_laws_for_one_command(run, here, name):
    words = ("show", f"{name}.toml", "--json")
    code, out, _ = run(*words, "--law-file", f"{name}.py", heavy=False)
    assert code == 0
    tables = json.loads(out)["scenario"]
    assert name in (tables["links"]["bottleneck"]["queue"]["law"],
                    next(iter(tables["flows"].values()))["window"]["law"])  # fmt: skip
    assert own_laws() == []
    code, _, err = run(*words, heavy=False)
    assert code == 2 and "or a law that is added (--law-file FILE)" in err
    assert f'got "{name}"' in err
    listed = run("list", "laws", "--json", "--law-file", f"{name}.py", heavy=False)[1]
    assert any(name in laws for laws in json.loads(listed)["laws"].values())


def test_a_sweep_by_another_process_knows_the_file(run, here):
    words = (
        "sweep",
        "equilibrium",
        "pi_power.toml",
        "--law-file",
        "pi_power.py",
        "--out",
        "grid.nc",
    )
    grid = ("--over", "link.queue.target=10 ms,15 ms,20 ms", "--over", "flow.n=5,10")
    code, out, err = run(*words, *grid, "--workers", "1")
    assert (code, err) == (0, "") and out.endswith("\n6 points, 0 failed: grid.nc\n")
    with xr.open_dataset(here / "grid.nc", engine="h5netcdf") as data:
        queue = data["queue"].sel(link="bottleneck").values
        assert data.attrs["laws"].startswith("pi_power.py, sha256 ")
    assert queue.ravel() == pytest.approx([12.5, 12.5, 18.75, 18.75, 25.0, 25.0])  # C times delay
    (here / "pi_power.py").write_text((here / "pi_power.py").read_text() + "\n# another text\n")
    code, _, err = run(*words, *grid, "--workers", "1")
    assert code == 2 and "differs from this one in the text of user-defined laws" in err


def test_the_command_reports_a_faulty_law(run, here):
    text = (here / "pi_power.py").read_text()
    (here / "pi_power.py").write_text(text.replace("delay = seen.sojourn", "delay = seen.sojorn"))
    answers = [
        run("check-law", "pi_power.py", heavy=False),
        run("equilibrium", "pi_power.toml", "--law-file", "pi_power.py", heavy=False),
        run("packets", "pi_power.toml", "--law-file", "pi_power.py", "--until", "9", heavy=False),
    ]
    assert len(set(answers)) == 1
    code, out, err = answers[0]
    assert (code, out) == (2, "")
    assert err.startswith(
        "error: pi_power.py, line 26: PIPower.on_tick: expected a rule that works for "
    )
    assert "`delay = seen.sojorn`: reads 'sojorn', but Arrival has only count, " in err
    assert err.endswith("did you mean 'sojourn'?\n")


def test_a_law_without_an_equilibrium_is_told_as_the_page_has_it(run, here):
    code, out, err = run("equilibrium", "codel_rate.toml", "--law-file", "codel_rate.py")
    page = (EXAMPLES.parent / "own_queue_law.md").read_text(encoding="utf-8")
    said = page.partition("```text\nEquilibrium: undetermined (")[2].partition(" ...)")[0]
    assert code == 3 and f"Equilibrium: undetermined ({said.replace(chr(10), ' ')}" in out
    assert err.startswith("failed: ")


@pytest.mark.parametrize(
    "name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])]
)
def test_the_examples_pass_the_battery(run, here, name):
    code, out, err = run("check-law", f"{name}.py", "--scenario", f"{name}.toml", "--json")
    (report,) = json.loads(out)["laws"]
    failed = [check for check in report["checks"] if check["verdict"] == "failed"]
    assert (code, failed, err) == (0, [], "")
    done = {check["check"]: check["why"] for check in report["checks"] if check["verdict"] == "ok"}
    needed = {"engines", "derivatives", "means", "stability", "trajectory", "packets"}
    assert needed <= {*done}
    assert "tolerance 15%" in done["packets"] and " predicted " in done["packets"]


@pytest.mark.parametrize("kind", ["window", "queue", "reaction", "feedback"])
def test_a_new_law_is_named_after_its_file_and_works(run, here, kind):
    code, out, err = run("new-law", kind, "slow_ramp.py", heavy=False)
    assert (code, err) == (0, "") and out.startswith(f"slow_ramp.py: a {kind} law, slow_ramp; ")
    path = {"window": "flow.window.law", "queue": "link.queue.law",
            "reaction": "flow.window.reaction", "feedback": "flow.feedback"}[kind]  # fmt: skip
    words = ("equilibrium", SLOW, "--law-file", "slow_ramp.py", "--set", f"{path}=slow_ramp")
    code, out, err = run(*words, "--json", heavy=False)
    assert (code, err) == (0, "") and json.loads(out)["points"][0]["status"] == "regular"
    with loaded([here / "slow_ramp.py"]):
        (law,) = own_laws()
        assert (law.__name__, law.name) == ("SlowRamp", "slow_ramp")
        subject = Subject(law)
        found = {name: verb.finding(name, RULES[name], subject) for name in FAST}
    assert [f for f in found.values() if f.verdict == FAILED] == []


@pytest.mark.parametrize("kind", ["window", "queue"])
def test_symbols_that_are_taken_are_announced_and_refused(run, here, kind):
    """The skeleton and the page name each; a parameter that takes one is refused."""
    assert run("new-law", kind, "mine.py", heavy=False)[0] == 0
    source = (here / "mine.py").read_text()
    taken = re.search(r"# Symbols that are taken: (.*)\.\n", source)[1].split(", ")
    page = Path(__file__).parents[2] / "docs" / f"own_{kind}_law.md"
    (line,) = (row for row in page.read_text().splitlines() if "Symbols that are taken" in row)
    assert re.findall("`([^`]+)` \\(", line) == taken
    for symbol in ("n", "e"):
        assert symbol in taken
        first = re.sub(r'(param\([^,]*, )r?"[^"]*"', rf'\1"{symbol}"', source, count=1)
        (here / "other.py").write_text(first.replace("mine", "other").replace("Mine", "Other"))
        code, _, err = run("list", "laws", "--law-file", "other.py", heavy=False)
        uses = f"got '{symbol}', the symbol of "
        assert code == 2 and uses in err


def test_new_law_overwrites_nothing_and_names_what_it_cannot_do(run, here):
    before = (here / "pi_power.py").read_text()
    for words, says in (
        (("queue", "pi_power.py"), "FILE: expected a new file, got 'pi_power.py', which exists"),
        (("windw", "my.py"), "KIND: expected one of feedback, queue, reaction, window, got"),
        (("window", "reno.py"), "FILE: expected another name, as fluidcc has this one"),
        (("window", "My-law.py"), "FILE: expected a name such as my_law.py: small letters"),
        (("window", "no/my.py"), "FILE: expected a file in a folder that exists"),
    ):
        code, out, err = run("new-law", *words, heavy=False)
        assert (code, out) == (2, "") and says in err
    assert (here / "pi_power.py").read_text() == before


# -- The examples of the page on window laws, against what can be found by hand
@pytest.fixture
def hooks():
    with loaded([EXAMPLES / "hooks.py"]):
        yield


def test_a_law_by_the_delay_keeps_its_packets_in_the_queue(hooks):
    changes = {"flow.window.law": "keep_queued", "link.queue.law": "droptail", "flow.n": 20}
    net = fc.replace(fc.load(SLOW), changes)
    link = fc.equilibrium(net).links["bottleneck"]
    assert float(link.queue) == pytest.approx(20 * 4.0, rel=1e-9)
    runs = fc.simulate_packets(net, until=30.0, warmup=15.0, seeds=[1]).to_dict()["runs"]
    assert runs[0]["links"]["bottleneck"]["queue_mean"] == pytest.approx(20 * 4.0, rel=0.1)


def of_the_page(law, until):
    """Queue and goodput [Mbit/s] of early and late flows in the last 20 s, as the page has them."""
    net = fc.load(EXAMPLES / "delivered.toml")
    net = fc.replace(net, {f"flows.{name}.window": {"law": law} for name in net.flow_names})
    runs = fc.simulate_packets(net, until=until, warmup=until - 20, seeds=(1, 2)).to_xarray()
    goodput = runs.group_goodput.mean("seed").to_numpy() / 1e6
    return net, runs.link_queue_mean.mean().item(), tuple(np.round(goodput, 2))


def test_a_paced_law_by_what_is_delivered_keeps_its_packets():
    with loaded([EXAMPLES / "delivered.py"]):
        net, queue, goodput = of_the_page("delivered", 60.0)
        rest = fc.equilibrium(net)
        assert float(rest.links["bottleneck"].queue) == pytest.approx(4 * 4.0, rel=1e-9)
        assert round(queue, 1) == 12.8 and goodput == (2.30, 2.70)  # those that come late have more


def test_a_least_round_trip_that_is_forgotten_lets_the_queue_grow():
    with loaded([EXAMPLES / "delivered.py", EXAMPLES / "hooks.py"]):
        for until, kept in ((60.0, 49), (120.0, 120)):
            net, queue, _ = of_the_page("measured_vegas", until)
            assert round(queue) == kept
        rest = fc.equilibrium(net)
    assert rest.status == "continuum" and "from 8 to 16 packets" in rest.message


def test_a_law_by_the_rate_gives_equal_rates(hooks):
    net = fc.replace(fc.load(SLOW), {"flow.window.law": "steady_rate", "flow.rtt": "100 ms"})
    rates = []
    for rtt in (0.1, 0.3):
        group = fc.equilibrium(fc.replace(net, {"flow.rtt": rtt})).flows["tcp"]
        p, w, trip = (float(np.asarray(v).ravel()[0])
                      for v in (group.mark_probability, group.window, group.rtt))  # fmt: skip
        rates.append(w / trip)
        assert w / trip == pytest.approx(math.sqrt(20.0 / (0.5 * p)), rel=1e-6)
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)


def test_a_law_by_rounds_has_its_window_and_starts_from_constants(hooks):
    net = fc.replace(fc.load(SLOW), {"flow.window.law": "rounds"})
    group = fc.equilibrium(net).flows["tcp"]
    assert float(group.window[0]) * float(group.mark_probability[0]) == pytest.approx(2.0, rel=1e-6)
    law = net.flows[0].window
    assert tuple(law.start(8.0)) == (8.0, 0.0, 0.0)


def test_a_law_whose_rounds_last_a_time_is_cut_once_in_each(hooks):
    """Growth of 1 - p packets in a round trip, half the window by each of blocks with a mark."""
    changes = {"flow.window.law": "seldom", "flow.n": 20, "model.rates": "ack"}
    net = fc.replace(fc.load(SLOW), changes)
    group = fc.equilibrium(net).flows["tcp"]
    w, p, rtt = (float(v[0]) for v in (group.window, group.mark_probability, group.rtt))
    acks = w * 0.5 / rtt  # in a round of 0.5 s
    cuts = -math.expm1(acks * math.log1p(-p)) / acks
    assert rtt < 0.5 and (1 - p) / w == pytest.approx(cuts * w / 2, rel=1e-6)
    runs = fc.simulate_packets(net, until=30.0, warmup=10.0, seeds=[1]).to_dict()["mean"]
    assert runs["flows"]["tcp"]["window_reductions"] < 20 * 20 / 0.5


def test_checks_of_a_law_that_counts_between_ticks_ask_no_trajectory(hooks):
    """The linearisation has ticks as change per period, and what is counted at its mean."""
    net = fc.replace(fc.load(SLOW), {"flow.window.law": "rounds"})
    report = fc.check_law(type(net.flows[0].window))
    (row,) = (own for own in report.findings if own.check == "trajectory")
    assert row.verdict == "not applicable"


@pytest.mark.parametrize("ecn", [False, True], ids=("drops", "marks"))
def test_pie_shows_drops_as_drops_and_marks_as_marks_in_every_engine(ecn):
    """By the packets' own counts."""
    net = fc.replace(fc.load("rfc8033/pie"), {"link.queue.ecn": ecn, "flow.feedback": "mark_tail"})
    rest = fc.equilibrium(net)
    levels = ("mean", "packets") if ecn else ("mean", "trains", "packets")
    both = fc.compare(net, until=30.0, warmup=10.0, seeds=[1], levels=levels)
    begun = fc.simulate_packets(net, until=5.0, warmup=0.0, seeds=range(4), initial=fc.equilibrium)
    assert rest.status == "regular"
    link = rest.links["bottleneck"]
    assert link.queue == pytest.approx(15.0, rel=1e-9)  # capacity times target
    at_end = both.fluid.links["bottleneck"]
    assert at_end.mark_probability[-1] == pytest.approx(link.mark_probability, rel=1e-2)
    shares = {"mark_fraction": 0.0, "drop_fraction": 0.0}
    shares["mark_fraction" if ecn else "drop_fraction"] = link.mark_probability
    rows = {row.name: row for row in both.rows}
    (counted,) = (run["links"]["bottleneck"] for run in both.packets.to_dict()["runs"])
    for name, share in shares.items():
        row = rows[f"links.bottleneck.{name}"]
        count = counted["marks" if name == "mark_fraction" else "drops"]
        assert row.packets == pytest.approx(count / counted["arrivals"], rel=1e-9)
        assert (count > 0) == (share > 0)
        assert row.mean == pytest.approx(share, rel=1e-9)
        assert getattr(at_end, name)[-1] == pytest.approx(share, rel=1e-2)
        assert ecn or row.trains == pytest.approx(row.packets, rel=0.1)
    marked = begun.mean["flows"]["reno"]["window_reductions"]
    assert (marked > 0) == ecn  # by acknowledgements that bring marks
    words = str(both.fluid)
    assert all(f"links.bottleneck.{kind}_fraction" in words for kind in ("drop", "mark"))


def test_the_cube_by_elapsed_time_has_the_equilibrium_of_its_curve():
    """Reductions t apart give up what the curve regains at the mean: 3 C (t - K)^2 t = C K^3. Its
    terms are differences of cubes as large as 15,000, in which all engines agree to rounding.
    """
    with loaded([EXAMPLES / "cube.py"]):
        eq = fc.equilibrium(fc.load(EXAMPLES / "cube.toml"))
        (law,) = own_laws()
        subject = Subject(law)
        found = [verb.finding(name, RULES[name], subject) for name in (*FAST, "engines")]
    assert [f for f in found if f.verdict == FAILED] == []
    state = eq.op.senders[0].law
    assert float(state.last[0]) == pytest.approx(float(state.window[0]), rel=1e-9)
    u = float(state.since[0]) / (float(state.last[0]) * 0.3 / 0.4) ** (1 / 3)
    assert 3 * u * (u - 1) ** 2 == pytest.approx(1.0, rel=1e-6)
    assert eq.status == "regular" and u > 1


# -- The example of a delay equation of one's own, against what can be found by hand
DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "own_laws" / "mackey_glass.py"


def test_the_example_has_the_hopf_point_of_the_page():
    (hopf,) = fc.crossings(runpy.run_path(str(FILE))["model"], "tau", 0.1, 3.0).crossings
    assert hopf.frequency == pytest.approx(math.sqrt(3), rel=1e-9)
    assert hopf.value == pytest.approx(2 * math.pi / (3 * math.sqrt(3)), rel=1e-9)
    assert f"{hopf.value:.10g}" in (DOCS / "own_delay_equation.md").read_text()


# -- Faults of laws are named by the battery, in words of the law
HEAD = """
import random
import jax, numpy as np
from fluidcc.laws import (
    AbstractMarking, AbstractQueueLaw, AbstractWindowLaw, Reno, Signal, ops, param,
    state,
)
CALLS, OTHER = [], Reno(max_window=50.0)
class Faulty({base}):
    name = "faulty"
    source = "tests"
"""
WINDOW = """
reaction = "once_per_rtt"
recovery = "newreno"
b: float = param(0.5, "b", unit="1", doc="share given up", within="(0, 1)")
"""
SOUND = {"on_ack": "return ack.count / s", "on_mark": "return -self.b * s"}
AVERAGE = """
w: float = param(0.1, "w", unit="1", doc="weight of a sample", within="(0, 1)")
v = state("average", "v", unit="packet", doc="average queue")
def average(self, x, queue):
    return x
def on_arrival(self, x, seen):
    return seen.count * self.w * (seen.queue - x)
def signal(self, x, seen):
    return Signal(mark=ops.clip(x / 1000, 0.0, 1.0))
def breakpoints(self, x, seen):
    return (x - 1000,)
"""
TICKING = """
p = state(0.0, "p", unit="1", doc="marking probability", within="[0, 1]")
interval: float = param(0.1, "D", unit="s", doc="between ticks", within="(0, inf)")
def period(self):
    return self.interval
def on_tick(self, x, seen):
    return 0.01 * (seen.queue - 20.0)
def signal(self, x, seen):
    return Signal(mark=x)
"""
RESET = """
x = state(0.0, "a", unit="s", doc="time above the target", within="[0, inf)")
def on_arrival(self, x, seen):
    return ops.where(seen.queue > 10, seen.elapsed, -x)
def signal(self, x, seen):
    return Signal(mark=ops.where(x > 0.1, 0.01, 0.0))
"""
# a rule of a window law, the check that it fails, and what that has to say
RULES_OF_WINDOWS = [
    ("on_ack", "if s > 10:\n    return ack.count / s\nreturn 2 * ack.count / s", "load",
     ": Faulty.on_ack: ", "`if s > 10:`", "ops.where(condition, yes, no)"),
    ("on_mark", "return float(-self.b * np.sqrt(s))", "load", ": Faulty.on_mark: ",
     "functions that every engine has: ops.where", "got `return float(-self.b * np.sqrt(s))`"),
    ("on_mark", "return -self.b * np.sqrt(s)", "load", "functions that every engine has"),
    ("on_mark", "return -self.b * max(s, 2.0)", "load", "without decisions of Python on numbers"),
    ("on_ack", "return ack.count * ops.where(~(s > 10), 1.0, 2.0) / s", "load",
     "every engine", "got `return ack.count * ops.where(~(s > 10), 1.0, 2.0) / s`"),
    ("on_mark", "return -self.b * jax.numpy.sqrt(s)", "load", "returns ArrayImpl for plain floats"),
    ("on_ack", "return ack.count / (s * gain)", "load", "NameError: name 'gain' is not defined"),
    ("on_ack", "return self.c * ack.count / s", "load", "reads 'c', which Faulty has not"),
    ("on_ack", "return ack.count / ack.elapsed", "load",
     "every engine, for elapsed = 0 too, got `return ack.count / ack.elapsed`: ZeroDivisionError"),
    ("on_ack", "return ack.count / s.window", "load",
     "reads 'window' of a number: the state is one number"),
    ("on_lost", "return -s", "load", "Faulty.on_lost: ", "did you mean 'on_loss'"),
    ("slow_start", "return 0", "load", "expected a method slow_start(self, s), got slow_start("),
    ("on_akc", "return ack.count / s", "load", ": Faulty.on_akc: ", "did you mean 'on_ack'"),
    ("on_mark", "return self.b * s", "load",
     ": Faulty.on_mark: expected a rule that lowers the window", "windows grow without bound"),
    ("on_mark", "return (1 - self.b) * s", "load",
     ": Faulty.on_mark: ", "one of 8 by 4, ", "returns the change, here -4"),
    ("on_mark", "return ops.where(s > 50, self.b * s, -self.b * s)", "direction",
     "on_mark", "raises the window", "returns the change, here -"),
    ("on_ack", "return s + ack.count / s", "load",
     ": Faulty.on_ack: expected no change without packets or time, got 8; ", "the new state"),
    ("on_ack", "return 1 / s", "load", ": Faulty.on_ack: ", "`ack.count * ...`"),
    ("on_ack", "return ops.where(s > 50, 1 / s, ack.count / s)", "no event",
     "on_ack", "without packets or time", "`ack.count * ...`"),
    ("on_ack", "return ack.count * (1 - ack.delay) / s", "load",
     ": Faulty.on_ack: expected a line `reads = ('mark', 'drop', 'delay')` in the class",
     "reads ack.delay"),
    ("on_ack", "return ops.where(s > 5000, ack.delay, 1.0) * ack.count / s", "load",
     "expected a line `reads = ('mark', 'drop', 'delay')` in the class"),
    ("on_ack", "return ack.count / (s + ack.queue)", "load",
     "`return ack.count / (s + ack.queue)`", "reads 'queue', but Ack has only",
     "count, elapsed, rtt, load, marked, delay"),
    ("on_ack", "return 4 * (1 - ops.exp(-ack.count)) / s", "means",
     "on_ack is not proportional to ack.count: one packet changes the window by "),
    ("on_ack", "return ack.count * OTHER.max_window / 50.0 / s", "results",
     "reads OTHER", "make them parameters of this law"),
    ("on_mark", "return -s * random.random()", "results",
     "on_mark", "for the same numbers", "chance belongs to the engine"),
    ("on_mark", "CALLS.append(1.0)\nreturn -self.b * s", "results",
     "on_mark", "changes CALLS outside of its state"),
    ("on_mark", "self.last = s\nreturn -self.b * s", "load",
     "`self.last = s`", "a law has no attributes that change"),
    ("on_mark", "self.b * s", "load", "returns nothing: is `return` missing?"),
    ("on_ack", "return ack.count / s, 0.0", "load",
     "returns (0.125, 0.0), expected a change", "one number"),
    ("on_ack", "return ack.count / s * (1 + 1e-11 * isinstance(s, float))", "engines",
     "on_ack", "plain Python gives", "JAX"),
    ("on_mark", "return -self.b * ops.constant(s)", "derivatives",
     "the slope in W is 0 by JAX, -", "by SymPy"),
]  # fmt: skip
SIGNAL = "def signal(self, x, seen):\n    return "
# the text of a queue law likewise
TEXTS_OF_QUEUES = [
    (f'period = "interval"\n{SIGNAL}Signal()', "load", "expected a method period(self), got"),
    (f"def zero_order_hold(self):\n    return True\n{SIGNAL}Signal()", "load",
     "expected a plain line `zero_order_hold = ...`, got a method"),
    (f"{SIGNAL}Signal()\ndef breakpoints(self, x, seen):\n    return seen.queue - 5", "load",
     "returns 35.0, expected a tuple"),
    (f"{SIGNAL}Signal(mark=ops.minimum(ops.sqrt(seen.queue / 30.0), 1.0))", "derivatives",
     "signal at", "q = 0", "slope in q is not finite", "guard"),
    (f"{SIGNAL}ops.clip(seen.queue / 100, 0.0, 1.0)", "load",
     "returns 0.4, expected a Signal(mark=..., drop=..."),
    (f"{SIGNAL}Signal(mark=seen.queue / 100)", "probabilities", "signal at q = ", "no probability"),
    (f"{SIGNAL}Signal(mark=ops.clip((seen.queue - 20) / 100, 0.0, 1.0))", "declarations",
     "bends between queues of 19.5 and 20.5", "breakpoints()"),
    (RESET, "load", ": Faulty.on_arrival: expected no change without packets or time, got -0.25; ",
     "`seen.count * ...`"),
    (AVERAGE, "parts", "on_arrival", "all at once", "(1 - (1 - w) ** seen.count)"),
    (TICKING, "declarations", "zero_order_hold = False", "write `zero_order_hold = True`"),
    (TICKING.replace('"D"', '"q"'), "load",
     ": Faulty.interval: expected a symbol that nothing else", "got 'q', the symbol of seen.queue"),
    (TICKING.replace("0.0, \"p\"", "start_p, \"p\""), "load", ": Faulty.p: ",
     "name 'start_p' is not defined"),
    (TICKING, "probabilities", "on_tick", "takes p to", "ops.clip(new, 0.0, 1.0) - old"),
]  # fmt: skip
BRANCHING = "def probability(self, p, window):\n    return p / 2 if p > 0.5 else p"


def window(rule, body):
    """The text of a window law with one rule of its own."""
    rules = SOUND | {rule: body}
    if rule == "on_akc":
        del rules["on_ack"]
    methods = (f"def {name}(self, s, ack):\n{indent(text, '    ')}" for name, text in rules.items())
    return WINDOW + "\n".join(methods)


CASES = [("AbstractWindowLaw", window(rule, body), *says) for rule, body, *says in RULES_OF_WINDOWS]
CASES += [("AbstractQueueLaw", *case) for case in TEXTS_OF_QUEUES]
AT_ITS_LEAST = '\ngain: float = param(2.0, "G", unit="1", doc="gain", within="[2, inf)")'
UNLIKE = "return self.gain * ack.count / s * (1 + 0.01 * isinstance(s, float))"
CASES += [("AbstractWindowLaw", window("on_ack", UNLIKE) + AT_ITS_LEAST, "engines", "on_ack at",
           "plain Python gives", "JAX")]  # fmt: skip
CASES += [("AbstractMarking", BRANCHING, "load", "probability", "p > 0.5", "ops.where(")]


def findings(file, base, text, *names):
    """What some checks find, after those that say which rules others can work with."""
    file.write_text(HEAD.format(base=base) + indent(text, "    "))
    with loaded([file]):
        (law,) = fc.load_laws(file)
        subject, wanted = Subject(law), {"results", "branches", *names}
        judges = {name: judge for name, judge in RULES.items() if name in wanted}
        return {name: verb.finding(name, judge, subject) for name, judge in judges.items()}


@pytest.mark.parametrize(("base", "text", "check", "words"), [(*c[:3], c[3:]) for c in CASES])
def test_each_fault_is_named(tmp_path, base, text, check, words):
    if check == "load":
        with pytest.raises(fc.ScenarioError, match=r"faulty\.py, line \d+: Faulty\.") as error:
            findings(tmp_path / "faulty.py", base, text)
        why = str(error.value)
    else:
        found = findings(tmp_path / "faulty.py", base, text, check)[check]
        assert found.verdict == FAILED
        why = found.why
    for said in words:
        assert said in why, why


def test_a_rule_that_cannot_be_traced_fails_no_other_check():
    class Branching(AbstractMarking):
        name = "branching"
        source = "tests"

        def probability(self, p, window):
            return p / 2 if p > 0.5 else p

    subject = Subject(Branching)
    found = {name: verb.finding(name, judge, subject) for name, judge in RULES.items()}
    assert [name for name, f in found.items() if f.verdict == FAILED] == ["branches"]


# -- The network test: what it refuses, and what it says
AFTER = """
from fluidcc.laws import AbstractWindowLaw, ops, param, state


class Mine(AbstractWindowLaw):
    name = "mine"
    source = "tests"
    reaction = "once_per_rtt"
    recovery = "newreno"
"""
LEAST_TRIP = """
base = state(10.0, "B", unit="s", doc="least round trip so far")

def observe(self, s, ack):
    least = ops.minimum(s.base, ack.rtt)
    return self.change(s, base=ops.where(ack.count > 0, least - s.base, 0.0))

def on_ack(self, s, ack):
    queued = s.window * (1 - ops.minimum(s.base, ack.rtt) / ack.rtt)
    return self.change(s, window=ack.count * ops.where(queued < 3, 1.0, -1.0) / s.window)

def on_mark(self, s, ack):
    return self.change(s, window=-s.window / 2)
"""
FIXED = """
def on_ack(self, s, ack):
    return 0.01 * ack.count * (5.0 - s)

def on_mark(self, s, ack):
    return -s / 2
"""
BRANCHED = """
w_low: float = param(20.0, "W_l", unit="packet", doc="TCP up to here", within="(0, inf)")
far: float = param(1e9, "W_f", unit="packet", doc="never reached", within="(0, inf)")

def on_ack(self, s, ack):
    gain = ops.where(s > self.w_low, 0.02, 1 / s)
    return ack.count * ops.minimum(gain, self.far)

def on_mark(self, s, ack):
    return -ops.where(s > self.w_low, 0.25, 0.5) * ops.minimum(s, 1.0 * s)
"""


def network_test(file, rules):
    """The network test of a law with these rules, which stays until the next file is loaded."""
    file.write_text(AFTER + indent(rules, "    "))
    (law,) = fc.load_laws(file)
    return verb.NetworkTest(law, "window", None)


@pytest.mark.parametrize(
    ("rules", "verdict", "words"),
    [
        (LEAST_TRIP, "undetermined", ("remembers the least that it ever saw (B)",)),
        (FIXED, "failed", ("utilization of 0.", "expected at least 0.9", "the rules themselves")),
    ],
    ids=("least round trip", "fixed window"),
)
def test_an_equilibrium_that_says_nothing_is_no_pass(tmp_path, rules, verdict, words):
    with loaded([]):
        tried = network_test(tmp_path / "mine.py", rules)
        found = verb.finding("equilibrium", verb.NetworkTest.settles, tried)
    assert found.verdict == verdict
    for said in words:
        assert said in found.why
    report = verb.LawReport("mine", "window", (verb.Finding("latex", "ok"), found))
    assert not report.sound and f"1 {verdict}" in report.summary
    assert len(found.why) > 120 >= max(map(len, str(report).splitlines()))  # readable on a screen


def test_equilibria_lie_on_both_sides_of_a_branch_and_arms_never_taken_are_listed(tmp_path):
    with loaded([]):
        tried = network_test(tmp_path / "mine.py", BRANCHED)
        first, *others = [fc.equilibrium(net).flows["tcp"].window[0] for net in tried.nets]
        found = verb.finding("arms", verb.NetworkTest.covered, tried)
    assert first < 20 and max(others) > 20
    assert found.verdict == "not covered"
    line = next(
        k for k, text in enumerate((tmp_path / "mine.py").read_text().splitlines(), 1)
        if "minimum" in text
    )  # fmt: skip
    head, *arms = found.why.splitlines()
    assert head.startswith("5 of 8 arms")
    equal = "the first number and the second were always equal"
    assert arms == [
        f"line {line}, `ops.minimum(gain, self.far)`: never the second number",
        f"line {line + 3}, `ops.minimum(s, 1.0 * s)`: {equal}",
    ]


@pytest.mark.parametrize("given", ["'delay'", "('delya',)", "('delay')"])
def test_signals_that_a_law_reads_are_a_tuple_of_their_names(tmp_path, given):
    file = tmp_path / "law.py"
    text = (Path(__file__).parent / "laws/thresholds.py").read_text()
    file.write_text(text.replace('("mark", "drop", "delay")', given))
    with pytest.raises(fc.ScenarioError, match="a tuple of mark, drop, load, delay") as caught:
        fc.load_laws(file)
    assert caught.value.faults[0].nearest == ("reads = ('delay',)",)


def test_slow_start_is_noted_for_a_law_that_lowers_windows_by_itself(tmp_path):
    file = tmp_path / "law.py"
    text = (Path(__file__).parent / "laws/thresholds.py").read_text()
    for given, noted in ((text, False), (text.partition("    def slow_start")[0], True)):
        file.write_text(given)
        with loaded([]):
            (law,) = fc.load_laws(file)
            found = verb.finding("declarations", RULES["declarations"], Subject(law))
        assert found.verdict == "ok"
        assert ("write `def slow_start(self, s): return 0`" in found.why) == noted


def test_packets_that_contradict_the_recommended_level_fail():
    """Without its average DCTCP halves at every mark, which the rules at mean numbers do not."""
    net = verb.network_with(DCTCP, "window")
    good, why = verb.compare_packets(net)
    assert good == "ok" and "by the level mean" in why and "tolerance 15%" in why
    bad, why = verb.compare_packets(fc.replace(net, {"flow.window.g": 0.99}))
    assert bad == "failed" and why.startswith("packets are not as predicted by the level mean")


LAWS = {  # what is found of equilibrium and packets, and words of the reason
    "cubic_target": ("ok", "ok", "equilibrium regular"),
    "thresholds": ("not applicable", "ok", "queues from 20 to 40 packets"),
    "codel_rate": ("undetermined", "ok", "memory count of links.bottleneck.queue still changes"),
    "rate": ("ok", "ok", "equilibrium regular"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_laws_that_researchers_write_have_right_answers_or_a_reason(name):
    """The predicted queue and goodput are those of packets within 15 %, by the level that applies;
    an equilibrium that the model cannot have is no pass.
    """
    with loaded([]):
        home = EXAMPLES if name == "codel_rate" else Path(__file__).parent / "laws"
        (law,) = fc.load_laws(home / f"{name}.py")
        tried = verb.NetworkTest(law, "queue" if name == "codel_rate" else "window", None)
        rest = verb.finding("equilibrium", verb.NetworkTest.settles, tried)
        packets = verb.finding("packets", verb.NetworkTest.packets, tried)
    *verdicts, words = LAWS[name]
    assert [rest.verdict, packets.verdict] == verdicts
    assert words in rest.why and "tolerance 15%" in packets.why


def test_a_law_without_a_mean_is_tried_in_packets_alone():
    tried = verb.NetworkTest(BBR, "window", None)
    for judge in (verb.NetworkTest.settles, verb.NetworkTest.stable, verb.NetworkTest.course):
        found = verb.finding("mean", judge, tried)
        assert found.verdict == NOT_APPLICABLE and BBR.no_mean in found.why
    used = verb.finding("packets", verb.NetworkTest.packets, tried)
    assert used.verdict == OK and "bottleneck is used to 98" in used.why
    idle = fc.replace(tried.net, {"flow.window.max_window": 4})
    assert verb.finding("packets", verb.used_by_packets, idle).verdict == FAILED


def test_a_law_is_tried_for_as_long_as_its_round_trips_ask_for():
    """Seconds of DCQCN at 40 Gbit/s would be a hundred million packets."""
    good, why = verb.compare_packets(fc.load("zhu2016/timely"))
    assert good == OK and "links.switch.queue 93." in why


def test_a_law_is_tried_in_the_network_that_it_names():
    """Its defaults are of a datacentre; a law of one's own takes the place of the one there."""
    assert verb.network_with(HPCC, "window") == fc.load("li2019/incast")

    class Own(HPCC):
        name = "own_hpcc"

    with loaded([]):
        register(Own)
        (flows,) = verb.network_with(Own, "window").flows
    assert type(flows.window) is Own and float(flows.rtt[0]) == 13e-6


def test_queues_below_a_waiting_packet_are_not_judged_by_trains():
    """Sixteen HPCC flows keep the link short of full: 0.3 packets wait, in steps of trains none.
    Under BMCC, in longer round trips than those of the telemetry, several do.
    """
    good, why = verb.compare_packets(fc.load("li2019/incast"))
    assert good == OK and "less than a waiting packet, of which trains say nothing" in why
    changes = {"flow.window.law": "bmcc", "link.queue.law": "telemetry",
               "flow.feedback": "load_factor"}  # fmt: skip
    bad, why = verb.compare_packets(fc.replace(fc.loads(verb.BASE), changes))
    assert bad == FAILED and "less than a waiting packet" not in why
