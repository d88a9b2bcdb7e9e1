"""Figures of the ECN-mod paper (Misra and Ott, 2003): numerals are its sections."""

import numpy as np

from .drawing.figure import Panel, Printed, figure, measured, modelled

_LINK = "links.bottleneck."
_RENO, _MOD, _LARGE = "ECN-NewReno", "ECN-mod, c1 = 0.0625", "ECN-mod, c1 = 0.25"
_CALLS, _FLOWS = "voice calls offered", "flows"
_WEB = {
    _RENO: "web_newreno", _MOD: "web_mod_small", "ECN-mod, c1 = 0.125": "web_mod",
    _LARGE: "web_mod_large",
}  # fmt: skip
LABELS = tuple(_WEB)
_FIFTH = {_RENO: "newreno", _MOD: "mod", _LARGE: "mod_large"}
_FULL = {_RENO: "full_newreno", _MOD: "full_mod", _LARGE: "full_mod_large"}
_FIFO = {_RENO: "fifo_newreno", _MOD: "fifo_mod", _LARGE: "fifo_mod_large"}
_SHARES = {_RENO: "newreno", _MOD: "mod"}


def _group(label):
    return "newreno" if label == _RENO else "mod"


def _sources(lab, name, group):
    """Senders in a group at each point of an experiment."""
    experiment = lab.experiment(name)
    nets = [experiment.net(k) for k in range(len(experiment.x))]
    return np.array([float(np.sum(n.flows[n.flow_names.index(group)].n)) for n in nets])


def _flows(lab, name, group):
    """Goodput of all flows of a group in packets [Mbit/s], shape (points, seeds)."""
    own = lab.packets(name).values(f"flows.{group}.goodput")
    return own * _sources(lab, name, group)[:, None] / 1e6


def _voice(lab, name):
    """Mean rate of the calls by their law [Mbit/s]."""
    experiment = lab.experiment(name)
    links = [experiment.net(k).links[0] for k in range(len(experiment.x))]
    sizes = [float(link.packet_size) for link in links]
    return np.array([8e-6 * s * float(v.voice.mean(s)) for v, s in zip(links, sizes, strict=True)])


def _fluid(lab, name, group):
    """Goodput of all flows of a group at equilibrium in the fluid [Mbit/s]."""
    experiment, rests = lab.experiment(name), lab.rests(name)
    size = float(experiment.net(0).links[0].packet_size)
    return rests.values(f"flows.{group}.rate") * _sources(lab, name, group) * 8e-6 * size


def _goodputs(lab, names, xlabel):
    """Panels of the goodput of voice and flows together, and of the flows alone.

    At equilibrium flows get the capacity left by voice; the fluid is drawn if every point has one.
    """
    both, own = [], []
    for label, name in names.items():
        runs, group = lab.packets(name), _group(label)
        flows, voice = _flows(lab, name, group), runs.values(_LINK + "voice_rate") / 1e6
        both.append(measured(label, runs.x, flows + voice))
        own.append(measured(label, runs.x, flows))
        if label == _MOD:
            fluid = _fluid(lab, name, group)
            both.append(modelled(label, runs.x, fluid + _voice(lab, name)))
            own.append(modelled(label, runs.x, fluid))
    return [
        Panel(xlabel, "goodput (Mbit/s)", both, title="voice and TCP"),
        Panel(xlabel, "goodput (Mbit/s)", own, title="TCP alone"),
    ]


def _shares_left(lab, names):
    """The panel of the share [%] of the capacity left by voice that flows use: the load of voice,
    which is the same for all, is not in its intervals.
    """
    curves = _of_link(lab, names, "utilization_left", 100.0)
    return Panel(_FLOWS, "used of what voice leaves (%)", curves, title="TCP")


def _gains(lab, names):
    """The panel of the goodput of the flows above that of NewReno [%], seed by seed."""
    base = _flows(lab, names[_RENO], "newreno")
    curves = [
        measured(label, lab.packets(name).x, 100 * (_flows(lab, name, "mod") / base - 1))
        for label, name in names.items()
        if label != _RENO
    ]
    return Panel(_FLOWS, "goodput above NewReno's (%)", curves, title="TCP alone, seed by seed")


def _percents(lab, names, metric, fluid=None):
    """Curves of a share of the flows' packets [%], with the fluid's if it has one."""
    curves = []
    for label, name in names.items():
        runs, path = lab.packets(name), f"flows.{_group(label)}."
        curves.append(measured(label, runs.x, 100 * runs.values(path + metric)))
        if fluid is not None:
            rests = lab.rests(name)
            curves.append(modelled(label, rests.x, 100 * rests.values(path + fluid)))
    return curves


def _of_link(lab, names, metric, scale=1.0):
    """Curves of a metric of the link."""
    runs = {label: lab.packets(name) for label, name in names.items()}
    return [measured(lb, r.x, scale * r.values(_LINK + metric)) for lb, r in runs.items()]


def _variation(lab, names):
    """Curves of the coefficient of variation of the queue, without the packet in service."""
    return _of_link(lab, names, "queue_cov")


def _calmer(lab, names):
    """Curves of the queue's variation below that of NewReno [%], seed by seed."""
    plain = lab.packets(names[_RENO])
    base = plain.values(_LINK + "queue_cov")
    others = {label: lab.packets(name) for label, name in names.items() if label != _RENO}
    return [measured(lb, r.x, 100 * (1 - r.values(_LINK + "queue_cov") / base))
            for lb, r in others.items()]  # fmt: skip


@figure("2", "Capacity used with web sources", needs=tuple(_WEB.values()))
def web_goodput(lab):
    """150 web sources with voice, p_max = 0.2 (4.1); the range of the calls is not printed."""
    return _goodputs(lab, _WEB, _CALLS)


@figure("3", "Marks and variation of the queue with web sources", needs=tuple(_WEB.values()))
def web_marks(lab):
    """Web sources as in figure 2; at mean load the fluid has no queue there, and is not drawn."""
    return [
        Panel(_CALLS, "packets marked (%)", _percents(lab, _WEB, "mark_fraction")),
        Panel(_CALLS, "variation of the queue (1)", _variation(lab, _WEB)),
        Panel(_CALLS, "variation below NewReno's (%)", _calmer(lab, _WEB),
              [Printed("up to 30 %", 30)]),
    ]  # fmt: skip


@figure("4", "Goodput over the number of flows, p_max = 0.2", needs=tuple(_FIFTH.values()))
def goodput(lab):
    """Persistent flows with 200 voice calls (4.2); runs of one seed have the same calls."""
    return [_goodputs(lab, _FIFTH, _FLOWS)[0], _shares_left(lab, _FIFTH), _gains(lab, _FIFTH)]


@figure("5", "Losses and marks, p_max = 0.2", needs=tuple(_FIFTH.values()))
def losses(lab):
    """Flows as in figure 4, of which few lose next to nothing; marks of the fluid are those at its
    equilibrium at mean voice load.
    """
    printed = [Printed("about 10 %", 10, 200)]
    drops = _percents(lab, _FIFTH, "loss_fraction")
    marks = _percents(lab, _FIFTH, "mark_fraction", "mark_probability")
    return [Panel(_FLOWS, "packets lost (%)", drops, printed, yscale="log", ylim=(1e-3, 20)),
            Panel(_FLOWS, "packets marked (%)", marks)]  # fmt: skip


@figure("6", "Goodput over the number of flows, p_max = 1", needs=tuple(_FULL.values()))
def goodput_full(lab):
    """As figure 4 with p_max = 1: the fluid fills the link at every equilibrium."""
    return [_goodputs(lab, _FULL, _FLOWS)[0], _shares_left(lab, _FULL), _gains(lab, _FULL)]


@figure("7", "Marks and variation of the queue, p_max = 1", needs=tuple(_FULL.values()))
def marks_full(lab):
    """Flows as in figure 6; above some 100 flows windows of packets stop at one packet."""
    marks = _percents(lab, _FULL, "mark_fraction", "mark_probability")
    return [
        Panel(_FLOWS, "packets marked (%)", marks, [Printed("about 85 %", 85, label=_MOD)]),
        Panel(_FLOWS, "variation of the queue (1)", _variation(lab, _FULL)),
    ]


@figure("8", "Goodput in one queue with voice", needs=tuple(_FIFO.values()))
def fifo_goodput(lab):
    """20 persistent flows and voice in one queue (5); the range of the calls is not printed."""
    return _goodputs(lab, _FIFO, _CALLS)


@figure("9", "ECN-mod and ECN-NewReno in one queue", needs=("mixed", "pair"))
def shares(lab):
    """10 flows of each kind and voice in one queue (5); NewReno's rivals are of either kind."""
    runs = lab.packets("mixed")
    each = []
    for label, group in _SHARES.items():
        each += [measured(label, runs.x, _flows(lab, "mixed", group)),
                 modelled(label, runs.x, _fluid(lab, "mixed", group))]  # fmt: skip
    rivals = []
    for label, name in ((_RENO, "pair"), (_MOD, "mixed")):
        rivals += [measured(label, runs.x, _flows(lab, name, "newreno")),
                   modelled(label, runs.x, _fluid(lab, name, "newreno"))]  # fmt: skip
    ours = [runs.values(f"flows.{g}.goodput") for g in ("newreno", "mod")]
    model = [_fluid(lab, "mixed", g) for g in ("newreno", "mod")]
    ratio = [measured(_RENO, runs.x, ours[0] / ours[1]),
             modelled(_RENO, runs.x, model[0] / model[1])]  # fmt: skip
    return [
        Panel(_CALLS, "goodput of 10 flows (Mbit/s)", each, title="half and half"),
        Panel(_CALLS, "goodput of 10 NewReno (Mbit/s)", rivals, title="with 10 flows of"),
        Panel(_CALLS, "goodput over that of ECN-mod (1)", ratio,
              [Printed("20 to 25 % less", (0.75, 0.8), label=_RENO)], title="half and half"),
    ]  # fmt: skip
