"""What is told of each kind of result, by the name that commands have for it."""

from fluidcc.tables.bounds import bounds as bounds
from fluidcc.tables.cycles import cycle as cycle
from fluidcc.tables.cycles import cycles as cycles
from fluidcc.tables.cycles import relay_cycle as relay_cycle
from fluidcc.tables.laws import law as law
from fluidcc.tables.optimum import optimum as optimum
from fluidcc.tables.optimum import tradeoff as tradeoff
from fluidcc.tables.rest import boundary as boundary
from fluidcc.tables.rest import crossings as crossings
from fluidcc.tables.rest import equilibrium as equilibrium
from fluidcc.tables.rest import stability as stability
from fluidcc.tables.runs import comparison as comparison
from fluidcc.tables.runs import packets as packets
from fluidcc.tables.runs import simulation as simulation
from fluidcc.tables.slopes import gradient as gradient
from fluidcc.tables.slopes import sensitivity as sensitivity
from fluidcc.tables.slopes import window as window
from fluidcc.tables.slopes import windows as windows
