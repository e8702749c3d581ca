"""The code of the logged model, which MLflow copies and runs: it sets the model of the installed confide."""

from mlflow.models import set_model

from confide.mlflow import ConformalModel

set_model(ConformalModel())
