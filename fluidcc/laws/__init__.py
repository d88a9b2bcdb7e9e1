"""Laws of congestion control as rules for single packet events, each written once.

What a law of one's own is written with is here: the abstract classes, the records of events, and
the descriptions of parameters.
"""

from fluidcc import ops as ops
from fluidcc.laws.law import AbstractEstimator as AbstractEstimator
from fluidcc.laws.law import AbstractFeedback as AbstractFeedback
from fluidcc.laws.law import AbstractMarking as AbstractMarking
from fluidcc.laws.law import AbstractQueueLaw as AbstractQueueLaw
from fluidcc.laws.law import AbstractReaction as AbstractReaction
from fluidcc.laws.law import AbstractSpreading as AbstractSpreading
from fluidcc.laws.law import AbstractWindowLaw as AbstractWindowLaw
from fluidcc.laws.law import Ack as Ack
from fluidcc.laws.law import Arrival as Arrival
from fluidcc.laws.law import Moment as Moment
from fluidcc.laws.law import Shares as Shares
from fluidcc.laws.law import Signal as Signal
from fluidcc.laws.law import Since as Since
from fluidcc.laws.law import Trip as Trip
from fluidcc.laws.parameters import check_order as check_order
from fluidcc.laws.parameters import choice as choice
from fluidcc.laws.parameters import param as param
