"""A map of 1e6 points, equilibrium and stability of TCP on RED over N and w_q: the time it takes.

Run with ``python benchmarks/million.py FOLDER [--side 1000] [--workers 2]``. Chunks are kept in
FOLDER: a run that is ended goes on there, and its time counts from its own start alone. Processes
start, and compile, within the time. The load shows what else the machine does.
"""

import argparse
import os
import platform
import resource
import time

import numpy as np

import fluidcc as fc


def main() -> None:
    """Sweep, and print time by the clock, core time, and what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--side", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    net = fc.load("hollot2001/slow")
    over = {
        "flow.n": np.linspace(20.0, 200.0, asked.side),
        "link.queue.w_q": np.geomspace(1e-6, 1e-3, asked.side),
    }
    begin = time.perf_counter()

    def show(share: fc.Progress) -> None:
        print(f"{time.perf_counter() - begin:7.1f} s: {share!r}", flush=True)

    found = fc.sweep(
        net, over, fc.stability_map, folder=asked.folder, workers=asked.workers, progress=show
    )
    wall = time.perf_counter() - begin
    core = sum(
        resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    data = found.to_xarray()
    stable, certified = int((data["stable"] == 1).sum()), int(data["certified"].sum())
    print(f"{data['stable'].size} points: {stable} stable, {certified} certified")
    queue, n = data["links.bottleneck.queue"].values, data["flow.n"].values[:, None]
    error = (queue - 150) * (3750 * 0.2 + queue) ** 2 / (2 * n**2 * 550 / 0.1) - 1
    print(f"queues solve the cubic of the closed form up to {np.max(np.abs(error)):.2g}")
    print(f"{wall:.1f} s by the clock, {core:.1f} s of cores, load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    fc.fast_cpu()
    main()
