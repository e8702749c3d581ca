"""`mechanism="none"` is split conformal prediction: thresholds and sets of an independent brute force, in fractions.

Probabilities, penalties and random numbers are multiples of powers of two, so that every sum is exact in floats and
ties abound.
"""

import itertools
import json
import math
import subprocess
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.scores.class_sets import set_mask
from tests.elsewhere import python_of

PENALTY, K_REG = 0.0625, 2
ALPHAS = [0.1, Fraction(1, 3), "0.5", 0.005]  # 0.005 is out of reach of 150 records


def mass(row, y, u):
    likelier = sum((q for q in row if q > row[y]), Fraction(0))
    return likelier + u * sum(q for q in row if q == row[y])


def rank(row, y):
    return sum(q >= row[y] for q in row)


def saps(row, y, u):
    return u * max(row) if rank(row, y) == 1 else max(row) + (rank(row, y) - 2 + u) * Fraction(PENALTY)


def raps(row, y, u):
    return mass(row, y, u) + Fraction(PENALTY) * max(rank(row, y) - K_REG, 0)


CLASSIFICATION = {
    "lac": lambda row, y, u: 1 - row[y],
    "aps": mass,
    "aps_deterministic": mass,
    f"raps(penalty={PENALTY},k_reg={K_REG})": raps,
    f"raps_deterministic(penalty={PENALTY},k_reg={K_REG})": raps,
    f"saps(penalty={PENALTY})": saps,
    f"saps_deterministic(penalty={PENALTY})": saps,
    "margin": lambda row, y, u: max(q for k, q in enumerate(row) if k != y) - row[y],
    "top_k": lambda row, y, u: rank(row, y),
}
REGRESSION = {
    "absolute_residual": lambda f, y: abs(y - f[0]),
    "gamma": lambda f, y: abs(y - f[0]) / f[0],
    "normalised_residual": lambda f, y: abs(y - f[0]) / f[1],
    "cqr": lambda f, y: max(f[0] - y, y - f[1]),
}


def split_conformal(scores, alpha):
    """The ceil((n+1)(1-alpha))-th smallest score; +inf if there is none."""
    k = math.ceil((len(scores) + 1) * (1 - Fraction(str(alpha))))
    return sorted(scores)[k - 1] if k <= len(scores) else math.inf


def calibrate(scores, alpha, score):
    """With the scores as candidates, or the threshold would be the next candidate of a list."""
    candidates = confide.Candidates.of(np.unique(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        return confide.calibrate(scores, alpha, mechanism="none", score=score, candidates=candidates)


def tied_table(rng, n, k=6):
    """Rows of multiples of 1/64 that sum to one, with zeros and ties, as float32."""
    return (rng.multinomial(64, rng.dirichlet(np.ones(k) / 2, n)) / 64).astype(np.float32)


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # some levels need more records than there are
@pytest.mark.parametrize("score", CLASSIFICATION)
def test_classification(score):
    rng = np.random.default_rng(0)
    p, y, u = tied_table(rng, 210), rng.integers(0, 6, 210), rng.integers(0, 17, 210) / 16
    drawn = confide.scores.score_kind(score).randomised
    rows, shares = [[Fraction(float(q)) for q in row] for row in p], [Fraction(v) if drawn else Fraction(1) for v in u]
    expected = [[CLASSIFICATION[score](row, k, v) for k in range(6)] for row, v in zip(rows, shares, strict=True)]
    own = [expected[i][y[i]] for i in range(150)]
    scores = confide.class_score(p[:150], y[:150], score, u=u[:150] if drawn else None)
    assert [Fraction(s) for s in scores] == own
    for alpha in ALPHAS:
        q, released = split_conformal(own, alpha), calibrate(scores, alpha, score)
        assert released.threshold == q
        sets = confide.predict_set(p[150:], released, u=u[150:] if drawn else None)
        assert sets.mask.tolist() == [[s <= q for s in row] for row in expected[150:]]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")  # some levels need more records than there are
@pytest.mark.parametrize("score", REGRESSION)
def test_regression(score):
    rng = np.random.default_rng(1)
    y = rng.integers(-80, 80, 210) / 16
    first = 2.0 ** rng.integers(-1, 3, 210) if score == "gamma" else rng.integers(-80, 80, 210) / 16
    second = (
        2.0 ** rng.integers(-1, 3, 210) if score == "normalised_residual" else first + rng.integers(0, 80, 210) / 16
    )
    predictions = np.column_stack([first, second]) if score == "cqr" else first
    difficulty = second if score == "normalised_residual" else None

    def given(rows):
        return {} if difficulty is None else {"difficulty": difficulty[rows]}

    pairs = [(Fraction(a), Fraction(b)) for a, b in zip(first, second, strict=True)]
    calibration, new = slice(0, 150), slice(150, 210)
    scores = confide.interval_score(predictions[calibration], y[calibration], score, **given(calibration))
    own = [REGRESSION[score](f, Fraction(v)) for f, v in zip(pairs[calibration], y[calibration], strict=True)]
    assert [Fraction(s) for s in scores] == own
    grid = np.arange(-60, 60, 1 / 32)
    for alpha in ALPHAS:
        q, released = split_conformal(own, alpha), calibrate(scores, alpha, score)
        assert released.threshold == q
        lower, upper = confide.predict_interval(predictions[new], released, **given(new))
        for f, low, high in itertools.islice(zip(pairs[new], lower, upper, strict=True), 0, 60, 6):
            inside = (low <= grid) & (grid <= high)
            assert inside.tolist() == [REGRESSION[score](f, Fraction(v)) <= q for v in grid]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "score"),
    [
        *((peer, "lac") for peer in ("MAPIE", "TorchCP", "puncc", "crepes")),
        ("TorchCP", "aps"),
        ("TorchCP", "raps"),
    ],
)
def test_peers_where_they_are_right(library, score, tmp_path):
    """Equal sets. LAC has probabilities in multiples of 1/64, so that equal sets leave one value for the threshold.

    For APS and RAPS there are no ties, which the peers break and this library does not.
    """
    rng = np.random.default_rng(2)
    n, k = 500, 8
    if score == "lac":
        p = (rng.multinomial(64, rng.dirichlet(np.ones(k) / 2, n)) / 64).astype(np.float64)
    else:
        p = rng.dirichlet(np.ones(k) / 2, n)
    y = (np.cumsum(p, axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    for name, values in {"p_cal": p[:300], "y_cal": y[:300], "p": p[300:], "y": y[300:]}.items():
        np.save(tmp_path / f"{name}.npy", values)
    worker = Path(__file__).parents[1] / "benchmarks" / "peers_worker.py"
    done = subprocess.run(
        [python_of("peers"), worker, tmp_path, library, score, tmp_path / "mask.npy"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["coverage"] > 0
    deterministic = {"aps": "aps_deterministic", "raps": "raps_deterministic(penalty=0.01,k_reg=5)"}
    name = deterministic.get(score, score)
    released = calibrate(confide.class_score(p[:300], y[:300], name), 0.1, name)
    np.testing.assert_array_equal(np.load(tmp_path / "mask.npy"), set_mask(p[300:], name, released.threshold))
