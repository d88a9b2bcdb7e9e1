"""Every key of a scenario with unit, default, range, meaning and the engines that use it, from the
declarations on the classes that are read; and the spelling of concepts that others call by another
key.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fluidcc.errors import nearest
from fluidcc.laws.law import Law
from fluidcc.laws.parameters import ENGINES, EVENTS, infos
from fluidcc.laws.registry import LAWS
from fluidcc.laws.voice import Voice
from fluidcc.scenario.network import Flows, FlowsInitial, Link, LinkInitial, Network
from fluidcc.scenario.sender import SenderOptions


class Key(NamedTuple):
    """One key of a scenario.

    `path` has X for the name of a link or group. `laws` are the laws that have the key; none if it
    is of the table itself. `default` is None without a default, `within` an interval or the
    possible words. `engines` are those of `ENGINES` that use it.
    """

    path: str
    laws: tuple[str, ...]
    unit: str
    default: Any
    within: str
    meaning: str
    engines: tuple[str, ...]

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.path in _REQUIRED or self.path.endswith(".law")


_MISTYPED = 0.85  # similarity from which on a name is another one, mistyped
_LINK, _FLOWS = "links.X", "flows.X"
_TABLE, _NAME_OR_TABLE = "{ law = ..., ... }", "name, or { law = ..., ... }"
_MEAN = ("fluid", "population")
_REQUIRED = {f"{_LINK}.capacity", f"{_LINK}.queue", f"{_FLOWS}.n", f"{_FLOWS}.rtt",
             f"{_FLOWS}.window"}  # fmt: skip

_OTHERS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "title": ("text", "what the scenario is", ENGINES),
    "source": ("text", "work that it is from, by its key in the bibliography", ENGINES),
    f"{_LINK}.queue": (_TABLE, "queue law with its parameters", ENGINES),
    f"{_LINK}.voice": ("{ ... }", "voice on the link", ENGINES),
    f"{_LINK}.initial": ("{ ... }", "queue and average before the start", ("fluid", *EVENTS)),
    f"{_FLOWS}.n": ("(0, inf), or a list", "number of flows; a list has one for each of rtt",
                    ENGINES),
    f"{_FLOWS}.rtt": ("(0, inf), a list, or { min = ..., max = ... }", "propagation delay, both "
                      "ways; with min and max n flows with evenly spaced delays", ENGINES),
    f"{_FLOWS}.reverse_delay": ("[0, inf), or a list", "delay from router to source; for "
                                "quenches and rewritten ACKs, a list has one for each link of the "
                                "route", ENGINES),
    f"{_FLOWS}.route": ("list of links", "links in order; by default the only link", ENGINES),
    f"{_FLOWS}.reverse_route": ("list of links", "links that acknowledgements pass", EVENTS),
    f"{_FLOWS}.window": (_TABLE, "window law with its parameters, and those of its reaction, loss "
                         "and feedback", ENGINES),
    f"{_FLOWS}.window.reaction": ("name", "signals that the sender reacts to; by default as its "
                                  "window law says", ENGINES),
    f"{_FLOWS}.window.loss": ("name", "effects of losses", _MEAN),
    f"{_FLOWS}.feedback": (_NAME_OR_TABLE, "how the signal returns to the sender", ENGINES),
    f"{_FLOWS}.marking": (_NAME_OR_TABLE, "probability that is used for the packets of the group",
                          ENGINES),
    f"{_FLOWS}.estimator": (_NAME_OR_TABLE, "estimate of the load factor", ENGINES),
    f"{_FLOWS}.traffic": (_NAME_OR_TABLE, "when there is something to send", ENGINES),
    f"{_LINK}.schedule": ("list of { at = ..., capacity = ..., delay = ... }",
                          "changes of capacity and delay in time", ("packets",)),
    f"{_FLOWS}.start": ("[0, inf), a list, or { uniform = [...] }", "when flows start; a list has "
                        "one for each, and uniform is at random between two times (trains, "
                        "packets)", ("fluid", *EVENTS)),
    f"{_FLOWS}.stop": ("(0, inf), or a list", "when flows have no more new data", ("packets",)),
    f"{_FLOWS}.initial": ("{ ... }", "window before the start", ("fluid",)),
    f"{_FLOWS}.sender": ("{ ... }", "rules of the packet sender", ("population", *EVENTS)),
}  # fmt: skip
"""Range, meaning and engines of keys that are read by rules of their own."""

_TABLES: Mapping[str, tuple[Any, tuple[str, ...]]] = {
    "model": (Network, ENGINES), _LINK: (Link, ENGINES),
    f"{_LINK}.initial": (LinkInitial, ENGINES), f"{_LINK}.voice": (Voice, ENGINES),
    _FLOWS: (Flows, ENGINES), f"{_FLOWS}.initial": (FlowsInitial, ENGINES),
    f"{_FLOWS}.sender": (SenderOptions, EVENTS),
}  # fmt: skip
"""Tables, their classes, and the engines that their keys are for unless they say so."""

_OF_LAWS: Mapping[str, tuple[str, ...]] = {
    f"{_LINK}.queue": ("queue",), f"{_FLOWS}.window": ("window", "reaction", "loss"),
    f"{_FLOWS}.feedback": ("feedback",), f"{_FLOWS}.marking": ("marking",),
    f"{_FLOWS}.estimator": ("estimator",), f"{_FLOWS}.traffic": ("traffic",),
}  # fmt: skip
"""Tables with the parameters of laws, and the kinds of these."""


def keys() -> list[Key]:
    """Every key of a scenario, table by table; keys of laws that were added too."""
    found = [_other(path) for path in _OTHERS if "." not in path]
    for table, (cls, engines) in _TABLES.items():
        own = {f"{table}.{n}": _key(f"{table}.{n}", cls, n, engines) for n in infos(cls)}
        found += (own | {p: _other(p, own.get(p)) for p in _OTHERS if _table(p) == table}).values()
        for place in (place for place in _OF_LAWS if _table(place) == table):
            law = " | ".join(LAWS[_OF_LAWS[place][0]])
            found.append(Key(f"{place}.law", (), "", None, law, "law by its name", ENGINES))
            found += [_other(path) for path in _OTHERS if _table(path) == place]
            found += _of_laws(place)
    return found


def _table(path: str) -> str:
    return path.rpartition(".")[0]


def _other(path: str, described: Key | None = None) -> Key:
    """A key that is read by a rule of its own; what is declared of it is kept."""
    within, meaning, engines = _OTHERS[path]
    name = path.rpartition(".")[2]
    law = getattr(Flows, name, None) if name != "reaction" else None  # that of the window law
    default = law.name if isinstance(law, Law) else described and described.default
    within = " | ".join(LAWS[name]) if within == "name" else within
    return Key(path, (), described.unit if described else "", default, within, meaning, engines)


def _key(
    path: str, cls: Any, name: str, engines: tuple[str, ...], laws: tuple[str, ...] = ()
) -> Key:
    info = infos(cls)[name]
    field = next(f for f in dataclasses.fields(cls) if f.name == name)
    made = field.default_factory is not dataclasses.MISSING
    default: Any = field.default_factory() if made else field.default  # pyright: ignore
    default = default.name if isinstance(default, Law) else default
    words = LAWS.get(name, ()) if info.within is None and not info.choices else info.choices
    within = str(info.within) if info.within else " | ".join(words or info.words)
    given = None if default is dataclasses.MISSING or path in _REQUIRED else default
    return Key(path, laws, info.unit, given, within, info.doc, info.engines or engines)


def _of_laws(place: str) -> list[Key]:
    """Parameters of the laws in a table; those of several laws once."""
    found: dict[Key, list[str]] = {}
    for kind in _OF_LAWS[place]:
        for law in LAWS[kind].values():
            for name in infos(law):
                found.setdefault(_key(f"{place}.{name}", law, name, ENGINES), []).append(law.name)
    return [key._replace(laws=tuple(laws)) for key, laws in found.items()]


ELSEWHERE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        name: (key, spelling)
        for names, key, spelling in (
            ("ecn", f"{_FLOWS}.feedback",
             'feedback = "mark_tail" of flows for ECN, or "loss" for drops'),
            ("loss drops tail_drop", f"{_FLOWS}.feedback",
             'feedback = "loss" of flows for drops as the signal'),
            ("cc congestion_control algorithm protocol tcp variant", f"{_FLOWS}.window",
             'window = { law = "newreno" } of flows (`fluidcc list laws` names all)'),
            ("aqm qdisc discipline scheduler", f"{_LINK}.queue",
             'queue = { law = "red", ... } of links (`fluidcc list laws` names all)'),
            ("bandwidth bw rate speed link_rate bitrate", f"{_LINK}.capacity",
             'capacity = "10 Mbit/s" of links'),
            ("latency propagation prop_delay one_way_delay owd", f"{_LINK}.delay",
             'delay = "5 ms" of links, one way, or rtt = "80 ms" of flows, both ways'),
            ("base_rtt round_trip", f"{_FLOWS}.rtt", 'rtt = "80 ms" of flows, both ways'),
            ("mtu mss segment_size pkt_size", f"{_LINK}.packet_size",
             'packet_size = "1000 B" of links'),
            ("limit queue_size queue_limit buffer_size buf qlen", f"{_LINK}.buffer",
             'buffer = "150 packet" of links, or inf'),
            ("cwnd initial_cwnd init_cwnd iw initcwnd", f"{_FLOWS}.sender.initial_window",
             "sender = { initial_window = 10 } of flows (packets), or initial = { window = 10 } "
             "(fluid)"),
            ("ssthresh", f"{_FLOWS}.sender.initial_ssthresh",
             "sender = { initial_ssthresh = 64 } of flows"),
            ("rwnd receive_window receiver_window max_cwnd awnd", f"{_FLOWS}.window.max_window",
             "max_window = 64 in the window table of flows"),
            ("rto rto_min", f"{_FLOWS}.sender.min_rto", 'sender = { min_rto = "200 ms" } of flows'),
            ("number count flows num_flows flow_count nflows connections", f"{_FLOWS}.n",
             "n = 10 in a table [flows.NAME]"),
            ("path links hops", f"{_FLOWS}.route", 'route = ["first", "second"] of flows'),
            ("loss_rate plr packet_loss", f"{_LINK}.random_loss",
             'random_loss = "0.1 %" of links, or feedback = "loss" for drops as the signal'),
            ("delack delayed_ack", f"{_FLOWS}.sender.delayed_acks",
             "sender = { delayed_acks = true } of flows"),
            ("abc appropriate_byte_counting", f"{_FLOWS}.sender.byte_counting",
             "sender = { byte_counting = 2 } of flows"),
            ("stop_time end", f"{_FLOWS}.stop", 'stop = "30 s" of flows'),
            ("changes events", f"{_LINK}.schedule",
             'schedule = [{ at = "20 s", capacity = "5 Mbit/s" }] of links'),
            ("start_time begin", f"{_FLOWS}.start",
             'start = "2 s" of flows, or { uniform = ["0 s", "5 s"] }'),
            ("size file_size flow_size bytes", f"{_FLOWS}.traffic.file",
             'traffic = { law = "file", file = "100 kB" } of flows'),
            ("on_off onoff workload application", f"{_FLOWS}.traffic",
             'traffic = { law = "web" } of flows (`fluidcc list laws` names all)'),
            ("background cross_traffic udp cbr", f"{_LINK}.cross",
             'cross = "1 Mbit/s" of links'),
        )
        for name in names.split()
    }
)  # fmt: skip
"""Concepts that others call by another key: the key here, and how it is spelt."""

RUN = {"duration", "until", "time", "warmup", "seed", "seeds", "step", "sample"}
"""What belongs to a run and not to a scenario."""


def spelling_of(name: str, known: Sequence[str] = ()) -> str:
    """How a concept that others call by this name is spelt here; empty for other names, and for one
    that is next to a `known` name, as if mistyped.
    """
    asked = name.casefold().replace("-", "_")
    if nearest(asked, known, 1, least=_MISTYPED):
        return ""
    if asked in RUN:
        return "times and seeds of a run as options, such as --until 60 (until=60 in Python)"
    return ELSEWHERE[asked][1] if asked in ELSEWHERE else ""


@functools.lru_cache(maxsize=4)
def _places(laws: tuple[type[Law], ...]) -> dict[str, list[str]]:
    """Tables by the names of their keys, while these are the laws."""
    found: dict[str, list[str]] = {}
    for key in keys():
        table, _, name = key.path.rpartition(".")
        places = found.setdefault(name, [])
        places += [] if table in places else [table]
    return found


def answer_to(name: str, known: Sequence[str]) -> str:
    """What to expect in place of a key that is not among the `known`: the spelling of a concept, or
    the tables that have the key; empty if nothing is known of it.
    """
    if spelling := spelling_of(name, known):
        return spelling
    places = _places(tuple(law for laws in LAWS.values() for law in laws.values())).get(name, ())
    return f"it in {' or '.join(f'[{place}]' for place in places)}" if places else ""
