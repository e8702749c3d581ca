"""Prediction sets with a finite-sample coverage guarantee and a differential-privacy guarantee.

    scores -> histogram over public candidates -> private selection -> Calibration -> prediction sets

Examples
--------
>>> import numpy as np, confide
>>> rng = np.random.default_rng(0)
>>> probabilities, labels = rng.dirichlet(np.ones(3), 2000), rng.integers(0, 3, 2000)
>>> scores = confide.lac_score(probabilities, labels)
>>> calibration = confide.calibrate(scores, alpha=0.1, epsilon=1.0, score="lac")
>>> sets = confide.predict_set(probabilities[:5], calibration)
>>> sets.mask.shape
(5, 3)
"""

from importlib import import_module

# Each name stands once, in the stub: `from confide.scores import aps_score as aps_score`.
_STUB = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()  # which finds it in a zip, too
_HOMES = {line.split()[3]: line.split()[1] for line in _STUB.splitlines() if line.startswith("from ")}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """A name is imported from its package, and a package with all that it needs, when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        found: object = version("confide")
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    elif f"confide.{name}" in _HOMES.values():
        found = import_module(f"confide.{name}")
    else:
        raise AttributeError(f"module 'confide' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """What there is to use."""
    return [*__all__, "__version__"]
