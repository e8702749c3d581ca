"""The release and the model of a logged model, for programs that use them without MLflow's tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow

from confide.errors import FormatError
from confide.mlflow.model import CALIBRATION, MODEL, ConformalModel
from confide.mlflow.wrapped import Outputs
from confide.releases import Release


@dataclass(frozen=True)
class LoadedModel:
    """What a logged model holds.

    Parameters
    ----------
    release
        The release, with its claims computed again.
    outputs
        The model in front of it: a function from rows to probabilities, predictions or quantiles; None without one.
    pyfunc
        The same as MLflow's `PyFuncModel`, whose `predict(rows, params=...)` is what a server answers.
    """

    release: Release
    outputs: Outputs | None
    pyfunc: Any


def load_model(uri: str | Path) -> LoadedModel:
    """Load what `log_model` or `save_model` wrote, from a folder or any address that MLflow knows.

    Raises
    ------
    FormatError
        If it is no such model, or the release or the model in front is not the one that was logged.
    """
    path = Path(mlflow.artifacts.download_artifacts(str(uri)))
    try:
        flavour = mlflow.models.Model.load(str(path)).flavors["python_function"]
        artifacts = {name: str(path / entry["path"]) for name, entry in flavour["artifacts"].items()}
        context = mlflow.pyfunc.PythonModelContext(artifacts, flavour["config"])
    except (KeyError, mlflow.exceptions.MlflowException):
        raise FormatError(f"{str(uri)!r} is no model that confide.mlflow wrote") from None
    if CALIBRATION not in artifacts or set(artifacts) > {CALIBRATION, MODEL}:
        raise FormatError(f"{str(uri)!r} is no model that confide.mlflow wrote")
    model = ConformalModel()
    model.load_context(context)
    return LoadedModel(model.release, model.outputs, mlflow.pyfunc.load_model(str(path)))
