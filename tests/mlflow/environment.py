"""A separate environment for MLflow, which needs other versions than the other extras."""

import os
from pathlib import Path

import pytest

FOUND = Path(__file__).parents[2] / ".venv-mlflow" / "bin" / "python"


def mlflow_python() -> Path:
    """Its interpreter: CONFIDE_MLFLOW, or that of `nox -s mlflow`; without one the test is skipped."""
    found = Path(os.environ.get("CONFIDE_MLFLOW", FOUND))
    if not found.exists():
        pytest.skip("needs MLflow's environment: `nox -s mlflow` sets it up, CONFIDE_MLFLOW names its interpreter")
    return found
