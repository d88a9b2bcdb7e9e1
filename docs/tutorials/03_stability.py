"""
Is it stable, and by what margin?
=================================

Roots, counts, margins; the use of each of them, and the cases without any.
"""

# %%
# Two settings of one weight
# --------------------------

import numpy as np

import fluidcc as fc

slow = fc.load("hollot2001/slow")
fast = fc.load("hollot2001/fast")
print(fc.stability(slow))

# %%
found = fc.stability(fast)
print(found)

# %%
# Stability is decided by the count of unstable roots. Margins go with a stable loop only: a
# positive phase margin proves nothing if the gain crosses one more than once. The pair of unstable
# roots describes the oscillation to come: its imaginary part is the frequency, its real part the
# growth rate.

period = 2 * np.pi / max(root.imag for root in found.roots if root.real > 0)
print(f"small oscillations begin with a period of {period:.2f} s")

# %%
# The trajectory
# --------------

run = fc.simulate(fast, until=40)
picture = fc.plot(run)

# %%
# It grows until something bends it: here RED's marking ends at min_th. It settles in a
# limit cycle, which ``fc.cycle`` finds with its period, extremes and Floquet multipliers.

cycle = fc.cycle(fast)
print(cycle)

# %%
# The multipliers are the factors per period by which a disturbance of the cycle decays. The
# first is always one, for a shift along the cycle; how close it is to one is the accuracy.

# %%
# A map over two parameters
# -------------------------
# All points of a grid are solved together, each with its certified count.

over = {"flow.n": np.linspace(20, 120, 24), "link.queue.w_q": np.geomspace(1e-6, 1e-2, 24)}
grid = fc.stability_map(slow, over)
picture = fc.plot(grid)

# %%
# Fewer flows are harder to control: each mark then takes a larger part of the load away. Points
# without a colour have no smooth equilibrium; their status has the reason.
#
# Without a linearisation
# -----------------------
# A step of the marking has no slope, so the equilibrium of a threshold has no roots: it is a relay.
# `stability` says so; `cycle` finds its oscillation, by minutes of simulation.

print(fc.stability(fc.load("durresi2001/slow_start_tail")))
