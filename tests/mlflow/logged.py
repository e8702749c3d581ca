"""Log, load and query models with MLflow, in a separate environment: `python -m tests.mlflow.logged FOLDER`.

The results are written to FOLDER/found.json, for the tests; FOLDER/wards remains, to be served.
"""

import json
import os
import sys
import warnings
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import yaml
from mlflow.pyfunc import scoring_server
from sklearn.linear_model import LogisticRegression

import confide
import confide.mlflow

warnings.simplefilter("ignore")
RNG = np.random.default_rng(0)
SCORES = np.linspace(0, 0.6, 2000)
CLASSES = ["dog", "cat", "emu"]
X = pd.DataFrame(RNG.normal(size=(300, 3)), columns=list("abc"))
ESTIMATOR = LogisticRegression().fit(X, np.array(CLASSES)[X.to_numpy().argmax(axis=1)])
P = np.round(RNG.dirichlet([1.0, 1.0, 1.0], 20), 6)
P[:, 0] = 1 - P[:, 1] - P[:, 2]


def calibrated(**options):
    return confide.calibrate(SCORES, 0.1, 1.0, neighbors="replace_one", **{"score": "lac", **options})


def by_group():
    ward = np.where(np.arange(2000) % 2, "north", "south")
    scores = np.where(ward == "north", 0.5, 1.0) * SCORES
    return confide.calibrate_groups(scores, ward, ["north", "south"], 0.1, 2.0, score="lac", neighbors="replace_one")


@cache
def loaded(address):
    return mlflow.pyfunc.load_model(address)


def asked(path, sent):
    """The response of MLflow's scoring server to a body: status and content."""
    model = loaded(str(path))
    try:
        reply = scoring_server.invocations(
            json.dumps(sent), "application/json", model, model.metadata.get_input_schema()
        )
    except mlflow.exceptions.MlflowException as error:
        return error.get_http_status_code(), json.loads(error.serialize_as_json())
    return reply.status, json.loads(reply.response)


def split(frame):
    return {"dataframe_split": frame.to_dict(orient="split", index=False)}


def lists(sets):
    return [list(one) for one in sets]


def named(folder):
    """A release alone, with named classes, logged in a run; columns in another order than the release's."""
    released = calibrated(classes=CLASSES)
    with mlflow.start_run():
        info = confide.mlflow.log_model(released, name="sets", tags={"team": "wards"})
    again = confide.mlflow.load_model(info.model_uri)
    kept = mlflow.get_logged_model(info.model_id)
    table = pd.DataFrame(P, columns=CLASSES)
    uri = info.model_uri
    files = Path(mlflow.artifacts.download_artifacts(uri))
    return {
        "expected": lists(confide.predict_set(P, released)),
        "split": asked(uri, split(table[["emu", "dog", "cat"]])),
        "inputs": asked(uri, {"inputs": {name: table[name].tolist() for name in reversed(CLASSES)}}),
        "places": asked(uri, {**split(table), "params": {"labels": False}}),
        "at level": asked(uri, {**split(table), "params": {"alpha": 0.1}}),
        "other level": asked(uri, {**split(table), "params": {"alpha": 0.2}}),
        "no probabilities": asked(uri, split(table + 1)),
        "tags": kept.tags,
        "release": again.release == released,
        "facts": [released.checksum, str(released.guarantee)],
        "requirements": (files / "requirements.txt").read_text().split(),
        "versions": [mlflow.__version__, confide.__version__, np.__version__, pd.__version__],
        "files": sorted(path.name for path in files.rglob("*") if path.is_file()),
    }


def unnamed(folder):
    released = calibrated(classes=3)
    confide.mlflow.save_model(released, folder / "unnamed")
    expected = lists(confide.predict_set(P, released))
    return {"expected": expected, "inputs": asked(folder / "unnamed", {"inputs": P.tolist()})}


def levels(folder):
    released = confide.calibrate_levels(SCORES, [0.3, 0.1], 2.0, score="lac", neighbors="replace_one", classes=CLASSES)
    confide.mlflow.save_model(released, folder / "levels")
    table = split(pd.DataFrame(P, columns=CLASSES))
    return {
        "expected": [lists(confide.predict_set(P, released[alpha])) for alpha in (0.3, 0.1)],
        "asked": [asked(folder / "levels", {**table, "params": {"alpha": alpha}}) for alpha in (0.3, 0.1)],
        "none": asked(folder / "levels", table),
    }


def wards(folder):
    """An inner estimator, thresholds per group."""
    released = by_group()
    confide.mlflow.save_model(released, folder / "wards", ESTIMATOR, input_example=X[:2], groups="ward")
    table = X[:20].assign(ward=np.where(np.arange(20) % 3, "north", "south"))
    p = ESTIMATOR.predict_proba(X[:20])
    sets = confide.predict_set(p, released, ESTIMATOR.classes_.tolist(), groups=table["ward"])
    unknown = asked(folder / "wards", split(table.assign(ward="west")))
    without = asked(folder / "wards", split(X[:20]))
    return {"body": split(table), "expected": lists(sets), "unknown": unknown, "without": without}


def address(folder):
    """A model that MLflow has already stored; the release has its classes in another order."""
    released = confide.calibrate(
        2 * SCORES, 0.3, 1.0, score="aps_deterministic", classes=CLASSES, neighbors="replace_one"
    )
    mlflow.sklearn.save_model(
        ESTIMATOR, str(folder / "trained"), serialization_format="cloudpickle", input_example=X[:2]
    )
    confide.mlflow.save_model(released, folder / "address", str(folder / "trained"))
    again = confide.mlflow.load_model(folder / "address")
    p = ESTIMATOR.predict_proba(X[:20])
    return {
        "expected": lists(confide.predict_set(p, released, ESTIMATOR.classes_.tolist())),
        "split": asked(folder / "address", split(X[:20])),
        "outputs": bool((again.outputs(X[:20]) == p).all()),
    }


def intervals(folder):
    """An inner function, with difficulties in a column."""
    released = calibrated(score="normalised_residual")
    table = pd.DataFrame({"x": RNG.normal(size=20), "difficulty": RNG.random(20) + 0.5})
    confide.mlflow.save_model(released, folder / "function", lambda rows: rows["x"] * 2, input_example=table[["x"]])
    function = asked(folder / "function", split(table))
    ends = confide.predict_interval(2 * table["x"], released, difficulty=table["difficulty"])
    cqr = replace(released, score="cqr")
    confide.mlflow.save_model(cqr, folder / "quantiles")
    quantiles = pd.DataFrame({"upper": table["x"] + 1, "lower": table["x"]})
    sided = confide.predict_interval(quantiles[["lower", "upper"]], cqr)
    return {
        "expected": [[one.lower.tolist(), one.upper.tolist()] for one in (ends, sided)],
        "asked": [function, asked(folder / "quantiles", split(quantiles))],
    }


def fingerprint(folder):
    """A model is compared when it is logged with public rows, and after that only its checksum is."""
    probe = X[20:60]
    stated = confide.ModelFingerprint.of(ESTIMATOR.predict_proba(probe))
    released = type(calibrated()).from_json(calibrated(classes=CLASSES, fingerprint=stated).to_json())
    retrained = LogisticRegression().fit(X[:200], np.array(CLASSES)[X[:200].to_numpy().argmax(axis=1)])
    said = {}
    for name, model in (("no model", None), ("retrained", retrained), ("same", ESTIMATOR)):
        try:
            confide.mlflow.save_model(released, folder / f"probe {name}", model, input_example=X[:2], probe=probe)
        except confide.InputError as error:
            said[name] = [error.argument, error.got]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", confide.CoverageWarning)
        answer = asked(folder / "probe same", split(X[:20]))
    return {"said": said, "answer": answer, "reminders": [str(one.message) for one in heard]}


def changed(folder):
    """Errors after a file of a logged model was changed."""
    said = {}
    released = calibrated(classes=CLASSES)
    for name in ("calibration", "model"):
        path = folder / f"changed {name}"
        confide.mlflow.save_model(released, path, ESTIMATOR, input_example=X[:2])
        if name == "calibration":
            other = calibrated(classes=CLASSES, about={"version": "2"})  # noise alone may draw the same threshold
            (path / "artifacts" / "calibration.json").write_text(other.to_json())
        else:
            (path / "artifacts" / "model" / "model.pkl").open("ab").write(b".")
        for front, load in (("confide", confide.mlflow.load_model), ("MLflow", mlflow.pyfunc.load_model)):
            try:
                load(str(path))
            except confide.FormatError as error:
                said[f"{name}, {front}"] = str(error)
    return said


DESCRIBED = {
    "loader_module": "os",
    "artifacts": {"calibration": 3},
    "config": {"checksum": None},
    "model_code_path": 3,
}
"""Fields of a logged model's description, and their changed values."""


def described(folder, key, value):
    """A logged model with a changed description."""
    path = folder / f"described {key}"
    confide.mlflow.save_model(calibrated(classes=CLASSES), path)
    text = yaml.safe_load((path / "MLmodel").read_text())
    text["flavors"]["python_function"][key] = value
    (path / "MLmodel").write_text(yaml.safe_dump(text))
    confide.mlflow.load_model(path)


def refused(folder):
    """Models that cannot be logged."""
    said = {}
    for name, what in {
        "no release": lambda: confide.mlflow.save_model(3, folder / "x"),
        "no model": lambda: confide.mlflow.save_model(calibrated(), folder / "x", 3),
        "no address": lambda: confide.mlflow.save_model(calibrated(), folder / "x", str(folder)),
        "no example": lambda: confide.mlflow.save_model(calibrated(), folder / "x", ESTIMATOR),
        "own score": lambda: confide.mlflow.save_model(calibrated(score="mine"), folder / "x"),
        "other classes": lambda: confide.mlflow.save_model(calibrated(classes=2), folder / "x", ESTIMATOR),
        "not ours": lambda: confide.mlflow.load_model(folder / "trained"),
        **{f"described {key}": partial(described, folder, key, value) for key, value in DESCRIBED.items()},
    }.items():
        try:
            what()
        except confide.ConfideError as error:
            said[name] = [type(error).__name__, str(error)]
    return said


def main(folder):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the skinny package has no database
    mlflow.set_tracking_uri((folder / "runs").as_uri())
    cases = (named, unnamed, levels, wards, address, intervals, fingerprint, changed, refused)
    found = {case.__name__: case(folder) for case in cases}
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
