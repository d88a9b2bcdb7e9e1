"""Scenario files and text, in and out, and the papers that laws and scenarios come from."""

import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from fluidcc import bundled
from fluidcc.errors import Fault, ScenarioError, answers, nearest, with_type
from fluidcc.folders import read_file
from fluidcc.scenario.build import build
from fluidcc.scenario.network import Network
from fluidcc.scenario.parsing import parsed
from fluidcc.scenario.tables import tables, to_toml


def loads(text: str, *, where: str = "scenario") -> Network:
    """The network of scenario text (TOML).

    `where` names the text in messages. Raises ScenarioError with every fault there is, and
    TypeError for what is no text.

    Returns
    -------
    Network
        Links and groups of flows.

    Examples
    --------
    >>> import fluidcc as fc
    >>> text = '''
    ... [links.bottleneck]
    ... capacity = "10 Mbit/s"
    ... packet_size = "1000 B"
    ... delay = "5 ms"
    ... buffer = "150 packet"
    ... queue = { law = "red", min_th = 25, max_th = 75 }
    ...
    ... [flows.tcp]
    ... n = 10
    ... rtt = "80 ms"
    ... window = { law = "newreno" }
    ... feedback = "mark_tail"
    ... '''
    >>> net = fc.loads(text)
    >>> net.links[0].capacity
    1250.0
    """
    if not isinstance(text, str):
        raise TypeError(f"loads: expected the text of a scenario, got {with_type(text)}")
    return build(parsed(text, where), where)


@answers
def load(scenario: str | os.PathLike[str]) -> Network:
    """The network of a scenario: a bundled one by its name (``misra2003/mixed``), or a file.

    Raises ScenarioError with every fault there is, and TypeError for what is no name or path.

    Returns
    -------
    Network
        Links and groups of flows.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.load("misra2003/mixed").flow_names
    ('mod', 'newreno')
    """
    name = os.fspath(scenario) if isinstance(scenario, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"load: expected a scenario's name or a file, got {with_type(scenario)}")
    known = bundled.scenarios()
    if name in known and not Path(name).is_file():
        return loads(known[name].read_text(encoding="utf-8"), where=name)
    try:
        return loads(read_file(name, "a scenario file (TOML, UTF-8 text)"), where=name)
    except FileNotFoundError:
        parts = {part: full for full in known for part in full.split("/")}
        close = nearest(name, list(known))  # else one whose folder or file name is similar
        close = close or [parts[p] for p in nearest(name.split("/")[-1], list(parts), 1)]
        expected = "a file, or a bundled scenario (`fluidcc list` names all)"
        fault = Fault("", "scenario", expected, f'"{name}"', tuple(close))
        raise ScenarioError([fault]) from None


def dumps(net: Network) -> str:
    """The scenario text (TOML) of a network, every value explicit; `loads` gives it back.

    Returns
    -------
    str
        The scenario as TOML text.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> fc.dumps(fc.loads(fc.dumps(net))) == fc.dumps(net)
    True
    """
    return to_toml(tables(net))


_KEY = re.compile(r"[a-z]+\d+[a-z]*")


@cache
def bibliography() -> dict[str, dict[str, Any]]:
    """Sources by key: authors, title, where published, year."""
    text = (bundled.bundled("models") / "bibliography.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def keys(source: str) -> list[str]:
    """Keys of the bibliography in a law's or a scenario's `source`."""
    return [key for key in _KEY.findall(source) if key in bibliography()]


def citations(net: Network) -> dict[str, str]:
    """Works that a study of this network should cite: sources of the scenario and of its laws.

    Returns
    -------
    dict of str to str
        The works to cite, by key.

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
