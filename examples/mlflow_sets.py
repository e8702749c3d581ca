"""Serve a release with MLflow: a logged model that answers every row with the labels of its prediction set.

    python examples/mlflow_sets.py sets
    mlflow models serve -m sets -p 5001 --env-manager local

Needs `pip install mlflow-skinny pandas scikit-learn confide`. The release is logged as its JSON file next to the model
whose scores calibrated it; MLflow loads this file as code. Whenever the model is loaded, confide computes the claims of
the release again.
"""

import sys
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import confide


class SetModel(mlflow.pyfunc.PythonModel):
    """A classifier with its release."""

    def load_context(self, context):
        """Read the release and the classifier."""
        self.released = confide.Release.load(context.artifacts["release"])
        self.classifier = mlflow.sklearn.load_model(context.artifacts["classifier"])

    def predict(self, context, model_input, params=None):
        """One row of labels, number of labels and guarantee for each row."""
        p = self.classifier.predict_proba(model_input)
        sets = confide.predict_set(p, self.released, self.classifier.classes_.tolist())
        promise = str(self.released.guarantee)
        return pd.DataFrame({"labels": sets.labels(), "size": sets.sizes, "promise": promise})


def save(folder, classifier, released, rows):
    """Write the model to a folder; `mlflow.pyfunc.log_model` takes the same arguments and a name instead of a path."""
    folder = Path(folder)
    parts = {name: folder.with_name(f"{folder.name}-{name}") for name in ("classifier", "release")}
    mlflow.sklearn.save_model(classifier, str(parts["classifier"]), serialization_format="cloudpickle")
    released.save(parts["release"])
    answers = pd.DataFrame({"labels": [["cat"]], "size": [1], "promise": ["0.9"]})
    mlflow.pyfunc.save_model(
        str(folder),
        python_model=__file__,
        artifacts={name: str(path) for name, path in parts.items()},
        signature=mlflow.models.infer_signature(rows, answers),
        metadata={"checksum": released.checksum, "promise": str(released.guarantee)},
        pip_requirements=["confide", "mlflow-skinny", "pandas", "scikit-learn"],
    )


mlflow.models.set_model(SetModel())  # for MLflow, which runs this file when it loads the model

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(3000, 3)), columns=["age", "marker", "dose"])
    species = np.array(["cat", "dog", "emu"])[(table + rng.normal(size=table.shape)).to_numpy().argmax(axis=1)]
    trained = LogisticRegression().fit(table[:1000], species[:1000])
    scores = confide.lac_score(trained.predict_proba(table[1000:]), species[1000:], classes=trained.classes_.tolist())
    save(sys.argv[1], trained, confide.calibrate(scores, alpha=0.1, epsilon=1.0), table[:2])
    print(mlflow.pyfunc.load_model(sys.argv[1]).predict(table[:3]))
