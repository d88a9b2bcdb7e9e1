"""
Many points: sweeps that survive
================================

A grid of thousands of points on all cores, kept in a folder, killed and resumed; and the
same on a cluster.
"""

# %%
# In this process
# ---------------
# Without a folder a sweep is a loop that gives the results themselves, and goes on over points that
# fail. That is enough for a curve.

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import fluidcc as fc

net = fc.load("hollot2001/slow")
over = {"flow.n": [40, 50, 60, 70, 80, 90], "link.queue.p_max": [0.05, 0.1, 0.2]}

# %%
# In a folder
# -----------
# With ``folder=`` the grid is cut into chunks of some seconds, and each finished chunk is a file.
# Here the process kills itself after the first one, as a power cut would, without a chance to tidy
# up. Your own script omits ``workers`` and uses every core; it runs under
# ``if __name__ == "__main__":``, as worker processes import it.

script = """
import os, signal, sys
import fluidcc as fc

def cut(progress):
    print(repr(progress), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

over = {"flow.n": [40, 50, 60, 70, 80, 90], "link.queue.p_max": [0.05, 0.1, 0.2]}
fc.sweep(fc.load("hollot2001/slow"), over, fc.equilibrium, folder=sys.argv[1], workers=0,
         progress=cut)
"""

folder = Path(tempfile.mkdtemp()) / "grid"
killed = subprocess.run(
    [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False
)
print(killed.stdout, "exit code", killed.returncode)

# %%
# The state of the folder, without running anything (``fluidcc sweep --status``):

print(fc.sweep_status(folder))

# %%
# The same call resumes it. A folder refuses another scenario, grid, verb or code, so that
# nothing is mixed that does not belong together.

found = fc.sweep(net, over, fc.equilibrium, folder=folder, workers=0, progress=print)
print(found)

# %%
# One labelled table
# ------------------
# Results come as an xarray dataset with units; scenario, command and versions are attributes.

data = found.to_xarray()
print(data["queue"].sel(link="bottleneck"))

# %%
# The numbers are the same to the last bit as those of a sweep that was never interrupted:

plain = fc.sweep(net, over, fc.equilibrium)
print(np.array_equal(plain.to_xarray()["queue"], data["queue"]))
picture = fc.plot(plain)

# %%
# On a cluster
# ------------
# ``scheduler=`` gives the chunks to the workers of a Dask scheduler; one process writes. On one
# machine, as in the tests of the package, that is a ``LocalCluster``:
#
# .. code-block:: python
#
#    from dask.distributed import LocalCluster
#
#    if __name__ == "__main__":
#        with LocalCluster(n_workers=4, threads_per_worker=1) as cluster:
#            fc.sweep(net, over, fc.stability, folder="map", scheduler=cluster.scheduler_address)
#
# On a batch system dask-jobqueue starts the workers, and its scheduler has the address:
#
# .. code-block:: python
#
#    from dask_jobqueue import SLURMCluster
#
#    cluster = SLURMCluster(
#        cores=16, processes=16, memory="32GB", walltime="02:00:00",
#        job_script_prologue=[
#            "export OPENBLAS_NUM_THREADS=1 FLUIDCC_FAST_CPU=1 FLUIDCC_THREADS=1"
#        ],
#    )
#    cluster.scale(jobs=8)
#    fc.sweep(net, over, fc.stability, folder="map", scheduler=cluster.scheduler_address)
#
# Workers need the same versions; that is checked. Results do not depend on how many there are, on
# processors of one kind. Random numbers neither: every point has the seeds of the verb.
