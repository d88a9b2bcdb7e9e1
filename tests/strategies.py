"""Hypothesis strategies from the metadata of parameters."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from fluidcc import Flows, Link, Network, Voice
from fluidcc.check.cases import accepted, inside, logarithmic, variants
from fluidcc.laws import EqualWindow, Pause
from fluidcc.laws.law import WRITTEN, Law
from fluidcc.laws.parameters import Info, infos, numeric_parameters
from fluidcc.laws.registry import LAWS
from fluidcc.laws.window.polynomial import AbstractPolynomial
from fluidcc.scenario.network import FlowsInitial, unfit_route


def anywhere(info: Info, own: Any) -> st.SearchStrategy[float]:
    """Numbers of a parameter's range, whatever it is now."""
    return inside(info)


@functools.cache
def near(info: Info, own: Any) -> st.SearchStrategy[Any]:
    """Numbers of a parameter's range that may well be meant: those around what it is now."""
    assert info.within is not None
    low, high = info.within.ends
    if own is None:
        return st.none()
    if not math.isfinite(own):
        return st.just(own)
    if own > 0:
        values = logarithmic(max(own / 10, low), min(own * 10, high))
    else:
        values = st.integers(-20, 20).map(lambda k: min(max(own + k / 20, low), high))
    return values.filter(lambda v: v in info.within)


Of = Callable[[Info, Any], st.SearchStrategy[float]]
"""From which numbers a parameter is drawn, by what it is and by its number now."""


def parameters_of(law: Any, of: Of = anywhere) -> st.SearchStrategy[dict[str, float]]:
    """Values of a law's numeric parameters that it accepts together; its own if few fit."""
    each = {name: of(info, getattr(law, name)) for name, info in numeric_parameters(law).items()}
    return accepted(law, each)


KINDS = ("window", "reaction", "loss", "feedback", "marking", "estimator", "traffic")


def _fit(window: Any, feedback: Any, marking: Any, estimator: Any) -> bool:
    """Whether laws of a group of flows fit together."""
    read, carried = ({k for k in WRITTEN if k in own} for own in (window.reads, feedback.carries))
    loads = "load" in feedback.carries
    known = read <= carried and bool(read) == bool(carried) and (loads or not estimator.remembers)
    return known and (marking is not EqualWindow or issubclass(window, AbstractPolynomial))


@functools.cache
def _groups(*known: tuple[type[Law], ...]) -> list[dict[str, type[Law]]]:
    """Every choice of laws for a group of flows, from those that are known of each kind."""
    every = itertools.product(*known)
    return [dict(zip(KINDS, laws, strict=True)) for laws in every if _fit(laws[0], *laws[3:6])]


@functools.cache
def _variants(law: type[Law], using: type[Law] | None) -> list[Any]:
    """The variants of a law with `using` within it; all where none has."""
    known = variants(law)
    return [v for v in known if any(type(f) is using for f in vars(v).values())] or known


def _laws_with(using: type[Law] | None) -> st.SearchStrategy[Any]:
    every = _groups(*(tuple(LAWS[kind].values()) for kind in KINDS))
    every = [g for g in every if g["window"] is using or not getattr(g["window"], "no_mean", "")]
    fitting = [laws for laws in every if using in laws.values()]
    return st.sampled_from(fitting or every)


@st.composite
def forms(draw: st.DrawFn, law: type[Law], using: type[Law] | None = None) -> Any:
    """A law with any choices, `using` within it where it can be."""
    return draw(st.sampled_from(_variants(law, using)))


@st.composite
def instances(draw: st.DrawFn, law: type[Law], using: type[Law] | None = None) -> Any:
    """A law with any choices and parameters, `using` within it where it can be."""
    chosen = draw(forms(law, using))
    return dataclasses.replace(chosen, **draw(parameters_of(chosen)))


def fitted(parts: dict[str, Any]) -> dict[str, Any]:
    """Laws of a group whose bounds of windows and choices fit to each other."""
    window, reaction, traffic = parts["window"], parts["reaction"], parts["traffic"]
    if window.min_window > window.max_window:
        window = dataclasses.replace(window, max_window=math.inf)
    if hasattr(traffic, "first"):
        first = min(max(traffic.first, window.min_window), window.max_window)
        traffic = dataclasses.replace(traffic, first=first)
    if hasattr(window, "pause"):
        window = dataclasses.replace(window, pause=isinstance(reaction, Pause))
    if parts["feedback"].quench and hasattr(reaction, "growth"):
        reaction = dataclasses.replace(reaction, growth="all")
    return parts | {"window": window, "reaction": reaction, "traffic": traffic}


@st.composite
def laws_of_groups(draw: st.DrawFn, using: type[Law] | None, make: Any) -> dict[str, Any]:
    """Any laws for a group of flows that fit together, `using` among them if it is one of its.

    `make` draws a law of a class: one of its `forms`, or of its `instances`.
    """
    laws = draw(_laws_with(using))
    return fitted({kind: draw(make(law)) for kind, law in laws.items()})


@st.composite
def queues(draw: st.DrawFn, using: type[Law] | None, make: Any) -> Any:
    """Any law for a queue, `using` or one with it if it is one of its."""
    known = list(LAWS["queue"].values())
    if using in known:
        known = [using]
    elif using in LAWS["spreading"].values():
        known = [law for law in known if "spreading" in infos(law)]
    return draw(make(draw(st.sampled_from(known)), using))


@st.composite
def groups(draw: st.DrawFn, using: type[Law] | None) -> Flows:
    """A group of flows with any laws that fit together, `using` among them if it is one of its."""
    return Flows(
        **draw(laws_of_groups(using, instances)),
        n=np.array([1.5, 4.0]),
        rtt=np.array([0.1, 0.25]),
        initial=FlowsInitial(slow_start=draw(st.booleans())),
    )


@st.composite
def voices(draw: st.DrawFn) -> Voice:
    """Calls of any kind."""
    numbers = {name: i for name, i in infos(Voice).items() if i.within is not None}
    values: dict[str, Any] = {name: draw(inside(info)) for name, info in numbers.items()}
    values |= {"most": math.inf, "seed": draw(st.integers(0, 2**31))}
    if draw(st.booleans()):
        values["calls"] = None
        values["most"] = draw(st.one_of(st.just(math.inf), st.integers(1, 500).map(float)))
    else:
        values["arrivals"] = None
    choices = {name: i.choices for name, i in infos(Voice).items() if i.choices}
    return Voice(**values, **{name: draw(st.sampled_from(c)) for name, c in choices.items()})


@st.composite
def networks(draw: st.DrawFn, using: type[Law] | None = None) -> Network:
    """One link and one group of flows with any laws and parameters, `using` among the laws."""
    queue = draw(queues(using, instances))
    by_loss = getattr(queue, "trigger", "") == "loss"
    link = Link(
        queue=queue,
        buffer=queue.threshold if by_loss else math.inf,
        capacity=draw(inside(infos(Link)["capacity"])),
        cross=draw(inside(infos(Link)["cross"])),
        voice=draw(st.one_of(st.none(), voices())),
    )
    flows = (draw(groups(using)),)
    return Network(links=heard((link,), flows), flows=flows)


def heard(links: tuple[Link, ...], groups: tuple[Flows, ...]) -> tuple[Link, ...]:
    """The links, with laws that write what window laws move by; rejects what none can.

    Other laws stay, but for those that write the same a second time on a route.
    """
    names = tuple(map(str, range(len(links))))
    for flows in groups:
        queues = [link.queue for link in links]
        if next(unfit_route(flows, queues, names), None) is None:
            continue
        read = {*flows.window.written}
        writer = next(law for law in LAWS["queue"].values() if read <= {*law.emits})()
        for k in flows.route:
            queue = writer if k == flows.route[0] else LAWS["queue"]["droptail"]()
            if queue is writer or read & {*queues[k].written}:
                changed = dataclasses.replace(links[k], queue=queue)
                links = (*links[:k], changed, *links[k + 1 :])
    queues = [link.queue for link in links]
    if any(next(unfit_route(flows, queues, names), None) for flows in groups):
        reject()
    return links
