"""The environment of MLflow, which asks for other versions than the other extras."""

import os
from pathlib import Path

import pytest

FOUND = Path(__file__).parents[2] / ".venv-mlflow" / "bin" / "python"


def mlflow_python() -> Path:
    """Its interpreter: CONFIDE_MLFLOW, or the one that `make mlflow` sets up; the test is skipped if there is none."""
    found = Path(os.environ.get("CONFIDE_MLFLOW", FOUND))
    if not found.exists():
        pytest.skip("needs MLflow's environment: `make mlflow` sets it up, CONFIDE_MLFLOW names its interpreter")
    return found
