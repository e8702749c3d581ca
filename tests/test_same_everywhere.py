"""Whatever front asks, of the same records: the same release with the same statements, the same sets and coverage.

Noise is drawn anew on every release. Here every draw takes the best candidate, so that releases can be compared whole.
"""

import io
import json
from contextlib import redirect_stdout
from functools import lru_cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import BaseEstimator, ClassifierMixin

import confide
from confide.cli import main
from tests.draws import always, likeliest

NAMES = ["cat", "dog", "emu", "fox"]
CLASSIFIED = ("--probabilities", "p_*", "--classes", ",".join(NAMES))
ALPHA, EPSILON = 0.2, 1.0
RNG = np.random.default_rng(3)
P = RNG.dirichlet(np.full(4, 0.4), 1600).astype(np.float32)
Y = (np.cumsum(P, axis=1) < RNG.random((1600, 1))).sum(axis=1).clip(0, 3)
OLD, NEW = slice(0, 1000), slice(1000, 1600)
NEIGHBORS = ["replace_one", pytest.param("add_remove", marks=pytest.mark.slow)]


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose inputs are its probabilities."""

    classes_ = np.array(NAMES)

    def fit(self, x, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, x):
        return x

    def predict(self, x):
        return self.classes_[np.argmax(x, axis=1)]


@pytest.fixture
def best(draw_with):
    draw_with(noisy_number=always(1010), select=likeliest)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The records that calibrate and the new ones, as files."""
    folder = tmp_path_factory.mktemp("fronts")
    for name, rows in (("old", OLD), ("new", NEW)):
        columns = {f"p_{k}": P[rows, k] for k in range(4)}
        ids = np.arange(1600)[rows]
        parquet.write_table(pa.table({"id": ids, **columns, "y": np.array(NAMES)[Y[rows]]}), folder / f"{name}.parquet")
    return folder


def command(*arguments):
    """The output of a command."""
    with redirect_stdout(io.StringIO()) as out:
        assert main([str(one) for one in arguments]) == 0, arguments
    return out.getvalue()


def asked(neighbors):
    return ("--alpha", ALPHA, "--epsilon", EPSILON, "--neighbors", neighbors)


def by_torch(tables, neighbors, out):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'confide[torch]'")
    from confide.torch import calibrate

    batches = [(torch.from_numpy(P[i : i + 300]), torch.from_numpy(Y[i : i + 300])) for i in range(0, 900, 300)]
    batches.append((torch.from_numpy(P[900:1000]), torch.from_numpy(Y[900:1000])))
    options = {"logits": False, "classes": NAMES, "progress": False, "neighbors": neighbors}
    return calibrate(torch.nn.Identity(), batches, ALPHA, EPSILON, **options)


def by_array_api(tables, neighbors, out):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'confide[torch]'")
    from confide.array_api import true_scores

    scores = true_scores(torch.from_numpy(P[OLD]), torch.from_numpy(Y[OLD]), "lac")
    return confide.calibrate(scores, ALPHA, EPSILON, score="lac", classes=NAMES, neighbors=neighbors)


def by_estimator(tables, neighbors, out):
    model = confide.PrivateConformalClassifier(Given(), ALPHA, EPSILON, prefit=True, neighbors=neighbors)
    return model.fit(P[OLD], np.array(NAMES)[Y[OLD]]).calibration_


def by_file(tables, neighbors, out):
    source = (tables / "old.parquet", *CLASSIFIED, "--label", "y")
    command("calibrate", *source, *asked(neighbors), "--out", out / "released.json")
    return confide.Release.load(out / "released.json")


def by_counts(tables, neighbors, out):
    """`confide sql`, the answer of DuckDB, and `confide calibrate --counts`."""
    public = ("--n", 1000) if neighbors == "replace_one" else ()
    columns = ("--probabilities", ",".join(f"p_{k}" for k in range(4)), *CLASSIFIED[2:], "--label", "y")
    where = ("--dialect", "duckdb", "--table", "records")
    query = command("sql", *where, *columns, *asked(neighbors), *public)
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW records AS FROM '{tables / 'old.parquet'}'")
        database.sql(query).write_csv(str(out / "counts.csv"))
    counts = ("--counts", out / "counts.csv", *columns, *asked(neighbors), *public)
    command("calibrate", *counts, "--out", out / "released.json")
    return confide.Release.load(out / "released.json")


@lru_cache
def in_numpy(neighbors):
    scores = confide.lac_score(P[OLD], Y[OLD])
    return confide.calibrate(scores, ALPHA, EPSILON, classes=NAMES, neighbors=neighbors)


@pytest.mark.slow
@pytest.mark.usefixtures("best")
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("front", [by_torch, by_array_api, by_estimator, by_file, by_counts])
def test_every_front_releases_the_same_of_the_same_records(front, neighbors, tables, tmp_path):
    """The whole file, which holds threshold, promise, privacy statement and checksum."""
    expected = in_numpy(neighbors)
    assert 0.5 < expected.threshold < 1
    found = front(tables, neighbors, tmp_path)
    assert found == expected
    assert found.to_json() == expected.to_json()
    assert (str(found.guarantee), str(found.privacy)) == (str(expected.guarantee), str(expected.privacy))


@pytest.fixture(scope="module")
def released():
    scores = confide.lac_score(P[OLD], Y[OLD])
    return confide.calibrate(scores, ALPHA, EPSILON, classes=NAMES, neighbors="replace_one")


def sets_of_estimator(released, tables, out):
    model = confide.PrivateConformalClassifier(Given(), ALPHA, EPSILON, prefit=True, neighbors="replace_one")
    model.fit(P[OLD], np.array(NAMES)[Y[OLD]]).calibration_ = released
    return model.predict_set(P[NEW]).mask


def sets_of_files(released, tables, out):
    released.save(out / "released.json")
    source = (tables / "new.parquet", "--probabilities", "p_*", "--calibration", out / "released.json")
    command("predict", *source, "--out", out / "sets.parquet")
    return in_order(out / "sets.parquet")


def in_order(path):
    found = parquet.read_table(path).sort_by("id")["prediction_set"].to_pylist()
    return np.array([[name in one for name in NAMES] for one in found])


@pytest.mark.slow(unless="sets_of_files")
@pytest.mark.parametrize("front", [sets_of_estimator, sets_of_files])
def test_every_front_gives_the_same_sets(front, released, tables, tmp_path):
    """Those of tensors and graphs: tests/scores/test_contract.py."""
    expected = confide.predict_set(P[NEW], released).mask
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(front(released, tables, tmp_path), expected)


def test_every_front_states_the_same_coverage(released, tables, tmp_path):
    """Coverage and its interval, of sets, of an array of records and of a file."""
    sets = confide.predict_set(P[NEW], released)
    names = np.array(NAMES)[Y[NEW]]
    expected = confide.evaluation.coverage(sets, names)
    assert sets.coverage(names) == expected
    found = confide.evaluation.evaluate_sets(released, P[NEW], names).coverage
    assert (found.value, found.low, found.high, found.n) == (expected.value, expected.low, expected.high, expected.n)
    released.save(tmp_path / "released.json")
    source = (tables / "new.parquet", *CLASSIFIED, "--label", "y")
    told = json.loads(command("evaluate", *source, "--calibration", tmp_path / "released.json", "--json"))
    found = told["found"]["release"]["coverage"]
    assert (found["value"], found["low"], found["high"]) == (expected.value, expected.low, expected.high)
