"""
Which parameters are best?
==========================

The fastest loop that keeps its margin, the active constraints, and the check by a trajectory and
by packets.
"""

# %%
# One gain by hand
# ----------------
# The proportional-integral controller of Hollot et al. has two gains. A high gain crossover is a
# fast reaction; sixty degrees of phase margin are the usual caution. One wants the first and pays
# with the second:

import numpy as np

import fluidcc as fc

net = fc.load("hollot2001/pi")
curve = fc.sweep(net, {"link.queue.k_pi": np.geomspace(1e-6, 3e-5, 9)}, fc.stability)
picture = fc.plot(curve)

# %%
# A goal and a constraint
# -----------------------
# Both gains at once, and the point where the constraint begins to bind:

best = fc.optimize(
    net,
    {"link.queue.k_pi": (1e-6, 1e-4), "link.queue.z": (0.1, 2.0)},
    maximize="gain_crossover",
    subject_to=["phase_margin >= 60"],
    starts=1,
    verification=False,
)
print(best)

# %%
# See the *active* ones: the constraints and ends of ranges that hold the optimum. A multiplier is
# a price: by how much the goal would improve for one unit of slack. An optimum that is held by the
# end of a range depends on the range rather than on the network.

for held in best.active:
    print(held)

# %%
# Before and after
# ----------------

print("before:", fc.stability(net).margins.gain_crossover, "rad/s")
print("after: ", fc.stability(best.net).margins.gain_crossover, "rad/s")

# %%
# The derivative of any margin by any parameter is exact, by the implicit function theorem. It gives
# the direction and the cost of the next percent:

slopes = fc.gradient(best.net, "phase_margin", ["link.queue.k_pi", "link.queue.z", "flow.rtt"])
print(slopes)

# %%
# With ``verification`` left at its default the optimum is run as a trajectory and in packets, with
# seeds that the search did not use; ``over_scenarios={"flow.n": (10, 100)}`` optimises the worst
# case over a range of loads. Both take longer than a page should.
