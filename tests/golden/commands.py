"""The commands whose answers are kept: scenarios by quick verbs, ten kinds by every verb.

Trains are left out: their bits are those of one kind of processor.
"""

from fluidcc.bundled import scenarios

QUICK = ("show", "stability")  # the JSON of `stability` holds that of `equilibrium`

KINDS = (
    "hollot2001/slow",  # RED, smooth
    "hollot2001/pi",
    "misra2003/mixed",  # two groups of ten round trips
    "alizadeh2010/dctcp",  # slides on a threshold
    "athuraliya2001/rem",
    "kunniyur2001/avq",
    "akujobi2002/competing_becn",  # source quench beside losses
    "durresi2001/two_different_front_259ms",  # mark-front
    "govindaswamy2012/ared_rwm",  # a chain, windows in the ACKs
    "qazi2010/two_bmcc_router",  # load factors
)

LONG = (
    *(f"{verb} {name}" for name in KINDS for verb in (
        "equilibrium", "noise", "window-distribution", "simulate --until 12",
        "packets --until 12 --warmup 4 --seeds 2",
        "compare --levels mean,population,packets --until 12 --warmup 4 --seeds 2",
        "check-bounds --budget 4",
    )),
    "crossings misra2003/aggressive link.queue.w_q=1e-6:0.9",
    "crossings hollot2001/slow flow.n=10:200",
    "crossings hollot2001/pi link.queue.k_pi=1e-6:1e-3",
    "crossings misra2003/mixed links.bottleneck.queue.p_max=0.05:0.9",
    "crossings athuraliya2001/rem link.queue.gamma=1e-4:0.1",
    "crossings akujobi2002/homogeneous_becn_250ms link.queue.p_max=0.05:0.9",
    "boundary hollot2001/slow link.queue.w_q=1e-6:0.1 link.queue.p_max=0.02:1",
    "boundary hollot2001/pi link.queue.k_pi=1e-6:1e-4 flow.n=20:120",
    "boundary misra2003/besteffort link.queue.p_max=0.05:0.9 flow.n=10:300",
    "stability-map hollot2001/slow --over flow.n=20:200:20 --over link.queue.w_q=1e-6,1e-5,1e-4",
    "stability-map misra2003/mixed --over links.bottleneck.queue.p_max=0.1:0.9:0.2",
    "stability-map hollot2001/pi --over flow.n=20:120:20 --over link.queue.k_pi=1e-6,1e-5,1e-4",
    "stability-map qazi2010/two_bmcc_router --over links.bottleneck.capacity=2000,4000",
    "equilibrium misra2003/besteffort --over flow.n=10:200:10",
    "stability hollot2001/slow --certify",
    "stability misra2003/mixed --over links.bottleneck.queue.p_max=0.1:0.9:0.2",
    "cycle hollot2001/fast",
    "cycle hollot2001/slow link.queue.w_q=5e-5:2e-4",
    "cycle alizadeh2010/dctcp",
    "cycle misra2003/aggressive",
    "cycle qazi2010/two_bmcc_router",
    "cycle athuraliya2001/rem --set link.queue.gamma=0.05",
    "gradient hollot2001/slow phase_margin flow.rtt link.queue.w_q",
    "gradient hollot2001/pi gain_crossover link.queue.k_pi flow.n",
    "gradient misra2003/mixed links.bottleneck.queue flows.mod.n links.bottleneck.queue.p_max",
    "gradient hollot2001/fast cycle.period link.queue.w_q",
    "gradient athuraliya2001/rem decay_rate link.queue.gamma",
    "sensitivity hollot2001/slow flow.rtt --until 5",
    "sensitivity hollot2001/pi link.queue.k_pi --until 10",
    "optimize hollot2001/pi --vary link.queue.k_pi=1e-6:1e-4 --vary link.queue.z=0.1:2 "
    "--maximize gain_crossover --subject-to phase_margin>=60 --no-verify",
    "optimize hollot2001/slow --vary link.queue.w_q=1e-6:0.01 --maximize phase_margin --no-verify",
    "optimize hollot2001/slow --vary link.queue.p_max=0.05:0.5 --minimize links.bottleneck.queue "
    "--subject-to phase_margin>=40 --until 20 --seeds 2",
    "optimize misra2003/mixed --vary links.bottleneck.queue.p_max=0.05:0.9 --minimize "
    "packets.queue_mean --trials 6 --until 10 --seeds 2",
    "compare misra2003/mixed --levels mean,population,packets --no-trajectory --until 12 "
    "--warmup 4 --seeds 2",
    "list", "list laws", "list keys", "list quantities", "list figures",
)  # fmt: skip


def commands() -> list[str]:
    """All of them, the quick ones first."""
    return [f"{verb} {name}" for verb in QUICK for name in sorted(scenarios())] + list(LONG)
