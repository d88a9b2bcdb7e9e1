"""Fluid models, stability and packets of congestion control, from one definition of each law.

Names are imported when they are first used, so that `import fluidcc` costs next to nothing. The
first that computes switches JAX to double precision (`jax_enable_x64`) for the whole process.
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluidcc.analysis.batch import StabilityMap as StabilityMap
    from fluidcc.analysis.batch import stability_map as stability_map
    from fluidcc.analysis.boundary import Boundary as Boundary
    from fluidcc.analysis.boundary import boundary as boundary
    from fluidcc.analysis.crossings import Crossings as Crossings
    from fluidcc.analysis.crossings import crossings as crossings
    from fluidcc.analysis.cycles.branches import Cycles as Cycles
    from fluidcc.analysis.cycles.branches import cycles as cycles
    from fluidcc.analysis.cycles.result import Cycle as Cycle
    from fluidcc.analysis.cycles.verb import cycle as cycle
    from fluidcc.analysis.delay_equation import DelayEquation as DelayEquation
    from fluidcc.analysis.delay_equation import EquationRest as EquationRest
    from fluidcc.analysis.equilibrium import Equilibrium as Equilibrium
    from fluidcc.analysis.equilibrium import equilibrium as equilibrium
    from fluidcc.analysis.fairness import gain_and_loss as gain_and_loss
    from fluidcc.analysis.gradients.gradient import gradient as gradient
    from fluidcc.analysis.gradients.result import Gradient as Gradient
    from fluidcc.analysis.gradients.trajectory import Sensitivity as Sensitivity
    from fluidcc.analysis.gradients.trajectory import sensitivity as sensitivity
    from fluidcc.analysis.linearize import linearize as linearize
    from fluidcc.analysis.oscillation import Oscillation as Oscillation
    from fluidcc.analysis.oscillation import oscillation as oscillation
    from fluidcc.analysis.relay import RelayCycle as RelayCycle
    from fluidcc.analysis.relay import relay_cycle as relay_cycle
    from fluidcc.analysis.stability import Stability as Stability
    from fluidcc.analysis.stability import stability as stability
    from fluidcc.analysis.stationary import StationaryWindow as StationaryWindow
    from fluidcc.analysis.stationary import stationary_window as stationary_window
    from fluidcc.analysis.windows import StationaryWindows as StationaryWindows
    from fluidcc.analysis.windows import stationary_windows as stationary_windows
    from fluidcc.bounds.check import check_bound as check_bound
    from fluidcc.bounds.check import check_bounds as check_bounds
    from fluidcc.bounds.reports import BoundReport as BoundReport
    from fluidcc.bounds.reports import BoundReports as BoundReports
    from fluidcc.check.report import LawReport as LawReport
    from fluidcc.check.verb import check_law as check_law
    from fluidcc.dde.cpu import fast_cpu as fast_cpu
    from fluidcc.dde.meshes import Located as Located
    from fluidcc.dde.meshes import MethodOfSteps as MethodOfSteps
    from fluidcc.dde.meshes import Modes as Modes
    from fluidcc.dde.meshes import Sampled as Sampled
    from fluidcc.dde.meshes import Uniform as Uniform
    from fluidcc.dde.solution import Solution as Solution
    from fluidcc.dde.solve import solve_dde as solve_dde
    from fluidcc.dde.status import Status as Status
    from fluidcc.errors import Fault as Fault
    from fluidcc.errors import ScenarioError as ScenarioError
    from fluidcc.errors import SweepStopped as SweepStopped
    from fluidcc.laws.own import load_laws as load_laws
    from fluidcc.laws.registry import register as register
    from fluidcc.laws.voice import Voice as Voice
    from fluidcc.model.advice import advice as advice
    from fluidcc.model.runs import Trajectory as Trajectory
    from fluidcc.model.simulate import simulate as simulate
    from fluidcc.optimize import Optimum as Optimum
    from fluidcc.optimize import optimize as optimize
    from fluidcc.packets.run import PacketRuns as PacketRuns
    from fluidcc.packets.run import simulate_packets as simulate_packets
    from fluidcc.results.compare import Comparison as Comparison
    from fluidcc.results.compare import compare as compare
    from fluidcc.results.latex import latex as latex
    from fluidcc.results.plot import plot as plot
    from fluidcc.results.plot import style as style
    from fluidcc.scenario.bibliography import citations as citations
    from fluidcc.scenario.files import dumps as dumps
    from fluidcc.scenario.files import load as load
    from fluidcc.scenario.files import loads as loads
    from fluidcc.scenario.network import Flows as Flows
    from fluidcc.scenario.network import Link as Link
    from fluidcc.scenario.network import Network as Network
    from fluidcc.scenario.paths import number_at as number_at
    from fluidcc.scenario.paths import paths as paths
    from fluidcc.scenario.paths import replace as replace
    from fluidcc.sweep.plan import Progress as Progress
    from fluidcc.sweep.result import Sweep as Sweep
    from fluidcc.sweep.run import SweepData as SweepData
    from fluidcc.sweep.run import SweepStatus as SweepStatus
    from fluidcc.sweep.run import sweep_status as sweep_status
    from fluidcc.sweep.simulate_map import simulate_map as simulate_map
    from fluidcc.sweep.sweep import sweep as sweep

_MODULES = {
    "model.advice": ("advice",),
    "analysis.batch": ("StabilityMap", "stability_map"),
    "analysis.boundary": ("Boundary", "boundary"),
    "analysis.crossings": ("Crossings", "crossings"),
    "analysis.cycles.branches": ("Cycles", "cycles"),
    "analysis.cycles.result": ("Cycle",),
    "analysis.cycles.verb": ("cycle",),
    "analysis.delay_equation": ("DelayEquation", "EquationRest"),
    "analysis.equilibrium": ("Equilibrium", "equilibrium"),
    "analysis.fairness": ("gain_and_loss",),
    "analysis.gradients.gradient": ("gradient",),
    "analysis.gradients.result": ("Gradient",),
    "analysis.gradients.trajectory": ("Sensitivity", "sensitivity"),
    "analysis.linearize": ("linearize",),
    "analysis.oscillation": ("Oscillation", "oscillation"),
    "analysis.relay": ("RelayCycle", "relay_cycle"),
    "analysis.stability": ("Stability", "stability"),
    "analysis.stationary": ("StationaryWindow", "stationary_window"),
    "analysis.windows": ("StationaryWindows", "stationary_windows"),
    "check.report": ("LawReport",),
    "check.verb": ("check_law",),
    "scenario.bibliography": ("citations",),
    "bounds.check": ("check_bound", "check_bounds"),
    "bounds.reports": ("BoundReport", "BoundReports"),
    "results.compare": ("Comparison", "compare"),
    "errors": ("Fault", "ScenarioError", "SweepStopped"),
    "dde.cpu": ("fast_cpu",),
    "dde.meshes": ("Located", "MethodOfSteps", "Modes", "Sampled", "Uniform"),
    "model.runs": ("Trajectory",),
    "model.simulate": ("simulate",),
    "dde.solution": ("Solution",),
    "dde.solve": ("solve_dde",),
    "dde.status": ("Status",),
    "results.latex": ("latex",),
    "laws.own": ("load_laws",),
    "laws.registry": ("register",),
    "scenario.network": ("Flows", "Link", "Network"),
    "optimize": ("Optimum", "optimize"),
    "packets.run": ("PacketRuns", "simulate_packets"),
    "results.plot": ("plot", "style"),
    "scenario.files": ("dumps", "load", "loads"),
    "scenario.paths": ("number_at", "paths", "replace"),
    "sweep.simulate_map": ("simulate_map",),
    "sweep.sweep": ("sweep",),
    "sweep.plan": ("Progress",),
    "sweep.result": ("Sweep",),
    "sweep.run": ("SweepData", "SweepStatus", "sweep_status"),
    "laws.voice": ("Voice",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from fluidcc.errors import nearest

        close = nearest(name, list(_HOMES), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module 'fluidcc' has no attribute {name!r}{hint}")
    value = getattr(importlib.import_module(f"fluidcc.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)


class _Package(types.ModuleType):
    """Keeps a function from being hidden by the module of the same name that it lives in."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, types.ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
