"""Compile whole integration loops into one function on the CPU.

Up to JAX 0.11 the CPU compiler does this only for loops that touch little memory in a pass,
unless an option says otherwise that is read once, when the first backend starts; from 0.12 on it
does so by itself. The option is undocumented; without it the results are the same and the loops
are slower.
"""

import os
import sys
import warnings

FLAG = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000"
VARIABLE = "FLUIDCC_FAST_CPU"

_warned = False


def fast_cpu() -> bool:
    """Compile integration loops of this process into one function; call it before other JAX code.

    It adds an option to XLA_FLAGS and keeps the others. It holds for the whole process: large
    loops of other code lose their threads. Returns whether the option is set in time; if a
    backend has started already it warns once and changes nothing.

    Returns
    -------
    bool
        Whether the setting is in force.

    Examples
    --------
    >>> import fluidcc as fc
    >>> on = fc.fast_cpu()  # first of all, before other JAX code
    """
    global _warned
    flags = os.environ.get("XLA_FLAGS", "")
    if FLAG in flags:
        return True
    if _has_started():
        if not _warned:
            _warned = True
            warnings.warn(
                "fast_cpu() came after the first JAX computation and has no effect; call it "
                f"first, or start Python with {VARIABLE}=1 or XLA_FLAGS='{FLAG}'",
                stacklevel=2,
            )
        return False
    os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".strip()
    return True


def _has_started() -> bool:
    """Whether JAX computes already."""
    if "jax" not in sys.modules:
        return False
    from jax._src import xla_bridge

    return xla_bridge.backends_are_initialized()


def from_environment() -> None:
    """Do as `fast_cpu` if the environment variable FLUIDCC_FAST_CPU is 1."""
    if os.environ.get(VARIABLE) == "1":
        fast_cpu()
