"""Pages on the laws: formulas and parameters made from the laws themselves."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import sympy as sp
from parts import rewrite

import fluidcc as fc
from fluidcc.bundled.validation.lab.formulas import zero_drift
from fluidcc.check.verb import network_with
from fluidcc.laws.law import KINDS as KINDS_OF_LAWS
from fluidcc.laws.law import (
    RULES,
    AbstractFeedback,
    AbstractMarking,
    AbstractQueueLaw,
    AbstractWindowLaw,
    Ack,
    Arrival,
    Law,
    PathTimes,
    Since,
)
from fluidcc.laws.parameters import infos
from fluidcc.laws.registry import LAWS
from fluidcc.laws.symbolic import changes, print_latex, rule
from fluidcc.laws.window.ecn_mod import ECNMod
from fluidcc.results.latex import queue_equations, readable, sender_equations
from fluidcc.scenario.files import bibliography, keys

KINDS = {
    "window": (
        "Window laws",
        "Changes of the window $W$ by one acknowledgement, one congestion signal and one loss "
        "[packet]. $n$ packets acknowledged in $e$ seconds; the fluid model takes the slope of "
        "the rule at zero in both, so $n = 1$ is one clean ACK. In the fluid equations $x_d$ is "
        "the rate of the packets that are acknowledged now, $p_d$ the probability that they were "
        "marked, $l_d$ that one was lost, $f_d$ the load factor that they received, $R$ the round "
        "trip. They hold for the reaction that the law has by default.",
    ),
    "queue": (
        "Queue laws",
        "Changes of the memory of a queue law by one arrival and one tick of a clock, and the "
        "probability $p$ that a packet is marked and $l$ that it is dropped by the law. $q$ is the "
        "queue [packet], $C$ the rate of the link and $Y$ that of the arrivals [packet/s], $s$ the "
        "size of a packet in mean packets.",
    ),
    "feedback": (
        "Feedback laws",
        "The return of a signal to the source: its age when it acts, and the age of the packets "
        "that carry it. $R$ is the round trip with all queues, $f$ the delay from the source to "
        r"the queue, $q/C$ the wait in it, $b_r$ the delay from the router back.",
    ),
    "reaction": (
        "Reactions",
        "The signals on which a sender acts, as mean shares: of the acknowledgements that let the "
        "window grow, and of the signals that count, at a mark probability $p$ and window $W$.",
    ),
    "marking": (
        "Marking maps",
        "The probability that is used for the packets of a group, from the link's own $p$.",
    ),
    "spreading": (
        "Spreading of marks",
        "How far apart the marks of a queue law lie: its long-run rate of marks, and the chance of "
        "the $j$-th packet after a mark, for a nominal probability $p$.",
    ),
    "loss": (
        "Losses in the fluid",
        "Effects of losses of probability $l$ on a sender of window $W$ with $x$ acknowledged "
        "packets per second: loss indications per second that end in fast recovery, those that end "
        "in a timeout, and the share of the time in which the sender is not recovering (for Reno's "
        "recovery); or the equilibrium window.",
    ),
    "estimator": (
        "Estimators of the load factor",
        r"The mean change of a receiver's estimate $\hat f$ of the load factor $f$ per packet.",
    ),
    "traffic": (
        "Traffic",
        "Transfers that end and begin per second, at $x$ packets per second of an active sender, "
        "and the random draws made from a uniform random number $U$.",
    ),
}
"""Kinds of laws as the registry has them: title of the page, and how to read it."""

_EVENTS = {
    "on_ack": "ACK", "on_mark": "signal", "on_loss": "loss", "observe": "ACK, marked or not",
    "on_arrival": "arrival", "on_departure": "departure",
}  # fmt: skip
"""Rules by their causes."""

_SAYS = {
    "shares": (r"\text{growing}", r"\text{reacting}"),
    "rate": (r"\text{marks per packet}",),
    "gap_probability": (r"\text{chance of packet } j",),
    "advertised_window": (r"\text{window allowed}",),
    "flight_size": (r"\text{in flight}",),
    "mean": (r"\Delta \hat f",),
    "lost": (r"\text{recovered}", r"\text{timeouts}", r"\text{running}"),
    "window": (r"W",),
    "ending": (r"\text{transfers ended}",),
    "beginning": (r"\text{transfers begun}",),
    "first_window": (r"\text{first window}",),
    "arrival": (r"\text{time to the next arrival}",),
    "pages": (r"\text{pages of a session}",),
    "objects": (r"\text{objects of a page}",),
    "pause": (r"\text{time between pages or files}",),
    "gap": (r"\text{time between objects}",),
    "size": (r"\text{size}",),
}


def aligned(lines: list[str]) -> str:
    """LaTeX of equations below each other, aligned at their first equals sign."""
    body = " \\\\\n".join(line.replace(" = ", " &= ", 1) for line in lines)
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


def _display(lines: list[str]) -> Iterator[str]:
    """Equations as a block, if there are any."""
    if lines:
        yield from ("", "```{math}", aligned(lines), "```", "")


def packet_rules(law: AbstractWindowLaw | AbstractQueueLaw) -> list[str]:
    """Changes by single events, each with the name of the event."""
    return [
        line + (rf" && \text{{({_EVENTS[method]})}}" if method in _EVENTS else "")
        for method, lines in changes(law).items()
        for line in lines
    ]


def _window(law: Any) -> Iterator[str]:
    yield "For packets:"
    yield from _display(packet_rules(law))
    if law.no_mean:
        yield f"The rules have no mean, as {law.no_mean}."
        return
    net = network_with(type(law), "window")
    if law.name == "becn":
        net = fc.replace(net, {"flows.tcp.feedback": "backward"})
    flows = net.flows[0]
    fluid = [f"{a} = {print_latex(b)}" for a, b in sender_equations(flows, "ack").items()]
    yield f"In the fluid, with the reaction `{flows.reaction.name}` and `{flows.feedback.name}`:"
    yield from _display(fluid)
    rests = [f"W = {sp.latex(readable(w))}" for w in zero_drift(law, flows.reaction)]
    if rests:
        yield "Where growth and reactions to marks balance:"
        yield from _display(rests)


def _queue(law: Any) -> Iterator[str]:
    if lines := packet_rules(law):
        yield "For packets:"
        yield from _display(lines)
    link = network_with(type(law), "queue").links[0]
    fluid = [f"{a} = {print_latex(b)}" for a, b in queue_equations(link).items()]
    if fluid:
        yield "In the fluid, with its signal:"
        yield from _display(fluid)


def _feedback(law: AbstractFeedback) -> Iterator[str]:
    trip = PathTimes(*sp.symbols("R f w b_r", positive=True))
    wait = sp.Symbol("q") / sp.Symbol("C")
    ages = {
        r"\text{age of the signal}": law.age(trip),
        r"\text{age of its carrier}": law.carrier(trip),
    }
    shown = {name: sp.sympify(age).subs(trip.queueing, wait) for name, age in ages.items()}
    yield from _display([f"{name} = {sp.latex(age)}" for name, age in shown.items()])


def _rules(law: Law) -> Iterator[str]:
    lines = []
    of_kind = next(names for base, names in RULES.items() if isinstance(law, base))
    for method in (name for name in of_kind if name in _SAYS):
        try:
            results = rule(law, method).results
        except ValueError:  # a closure that has windows at rest alone
            continue
        named = zip(_SAYS[method], results, strict=False)
        values = ((name, readable(raw)) for name, raw in named)
        lines += [f"{name} = {sp.latex(value)}" for name, value in values if _says(value)]
    yield from _display(lines)


def _says(value: sp.Expr) -> bool:
    """Whether a result is more than no change, and no window that is left as it is."""
    return value not in (0, sp.Symbol("W", positive=True))


def _marking(law: AbstractMarking) -> Iterator[str]:
    (result,) = rule(law, "probability", ECNMod()).results
    yield f"For flows of the law `{ECNMod.name}`:"
    yield from _display([f"p_{{\\mathrm{{used}}}} = {sp.latex(readable(result))}"])


def _parameters(law: type[Law], apart: type[Law] | None = None) -> Iterator[str]:
    """A table of the parameters, without those of the law `apart`."""
    shared = () if apart is None else infos(apart)
    fields = {name: info for name, info in infos(law).items() if name not in shared}
    if not fields:
        return
    yield from ("", "| parameter | symbol | default | range | meaning |", "|---|---|---|---|---|")
    for name, info in fields.items():
        default = getattr(law, name, None)
        symbol = f"${info.symbol}$" if info.symbol else ""
        words = LAWS.get(name) or info.words  # a law within a law by its name
        within = f"{info.within}" if info.within else ", ".join(f"`{c}`" for c in words)
        within = within.replace(" ", "\u00a0")
        shown = shown_default(default, info.unit)
        yield f"| `{name}` | {symbol} | {shown} | {within} | {info.meaning} |"
    yield ""


def shown_default(default: Any, unit: str) -> str:
    """A default with its unit; empty if it is another law, or has to be given."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int | float):
        return f"{default:g} {'' if unit == '1' else unit}".strip().replace(" ", "\u00a0")
    return default if isinstance(default, str) else ""


def _source(law: type[Law]) -> str:
    works = [bibliography()[key] for key in keys(law.source)]
    told = "; ".join(
        f"{w['authors']}, *{w['title']}*, {w['published']}, {w['year']}" for w in works
    )
    return f"Source: {law.source}. {told}." if told else f"Source: {law.source}."


def _law(kind: str, name: str, law: type[Law]) -> Iterator[str]:
    yield from (f"({kind}-{name.replace('_', '-')})=", f"## `{name}`", "")
    about = (law.__doc__ or "").strip().split("\n\n")
    yield from (" ".join(about[0].split()), "")
    one = law()
    if kind == "window":
        yield from _window(one)
    elif kind == "queue":
        yield from _queue(one)
    elif isinstance(one, AbstractMarking):
        yield from _marking(one)
    else:
        if isinstance(one, AbstractFeedback):
            yield from _feedback(one)
        yield from _rules(one)
    yield from _parameters(law, AbstractWindowLaw if kind == "window" else None)
    yield from (_source(law), "")


RECORDS = {"window": Ack, "queue": Arrival, "reaction": Since, "feedback": PathTimes}
"""Kinds of laws whose members have a table, with the record of the events that their rules get."""

_COMMENTED = re.compile(
    r"^ {4}(\w+): (?:ClassVar\[.*\]|Num(?: \| None)?)(?: = (.*?))?  # (.*)$", re.MULTILINE
)


def _commented(cls: type) -> list[tuple[str, str, str]]:
    """Names, defaults and comments of the lines in the text of a class."""
    texts = (inspect.getsource(c) for c in cls.__mro__ if c.__module__ == cls.__module__)
    return [line for text in texts for line in _COMMENTED.findall(text)]


def members(kind: str) -> Iterator[str]:
    """Tables of what an abstract class has for laws to write: declarations, rules, and the events
    that rules get.
    """
    base, record = KINDS_OF_LAWS[kind], RECORDS[kind]
    yield from ("| method | its result | when it is called |", "|---|---|---|")
    for name, method in inspect.getmembers(base, inspect.isfunction):
        about = " ".join((inspect.getdoc(method) or "").split())
        result, _, called = about.partition(" Called ")
        if called and not name.startswith("_"):
            form = f"`{name}({', '.join(list(inspect.signature(method).parameters)[1:])})`"
            needed = " **(needed)**" if name in base.__abstractmethods__ else ""
            yield f"| {form}{needed} | {result} | {called[0].upper()}{called[1:]} |"
    if lines := _commented(base):
        yield from ("", "| line in the class | meaning | default |", "|---|---|---|")
        yield from (f"| `{n}` | {why} | {f'`{d}`' if d else 'none: **needed**'} |"
                    for n, d, why in lines)  # fmt: skip
    about = " ".join((inspect.getdoc(record) or "").split()).partition(". ")[0].rstrip(".")
    yield from ("", f"| field of `{record.__name__}` | {about} |", "|---|---|")
    yield from (f"| `{name}` | {why} |" for name, _, why in _commented(record))


def parts() -> dict[str, dict[str, str]]:
    """Tables of methods of the pages on own laws, by page and name."""
    places = {"window": ("window", "reaction", "feedback"), "queue": ("queue",)}
    return {
        f"docs/own_{page}_law.md": {
            f"methods of {kind} laws": "\n" + "\n".join(members(kind)) + "\n" for kind in kinds
        }
        for page, kinds in places.items()
    }


def pages() -> dict[str, str]:
    """A page for each kind of law, and one that leads to them."""
    index = ["# Laws", "", (
        "Every formula and every table here is made from the laws when the documentation is built: "
        "the rules are called with symbols in place of numbers. Nothing is written twice. "
        "`fluidcc list laws` prints the parameters, `fluidcc show SCENARIO --latex` the equations "
        "of one network."
    ), ""]  # fmt: skip
    index += ["| kind | laws |", "|---|---|"]
    found = {}
    for kind, laws in LAWS.items():
        title, about = KINDS[kind]
        lines = [f"# {title}", "", about, ""]
        if kind == "window":
            lines += ["Every window law takes", "", *_parameters(AbstractWindowLaw), ""]
        for name, law in laws.items():
            lines += _law(kind, name, law)
        found[f"laws/{kind}.md"] = "\n".join(lines) + "\n"
        links = ", ".join(f"[`{n}`](#{kind}-{n.replace('_', '-')})" for n in laws)
        index.append(f"| [{title}]({kind}.md) | {links} |")
    index += ["", "```{toctree}", ":hidden:", "", *LAWS, "```"]
    return found | {"laws/index.md": "\n".join(index) + "\n"}


if __name__ == "__main__":
    rewrite(parts())
