"""The model in front of a release: how it is kept among the files, and what it gives for rows of a table.

An estimator of scikit-learn is kept by MLflow's flavour for them, a function by its python_function flavour; both
pickle the user's object, as MLflow does. Any other model is copied from where MLflow finds it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd

from confide.errors import InputError, InputTypeError

Outputs = Callable[[Any], Any]


def keep(model: Any, folder: Path) -> Path:
    """The folder of an MLflow model that holds what somebody handed over, in `folder` if it has to be written.

    Raises
    ------
    InputError, InputTypeError
        If it is neither an estimator nor a function nor the address of a model.
    """
    if isinstance(model, str | Path):
        found = Path(mlflow.artifacts.download_artifacts(str(model)))
        if not (found / "MLmodel").is_file():
            raise InputError(f"model must be the address of an MLflow model; {str(model)!r} holds none")
        return found
    path = folder / "model"
    if hasattr(model, "get_params") and hasattr(model, "predict"):
        mlflow.sklearn.save_model(model, str(path), serialization_format="cloudpickle")
    elif callable(model):
        mlflow.pyfunc.save_model(str(path), python_model=_Function(model))
    else:
        raise InputTypeError(
            f"model must be an estimator of scikit-learn, a function, or the address of an MLflow model; found "
            f"{type(model).__name__}; log it with MLflow's own flavour and give its address"
        )
    return path


class _Function(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A function of the rows as a model of MLflow."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:
        return self.function(model_input)


def outputs_of(path: Path, *, probabilities: bool) -> tuple[Outputs, list[Any] | None]:
    """What a kept model gives for rows, and its classes: probabilities of an estimator, else what it predicts.

    Raises
    ------
    InputTypeError
        If it is an estimator without probabilities, where these are needed.
    """
    if "sklearn" not in mlflow.models.Model.load(str(path)).flavors:
        predict = mlflow.pyfunc.load_model(str(path)).predict
        return predict, None
    estimator = mlflow.sklearn.load_model(str(path))
    if not probabilities:
        return lambda rows: np.asarray(estimator.predict(rows)), None
    if not hasattr(estimator, "predict_proba"):
        raise InputTypeError(
            f"model must have predict_proba; {type(estimator).__name__} has none: wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, which estimates probabilities"
        )
    return estimator.predict_proba, np.asarray(estimator.classes_).tolist()


def requirements_of(path: Path) -> list[str]:
    """What a kept model needs to have installed, but for MLflow itself."""
    file = path / "requirements.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    own = ("mlflow", "confide", "numpy", "pandas", "-", "#")
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith(own)]


def digest(path: Path) -> str:
    """SHA-256 over the names and contents of all files in a folder."""
    total = hashlib.sha256()
    for file in sorted(one for one in path.rglob("*") if one.is_file() and "__pycache__" not in one.parts):
        name = file.relative_to(path).as_posix().encode()
        content = hashlib.sha256(file.read_bytes()).digest()
        total.update(len(name).to_bytes(8, "big") + name + content)
    return total.hexdigest()
