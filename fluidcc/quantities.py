"""One table of quantities: name, symbol, unit, meaning, and their names in each engine.

If engines have several names for one quantity, its row lists all of them, so that another name is
one edit here. Nothing is imported, so that every part can use it.
"""

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fluidcc.scenario.network import Network


class Quantity(NamedTuple):
    """One quantity of a link, a group of flows, a loop or a distribution of windows (`kind`), or a
    label or column of results (kind `data`).

    The last fields are its names at equilibrium, in a fluid run, in metrics of packet runs
    and in their series, of a fluid run as a whole (`run`), in fluctuations around an
    equilibrium (`noise`), and in the data sets of all other results (`data`); empty if it has none.
    """

    kind: str
    unit: str
    meaning: str
    symbol: str = ""
    equilibrium: str = ""
    fluid: str = ""
    packets: str = ""
    series: str = ""
    run: str = ""
    noise: str = ""
    data: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Its names, each once."""
        return tuple(dict.fromkeys(filter(None, self[4:])))

    @property
    def places(self) -> dict[str, str]:
        """The results that have it, in words, by its name there."""
        words = list(zip(self[4:], _PLACES, strict=True))
        found = {
            n: [_OF_KIND.get(self.kind, w) for own, w in words if own == n] for n in self.names
        }
        return {name: ", ".join(places) for name, places in found.items()}


_PLACES = (
    "equilibrium", "trajectory", "packets", "samples", "whole trajectory",
    "fluctuations", "data sets",
)  # fmt: skip
"""The engines of `Quantity` in words."""
KINDS = {
    "links": "Of a link", "flows": "Of a group of flows", "loop": "Of a loop",
    "response": "Frequency response of a loop",
    "roots": "Roots of a loop", "windows": "Windows of one flow",
    "data": "Labels and columns of data sets",
}  # fmt: skip
"""Kinds of quantities in words."""
_OF_KIND = {
    "loop": "stability", "response": "bode", "roots": "stability", "windows": "window distribution",
}  # fmt: skip

_link, _flows, _loop, _response, _roots, _windows = (
    functools.partial(Quantity, kind)
    for kind in ("links", "flows", "loop", "response", "roots", "windows")
)

PERCENTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Shares of packets or transfers by the ending of the time that they do not exceed."""

LISTS = ("flow_goodput", "link_arrivals")
"""Metrics of packets with a number for each flow or link."""


def _data(name: str, meaning: str, unit: str = "1", symbol: str = "") -> Quantity:
    """A label or column of data sets."""
    return Quantity("data", unit, meaning, symbol, data=name)


BY_UNIT = "unit"
"""Unit of a column in which each number has its own, by the coordinate of this name."""

# in the order in which the metrics of packets are printed
TABLE = (
    _link("1", "share of the link rate in use", r"\rho", equilibrium="utilization",
          fluid="utilization",
          packets="utilization", series="link_utilization_sampled"),
    _link("packet", "mean number of waiting packets", packets="queue_mean", series="link_queue"),
    _link("packet^2", "variance of the number of waiting packets", packets="queue_var"),
    _link("1", "standard deviation of the waiting packets over their mean", packets="queue_cov"),
    _link("packet", "largest number of waiting packets", packets="queue_max"),
    _link("B", "mean of the waiting bytes", packets="queue_bytes_mean", series="link_queue_bytes"),
    _link("B^2", "variance of the waiting bytes", packets="queue_bytes_var"),
    _link("B", "largest number of waiting bytes", packets="queue_bytes_max"),
    _link("packet", "packets at the link, with the one in service", "q", equilibrium="queue",
          fluid="queue", packets="number_in_system_mean", series="link_number_in_system"),
    _link("s", "queueing delay that is not exceeded, for a share of the time",
          noise="queueing_delay_quantile"),
    _link("packet^2", "variance of the packets at the link", packets="number_in_system_var"),
    _link("1", "standard deviation of the packets at the link over their mean",
          run="queue_cov",
          packets="number_in_system_cov"),
    _link("packet", "largest number of packets at the link", packets="number_in_system_max"),
    _link("s", "queueing delay of the link: from a packet's arrival until it is sent",
          r"\delta", equilibrium="queueing_delay", fluid="queueing_delay",
          packets="queueing_delay_mean", noise="queueing_delay"),
    *(_link("s", f"queueing delay that {100 * share:g} % of the packets do not exceed",
            packets=f"queueing_delay_{name}") for name, share in PERCENTILES.items()),
    _link("s", "time from which on the queue stays within 5 %, or a packet, of equilibrium",
          run="settling_time"),
    _link("packet", "average that the queue law keeps", "v", equilibrium="average", fluid="average",
          series="link_average"),
    _link("1", "mark or drop probability", "p", equilibrium="mark_probability",
          fluid="mark_probability"),
    _link("1", "share of the packets sent to the link that it drops", fluid="drop_fraction",
          packets="drop_fraction"),
    _link("1", "share of the packets sent to the link that it marks", fluid="mark_fraction",
          packets="mark_fraction"),
    _link("1", "load factor of the link", "f", equilibrium="load_factor", fluid="load_factor"),
    _link("packet/s", "packets that sources send to the link", fluid="offered"),
    _link("packet/s", "source quenches that the link sends", fluid="source_quench_rate"),
    _link("1", "share of source quenches in the packets on the way back",
          equilibrium="quench_fraction"),
    _link("packet", "standard deviation of the packets at the link over time", run="queue_std",
          noise="queue_std"),
    _link("packet", "packets at the link that it does not have more of, for a share of the time",
          noise="queue_quantile"),
    _link("packet^2 s", "spectral density of the packets at the link", noise="queue_density"),
    _link("packet", "standard deviation of the average that the queue law keeps",
          noise="average_std"),
    _link("1", "share of the time without a packet to send", noise="idle"),
    _link("s", "period of the queue", run="period"),
    _link("packet", "packets that arrived", packets="arrivals"),
    _link("packet", "packets that left", packets="departures"),
    _link("packet", "packets that were dropped", packets="drops"),
    _link("packet", "packets that were marked", packets="marks"),
    _link("packet/s", "drops per second", series="link_drop_rate"),
    _link("packet/s", "marks per second", series="link_mark_rate"),
    _link("1", "Jain's index of fairness of the goodputs of all flows whose data pass the link",
          packets="jain"),
    _link("1", "Jain's index of fairness of the goodputs in windows of this length, their mean",
          series="link_jain_by_scale"),
    _link("1", "share in use of the time that voice leaves", packets="utilization_left"),
    _link("bit/s", "rate of the voice that arrives", packets="voice_rate"),
    _link("1", "share of the voice packets that is lost", packets="voice_loss_fraction"),
    _link("s", "mean delay of a voice packet", packets="voice_delay_mean"),
    _link("s", "standard deviation of the delay of voice", packets="voice_delay_jitter"),
    _link("s", "mean step of the delay from one voice packet to the next",
          packets="voice_ipdv_mean"),
    _link("1", "mean number of calls", packets="voice_calls"),
    _link("1", "share of the calls that is refused", packets="voice_refused_fraction"),
    _flows("bit/s", "goodput of one flow or open source", packets="goodput",
           series="group_goodput_sampled"),
    _flows("bit/s", "goodput of each flow", packets="flow_goodput", series="flow_goodput_sampled"),
    _flows("1", "Jain's index of fairness of the goodputs", packets="jain"),
    _flows("1", "probability that a packet is lost on its route", fluid="loss_fraction",
           packets="loss_fraction"),
    _flows("1", "probability that a packet is marked on its route", fluid="mark_fraction",
           packets="mark_fraction"),
    _flows("1", "mark or drop probability seen by the sender", "p", equilibrium="mark_probability"),
    _flows("packet", "window of one flow", "W", equilibrium="window", fluid="window",
           packets="window_mean", series="group_window"),
    _flows("packet", "window of each flow", "W", series="flow_window"),
    _flows("packet", "standard deviation of the window of one flow over time",
           noise="window_std"),
    _flows("packet/s", "standard deviation of the rate of one flow over time", noise="rate_std"),
    _flows("packet", "mean over packets of the window", packets="window_per_packet"),
    _flows("packet/s", "rate of one flow", "x", equilibrium="rate", fluid="rate"),
    _flows("s", "round trip with queueing", "R", equilibrium="rtt", fluid="rtt",
           packets="rtt_mean"),
    *(_flows("s", f"round trip that {100 * share:g} % of the packets do not exceed",
             packets=f"rtt_{name}") for name, share in PERCENTILES.items()),
    _flows("s", "queueing delay over the links of the route", r"\delta",
           equilibrium="queueing_delay", fluid="queueing_delay", packets="queueing_delay_mean"),
    _flows("1", "load factor that the senders know", "f", fluid="load_factor"),
    _flows("1", "share of the active flows in slow start", "s", fluid="slow_start"),
    _flows("s", "mean delay of a data packet", packets="delay_mean"),
    _flows("s", "standard deviation of the delay", packets="delay_jitter"),
    _flows("s", "mean step of the delay from one packet of a connection to the next",
           packets="ipdv_mean"),
    _flows("packet", "data packets sent", packets="sent"),
    _flows("packet", "packets, data and acknowledgements, that arrived at each link",
           packets="link_arrivals"),
    _flows("1", "timeouts", packets="timeouts"),
    _flows("1", "reductions of the window by marks and losses", packets="window_reductions"),
    _flows("1", "recoveries from losses", packets="recoveries"),
    _flows("1", "source quenches that arrived", packets="source_quenches"),
    _flows("1", "share of source quenches in the packets on the way back",
           packets="quench_fraction"),
    _flows("packet", "acknowledgements and quenches that links on the way back dropped",
           packets="acks_lost"),
    _flows("1", "transfers under way, for each flow or open source", "a", fluid="active",
           packets="active"),
    _flows("1", "transfers that ended", packets="transfers"),
    _flows("s", "mean time of a transfer, from its request to the last acknowledgement",
           packets="fct_mean"),
    _flows("s", "standard deviation of the time of a transfer", packets="fct_std"),
    *(_flows("s", f"time that {100 * share:g} % of the transfers do not exceed",
             packets=f"fct_{name}") for name, share in PERCENTILES.items()),
    _flows("s", "time at which a transfer began, with its request", series="transfer_start"),
    _flows("packet", "packets of a transfer", series="transfer_size"),
    _flows("s", "time of a transfer, from its request to the last acknowledgement",
           series="transfer_time"),
    _flows("bit/s", "rate of the files that began, for each flow or open source",
           packets="offered"),
    _loop("1/s", "minus the real part of the rightmost root", equilibrium="decay_rate"),
    _loop("rad/s", "imaginary part of the rightmost root", r"\omega", equilibrium="frequency"),
    _loop("deg", "phase margin, phase unwrapped from zero frequency", equilibrium="phase_margin"),
    _loop("1", "factor on the loop gain that makes it critical", equilibrium="gain_margin"),
    _loop("s", "additional delay that makes the loop critical", equilibrium="delay_margin"),
    _loop("rad/s", "frequency at which the loop gain is 1", equilibrium="gain_crossover"),
    _loop("rad/s", "frequency at which the loop is real and negative",
          equilibrium="phase_crossover"),
    _response("rad/s", "frequency", r"\omega", equilibrium="frequency"),
    _response("1", "modulus of the loop gain", "|L|", equilibrium="magnitude"),
    _response("deg", "phase of the loop gain, unwrapped from zero frequency", r"\angle L",
              equilibrium="phase"),
    _roots("1/s", "real parts of the rightmost roots", equilibrium="root_real"),
    _roots("rad/s", "imaginary parts of the rightmost roots", equilibrium="root_imag"),
    _windows("1", "probability of a mark", "p", equilibrium="mark_probability"),
    _windows("1", "share of the ACKs that find a window", equilibrium="packet_share"),
    _windows("1", "share of the time at a window", equilibrium="time_share"),
    _windows("packet", "mean over packets of the window", equilibrium="window_per_packet"),
    _windows("packet", "mean over time of the window", equilibrium="window_mean"),
    _windows("packet^2", "variance over time of the window", equilibrium="window_var"),
    _windows("packet", "window at which the mean drift vanishes", equilibrium="window_fluid"),
    _windows("1", "window of the fluid model over the mean over time, less 1",
             equilibrium="window_bias"),
    _windows("packet", "window below which a flow is for a share of the time",
             equilibrium="window_quantile"),
    _data("time", "time", "s", "t"),
    _data("omega", "frequency", "rad/s", r"\omega"),
    _data("seed", "seed of a run"),
    _data("link", "link"),
    _data("group", "group of flows"),
    _data("flow", "number of a flow, or of a round trip of a group"),
    _data("flow_group", "group of each flow"),
    _data("transfer_seed", "seed of the run of a transfer"),
    _data("transfer_group", "group of a transfer"),
    _data("scale", "length of the windows of a mean", "s"),
    _data("class", "number of a round trip of a group"),
    _data("propagation", "round trip without queueing", "s", "T"),
    _data("share", "share of the time"),
    _data("quantity", "quantity by its name"),
    _data("unit", "unit"),
    _data("parameter", "parameter by its path"),
    _data("value", "value of the parameter, or of the quantity in question"),
    _data("derivative", "derivative of the quantity by the parameter"),
    _data("status", "status"),
    _data("message", "message"),
    _data("failed", "1 at points without a valid result"),
    _data("stable", "1 if stable, 0 if not, -1 if undetermined"),
    _data("unstable", "number of roots with positive real part, -1 if unknown"),
    _data("certified", "1 if the number of unstable roots is proven"),
    _data("proven", "number of roots proven to be the rightmost"),
    _data("root", "number of a root, from the right"),
    _data("root_real", "real part of the rightmost root", "1/s"),
    _data("root_imag", "imaginary part of the rightmost root", "rad/s"),
    _data("margin", "least distance of the loop from -1"),
    _data("frequency", "frequency of the critical root or the largest fluctuation", "rad/s",
          r"\omega"),
    _data("crossing", "number of a crossing"),
    _data("becomes", "stability beyond the crossing"),
    _data("jump", "whether the marking function is not smooth there"),
    _data("reason", "corner of the marking function or bound that is passed there"),
    _data("lyapunov", "first Lyapunov coefficient"),
    _data("criticality", "whether the cycle is born stable or unstable"),
    _data("vertex", "number of a point on a curve"),
    _data("curve", "number of the curve"),
    _data("kind", "kind of the boundary"),
    _data("path", "path of the parameter"),
    _data("low", "low end of the range"),
    _data("high", "high end of the range"),
    _data("point", "number of a point"),
    _data("branch", "number of the branch"),
    _data("period", "period of the cycle", "s"),
    _data("multiplier", "number of a Floquet multiplier"),
    _data("floquet_real", "real part of the Floquet multiplier"),
    _data("floquet_imag", "imaginary part of the Floquet multiplier"),
    _data("leading_multiplier", "largest magnitude of the Floquet multipliers beside 1"),
    _data("extreme", "least or greatest over the period"),
    _data("phase", "share of the period"),
    _data("y", "state of the delay equation"),
    _data("state", "number of a component of the state"),
    _data("lag", "lag of the delay equation", "s"),
    _data("delay", "number of a lag"),
    _data("window", "window of one flow", "packet", "W"),
    _data("bound_id", "bound by its name"),
    _data("reading", "number of a reading of a bound"),
    _data("definitions", "definitions under which the bound was judged"),
    _data("verdict", "whether the bound holds, or the law passes the check"),
    _data("check", "check of a law"),
    _data("why", "reason of the verdict"),
    _data("tight", "whether the bound is attained"),
    _data("searched", "number of points that were tried"),
    _data("bound", "bound at the worst point"),
    _data("largest_excess", "largest excess of the quantity over the bound"),
    _data("equilibrium", "equilibrium of mean windows"),
    _data("population", "equilibrium of the windows of all flows"),
    _data("trains", "mean of the trains over seeds"),
    _data("trains_ci95", "half width of the 95 % interval of the trains"),
    _data("fluid", "mean of the fluid trajectory after the warm-up"),
    _data("packets", "mean of the packets over seeds"),
    _data("ci95", "half width of the 95 % interval of the packets"),
    _data("recommended", "value of the level to trust"),
    _data("difference", "fluid model less packets, relative to packets"),
    _data("population_difference", "population less packets, relative to packets"),
    _data("trains_difference", "trains less packets, relative to packets"),
    _data("recommended_difference", "recommended value less packets, relative to packets"),
    _data("objective", "goal at the optimum"),
    _data("constraint", "constraint"),
    _data("constraint_value", "quantity of the constraint at the optimum, in the unit of its text"),
    _data("constraint_met", "whether the constraint is met"),
    _data("start", "number of a start of the search"),
    _data("start_end", "parameter at the end of the search from this start"),
    _data("start_objective", "goal at the end of the search from this start"),
    _data("level", "bound on the traded quantity"),
    _data("level_objective", "goal at this level"),
    _data("level_quantity", "traded quantity at the optimum of this level"),
    _data("level_value", "parameter at the optimum of this level"),
    _data("level_status", "status at this level"),
)  # fmt: skip


@functools.cache
def units(engine: str, kind: str) -> dict[str, str]:
    """Units by the names that an engine (a field of `Quantity`) has for quantities of a kind."""
    pairs = ((getattr(q, engine), q.unit) for q in TABLE if q.kind == kind)
    return {name: unit for name, unit in pairs if name}


def _rows(kind: str, name: str) -> list[Quantity]:
    """The quantities with this name, those of packets last: these call other queues `queue_cov`."""
    rows = (q for q in TABLE if q.kind == kind and name in q.names)
    return sorted(rows, key=lambda q: q.packets == name)


@functools.cache
def quantity(kind: str, name: str, engine: str = "") -> Quantity:
    """The quantity with this name in an engine (a field of `Quantity`), or in any.

    Raises KeyError if there is none.
    """
    for row in _rows(kind, name):
        if not engine or getattr(row, engine) == name:
            return row
    raise KeyError(f"{kind}: no quantity is called {name}")


def attributes(kind: str, name: str, engine: str = "") -> dict[str, str]:
    """Attributes of a variable in a data set: its unit and its meaning."""
    row = quantity(kind, name, engine)
    return {"units": row.unit, "long_name": row.meaning}


def about(name: str, unit: str = "") -> dict[str, str]:
    """Attributes of a label or column of a data set, in another `unit` if one is given."""
    row = attributes("data", name)
    return row | {"units": unit} if unit else row


def known(name: str) -> dict[str, str]:
    """Attributes of a label or number of any result, perhaps of an owner (``tcp.class``); its name
    alone if it is not in the table, as in results of one's own.
    """
    name = name.rpartition(".")[2]
    rows = sorted((q for q in TABLE if name in q.names), key=lambda q: q.kind != "data")
    units, long_name = (rows[0].unit, rows[0].meaning) if rows else ("1", name)
    return {"units": units, "long_name": long_name}


def about_parameter(path: str, unit: str) -> dict[str, str]:
    """Attributes of the values of a parameter."""
    return {"units": unit, "long_name": f"parameter {path}"}


def labels(**values: Any) -> dict[str, Any]:
    """Coordinates of a data set, each along the dimension of its name."""
    return {name: (name, list(each), about(name)) for name, each in values.items()}


def in_packets(net: "Network", kind: str, owner: str, name: str) -> str | None:
    """The metric of `PacketRuns` that is the same quantity in packets; None if there is none.

    The fluid model's link is the part that voice leaves, so its utilization is of that.

    Parameters
    ----------
    net
        The network.
    kind, owner
        ``links`` or ``flows``, and the name of the link or group.
    name
        The quantity, such as ``queue``.
    """
    metric = next((q.packets for q in _rows(kind, name) if q.packets), None)
    if metric == "utilization" and net.links[net.link_names.index(owner)].voice is not None:
        return "utilization_left"
    return metric
