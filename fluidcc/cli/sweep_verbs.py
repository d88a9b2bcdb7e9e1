"""Verbs that a sweep takes, and what they are told on the command line."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import fluidcc
from fluidcc.cli.options import Task, end_of, interval, times
from fluidcc.scenario.typed import Faults, seconds, share

_RUN = ("until", "warmup", "seeds")


class Verb(NamedTuple):
    """The public function of a verb, its options, and the words that follow the scenario."""

    function: str
    options: tuple[str, ...] = ()
    words: str = ""


VERBS: Mapping[str, Verb] = {
    "equilibrium": Verb("equilibrium"),
    "stability": Verb("stability", ("certify",)),
    "map": Verb("stability_map"),
    "crossings": Verb("crossings", words="PATH=LO:HI"),
    "boundary": Verb("boundary", words="PATH=LO:HI PATH=LO:HI"),
    "cycle": Verb("cycle"),
    "gradient": Verb("gradient", words="QUANTITY PATH..."),
    "sensitivity": Verb("sensitivity", ("until",), "PATH..."),
    "windows": Verb("stationary_windows", ("probability",)),
    "simulate": Verb("simulate", ("until",)),
    "trajectories": Verb("simulate_map", ("until", "fused")),
    "packets": Verb("simulate_packets", (*_RUN, "sample")),
    "compare": Verb("compare", (*_RUN, "trajectory")),
}

_DEFAULTS = {"until": "60", "warmup": "", "seeds": "5"}


def called(name: str, options: Mapping[str, Any]) -> Any:
    """The verb with its options, to be called with a network."""
    found = getattr(fluidcc, VERBS[name].function)
    return partial(found, **options) if options else found


def arguments(verb: str, words: Sequence[str], task: Task, faults: Faults) -> dict[str, Any]:
    """What the words after the scenario tell the verb; too many or too few are faults."""
    if verb not in VERBS:
        return {}
    wanted = VERBS[verb].words
    least = len(wanted.split())
    if len(words) < least or (len(words) > least and not wanted.endswith("...")):
        got = " ".join(words) or "nothing"
        faults.add("sweep", "", f"{wanted or 'nothing'} after the scenario", repr(got))
        return {}
    if verb == "crossings":
        return dict(zip(("path", "low", "high"), interval(words[0], task, faults), strict=True))
    if verb == "boundary":
        (x, *x_range), (y, *y_range) = (interval(w, task, faults, "boundary") for w in words)
        return {"x": x, "y": y, "x_range": tuple(x_range), "y_range": tuple(y_range)}
    if verb == "gradient":
        return {"of": words[0], "over": list(words[1:])}
    return {"over": list(words)} if verb == "sensitivity" else {}


def options_of(verb: str, given: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """Options of the verb as it takes them; others are faults."""
    taken = VERBS[verb].options if verb in VERBS else tuple(given)
    for name, value in given.items():
        if value and name not in taken:
            able = [other for other, found in VERBS.items() if name in found.options]
            faults.add(f"--{name}", "", f"a verb that takes it ({', '.join(able)})", f"{verb!r}")
    out: dict[str, Any] = {}
    asked = {name: given[name] or _DEFAULTS[name] for name in _DEFAULTS}
    if "seeds" in taken:
        out |= times(asked["until"], asked["warmup"], asked["seeds"], faults)
    elif "until" in taken:
        out["until"] = end_of(asked["until"], faults)
    if "sample" in taken and given["sample"]:
        out["sample"] = seconds("--sample", given["sample"], faults)
    if "fused" in taken and given["fused"]:
        out["mesh"] = fluidcc.Uniform(fused=True)
    if "certify" in taken and given["certify"]:
        out["certify"] = True
    if "probability" in taken and given["probability"]:
        out["p"] = share("--probability", given["probability"], faults)
    if "trajectory" in taken and given["trajectory"]:
        out["trajectory"] = False
    return out
