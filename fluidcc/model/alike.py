"""Groups of flows that differ in numbers alone, as classes of one group: what is computed for one
of them is computed for all at once.
"""

from collections.abc import Sequence

import numpy as np

from fluidcc.arrays import jnp
from fluidcc.model.delays import State
from fluidcc.module import skeleton
from fluidcc.ops import Num
from fluidcc.programs import flatten, leaves, map_tree, ravel
from fluidcc.scenario.network import Flows, Network, link_delays, reverse_delays, unchecked


def alike(net: Network) -> list[list[int]]:
    """Indices of the groups of a network, those with the same rules and route together."""
    found: dict[object, list[int]] = {}
    for i, flows in enumerate(net.flows):
        own = unchecked(flows, n=None, rtt=None, reverse_delay=None)
        single = all(np.ndim(number) == 0 for number in leaves(own))
        found.setdefault(skeleton(flows, np.shape) if single else i, []).append(i)
    return list(found.values())


def joined(net: Network) -> Network:
    """The network with one group for all that are `alike`; its numbers have the shape (m,), those
    of reverse delays (links, m).
    """
    groups = alike(net)
    if len(groups) == len(net.flows):
        return net
    delays = link_delays(net)
    flows = tuple(_as_one([net.flows[i] for i in each], delays) for each in groups)
    names = tuple(net.flow_names[each[0]] for each in groups)
    return unchecked(net, flows=flows, flow_names=names)


def _as_one(groups: Sequence[Flows], delays: Sequence[Num]) -> Flows:
    shape = np.shape(groups[0].rtt)

    def classes(*numbers: Num) -> Num:
        return jnp.concatenate([jnp.broadcast_to(number, shape) for number in numbers])

    one = map_tree(classes, *(unchecked(flows, reverse_delay=None) for flows in groups))
    if groups[0].reverse_delay is None:
        return one
    backs = zip(*(reverse_delays(flows, delays) for flows in groups), strict=True)
    return unchecked(one, reverse_delay=jnp.stack([classes(*each) for each in backs]))


class Order:
    """The order of numbers in vectors of a joined network, and in those of the given one."""

    def __init__(self, places: np.ndarray) -> None:
        """`places` has for each number of the joined network where the given one has it, (n,)."""
        self.places, self._back = places, np.argsort(places)
        self._same = np.array_equal(places, np.arange(places.size))

    def joined(self, given: Num) -> Num:
        """A vector (n,) in the order of the joined network."""
        return given if self._same else given[self.places]

    def given(self, joined: Num) -> Num:
        """A vector (n,) in the order of the given network."""
        return joined if self._same else joined[self._back]


def orders(net: Network, y: State, record: int) -> list[Order]:
    """The orders of a state like `y`, of a record of that size, and of the modes."""
    groups, links = alike(net), len(net.links)
    flat, restore = ravel(y)
    place = restore(np.arange(flat.size))

    def as_one(parts: Sequence) -> tuple:
        own = ([parts[i] for i in each] for each in groups)
        return tuple(map_tree(lambda *v: np.concatenate(v), *each) for each in own)

    rest = links + len(net.flows)
    clocks = (*place.clocks[:links], *as_one(place.clocks[links:rest]), *place.clocks[rest:])
    state = flatten(place._replace(senders=as_one(place.senders), clocks=clocks))
    ends = np.cumsum([np.size(flows.rtt) for flows in net.flows])
    rates = np.concatenate(as_one(np.split(np.arange(ends[-1]), ends[:-1])))
    outputs = np.concatenate([rates, np.arange(ends[-1], record)])
    modes = np.concatenate([np.arange(links), links + rates])
    return [Order(places) for places in (state, outputs, modes)]
