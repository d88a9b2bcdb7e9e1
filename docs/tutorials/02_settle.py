"""
Where does it settle?
=====================

Queue, marks and windows over the load, and the names of equilibria at the ends of the ranges of
laws.
"""

# %%
# A curve over the load
# ---------------------
# ``sweep`` applies a verb at every point of a grid. A point that has no answer never ends it.

import fluidcc as fc

net = fc.load("hollot2001/slow")
curve = fc.sweep(net, {"flow.n": range(40, 401, 40)}, fc.equilibrium)
picture = fc.plot(curve)

# %%
# Judge it from the right: as flows are added, each gets a smaller window, a smaller window needs
# more marks, and RED only marks more when its average queue is longer. So the queue is the price
# of the load. At some load the marks needed exceed the most that RED gives:

for point in curve.points:
    print(point.set["flow.n"], point.status, point.result.message)

# %%
# The statuses
# ------------
# ``regular``
#     Every law works within its range.
# ``discontinuity``
#     A discontinuity of the marking passes over the marks needed: without ``gentle``, RED jumps
#     from p_max to dropping everything at max_th, and the average is held there. The queue still
#     has a value, but a switch holds it, not a slope.
# ``empty``
#     Windows are capped and do not fill the link.
# ``continuum``
#     A law with a range of equilibria, as BLUE: history decides between them.
# ``none``
#     Even marking everything leaves more demand than the link has. Losses decide then.
# ``undetermined``
#     The answer failed its check in the equations of motion, or a law remembers an extreme of all
#     its past, such as the least round trip: no number is given, and the message has the reason.
#
# ``--json`` and ``to_dict()`` have the status as a word, and a message with advice.

# %%
# What if RED were gentle?
# ------------------------

gentle = fc.replace(net, {"link.queue.gentle": True, "flow.n": 400})
print(fc.equilibrium(gentle))

# %%
# How far windows spread
# ----------------------
# The fluid has the mean window. Under random marks windows spread, and the mean of a spread is not
# the window at which growth and halvings balance. The stationary distribution, one packet at a
# time, shows the difference:

spread = fc.window_distributions(net)
print(spread)

# %%
picture = fc.plot(spread)

# %%
# A bias of a few percent is the usual size at windows of more than ten packets. It grows as windows
# shrink, and it is the first thing to look at if packets disagree with the fluid model.
