"""
Do packets agree?
=================

A fluid model describes means. Before you trust it, compare it with the same laws, packet by packet,
and read its validity warnings.
"""

# %%
# Side by side
# ------------
# ``trajectory=False`` takes the equilibrium of the fluid model; by default its trajectory is
# integrated too, with standard deviations and periods.

import fluidcc as fc

net = fc.load("misra2003/mixed")
both = fc.compare(net, until=60, warmup=20, seeds=range(1, 5), trajectory=False)
print(both)

# %%
picture = fc.plot(both)

# %%
# How to judge it:
#
# * An interval is over seeds (95 %, Student's t). A difference smaller than the interval is none.
# * Utilisation is the easiest number of all; do not be content with it. Look at queue and marks.
# * ``queue_std`` is the standard deviation of a queue. The fluid at equilibrium has none, packets
#   always have some: random marks, bursts of slow start.
# * Validity warnings above the table have the causes of differences, with their size if known.

for reason in both.validity_warnings:
    print("*", reason)

# %%
# Where the fluid model warns
# ---------------------------
# Small windows are behind most of it. At two packets a halving is a step of whole packets, and
# losses become timeouts. Six times as many flows on the same link:

crowded = fc.replace(net, {"flows.mod.n": 60, "flows.newreno.n": 60})
small = fc.compare(crowded, until=60, warmup=20, seeds=range(1, 5), trajectory=False)
print(small)

# %%
# Packets alone
# -------------
# The packet simulator is a tool of its own: queues and windows over time, every event of every
# packet as a trace, whole networks of links.

runs = fc.simulate_packets(net, until=60, warmup=20, seeds=range(1, 4), sample=0.05)
picture = fc.plot(runs)
print(runs)
