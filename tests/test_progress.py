"""`progress` of every verb: shares that grow to 1, of the verb that was called alone."""

import functools
import inspect
import time

import pytest

import fluidcc as fc
from fluidcc.cli import run
from fluidcc.cli.verbs import VERBS
from fluidcc.progress import report

SLOW = fc.load("hollot2001/slow")
POPULATION = fc.replace(SLOW, {"model.closure": "population"})
BRIEF = functools.partial(fc.simulate_packets, until=2, seeds=(1, 2))
QUICK = {"equilibrium", "stability", "bode"}  # a second at most

CALLS = {
    "packets": (BRIEF, SLOW),
    "trains": (functools.partial(fc.simulate_trains, until=2, estimate_error=True), SLOW),
    "sweep": (fc.sweep, SLOW, {"flow.n": [40, 60]}, BRIEF),
    "noise": (fc.fluctuations, fc.load("hollot2001/pi")),
    "window-distribution": (fc.window_distributions, fc.load("misra2003/mixed")),
    "gradient": (fc.gradient, POPULATION, "phase_margin", ["flow.n", "flow.rtt"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_shares_grow_to_one(name):
    verb, *given = CALLS[name]
    seen: list[float] = []
    verb(*given, progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1.0 and all(0 <= share <= 1 for share in seen)
    assert len(seen) > 1 or name == "packets"  # which end before the first look


def test_every_verb_that_can_be_long_takes_it():
    for name in {verb.function for verb in VERBS.values()} - QUICK | {"cycles", "sweep"}:
        assert "progress" in inspect.signature(getattr(fc, name)).parameters, name


def test_points_of_a_sweep_report_no_shares_of_their_own():
    seen: list[fc.Progress] = []
    fc.sweep(SLOW, {"flow.n": [40, 60]}, BRIEF, progress=seen.append)
    assert [(share.done, share.total) for share in seen] == [(1, 2), (2, 2)]


def test_what_the_function_raises_ends_the_verb():
    def stop(share):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        BRIEF(SLOW, progress=stop)
    with pytest.raises(TypeError, match="progress: expected a function of the finished share"):
        BRIEF(SLOW, progress=True)


def test_lines_name_what_is_being_done(capsys, monkeypatch):
    monkeypatch.setattr(run, "EVERY", 0.02)
    with run.progress("reno"):
        report(fc.Progress(2, 0, 14, doing="units, check 3 of 14"))
        time.sleep(0.2)
    assert set(capsys.readouterr().err.splitlines()) == {"reno: units, check 3 of 14; 0 s so far"}
