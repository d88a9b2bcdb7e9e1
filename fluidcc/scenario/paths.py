"""Parameters of a network by path, such as ``links.bottleneck.queue.w_q``: listed, read, set."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fluidcc.errors import Fault, ScenarioError, answers, nearest
from fluidcc.laws.parameters import Info, infos
from fluidcc.module import rebuild, structure
from fluidcc.ops import is_tracer
from fluidcc.programs import leaves
from fluidcc.scenario import parsing
from fluidcc.scenario.build import build
from fluidcc.scenario.keys import spelling_of
from fluidcc.scenario.network import OF_QUEUES, Flows, Network, require_network
from fluidcc.scenario.reader import Laws, got
from fluidcc.scenario.sender import KINDS, NAMED, SenderOptions, default_reaction
from fluidcc.scenario.tables import Tables, laws_of, reaction_table, tables

_OPTIONAL = {
    "links": ("random_loss", "fair", "voice", "schedule"),
    "flows": ("access_delay", "reverse_delay", "stop"),
}

_INSTEAD = {
    "voice.calls": ("arrivals", "most"), "voice.arrivals": ("calls",),
    "weight": ("shift",), "shift": ("weight",),
}  # fmt: skip
"""Values of links that a key replaces, in the same table."""


def _leaves(table: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def paths(net: Network) -> tuple[str, ...]:
    """Every path that can be set, links first.

    Returns
    -------
    tuple of str
        The paths.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.paths(fc.load("hollot2001/slow"))[:3]
    ('links.bottleneck.capacity', 'links.bottleneck.packet_size', 'links.bottleneck.delay')
    """
    return _paths(tables(net))


def _paths(values: Tables) -> tuple[str, ...]:
    found = [p for kind in ("links", "flows", "model") for p in _leaves(values[kind], f"{kind}.")]
    for kind, keys in _OPTIONAL.items():
        for name, table in values[kind].items():
            found += [f"{kind}.{name}.{key}" for key in keys if key not in table]
    for name, table in values["links"].items():
        if "voice" in table:
            other = "arrivals" if "calls" in table["voice"] else "calls"
            found.append(f"links.{name}.voice.{other}")
        if "beside" in table:
            found.append(f"links.{name}.{'shift' if 'weight' in table else 'weight'}")
    return tuple(found)


def leaf(values: Tables, path: str) -> Any:
    """The value at a full path in the tables of a scenario; None if there is none."""
    here: Any = values
    for part in path.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _names(net: Network) -> dict[str, tuple[str, ...]]:
    return {"links": net.link_names, "flows": net.flow_names}


def full_path(net: Network, path: str) -> str:
    """The path with ``link.`` and ``flow.`` replaced by the name of the only link or group."""
    short, *rest = path.split(".")
    names = _names(net).get(f"{short}s", ())
    return ".".join([f"{short}s", names[0], *rest]) if len(names) == 1 else path


def _settable(net: Network, values: Tables, path: str) -> bool:
    """Whether a full path leads to a value or a table of a scenario, or to a sender's rule."""
    parts = path.split(".")
    if parts[0] == "flows" and len(parts) == 4 and parts[2] == "sender":
        return parts[1] in net.flow_names and parts[3] in infos(SenderOptions)
    return path in _paths(values) or (len(parts) > 2 and leaf(values, path) is not None)


def _wrong_path(net: Network, path: str, where: str) -> Fault:
    known = list(paths(net))
    name, lasts = path.split(".")[-1], sorted({p.split(".")[-1] for p in known})
    kind, *inner = full_path(net, path).split(".")
    own = [p.split(".")[-1] for p in known if p.startswith(f"{kind}.")] or lasts
    if spelling := spelling_of(name, own, f"{inner[-2] if inner[2:] else kind}."):
        return Fault(where, path, spelling, "no such path")
    known += [p for p in (_short(net, known_path) for known_path in known) if p]
    close = nearest(path, known) or nearest(full_path(net, path), known)
    if not close:
        alike = nearest(name, lasts, 1)
        close = tuple(p for p in known if p.split(".")[-1] in alike)[:3]
    close = close or nearest(path, known, 1, least=0.0)
    return Fault(where, path, "a path of the scenario", "no such path", close)


def _short(net: Network, path: str) -> str:
    kind, *rest = path.split(".")
    return ".".join([kind[:-1], *rest[1:]]) if len(_names(net).get(kind, ())) == 1 else ""


@answers
def replace(net: Network, changes: Mapping[str, Any], *, where: str = "replace") -> Network:
    """The network with some parameters changed.

    Numbers stand for SI with packets, text for quantities with units; the whole scenario is
    checked again. A rate given in bit/s at loading is kept in packet/s. If a value is traced by
    JAX the network is changed in place of the number and nothing is checked; `n` then scales the
    flows of a group in proportion. The structure of the network stays, so nothing is compiled
    anew, unless the change is one of structure: a law, a choice, a number of round trips.

    Parameters
    ----------
    net
        The network.
    changes
        Values by path, such as ``{"flows.mod.n": 40, "links.bottleneck.delay": "5 ms"}``.
    where
        What to call the changes in messages.

    Returns
    -------
    Network
        The network with the changes; `net` stays as it is.

    Raises
    ------
    ScenarioError
        For wrong paths, with the nearest valid ones, and for every value that does not fit.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.replace(fc.load("hollot2001/slow"), {"flow.n": 40, "link.delay": "50 ms"})
    >>> fc.number_at(net, "flow.n"), fc.number_at(net, "link.delay")
    (40.0, 0.05)
    """
    if not isinstance(changes, Mapping) or not all(isinstance(path, str) for path in changes):
        form = 'values by path, such as {"flow.n": 40}'
        raise ScenarioError([Fault(where, "", form, f"{changes!r}")])
    require_network(net)
    require_once(net, changes, where)
    full = {full_path(net, path): value for path, value in changes.items()}
    if any(map(is_tracer, (*changes.values(), *leaves(net)))):
        return replace_unchecked(net, full)
    values, laws = tables(net), laws_of(net)
    if wrong := _wrong(net, values, changes):
        checked_later = _of_other_laws(values, full, laws)
        _refuse(net, [p for p in wrong if full_path(net, p) not in checked_later], where)
    _reset_dependants(net, values, list(full), laws)
    for path in sorted(full, key=lambda p: not p.endswith(".law")):
        _put(values, path.split("."), _as_plain(full[path]))
    return build(values, where, laws)


def _of_other_laws(values: Tables, changed: Iterable[str], laws: Laws) -> tuple[str, ...]:
    """Paths of parameters of laws that the network does not have (yet): `build` checks them."""
    anew = {path.removesuffix(".law") for path in changed if path.endswith(".law")}
    names = {name for kind in laws.values() for law in kind.values() for name in infos(law)}

    def is_of_a_law(path: str) -> bool:
        owner, _, name = path.rpartition(".")
        inside = owner.count(".") > 1 and isinstance(leaf(values, owner), Mapping | str)
        return inside and (name in names or owner in anew)

    return tuple(filter(is_of_a_law, changed))


def _drop(table: Tables, names: Iterable[str]) -> None:
    for name in names:
        table.pop(name, None)


def _reset_dependants(net: Network, values: Tables, changed: Iterable[str], laws: Laws) -> None:
    """Remove from a network's tables the values that depend on those about to change.

    A new law starts from its own defaults. A reaction that is the default of window law and
    feedback law stays so when these change. Calls replace arrivals, and arrivals calls; so do a
    weight and a shift.
    """
    for flows, table in zip(net.flows, values["flows"].values(), strict=True):
        present = reaction_table(flows.reaction)
        if present == reaction_table(default_reaction(flows.window, flows.feedback, laws)):
            _drop(table["window"], present)
    for path in changed:
        kind, name, *inner = path.split(".")
        if kind == "links":
            table = leaf(values, path.rpartition(".")[0])
            _drop(table or {}, _INSTEAD.get(".".join(inner), ()))
        if inner[-1:] == ["law"] and inner != ["window", "law"]:
            _put(values, [kind, name, *inner[:-1]], {})
        if kind == "flows" and name in net.flow_names:
            flows, window = net.flows[net.flow_names.index(name)], values[kind][name]["window"]
            if inner == ["window", "law"]:
                _drop(window, (*infos(flows.window), *reaction_table(flows.reaction)))
            elif inner[:1] == ["window"] and inner[1:] in ([named] for named in NAMED):
                _drop(window, infos(getattr(flows, inner[1])))
            elif inner[:1] == ["feedback"]:
                _drop(window, infos(flows.feedback))


def require_once(net: Any, wanted: Iterable[str], where: str) -> None:
    """Raise ScenarioError if two paths lead to the same; of a delay equation they are names."""
    known: dict[str, str] = {}
    faults = []
    for path in wanted:
        full = full_path(net, path) if isinstance(net, Network) else path
        if full in known:
            faults.append(Fault(where, path, "each path once", f"{known[full]!r} too"))
        known.setdefault(full, path)
    if faults:
        raise ScenarioError(faults)


def check_paths(net: Network, wanted: Iterable[str], *, where: str = "") -> None:
    """Raise ScenarioError, with the nearest valid paths, for each path that cannot be set."""
    if isinstance(wanted, str):  # its letters are no paths
        raise ScenarioError([Fault(where, "", "a list of paths", f"the text {wanted!r}")])
    _refuse(net, _wrong(net, tables(net), wanted), where)


def _wrong(net: Network, values: Tables, wanted: Iterable[str]) -> list[str]:
    """Paths that cannot be set."""
    return [p for p in wanted if not _settable(net, values, full_path(net, p))]


def _refuse(net: Network, wrong: Iterable[str], where: str) -> None:
    """Raise ScenarioError if there are wrong paths."""
    if faults := [_wrong_path(net, path, where) for path in wrong]:
        raise ScenarioError(faults)


def _as_plain(value: Any) -> Any:
    """Arrays and NumPy scalars as TOML would have them."""
    if hasattr(value, "shape"):
        return np.asarray(value).tolist()
    if isinstance(value, tuple | range):
        return list(value)
    return value


def _put(values: Tables, parts: list[str], value: Any) -> None:
    here = values
    for part in parts[:-1]:
        if isinstance(here.get(part), str):  # a law by its name alone
            here[part] = {"law": here[part]}
        here = here.setdefault(part, {})
    here[parts[-1]] = value


def _owner(net: Network, path: str) -> tuple[tuple[str | int, ...], str] | None:
    """Steps from the network to the owner of the value at a full path, and the field's name."""
    kind, *inner = path.split(".")
    names = _names(net).get(kind, ())
    if len(inner) < 2 or inner[0] not in names:
        return None
    name, *steps, field = inner
    place = names.index(name)
    return (kind, place, *home(getattr(net, kind)[place], steps, field)), field


def home(part: Any, steps: list[str], field: str) -> list[str]:
    """Steps from a link or group to the owner of a field; several laws share `window`."""
    if isinstance(part, Flows) and steps == ["window"]:
        return [next((k for k in KINDS if field in infos(getattr(part, k))), "window")]
    return steps


def _walk(net: Network, steps: tuple[str | int, ...]) -> Any:
    here: Any = net
    for step in steps:
        here = here[step] if isinstance(step, int) else getattr(here, step, None)
    return here


def _spread(net: Network, path: str, value: Any) -> tuple[str, Any]:
    """One end of evenly spread round trips as all of them."""
    owner, _, end = path.rpartition(".")
    found = _owner(net, owner) if end in ("min", "max") and owner.endswith(".rtt") else None
    if found is None:
        return path, value
    rtt = _walk(net, found[0]).rtt
    share = np.linspace(0.0, 1.0, np.size(rtt))
    share = share if end == "max" else 1.0 - share
    return owner, rtt + share * (value - (rtt[-1] if end == "max" else rtt[0]))


def check_number(net: Network, path: str, value: float) -> None:
    """Raise ValueError if the part of a network that has the number at a full path refuses another
    one, whatever the other parts are.
    """
    path, value = _spread(net, path, value)
    if found := _owner(net, path):
        steps, field = found
        dataclasses.replace(_walk(net, steps), **{field: value})


def _lent(net: Network, path: str) -> Iterator[str]:
    """Full paths of a number of a transmitter in the queues beside its own."""
    kind, name, *inner = path.split(".")
    if kind == "links" and len(inner) == 1 and inner[0] not in OF_QUEUES:
        for other, link in zip(net.link_names, net.links, strict=True):
            if link.beside is not None and net.link_names[link.beside] == name:
                yield f"links.{other}.{inner[0]}"


def replace_unchecked(net: Network, changes: Mapping[str, Any]) -> Network:
    """A network with other numbers at full paths, which may be traced; no range is checked.

    Raises ScenarioError if a path is not that of a number of this network.
    """
    both = ((own, value) for path, value in changes.items() for own in (path, *_lent(net, path)))
    for path, value in both:
        path, value = _spread(net, path, value)
        found = _owner(net, path)
        if found is None:
            raise ScenarioError([_wrong_path(net, path, "")])
        steps, field = found
        present: Any = getattr(_walk(net, steps), field, None)
        if isinstance(present, bool | str | tuple) or not leaves(present):
            expected = "the path of a number that the scenario has, as the value is traced"
            raise ScenarioError([Fault("", path, expected, got(present))])
        if np.ndim(present) == 1 and np.ndim(value) == 0 and np.size(present) == 1:
            value = np.ones(1) * value
        elif field == "n" and np.ndim(value) == 0:
            value = present * (value / sum(present))
        net = _with_value(net, (*steps, field), value)
    return net


def _with_value(tree: Any, steps: tuple[str | int, ...], value: Any) -> Any:
    """A tree with another value at the end of some steps."""
    if not steps:
        return value
    step, *inner = steps
    if isinstance(step, int):
        new = _with_value(tree[step], tuple(inner), value)
        return (*tree[:step], new, *tree[step + 1 :])
    names = structure(type(tree))[0]
    new = _with_value(getattr(tree, step), tuple(inner), value)
    return rebuild(tree, [new if name == step else vars(tree)[name] for name in names])


def number_at(net: Network, path: str) -> float:
    """The number at a path; the total for the `n` of a group.

    Raises ScenarioError if there is no number.

    Returns
    -------
    float
        The number, in SI with packets.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.number_at(fc.load("hollot2001/slow"), "link.capacity")
    3750.0
    """
    full = full_path(net, path)
    here = leaf(tables(net), full)
    if isinstance(here, list) and full.endswith(".n"):
        here = sum(here)
    if isinstance(here, bool) or not isinstance(here, int | float):
        if not _settable(net, tables(net), full):
            raise ScenarioError([_wrong_path(net, path, "")])
        raise ScenarioError([Fault("", path, "the path of a number", got(here))])
    return float(here)


def info_at(net: Network, path: str) -> Info | None:
    """Symbol, unit, meaning and range of the parameter at a path; None if it is no parameter."""
    found = _owner(net, re.sub(r"\.rtt\.(min|max)$", ".rtt", full_path(net, path)))
    owner = None if found is None else _walk(net, found[0])
    return infos(owner).get(found[1]) if found and dataclasses.is_dataclass(owner) else None


def value_at(net: Network, path: str, value: Any, *, where: str = "") -> Any:
    """A value for the parameter at a path: numbers and quantities in its unit, words as they are.

    Raises ScenarioError if the text is no quantity of that unit.
    """
    info = info_at(net, path)
    if info is None or info.within is None or not isinstance(value, str):
        return _as_plain(value)
    try:
        return parsing.read(value, info.unit, packet_size(net, path))
    except parsing.UnitError as error:
        raise ScenarioError([Fault(where, path, str(error), got(value), error.nearest)]) from None


def packet_size(net: Network, path: str) -> float:
    """Packet size on the link, or on the first link of the group, that a path belongs to [B]."""
    kind, name, *_ = full_path(net, path).split(".")
    if kind == "links":
        return float(net.links[net.link_names.index(name)].packet_size)
    return float(net.links[net.flows[net.flow_names.index(name)].route[0]].packet_size)


def axes_of(
    net: Network, over: Mapping[str, Iterable[Any]]
) -> tuple[dict[str, tuple], dict[str, str]]:
    """Values and unit of every path of a grid, from values that may be text with units.

    Raises ScenarioError if a path, the unit of a value or the list of them is wrong.
    """
    if not isinstance(over, Mapping) or not over:
        form = 'values by path, such as {"flow.n": [10, 20]}'
        raise ScenarioError([Fault("over", "", form, f"{over!r}")])
    check_paths(net, over)
    require_once(net, over, "over")
    listed = {path: _listed(values) for path, values in over.items()}
    faults = [
        Fault("over", path, "a list of at least one value", f"{over[path]!r}")
        for path, values in listed.items()
        if not values
    ]
    if faults:
        raise ScenarioError(faults)
    axes = {path: tuple(value_at(net, path, v) for v in row) for path, row in listed.items()}
    described = {path: info_at(net, path) for path in axes}
    return axes, {path: info.unit if info else "1" for path, info in described.items()}


def _listed(values: Any) -> tuple:
    """The values of an axis; () if it is no list."""
    listed = isinstance(values, Iterable) and not isinstance(values, str)
    return tuple(values) if listed else ()
