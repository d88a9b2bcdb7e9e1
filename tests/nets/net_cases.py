"""Random legal networks: structures, whose numbers share one compiled program, and their numbers.

A structure is a network with any laws, choices and topology; its numbers are those of its laws, as
they are by default, until `numbers` draws others.
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from strategies import (
    anywhere,
    fitted,
    forms,
    heard,
    laws_of_groups,
    logarithmic,
    near,
    parameters_of,
    queues,
)

from fluidcc import Flows, Link, Network, ScenarioError, Voice, dumps, loads
from fluidcc.check.draws import BACKEND
from fluidcc.laws.law import Law
from fluidcc.laws.own import laws_in
from fluidcc.laws.parameters import Info, infos
from fluidcc.laws.registry import LAWS

_DOCS = Path(__file__).parents[2] / "docs" / "own_laws"
OWN = (_DOCS / "large_window.py", _DOCS / "pi_power.py", Path(__file__).with_name("paced.py"))
"""Files with laws of one's own: those of the pages on them, and one whose rules go with time."""

_LEVELS = ("max_th", "at", "q_ref", "threshold")  # queues that a law must be able to see


def sample(strategy: st.SearchStrategy[Any], count: int, name: str) -> list[Any]:
    """Draws of a strategy, the same for the same name; without the first, which is the least."""
    drawn: list[Any] = []

    @seed(name)
    @settings(
        max_examples=count + 1, database=None, deadline=None, phases=[Phase.generate],
        backend=BACKEND,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(value: Any) -> None:
        drawn.append(value)

    collect()
    return drawn[1 : count + 1]


RESTLESS = ("codel", "copa", "swift")
"""Laws without a rest, or whose rest is a jump of their rule: what they meet has no smooth one."""


def every_law() -> list[type[Law]]:
    """All laws that a network may have, whose mean is known."""
    every = (law for laws in LAWS.values() for law in laws.values())
    return [law for law in every if not getattr(law, "no_mean", "")]


@st.composite
def _voices(draw: st.DrawFn) -> Voice:
    given = draw(st.sampled_from([{"calls": 1.0}, {"arrivals": 1.0}]))
    return Voice(**given, discipline=draw(st.sampled_from(["wfq", "fifo"])))


@st.composite
def _links(draw: st.DrawFn, using: type[Law] | None) -> Link:
    voice = draw(st.one_of(st.none(), st.none(), st.none(), st.none(), _voices()))
    return Link(queue=draw(queues(using, forms)), voice=voice)


@st.composite
def _flows(draw: st.DrawFn, using: type[Law] | None, links: int, rates: str) -> Flows:
    every = list(range(links))
    route = draw(st.one_of(
        st.just(every), st.lists(st.sampled_from(every), min_size=1, unique=True)
    ))  # fmt: skip
    kinds = draw(st.sampled_from([1, 1, 2, 3]))
    backs = [None, None, None, np.zeros(len(route)), 0.0 if len(route) == 1 else None]
    parts = draw(laws_of_groups(using, forms))
    remembers = len(jax.tree.leaves(parts["window"].start(1.0))) > 1 or parts["traffic"].starts
    if parts["loss"].window(0.1, 0.1) is not None and remembers:  # such senders have no other rest
        parts["loss"] = LAWS["loss"]["recovery"]()
    if rates == "self_clocked":  # windows are in flight at all times
        bulk, tail = LAWS["traffic"]["bulk"](), LAWS["feedback"]["mark_tail"]()
        parts["traffic"] = bulk if parts["traffic"].starts else parts["traffic"]
        parts["feedback"] = (
            tail if parts["feedback"].name == "receiver_window" else parts["feedback"]
        )
    return Flows(
        **fitted(parts),
        n=np.ones(kinds),
        rtt=np.ones(kinds),
        route=tuple(route),
        access_delay=draw(st.sampled_from([None, 0.0])),
        reverse_delay=draw(st.sampled_from(backs)),
    )


@st.composite
def structures(draw: st.DrawFn, using: type[Law] | None = None) -> Network:
    """Networks of 1 to 3 links and 1 to 4 groups of flows with any laws, `using` among them."""
    kind = next((k for k, laws in LAWS.items() if using in laws.values()), None)
    rates = ["ack", "ack", "mgt", "self_clocked"]
    if kind in ("traffic", "feedback"):
        rates.remove("self_clocked")  # which not all of these can have
    chosen = draw(st.sampled_from(rates))
    links = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
    groups = draw(st.sampled_from([1, 1, 2, 2, 3, 4]))
    first = [using, *[None] * max(links, groups)]
    flows = [draw(_flows(first[k], links, chosen)) for k in range(groups)]
    if all(group.traffic.name == "files" for group in flows):  # of which the fluid has no senders
        bulk = LAWS["traffic"]["bulk"]()
        flows.append(dataclasses.replace(draw(_flows(None, links, chosen)), traffic=bulk))
    drawn = tuple(draw(_links(first[k])) for k in range(links))
    return Network(
        links=heard(drawn, tuple(flows)),
        flows=tuple(flows),
        rates=chosen,
        delay=draw(st.sampled_from(["explicit", "explicit", "fifo"])),
        link_names=tuple(f"link{k}" for k in range(links)),
        flow_names=tuple(f"group{k}" for k in range(len(flows))),
    )


class _Scale:
    """What the numbers of one network go by."""

    def __init__(self, draw: st.DrawFn, net: Network) -> None:
        self.draw, self.net = draw, net
        self.odd = draw(st.integers(0, 2)) == 0  # numbers from everywhere in their ranges
        self.rtt = draw(logarithmic(1e-4, 10.0) if self.odd else logarithmic(1e-2, 0.5))
        self.window = draw(logarithmic(1.0, 1e5) if self.odd else logarithmic(3.0, 3e3))

    def number(self, info: Info, own: Any) -> st.SearchStrategy[Any]:
        """Numbers for a parameter: now and then an odd one, where any are."""
        if own is not None and self.odd and self.draw(st.integers(0, 2)) == 0:
            return anywhere(info, own)
        return near(info, own)

    def law(self, law: Any) -> Any:
        """A law with other numbers, its own where few of them fit together."""
        return dataclasses.replace(law, **self.draw(parameters_of(law, self.number)))

    def share(self, least: float = 1e-3) -> float:
        """A share in (0, 1]."""
        return self.draw(logarithmic(1e-9 if self.odd else least, 1.0))

    def trips(self, flows: Flows) -> Flows:
        """A group with other numbers of flows and other round trips."""
        whole = logarithmic(1.0, 1e4 if self.odd else 50.0).map(round).map(float)
        count = st.one_of(whole, logarithmic(0.1, 1e4)) if self.odd else whole
        spread = logarithmic(1e-2, 1e2) if self.odd else logarithmic(0.3, 3.0)
        kinds = len(flows.n)
        n = np.array([self.draw(count) for _ in range(kinds)])
        rtt = np.array([self.rtt * self.draw(spread) for _ in range(kinds)])
        return dataclasses.replace(flows, n=n, rtt=rtt)

    def link(self, k: int, link: Link, flows: list[Flows], size: float) -> Link:
        """A link with other numbers."""
        draw, way = self.draw, min(float(np.min(f.rtt)) for f in flows) / 8
        passing = sum(float(np.sum(f.n / f.rtt)) for f in flows if k in f.route)
        fair = passing or float(np.sum(flows[0].n / flows[0].rtt))
        capacity = self.window * fair * draw(logarithmic(0.3, 3.0))
        queue = self.law(link.queue)
        levels = [float(getattr(queue, name)) for name in _LEVELS if hasattr(queue, name)]
        least = max(levels, default=0.3)
        buffer = draw(
            st.one_of(
                st.just(math.inf),
                logarithmic(1.01, 10.0).map(lambda v: least * v + 0.3),
                logarithmic(0.03, 30.0).map(lambda v: max(v * capacity * self.rtt, 1.01 * least)),
            )
        )
        if getattr(queue, "trigger", "") == "loss":
            buffer = queue.threshold
        beside = draw(st.sampled_from([0.0, 0.0, 0.0, 0.02, 0.5, 2.0 if self.odd else 0.1]))
        link = dataclasses.replace(
            link, queue=queue, capacity=capacity, packet_size=size, buffer=buffer,
            delay=way * self.share(), cross=beside * capacity,
        )  # fmt: skip
        if link.voice is not None:
            link = dataclasses.replace(link, voice=self.voice(link.voice, capacity, size))
        return link

    def voice(self, voice: Voice, capacity: float, size: float) -> Voice:
        """Calls with other numbers, that take a share of a capacity [packet/s]."""
        given = {"calls": 1.0} if voice.calls is not None else {"arrivals": 1.0}
        described = infos(Voice)
        kept = {described[name] for name in ("calls", "arrivals", "most")}

        def number(info: Info, own: Any) -> st.SearchStrategy[Any]:
            return st.just(own) if info in kept else self.number(info, own)

        one = dataclasses.replace(voice, **self.draw(parameters_of(voice, number)))
        load = self.share(1e-2) * capacity / max(float(one.mean(size)), 1e-300)
        most = math.inf
        if voice.calls is None:
            most = self.draw(st.sampled_from([math.inf, 1.0, 30.0]))
        return dataclasses.replace(one, **{name: load for name in given}, most=most)

    def group(self, flows: Flows, links: tuple[Link, ...]) -> Flows:
        """A group with other laws' numbers, delays, and transfers that take a share of a link."""
        kinds = ("window", "reaction", "feedback", "marking", "loss", "estimator", "traffic")
        parts = fitted({kind: self.law(getattr(flows, kind)) for kind in kinds})
        traffic = parts["traffic"]
        if traffic.open:
            one = float(dataclasses.replace(traffic, arrivals=1.0).beginning()) * traffic.file
            narrow = min(float(links[k].capacity) for k in flows.route)
            load = self.share(1e-2) * narrow / float(np.sum(flows.n))
            parts["traffic"] = dataclasses.replace(traffic, arrivals=load / one)
        quarter = float(np.min(flows.rtt)) / 4
        access, back = flows.access_delay, flows.reverse_delay
        if access is not None:
            access = self.share() * quarter / 2
        if np.ndim(back) == 1:
            back = np.sort([self.share() * quarter for _ in back])
        elif back is not None:
            back = self.share() * quarter
        return dataclasses.replace(flows, **parts, access_delay=access, reverse_delay=back)


@st.composite
def numbers(draw: st.DrawFn, net: Network) -> Network | str:
    """The structure with other numbers, as its own text gives it back; or why it is refused."""
    scale = _Scale(draw, net)
    flows = [scale.trips(group) for group in net.flows]
    size = draw(st.sampled_from([1000.0, 1500.0, 40.0]))
    try:
        links = tuple(scale.link(k, link, flows, size) for k, link in enumerate(net.links))
        groups = tuple(scale.group(group, links) for group in flows)
        return loads(dumps(dataclasses.replace(net, links=links, flows=groups)))
    except (ScenarioError, ValueError) as refused:
        return str(refused)


def structure(root: int, number: int) -> Network:
    """Structure `number` of the family `root`; every law has its turn."""
    laws = every_law()
    using = laws[number % len(laws)]
    for attempt in range(20):
        (net,) = sample(structures(using), 1, f"{root} {number} {attempt}")
        others = {law.name for law in laws_in(net)} - {using.name}
        if using in laws_in(net) and others.isdisjoint(RESTLESS):
            return net
    raise AssertionError(f"no structure has {using.name} in it")


def networks(net: Network, root: int, number: int, count: int) -> list[Network | str]:
    """Networks of a structure."""
    return sample(numbers(net), count, f"{root} {number} numbers")
