"""The release and the model of a logged model, for programs that use them without MLflow's tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow

from confide.errors import ConfideError, FormatError
from confide.mlflow.model import CALIBRATION, MODEL, ConformalModel
from confide.mlflow.wrapped import Outputs
from confide.releases import Release
from confide.support import one_line

_LOADER = "mlflow.pyfunc.loaders.code_model"  # models are logged as code


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
    artifacts, config = _described(path, str(uri))
    model = ConformalModel()
    model.load_context(mlflow.pyfunc.PythonModelContext(artifacts, config))
    try:
        served = mlflow.pyfunc.load_model(str(path))
    except ConfideError:
        raise
    except Exception as error:  # whatever MLflow, or the model in front, makes of a description that was changed
        raise FormatError(
            f"MLflow cannot load {str(uri)!r}: {type(error).__name__}: {one_line(str(error))[:300]}"
        ) from error
    return LoadedModel(model.release, model.outputs, served)


def _described(path: Path, uri: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Where the release and the model in front lie, and what was logged of them; refused if it is not as written."""
    foreign = FormatError(f"{uri!r} is no model that confide.mlflow wrote")
    try:
        flavour = mlflow.models.Model.load(str(path)).flavors["python_function"]
        if flavour["loader_module"] != _LOADER:
            raise foreign
        entries, config = flavour["artifacts"], dict(flavour["config"])
        artifacts = {name: path / entry["path"] for name, entry in entries.items()}
        inside = all(part.resolve().is_relative_to(path.resolve()) and part.exists() for part in artifacts.values())
    except (KeyError, TypeError, ValueError, AttributeError, mlflow.exceptions.MlflowException):
        raise foreign from None
    stated = {CALIBRATION: "checksum", MODEL: "digest"}
    if CALIBRATION not in artifacts or not artifacts.keys() <= stated.keys() or not inside:
        raise foreign
    if not all(isinstance(config.get(stated[name]), str) for name in artifacts):
        raise foreign
    return {name: str(part) for name, part in artifacts.items()}, config
