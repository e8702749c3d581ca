"""`import confide` is light: numpy and the standard library, nothing else."""

import subprocess
import sys

import pytest

HEAVY = [
    "msgspec",
    "opendp",
    "scipy",
    "sklearn",
    "duckdb",
    "pyarrow",
    "pandas",
    "polars",
    "narwhals",
    "matplotlib",
    "torch",
    "click",
    "rich",
    "jinja2",
]
EXPENSIVE_STANDARD = [
    "asyncio",
    "multiprocessing",
    "email",
    "http",
    "ssl",
    "sqlite3",
    "tempfile",
    "unittest",
    "xml",
    "logging",
    "concurrent",
]


def modules_after(program: str) -> set[str]:
    program += "; import sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return modules_after("import confide")


@pytest.mark.parametrize("library", HEAVY)
def test_import_loads_nothing_heavy(loaded, library):
    assert library not in loaded


@pytest.mark.slow
def test_import_loads_few_modules_beyond_numpy(loaded):
    added = loaded - modules_after("import numpy")
    assert "confide" in added
    assert not added & set(EXPENSIVE_STANDARD)


@pytest.mark.slow
def test_import_loads_no_more_of_numpy_than_numpy_does():
    """An annotation such as np.random.Generator would load numpy's random package."""
    program = "import {}, sys; print(*[name for name in sys.modules if name.startswith('numpy.random')])"
    for module in ("numpy", "confide"):
        done = subprocess.run(
            [sys.executable, "-c", program.format(module)], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == []


@pytest.mark.slow
def test_prediction_loads_nothing_heavy():
    """Prediction needs neither the privacy library nor scipy; reading a calibration does."""
    program = """import confide, numpy as np
p = np.full((2, 2), 0.5)
scores = confide.lac_score(p, [0, 1])
confide.ScoreHistogram.from_scores(scores, confide.Candidates.unit(10))
confide.PredictionSets(p > 0.5).labels()"""
    assert not modules_after(program) & set(HEAVY)


@pytest.mark.slow
def test_a_first_calibration_loads_nothing_that_it_does_not_use():
    """OpenDP's prelude would import scikit-learn, pandas and polars, which takes over a second."""
    program = """import confide, numpy as np
confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, score="lac", neighbors="replace_one")"""
    assert not modules_after(program) & (set(HEAVY) - {"opendp"})


@pytest.mark.slow
def test_planning_does_not_load_the_privacy_library():
    assert not modules_after("import confide; confide.plan(alpha=0.1, epsilon=1.0)") & (set(HEAVY) - {"scipy"})


def test_public_names():
    import confide

    assert sorted(confide.__all__) == confide.__all__
    for name in confide.__all__:
        assert getattr(confide, name).__doc__


def test_errors_are_standard_errors_too():
    import confide

    assert issubclass(confide.errors.InputError, ValueError)
    assert issubclass(confide.errors.InputTypeError, TypeError)
    assert issubclass(confide.errors.FormatError, confide.errors.InputError)
    assert issubclass(confide.CoverageWarning, UserWarning)
    for error in (confide.errors.InputError, confide.errors.InputTypeError, confide.errors.FormatError):
        assert issubclass(error, confide.ConfideError)


def test_dir_is_what_there_is_to_use():
    import confide

    listed = dir(confide)
    assert set(confide.__all__) <= set(listed)
    assert {"PrivateConformalClassifier", "Ledger", "__version__"} <= set(listed)
    assert not {"Any", "TYPE_CHECKING", "import_module", "blocks", "cells", "loops"} & set(listed)
    assert all(hasattr(confide, name) for name in listed)
