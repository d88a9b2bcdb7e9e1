"""Scenarios: text to networks and back, and their parameters by path."""

from fluidcc.errors import Fault as Fault
from fluidcc.errors import ScenarioError as ScenarioError
from fluidcc.scenario.files import dumps as dumps
from fluidcc.scenario.files import load as load
from fluidcc.scenario.files import loads as loads
from fluidcc.scenario.paths import info_at as info_at
from fluidcc.scenario.paths import number_at as number_at
from fluidcc.scenario.paths import paths as paths
from fluidcc.scenario.paths import replace as replace
