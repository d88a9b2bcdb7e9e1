"""The equations of a network's fluid model, made from the rules of its laws."""

import dataclasses
from typing import Any

import sympy as sp

from fluidcc.arrays import jax
from fluidcc.laws.law import (
    ALWAYS,
    MEASURES,
    SIGNALS,
    AbstractQueueLaw,
    AbstractWindowLaw,
    Signal,
)
from fluidcc.laws.symbolic import in_powers, latex_period, print_latex, state_symbols, with_symbols
from fluidcc.model.fluid import as_fluid
from fluidcc.model.rates import (
    Sender,
    acknowledgement,
    arrival_rate,
    deciding_rate,
    growing_rate,
    sender_change,
    starts_slowly,
    unhindered_rate,
)
from fluidcc.scenario.network import Flows, Link, Network

_GUARD = sp.Rational(999, 1000)  # Min and Max against ends nearer to 1 or 0 are guards, omitted


def _positive(name: str) -> sp.Symbol:
    return sp.Symbol(name, positive=True)


def _text(name: str) -> str:
    return name.replace("_", r"\_")


def readable(expression: sp.Expr) -> sp.Expr:
    """Exact numbers, no guards against 0 and 1, and simplified if that is quick."""

    def below_one(*args: sp.Expr) -> sp.Expr:
        return sp.Min(*(a for a in args if not (a.is_number and _GUARD < a < 1)))

    def above_zero(*args: sp.Expr) -> sp.Expr:
        return sp.Max(*(a for a in args if not (a.is_number and 0 < a < 1 - _GUARD)))

    bare = in_powers(expression).replace(sp.Min, below_one).replace(sp.Max, above_zero)
    exact = sp.nsimplify(bare, rational=True)
    return exact if exact.has(sp.Piecewise, sp.Min, sp.Max) else sp.simplify(exact)


def _by_name(symbols: Any, values: Any, left: str) -> dict[str, sp.Expr]:
    """Numbers of a state by the left-hand sides of their equations, without those that are 0."""
    names = (symbol.name for symbol in jax.tree.leaves(symbols))
    braced = (f"{{{name}}}" if "_" in name or name.startswith("\\hat") else name for name in names)
    pairs = zip(braced, jax.tree.leaves(values), strict=True)
    equations = {f"{left} {name}": readable(value) for name, value in pairs}
    return {key: value for key, value in equations.items() if value != 0}


def sender_equations(flows: Flows, rates: str) -> dict[str, sp.Expr]:
    """Equations of the flows by left-hand side: changes of their state per second, and jumps.

    `x_d` is the rate of the packets acknowledged now, `p_d` the probability that they were marked
    (`l_d`: lost, for flows without ECN), `f_d` the load factor, `delta_d` the queueing delay that
    they met, `varsigma_d` the time between packets that links allow, `R` the round trip; `rates`
    as in `Network`. Further states: `s` the share in slow start, `a` the share that is active,
    `hat f` the estimated load factor; `x` is the rate sent if that is not W/R. Left-hand sides with
    a Delta jump at the ticks of the window law.
    """
    rtt, acks, lost = _positive("R"), _positive("x_d"), _positive("l_d")
    closed_form = flows.loss.window(lost, rtt)
    if closed_form is not None:
        return {"W": readable(closed_form)}
    propagation = _positive(MEASURES["propagation"].symbol)
    bare = dataclasses.replace(flows, window=with_symbols(flows.window), rtt=propagation)
    marks = flows.feedback.interpret(Signal(mark=1, drop=0)).mark != 0
    heard = (*flows.feedback.written, *(k for k in flows.window.signals if SIGNALS[k].measure))
    known = {k: _positive(rf"{SIGNALS[k].symbol}_d") for k in heard}
    mark, drop = (_positive("p_d"), 0) if marks else (0, lost)
    signal = Signal(mark, drop)._replace(**known)
    law = state_symbols(bare.window)
    window = bare.window.window(law)
    s = Sender(
        law=law,
        slow=_positive("s") if starts_slowly(flows) else (),
        active=_positive("a") if flows.traffic.starts else (),
        estimate=_positive(r"\hat f") if flows.estimator.remembers else (),
    )
    growth = window / rtt if rates == "mgt" else growing_rate(bare, s, signal, acks, rtt)
    change = sender_change(bare, s, growth=growth, acks=acks, carried=acks, signal=signal, rtt=rtt)
    out = _by_name(s, change, r"\dot")
    ack = acknowledgement(flows, s, signal, rtt, acks)
    if bare.window.period(ack) is not None:
        out |= _by_name(law, bare.window.on_tick(law, ack), r"\Delta")
    flight = flows.feedback.flight_size(window, signal.mark)
    if flight == window and not bare.window.is_paced:
        return out
    return out | {"x": readable(unhindered_rate(bare, s, signal, rtt))}


def queue_equations(link: Link) -> dict[str, sp.Expr]:
    """Equations of a queue law, its memory and its signal, by left-hand side.

    The changes of its memory per second and its jumps at ticks (Delta), and the probabilities
    `p` to mark and `l` to drop a packet that finds the queue `q`, at arrivals `Y` and link rate
    `C`; `f` is the load factor that it signals, `varsigma` the time between packets.
    """
    law = with_symbols(link.queue)
    queue, arrivals, capacity = _positive("q"), _positive("Y"), _positive("C")
    bare = dataclasses.replace(link, queue=law, capacity=capacity, buffer=_positive("B"))
    state = state_symbols(law)  # 0 among them, which rules may ask for
    seen = bare.arrival(1, 1 / deciding_rate(bare, queue, arrivals), queue)
    out = _by_name(state, arrival_rate(bare, state, queue, arrivals), r"\dot")
    if law.period() is not None:
        idle = bare.arrival(1, 1 / arrivals, sp.Symbol("q", nonnegative=True))  # it may be 0
        out |= _by_name(state, law.on_tick(state, idle), r"\Delta")
    signal = law.signal(state, seen)
    outputs = {SIGNALS[k].symbol: getattr(signal, k) for k in (*ALWAYS, *law.written)}
    read = {left: readable(right) for left, right in outputs.items()}
    return out | {left: right for left, right in read.items() if str(right) != left}


def _line(left: str, right: sp.Expr, law: AbstractWindowLaw | AbstractQueueLaw) -> str:
    """One line: an equation, when it jumps, and the law that it comes from."""
    jumps = left.startswith(r"\Delta")
    when = rf" \quad \text{{every }} {latex_period(law)}" if jumps else ""
    return rf"{left} &= {print_latex(right)}{when} && \text{{{_text(law.name)}}}"


def _limits(link: Link) -> str:
    """The limits of a queue law's memory as a line; empty if there are none."""
    stopped = [field.info for field in link.queue.states.values() if field.stops]
    if not stopped:
        return ""
    low, high = (sp.latex(sp.nsimplify(end)) for end in stopped[0].within.ends)  # type: ignore[union-attr]
    names = ", ".join(info.symbol for info in stopped)
    return rf"{low} &\le {names} \le {high} && \text{{{_text(link.queue.name)}}}"


def latex(net: Network) -> str:
    r"""The fluid model of a network as an `align*` environment.

    Rates and signals with index d carry the delays of their feedback law; several links' signals
    combine as 1 - prod(1 - p). Made from the rules of the laws, like every other result.

    Returns
    -------
    str
        The equations as LaTeX.

    Examples
    --------
    >>> import fluidcc as fc
    >>> print(fc.latex(fc.load("durresi2001/slow_start_tail")).splitlines()[0])
    \begin{align*}
    """
    whole = net.by_group
    fair = {n for n, link in zip(whole.link_names, whole.links, strict=True) if link.fair}
    net, lines = as_fluid(net), []
    for name, flows in zip(net.flow_names, net.flows, strict=True):
        for left, right in sender_equations(flows, net.rates).items():
            lines.append(_line(rf"{left}_{{\mathrm{{{_text(name)}}}}}", right, flows.window))
    for name, link in zip(net.link_names, net.links, strict=True):
        queue = rf"\dot q_{{\mathrm{{{_text(name)}}}}}"
        growth = r"x(t - f) - C" if name in fair else r"\sum n\,x(t - f) - C"
        if beside := [
            n
            for n, other in zip(net.link_names, net.links, strict=True)
            if other.beside is not None and net.link_names[other.beside] == name
        ]:
            load = rf"Y_{{\mathrm{{{_text(beside[0])}}}}}"  # its delay is q/C
            growth = rf"\left({growth}\right) \frac{{C}}{{C - {load}}}"
        share = r" && \text{C: share of one flow}" * (name in fair)
        lines.append(rf"{queue} &= {growth}, \quad 0 \le q \le B{share}")
        lines += [_line(left, right, link.queue) for left, right in queue_equations(link).items()]
        lines += [line] if (line := _limits(link)) else []
    body = " \\\\\n  ".join(lines)
    return "\\begin{align*}\n  " + body + "\n\\end{align*}"
