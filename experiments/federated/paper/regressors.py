"""The three regressors of Section 5, each returning lower and upper predictions for new rows.

The text names them and refers to Romano, Patterson and Candes, "Conformalized quantile regression" (NeurIPS 2019), for
the details. The constants below are from there.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.small import small

TREES, LEAST_LEAF, SYNTHETIC_LEAF = small(1000, 5), 1, 40
"""Least number of records of a leaf: 1 on the real data, 40 on the synthetic data."""
LOWEST = np.linspace(0.05, 0.35, 10)
"""The candidate quantile levels, with 1 minus them: "the two parameters controlling the coverage rate"."""
HELD_OUT, COVERAGE_FACTOR = 0.05, 0.85
HIDDEN, DROPOUT, RATE, DECAY, BATCH, EPOCHS = 64, 0.1, 5e-4, 1e-6, 64, small(1000, 2)
LEVELS = np.array([[0.1, 0.9]], dtype=np.float32)
"""The network's own quantiles; the calibration makes the coverage."""
_BETA, _BETA_2, _TINY = 0.9, 0.999, 1e-8


def ridge(x: np.ndarray, y: np.ndarray, x_new: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression, its penalty by leave-one-out cross-validation; scores are absolute residuals."""
    from sklearn.linear_model import RidgeCV

    center = RidgeCV(np.logspace(-3, 3, 13)).fit(x, y).predict(x_new)
    return center, center


def forest(
    x: np.ndarray, y: np.ndarray, x_new: np.ndarray, seed: int, trees: int = TREES, leaf: int = LEAST_LEAF
) -> tuple[np.ndarray, np.ndarray]:
    """Quantile regression forest; its two levels by cross-validation on held-out training rows."""
    levels = best_levels(x, y, seed, trees, leaf)
    found = _forest(seed, trees, leaf).fit(x, y).predict(x_new, quantiles=list(levels))
    return found[:, 0], found[:, 1]


def _forest(seed: int, trees: int, leaf: int):
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(
        trees, min_samples_leaf=leaf, max_samples_leaf=1 if leaf == 1 else None, max_features=1.0, random_state=seed
    )


def best_levels(x: np.ndarray, y: np.ndarray, seed: int, trees: int, leaf: int = LEAST_LEAF) -> tuple[float, float]:
    """The narrowest pair of levels that still covers 0.85 times 0.9 of the held-out rows, from the widest inwards."""
    held, kept = _held_out(len(y), seed)
    tried = [float(level) for low in LOWEST for level in (low, 1 - low)]
    found = _forest(seed, trees, leaf).fit(x[kept], y[kept]).predict(x[held], quantiles=tried)
    best, least = (tried[0], tried[1]), np.inf
    for i in range(0, len(tried), 2):
        low, high = found[:, i], found[:, i + 1]
        covered, width = np.mean((low <= y[held]) & (y[held] <= high)), np.mean(high - low)
        if covered < COVERAGE_FACTOR * 0.9 or width >= least:
            break
        best, least = (tried[i], tried[i + 1]), width
    return best


def _held_out(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng([seed, 7]).permutation(size)
    cut = max(1, round(HELD_OUT * size))
    return order[:cut], order[cut:]


def network(
    x: np.ndarray, y: np.ndarray, x_new: np.ndarray, seed: int, epochs: int = EPOCHS
) -> tuple[np.ndarray, np.ndarray]:
    """Two hidden layers of 64, dropout, the pinball loss at both levels, Adam; as many steps as were best on held-out rows.

    Best: the shortest intervals among the epochs that cover 0.8 of the held-out rows; all epochs if none does. The
    network is then trained again on all rows for as many steps.
    """
    x, y, x_new = (np.asarray(a, dtype=np.float32) for a in (x, y, x_new))
    held, kept = _held_out(len(y), seed)
    best, shortest = epochs * -(-len(kept) // BATCH), np.inf
    net = Network(x.shape[1], seed)
    for _ in range(epochs):
        net.epoch(x[kept], y[kept])
        low, high = net.predict(x[held])
        covered, width = np.mean((low <= y[held]) & (y[held] <= high)), np.mean(high - low)
        if covered >= LEVELS[0, 1] - LEVELS[0, 0] and width < shortest:
            best, shortest = net.steps, width
    net = Network(x.shape[1], seed)
    while net.steps < best:
        net.epoch(x, y, best)
    low, high = net.predict(x_new)
    return low.astype(np.float64), high.astype(np.float64)


class Network:
    """Weights in one flat vector, so that a step of Adam is a few lines of arithmetic; it is small and cheap."""

    def __init__(self, inputs: int, seed: int):
        self.rng, self.steps = np.random.default_rng([seed, 11]), 0
        shapes = [(inputs, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, 2), (2,)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        self.weights, self.slope, self.mean, self.square = np.zeros((4, ends[-1]), dtype=np.float32)
        cut = [slice(end - int(np.prod(shape)), end) for shape, end in zip(shapes, ends, strict=True)]
        self.parts = [self.weights[c].reshape(s) for c, s in zip(cut, shapes, strict=True)]
        self.slopes = [self.slope[c].reshape(s) for c, s in zip(cut, shapes, strict=True)]
        for matrix in self.parts[::2]:
            matrix[:] = _orthogonal(matrix.shape, self.rng)

    def predict(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper quantile."""
        a, b, c, d, e, f = self.parts
        found = np.maximum(np.maximum(x @ a + b, 0) @ c + d, 0) @ e + f
        return found[:, 0], found[:, 1]

    def epoch(self, x: np.ndarray, y: np.ndarray, until: float = np.inf) -> None:
        """One pass in random order, ending early at `until` steps."""
        order = self.rng.permutation(len(y))
        x, y = x[order], y[order][:, None]
        keep = (self.rng.random((2, len(y), HIDDEN), dtype=np.float32) >= DROPOUT) * np.float32(1 / (1 - DROPOUT))
        for start in range(0, len(y), BATCH):
            if self.steps >= until:
                return
            rows = slice(start, start + BATCH)
            self.backward(x[rows], y[rows], keep[0, rows], keep[1, rows])
            self.descend()

    def backward(self, x: np.ndarray, y: np.ndarray, keep: np.ndarray, keep_2: np.ndarray) -> None:
        """The gradient of the mean over rows of the summed pinball losses."""
        a, b, c, d, e, f = self.parts
        first = x @ a + b
        one = np.maximum(first, 0) * keep
        second = one @ c + d
        two = np.maximum(second, 0) * keep_2
        above = y > two @ e + f
        outer = np.where(above, -LEVELS, 1 - LEVELS) / np.float32(len(y))
        inner = (outer @ e.T) * keep_2 * (second > 0)
        deep = (inner @ c.T) * keep * (first > 0)
        for at, (into, out) in enumerate(((x, deep), (one, inner), (two, outer))):
            np.matmul(into.T, out, out=self.slopes[2 * at])
            np.sum(out, axis=0, out=self.slopes[2 * at + 1])

    def descend(self) -> None:
        """Adam, with weight decay as a part of the gradient."""
        self.steps += 1
        g = self.slope + np.float32(DECAY) * self.weights
        self.mean += np.float32(1 - _BETA) * (g - self.mean)
        self.square += np.float32(1 - _BETA_2) * (g * g - self.square)
        size = np.float32(RATE / (1 - _BETA**self.steps))
        self.weights -= (
            size * self.mean / (np.sqrt(self.square / np.float32(1 - _BETA_2**self.steps)) + np.float32(_TINY))
        )


def _orthogonal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    tall = rng.normal(size=(max(shape), min(shape)))
    q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diag(r))
    return q if shape[0] >= shape[1] else q.T


REGRESSORS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "ridge": ridge,
    "network": network,
    "forest": forest,
}
"""Cheapest first."""
