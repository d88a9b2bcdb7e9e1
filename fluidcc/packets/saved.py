"""Files of saved states, from which packet runs go on as if they had never stopped.

A file is a line with the seal of the rest, a line of JSON that says of what the states are, and the
compressed states. Only the engine that wrote a state can read it, as it is its memory.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fluidcc.errors import ScenarioError
from fluidcc.folders import SHOWING, fingerprint, seal, whole
from fluidcc.laws.own import laws_in, source_of
from fluidcc.packets.build import Simulation
from fluidcc.packets.plan import PacketError, Plan, plan
from fluidcc.scenario.files import dumps, loads
from fluidcc.scenario.network import Network
from fluidcc.scenario.tables import tables

ENDING = ".state"
_HEAD = "fluidcc packet state "
_MOST_NAMED = 5  # differences of networks
_LEVEL = 1  # of compression: most of a state is zeros


class State(NamedTuple):
    """The state of one run, compressed, and the sizes that it was built with."""

    scale: int  # of the pool and rings
    flows_scale: int
    pool: int  # packet
    data: bytes

    @classmethod
    def of(cls, run: Simulation) -> "State":
        """The present state of a run."""
        data = zlib.compress(run.dump(), _LEVEL)
        return cls(run.scale, run.plan.scale, len(run.packets), data)

    def run(self, layout: Plan, seed: int) -> Simulation:
        """The run of a network that goes on from this state."""
        layout = layout.scaled(self.flows_scale)
        run = Simulation(layout, seed, False, self.scale, pool=self.pool)
        run.restore(zlib.decompress(self.data))
        return run


class Saved(NamedTuple):
    """States of the runs of a network at `time` [s], by seed."""

    time: float
    states: Mapping[int, State]


def _origin(net: Network) -> dict[str, Any]:
    """What a state belongs to: a network, the text of its laws from elsewhere, and this package."""
    own = [law for law in laws_in(net) if not law.__module__.startswith("fluidcc.")]
    digests = [hashlib.sha256(source_of(law).encode()).hexdigest() for law in own]
    return {"scenario": dumps(net), "laws": sorted(digests), "code": fingerprint(*SHOWING)}


def write_states(path: Path, net: Network, time: float, states: Mapping[int, State]) -> None:
    """Write a file of states; raises PacketError if that fails."""
    runs = {seed: (*state[:-1], len(state.data)) for seed, state in states.items()}
    head = json.dumps({"time": time, "runs": runs, **_origin(net)})
    body = b"".join([head.encode(), b"\n", *(state.data for state in states.values())])
    try:
        with whole(path) as part:
            part.write_bytes(f"{_HEAD}{seal(body)}\n".encode() + body)
    except OSError as error:
        raise PacketError(f"save_state: cannot write '{path}' ({error.strerror})") from None


def saved_seeds(path: Path) -> tuple[int, ...]:
    """The seeds of the states in a file; raises PacketError for one that is none, or damaged."""
    return tuple(map(int, _read(path)[0]["runs"]))


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """What a file says of its states, and the states."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError as error:
        raise PacketError(f"initial: cannot read '{path}' ({error.strerror})") from None
    if not head.startswith(_HEAD.encode()):
        raise PacketError(f"initial: expected a file of save_state, got '{path}', which is none")
    if head.decode("ascii", "replace") != _HEAD + seal(body):
        raise PacketError(f"initial: expected the states as saved, got '{path}', which is damaged")
    text, _, data = body.partition(b"\n")
    return json.loads(text), data


def read_states(path: Path, net: Network) -> Saved:
    """The states in a file, for a network to go on from.

    Numbers that nothing but the rules of laws reads may differ from the network that was saved.
    Raises PacketError for a file that is none, or damaged, and for states of another network or
    version, with the differences.
    """
    known, data = _read(path)
    wanted = _origin(net)
    if known["code"] != wanted["code"]:
        raise PacketError(
            f"initial: '{path}' is of another version of fluidcc, or of a package that it computes "
            "with: save it anew"
        )
    _require_alike(path, known, net, wanted)
    place, states = 0, {}
    for seed, (scale, flows_scale, pool, length) in known["runs"].items():
        states[int(seed)] = State(scale, flows_scale, pool, data[place : place + length])
        place += length
    return Saved(known["time"], states)


def _require_alike(
    path: Path, known: Mapping[str, Any], net: Network, wanted: Mapping[str, Any]
) -> None:
    """Raise PacketError, with the differences, unless runs of a network can take saved states."""
    if known["laws"] != wanted["laws"]:
        raise PacketError(f"initial: '{path}' is of a network with laws of another text")
    if known["scenario"] == wanted["scenario"]:
        return
    try:
        before = loads(known["scenario"])
    except ScenarioError as error:
        raise PacketError(f"initial: the network of '{path}' cannot be read: {error}") from None
    old, new = (dict(_values(tables(each))) for each in (before, net))
    paths = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    numbers = all(type(v.get(name)) in (int, float) for v in (old, new) for name in paths)
    if not paths or (numbers and _at_birth(before) == _at_birth(net)):
        return
    pairs = [[f"{v.get(name, 'absent')!s:.40}" for v in (new, old)] for name in paths]
    named = [f"{name} is {a}, there {b}" for name, (a, b) in zip(paths, pairs, strict=True)]
    more = f" and {len(named) - _MOST_NAMED} more" * (len(named) > _MOST_NAMED)
    raise PacketError(
        f"initial: '{path}' is of another network: {'; '.join(named[:_MOST_NAMED])}{more}; only "
        "parameters that the rules of laws alone read, such as p_max of RED, may differ"
    )


def _at_birth(net: Network) -> str:
    """Digest of a run before its first event: all numbers but the parameters of rules."""
    simulation = Simulation(plan(net), 1, False)
    try:
        return seal(simulation.dump())
    finally:
        simulation.close()


def _values(table: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Values of the links and flows in nested tables, by their paths."""
    for name, value in table.items() if path else [(k, table[k]) for k in ("links", "flows")]:
        if isinstance(value, Mapping):
            yield from _values(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
