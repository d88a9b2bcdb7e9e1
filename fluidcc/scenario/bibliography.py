"""The papers that laws and scenarios come from."""

import re
import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

from fluidcc.bundled import bundled

if TYPE_CHECKING:
    from fluidcc.scenario.network import Network

_KEY = re.compile(r"[a-z]+\d+[a-z]*")


@cache
def bibliography() -> dict[str, dict[str, Any]]:
    """Sources by key: authors, title, where published, year."""
    text = (bundled("models") / "bibliography.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def keys(source: str) -> list[str]:
    """Keys of the bibliography in a law's or a scenario's `source`."""
    return [key for key in _KEY.findall(source) if key in bibliography()]


def citations(net: "Network") -> dict[str, str]:
    """Works that a study of this network should cite: sources of the scenario and of its laws.

    Examples
    --------
    >>> import fluidcc as fc
    >>> list(fc.citations(fc.load("hollot2001/slow")))
    ['hollot2001', 'misra2000', 'floyd1993', 'misra2003', 'durresi2001']
    """
    laws: list[Any] = [link.queue for link in net.links]
    for flows in net.flows:
        laws += [flows.window, flows.reaction, flows.feedback, flows.marking]
    spreadings = [getattr(link.queue, "spreading", None) for link in net.links]
    laws += [law for law in spreadings if law is not None]
    model = ["misra2000"] if net.rates == "mgt" else []
    sources = [net.source, *model, *(law.source for law in laws)]
    cited = [key for source in sources for key in keys(source)]
    return {key: _entry(bibliography()[key]) for key in dict.fromkeys(cited)}


def _entry(work: dict[str, Any]) -> str:
    return f"{work['authors']}: {work['title']}. {work['published']}, {work['year']}."
