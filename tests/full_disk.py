"""A disk that is full."""

import resource
from contextlib import contextmanager


@contextmanager
def small_files(size):
    """No file may grow beyond a size [B], as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
