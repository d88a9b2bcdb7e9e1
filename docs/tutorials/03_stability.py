"""
Is it stable, and by what margin?
=================================

Roots, counts, margins; what each of them is good for, and when none of them says anything.
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
# The verdict is the count of unstable roots. Margins go with a stable loop only: a positive phase
# margin proves nothing where the gain crosses one more than once. The pair of unstable roots tells
# two things about the oscillation to come: its imaginary part is the frequency, its real part how
# fast it grows.

period = 2 * np.pi / max(root.imag for root in found.roots if root.real > 0)
print(f"small oscillations begin with a period of {period:.2f} s")

# %%
# What the trajectory does
# ------------------------

run = fc.simulate(fast, until=40)
picture = fc.plot(run)

# %%
# It grows until something bends it: here RED's marking ends at min_th. What it settles in is a
# limit cycle, which ``fc.cycle`` finds with its period, extremes and Floquet multipliers.

cycle = fc.cycle(fast)
print(cycle)

# %%
# The multipliers tell how fast the cycle comes back after a disturbance: a factor per period. The
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
# without a colour have no smooth equilibrium; their status says why.
#
# Where there is nothing to linearise
# -----------------------------------
# A step of the marking has no slope, so the rest point of a threshold has no roots: it is a relay,
# and its oscillation has a closed form.

print(fc.relay_cycle(fc.load("durresi2001/slow_start_tail")))
