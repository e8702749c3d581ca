"""The difference of outputs that `ModelFingerprint` estimates, for changes of a model that matter and that do not.

Run as `python -m benchmarks.fingerprint`: models on data sets of scikit-learn, with 100 records as the public probe.
Every row shows the estimated difference and the true one, as a share of the outputs' standard deviation. The tolerance
is 0.001. It ends with the computing time, compared with one prediction of the probe, and the bytes in a release.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import confide
from benchmarks.small import small
from confide import ModelFingerprint

PROBE, TREES, REPEATS = 100, small(100, 5), small(21, 3)
MODELS: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
    "digits, logistic regression": (load_digits, lambda seed: _scaled(LogisticRegression(max_iter=small(1000, 20)))),
    "digits, random forest": (load_digits, lambda seed: RandomForestClassifier(TREES, random_state=seed)),
    "cancer, logistic regression": (load_breast_cancer, lambda seed: _scaled(LogisticRegression(max_iter=1000))),
    "diabetes, ridge": (load_diabetes, lambda seed: Ridge(0.01)),
    "diabetes, random forest": (load_diabetes, lambda seed: RandomForestRegressor(TREES, random_state=seed)),
}


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def outputs(model: Any, rows: Any) -> Any:
    """Probabilities, or predictions."""
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


def changes(load: Callable[..., Any], make: Callable[[int], Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the outputs of a model, and those after each change."""
    rng = np.random.default_rng(0)
    X, y = load(return_X_y=True)
    order = rng.permutation(len(y))
    probe, X, y = X[order[:PROBE]], X[order[PROBE:]], y[order[PROBE:]]
    n = len(y) - len(y) // 100
    fitted = make(0).fit(X[:n], y[:n])
    before = outputs(fitted, probe)
    drawn = rng.integers(0, n, n)
    yield "outputs in single precision", before, before.astype(np.float32)
    yield "inputs in single precision", before, outputs(fitted, probe.astype(np.float32))
    yield "fitted again, same records", before, outputs(make(0).fit(X[:n], y[:n]), probe)
    yield "fitted again, another seed", before, outputs(make(1).fit(X[:n], y[:n]), probe)
    yield "one record fewer", before, outputs(make(0).fit(X[: n - 1], y[: n - 1]), probe)
    yield "1 % more records", before, outputs(make(0).fit(X, y), probe)
    yield "a bootstrap sample", before, outputs(make(0).fit(X[drawn], y[drawn]), probe)


def _milliseconds(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    """Print the table, and the costs."""
    for name, (load, make) in MODELS.items():
        print(name)
        for change, before, after in changes(load, make):
            stated, used = ModelFingerprint.of(before), ModelFingerprint.of(after)
            estimate = np.sqrt(np.mean(np.subtract(stated.sums, used.sums) ** 2)) / stated.spread
            true = np.sqrt(np.mean((before - after) ** 2)) / before.std()
            verdict = "accepted" if stated.difference(used) is None else "rejected"
            print(f"  {change:<28} {estimate:8.1e}  (true {true:8.1e})  {verdict}", flush=True)
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=small(1000, 20)).fit(X[:1000], y[:1000])
    probe = outputs(model, X[:PROBE])
    fingerprint = ModelFingerprint.of(probe)
    released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac", fingerprint=fingerprint)
    without = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    predicts, makes = (_milliseconds(call) for call in (lambda: outputs(model, X[:PROBE]),
                                                        lambda: ModelFingerprint.of(probe)))  # fmt: skip
    compares = _milliseconds(lambda: released.for_model(fingerprint))
    p = outputs(model, X)
    predict_set = _milliseconds(lambda: confide.predict_set(p, released))
    print(f"predicting the probe {predicts:.2f} ms, its fingerprint {makes:.2f} ms, comparing {compares:.4f} ms")
    print(f"predict_set of {len(p)} records {predict_set:.2f} ms")
    print(f"a release has {len(released.to_json()) - len(without.to_json())} bytes more than {len(without.to_json())}")


if __name__ == "__main__":
    main()
