"""Every key of a scenario with unit, default, range, meaning and the engines that use it, from the
declarations on the classes that are read, and `keys.toml` for keys that are read by rules of their
own; and the spelling of concepts that others call by another key.
"""

import dataclasses
import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fluidcc.errors import nearest, ours
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
_REQUIRED = {f"{_LINK}.capacity", f"{_LINK}.queue", f"{_FLOWS}.n", f"{_FLOWS}.rtt",
             f"{_FLOWS}.window"}  # fmt: skip

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_OTHERS: Mapping[str, list[str]] = _FILE["read_apart"]
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
    within, meaning, *engines = _OTHERS[path]
    name = path.rpartition(".")[2]
    law = getattr(Flows, name, None) if name != "reaction" else None  # that of the window law
    default = law.name if isinstance(law, Law) else described and described.default
    within = " | ".join(LAWS[name]) if within == "name" else within
    unit = described.unit if described else ""
    return Key(path, (), unit, default, within, meaning, tuple(engines) or ENGINES)


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
    {name: (k, said) for names, (k, said) in _FILE["elsewhere"].items() for name in names.split()}
)
"""Concepts that others call by another key or law: the key here, and how it is spelt. Some names
have a place before them: ``flows.delay`` of a table, ``feedback=ecn`` of a kind of laws."""

_AROUND = re.compile(r"^(?:ns3::|net[._]ipv[46][._])?(?:tcp)?|(?:queuedisc)$")
"""What other programs put around a name, in small letters and without ``_``."""


def _bare(name: str) -> str:
    """A name in small letters without what does not distinguish it."""
    return re.sub(r"[-_ ]", "", name.casefold())


_BARE = {
    f"{place}{mark}{_bare(own)}": spelling
    for name, (_, spelling) in ELSEWHERE.items()
    for place, mark, own in [re.match(r"(?:(\w+)([.=]))?(.*)", name).groups("")]  # pyright: ignore
}

_OF_RUNS = {"until", "warmup", "seeds", "step", "sample"}
RUN = {word for word, names in ours("arguments").items() if _OF_RUNS.intersection(names)}
RUN = (RUN | _OF_RUNS) - set(ELSEWHERE)
"""What belongs to a run and not to a scenario."""


def spelling_of(name: str, known: Sequence[str] = (), place: str = "") -> str:
    """How a concept that others call by this name is spelt here; empty for other names, and for one
    that is next to a `known` name, as if mistyped.

    The `place` is ``links.`` or ``flows.`` of a key, the last part of a deeper one (``queue.``), or
    a key by its value: ``queue=``.
    """
    folded = name.casefold().replace("-", "_")
    bare, ours = _bare(name), {_bare(own): own for own in known}
    inner = _AROUND.sub("", bare)
    for asked in dict.fromkeys((bare, inner)):
        if asked in ours:
            return "" if asked == bare else f'"{ours[asked]}"'
        if place and (own := _BARE.get(f"{place}{asked}")):
            return own
        if nearest(folded if asked == bare else asked, known, 1, least=_MISTYPED):
            return ""
        if place.endswith("="):
            continue
        if folded in RUN:
            return "times and seeds of a run as options, such as --until 60 (until=60 in Python)"
        if asked in _BARE:
            return _BARE[asked]
    return ""


@functools.lru_cache(maxsize=4)
def _places(laws: tuple[type[Law], ...]) -> dict[str, list[str]]:
    """Tables by the names of their keys, while these are the laws."""
    found: dict[str, list[str]] = {}
    for key in keys():
        table, _, name = key.path.rpartition(".")
        places = found.setdefault(name, [])
        places += [] if table in places else [table]
    return found


def answer_to(name: str, known: Sequence[str], place: str = "") -> str:
    """What to expect in place of a key that is not among the `known`: the spelling of a concept, or
    the tables that have the key; empty if nothing is known of it.
    """
    if spelling := spelling_of(name, known, place):
        return spelling
    places = _places(tuple(law for laws in LAWS.values() for law in laws.values())).get(name, ())
    return f"it in {' or '.join(f'[{place}]' for place in places)}" if places else ""
