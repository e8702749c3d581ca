"""Answers of a logged model, with its release and inner model; and both again, for programs without MLflow.

An inner estimator of scikit-learn is stored by MLflow's flavour for them, a function by its python_function flavour;
both pickle the user's object, as MLflow does. Any other model is copied from its MLflow location.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException

from confide.errors import ConfideError, FormatError, InputError, InputTypeError
from confide.releases import Release, classes_of, facts_of, load_release, refuse_overlapping, reminder_due
from confide.sets import predict_interval, predict_labels, predict_set
from confide.support import escape_line

Outputs = Callable[[Any], Any]

CALIBRATION, MODEL = "calibration", "model"
"""The artifacts: the release, and the inner model, if there is one."""

_LOADER = "mlflow.pyfunc.loaders.code_model"  # models are logged as code


class ConformalModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A model of MLflow: for each row it returns labels and size of a set, or the ends of an interval.

    `confide.mlflow.log_model` writes such models; MLflow creates and calls them.

    Attributes
    ----------
    release
        The release, after the artifacts are read.
    outputs
        The inner model, a function from rows to its outputs; None if the rows are the outputs.
    """

    release: Release
    outputs: Outputs | None
    options: dict[str, Any]

    def load_context(self, context: Any) -> None:
        """Read the release, verify its claims, and read the inner model.

        Raises
        ------
        FormatError
            If one of them is not the logged one.
        """
        self.options = dict(context.model_config or {})
        self.release = load_release(Path(context.artifacts[CALIBRATION]))
        check_logged_checksum("calibration", self.release.checksum, self.options["checksum"])
        self.outputs = None
        if MODEL in context.artifacts:
            path = Path(context.artifacts[MODEL])
            check_logged_checksum("model", digest(path), self.options["digest"])
            reminder_due(self.release)  # no longer: the model is the one that was logged with the release
            self.outputs, _ = outputs_of(path, probabilities=task_of(self.release) == "classification")

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """The answers for rows of a table.

        Parameters
        ----------
        context
            Unused.
        model_input
            A data frame, or an array for a release of unnamed classes: inputs of the inner model, or probabilities,
            predictions or quantiles; with the columns of groups and difficulties, if the release needs them.
        params
            `alpha`: one of several levels. `labels`: False for the positions of classes instead of their names.

        Returns
        -------
        pandas.DataFrame
            `labels` (a list per row), `size`, or `lower` and `upper`; and `promise`.

        Raises
        ------
        MlflowException
            If the rows cannot be used, with the error message of confide; a server answers with status 400.
        """
        try:
            return self._answer(model_input, dict(params or {}))
        except ConfideError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from None

    def _answer(self, rows: Any, params: dict[str, Any]) -> pd.DataFrame:
        chosen: Any = self.release.at(params.get("alpha"))
        given = {name: _taken(rows, self.options.get(name), name) for name in ("groups", "difficulty")}
        if columns := [self.options[name] for name in given if self.options.get(name) is not None]:
            rows = rows.drop(columns=columns)
        arguments = {name: values for name, values in given.items() if values is not None}
        promise = facts_of(chosen)["promise"]
        if task_of(self.release) == "regression":
            ends = predict_interval(self._predictions(rows), chosen, **arguments)
            return pd.DataFrame({"lower": ends.lower, "upper": ends.upper, "promise": promise})
        p = rows if self.outputs is None else self.outputs(rows)
        names = self.options.get("classes") if self.outputs is not None else None
        sets = predict_labels(p, chosen, names) if chosen.by == "loss" else predict_set(p, chosen, names, **arguments)
        if params.get("labels") is False:
            sets = type(sets)(sets.mask)
        return pd.DataFrame({"labels": sets.labels(), "size": sets.sizes, "promise": promise})

    def _predictions(self, rows: Any) -> Any:
        outputs = np.asarray(rows if self.outputs is None else self.outputs(rows), dtype=np.float64)
        return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs


def task_of(release: Release) -> str:
    """Whether a release makes sets (`classification`) or intervals (`regression`)."""
    return "classification" if release.by == "loss" else release.task


def needs(release: Release) -> dict[str, bool]:
    """The columns that a release needs in addition to inputs or outputs of the model."""
    refuse_overlapping(release)
    return {"groups": release.by == "group", "difficulty": release.first.score == "normalised_residual"}


def class_names(release: Release) -> list[str | int] | None:
    """The names of the classes of a release, if they have names."""
    classes = classes_of(release)
    return list(classes) if isinstance(classes, tuple) else None


def check_logged_checksum(what: str, found: str, logged: str) -> None:
    """Raise an error if a file does not have the logged checksum."""
    if found != logged:
        raise FormatError(what, "is not the one that was logged: its checksum does not match", remedy="Log it again")


def _taken(rows: Any, column: str | None, name: str) -> Any:
    if column is None:
        return None
    if not hasattr(rows, "columns") or column not in rows.columns:
        raise InputError(name, f"must be given as the column {column!r}", remedy="The rows have no such column")
    return rows[column].to_numpy()


def store_model(model: Any, folder: Path) -> Path:
    """The folder of an MLflow model with the user's model, in `folder` if it has to be written.

    Raises
    ------
    InputError, InputTypeError
        If it is neither an estimator nor a function nor the address of a model.
    """
    if isinstance(model, str | Path):
        downloaded = Path(mlflow.artifacts.download_artifacts(str(model)))
        if not (downloaded / "MLmodel").is_file():
            raise InputError("model", "must be the address of an MLflow model", remedy=f"{str(model)!r} contains none")
        return downloaded
    path = folder / "model"
    if hasattr(model, "get_params") and hasattr(model, "predict"):
        mlflow.sklearn.save_model(model, str(path), serialization_format="cloudpickle")
    elif callable(model):
        mlflow.pyfunc.save_model(str(path), python_model=_Function(model))
    else:
        raise InputTypeError(
            "model",
            "must be an estimator of scikit-learn, a function, or the address of an MLflow model",
            got=type(model).__name__,
            remedy="Log it with MLflow's own flavour and give its address",
        )
    return path


class _Function(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A function of the rows as a model of MLflow."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:
        return self.function(model_input)


def outputs_of(path: Path, *, probabilities: bool) -> tuple[Outputs, list[Any] | None]:
    """The outputs of a stored model as a function of rows (probabilities, or else predictions), and its classes.

    Raises
    ------
    InputTypeError
        If it is an estimator without probabilities, and these are needed.
    """
    if "sklearn" not in mlflow.models.Model.load(str(path)).flavors:
        predict = mlflow.pyfunc.load_model(str(path)).predict
        return predict, None
    estimator = mlflow.sklearn.load_model(str(path))
    if not probabilities:
        return lambda rows: np.asarray(estimator.predict(rows)), None
    if not hasattr(estimator, "predict_proba"):
        raise InputTypeError(
            "model",
            "must have predict_proba",
            remedy=(
                f"{type(estimator).__name__} has none: wrap it in sklearn.calibration.CalibratedClassifierCV, "
                "which estimates probabilities"
            ),
        )
    return estimator.predict_proba, np.asarray(estimator.classes_).tolist()


def requirements_of(path: Path) -> list[str]:
    """The requirements of a stored model, except MLflow itself."""
    file = path / "requirements.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    omitted = ("mlflow", "confide", "numpy", "pandas", "-", "#")
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith(omitted)]


def digest(path: Path) -> str:
    """SHA-256 over the names and contents of all files in a folder."""
    total = hashlib.sha256()
    for file in sorted(entry for entry in path.rglob("*") if entry.is_file() and "__pycache__" not in entry.parts):
        name = file.relative_to(path).as_posix().encode()
        content = hashlib.sha256(file.read_bytes()).digest()
        total.update(len(name).to_bytes(8, "big") + name + content)
    return total.hexdigest()


@dataclass(frozen=True)
class LoadedModel:
    """A logged model.

    Parameters
    ----------
    release
        The release, whose claims were verified.
    outputs
        The inner model: a function from rows to probabilities, predictions or quantiles; None without one.
    pyfunc
        The logged model as MLflow's `PyFuncModel`; a server answers with its `predict(rows, params=...)`.
    """

    release: Release
    outputs: Outputs | None
    pyfunc: Any


def load_model(uri: str | Path) -> LoadedModel:
    """Load a model of `log_model` or `save_model`, from a folder or any address that MLflow supports.

    Raises
    ------
    FormatError
        If it is not such a model, or if the release or the inner model is not the logged one.
    """
    path = Path(mlflow.artifacts.download_artifacts(str(uri)))
    artifacts, config = _read_description(path, str(uri))
    model = ConformalModel()
    model.load_context(mlflow.pyfunc.PythonModelContext(artifacts, config))
    try:
        served = mlflow.pyfunc.load_model(str(path))
    except ConfideError:
        raise
    except Exception as error:  # any error of MLflow, or of the inner model, for a changed description
        raise FormatError(
            "model_uri", f"MLflow cannot load {str(uri)!r}: {type(error).__name__}: {escape_line(str(error))[:300]}"
        ) from error
    return LoadedModel(model.release, model.outputs, served)


def _read_description(path: Path, uri: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The locations of the release and the inner model, and the logged checksums; raises an error if it was changed."""
    foreign = FormatError("model_uri", f"{uri!r} is not a model of confide.mlflow")
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
