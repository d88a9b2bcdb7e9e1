"""Maps of the queue laws of today by the senders of today: where they are stable, by what margin.

A queue law is a line of `AQMS`, a sender a line of `SENDERS`: each names a bundled scenario, from
which the law is taken. Maps have every sender, unless their law names some.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import fluidcc as fc
from fluidcc.errors import ScenarioError

from .drawing.figure import Curve, Field, Panel, Recipe, figure, measured, modelled

CAPACITY = 100.0  # Mbit/s, of the link in the maps
PACKET = 12e-3  # Mbit, of 1500 B
RTT = np.geomspace(0.005, 0.5, 13)  # s, without the queue
RATE = np.geomspace(0.5, 50.0, 5)  # Mbit/s, of a flow: the capacity over the number of flows


class Aqm(NamedTuple):
    """A queue law: its title, the scenario that has it, its name for readers, and the senders of
    its map, if these are not all.
    """

    title: str
    scenario: str
    settings: str
    senders: tuple[str, ...] = ()


class Sender(NamedTuple):
    """A sender: the scenario and the group that have it, what describes it best, and of how many
    round trips and rates of the maps one is computed (CUBIC takes seconds at each place).
    """

    scenario: str
    group: str
    model: Mapping[str, str]
    every: tuple[int, int] = (1, 1)


AQMS = {
    "red": Aqm("RED", "rfc9438/ecn", "thresholds of 20 and 80 packets, gentle"),
    "pi": Aqm("PI", "hollot2001/pi", "200 packets, gains for 60 flows at 15 Mbit/s"),
    "pie": Aqm("PIE", "rfc8033/pie", "the RFC's gains, 15 ms"),
    "pi2": Aqm("PI2", "rfc9332/pi2", "the gains of Linux, 15 ms"),
    "coupled": Aqm(
        "Coupled PI2",
        "prague2024/coupled",
        "the gains of Linux, k = 2, Prague in half of the flows",
        ("Reno", "Prague"),
    ),
    "dualpi2": Aqm(
        "DualPI2",
        "prague2024/dualpi2",
        "the gains of Linux, k = 2, Prague in a queue of its own",
        ("Reno",),
    ),
    "step": Aqm("step", "alizadeh2010/dctcp", "40 packets"),
}
"""Queue laws. Those of scenarios with two groups keep the second, Prague, beside the sender, with
as many flows; CUBIC has no equilibrium of mean windows there.
"""
_BESIDE_PRAGUE = ("coupled", "dualpi2")

_MEAN, _ALL = {"closure": "mean", "rates": "self_clocked"}, {"closure": "population"}

SENDERS = {
    "Reno": Sender("rfc9332/pi2", "reno", _ALL),
    "CUBIC": Sender("rfc9438/ecn", "cubic", _ALL, every=(2, 2)),
    "DCTCP": Sender("rfc9332/coupled", "scalable", _MEAN),
    "Prague": Sender("prague2024/coupled", "prague", _MEAN),
}
"""Senders. The population is nearer to packets than mean windows if windows vary (figure
`packets`). DCTCP and Prague, which remember more than their last reaction, have mean windows; two
groups have those of their scenario.
"""

LABELS = tuple(SENDERS)
PLANTS = {
    "W/R (Misra, Gong, Towsley)": {"closure": "mean", "rates": "mgt"},
    "acknowledgements a round trip ago": {"closure": "mean", "rates": "ack"},
    "self-clocked": _MEAN,
    "self-clocked, windows of all flows": _ALL,
}
"""What the same senders are in the literature, from the textbook plant on."""


def _tables(scenario: str) -> dict[str, Any]:
    return tomllib.loads(fc.dumps(fc.load(scenario)))


def _queue(aqm: Aqm) -> dict[str, Any]:
    return next(iter(_tables(aqm.scenario)["links"].values()))["queue"]


def network(
    aqm: Aqm, sender: Sender, capacity: float = CAPACITY, model: Mapping[str, str] | None = None
) -> fc.Network:
    """Flows of a sender over a queue law, on a link of a capacity [Mbit/s]; see `place`."""
    own = _tables(sender.scenario)["flows"][sender.group]
    beside = len(fc.load(aqm.scenario).flows) > 1
    net = fc.load(aqm.scenario if beside else "rfc9332/pi2")
    link, flows = f"links.{net.link_names[0]}", f"flows.{net.flow_names[0]}"
    changes = {
        f"{link}.queue": _queue(aqm), f"{link}.capacity": capacity / PACKET, f"{link}.buffer": 1e6,
        f"{link}.delay": 1e-3, f"{flows}.window": own["window"],
        f"{flows}.marking": own["marking"] if beside else "plain",
    }  # fmt: skip
    settings = {} if beside else sender.model if model is None else model
    return fc.replace(net, changes | {f"model.{key}": value for key, value in settings.items()})


def place(net: fc.Network, rtt: float, rate: float) -> fc.Network:
    """The same at a round trip without queue [s] and a rate of each flow [Mbit/s]."""
    each = float(net.links[0].capacity) * PACKET / rate / len(net.flows)
    changes: dict[str, Any] = {}
    for name in net.flow_names:
        changes |= {f"flows.{name}.rtt": float(rtt), f"flows.{name}.n": float(each)}
    return fc.replace(net, changes)


class Margins(NamedTuple):
    """Margins at places, shape (rates, round trips): of the gain [dB], of the phase [degrees],
    whether they are stable, and why there is no answer ("" if there is one). `rtt` [s] and `rate`
    [Mbit/s] are the places. Of an unstable loop the gain margin says by how much its gain is too
    large.
    """

    rtt: np.ndarray
    rate: np.ndarray
    gain: np.ndarray
    phase: np.ndarray
    stable: np.ndarray
    reason: np.ndarray

    @property
    def blank(self) -> dict[str, np.ndarray]:
        """Places without a margin, by the reason."""
        unstable = (self.reason == "") & ~self.stable
        found = {"unstable": unstable} if unstable.any() else {}
        return found | {why: self.reason == why for why in np.unique(self.reason) if why}

    def farthest(self, level: float = 0.0) -> np.ndarray:
        """The round trip [s] up to which the gain margin is at least `level` [dB], at each rate:
        along the first stretch of places with an answer, by lines between these; NaN if there is no
        such stretch, or if it ends without an answer.
        """
        return np.array([self._farthest(k, level) for k in range(len(self.rate))])

    def _farthest(self, k: int, level: float) -> float:
        known = self.reason[k] == ""
        if not known.any():
            return np.nan
        places = np.arange(int(np.argmax(known)), len(known))
        if not self.stable[k, places[0]]:
            return np.nan
        before = places[0]
        for j in places:
            if not known[j]:
                return np.nan
            if not self.stable[k, j] or self.gain[k, j] < level:
                return self._between(k, before, j, level) if j > before else np.nan
            before = j
        return np.nan

    def _between(self, k: int, low: int, high: int, level: float) -> float:
        """Where the margin passes a level; the middle if it jumps there."""
        one, other = self.gain[k, low], self.gain[k, high]
        passes = self.stable[k, high] or -20 < other < 0  # else it jumps
        smooth = np.isfinite(one) and np.isfinite(other) and passes
        share = (one - level) / (one - other) if smooth else 0.5
        return float(self.rtt[low] ** (1 - share) * self.rtt[high] ** share)


def margins_of(
    lab: Any, net: fc.Network, rtt: Sequence[float] = RTT, rate: Sequence[float] = RATE
) -> Margins:
    """Margins of a network over round trips [s] and rates of a flow [Mbit/s]."""
    rows = [[_margins(lab, net, r, x) for r in rtt] for x in rate]
    gain, phase, stable, reason = (
        np.array([[c[k] for c in row] for row in rows]) for k in range(4)
    )
    return Margins(np.array(rtt), np.array(rate), gain, phase, stable.astype(bool), reason)


def _margins(lab: Any, net: fc.Network, rtt: float, rate: float) -> tuple[float, float, bool, str]:
    try:
        found = lab.ask(fc.stability, place(net, rtt, rate), roots=0)
    except ScenarioError as error:
        return np.nan, np.nan, False, _cause(str(error))
    message = f"{found['message']}; {found['equilibrium']['message']}"
    if found["stable"] is None:
        return np.nan, np.nan, False, _cause(message)
    if "no more" in message or (found["stable"] and "no margins" in message):
        return np.nan, np.nan, True, _cause(message)
    gain = np.inf if found["gain_margin"] is None else 20 * np.log10(found["gain_margin"])
    phase = np.inf if found["phase_margin"] is None else found["phase_margin"]
    return (abs(gain) if found["stable"] else gain), phase, found["stable"], ""


_SHORT = {
    "no more": "no control: the marking is at the end of its range",
    "timers decide": "windows of less than two packets",
    "below the least": "windows of less than two packets",
    "without end": "no equilibrium: windows fall without end",
    "offered more": "no equilibrium: the smallest windows exceed the capacity",
    "no whole number": "count of unstable roots not settled",
    "rule of flows": "the sender's rule jumps at its mean window",
    "discontinuity": "no linearisation: the queue rests at a jump of the marking",
    "neutral": "neutral: no bound on the roots",
    "no margins": "stable; the loop's phase cannot be followed",
}
"""What messages say, for legends."""


def _cause(message: str) -> str:
    """The reason for which there is no answer, in few words."""
    for words, short in _SHORT.items():
        if words in message:
            return short
    return re.sub(r"\d[\d.]*\d|\d", "…", message.partition(":")[0])


# -- Maps: margins of every sender over each queue law
_GAIN, _PHASE = (0, 3, 6, 10, 15, 20, 30), (0, 15, 30, 45, 60, 90)  # dB, degrees
_AXIS = "round trip without queue (ms)"
_LOG: dict[str, Any] = {"xscale": "log", "yscale": "log"}


def places(sender: Sender) -> tuple[np.ndarray, np.ndarray]:
    """The round trips and rates at which a sender is computed."""
    return RTT[:: sender.every[0]], RATE[:: sender.every[1]]


def _told(name: str, found: Margins) -> str:
    """How far a sender is stable, in words."""
    parts = []
    for level, words in ((0.0, "stable"), (10.0, "with 10 dB")):
        ends = found.farthest(level)
        pairs = zip(found.rate, ends, strict=True)
        known = [f"{1e3 * end:.0f} ms at {rate:.3g}" for rate, end in pairs if np.isfinite(end)]
        parts += [f"{words} up to {', '.join(known)} Mbit/s a flow"] if known else []
    return f"{name}: {'; '.join(parts)}" if parts else ""


def _map(name: str) -> Recipe:
    aqm = AQMS[name]

    def draw(lab: Any) -> list[Panel]:
        panels = []
        for label in aqm.senders or LABELS:
            sender = SENDERS[label]
            found = margins_of(lab, network(aqm, sender), *places(sender))
            others = " alone" if label == "Prague" else " beside Prague"
            title = label + others if two else label
            for what, values, bands in (
                ("gain margin (dB)", found.gain, _GAIN),
                ("phase margin (degrees)", found.phase, _PHASE),
            ):
                held = np.where(found.stable & (found.reason == ""), values, np.nan)
                top = np.minimum(held, 2 * bands[-1])  # an endless margin is above all bands
                field = Field(
                    what, 1e3 * found.rtt, found.rate, top, bands=bands, blank=found.blank
                )
                note = _told(label, found) if bands is _GAIN else ""
                panels.append(
                    Panel(_AXIS, "rate of a flow (Mbit/s)", field=field, title=title,
                          note=note, ylim=(RATE[0] / 1.5, RATE[-1] * 1.5), **_LOG)
                )  # fmt: skip
        return panels

    closures = "populations of windows of Reno and CUBIC, mean windows of DCTCP and Prague"
    two = name in _BESIDE_PRAGUE
    kind = "mean windows" if two else closures
    draw.__name__ = name
    draw.__doc__ = (
        f"Gain and phase margins over {aqm.title} ({aqm.settings}), {CAPACITY:g} Mbit/s; {kind}. "
        f"Each cell is one place; where there is no margin, the legend says why."
    )
    return figure(name, f"{aqm.title}: margins by sender")(draw)


MAPS = [_map(name) for name in AQMS if name != "step"]


# -- Edges: the round trip up to which a network is stable


def _edge(lab: Any, label: str, net: fc.Network) -> Curve:
    return modelled(label, RATE, 1e3 * margins_of(lab, net).farthest())


@figure("plants", "Reno: the largest stable round trip, by model")
def plants(lab):
    """Round trips up to which Reno is stable over two queue laws, 100 Mbit/s.

    The textbook plant has the rate W/R, or acknowledgements a round trip ago, and a queue that
    integrates; self-clocked senders hold the queue by their windows.
    """
    panels = []
    for name in ("pie", "pi2"):
        aqm = AQMS[name]
        curves = [
            _edge(lab, label, network(aqm, SENDERS["Reno"], model=model))
            for label, model in PLANTS.items()
        ]
        panels.append(
            Panel("rate of a flow (Mbit/s)", "largest stable round trip (ms)", curves,
                  title=aqm.title, **_LOG)
        )  # fmt: skip
    return panels


@figure("capacity", "Reno: the largest stable round trip, by capacity")
def capacity(lab):
    """Round trips up to which Reno is stable at three capacities.

    RED and PI have settings in packets: one setting does not fit all capacities; this RED is
    stable at no place at 1000 Mbit/s. The loops of PIE and PI2 depend on the capacity by the rate
    of a flow alone.
    """
    panels = []
    for name in ("red", "pi"):
        curves = [
            _edge(lab, f"{rate:g} Mbit/s", network(AQMS[name], SENDERS["Reno"], capacity=rate))
            for rate in (20.0, 100.0, 1000.0)
        ]
        panels.append(
            Panel("rate of a flow (Mbit/s)", "largest stable round trip (ms)", curves,
                  title=AQMS[name].title, **_LOG)
        )  # fmt: skip
    return panels


@figure("gains", "Reno: stable gains of PI2 and DualPI2")
def gains(lab):
    """Reno is stable to the left of a curve, one for each round trip without queue.

    Flows of 5 Mbit/s on 100 Mbit/s, self-clocked mean windows; over DualPI2 as many of Prague.
    """
    panels = []
    for name in ("pi2", "dualpi2"):
        curves = []
        for rtt in (0.02, 0.05, 0.1, 0.2):
            net = place(network(AQMS[name], SENDERS["Reno"], model=_MEAN), rtt, 5.0)
            net = fc.replace(net, {"model.rates": "self_clocked"})
            queue = f"links.{net.link_names[0]}.queue"
            ends = (0.01, 10.0), (0.1, 100.0)
            found = lab.ask(fc.boundary, net, f"{queue}.alpha", f"{queue}.beta", *ends)
            curves += [
                modelled(f"{1e3 * rtt:g} ms", curve["x"], curve["y"])
                for curve in found["curves"] if curve["kind"] == "hopf"
            ]  # fmt: skip
        law = fc.load(AQMS[name].scenario).links[0].queue
        linux = np.array([float(law.alpha)]), np.array([float(law.beta)])
        curves.append(Curve("gains of Linux", *linux, engine="formula"))
        panels.append(
            Panel("gain of the delay, alpha (1/s)", "gain of its growth, beta (1/s)", curves,
                  title=AQMS[name].title, **_LOG)
        )  # fmt: skip
    return panels


_NAMES = {"reno": "Reno", "cubic": "CUBIC", "dctcp": "DCTCP", "prague": "Prague"}
_IN_PACKETS = {name: AQMS[name].title for name in ("pi2", "pie")} | {"codel": "CoDel"}


@figure("packets", "What packets do where margins end",
        needs=[f"edge_{aqm}_{own}" for aqm in _IN_PACKETS for own in _NAMES])  # fmt: skip
def packets(lab):
    """20 flows on 100 Mbit/s. Vertical lines are the round trips at which the maps' models lose
    stability; CoDel never rests. Prague is DCTCP from 25 ms on, with the queue.
    """
    panels = []
    for aqm, title in _IN_PACKETS.items():
        cov, use = [], []
        for own, label in _NAMES.items():
            runs = lab.packets(f"edge_{aqm}_{own}")
            cov.append(measured(label, runs.x, runs.values("links.bottleneck.queue_cov")))
            use.append(measured(label, runs.x, 100 * runs.values("links.bottleneck.utilization")))
            sender = SENDERS[label]
            for edge in _edges(lab, aqm, sender):
                for curves, ends in ((cov, (0.0, 1.0)), (use, (80.0, 100.0))):
                    curves.append(Curve(label, np.repeat(edge, 2), np.array(ends), engine="formula",
                                        note="edge of stability"))  # fmt: skip
        panels += [
            Panel(_AXIS, "queue: deviation over mean (1)", cov, title=title, xscale="log"),
            Panel(_AXIS, "utilisation (%)", use, title=title, xscale="log"),
        ]
    return panels


def _edges(lab: Any, aqm: str, sender: Sender) -> Iterator[float]:
    """The longest stable round trip [ms], if a map has one."""
    if aqm in AQMS:
        found = margins_of(lab, network(AQMS[aqm], sender), places(sender)[0], RATE[2:3])
        ends = 1e3 * found.farthest()
        yield from ends[np.isfinite(ends)]


# -- Shares of two senders
_PAIRS = {
    "reno": ("Reno", "Reno beside Prague"),
    "cubic": ("CUBIC", "CUBIC beside Prague"),
    "apart": ("Reno", "Reno at 85 ms"),
}


@figure("fairness", "Shares of Prague and of Classic flows",
        needs=[f"{aqm}_{own}" for aqm in _BESIDE_PRAGUE for own in _PAIRS])  # fmt: skip
def fairness(lab):
    """Five flows of Prague beside five others, k = 2 (RFC 9332: roughly equal).

    Packets, and mean windows of Reno, in one queue and in two; a curve for each rate of a flow if
    all share equally.
    """
    panels = []
    for own, (label, title) in _PAIRS.items():
        for aqm in _BESIDE_PRAGUE:
            curves = _shares(lab, f"{aqm}_{own}", fluid=label == "Reno")
            panels.append(
                Panel(lab.experiment(f"{aqm}_{own}").axis, f"rate of {label} over Prague's (1)",
                      curves, **_LOG, ylim=(0.05, 10.0), title=f"{title}, {AQMS[aqm].title}")
            )  # fmt: skip
    return panels


def _shares(lab: Any, name: str, *, fluid: bool) -> list[Curve]:
    """Goodput of the others over that of Prague, a curve for each equal share."""
    runs = lab.packets(name)
    one, other = (runs.values(f"flows.{group}.goodput") for group in ("cubic", "prague"))
    curves = []
    for share in np.unique(runs.equal_share):
        own = np.flatnonzero(runs.equal_share == share)
        label = f"{share:g} Mbit/s a flow"
        curves.append(measured(label, runs.x[own], one[own] / other[own]))
        if fluid:
            mean = [_mean_share(lab, runs.experiment.net(k)) for k in own]
            curves.append(modelled(label, runs.x[own], mean))
    return curves


def _mean_share(lab: Any, net: fc.Network) -> float:
    """Rate of the others over that of Prague by mean windows; NaN without an equilibrium."""
    try:
        found = lab.ask(fc.equilibrium, net)["flows"]
    except ScenarioError:
        return np.nan
    one, other = (np.mean(np.array(found[own]["rate"], float)) for own in ("cubic", "prague"))
    return float(one / other)


@figure(
    "step",
    "A step: how much threshold keeps a link busy",
    needs=("step_reno", "step_cubic", "step_dctcp"),
)
def step(lab):
    """Two flows at 10 Gbit/s and 500 us over a marking threshold, by packets.

    A step has no linearisation: its queue always cycles. A seventh of the product of capacity and
    round trip is enough for DCTCP (SIGCOMM 2010, eq. 13); Reno needs all of it.
    """
    use, queue = [], []
    for own in ("reno", "cubic", "dctcp"):
        runs, label = lab.packets(f"step_{own}"), _NAMES[own]
        use.append(measured(label, runs.x, 100 * runs.values("links.bottleneck.utilization")))
        queue.append(measured(label, runs.x, runs.values("links.bottleneck.queue_cov")))
    axis = "threshold over capacity times round trip (1)"
    return [
        Panel(axis, "utilisation (%)", use, xscale="log"),
        Panel(axis, "queue: deviation over mean (1)", queue, **_LOG),
    ]
