"""Write a release, with or without a model, as an MLflow model: files, signature, tags and requirements."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.models import ModelSignature, infer_signature
from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema, TensorSpec
from mlflow.types.schema import Array

from confide.errors import InputError, InputTypeError
from confide.mlflow.model import (
    CALIBRATION,
    MODEL,
    class_names,
    digest,
    needs,
    outputs_of,
    requirements_of,
    store_model,
    task_of,
)
from confide.releases import ModelFingerprint, Release, classes_of, facts_of, names_for, warn_about


def log_model(
    release: Release,
    model: Any = None,
    *,
    name: str = "model",
    input_example: Any = None,
    signature: ModelSignature | None = None,
    classes: Sequence[str | int] | None = None,
    groups: str = "group",
    difficulty: str = "difficulty",
    probe: Any = None,
    tags: Mapping[str, str] | None = None,
    pip_requirements: Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """Log a model that serves prediction sets or intervals, in the active run of MLflow.

    Parameters
    ----------
    release
        A release of any kind that makes sets or intervals. It is stored as JSON; no object of confide is pickled.
    model
        The inner model: a fitted estimator of scikit-learn, a function of a data frame, or the address of a model that
        MLflow can load (`models:/...`, `runs:/...`, a folder). It returns class probabilities, predictions, or for CQR
        two columns of quantiles. Without an inner model, callers send these.
    name
        The name of the logged model.
    input_example
        Some rows for the inner model, from which the signature is inferred. A release alone needs none.
    signature
        Your own signature instead; its outputs and params are replaced by those of the answers.
    classes
        The names of the model's columns in their order: by default the estimator's `classes_`, else the release's.
    groups, difficulty
        For thresholds per group, and for `normalised_residual`: the columns with each row's group and difficulty.
    probe
        PUBLIC rows for the inner model: its outputs for them must have the fingerprint that the release states.
    tags
        Added to those of the release: `confide.alpha`, `epsilon`, `promise`, `privacy`, `score`, `checksum`, `version`.
    pip_requirements
        Replaces the default: the installed versions of confide, numpy, pandas and MLflow, and the requirements of the
        inner model.
    **options
        Arguments for `mlflow.pyfunc.log_model`, such as `registered_model_name`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        MLflow's description of the logged model.

    Raises
    ------
    InputError, InputTypeError
        If the release makes neither sets nor intervals, the inner model has another type or another fingerprint, or no
        signature can be inferred.

    Notes
    -----
    Coverage is guaranteed for records like the calibration records, and for the model whose scores calibrated: log the
    release together with that model.
    """
    arguments = _LogArguments(input_example, signature, classes, groups, difficulty, probe, pip_requirements)
    with _prepare_files(release, model, arguments) as parts:
        all_tags = {**parts["metadata"], **(tags or {})}
        info = mlflow.pyfunc.log_model(name=name, tags=all_tags, **parts, **options)
    warn_about(release)
    return info


def save_model(
    release: Release,
    path: str | Path,
    model: Any = None,
    *,
    input_example: Any = None,
    signature: ModelSignature | None = None,
    classes: Sequence[str | int] | None = None,
    groups: str = "group",
    difficulty: str = "difficulty",
    probe: Any = None,
    pip_requirements: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Write the same model to a folder, without a run. The tags are in the `metadata` of its file MLmodel.

    Parameters, errors and notes as in `log_model`; `**options` are those of `mlflow.pyfunc.save_model`.
    """
    arguments = _LogArguments(input_example, signature, classes, groups, difficulty, probe, pip_requirements)
    with _prepare_files(release, model, arguments) as parts:
        mlflow.pyfunc.save_model(str(path), **parts, **options)
    warn_about(release)


@dataclass(frozen=True)
class _LogArguments:
    """Arguments of `log_model` and `save_model`, except the release and the model."""

    example: Any
    signature: ModelSignature | None
    classes: Sequence[str | int] | None
    groups: str
    difficulty: str
    probe: Any
    requirements: Sequence[str] | None


@contextmanager
def _prepare_files(release: Release, model: Any, arguments: _LogArguments) -> Iterator[dict[str, Any]]:
    """Arguments for MLflow, whose files exist for the time of the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield _parts(release, model, Path(folder), arguments)


def _parts(release: Release, model: Any, folder: Path, arguments: _LogArguments) -> dict[str, Any]:
    if not isinstance(release, Release):
        raise InputTypeError("release", "must be a release of confide", got=type(release).__name__)
    if task_of(release) == "any":
        raise InputError("release", "must be for a score of classes or for intervals", got="one of your own")
    columns = {name: getattr(arguments, name) for name, needed in needs(release).items() if needed}
    config: dict[str, Any] = {"checksum": release.checksum, **columns}
    names = class_names(release) if arguments.classes is None else list(arguments.classes)
    signature = arguments.signature
    release.save(folder / "calibration.json")
    artifacts = {CALIBRATION: str(folder / "calibration.json")}
    required = _requirements()
    if model is None and arguments.probe is not None:
        raise InputError("probe", "must be left out without a model")
    if model is not None:
        kept = store_model(model, folder)
        copied = shutil.copytree(kept, folder / MODEL, dirs_exist_ok=True) if kept != folder / MODEL else kept
        artifacts[MODEL] = str(copied)
        config["digest"] = digest(copied)
        required += requirements_of(copied)
        probabilities = task_of(release) == "classification"
        outputs, trained = outputs_of(copied, probabilities=probabilities)
        if arguments.probe is not None:
            release.for_model(ModelFingerprint.of(outputs(arguments.probe)))
        if probabilities:
            names = trained if arguments.classes is None and trained is not None else names
            if names is not None:
                names_for(release, tuple(names), len(names))  # raises an error for a model with other classes
        if signature is None and arguments.example is None:
            signature = mlflow.models.Model.load(str(copied)).signature
    if names is not None and task_of(release) == "classification":
        config["classes"] = names
    return {
        "python_model": str(Path(__file__).with_name("served.py")),
        "artifacts": artifacts,
        "model_config": config,
        "signature": _signature(release, model, arguments.example, signature, config, columns),
        "pip_requirements": arguments.requirements or required,
        "metadata": {f"confide.{key}": text for key, text in facts_of(release).items()},
    }


def _signature(
    release: Release,
    model: Any,
    example: Any,
    given: ModelSignature | None,
    config: dict[str, Any],
    columns: dict[str, str],
) -> ModelSignature:
    """The inputs that are inferred, or given, with the outputs and params of all these models."""
    if given is not None:
        inputs = given.inputs
    elif model is None:
        inputs = _plain_inputs(release, config, columns)
    elif example is not None:
        inputs = infer_signature(example).inputs
    else:
        raise InputError(
            "input_example", "must be given, some rows that the model accepts, from which its signature is inferred"
        )
    named = set(inputs.input_names()) if inputs is not None and inputs.has_input_names() else set()
    if model is not None and (missing := {name: DataType.string for name in columns.values() if name not in named}):
        if inputs is None or inputs.is_tensor_spec():
            raise InputError(
                "input_example", f"must be a data frame: the release needs the column {next(iter(missing))!r}"
            )
        inputs = Schema([*inputs.inputs, *_extra(columns, missing)])
    return ModelSignature(inputs=inputs, outputs=_outputs(release, config), params=_params())


def _plain_inputs(release: Release, config: dict[str, Any], columns: dict[str, str]) -> Schema:
    """The inputs without an inner model: a column per class, or for unnamed classes one array."""
    extra = _extra(columns, columns.values())
    if task_of(release) == "regression":
        names = ["lower", "upper"] if "cqr" in str(release.first.score) else ["prediction"]
        return Schema([*(ColSpec(DataType.double, name) for name in names), *extra])
    names = [str(name) for name in config.get("classes", ())]
    class_list = classes_of(release)
    if not names and not extra:
        return Schema([TensorSpec(np.dtype(np.float64), (-1, class_list if isinstance(class_list, int) else -1))])
    if not names:
        if not isinstance(class_list, int):
            raise InputError("classes", "must be given: the release does not state which columns there are")
        names = [str(place) for place in range(class_list)]
    return Schema([*(ColSpec(DataType.double, name) for name in names), *extra])


def _extra(columns: dict[str, str], wanted: Any) -> list[ColSpec]:
    kinds = {"groups": DataType.string, "difficulty": DataType.double}
    return [ColSpec(kinds[name], column) for name, column in columns.items() if column in wanted]


def _outputs(release: Release, config: dict[str, Any]) -> Schema:
    if task_of(release) == "regression":
        columns = [ColSpec(DataType.double, "lower"), ColSpec(DataType.double, "upper")]
    else:
        texts = any(isinstance(name, str) for name in config.get("classes", ()))
        label = Array(DataType.string if texts else DataType.long)
        columns = [ColSpec(label, "labels"), ColSpec(DataType.long, "size")]
    return Schema([*columns, ColSpec(DataType.string, "promise")])


def _params() -> ParamSchema:
    return ParamSchema([ParamSpec("alpha", DataType.double, None), ParamSpec("labels", DataType.boolean, True)])


def _requirements() -> list[str]:
    """The requirements for serving, in the installed versions."""
    return [f"{name}=={version(name)}" for name in (_mlflow(), "confide", "numpy", "pandas")]


def _mlflow() -> str:
    """The package that provides MLflow: the full one, or the skinny one."""
    try:
        version("mlflow")
    except PackageNotFoundError:
        return "mlflow-skinny"
    return "mlflow"
