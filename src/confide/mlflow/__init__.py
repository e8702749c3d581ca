"""A release, with or without a model, comes in; an MLflow model that serves its sets leaves. Extra `mlflow`.

log.py      `log_model`, `save_model`: what is written, its signature, tags and requirements
load.py     `load_model`: the release and the model again, unless a file was changed
served.py   the code that MLflow runs; nothing of confide is pickled, the release is its JSON
model.py    `ConformalModel`: what it answers
wrapped.py  the model in front: an estimator, a function, or any model that MLflow knows
"""

from confide.support import needs_extra

with needs_extra("confide.mlflow", "mlflow"):
    import mlflow  # noqa: F401
    import pandas  # noqa: F401

from confide.mlflow.load import LoadedModel, load_model
from confide.mlflow.log import log_model, save_model
from confide.mlflow.model import ConformalModel

__all__ = ["ConformalModel", "LoadedModel", "load_model", "log_model", "save_model"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
