"""Known errors of conformal libraries: coverage and set size together, by exact tests."""

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.support.checks import exact_level
from tests.exact_tests import LEVEL, assert_covers, assert_exact_level, assert_threshold_below
from tests.refused import numbers, refused

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

    Returns the two masks. The sets without privacy are those of the non-private quantile. The private threshold is at
    most the score at a rank that the noise does not exceed.
    """
    rng = np.random.default_rng(0)
    shares = [None if not confide.scores.score_kind(score).randomised else rng.random(len(part)) for part in (p_cal, p)]
    scores = confide.class_score(p_cal, y_cal, score, u=shares[0])
    plain = confide.calibrate(scores, "0.1", mechanism="none", score=score)
    private = confide.calibrate(scores, "0.1", 2.0, score=score)
    assert plain.threshold == quantile(scores, 0.9)
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
@pytest.mark.parametrize("score", ["aps_deterministic", "aps", "lac"])
def test_02_include_rule_is_the_calibration_score(score):
    """Ideal probabilities without ties: coverage is the level, not 0.857, 0.928 or 0.960, by its exact law."""
    p, y = ideal(np.random.default_rng(2), 40000, 1.2)
    plain, _ = check(p[:20000], y[:20000], p[20000:], y[20000:], score)
    assert_exact_level(plain[np.arange(20000), y[20000:]], 18001, 20000)


def test_03_the_rank_is_exact():
    for n in (9, 19, 20, 99, 100, 999):
        scores = np.arange(1, n + 1) / (n + 1)
        k = quantile(scores, 0.9) * (n + 1)
        assert k == pytest.approx(-(-(n + 1) * 9 // 10))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "rank"), [(9, 9), (20, 19), (99, 90)])
def test_03_and_12_coverage_is_the_rank_over_n_plus_one(n, rank):
    """Neither above (a rank too many) nor below (a quantile without the n + 1), and never +inf: an exact binomial test.

    The size is tested by the same number: the threshold also has the mean rank/(n + 1), and lies in [0, 1].
    """
    points = np.random.default_rng(n).random((3000, n + 1))
    thresholds = [confide.calibrate(row[1:], 1 - 0.9, mechanism="none", score="lac").threshold for row in points]
    hits = int(np.count_nonzero(points[:, 0] <= thresholds))
    assert stats.binomtest(hits, 3000, rank / (n + 1)).pvalue > LEVEL
    spread = stats.beta(rank, n + 1 - rank).std() / math.sqrt(3000)
    assert abs(np.mean(thresholds) - rank / (n + 1)) < 6 * spread


def test_04_too_few_records_give_full_sets():
    with pytest.warns(confide.CoverageWarning):
        released = confide.calibrate([0.1] * 5, 0.1, 1.0, score="lac", neighbors="replace_one")
    assert released.threshold == np.inf
    with pytest.warns(confide.CoverageWarning):
        assert confide.predict_set([[0.0, 1.0]], released).mask.all()
    with pytest.warns(confide.CoverageWarning):
        released = confide.calibrate([0.1] * 5, 0.1, 1.0, score="absolute_residual", neighbors="replace_one")
    with pytest.warns(confide.CoverageWarning):
        assert confide.predict_interval([1.0], released) == (-np.inf, np.inf)


def test_07_nan_raises_with_count_and_position():
    for bad in (np.nan, np.inf):
        with refused(confide.InputError, "predictions") as e:
            confide.absolute_residual_score([0.0, bad], [1.0, 1.0])
        assert numbers(e) == [1, 1]
        with refused(confide.InputError, "predictions") as e:
            confide.interval_score([[0.0, 1.0], [0.0, bad]], [1.0, 1.0], "cqr")
        assert numbers(e) == [1, 1]


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, 1.0, float("nan")])
def test_08_alpha_lies_strictly_between(alpha):
    with refused(confide.InputError, "alpha"):
        confide.calibrate([0.1] * 50, alpha, 1.0)


@pytest.mark.parametrize("score", DETERMINISTIC)
def test_09_labels_outside_the_classes_raise(score):
    p = np.full((3, 4), 0.25)
    for y, kind in (
        ([0, -1, 2], confide.InputError), ([1, 4, 2], confide.InputError), ([0, 1], confide.InputError),
        ([0.0, 1.0, 2.0], confide.InputTypeError), (["a", "b", "c"], confide.InputTypeError),
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


def test_12_levels_are_exact():
    assert exact_level("alpha", 1 - 0.9) == Fraction(1, 10)
    for n in range(1, 60):
        for thousandths in range(1, 1000, 7):
            k = math.ceil((n + 1) * (1 - exact_level("alpha", thousandths / 1000)))
            assert k == -((-(n + 1) * (1000 - thousandths)) // 1000)
    assert quantile(np.arange(9.0), 0.9) == 8.0  # nine records suffice for 90 %


@pytest.mark.slow
def test_13_records_are_neither_stored_nor_changed():
    rng = np.random.default_rng(13)
    p, y = rng.dirichlet(np.ones(4), 2000), rng.integers(0, 4, 2000)
    p.flags.writeable = y.flags.writeable = False
    for score in DETERMINISTIC:
        scores = confide.class_score(p, y, score)
        released = confide.calibrate(scores, 0.1, 1.0, neighbors="replace_one", score=score)
        assert_threshold_below(released, scores)
        assert_covers(released, 2000, confide.predict_set(p, released).contains(y))
        assert len(pickle.dumps(released)) < 4000
        values = set(json.dumps(json.loads(released.to_json())).replace(",", " ").split())
        assert not values & {repr(float(v)) for v in scores[:200] if v != released.threshold and v not in range(5)}
        confide.predict_set(p, released)


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
