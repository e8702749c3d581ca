"""Run the same call with and without Numba in one process."""

from contextlib import contextmanager
from importlib.util import find_spec

import confide.arrays.compiled

NUMBA = find_spec("numba") is not None
if NUMBA:
    import numba  # noqa: F401  from here on the compiled loops serve calls of any size


@contextmanager
def numpy_alone():
    """Context in which calls behave as if Numba were not installed."""
    kept = confide.arrays.compiled._loads
    confide.arrays.compiled._loads = lambda: False
    try:
        yield
    finally:
        confide.arrays.compiled._loads = kept
