"""Compile ahead what first calls compile, so that they need not wait for it."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fluidcc.scenario.network import Network

_UNTIL = 1.0  # [s]: lengths of runs change nothing that is compiled


@dataclasses.dataclass(frozen=True)
class Warmed:
    """One verb, the time that its first call took [s], and why it gave nothing, if so."""

    verb: str
    seconds: float
    message: str = ""


def warm(net: Network) -> Iterator[Warmed]:
    """Call each verb once on a network; what they compile is kept where `keep_compiled` says.

    Yields one `Warmed` as each verb ends. Other numbers in the same network compile nothing more;
    other laws, or other numbers of links and groups, do.
    """
    for name, verb in _verbs().items():
        begin = time.perf_counter()
        message = ""
        try:
            verb(net)
        except ValueError as error:  # a verb that does not take such a network
            message = str(error)
        yield Warmed(name, time.perf_counter() - begin, message)


def _verbs() -> dict[str, Callable[[Network], Any]]:
    import fluidcc as fc

    return {
        "equilibrium": fc.equilibrium,
        "stability": fc.stability,
        "simulate": partial(fc.simulate, until=_UNTIL),
        "packets": partial(fc.simulate_packets, until=_UNTIL, seeds=(1,)),
        "compare": partial(fc.compare, until=_UNTIL, warmup=_UNTIL / 2, seeds=(1, 2)),
    }
