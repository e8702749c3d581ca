"""Where conformal libraries are known to go wrong: coverage and set size together, at stated levels."""

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.rationals import exact_level
from confide.scores.classification import set_mask

DETERMINISTIC = ["lac", "aps", "raps(penalty=0.01,k_reg=3)", "saps(penalty=0.1)", "margin", "top_k"]
RANDOMISED = ["aps_randomised", "raps_randomised(penalty=0.01,k_reg=3)", "saps_randomised(penalty=0.1)"]


def quantile(scores, level):
    """Split conformal prediction without privacy: the ceil((n+1) level)-th smallest score, +inf if there is none."""
    k = -(-(len(scores) + 1) * exact_level("level", level).numerator // exact_level("level", level).denominator)
    return np.inf if k > len(scores) else np.partition(scores, k - 1)[k - 1]


def covers(p_cal, y_cal, p, y, score, level, *, largest, least=1e-6):
    """Non-private and private sets of new records: coverage by exact test, mean size at most `largest`."""
    rng = np.random.default_rng(0)
    shares = [None if "randomised" not in score else rng.random(len(part)) for part in (p_cal, p)]
    scores = confide.class_score(p_cal, y_cal, score, u=shares[0])
    slack = 4 * np.sqrt(level * (1 - level) / len(p_cal))  # the calibration sample's own luck, at 4 deviations
    for threshold in (
        quantile(scores, level),
        confide.calibrate(scores, exact_level("a", 1 - level), 2.0, score=score).threshold,
    ):
        mask = set_mask(p, score, threshold, u=shares[1])
        hits = int(mask[np.arange(len(y)), y].sum())
        assert stats.binomtest(hits, len(y), level - slack, alternative="less").pvalue > least
        assert mask.sum(axis=1).mean() <= largest
    return mask


def noisy(rng, n, k, noise):
    truth = rng.integers(0, k, n)
    return truth, np.where(rng.random(n) < noise, rng.integers(0, k, n), truth)


@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_01_zero_and_saturated_probabilities(score):
    """A tree's 0/1 probabilities and float32 softmax of overconfident logits, with 20 % wrong labels."""
    rng = np.random.default_rng(1)
    truth, y = noisy(rng, 6000, 10, 0.2)
    covers(np.eye(10)[truth[:3000]], y[:3000], np.eye(10)[truth[3000:]], y[3000:], score, 0.9, largest=10)
    logits = np.float32(20) * (3 * np.eye(10)[truth] + rng.normal(size=(6000, 10))).astype(np.float32)
    p = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float32)
    p /= p.sum(axis=1, keepdims=True)
    mask = covers(p[:3000], y[:3000], p[3000:], y[3000:], score, 0.9, largest=10)
    assert mask.any(axis=1).mean() > 0.85


@pytest.mark.parametrize(("score", "largest"), [("aps", 6.4), ("aps_randomised", 6.2), ("lac", 6.1)])
def test_02_include_rule_is_the_calibration_score(score, largest):
    """Ideal probabilities: coverage is the level, not .857 nor .960, and sets are small."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(10) / 1.2, 12000)
    y = (np.cumsum(p, axis=1) < rng.random((len(p), 1))).sum(axis=1)
    mask = covers(p[:6000], y[:6000], p[6000:], y[6000:], score, 0.9, largest=largest)
    assert stats.binomtest(int(mask[np.arange(6000), y[6000:]].sum()), 6000, 0.92, alternative="greater").pvalue > 1e-6


def test_03_the_rank_is_exact():
    for n in (9, 19, 20, 99, 100, 999):
        scores = np.arange(1, n + 1) / (n + 1)
        k = quantile(scores, 0.9) * (n + 1)
        assert k == pytest.approx(-(-(n + 1) * 9 // 10))


def test_04_too_few_records_give_full_sets():
    with pytest.warns(confide.CoverageWarning, match=r"\+inf"):
        released = confide.calibrate([0.1] * 5, 0.1, 1.0, score="lac", neighbors="replace_one")
    assert released.threshold == np.inf
    assert confide.predict_set([[0.0, 1.0]], released).mask.all()
    with pytest.warns(confide.CoverageWarning):
        released = confide.calibrate([0.1] * 5, 0.1, 1.0, score="absolute_residual", neighbors="replace_one")
    assert confide.predict_interval([1.0], released) == (-np.inf, np.inf)


@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_05_sets_hold_the_likely_labels(score):
    """Inverted sets have the right coverage and ten times the size: the likeliest label comes first."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(10) / 5, 8000)
    y = (np.cumsum(p, axis=1) < rng.random((len(p), 1))).sum(axis=1)
    mask = covers(p[:4000], y[:4000], p[4000:], y[4000:], score, 0.9, largest=5.3)
    inside = np.where(mask, p[4000:], np.inf).min(axis=1)
    outside = np.where(mask, -np.inf, p[4000:]).max(axis=1)
    if score != "lac":
        assert (inside >= outside).all()
    assert mask[np.arange(4000), p[4000:].argmax(axis=1)].mean() > 0.85


@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_06_few_test_rows(score):
    """One row, and fewer rows than classes, give what the rows give among many."""
    rng = np.random.default_rng(6)
    p = np.vstack([np.full((3, 10), 0.1), rng.dirichlet(np.ones(10), 40)])
    u = rng.random(43) if "randomised" in score else None
    for threshold in (0.2, 0.7, 0.95, 1.5, 5.0):
        mask = set_mask(p, score, threshold, u=u)
        for rows in (slice(0, 1), slice(0, 5), slice(20, 21), slice(40, 43)):
            part = set_mask(p[rows], score, threshold, u=None if u is None else u[rows])
            np.testing.assert_array_equal(part, mask[rows])
    assert set_mask(p[:3], "aps", 0.95).sum() == 0  # ties are never broken: all ten or none
    assert set_mask(p[:3], "aps", 1.0 + 1e-9).sum() == 30


@pytest.mark.parametrize("score", DETERMINISTIC)
def test_07_nan_is_refused_with_count_and_position(score):
    p = np.full((50, 4), 0.25)
    p[[7, 30], 1] = np.nan
    with pytest.raises(confide.InputError, match=r"found 2 row\(s\) with NaN or values outside, the first at row 7"):
        confide.class_score(p, np.ones(50, dtype=int), score)
    with pytest.raises(confide.InputError, match=r"found 2 row\(s\) with NaN or values outside, the first at row 7"):
        set_mask(p, score, 0.5)
    for bad in (np.nan, np.inf):
        with pytest.raises(confide.InputError, match="found 1"):
            confide.absolute_residual_score([0.0, bad], [1.0, 1.0])
        with pytest.raises(confide.InputError, match="found 1"):
            confide.interval_score([[0.0, 1.0], [0.0, bad]], [1.0, 1.0], "cqr")


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, 1.0, float("nan")])
def test_08_alpha_lies_strictly_between(alpha):
    with pytest.raises(confide.InputError, match=r"^alpha must"):
        confide.calibrate([0.1] * 50, alpha, 1.0)


@pytest.mark.parametrize("score", DETERMINISTIC)
def test_09_labels_outside_the_classes_are_refused(score):
    p = np.full((3, 4), 0.25)
    for y in ([0, -1, 2], [0, 4, 2], [0, 1], [0.0, 1.0, 2.0], ["a", "b", "c"]):
        with pytest.raises((confide.InputError, confide.InputTypeError), match=r"^labels must"):
            confide.class_score(p, y, score)
    names = ["a", "b", "c", "d"]
    np.testing.assert_array_equal(
        confide.class_score(p, ["d", "a", "b"], score, classes=names), confide.class_score(p, [3, 0, 1], score)
    )


@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_10_half_precision_and_rows_that_drift(score):
    rng = np.random.default_rng(10)
    p = rng.dirichlet(np.ones(10) / 3, 6000)
    y = (np.cumsum(p, axis=1) < rng.random((len(p), 1))).sum(axis=1)
    for table in (p.astype(np.float16), p.astype(np.float32), p * (1 - 2e-5), np.minimum(p * 1.01, 1)):
        covers(table[:3000], y[:3000], table[3000:], y[3000:], score, 0.9, largest=6.5)


@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_11_ties(score):
    """Hard and flat predictions: valid, and no wider than the score has to be."""
    rng = np.random.default_rng(11)
    truth, y = noisy(rng, 4000, 10, 0.25)
    covers(np.eye(10)[truth[:2000]], y[:2000], np.eye(10)[truth[2000:]], y[2000:], score, 0.9, largest=10)
    flat = np.full((4000, 10), 0.1)
    mask = covers(flat[:2000], y[:2000], flat[2000:], y[2000:], score, 0.9, largest=10)
    if score == "aps_randomised":
        assert 8.5 < mask.sum(axis=1).mean() < 9.6


def test_12_levels_are_exact():
    assert exact_level("alpha", 1 - 0.9) == Fraction(1, 10)
    for n in range(1, 60):
        for thousandths in range(1, 1000, 7):
            k = math.ceil((n + 1) * (1 - exact_level("alpha", thousandths / 1000)))
            assert k == -((-(n + 1) * (1000 - thousandths)) // 1000)
    assert quantile(np.arange(9.0), 0.9) == 8.0  # nine records suffice for 90 %


def test_13_nothing_of_the_records_is_kept_or_changed():
    rng = np.random.default_rng(13)
    p, y = rng.dirichlet(np.ones(4), 2000), rng.integers(0, 4, 2000)
    p.flags.writeable = y.flags.writeable = False
    for score in DETERMINISTIC:
        scores = confide.class_score(p, y, score)
        released = confide.calibrate(scores, 0.1, 1.0, score=score)
        assert len(pickle.dumps(released)) < 4000
        values = set(json.dumps(json.loads(released.to_json())).replace(",", " ").split())
        assert not values & {repr(float(v)) for v in scores[:200] if v != released.threshold and v not in range(5)}
        confide.predict_set(p, released)


@pytest.mark.parametrize("scores", ["atom", "concentrated", "ties"])
def test_14_private_quantiles_keep_coverage(scores):
    """Where a private quantile at the conformal level undercovers or fails: one fresh point per release, level 1e-4."""
    rng = np.random.default_rng(14)
    draw = {
        "atom": lambda n: np.where(rng.random(n) < 0.87, 0.01 * rng.random(n), rng.random(n)),
        "concentrated": lambda n: np.minimum(rng.exponential(1e-3, n), 1),
        "ties": lambda n: rng.integers(0, 3, n) / 4,
    }[scores]
    hits, thresholds = 0, []
    for _ in range(300):
        points = draw(401)
        released = confide.calibrate(points[1:], 0.1, 1.0, score="lac")
        hits += points[0] <= released.threshold
        thresholds.append(released.threshold)
    assert stats.binomtest(hits, 300, 0.9, alternative="less").pvalue > 1e-4
    fresh = draw(20000)
    assert np.mean([np.mean(fresh <= t) for t in thresholds[:100]]) < (0.96 if scores != "ties" else 1.01)
