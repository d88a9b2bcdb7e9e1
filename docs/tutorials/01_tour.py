"""
The five-minute tour
====================

Sixty TCP flows share a link of 15 Mbit/s with a RED queue, 200 ms away: the example on which the
stability of RED was first analysed. Where does it settle? Is it stable? How far is the
boundary, and do packets agree?
"""

# %%
# Load
# ----
# A scenario is a TOML file. Bundled ones go by name, your own by path. It is a description and
# nothing else: links with a queue law, groups of flows with a window law and a path for marks.

import fluidcc as fc

net = fc.load("hollot2001/slow")
print(fc.dumps(net))

# %%
# Where does it settle?
# ---------------------
# The rules for single packets give the mean drift of every window and queue; the equilibrium is
# where all of them vanish.

rest = fc.equilibrium(net)
print(rest)

# %%
# *Regular* means that every law works within its range: the queue neither runs empty nor is it
# held by a limit. Read the window first. It is well above a handful of packets, so a fluid
# description makes sense; at two or three packets it would not, and results warn of it.

# %%
# Does it stay there?
# -------------------
# The linearised delay equation has infinitely many roots. Those to the right of the imaginary axis
# make small disturbances grow; how many there are is counted along a contour, which is a
# certificate and not a search that may miss one.

print(fc.stability(net))

# %%
# The margins are those of a control loop: how much more gain, phase lag or delay it bears. The
# delay margin is the one to look at in a network. Here the loop could bear far more delay than a
# round trip. That margin is bought with slowness: the rightmost root is the rate at which a
# disturbance dies out.

# %%
# How far is the edge?
# --------------------
# The weight of RED's average decides. Every change of stability along it, not only the first:

edges = fc.crossings(net, "link.queue.w_q", 1e-6, 0.1)
print(edges)

# %%
# *Supercritical* means that beyond the edge a small oscillation grows slowly out of nothing. At a
# subcritical one the queue jumps to a large oscillation, and stays there on the way back.

# %%
# Do packets agree?
# -----------------
# The packet simulator runs the very same rules, one packet at a time, with senders that have slow
# start, recovery and timeouts. Means are over 30 s of three seeds, with 95 % intervals.

both = fc.compare(net, until=50, warmup=20, seeds=range(1, 4))
print(both)

# %%
picture = fc.plot(both)

# %%
# Rates and marks agree closely. The packets' queue moves about: marks are random there. Lines
# above the table are validity warnings; lines below it give the bias of the fluid model's windows.

# %%
# Change something
# ----------------
# A path and a value; text may carry units. A wrong path is answered with the nearest valid ones.

busier = fc.replace(net, {"flow.n": 30, "flow.rtt": "300 ms"})
print(fc.stability(busier).message or fc.stability(busier))

# %%
try:
    fc.replace(net, {"link.queue.wq": 0.002})
except fc.ScenarioError as error:
    print(error)

# %%
# The same on the command line: ``fluidcc equilibrium``, ``stability``, ``crossings``, ``compare``,
# each with ``--set PATH=VALUE``, ``--json``, ``--plot`` and ``--out``.
