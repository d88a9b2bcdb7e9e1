"""The public names by their purpose, and their pages."""

from collections.abc import Iterator
from typing import NamedTuple


class Group(NamedTuple):
    """Names that belong together: a page of the reference."""

    page: str
    title: str
    about: str
    names: tuple[str, ...]


GROUPS = (
    Group(
        "scenarios", "Load and change",
        "Scenarios come from files, bundled names or text, and are immutable: a change "
        "gives a new one. Numbers are SI with packets, text carries units.",
        ("load", "loads", "dumps", "replace", "paths", "number_at", "citations", "advice",
         "latex", "Network", "Link", "Flows", "Voice", "ScenarioError", "Fault"),
    ),
    Group(
        "rest", "OperatingPoint",
        "The equilibrium of a network, its regime, and the distribution of its windows.",
        ("equilibrium", "Equilibrium", "window_distributions", "WindowDistributions",
         "window_distribution", "WindowDistribution", "fluctuations", "Fluctuations",
         "gain_and_loss"),
    ),
    Group(
        "stability", "Stability",
        "Roots with a certified count, margins, and the same for whole grids.",
        ("stability", "Stability", "bode", "FrequencyResponse", "stability_map", "StabilityMap",
         "linearize"),
    ),
    Group(
        "boundaries", "Boundaries",
        "Every change of stability along one parameter, and the curves over two.",
        ("crossings", "Crossings", "boundary", "Boundary"),
    ),
    Group(
        "cycles", "Cycles",
        "The oscillation around an unstable equilibrium.",
        ("cycle", "Cycle", "cycles", "Cycles", "oscillation",
         "Oscillation"),
    ),
    Group(
        "derivatives", "Derivatives",
        "Exact derivatives of equilibria, roots, margins, cycles and trajectories.",
        ("gradient", "Gradient", "sensitivity", "Sensitivity"),
    ),
    Group(
        "simulate", "Simulate the fluid model",
        "Trajectories of the delay equations, from the initial history of a scenario.",
        ("simulate", "simulate_map", "Trajectory", "fast_cpu"),
    ),
    Group(
        "packets", "Packets and trains, and all levels side by side",
        "The same laws, one packet at a time or by trains of packets, with intervals over seeds.",
        ("simulate_packets", "PacketRuns", "read_trace", "simulate_trains", "TrainRuns", "compare",
         "Comparison"),
    ),
    Group(
        "laws", "User-defined laws",
        "Add a class or a file of laws to those of the package, and test them as these.",
        ("register", "load_laws", "check_law", "LawReport"),
    ),
    Group(
        "sweeps", "Sweeps",
        "One verb over a grid: in this process, in many, on a cluster; kept and resumed.",
        ("sweep", "Sweep", "SweepData", "sweep_status", "SweepStatus", "SweepStopped", "Progress"),
    ),
    Group(
        "optimise", "Best parameters",
        "Search under constraints, over the worst of many scenarios.",
        ("optimize", "Optimum"),
    ),
    Group(
        "bounds", "Published bounds",
        "Bounds and theorems of the five papers, judged for exact definitions.",
        ("check_bound", "check_bounds", "BoundReport", "BoundReports"),
    ),
    Group(
        "equations", "Delay equations",
        "Any delay equation, without a network: solved, and its stability judged.",
        ("solve_dde", "Solution", "Status", "Uniform", "Located", "MethodOfSteps", "Modes",
         "Sampled", "DelayEquation", "EquationEquilibrium"),
    ),
    Group(
        "results", "Results",
        "What every result has: data, tables, a picture, files; and pictures in one style.",
        ("Result", "load_result", "plot", "style"),
    ),
)  # fmt: skip

BUILT_BY_HAND = frozenset(
    ("Network", "Link", "Flows", "Voice", "Uniform", "Located", "MethodOfSteps", "Modes",
     "Sampled", "DelayEquation", "Fault")
)  # fmt: skip
"""Classes that users call themselves; all others are results."""


def _page(group: Group) -> Iterator[str]:
    yield from (group.title, "=" * len(group.title), "", group.about, "")
    yield from (".. currentmodule:: fluidcc", "", ".. autosummary::", "")
    yield from (f"   {name}" for name in group.names)
    for name in group.names:
        if name[0].isupper():
            yield from ("", f".. autoclass:: {name}", "   :members:")
        else:
            yield from ("", f".. autofunction:: {name}")


def _index() -> Iterator[str]:
    yield from ("Functions", "=========", "")
    yield "Verbs are functions of a network; results print as tables, and have"
    yield "``to_dict()``, ``to_xarray()``, ``to_pandas()``, ``plot()`` and ``save(path)``."
    yield "All are names of ``fluidcc``, by habit ``fc``."
    yield from ("Every example here is run by the tests.", "", ".. currentmodule:: fluidcc", "")
    for group in GROUPS:
        yield from (f":doc:`{group.page}`", f"   {group.about}", "")
        yield from ("   " + ", ".join(f"`{name}`" for name in group.names), "")
    yield from (".. toctree::", "   :hidden:", "", *(f"   {g.page}" for g in GROUPS))


def pages() -> dict[str, str]:
    """The pages of the reference, by file."""
    found = {f"reference/api/{g.page}.rst": "\n".join(_page(g)) + "\n" for g in GROUPS}
    return found | {"reference/api/index.rst": "\n".join(_index()) + "\n"}
