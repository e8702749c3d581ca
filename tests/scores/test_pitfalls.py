"""Known errors of conformal libraries: coverage and set size together, by exact tests."""

import numpy as np
import pytest
from scipy import stats

import confide
from confide.errors import InputError, InputTypeError
from confide.support.checks import exact_level
from tests.exact_tests import LEVEL, assert_covers, assert_exact_level, assert_threshold_below
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

DETERMINISTIC = [
    "lac",
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=3)",
    "saps_deterministic(penalty=0.1)",
    "margin",
    "top_k",
]
RANDOMISED = ["aps", "raps(penalty=0.01,k_reg=3)", "saps(penalty=0.1)"]


def quantile(scores, level):
    """Split conformal prediction without privacy: the ceil((n+1) level)-th smallest score, +inf if there is none."""
    k = -(-(len(scores) + 1) * exact_level("level", level).numerator // exact_level("level", level).denominator)
    return np.inf if k > len(scores) else np.partition(scores, k - 1)[k - 1]


def check(p_cal, y_cal, p, y, score):
    """Sets at level 0.9 without and with privacy (epsilon = 2): coverage, and the threshold from both sides.

    Returns the two masks. The threshold without privacy is the first candidate at or above the quantile. The private
    threshold is at most the score at a rank that the noise does not exceed.
    """
    rng = np.random.default_rng(0)
    shares = [None if not confide.scores.score_kind(score).randomised else rng.random(len(part)) for part in (p_cal, p)]
    scores = confide.class_score(p_cal, y_cal, score, u=shares[0])
    plain = confide.calibrate(scores, "0.1", mechanism="none", score=score)
    private = confide.calibrate(scores, "0.1", 2.0, score=score)
    candidates = confide.Candidates.from_recipe(plain.recipe).values
    assert plain.threshold == candidates[candidates >= quantile(scores, 0.9)][0]
    assert_threshold_below(private, scores)
    every, masks = confide.all_scores(p, score, u=shares[1]), []
    for released in (plain, private):
        masks.append(confide.predict_set(p, released, u=shares[1]).mask)
        np.testing.assert_array_equal(masks[-1], every <= released.threshold)
        assert_covers(released, len(scores), masks[-1][np.arange(len(y)), y])
    return masks


def ideal(rng, n, spread):
    """True class probabilities, and labels drawn from them."""
    p = rng.dirichlet(np.ones(10) / spread, n)
    return p, (np.cumsum(p, axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 9)


def noisy(rng, n, k, noise):
    truth = rng.integers(0, k, n)
    return truth, np.where(rng.random(n) < noise, rng.integers(0, k, n), truth)


@pytest.mark.slow
@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_01_zero_and_saturated_probabilities(score):
    """A tree's 0/1 probabilities and float32 softmax of overconfident logits, with 20 % wrong labels."""
    rng = np.random.default_rng(1)
    truth, y = noisy(rng, 6000, 10, 0.2)
    check(np.eye(10)[truth[:3000]], y[:3000], np.eye(10)[truth[3000:]], y[3000:], score)
    logits = np.float32(20) * (3 * np.eye(10)[truth] + rng.normal(size=(6000, 10))).astype(np.float32)
    p = np.exp(logits - logits.max(axis=1, keepdims=True), dtype=np.float32)
    p /= p.sum(axis=1, keepdims=True)
    check(p[:3000], y[:3000], p[3000:], y[3000:], score)


@pytest.mark.slow
@pytest.mark.parametrize("score", ["aps_deterministic", "aps", "lac"])
def test_02_include_rule_is_the_calibration_score(score):
    """Ideal probabilities without ties: coverage is the level, not 0.857, 0.928 or 0.960, by its exact law."""
    p, y = ideal(np.random.default_rng(2), 40000, 1.2)
    plain, _ = check(p[:20000], y[:20000], p[20000:], y[20000:], score)
    assert_exact_level(plain[np.arange(20000), y[20000:]], 18001, 20000)


@pytest.mark.slow
@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_05_sets_hold_the_likely_labels(score):
    """Inverted sets have the right coverage and ten times the size: the likeliest label must come first."""
    p, y = ideal(np.random.default_rng(5), 8000, 5)
    for mask in check(p[:4000], y[:4000], p[4000:], y[4000:], score):
        inside = np.where(mask, p[4000:], np.inf).min(axis=1)
        outside = np.where(mask, -np.inf, p[4000:]).max(axis=1)
        assert (inside >= outside).all() if score != "lac" else inside.min() > outside.max()


@pytest.mark.slow(unless="saps_deterministic(penalty=0.1)")
@pytest.mark.parametrize("score", DETERMINISTIC)
def test_09_labels_outside_the_classes_raise(score):
    p = np.full((3, 4), 0.25)
    for y, kind in (
        ([0, -1, 2], InputError), ([1, 4, 2], InputError), ([0, 1], InputError),
        ([0.0, 1.0, 2.0], InputTypeError), (["a", "b", "c"], InputTypeError),
    ):  # fmt: skip
        with refused(kind, "labels"):
            confide.class_score(p, y, score)
    p, y = ideal(np.random.default_rng(9), 4000, 3)
    names = np.array(list("jihgfedcba"))  # the columns are not in alphabetical order
    scores = confide.class_score(p[:2000], names[y[:2000]], score, classes=names)
    np.testing.assert_array_equal(scores, confide.class_score(p[:2000], y[:2000], score))
    released = confide.calibrate(scores, 0.1, 2.0, score=score)
    sets = confide.predict_set(p[2000:], released, classes=names)
    assert_covers(released, 2000, sets.contains(names[y[2000:]]))
    assert_threshold_below(released, scores)


@pytest.mark.slow(unless="lac")
@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_10_half_precision_and_rows_that_drift(score):
    p, y = ideal(np.random.default_rng(10), 6000, 3)
    for table in (p.astype(np.float16), p.astype(np.float32), p * (1 - 2e-5), np.minimum(p * 1.01, 1)):
        check(table[:3000], y[:3000], table[3000:], y[3000:], score)


@pytest.mark.slow
@pytest.mark.parametrize("score", DETERMINISTIC + RANDOMISED)
def test_11_ties(score):
    """Hard and flat predictions: valid, and no wider than the score requires."""
    rng = np.random.default_rng(11)
    truth, y = noisy(rng, 4000, 10, 0.25)
    hard = np.eye(10)[truth]
    masks = check(hard[:2000], y[:2000], hard[2000:], y[2000:], score)
    if not confide.scores.score_kind(
        score
    ).randomised:  # more than a tenth of the labels is wrong, and all wrong labels have one score
        assert masks[0].all()
    flat = np.full((4000, 10), 0.1)
    masks = check(flat[:2000], y[:2000], flat[2000:], y[2000:], score)
    if not confide.scores.score_kind(score).randomised:
        assert masks[0].all()
        assert masks[1].all()
    if score == "aps":  # the score is the random number itself: all ten labels or none
        full = masks[0].all(axis=1)
        assert (full == masks[0].any(axis=1)).all()
        assert_exact_level(full, 1801, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("scores", ["ties", "atom", "concentrated"])
def test_14_private_quantiles_keep_coverage(scores):
    """If a private quantile at the conformal level undercovers or fails: one fresh point per release.

    No release, of 300, exceeds the score that the noise exceeds with probability 1e-6 / 300.
    """
    rng = np.random.default_rng(14)
    draw = {
        "atom": lambda n: np.where(rng.random(n) < 0.87, 0.01 * rng.random(n), rng.random(n)),
        "concentrated": lambda n: np.minimum(rng.exponential(1e-3, n), 1),
        "ties": lambda n: rng.integers(0, 3, n) / 4,
    }[scores]
    hits = 0
    for _ in range(300):
        points = draw(1501)
        released = confide.calibrate(points[1:], 0.1, 1.0, score="lac")
        hits += points[0] <= released.threshold
        assert_threshold_below(released, points[1:], LEVEL / 300)
    assert stats.binomtest(hits, 300, 0.9, alternative="less").pvalue > LEVEL
