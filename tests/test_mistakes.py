"""Mistakes of newcomers on the command line: each is answered by what is wrong, where, what to do.

None of them gets as far as computing anything.
"""

import json
from functools import partial

import jax.numpy as jnp
import pytest

import fluidcc as fc
from fluidcc import bundled

SLOW = "hollot2001/slow"
GOOD = bundled.scenarios()[SLOW].read_text(encoding="utf-8")
RED = "link.queue.w_q=1e-6:0.1"
BEST = ("optimize", SLOW, "--vary", RED)

# the words after `fluidcc`, and what the answer must have in it
USAGE = [
    (["equilibrum", SLOW], ["No such command 'equilibrum'", "'equilibrium'"]),
    (["margins", SLOW], ["No such command 'margins'. Did you mean 'stability'?"]),
    (["spectrum", SLOW], ["No such command 'spectrum'. Did you mean 'noise'?"]),
    (["plot", SLOW], ["Did you mean the option --plot of a command?"]),
    (["--verison"], ["--verison", "--version"]),
    (["equilibrium"], ["Missing argument 'scenario'", "fluidcc equilibrium -h"]),
    (["equilibrium", SLOW, "extra"], ["expected no further word, got 'extra'"]),
    (["simulate", SLOW, "--util", "5"], ["got '--util'; did you mean '--until'?"]),
    (["simulate", SLOW, "--until"], ["'--until' requires an argument"]),
    (["equilibrium", SLOW, "--json=yes"], ["'--json' does not take a value"]),
    (["crossings", SLOW], ["Missing argument 'PATH=LO:HI'"]),
    (["gradient", SLOW, "phase_margin"], ["Missing argument 'PATH...'"]),
]
SCENARIOS = [
    ("slow", ["a file, or a bundled scenario (`fluidcc list` names all)", f"'{SLOW}'"]),
    ("Hollot2001/SLOW", [f"did you mean '{SLOW}'"]),
    ("good\0.toml", ["a file, or a bundled scenario", '"good\\x00.toml"']),
    ("x" * 5000, ["File name too long", "(5000 characters)"]),
    (".", ["expected a scenario file (TOML, UTF-8 text), got a folder"]),
]
FILES = [
    (b"", ["links: expected at least one table [links.NAME]", "flows: expected at least one"]),
    (bytes(range(256)), ["got a file that is no UTF-8 text (byte 128)"]),
    (GOOD.encode("utf-16"), ["got text in UTF-16: save it as UTF-8"]),
    (b"#" * 1_000_001, ["got more than 1000000 bytes"]),
    (b"[links.a\n", ["line 1, column 9: expected TOML, got `[links.a` (Expected ']'"]),
    (b"[model]\n[model]\n", ["line 2, column 7", "`[model]` (Cannot declare", "twice"]),
    (b"a = 1\na = 2\n", ["line 2, column 6", "`a = 2` (Cannot overwrite a value"]),
    (b"capacity = 10Mbps\n", ['with quantities in quotes, such as `"10 Mbit/s"`', "line 1"]),
    (b"law = red\n", ['with words in quotes, such as `"red"`']),
    (b"rtt = 0,08\n", ["with a point in numbers, such as `0.08`"]),
    (b"links:\n  a:\n", ["`capacity = 1250`, not YAML"]),
    (b'{"links": {}}', ["`capacity = 1250`, not JSON"]),
    (b"x = " + b"[" * 5000, ["nested too deeply"]),
    (b"n = " + b"9" * 5000, ["a number of thousands of digits"]),
    (b"a." * 40 + b"b = 1", ["names with more than 30 dots"]),
    (b'title = "\\u001b[2J"\n', ["title: expected text of at most 2000 characters, without contr"]),
    (b'title = "a\\u202eb"\n', ["title: expected text of at most 2000 characters, without contr"]),
]
VALUES = [
    ("link.capacity=10 mbit/s", ["links.bottleneck.capacity", "did you mean 'Mbit/s'?"]),
    ("link.capacity=10 ms", ['such as "1250 packet/s" or "10 Mbit/s", got "10 ms"']),
    ("flow.rtt=0,08", ["got \"0,08\"; did you mean '0.08'?"]),
    ("flow.n=ten", ['flows.tcp.n: expected a number, got "ten"']),
    ("flow.n=1\ntitle = 3", ["flows.tcp.n: expected a number"]),
    ("link.queue.pmax=0.1", ["link.queue.pmax", "did you mean 'link.queue.p_max'"]),
    ("flows.nobody.n=3", ["got no such path; did you mean 'flows.tcp.n'"]),
    ("link.queue.p_max 0.1", ["--set: expected PATH=VALUE, got 'link.queue.p_max 0.1'"]),
    ("link.queue.p_max=", ["expected PATH=VALUE"]),
]
GRIDS = [
    ("flow.n", ["expected PATH=A:B:STEP or PATH=v1,v2,..., got 'flow.n'"]),
    ("flow.n=10:20", ["flow.n: expected A:B:STEP or v1,v2,..., got '10:20'"]),
    ("flow.n=20:10:1", ["expected A <= B and STEP > 0, got '20:10:1'"]),
    ("flow.n=1:1e9:1", ["flow.n: expected at most 100000 points"]),
    ("flow.n=10..20", ["got '10..20'; did you mean 'flow.n=10:20:STEP'?"]),
    (
        "flow.n=[1,2,3]",
        ["flow.n: expected A:B:STEP or v1,v2,..., got '[1,2,3]'; did you mean 'flow.n=1,2,3'?"],
    ),
    ("flow.n=ten", ['flow.n: expected a number, got "ten"']),
    ("flow.n=10:100:5:log", ["expected A:B:STEP, or v1,v2,... for values at other distances"]),
]
OPTIONS = [
    (["equilibrium", SLOW, "--out", "no/x.nc"], ["a file in a folder that exists"]),
    (["equilibrium", SLOW, "--plot", "x"], ["--plot: expected a file that ends in .png, .pdf"]),
    (["simulate", SLOW, "--until", "0"], ["--until: expected a time in (0, 1e+09] s, got '0'"]),
    (["simulate", SLOW, "--until", "1 day"], ["such as \"88 ms\", got '1 day'"]),
    (["packets", SLOW, "--until", "1e10"],
     ["--until: expected a time in (0, 1e+09] s, got '1e10'"]),
    (["packets", SLOW, "--duration", "9"],
     ["option such as --until (End of the run [s]), got '--duration'; did you mean '--until'?"]),
    (["packets", SLOW, "--seed", "3"], ["got '--seed'; did you mean '--seeds'?"]),
    (["packets", SLOW, "--seeds", "1-5"], ["such as 7,9, got '1-5'; did you mean '5'?"]),
    (["packets", SLOW, "--time", "9"], ["got '--time'; did you mean '--until'?"]),
    (["packets", SLOW, "-o", "x.nc"], ["got '-o'; did you mean '--out'?"]),
    (["packets", SLOW, "--flow.n", "9"], ["did you mean '--set flow.n=VALUE'?"]),
    (["packets", SLOW, "flow.n=9"], ["got 'flow.n=9'; did you mean '--set flow.n=9'?"]),
    (["stability-map", SLOW, "flow.n=20:60:20"], ["did you mean '--over flow.n=20:60:20'?"]),
    (["equilibrium", SLOW, "flow.n=[20,40]"], ["did you mean '--set flow.n=[20,40]'?"]),
    (["simulate", SLOW, "--figure", "x.png"], ["got '--figure'; did you mean '--plot'?"]),
    (["compare", SLOW, "--levels", "fluid,packets"],
     ["some of mean, population, trains, packets, got 'fluid'; did you mean 'mean'?"]),
    (["crossings", SLOW, "flow.n", "5", "50"], ["got '5 50'; did you mean 'flow.n=5:50'?"]),
    (["crossings", SLOW, "flow.n=5,50"], ["PATH=LO:HI, got 'flow.n=5,50'; did you mean 'flow.n=5"]),
    (["boundary", SLOW, "flow.n", "5", "50", "link.queue.p_max", "0.1", "1"],
     ["two ranges PATH=LO:HI, got 6; did you mean 'flow.n=5:50 link.queue.p_max=0.1:1'?"]),
    (["packets", SLOW, "--until", "9", "--warmup", "9"], ["a time before --until (9 s)"]),
    (["packets", SLOW, "--seeds", "9" * 5000], ["a whole number", "(5002 characters)"]),
    (["show", SLOW, "--set", "flow.n=1", "--set", "flows.tcp.n=2"],
     ["each path once, got 'flow.n'"]),
    (["equilibrium", SLOW, "--over", "flow.n=1,2", "--over", "flows.tcp.n=3,4"],
     ["over: flows.tcp.n: expected each path once, got 'flow.n' too"]),
    (["stability", SLOW, "--out", "x.tex", "--columns", "queue, marginn"],
     ["columns among link, queue, ", "got 'marginn'; did you mean 'margin'"]),
    (["crossings", SLOW, RED, "--over", "flow.n=40,60", "--out", "x.tex", "--columns",
      "flow.n,lyapunov"],
     ["columns among flow.n, stable_at_low, link.queue.w_q, frequency, period, becomes, "
      "kind, without_equilibrium, got 'lyapunov'"]),
    (["sweep", "crossings", SLOW, RED, "--over", "flow.n=40,60", "--out", "x.tex", "--columns",
      "becomes[0]"],
     ["columns among flow.n, stable_at_low, ", "got 'becomes[0]'; did you mean 'becomes'"]),
    (["check-bounds", "--only", "bmcc.concave", "--out", "x.tex", "--columns", "verdit"],
     ["columns among verdict, bound, value, searched, ", "did you mean 'verdict'"]),
    (["compare", SLOW, "--until", "9", "--out", "x.tex", "--columns", "links.bottleneck.que"],
     ["columns among quantity, unit, mean, ", "did you mean 'links.bottleneck.queue'"]),
    (["stability", SLOW, "--hopf"], ["got '--hopf'; did you mean 'fluidcc crossings'?"]),
    (["equilibrium", SLOW, "--marginz"], ["got '--marginz'; did you mean 'fluidcc stability'?"]),
    (["equilibrium", SLOW, "--step", "3"], ["got '--step'; did you mean 'fluidcc trains --step'?"]),
    (["equilibrium", SLOW, "--ecn"], ['feedback = "mark_tail"', "--set PATH=VALUE"]),
    (["gradient", SLOW, "nonsense", "flow.n"],
     ["a quantity among utilization, queue, queueing_delay, ", ", phase_margin, "]),
    ([*BEST, "--maximize", "phase_margin", "--subject-to", "delay <= 10 ms"],
     ["--subject-to: delay: ", "did you mean 'links.bottleneck.queueing_delay'"]),
    (["boundary", SLOW, "flow.n=10:20", "flows.tcp.n=10:30"],
     ["boundary: flows.tcp.n: expected each path once, got 'flow.n' too"]),
    (["optimize", SLOW, "--vary", "flow.n=10:20", "--vary", "flows.tcp.n=10:30",
      "--maximize", "phase_margin"],
     ["vary: flows.tcp.n: expected each path once, got 'flow.n' too"]),
    (["equilibrium", SLOW, "--set", "flow.n=50", "--over", "flows.tcp.n=40,60"],
     ["--over: flows.tcp.n: expected a path that --set leaves alone, got 'flow.n' in --set"]),
    (
        ["crossings", SLOW, "--set", RED.replace(":0.1", ""), "--over", "link.queue=1,2", RED],
        [
            "--over: link.queue: expected a path that --set leaves alone, got 'link.queue.w_q'",
            "crossings: link.queue.w_q: expected a path that --set leaves alone",
        ],
    ),
    (["crossings", SLOW, "--over", "link.queue.w_q=1,2", RED], ["a path that --over leaves alone"]),
    (["equilibrium", SLOW, "--out", "a.nc", "--out", "b.nc", "--plot", "a.png", "--plot=b.png"],
     ["--out: expected one value, got 2", "--plot: expected one value, got 2"]),
    (["list", "--law-file", "x.py", "--law-file", "y.py"], ["error: x.py: expected a"]),
    (["packets", SLOW, "--trace", "run.csv", "--out", "./run.csv"],
     ["--trace: expected another file than that of --out, got 'run.csv' for both"]),
    (["stability-map", SLOW], ["stability-map: expected a grid: --over PATH=A:B:STEP, got none"]),
    (["crossings", SLOW, "link.queue.law=1:2"], ['the path of a number, got "red"']),
    (["crossings", SLOW, "link.queue.w_q=0.1:1e-6"], ["expected LO < HI, got '0.1:1e-6'"]),
    (["boundary", SLOW, RED], ["two ranges PATH=LO:HI, got 1"]),
    (["cycle", SLOW, "--points", "0"], ["--points: expected a whole number"]),
    (["window-distribution", SLOW, "--probability", "10%"],
     ["a number between 0 and 1, got '10%'"]),
    (["gradient", SLOW, "phase_margn", "flow.rtt"], ["did you mean 'phase_margin'"]),
    (["optimize", SLOW], ["--vary: expected at least one PATH=LO:HI", "either --maximize QUANTI"]),
    ([*BEST, "--maximize", "phase_margn"], ["--maximize: phase_margn", "'phase_margin'"]),
    ([*BEST, "--maximize", "queue", "--minimize", "queue"], ["--minimize QUANTITY, got both"]),
    ([*BEST, "--maximize", "phase_margin", "--subject-to", "queue < 3"],
     ["--subject-to: expected QUANTITY >= NUMBER or QUANTITY <= NUMBER, got 'queue < 3'; did you "
      "mean 'queue <= 3'?"]),
    ([*BEST, "--maximize", "phase_margin", "--subject-to", "10 >= queue"],
     ["got '10 >= queue'; did you mean 'queue <= 10'?"]),
    (["check-bounds", SLOW, "--only", "bounded"],
     ["the name of a bound", "did you mean 'ecn_mod.boun"]),
    (["figures", "becm"], ["did you mean 'becn'"]),
    (["figures", "becn", "--out", "good.toml"], ["a folder, got the file 'good.toml'"]),
    (["validate", "bmc"], ["did you mean 'bmcc'?"]),
    (["list", "law"], ["did you mean 'laws'?"]),
    (["sweep", "equilibrum", SLOW], ["did you mean 'equilibrium'?", "--out FILE"]),
    (["sweep", "--status", "--out", "never.nc"], ["expected one with a sweep in it"]),
    (["sweep", "stability-map", SLOW, "--over", "flow.n=1,2", "--out", "s.nc", "--scheduler",
      "host"],
     ["a Dask scheduler, such as tcp://host:8786, got 'host'"]),
]  # fmt: skip


def answered(run, words, says):
    code, out, err = run(*words, heavy=False)
    assert code == 2 and out == "" and "Traceback" not in err
    assert all(len(line) < 2000 and line.isprintable() for line in err.splitlines())
    assert all(text in err for text in says), err
    return err


def _name(case):
    return str(case)[:30]


@pytest.mark.parametrize(("words", "says"), USAGE, ids=_name)
def test_wrong_words(run, words, says):
    answered(run, words, says)


@pytest.mark.parametrize(("scenario", "says"), SCENARIOS, ids=_name)
def test_no_such_scenario(run, scenario, says):
    err = answered(run, ["show", scenario], says)
    assert err.startswith("error: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize(("data", "says"), FILES, ids=_name)
def test_files_that_are_no_scenarios(run, tmp_path, data, says):
    (tmp_path / "mine.toml").write_bytes(data)
    err = answered(run, ["show", "mine.toml"], says)
    assert all(line.startswith("error: mine.toml: ") for line in err.splitlines())


@pytest.mark.parametrize(("change", "says"), VALUES, ids=_name)
def test_values_that_do_not_fit(run, change, says):
    err = answered(run, ["equilibrium", SLOW, "--set", change], says)
    assert err.startswith("error: --set: ")


@pytest.mark.parametrize(("grid", "says"), GRIDS, ids=_name)
def test_grids_that_are_none(run, grid, says):
    err = answered(run, ["equilibrium", SLOW, "--over", grid], says)
    assert err.startswith("error: --over: ")


@pytest.mark.parametrize(("words", "says"), OPTIONS, ids=_name)
def test_options_that_do_not_fit(run, tmp_path, words, says):
    (tmp_path / "good.toml").write_text(GOOD)
    answered(run, words, says)


def test_faults_are_json_too(run):
    """One object: the first fault, and what else there is."""
    words = ["equilibrium", SLOW, "--set", "link.queue.pmax=1", "--over", "flow.n=2:1:1", "--json"]
    code, out, err = run(*words)
    found = json.loads(out)
    first, second = err.splitlines()
    assert code == 2 and set(found) == {"error", "more"}
    assert {"error: " + found["error"]["message"], "error: " + found["more"][0]["message"]} == {
        first, second,
    }  # fmt: skip
    assert found["error"] == {
        "message": first.removeprefix("error: "), "where": "--set: link.queue.pmax",
        "expected": "a path of the scenario", "got": "no such path",
        "nearest": found["error"]["nearest"],
    }  # fmt: skip
    assert found["error"]["nearest"][0] == "link.queue.p_max"


@pytest.mark.parametrize(
    ("words", "where", "got"),
    [
        (["show", "hollot2001/slwo"], "scenario", '"hollot2001/slwo"'),
        (["packets", SLOW, "--sample", "1e-9", "--out", "x.nc"], "sample", ""),
        (["simulate", SLOW, "--util", "5"], "simulate", "'--util'"),
        (["list", "law"], "list", "'law'"),
        (["sweep", "--status", "--out", "never.nc"], "folder", "'never.nc.sweep'"),
    ],
    ids=_name,
)
def test_every_kind_of_mistake_is_json(run, words, where, got):
    code, out, err = run(*words, "--json", heavy=False)
    found = json.loads(out)["error"]
    assert code == 2 and set(found) == {"message", "where", "expected", "got", "nearest"}
    assert found["message"].splitlines()[0] in err
    assert found["where"] == where and got in found["got"]


@pytest.mark.parametrize("words", [["--json", "show", SLOW], ["--bogus", "show", SLOW, "--json"]])
def test_a_mistake_before_the_command_is_json(run, words):
    code, out, err = run(*words, heavy=False)
    found = json.loads(out)["error"]["message"]
    assert code == 2 and found.startswith("No such option: ") and found in err


def test_a_scenario_may_come_from_standard_input(run):
    code, out, _ = run("show", "-", "--json", heavy=False, given=GOOD)
    assert (code, out) == (0, run("show", SLOW, "--json", heavy=False)[1])
    code, _, err = run("show", "-", heavy=False, given=GOOD.replace("capacity", "capcity"))
    assert code == 2 and err.startswith("error: standard input: links.bottleneck.capcity: ")
    code, _, err = run("show", "-", heavy=False, given=b"\xff")
    assert code == 2 and "standard input: expected a scenario (TOML, UTF-8 text), got a file" in err


def test_what_editors_put_before_text_does_not_matter(run, tmp_path):
    (tmp_path / "mine.toml").write_text(GOOD.replace("\n", "\r\n"), encoding="utf-8-sig")
    assert run("show", "mine.toml", heavy=False)[0] == 0


def test_milliseconds_taken_for_seconds_are_noted(run):
    code, _, err = run("show", SLOW, "--set", "flow.rtt=80", heavy=False)
    seconds = "plain numbers are seconds"
    said = f'note: flows.tcp.rtt is 80 s: {seconds} ("80 ms" for milliseconds)\n'
    assert (code, err) == (0, said)


def test_the_note_on_milliseconds_comes_before_what_follows_from_them():
    net = fc.replace(fc.load(SLOW), {"flow.rtt": 60, "link.delay": 12})
    found = fc.equilibrium(net)
    notes = [f'{path} is {t} s: plain numbers are seconds ("{t} ms" for milliseconds)'
             for path, t in (("links.bottleneck.delay", 12), ("flows.tcp.rtt", 60))]  # fmt: skip
    assert list(fc.advice(net)) == notes and found.message.startswith("; ".join(notes))


# -- Mistakes of newcomers in Python: what is raised says what is wrong, where, and what to do
NET = fc.load(SLOW)
W_Q = {"link.queue.w_q": (1e-6, 0.1)}


def field(t, y, z, p):
    return -z[0]


def history(t, p):
    return jnp.ones(1)


def lag(t, y, p):
    return 1.0


def solve(field=field, history=history, t0=0.0, t1=1.0, lags=(lag,), **options):
    return fc.solve_dde(field, history, t0, t1, lags=lags, **options)


def network(call):
    """Every verb says how to get a network where it is given a name."""
    return call, TypeError, f"a network, such as fluidcc.load('{SLOW}') gives, got '{SLOW}' (str)"


MISTAKES = [
    (lambda: fc.load(42), TypeError, "load: expected a scenario's name or a file, got 42 (int)"),
    (lambda: fc.loads(42), TypeError, "loads: expected the text of a scenario, got 42 (int)"),
    (lambda: fc.load("slow"), fc.ScenarioError, f"did you mean '{SLOW}'?"),
    (lambda: fc.simulate(NET, t_end=3), TypeError, "got 't_end'; did you mean 'until'?"),
    (lambda: fc.simulate(NET, 3), TypeError, "mesh, progress), got 2 arguments without a name"),
    (lambda: fc.simulate_packets(NET, until=5, seed=3), TypeError, "'seed'; did you mean 'seeds'?"),
    (lambda: fc.optimize(NET, W_Q, maximise="queue"), TypeError, "did you mean 'maximize'?"),
    (lambda: fc.crossings(NET, "link.queue.w_q", lo=1e-6), TypeError, "'lo'; did you mean 'low'?"),
    (lambda: fc.crossings(NET, "link.queue.w_q", 1e-6), TypeError, "got none for 'high'"),
    (lambda: fc.equilibrium(NET, n=3), TypeError, "arguments of equilibrium(net), got 'n'"),
    (lambda: NET.links["bottlneck"], KeyError, "links: expected one of 'bottleneck', or an index"),
    (lambda: NET.tcp, AttributeError, "did you mean flows['tcp']?"),
    (lambda: fc.equilibrium(NET).to_csv, AttributeError, "did you mean save?"),
    (lambda: fc.stability(NET).pm, AttributeError, "did you mean phase_margin?"),
    (lambda: fc.stability(NET).phase, AttributeError, "did you mean phase_margin?"),
    (lambda: fc.equilibrium(NET).tcp, AttributeError, "did you mean flows['tcp']?"),
    (lambda: fc.equilibrum, AttributeError, "did you mean 'equilibrium'?"),
    network(lambda: fc.equilibrium(SLOW)),
    network(lambda: fc.sweep(SLOW, {"flow.n": [3]}, fc.equilibrium)),
    (lambda: fc.replace(NET, {"flow.n": None}), fc.ScenarioError, "flows.tcp.n: expected a number"),
    (lambda: fc.replace(NET, ["flow.n", 3]), fc.ScenarioError, 'such as {"flow.n": 40}, got ['),
    (lambda: fc.replace(NET, {3: 3}), fc.ScenarioError, 'values by path, such as {"flow.n": 40}'),
    (lambda: fc.number_at(NET, "flow.windw"), fc.ScenarioError, "did you mean 'flow.window.law'"),
    (lambda: fc.simulate(NET, until=-1), ValueError, "until: expected a time in (0, 1e+09] s, got"),
    (lambda: fc.simulate(NET, until="60 B"), ValueError, "until: expected a number in s, or text"),
    (lambda: fc.simulate(NET, until=5, mesh="x"), ValueError, "mesh: expected Uniform, Located"),
    (lambda: fc.simulate_packets(NET, until=5, seeds=5), ValueError, "a list of whole numbers"),
    (lambda: fc.simulate_packets(NET, until=5, seeds=range(10**12)), ValueError, "at most 1000000"),
    (lambda: fc.simulate_packets(NET, until=5, seeds=[]), ValueError, "different whole numbers"),
    (lambda: fc.simulate_packets(NET, until=5, warmup=5), ValueError, "0 <= warmup < until"),
    (lambda: fc.simulate_packets(fc.replace(NET, {"flow.n": 1e12}), until=5), ValueError,
     "expected at most 200000, got 1e+12"),
    (lambda: fc.compare(NET, until="5"), ValueError, "got '5'; did you mean '5 s'?"),
    (lambda: fc.compare(NET, until=5, warmup=6), ValueError, "warmup: expected a time in [0, 5)"),
    (lambda: fc.compare(NET, until=5, levels=("mean", "fluid")), ValueError,
     "levels: expected some of mean, population, trains, packets, got 'fluid'"),
    (lambda: fc.compare(NET, until=5, levels=()), ValueError, "trains, packets, got none"),
    (lambda: fc.sweep(NET, {}, fc.equilibrium), fc.ScenarioError, 'such as {"flow.n": [10, 20]}'),
    (lambda: fc.sweep(NET, {"flow.n": []}, fc.equilibrium), fc.ScenarioError,
     "over: flow.n: expected a list of at least one value, got []"),
    (lambda: fc.sweep(NET, {"flow.n": "1,2", "link.delay": 3}, fc.equilibrium), fc.ScenarioError,
     "got '1,2'\nover: link.delay: expected a list of at least one value, got 3"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, "equilibrium"), TypeError, "verb: expected a function"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, fc.simulate_map), TypeError,
     "progress), got none for 'until'"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, partial(fc.simulate, untill=3), workers=0), TypeError,
     "got 'untill'; did you mean 'until'?"),
    (lambda: fc.sweep(NET, {"flow.n": [1]}, partial(fc.stability, certified=True)), TypeError,
     "stability(net, *, roots, certify), got 'certified'; did you mean 'certify'?"),
    (lambda: fc.crossings(NET, "link.queue.w_q", 0.1, 1e-6), fc.ScenarioError, "low < high"),
    (lambda: fc.boundary(NET, "link.queue.w_q", "link.queue.p_max", x_range=3), fc.ScenarioError,
     "boundary: link.queue.w_q: expected a range (low, high), got 3"),
    (lambda: fc.gradient(NET, "phase", ["flow.n"]), fc.ScenarioError, "'phase_margin'"),
    (lambda: fc.gradient(NET, "queue", "flow.n"), fc.ScenarioError, "a list of paths, got the tex"),
    (lambda: fc.gradient(NET, "queue", []), fc.ScenarioError, "at least one path, got none"),
    (lambda: fc.sensitivity(NET, "flow.n", until=5), fc.ScenarioError, "a list of paths, got the"),
    (lambda: fc.optimize(NET, W_Q), fc.ScenarioError, "either maximize or minimize, got neither"),
    (lambda: fc.optimize(NET, W_Q, maximize="queue", subject_to="utilization >= 0.9"),
     fc.ScenarioError, "subject_to: expected a list of texts, got 'utilization >= 0.9' alone"),
    (lambda: fc.check_bound("slow_start", NET), fc.ScenarioError, "'mark_front.slow_start'"),
    (lambda: fc.plot(3), TypeError, "plot: expected a result or a sweep, got int"),
    (lambda: fc.plot(), TypeError, "plot: expected at least one result, got none"),
    (lambda: fc.Uniform(0), ValueError, "Uniform(step) must be positive, got 0"),
    (lambda: fc.Sampled([1, 2], [1]), ValueError, "k + 1 values, got shapes (2,) and (1,)"),
    (lambda: fc.Sampled([2, 1], [1, 2, 3]), ValueError, "Sampled needs increasing times, got [2."),
    (lambda: solve(t1=-1.0), ValueError, "solve_dde needs t0 < t1, got 0.0 and -1.0"),
    (lambda: solve(lags=1.0), TypeError,
     "lags: expected a list of functions (t, y, params) -> lag"),
    (lambda: solve(history=jnp.ones(1)), TypeError, "history: expected a function (t, params) -> "),
    (lambda: solve(field=3), TypeError, "field: expected a function (t, y, z, params) -> dy/dt"),
    (lambda: solve(mesh=0.01), ValueError, "mesh: expected Uniform, Located or Met"),
    (lambda: solve(lambda *_: jnp.ones(2)), ValueError,
     "field must return shapes (1,) like y, got"),
    (lambda: solve(y0=jnp.ones(3)), ValueError, "history must return shapes (3,) like y, got (1,)"),
    (lambda: solve(lags=[lambda *_: jnp.ones(2)]), ValueError, "lags[0] must return one number"),
    (lambda: solve(ts=[0.5, 0.2]), ValueError, "ts must increase within [t0, t1]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES, ids=[m[2][:30] for m in MISTAKES])
def test_a_mistake_is_answered(call, kind, says):
    with pytest.raises(kind) as found:
        call()
    assert says in str(found.value)
    assert all(len(line) < 500 for line in str(found.value).splitlines())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"field": lambda t, y, z, p: y * jnp.nan}, "finite"), ({"lags": [lambda *_: -1.0]}, "lag")],
)
def test_an_equation_that_breaks_down_says_so_in_its_status(wrong, says):
    found = solve(**wrong)
    assert says in fc.Status(int(found.status)).advice
