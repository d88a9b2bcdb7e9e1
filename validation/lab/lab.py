"""Performs the experiments that figures and claims are made from, and keeps what they gave."""

import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fluidcc.analysis.bounds import check_bound
from fluidcc.analysis.equilibrium import equilibrium
from fluidcc.analysis.validity import validity_warnings
from fluidcc.laws.own import origins
from fluidcc.machine import processors
from fluidcc.model.simulate import simulate
from fluidcc.packets.hooks import entry_points
from fluidcc.packets.run import simulate_packets
from fluidcc.progress import report, reporting
from fluidcc.scenario.files import dumps
from fluidcc.scenario.network import Network

from .experiments import Experiment, experiments
from .samples import Courses, Equilibria, Runs
from .store import Store

if TYPE_CHECKING:
    from xarray import Dataset

_FEW_FLOWS = 12


class Lab:
    """Experiments of one paper, performed when they are first asked for.

    Parameters
    ----------
    store
        Where results are kept.
    paper
        Short name of the paper; experiments of others are asked for as ``paper/name``.
    quick
        Whether runs are those of the quick preset.
    reading
        A reading of what the paper leaves open, or several joined by ``+``: experiments are taken
        under those that they have.
    """

    def __init__(
        self, store: Store, paper: str, *, quick: bool = False, reading: str | None = None
    ) -> None:
        self.store, self.paper, self.quick, self.reading = store, paper, quick, reading
        self.failures: dict[str, str] = {}

    def under(self, reading: str | None) -> "Lab":
        """The same experiments under a reading; failures are noted in both."""
        other = Lab(self.store, self.paper, quick=self.quick, reading=reading)
        other.failures = self.failures
        return other

    def experiment(self, name: str) -> Experiment:
        """An experiment by its name, under the reading where it has that."""
        paper, _, own = name.rpartition("/")
        found = experiments(paper or self.paper, quick=self.quick)
        had = [name for name in (self.reading or "").split("+") if f"{own}@{name}" in found]
        return found[f"{own}@{'+'.join(had)}" if had else own]

    def changes(self, name: str) -> bool:
        """Whether an experiment is another one under the reading."""
        return self.experiment(name).name != self.under(None).experiment(name).name

    @reporting
    def perform(
        self, names: Iterable[str], *, progress: Callable[[float], object] | None = None
    ) -> None:
        """Do the packet runs of experiments that are not kept yet, as many at once as there are
        processors. What an interrupt leaves undone is done the next time.
        """
        wanted = {experiment.name: experiment for experiment in map(self.experiment, names)}
        todo = [
            (experiment, k)
            for experiment in wanted.values()
            for k in range(len(experiment.x))
            if not self.store.has("packets", _about(experiment, k))
        ]
        if not todo:
            return
        entry_points()  # compiled once, before there are threads
        sizes = [experiment.until * experiment.seeds for experiment, _ in todo]
        done, whole = 0.0, sum(sizes)
        with concurrent.futures.ThreadPoolExecutor(processors()) as pool:
            jobs = {
                pool.submit(self._keep, experiment, k): size
                for (experiment, k), size in zip(todo, sizes, strict=True)
            }
            try:
                for job in concurrent.futures.as_completed(jobs):
                    job.result()
                    done += jobs[job]
                    report(done / whole)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _keep(self, experiment: Experiment, k: int) -> None:
        """Do the runs of one point, without holding on to them."""
        self._runs(experiment, k)

    def _runs(self, experiment: Experiment, k: int) -> Mapping[str, Any] | None:
        """The runs of one point; None, and a note, where they failed."""

        def make() -> Mapping[str, Any]:
            found = simulate_packets(
                experiment.net(k), until=experiment.until, warmup=experiment.warmup,
                seeds=range(1, experiment.seeds + 1), sample=experiment.sample, threads=1,
            )  # fmt: skip
            series = None if found.series is None else _first(found.series)
            return {"runs": found.to_dict()["runs"], "series": series}

        try:
            return self.store.keep("packets", _about(experiment, k), make)
        except OSError:
            raise  # of the folder: it concerns all runs
        except Exception as error:
            self.failures[f"{experiment.name} at {experiment.x[k]}"] = f"{error}"
            return None

    def packets(self, name: str) -> Runs:
        """Packet runs of an experiment, one entry for each point."""
        experiment = self.experiment(name)
        return Runs(experiment, [self._runs(experiment, k) for k in range(len(experiment.x))])

    def ask(self, verb: Callable[..., Any], net: Network, *args: Any, **options: Any) -> Any:
        """What a verb of the fluid model says of a network, as plain data, kept for the next time.

        Raises what the verb raises.
        """
        about = {"verb": verb.__name__, "args": args, **_scenario(net), **options}
        return self.store.keep("fluid", about, lambda: verb(net, *args, **options).to_dict())

    def _each(
        self, name: str, asked: str, ask: Callable[[Network], Any]
    ) -> tuple[Experiment, list[Any]]:
        """An experiment, and what is asked of each of its points; None, and a note, if it fails."""
        experiment, found = self.experiment(name), []
        for k, x in enumerate(experiment.x):
            try:
                found.append(ask(experiment.net(k)))
            except OSError:
                raise
            except Exception as error:
                self.failures[f"{experiment.name} at {x}, {asked}"] = f"{error}"
                found.append(None)
        return experiment, found

    def bound(self, name: str) -> Any:
        """What `check_bound` says of a published bound, in its quick form."""
        return self.store.keep("bounds", {"bound": name}, lambda: check_bound(name).to_dict())

    def rests(self, name: str) -> Equilibria:
        """Equilibria of the fluid model at the points of an experiment."""
        return Equilibria(*self._each(name, "equilibrium", lambda net: self.ask(equilibrium, net)))

    def reasons(self, name: str) -> list[list[str] | None]:
        """What the fluid model at rest says against itself at the points of an experiment; None
        where there is no equilibrium.
        """

        def ask(net: Network) -> list[str]:
            about = {"verb": "outside", **_scenario(net)}
            return self.store.keep(
                "fluid", about, lambda: list(validity_warnings(equilibrium(net)))
            )

        return self._each(name, "outside", ask)[1]

    def courses(self, name: str, until: float) -> Courses:
        """Trajectories of the fluid model at the points of an experiment, up to a time [s]."""
        return Courses(
            *self._each(name, "simulate", lambda net: self.ask(simulate, net, until=until))
        )


def _first(series: "Dataset") -> dict[str, Any]:
    """Samples of the first seed; those of single flows where these are few."""
    own = series.isel(seed=0)
    if own.sizes.get("flow", 0) > _FEW_FLOWS:
        own = own.drop_vars([name for name, v in own.data_vars.items() if "flow" in v.dims])
    return own.to_dict()


def _about(experiment: Experiment, k: int) -> dict[str, Any]:
    return {
        **_scenario(experiment.net(k)), "until": experiment.until,
        "warmup": experiment.warmup, "seeds": experiment.seeds, "sample": experiment.sample,
    }  # fmt: skip


def _scenario(net: Network) -> dict[str, Any]:
    """A network as results follow from it: in full, and the text of laws of one's own."""
    return {"scenario": dumps(net), "laws": origins(net)}
