"""One table of quantities: name, symbol, unit, meaning, and their names in each engine.

If engines have several names for one quantity, its row lists all of them, so that another name is
one edit here. Nothing is imported, so that every part can use it.
"""

import functools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fluidcc.scenario.network import Network


class Quantity(NamedTuple):
    """One quantity of a link, a group of flows, a loop or a distribution of windows (`kind`).

    The last fields are its names at equilibrium, in a fluid run, in metrics of packet runs
    and in their series, of a fluid run as a whole (`run`), and in fluctuations around an
    equilibrium (`noise`); empty if it has none.
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

    @property
    def names(self) -> tuple[str, ...]:
        """Its names, each once."""
        return tuple(dict.fromkeys(filter(None, self[4:])))


_link, _flows, _loop, _roots, _windows = (
    functools.partial(Quantity, kind) for kind in ("links", "flows", "loop", "roots", "windows")
)

_PERCENTILES = {"p50": "50", "p95": "95", "p99": "99", "p99_9": "99.9"}

# in the order in which the metrics of packets are printed
TABLE = (
    _link("1", "share of the link rate in use", r"\rho", equilibrium="utilization",
          fluid="utilization",
          packets="utilization"),
    _link("packet", "mean number of waiting packets", packets="queue_mean", series="link_queue"),
    _link("packet^2", "variance of the number of waiting packets", packets="queue_var"),
    _link("1", "standard deviation of the waiting packets over their mean", packets="queue_cov"),
    _link("packet", "largest number of waiting packets", packets="queue_max"),
    _link("B", "mean of the waiting bytes", packets="queue_bytes_mean", series="link_queue_bytes"),
    _link("B^2", "variance of the waiting bytes", packets="queue_bytes_var"),
    _link("B", "largest number of waiting bytes", packets="queue_bytes_max"),
    _link("packet", "packets at the link, with the one in service", "q", equilibrium="queue",
          fluid="queue", packets="number_in_system_mean", series="link_number_in_system"),
    _link("packet^2", "variance of the packets at the link", packets="number_in_system_var"),
    _link("1", "standard deviation of the packets at the link over their mean",
          packets="number_in_system_cov"),
    _link("packet", "largest number of packets at the link", packets="number_in_system_max"),
    _link("s", "mean queueing delay, from entering the queue to the start of transmission",
          packets="queueing_delay_mean"),
    *(_link("s", f"queueing delay that {share} % of the packets do not exceed",
            packets=f"queueing_delay_{name}") for name, share in _PERCENTILES.items()),
    _link("s", "time from which on the queue stays within 5 %, or a packet, of equilibrium",
          run="settling_time"),
    _link("1", "standard deviation of the queue over its mean, after the warm-up",
          run="queue_variation"),
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
    _link("s", "mean time in the queue", noise="delay"),
    _link("s", "time in the queue that is not exceeded, for a share of the time",
          noise="delay_quantile"),
    _link("1", "share of the time without a packet to send", noise="idle"),
    _link("s", "period of the queue", run="period"),
    _link("packet", "packets that arrived", packets="arrivals"),
    _link("packet", "packets that left", packets="departures"),
    _link("packet", "packets that were dropped", packets="drops"),
    _link("packet", "packets that were marked", packets="marks"),
    _link("1", "share of the time with a packet in service", series="link_busy"),
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
           series="group_acked_rate"),
    _flows("bit/s", "goodput of each flow", packets="goodput_flows", series="flow_acked_rate"),
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
    *(_flows("s", f"round trip that {share} % of the packets do not exceed",
             packets=f"rtt_{name}") for name, share in _PERCENTILES.items()),
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
    _flows("1", "share of the sources with something to send", "a", fluid="active"),
    _flows("1", "transfers under way, for each flow or open source", packets="active"),
    _flows("1", "transfers that ended", packets="transfers"),
    _flows("s", "mean time of a transfer, from its request to the last acknowledgement",
           packets="fct_mean"),
    _flows("s", "standard deviation of the time of a transfer", packets="fct_std"),
    _flows("s", "median time of a transfer", packets="fct_median"),
    _flows("s", "time below which 95 % of the transfers take", packets="fct_p95"),
    _flows("s", "time below which 99 % of the transfers take", packets="fct_p99"),
    _flows("s", "time at which a transfer began, with its request", series="transfer_start"),
    _flows("packet", "packets of a transfer", series="transfer_size"),
    _flows("s", "time of a transfer, from its request to the last acknowledgement",
           series="transfer_time"),
    _flows("bit/s", "rate of the files that began, for each flow or open source",
           packets="offered"),
    _loop("1/s", "minus the real part of the rightmost root", equilibrium="decay_rate"),
    _loop("1/s", "real part of the rightmost root", equilibrium="rightmost"),
    _loop("rad/s", "imaginary part of the rightmost root", r"\omega", equilibrium="frequency"),
    _loop("deg", "phase margin, phase unwrapped from zero frequency", equilibrium="phase_margin"),
    _loop("1", "factor on the loop gain that makes it critical", equilibrium="gain_margin"),
    _loop("s", "additional delay that makes the loop critical", equilibrium="delay_margin"),
    _loop("rad/s", "frequency at which the loop gain is 1", equilibrium="gain_crossover"),
    _loop("rad/s", "frequency at which the loop is real and negative",
          equilibrium="phase_crossover"),
    _roots("1/s", "real parts of the rightmost roots", equilibrium="root_real"),
    _roots("rad/s", "imaginary parts of the rightmost roots", equilibrium="root_imag"),
    _windows("1", "probability of a mark", "p", equilibrium="mark_probability"),
    _windows("packet", "mean over packets of the window", equilibrium="mean"),
    _windows("packet", "mean over time of the window", equilibrium="time_mean"),
    _windows("packet^2", "variance over time of the window", equilibrium="variance"),
    _windows("packet", "window at which the mean drift vanishes", equilibrium="fluid"),
    _windows("1", "window of the fluid model over the mean over time, less 1", equilibrium="bias"),
    _windows("packet", "window below which a flow is for a share of the time",
             equilibrium="quantile"),
)  # fmt: skip


@functools.cache
def units(engine: str, kind: str) -> dict[str, str]:
    """Units by the names that an engine (a field of `Quantity`) has for quantities of a kind."""
    pairs = ((getattr(q, engine), q.unit) for q in TABLE if q.kind == kind)
    return {name: unit for name, unit in pairs if name}


@functools.cache
def quantity(kind: str, name: str) -> Quantity:
    """The quantity with this name in any engine; raises KeyError if there is none."""
    for row in TABLE:
        if row.kind == kind and name in row.names:
            return row
    raise KeyError(f"{kind}: no quantity is called {name}")


def attributes(kind: str, name: str) -> dict[str, str]:
    """Attributes of a variable in a data set: its unit and its meaning."""
    row = quantity(kind, name)
    return {"units": row.unit, "long_name": row.meaning}


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
    names = (q.packets for q in TABLE if q.kind == kind and name in q.names)
    metric = next(filter(None, names), None)
    if metric == "utilization" and net.links[net.link_names.index(owner)].voice is not None:
        return "utilization_left"
    return metric
