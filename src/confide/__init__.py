"""Prediction sets with a finite-sample coverage guarantee and a differential-privacy guarantee.

    scores -> counts over public candidates -> private draw -> release -> prediction sets

Examples
--------
>>> import numpy as np, confide
>>> rng = np.random.default_rng(0)
>>> probabilities, labels = rng.dirichlet(np.ones(3), 2000), rng.integers(0, 3, 2000)
>>> scores = confide.lac_score(probabilities, labels)
>>> released = confide.calibrate(scores, alpha=0.1, epsilon=1.0)
>>> sets = confide.predict_set(probabilities[:5], released)
>>> sets.mask.shape
(5, 3)
"""

from importlib import import_module

# The stub lists each name once: `from confide.scores import aps_score as aps_score`.
_STUB = __spec__.loader.get_data(f"{__path__[0]}/__init__.pyi").decode()  # works in a zip file as well
_HOMES = {line.split()[3]: line.split()[1] for line in _STUB.splitlines() if line.startswith("from ")}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Import a name from its package, or a package, when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("confide")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        value = _package(name)
    globals()[name] = value
    return value


def _package(name: str) -> object:
    """The package of this name, imported."""
    try:
        if not name.startswith("_"):  # __main__ would run the command line
            return import_module(f"confide.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"confide.{name}":  # a package that it needs
            raise
    raise AttributeError(f"module 'confide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
