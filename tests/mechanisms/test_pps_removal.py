"""`pps` for a secret number of records: the exact loss of removing one; coverage for every n; nothing reveals n."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import confide
from confide.errors import FormatError
from confide.guarantee import RecordCount, marginal_coverage
from confide.mechanisms.pps import GRID, PpsOfSecretSize, pps_for, pps_of_secret_size
from confide.mechanisms.utilities import INT64_ROOM
from confide.papers import private_prediction_sets as papers
from confide.selection import zcdp_of_range
from confide.support import scale_for
from tests.exact import added, assert_drawn_from, histograms, mechanism_law, replaced, worst_coverage, worst_log_ratio
from tests.files import resealed
from tests.refused import refused

TENTH = Fraction(1, 10)
pytestmark = pytest.mark.filterwarnings("ignore:the threshold is:confide.CoverageWarning")  # about 1e-4


def line(rate, offset, epsilon=1.0):
    return PpsOfSecretSize(Fraction(rate), Fraction(offset), 0.01, scale_for(2 * GRID, epsilon))


# --- the law -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "offset"), [("1/2", "0"), ("3/4", "1/3"), ("9/10", "2"), ("9/10", "1000")])
def test_law_is_the_published_one_at_the_level_of_each_n(rate, offset):
    mechanism = line(rate, offset, 0.7)
    for n in range(1, 8):
        q = min(1.0, float((Fraction(rate) * (n + 1) + Fraction(offset)) / n))
        assert float(mechanism.level(n)) == q
        for h in histograms(n, 4):
            np.testing.assert_allclose(mechanism_law(mechanism, h), papers.quantile_law(h, q, 0.7), rtol=1e-6)


def test_the_line_is_equation_3_of_every_n():
    mechanism = pps_of_secret_size(TENTH, 1.0, 1000, 1000)
    for n in (300, 1000, 20_000, 10**7):
        exact = papers.adjusted_level(n, TENTH, 1.0, 1000, mechanism.gamma)
        assert 0 <= float(mechanism.level(n)) - exact < 2e-7
    assert mechanism.level(mechanism.reached_from) < 1 == mechanism.level(mechanism.reached_from - 1)
    assert float(mechanism.level(1000)) == pytest.approx(float(pps_for(1000, TENTH, 1.0, 1000).level), abs=2e-7)


# --- the loss ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "offset"), [("1/2", "0"), ("1/2", "1/3"), ("3/4", "1/3"), ("9/10", "0")])
@pytest.mark.parametrize("epsilon", [1.0, 16.0])
def test_removing_a_record_costs_half_of_epsilon(rate, offset, epsilon):
    """Every histogram, every neighbour: never above epsilon/2, and nearly attained; replacing one as stated."""
    mechanism = line(rate, offset, epsilon)
    assert mechanism.add_remove == epsilon / 2 == mechanism.claimed / 2
    worst = worst_log_ratio(
        lambda h: mechanism_law(mechanism, h), [h for n in range(8) for h in histograms(n, 4)], added
    )
    assert (0.99 if epsilon > 9 else 0.9) * epsilon / 2 < worst <= epsilon / 2 + 1e-9
    worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(7, 4), replaced)
    assert worst <= mechanism.replace_one + 1e-9
    assert mechanism.replace_one <= epsilon


def test_every_exponent_rises_by_between_zero_and_one_rank():
    """The integers themselves, at all sizes: removing a record raises each utility by 0 to 2**24, exactly."""
    rng = np.random.default_rng(0)
    mechanisms = [line("1/2", "0"), line("1/2", "1/7"), pps_of_secret_size(TENTH, 0.1, 1000, 1000)]
    mechanisms.append(pps_of_secret_size(Fraction(1, 2), 5.0, 40, 10**6))
    for mechanism in mechanisms:
        for n in (1, 2, 3, 60, 1000, 10**6, 23_294_000, 2**37):
            for shape in ("last bins empty", "spread", "one bin"):
                p = {"spread": np.full(6, 1 / 6), "one bin": np.eye(6)[2]}.get(
                    shape, np.array([0.5, 0.4, 0.1, 0, 0, 0])
                )
                counts = rng.multinomial(n, p)
                for k in np.flatnonzero(counts):
                    less = counts - np.eye(6, dtype=np.int64)[k]
                    rise = mechanism.utilities(less) - mechanism.utilities(counts)
                    assert rise.min() >= 0
                    assert rise.max() <= GRID


def test_every_number_of_records_is_accepted():
    """Utilities beyond 64 bits are saturated, so that no error reveals the size of the data."""
    mechanism = pps_of_secret_size(TENTH, 1.0, 3, 1000)
    counts = np.array([2**46, 2**46, 2**43])
    less = mechanism.utilities(counts - [1, 0, 0]) - mechanism.utilities(counts)
    assert less.max() - less.min() <= GRID
    assert mechanism.choose(counts) in (0, 1, 2)
    n, below = int(counts.sum()), 0
    odds, exact = n / mechanism.target(n) - 1, []
    for count in counts.tolist():
        exact.append(-max(below * (GRID * odds.numerator) // odds.denominator, GRID * (n - below - count)))
        below += count
    assert mechanism.utilities(counts).tolist() == [max(u - max(exact), -INT64_ROOM) for u in exact]
    assert mechanism.utilities(np.zeros(3, dtype=np.int64)).tolist() == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [Fraction(1, 100), TENTH, Fraction(1, 2)])
def test_growth_with_the_gamma_that_moves_with_n(alpha):
    """n/q(n) grows by at most 2 and q(n) falls, also with gamma*(n) of (10) and the cap at 1."""
    for epsilon in (0.1, 1.0, 100.0):
        for m in (2, 1000):
            sizes = np.r_[1:300, 10**4 : 10**4 + 3]
            level = [min(1.0, papers.adjusted_level(int(n), alpha, epsilon, m)) for n in sizes]
            steps = np.diff(sizes / np.array(level))[np.diff(sizes) == 1]
            assert steps.max() <= 2 + 1e-9
            assert np.diff(level).max() <= 1e-12


def test_a_level_rounded_for_each_n_would_leak():
    """The line is rounded and not its level: a level that falls by a step of 2**-24 moves n/q by more than 2."""
    c, offset, j = Fraction(math.ceil(0.9 * GRID), GRID), 26, 20
    n = offset * GRID // j  # ceil(2^24 offset/n) falls from j + 1 to j about here
    exact = [c + Fraction(offset, one) for one in (n - 1, n)]
    assert n / exact[1] - (n - 1) / exact[0] < 2
    jumps = []
    for one in range(n - 3, n + 3):
        levels = [Fraction(math.ceil((c + Fraction(offset, k)) * GRID), GRID) for k in (one - 1, one)]
        jumps.append(one / levels[1] - (one - 1) / levels[0])
    assert max(jumps) > 2.5


@pytest.mark.slow(unless=("0.6-20-0.1-4.0-0.6", "0.8-6-0.1-4.0-0.99"))
@pytest.mark.parametrize(
    ("alpha", "n", "gamma", "epsilon", "times"),
    [("0.6", 20, 0.1, 4.0, 0.6), ("0.8", 6, 0.1, 4.0, 0.99), ("0.9", 20, 0.1, 1.0, 1.05)],
)
def test_above_one_half_the_claim_fails(alpha, n, gamma, epsilon, times):
    """In the printed range, alpha in (1/2, 1), removal costs more than epsilon/2; for alpha = 0.9 more than epsilon.

    With the level of equation (3) recomputed for the n that is there, as Algorithm 3 does: Proposition 1 fails.
    """

    def at(h):
        return papers.quantile_law(h, min(1.0, papers.adjusted_level(sum(h), alpha, epsilon, 3, gamma)), epsilon)

    worst = worst_log_ratio(at, histograms(n, 3), added)
    assert worst > times * epsilon > epsilon / 2
    low = line("2/5", "1/3")
    assert (low.add_remove, low.replace_one) == (math.inf, math.inf)
    with refused(confide.errors.InputError, "alpha"):
        confide.calibrate([0.5] * 9, alpha, 1.0, mechanism="pps")


@pytest.mark.slow
def test_sampler_matches_the_law():
    """Below and above the cap."""
    for mechanism in (line("3/4", "1/2", 0.5), line("3/4", "100", 0.5)):
        counts = [3, 0, 5, 1, 2, 0, 1]
        assert_drawn_from(mechanism, counts, mechanism_law(mechanism, counts), 700)


# --- coverage ----------------------------------------------------------------------------------------------------


@pytest.mark.slow(unless=("1/2-1/2-8.0", "1/2-4-2.0"))
@pytest.mark.parametrize(("rate", "offset", "epsilon"), [("1/2", "1/2", 8.0), ("3/5", "1", 8.0), ("1/2", "4", 2.0)])
def test_certified_coverage_holds_for_every_multiset_and_every_n(rate, offset, epsilon):
    mechanism, m = line(rate, offset, epsilon), 4
    worst = {n: worst_coverage(mechanism, n, m) for n in range(1, 10)}
    for n_min in range(1, 10):
        claimed = float(mechanism.certified(Fraction(99, 100), m, RecordCount(n_min, public=False)))
        assert min(worst[n] for n in range(n_min, 10)) >= claimed - 1e-12
        assert claimed > 0


@pytest.mark.parametrize("n_min", [40, 41, 100])
def test_certified_coverage_is_that_of_the_smallest_number(n_min):
    """With an offset below the price of the noise, coverage grows with n, and none is lost."""
    mechanism, m = line("3/4", "1", 1.0), 50
    price = math.log(m) / mechanism.slope_left
    assert mechanism.reached_from <= n_min
    assert float(mechanism.offset) < price
    each = [(float(mechanism.target(n)) - price) / (n + 1) for n in range(n_min, 2000)]
    claimed = mechanism.certified(Fraction(99, 100), m, RecordCount(n_min, public=False))
    assert float(claimed) == pytest.approx(min(each), abs=1e-9)


@pytest.mark.parametrize(("alpha", "epsilon", "m"), [(TENTH, 1.0, 1000), (TENTH, 5.0, 50), (Fraction(1, 2), 0.3, 100)])
def test_the_published_claim_where_the_level_is_not_cut(alpha, epsilon, m):
    mechanism = pps_of_secret_size(alpha, epsilon, m, 1000)
    first, level = mechanism.reached_from, 1 - alpha
    assert mechanism.certified(level, m, RecordCount(first, public=False)) == level
    # each n alone, by the random-rank lemma, from which the bound for all n follows
    for n in [*range(first, first + 40), 10_000]:
        assert marginal_coverage(n, float(mechanism.target(n)), mechanism.slope_left, m - 1.0) >= level
    # if it is capped, the smallest n decides
    lemma = [marginal_coverage(n, float(n), mechanism.slope_left, m - 1.0) for n in range(1, first, 7)]
    assert lemma == sorted(lemma)
    claimed = mechanism.certified(level, m, RecordCount(1, public=False))
    assert float(claimed) == pytest.approx(min(lemma[0], float(level)))
    assert lemma[0] < 0.5


def test_upper_bound_holds():
    n, m, rng = 2000, 500, np.random.default_rng(3)
    mechanism, edges = pps_of_secret_size(TENTH, 1.0, m, 1000), np.arange(1, m + 1) / m
    coverage = [
        mechanism_law(mechanism, np.bincount((rng.random(n) * m).astype(int), minlength=m)) @ edges for _ in range(50)
    ]
    error = stats.t.isf(1e-6, 49) * np.std(coverage, ddof=1) / np.sqrt(50)
    assert np.mean(coverage) - error <= mechanism.coverage_at_most(n, m) + 1 / m < 1.0
    assert mechanism.coverage_at_most(100, m) == 1.0


# --- what is released --------------------------------------------------------------------------------------------


def release(n=900, **options):
    options = {"candidates": confide.Candidates.unit(40), "n_min": 300, "score": "lac", **options}
    scores = np.random.default_rng(n).random(n)
    return confide.calibrate(scores, 0.1, 2.0, mechanism="pps", neighbors="add_remove", **options)


@pytest.fixture(scope="module")
def released():
    return release()


def test_the_release_states_both_losses_and_reads_back(released, tmp_path):
    assert released.guarantee.coverage == 0.9
    assert (released.guarantee.n, released.guarantee.n_min) == (None, 300)
    privacy = released.privacy
    assert (privacy.neighbors, privacy.epsilon, privacy.add_remove, privacy.claimed) == ("add_remove", 1.0, 1.0, 2.0)
    assert 1.0 < privacy.replace_one < 1.2
    assert privacy.rho == zcdp_of_range(1.0)
    assert "1-differential privacy" in str(released)
    assert "adding or removing one record (the published analysis states 2)" in str(released)
    assert confide.Release.from_json(released.to_json()) == released
    ledger = confide.Ledger(tmp_path / "budget.db", limit=1.5)  # the loss that is charged is the proven one
    assert release(ledger=ledger, dataset="records").privacy == privacy
    with pytest.raises(confide.BudgetError):
        release(ledger=ledger, dataset="records", again=True)


@pytest.mark.parametrize(
    ("place", "change"), [("mechanism", {"rate": "8/9"}), ("mechanism", {"offset": "-3"}), ("request", {"n_min": 1})]
)
def test_inflated_claims_raise_an_error(place, change, released):
    with pytest.raises(FormatError):
        confide.Release.from_json(resealed(released, place, change))


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
@pytest.mark.parametrize(("neighbors", "least"), [("replace_one", {}), ("add_remove", {"n_min": 2})])
def test_a_release_with_the_least_epsilon_is_read(neighbors, least):
    """Half of the requested epsilon is spent: the least epsilon of a request is not the least proven loss."""
    options = {"mechanism": "pps", "neighbors": neighbors, "candidates": confide.Candidates.published(4), **least}
    calibration = confide.calibrate(np.linspace(0.1, 0.9, 5), 0.1, 1e-6, score="lac", **options)
    assert calibration.privacy.epsilon < 0.6e-6
    assert confide.Release.from_json(calibration.to_json()) == calibration


def test_nothing_that_is_released_depends_on_n():
    """All but the threshold and the checksum: the same texts, files and numbers for every number of records."""

    def without_threshold(one):
        content = json.loads(one.to_json())
        del content["thresholds"][0]["threshold"], content["sha256"]
        return content

    for candidates in (confide.Candidates.unit(40), None, confide.Candidates.around(0.9)):
        few, many = (release(n, candidates=candidates) for n in (1, 20_000))
        assert without_threshold(few) == without_threshold(many)
        assert str(few.guarantee) + str(few.privacy) == str(many.guarantee) + str(many.privacy)
