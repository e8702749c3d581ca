"""A release, with or without a model, comes in; an MLflow model that serves its sets leaves. Extra `mlflow`.

log.py     `log_model`, `save_model`: what is written, its signature, tags and requirements
served.py  the code that MLflow runs; nothing of confide is pickled, the release is its JSON
model.py   `ConformalModel`: what it answers; the model in front, an estimator, a function, or any that MLflow knows;
           `load_model`: the release and the model again, unless a file was changed
"""

from confide.support import needs_extra

with needs_extra("confide.mlflow", "mlflow"):
    import mlflow
    import pandas

from confide.mlflow.log import log_model, save_model
from confide.mlflow.model import ConformalModel, LoadedModel, load_model

__all__ = ["ConformalModel", "LoadedModel", "load_model", "log_model", "save_model"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
