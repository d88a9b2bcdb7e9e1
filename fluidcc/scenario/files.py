"""Scenario files and text, in and out."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from fluidcc import bundled
from fluidcc.errors import Fault, ScenarioError, nearest
from fluidcc.network import Network
from fluidcc.scenario.build import build
from fluidcc.scenario.tables import tables, to_toml

_PLACE = re.compile(r"^(.*) \(at (.*)\)$")


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.match(str(error))
        what, place = match.groups() if match else (str(error), "")
        raise ScenarioError([Fault(where, place, "TOML", what)]) from None


def loads(text: str, *, where: str = "scenario") -> Network:
    """The network of scenario text (TOML).

    `where` names the text in messages. Raises ScenarioError with every fault there is.

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
    return build(_parsed(text, where), where)


def load(scenario: str | os.PathLike[str]) -> Network:
    """The network of a scenario: a bundled one by its name (``misra2003/mixed``), or a file.

    Raises ScenarioError with every fault there is.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.load("misra2003/mixed").flow_names
    ('mod', 'newreno')
    """
    name = os.fspath(scenario)
    known = bundled.scenarios()
    path = Path(name)
    if name in known and not path.is_file():
        text = known[name].read_text(encoding="utf-8")
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            expected = f"a file, or one of {', '.join(known)}"
            close = nearest(name, list(known)) or _with_stem(name, list(known))
            raise ScenarioError([Fault("", "scenario", expected, f'"{name}"', close)]) from None
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "a file that is no UTF-8 text"
            raise ScenarioError([Fault(name, "", "a readable text file", reason)]) from None
    return loads(text, where=name)


def _with_stem(name: str, known: list[str]) -> tuple[str, ...]:
    """Bundled scenarios one of whose two parts is alike."""
    parts = {part: full for full in known for part in full.split("/")}
    return tuple(parts[part] for part in nearest(name.split("/")[-1], list(parts), 1))


def dumps(net: Network) -> str:
    """The scenario text (TOML) of a network, every value explicit; `loads` gives it back.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.load("hollot2001/slow")
    >>> fc.dumps(fc.loads(fc.dumps(net))) == fc.dumps(net)
    True
    """
    return to_toml(tables(net))
