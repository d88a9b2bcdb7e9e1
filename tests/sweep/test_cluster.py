"""The same sweep by a Dask cluster on this machine, whose workers are spawned."""

import functools
import importlib
import time

import pytest
from sweep_cases import NET, OVER, SIZE, draw, draw_after_a_death, same

import fluidcc as fc

distributed = pytest.importorskip("distributed")
SLOWLY = functools.partial(draw, pause=0.02)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as found:
        yield found


def pids(cluster):
    return {nanny.pid for nanny in cluster.workers.values()} - {None}


def test_a_worker_that_dies_in_the_middle_of_a_sweep_is_replaced(cluster, tmp_path):
    before, mark = pids(cluster), tmp_path / "mark"
    verb = functools.partial(draw_after_a_death, mark=mark)
    found = fc.sweep(NET, OVER, verb, scheduler=cluster.scheduler_address).to_xarray()
    assert mark.exists()
    end = time.monotonic() + 60
    while len(pids(cluster)) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(pids(cluster) & before) == 1 and len(pids(cluster)) == 2
    here = fc.sweep(NET, OVER, draw, workers=0).to_xarray()
    same(found.assign_attrs(here.attrs), here)


def test_a_cluster_gives_the_same_bits_and_one_that_is_lost_is_told(cluster, tmp_path):
    """Both in one test, as the workers of a cluster take seconds to start."""
    import dask

    method = "distributed.worker.multiprocessing-method"
    assert dask.config.get(method) == "spawn"  # pyright: ignore[reportPrivateImportUsage]
    here = fc.sweep(NET, OVER, SLOWLY, workers=0).to_xarray()
    address = cluster.scheduler_address
    same(fc.sweep(NET, OVER, SLOWLY, scheduler=address).to_xarray(), here)

    def lose(progress):
        if progress.done < SIZE:
            cluster.close()

    folder = tmp_path / "kept"
    with pytest.raises(fc.SweepStopped, match="the connection to the scheduler is lost") as told:
        fc.sweep(NET, OVER, SLOWLY, folder=folder, scheduler=address, progress=lose)
    assert "finished chunks are kept" in str(told.value)
    assert 0 < fc.sweep_status(folder).done < SIZE
    same(fc.sweep(NET, OVER, SLOWLY, folder=folder, workers=0).to_xarray(), here)


def test_an_address_without_a_scheduler_is_told(monkeypatch):
    module = importlib.import_module("fluidcc.sweep.workers")
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with pytest.raises(ValueError, match="scheduler: expected the address of a Dask scheduler"):
        fc.sweep(NET, OVER, draw, scheduler="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="scheduler: expected the address of a Dask scheduler"):
        fc.sweep(NET, OVER, draw, scheduler="nonsense://")
