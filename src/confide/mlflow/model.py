"""What a logged model answers: a table with the set or the interval of every row, and what is promised of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.exceptions import MlflowException

from confide.errors import ConfideError, FormatError, InputError
from confide.mlflow.wrapped import Outputs, digest, outputs_of
from confide.releases import (
    Release,
    classes_of,
    facts_of,
    load_release,
)
from confide.sets import predict_interval, predict_labels, predict_set

CALIBRATION, MODEL = "calibration", "model"
"""The artifacts: the release, and the model in front of it, if there is one."""


class ConformalModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A model of MLflow: rows in, one row each out, with labels and size of its set, or with the ends of its interval.

    `confide.mlflow.log_model` writes such models; MLflow makes and asks them.

    Attributes
    ----------
    release
        The release, once the artifacts are read.
    outputs
        The model in front of it, a function from rows to its outputs; None if the rows are the outputs.
    """

    release: Release
    outputs: Outputs | None
    options: dict[str, Any]

    def load_context(self, context: Any) -> None:
        """Read the release, checking its claims, and the model in front.

        Raises
        ------
        FormatError
            If one of them is not what was logged.
        """
        self.options = dict(context.model_config or {})
        self.release = load_release(Path(context.artifacts[CALIBRATION]))
        refuse_other("calibration", self.release.checksum, self.options["checksum"])
        self.outputs = None
        if MODEL in context.artifacts:
            path = Path(context.artifacts[MODEL])
            refuse_other("model", digest(path), self.options["digest"])
            self.outputs, _ = outputs_of(path, probabilities=task_of(self.release) == "classification")

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """The answers for rows of a table.

        Parameters
        ----------
        context
            MLflow's; not used.
        model_input
            A data frame, or an array for a release of unnamed classes: what the model in front takes, or probabilities,
            predictions or quantiles; with the columns of groups and difficulties, where the release needs them.
        params
            `alpha`: one of several levels. `labels`: False for the places of classes instead of their names.

        Returns
        -------
        pandas.DataFrame
            `labels` (a list per row), `size`, or `lower` and `upper`; and `promise`.

        Raises
        ------
        MlflowException
            If the rows cannot be used, with what confide says of it; a server answers with status 400.
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
        known = {name: values for name, values in given.items() if values is not None}
        promise = facts_of(chosen)["promise"]
        if task_of(self.release) == "regression":
            ends = predict_interval(self._predictions(rows), chosen, **known)
            return pd.DataFrame({"lower": ends.lower, "upper": ends.upper, "promise": promise})
        p = rows if self.outputs is None else self.outputs(rows)
        names = self.options.get("classes") if self.outputs is not None else None
        sets = predict_labels(p, chosen, names) if chosen.by == "loss" else predict_set(p, chosen, names, **known)
        if params.get("labels") is False:
            sets = type(sets)(sets.mask)
        return pd.DataFrame({"labels": sets.labels(), "size": sets.sizes, "promise": promise})

    def _predictions(self, rows: Any) -> Any:
        found = np.asarray(rows if self.outputs is None else self.outputs(rows), dtype=np.float64)
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def task_of(release: Release) -> str:
    """Whether a release makes sets (`classification`) or intervals (`regression`)."""
    return "classification" if release.by == "loss" else release.task


def needs(release: Release) -> dict[str, bool]:
    """Which columns a release needs besides what the model takes or gives."""
    return {"groups": release.by == "group", "difficulty": release.first.score == "normalised_residual"}


def class_names(release: Release) -> list[str | int] | None:
    """The names of the classes that a release is for, if it has names."""
    known = classes_of(release)
    return list(known) if isinstance(known, tuple) else None


def refuse_other(what: str, found: str, logged: str) -> None:
    """Refuse a file that is not the one whose checksum was logged."""
    if found != logged:
        raise FormatError(f"the {what} is not the one that was logged: its checksum does not match; log it again")


def _taken(rows: Any, column: str | None, name: str) -> Any:
    if column is None:
        return None
    if not hasattr(rows, "columns") or column not in rows.columns:
        raise InputError(f"{name} must be given as the column {column!r}; the rows have none of this name")
    return rows[column].to_numpy()
