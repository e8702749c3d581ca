"""MLflow models that serve the sets or intervals of a release, with or without a model. Extra `mlflow`.

log.py     `log_model`, `save_model`: files, signature, tags and requirements
served.py  the code that MLflow runs; no object of confide is pickled, the release is its JSON
model.py   `ConformalModel`: its answers; the inner model, an estimator, a function, or any model that MLflow can load;
           `load_model`: the release and the inner model again; raises an error if a file was changed
"""

from confide.support import needs_extra

with needs_extra("confide.mlflow", "mlflow"):
    import mlflow
    import pandas

from confide.mlflow.log import log_model, save_model
from confide.mlflow.model import ConformalModel, LoadedModel, load_model

__all__ = ["ConformalModel", "LoadedModel", "load_model", "log_model", "save_model"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
