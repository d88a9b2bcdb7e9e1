"""
Where is the edge of stability?
===============================

Every change of stability along a parameter, and the curve over two. Stability is not monotone: a
search that stops at the first change is wrong.
"""

# %%
# Along one parameter
# -------------------
# Ten flows with an aggressive window law lose stability as the average gets faster, and regain it
# when there is hardly an average left: the filter then adds no more lag.

import numpy as np

import fluidcc as fc

net = fc.load("misra2003/aggressive")
found = fc.crossings(net, "link.queue.w_q", 1e-6, 0.9)
print(found)

# %%
picture = fc.plot(found)

# %%
# Between these two weights the queue oscillates. The frequency at the edge gives the period with
# which it will begin.

# %%
# Over two parameters
# -------------------
# Each end of the range is an ordinary path of the scenario. Curves are followed from every crossing
# on the edges of the rectangle and on lines inside it, so closed curves are found too; the counts
# on a grid must agree with the curves, or the status names the disagreement.

slow = fc.load("hollot2001/slow")
edge = fc.boundary(slow, "link.queue.w_q", "link.queue.p_max", (1e-6, 0.1), (0.02, 1.0))
print(edge)

# %%
picture = fc.plot(edge)

# %%
# Choose a point well on the stable side, and look at its distance along *both* axes. A setting that
# is safe for one load need not be for another, so ask again at the smallest number of flows that
# the link will see:

light = fc.replace(slow, {"flow.n": 40})
for w_q in np.geomspace(1e-6, 1e-4, 3):
    point = fc.stability(fc.replace(light, {"link.queue.w_q": float(w_q)}))
    print(f"w_q = {w_q:.1e}: {point.unstable} unstable roots")

# %%
# What lies beyond
# ----------------
# ``fc.cycles(net, path, low, high)`` follows the oscillation from each crossing: how its period and
# amplitude grow, through folds and unstable parts. If a crossing is subcritical, look for one
# before it: equilibrium and oscillation are both stable there, and history decides.
