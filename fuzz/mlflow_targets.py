"""Logged models: properties for every description of the model and its release. Needs `mlflow`."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import confide
from confide.errors import ConfideError
from confide.mlflow import load_model, save_model
from fuzz.source import Source, change, one_line


@cache
def logged() -> tuple[Path, Any, bytes]:
    """A folder with a logged release of three classes, its description, and the release."""
    folder = Path(tempfile.mkdtemp()) / "model"
    scores = np.linspace(0, 1, 300)
    released = confide.calibrate(scores, 0.2, 4.0, score="lac", classes=["a", "b", "c"], neighbors="replace_one")
    save_model(released, folder)
    found = next(folder.rglob("*.json"))
    return found, yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8")), found.read_bytes()


def mlflow_model(data: bytes) -> None:
    """`load_model` on a description with changed fields, or a release with changed bytes: the release, or an error."""
    source, (path, described, content) = Source(data), logged()
    folder = next(parent for parent in path.parents if (parent / "MLmodel").exists())
    changed, release = described, bytearray(content)
    if source.byte() % 4:
        changed = {**described, "flavors": change(described["flavors"], source)}
    else:
        release[source.below(len(release))] = source.byte()
    path.write_bytes(bytes(release))
    (folder / "MLmodel").write_text(yaml.safe_dump(changed, allow_unicode=True), encoding="utf-8")
    try:
        found = load_model(folder)
    except ConfideError as error:
        one_line(error)
        return
    assert found.release == confide.Calibration.from_json(content.decode())
