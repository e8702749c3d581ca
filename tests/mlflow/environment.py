"""The environment of MLflow, which asks for other versions than the other extras."""

import os
from pathlib import Path

import pytest

FOUND = Path(__file__).parents[2] / ".venv-mlflow" / "bin" / "python"


def mlflow_python() -> Path:
    """Its interpreter: CONFIDE_MLFLOW, or the one that `nox -s mlflow` sets up; without one the test is skipped."""
    found = Path(os.environ.get("CONFIDE_MLFLOW", FOUND))
    if not found.exists():
        pytest.skip("needs MLflow's environment: `nox -s mlflow` sets it up, CONFIDE_MLFLOW names its interpreter")
    return found
