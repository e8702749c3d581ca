"""`import confide` is light: numpy and the standard library, nothing else."""

import subprocess
import sys

import pytest

import confide

HEAVY = {
    "msgspec", "opendp", "scipy", "sklearn", "duckdb", "pyarrow", "pandas", "polars", "narwhals", "matplotlib", "torch",
    "click", "rich", "jinja2",
}  # fmt: skip
EXPENSIVE_STANDARD = {
    "asyncio", "multiprocessing", "email", "http", "ssl", "sqlite3", "tempfile", "unittest", "xml", "logging",
    "concurrent",
}  # fmt: skip


def modules_after(program: str) -> set[str]:
    """The modules that a program has loaded."""
    program += "; import sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_import_loads_nothing_heavy_and_few_modules_beyond_numpy():
    """An annotation such as np.random.Generator would load numpy's random package."""
    added = modules_after("import confide") - modules_after("import numpy")
    assert "confide" in added
    assert not {name.split(".")[0] for name in added} & (HEAVY | EXPENSIVE_STANDARD)
    assert not [name for name in added if name.startswith("numpy.random")]


PREDICTION = """import confide, numpy as np
p = np.full((2, 2), 0.5)
scores = confide.lac_score(p, [0, 1])
confide.ScoreHistogram.from_scores(scores, confide.Candidates.unit(10))
confide.PredictionSets(p > 0.5).labels()"""
CALIBRATION = """import confide, numpy as np
confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, score="lac", neighbors="replace_one")"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "needed"),
    [
        (PREDICTION, set()),  # reading a calibration needs more
        (CALIBRATION, {"opendp"}),  # whose prelude would import scikit-learn, pandas and polars, in over a second
        ("import confide; confide.plan(alpha=0.1, epsilon=1.0)", {"scipy"}),
    ],
    ids=["prediction", "calibration", "plan"],
)
def test_a_use_loads_nothing_heavy_that_it_does_not_need(program, needed):
    assert not {name.split(".")[0] for name in modules_after(program)} & (HEAVY - needed)


def test_public_names():
    assert sorted(confide.__all__) == confide.__all__
    for name in confide.__all__:
        assert getattr(confide, name).__doc__


def test_errors_are_standard_errors_too():
    assert issubclass(confide.errors.InputError, ValueError)
    assert issubclass(confide.errors.InputTypeError, TypeError)
    assert issubclass(confide.errors.FormatError, confide.errors.InputError)
    assert issubclass(confide.CoverageWarning, UserWarning)
    for error in (confide.errors.InputError, confide.errors.InputTypeError, confide.errors.FormatError):
        assert issubclass(error, confide.ConfideError)


def test_dir_is_what_there_is_to_use():
    listed = dir(confide)
    assert set(confide.__all__) <= set(listed)
    assert {"PrivateConformalClassifier", "Ledger", "__version__"} <= set(listed)
    assert not {"Any", "TYPE_CHECKING", "import_module", "blocks", "cells", "loops"} & set(listed)
    assert all(hasattr(confide, name) for name in listed)
