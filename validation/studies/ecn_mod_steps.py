"""Steps c1 and c2 of ECN-mod beside NewReno, marked by eq. 7: Misra and Ott (2003).

    uv run python validation/studies/ecn_mod_steps.py

or, one by one,

    fluidcc optimize misra2003/mixed --over flows.mod.window.c1=0.01:1 \
        --over flows.mod.window.c2=0.02:0.5 --maximize phase_margin \
        --subject-to "decay_rate >= 0.1"

What was found (two minutes):

* Eq. 7 leaves nothing to choose but one number. The linearised model depends on c1 and c2 through
  s = 1/(1/c2 + w/c1) alone, w being the window at rest, as both c2 p_mod and the slope of p_mod
  times the size of the steps are made of it. So the published steps (1/16, 1/8) are as good as any
  that decay as fast: the largest phase margin at their decay rate of 0.217 1/s is theirs, 19.8
  degrees. Slower ones buy margin at 63 to 100 degrees per 1/s: 29.2 degrees at 0.1 1/s (c1 =
  0.027, c2 = 0.18).
* Packets tell steps apart that the linearised model does not, as smaller steps make less noise (8
  seeds of 300 s, none of the search's): variation of the queue 0.467 +- 0.011 as published, 0.414
  +- 0.003 with (0.055, 0.026), which decays at 0.158 1/s, and 0.386 +- 0.005 with (0.017, 0.022)
  at 0.059 1/s. The latter two leave ECN-mod 23 and 20 % more than NewReno gets, the published
  steps 14 %.
"""

import fluidcc as fc
from fluidcc.optimize.solve import Optimum

OVER = {"flows.mod.window.c1": (0.01, 1.0), "flows.mod.window.c2": (0.02, 0.5)}


def margin(net: fc.Network, decay: float, *, starts: int = 2) -> Optimum:
    """The largest phase margin of those that come to rest no slower."""
    return fc.optimize(
        net, OVER, maximize="phase_margin", subject_to=[f"decay_rate >= {decay!r}"],
        starts=starts, verification=False,
    )  # fmt: skip


def steadiest(net: fc.Network, rules: tuple[str, ...], trials: int = 60) -> Optimum:
    """The steadiest queue of packets over a link that is in use."""
    return fc.optimize(
        net, OVER, minimize="packets.queue_cov", trials=trials, until=100.0, warmup=30.0,
        subject_to=["packets.utilization >= 0.995", *rules], verification=False,
    )  # fmt: skip


def single(c1: float, c2: float, window: float) -> float:
    """The one number by which steps move the linearised model."""
    return 1 / (1 / c2 + window / c1)


def packets(net: fc.Network) -> str:
    """What packets make of a network, with seeds that no search used."""
    runs = fc.simulate_packets(net, until=300.0, warmup=50.0, seeds=range(101, 109))
    link, half = runs.mean["links"]["bottleneck"], runs.ci95["links"]["bottleneck"]
    mod, reno = (runs.mean["flows"][name]["goodput"] for name in ("mod", "newreno"))
    return (
        f"queue {link['queue_mean']:.1f} +- {half['queue_mean']:.1f}, variation "
        f"{link['queue_cov']:.3f} +- {half['queue_cov']:.3f}, used {link['utilization']:.4f}, "
        f"goodput over NewReno's {mod / reno:.3f}"
    )


def main() -> None:
    """Print what is published and what is best."""
    net = fc.load("misra2003/mixed")
    s = fc.stability(net)
    assert s.rightmost is not None
    decay = -s.rightmost.real
    print(
        f"published: phase margin {s.phase_margin:.3f} deg, decay {decay:.4f} 1/s; {packets(net)}"
    )
    for least in (decay, 0.1):
        found = margin(net, least)
        print(f"{found!r}\n  {found.points} points; {packets(found.net)}", flush=True)
    for rules in ((), ("decay_rate >= 0.15",)):
        found = steadiest(net, rules)
        s = fc.stability(found.net)
        print(f"{found!r}\n  phase margin {s.phase_margin:.2f} deg, root {s.rightmost}")
        print(f"  {packets(found.net)}", flush=True)


if __name__ == "__main__":
    main()
