"""Four real hospitals: diagnoses of heart disease, and a model trained at two of them. Imports no plotting."""

import csv
import warnings

import numpy as np

from confide.scores import lac_score
from experiments.federated.data import folder

NAMES = ("cleveland", "hungarian", "switzerland", "va")


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features with NaN for missing values, and the diagnosis."""
    with (folder() / "uci_heart" / f"{name}.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    table = np.array([[float(v) if v.strip() not in ("?", "") else np.nan for v in row] for row in rows])
    return table[:, :-1], (table[:, -1] > 0).astype(int)


def split(seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Scores of every hospital, to calibrate and to test, of a model trained at the first two."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(seed)
    parts = []
    for name in NAMES:
        x, y = read(name)
        order = rng.permutation(len(y))
        third = len(y) // 3
        parts.append([(x[i], y[i]) for i in (order[:third], order[third : 2 * third], order[2 * third :])])
    x, y = (np.concatenate([part[0][i] for part in parts[:2]]) for i in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=0).fit(x, y)
        scores = [[lac_score(model.predict_proba(a), b) for a, b in part[1:]] for part in parts]
    return [s[0] for s in scores], [s[1] for s in scores]
