"""The view of a network: its links and groups of flows as tables."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.laws.law import Law
from fluidcc.laws.parameters import infos, numeric_parameters
from fluidcc.ops import is_tracer
from fluidcc.result import View
from fluidcc.results.blocks import Block, Cell, Number, lines, span, table, text
from fluidcc.scenario.network import Link

_LINK = ("capacity", "packet_size", "delay", "buffer")


class NetworkView(View):
    """Links and groups of flows, with their laws and the numbers of these."""

    def tables(self, rows: int | None = None) -> list[Block]:
        """A line each; all values are those of `fluidcc.dumps` and of the command `show`."""
        net = self.found
        units = infos(Link)
        links = table(
            "Links",
            "link",
            *((name, units[name].unit) for name in _LINK),
            "queue law",
            "its numbers",
        )
        for name, link in zip(net.link_names, net.links, strict=True):
            values = (_number(getattr(link, own)) for own in _LINK)
            links.add_row(name, *values, link.queue.name, _numbers(link.queue))
        flows = table(
            "Flows",
            "group",
            "flows",
            ("rtt", "s"),
            "window law",
            "its numbers",
            "feedback",
            "route",
        )
        for name, group in zip(net.flow_names, net.flows, strict=True):
            route = " ".join(net.link_names[k] for k in group.route)
            laws = group.window.name, _numbers(group.window), group.feedback.name
            flows.add_row(name, _number(group.n, sum), _number(group.rtt), *laws, route)
        choices = f"rates = {net.rates}, delay = {net.delay}, closure = {net.closure}"
        return [*lines(net.title, choices), links, flows]


def _number(value: Any, join: Callable[[Any], Any] = list) -> Cell:
    """A number, the range of several, or a word for one that JAX traces."""
    if is_tracer(value):
        return "traced"
    values = np.ravel(join(np.ravel(np.asarray(value, float)))).tolist()
    return Number(values[0], 8) if len(values) == 1 else span(values)


def _numbers(law: Law) -> str:
    """The numbers of a law with their units, in a line."""
    shown = []
    for name, info in numeric_parameters(law).items():
        unit = "" if info.unit in ("", "1") else f" {info.unit}"
        shown.append(f"{name} = {text(_number(getattr(law, name)))}{unit}")
    return ", ".join(shown)
