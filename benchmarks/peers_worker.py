"""One measurement in its own process: `python peers_worker.py FOLDER LIBRARY SCORE [MASK]`, one line of JSON.

A library whose name ends in "one call" is called once instead of several times. With MASK the sets are written to a
file of that name, for tests.
"""

import json
import math
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ALPHA = 0.1
PENALTY, K_REG = 0.01, 5
RUNS, SECONDS = 15, 8


def best(work, runs=RUNS):
    """Shortest time of at most `runs` runs in about SECONDS seconds, and the last result."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
        if sum(times) > SECONDS and (len(times) > 2 or times[-1] > SECONDS):
            break
    return min(times), result


def quantile(scores):
    k = math.ceil((len(scores) + 1) * 9 / 10)
    return np.partition(scores, k - 1)[k - 1]


class Numpy:
    """The baseline: numpy alone, blocks of rows, one thread."""

    def __init__(self, score):
        self.score = score

    def calibrate(self, p, y):
        if self.score == "lac":
            self.q = quantile(1 - p[np.arange(len(p)), y])
            return
        scores = np.empty(len(p))
        for i in range(0, len(p), 256):
            b = p[i : i + 256]
            least = b >= b[np.arange(len(b)), y[i : i + 256]][:, None]
            scores[i : i + 256] = (b * least).sum(axis=1)
            if self.score == "raps":
                scores[i : i + 256] += PENALTY * np.maximum(least.sum(axis=1) - K_REG, 0)
        self.q = quantile(scores)

    def predict(self, p):
        if self.score == "lac":
            if not hasattr(self, "out"):
                self.out = np.empty(p.shape, dtype=bool)
            return np.greater_equal(p, np.float32(1 - self.q), out=self.out)
        mask = np.empty(p.shape, dtype=bool)
        for i in range(0, len(p), 256):
            b = p[i : i + 256]
            order = np.sort(b, axis=1)[:, ::-1]
            total = np.cumsum(order, axis=1)
            if self.score == "raps":
                total = total + PENALTY * np.maximum(np.arange(1, p.shape[1] + 1) - K_REG, 0)
            size = (total <= self.q).sum(axis=1)
            cut = np.where(size > 0, order[np.arange(len(b)), np.maximum(size - 1, 0)], 2)
            mask[i : i + 256] = b >= cut[:, None]
        return mask


class Confide:
    def __init__(self, score):
        raps = f"raps_deterministic(penalty={PENALTY},k_reg={K_REG})"
        self.name = {"aps": "aps_deterministic", "raps": raps}.get(score, score)

    def calibrate(self, p, y):
        import confide

        scores = confide.class_score(p, y, self.name)
        self.calibration = confide.calibrate(scores, ALPHA, 1.0, score=self.name)

    def predict(self, p):
        import confide

        return confide.predict_set(p, self.calibration).mask


class TorchCP:
    def __init__(self, score):
        from torchcp.classification.predictor import SplitPredictor
        from torchcp.classification.score import APS, LAC, RAPS

        options = {"score_type": "identity"}
        function = {
            "lac": lambda: LAC(**options),
            "aps": lambda: APS(randomized=False, **options),
            "raps": lambda: RAPS(randomized=False, penalty=PENALTY, kreg=K_REG, **options),
        }[score]()
        self.predictor = SplitPredictor(function)

    def calibrate(self, p, y):
        import torch

        self.predictor.calculate_threshold(torch.from_numpy(p), torch.from_numpy(y), ALPHA)

    def predict(self, p):
        import torch

        return self.predictor.predict_with_logits(torch.from_numpy(p)).numpy().astype(bool)


class Mapie:
    def __init__(self, score):
        from mapie.classification import SplitConformalClassifier
        from sklearn.base import BaseEstimator, ClassifierMixin

        class Identity(ClassifierMixin, BaseEstimator):
            def fit(self, X, y):
                self.classes_ = np.arange(X.shape[1])
                self.fitted_ = True
                return self

            def predict_proba(self, X):
                return X

            def predict(self, X):
                return X.argmax(axis=1)

        self.model, self.score = Identity, score
        self.make = lambda model: SplitConformalClassifier(
            model, confidence_level=1 - ALPHA, conformity_score=score, prefit=True
        )

    def calibrate(self, p, y):
        p = p / p.sum(axis=1, keepdims=True, dtype=np.float64)
        self.conformal = self.make(self.model().fit(p[:2], y[:2])).conformalize(p, y)

    def predict(self, p):
        p = p / p.sum(axis=1, keepdims=True, dtype=np.float64)
        return self.conformal.predict_set(p)[1][:, :, 0]


class Puncc:
    def __init__(self, score):
        from deel.puncc.api import nonconformity_scores as scores
        from deel.puncc.api import prediction_sets as sets
        from deel.puncc.api.calibration import BaseCalibrator

        pairs = {
            "lac": lambda: (scores.lac_score, sets.lac_set),
            "aps": lambda: (
                scores.raps_score_builder(lambd=0, k_reg=1, rand=False),
                sets.raps_set_builder(lambd=0, k_reg=1, rand=False),
            ),
            "raps": lambda: (
                scores.raps_score_builder(lambd=PENALTY, k_reg=K_REG, rand=False),
                sets.raps_set_builder(lambd=PENALTY, k_reg=K_REG, rand=False),
            ),
        }
        score_function, set_function = pairs[score]()
        self.calibrator = BaseCalibrator(nonconf_score_func=score_function, pred_set_func=set_function)

    def calibrate(self, p, y):
        self.calibrator.fit(y_true=y, y_pred=p)

    def predict(self, p):
        return self.calibrator.calibrate(alpha=ALPHA, y_pred=p)


class Crepes:
    """LAC only. 200 rows are measured; the time grows linearly with the rows."""

    def __init__(self, score):
        self.score = score

    def calibrate(self, p, y):
        from crepes import ConformalClassifier
        from crepes.extras import hinge

        self.hinge = hinge
        self.conformal = ConformalClassifier().fit(hinge(p, np.arange(p.shape[1]), y))

    def predict(self, p):
        return self.conformal.predict_set(self.hinge(p), confidence=1 - ALPHA, smoothing=False)


LIBRARIES = {"numpy": Numpy, "confide": Confide, "TorchCP": TorchCP, "MAPIE": Mapie, "puncc": Puncc, "crepes": Crepes}


def as_mask(sets, shape):
    if isinstance(sets, tuple):
        sets = sets[-1]
    if isinstance(sets, np.ndarray) and sets.shape == shape:
        return sets.astype(bool)
    mask = np.zeros(shape, dtype=bool)
    for row, members in zip(mask, sets, strict=True):
        row[np.asarray(members, dtype=int)] = True
    return mask


def main(folder, library, score, keep=None):
    warnings.simplefilter("ignore")
    p_cal, y_cal, p, y = (np.load(Path(folder) / f"{name}.npy") for name in ("p_cal", "y_cal", "p", "y"))
    scale, one_call = 1, library.endswith("one call")
    if library == "crepes":
        scale, p, y = len(p) / 200, p[:200], y[:200]
    conformal = LIBRARIES[library.partition(",")[0]](score)
    if library != "MAPIE":  # its RAPS needs two records of every class
        conformal.calibrate(p_cal[:2000], y_cal[:2000])  # the first call imports
    calibrated, _ = best(lambda: conformal.calibrate(p_cal, y_cal), runs=1 if one_call else RUNS)
    if library == "numpy" or library.startswith("confide"):
        conformal.predict(p[:100])
        if score == "lac" and library == "numpy":
            del conformal.out
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    sets = conformal.predict(p)
    first = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if first < 20 and not one_call:
        sets = None
        predicted, sets = best(lambda: conformal.predict(p))
    else:
        predicted = first
    mask = as_mask(sets, p.shape)
    if keep:
        np.save(keep, mask)
    print(
        json.dumps(
            {
                "calibrate": calibrated,
                "predict": predicted * scale,
                "peak": peak / 1024,
                "coverage": float(mask[np.arange(len(y)), y].mean()),
                "size": float(mask.sum(axis=1).mean()),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
