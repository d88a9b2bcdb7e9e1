"""The equations of a network's fluid model, made from the rules of its laws."""

import dataclasses

import sympy as sp

from fluidcc.fluid.rates import queue_law_rate
from fluidcc.fluid.senders import Sender, sender_change
from fluidcc.laws.law import Arrival, Signal
from fluidcc.network import Flows, Link, Network
from fluidcc.symbolic import with_symbols

_GUARD = sp.Rational(999, 1000)  # rules keep probabilities below 1 by a hair: not for readers


def _positive(name: str) -> sp.Symbol:
    return sp.Symbol(name, positive=True)


def _text(name: str) -> str:
    return name.replace("_", r"\_")


def _readable(expression: sp.Expr) -> sp.Expr:
    """Exact numbers, and no guards against p = 1."""

    def unguarded(*args: sp.Expr) -> sp.Expr:
        return sp.Min(*(a for a in args if not (a.is_number and _GUARD < a < 1)))

    return sp.nsimplify(expression.replace(sp.Min, unguarded), rational=True)


def window_equation(flows: Flows, rates: str) -> sp.Expr:
    """Change of a window W per second.

    `x_d` is the rate of the packets acknowledged now, `p_d` the probability that they were marked
    (`l_d`: lost, for flows without ECN), `R` the round trip; `rates` as in `Network`.
    """
    window, rtt, acks = _positive("W"), _positive("R"), _positive("x_d")
    bare = dataclasses.replace(flows, window=with_symbols(flows.window))
    marks = flows.feedback.hears(Signal(mark=1, drop=0)).mark != 0
    signal = Signal(_positive("p_d"), 0) if marks else Signal(0, _positive("l_d"))
    share = flows.reaction.shares(signal.mark, window).growing
    growth = window / rtt if rates == "mgt" else acks * share
    change = sender_change(
        bare, Sender(bare.window.start(window)), growth=growth, acks=acks, carried=acks,
        signal=signal, rtt=rtt,
    )  # fmt: skip
    return sp.simplify(_readable(bare.window.window(change.law)))


def queue_equations(link: Link) -> dict[str, sp.Expr]:
    """What a queue law remembers and says, by the left-hand side.

    The change of its average `v` per second, and the probabilities `p` to mark and `l` to drop a
    packet that finds the queue `q`, at arrivals `Y` and link rate `C`.
    """
    law = with_symbols(link.queue)
    queue, average, arrivals = _positive("q"), _positive("v"), _positive("Y")
    bare = dataclasses.replace(link, queue=law, capacity=_positive("C"))
    state = law.start(average)
    out = {}
    if state != ():
        out[r"\dot v"] = sp.simplify(queue_law_rate(bare, state, queue, arrivals))
    signal = law.signal(state, Arrival(1, 0, queue, bare.capacity))
    says = {"p": sp.sympify(signal.mark), "l": sp.sympify(signal.drop)}
    return out | {left: _readable(right) for left, right in says.items()}


def latex(net: Network) -> str:
    """The fluid model of a network as an `align*` environment.

    Rates and signals with index d carry the delays of their feedback law; several links' signals
    combine as 1 - prod(1 - p). Made from the rules of the laws, like every other result.
    """
    lines = []
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        right = sp.latex(window_equation(flows, net.rates))
        law = _text(flows.window.name)
        lines.append(rf"\dot W_{{\mathrm{{{_text(name)}}}}} &= {right} && \text{{{law}}}")
    for name, link in zip(net.link_names, net.links, strict=True):
        queue = rf"\dot q_{{\mathrm{{{_text(name)}}}}}"
        lines.append(rf"{queue} &= \sum n\,x(t - f) - C, \quad 0 \le q \le B")
        for left, right in queue_equations(link).items():
            lines.append(rf"{left} &= {sp.latex(right)} && \text{{{link.queue.name}}}")
    body = " \\\\\n  ".join(lines)
    return "\\begin{align*}\n  " + body + "\n\\end{align*}"
