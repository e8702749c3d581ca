"""All methods by name: inflated claims, stated losses and coverage; ranks without privacy; OpenDP's quantile."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from opendp.transformations import make_quantile_score_candidates
from scipy import stats

import confide
from confide.errors import InputError
from confide.mechanisms import MECHANISMS, PrivacyStatement, privacy_statement, weak_privacy_text
from confide.mechanisms.opendp_quantile import _space, opendp_quantile_for
from confide.mechanisms.pps import pps_for, pps_of_secret_size
from confide.mechanisms.pps_laplace import pps_laplace_for
from confide.mechanisms.privacy import sequential_composition
from confide.mechanisms.slopes import slopes_for
from confide.mechanisms.split_conformal import SplitConformal, split_conformal_for
from confide.papers.opendp_quantile import (
    largest_range,
    scores,
    scores_by_rank,
    scores_with_discount,
    sized_sensitivity,
    unsized_sensitivity,
)
from confide.selection import selection_law, with_contrib, zcdp_of_range
from confide.support import decimal_text, exact_level
from tests.exact import added, assert_drawn_from, histograms, law, mechanism_law, replaced, worst_log_ratio
from tests.refused import Refused, refused

SCORES = np.random.default_rng(0).random(4000)
FEW = confide.Candidates.unit(40)
NEIGHBORS = {"pps": "replace_one", "pps-laplace": "replace_one", "none": "replace_one"}
CLAIMING = [name for name in MECHANISMS if name != "opendp-quantile"]


def run(name, scores=SCORES, **options):
    epsilon = None if name == "none" else 3.0
    options = {"candidates": FEW, "epsilon": epsilon, "neighbors": NEIGHBORS.get(name, "add_remove"), **options}
    return confide.calibrate(scores, 0.1, mechanism=name, **options)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "slopes"])
@pytest.mark.parametrize("option", [{"delta": 0.1}, {"rho": 0.1}])
def test_options_of_slopes_raise_an_error(name, option):
    with refused(confide.errors.InputError, next(iter(option))):
        run(name, **option)


def test_methods_that_need_a_public_n_raise_an_error():
    with refused(confide.errors.InputError, "neighbors"):
        run("pps-laplace", neighbors="add_remove")
    with refused(confide.errors.InputError, "mechanism"):
        run("best")


def test_losses_are_stated_in_every_unit():
    pps = run("pps").privacy
    assert pps.claimed == pytest.approx(3.0)
    assert pps.epsilon == pps.replace_one < 0.6 * pps.claimed
    assert pps.rho == zcdp_of_range(pps.epsilon)
    assert "the published analysis states 3" in str(pps)
    for name in ("noisy-histogram", "opendp-quantile"):
        secret = run(name).privacy
        assert secret.add_remove == pytest.approx(3.0)
        assert secret.replace_one == pytest.approx(6.0 if name == "opendp-quantile" else 2 * 0.95 * 3.0)
        public = run(name, neighbors="replace_one").privacy
        assert public.add_remove is None
        assert public.replace_one == pytest.approx(3.0)
    assert run("pps", records_per_person=2).privacy.claimed == pytest.approx(3.0)


@pytest.mark.parametrize("name", CLAIMING)
def test_conditional_statement(name):
    released = run(name)
    if name == "noisy-histogram":
        for one, n in ((released, 1000), (run(name, neighbors="replace_one"), None)):
            with refused(confide.errors.InputError, "delta"):
                one.conditional_coverage(0.05, n)
        return
    n = released.size.counted if name == "slopes" else None
    assert 0.7 < released.conditional_coverage(0.05, n) < 1


EVERYDAY = [("slopes", "atoms"), ("pps", "atoms"), ("none", "uniform")]
ATOMS = {
    "uniform": lambda rng, size: rng.random(size),
    "atoms": lambda rng, size: np.where(rng.random(size) < 0.85, 0.2, 0.9),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "scores"),
    [*EVERYDAY, *((name, scores) for name in CLAIMING for scores in ATOMS if (name, scores) not in EVERYDAY)],
)
def test_every_claim_holds(name, scores):
    """One fresh point per calibration, exact binomial test at level 1e-6; the claim of the release is tested."""
    rng, hits, claim = np.random.default_rng(13), 0, 0.0
    for _ in range(300):
        points = ATOMS[scores](rng, 1001)
        released = run(name, points[1:])
        hits += points[0] <= released.threshold
        claim = released.coverage
    assert claim >= 0.9 or name == "none"
    assert stats.binomtest(hits, 300, claim, alternative="less").pvalue > 1e-6
    assert not math.isinf(released.threshold)


# --- invalid arguments, and a single candidate


TENTH = Fraction(1, 10)
MANY = np.array([2**61, 2**61, 0])


ONE, TWO = (privacy_statement(None, "replace_one", number) for number in (1, 2))
FULL = [pps_for(1000, TENTH, 1.0, 3), pps_laplace_for(1000, TENTH, 1.0, 3)]
STATED = {"mechanism": pps_for(100, TENTH, 1.0, 3), "neighbors": "replace_one", "records_per_person": 1}
REFUSED = [
    *(Refused(one.choose, {}, {"counts": MANY}, "counts", kind=InputError) for one in FULL),
    Refused(sequential_composition, {"parts": [ONE]}, {"parts": []}, "parts", kind=InputError),
    Refused(sequential_composition, {"parts": [ONE]}, {"parts": [ONE, TWO]}, "parts", kind=InputError),
    Refused(privacy_statement, STATED, {"neighbors": "add_remove"}, "neighbors", kind=InputError),
]


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_refusals(row):
    row.check()


def test_one_candidate_has_no_competitors():
    """The rank is the target rounded up, with probability 1."""
    for mechanism in (pps_of_secret_size(TENTH, 1.0, 1, 100), pps_for(100, TENTH, 1.0, 1)):
        target = mechanism.target(100) if hasattr(mechanism, "target") else mechanism.level * 100
        ranks, probabilities, bottom = mechanism.rank_law(100, 1)
        assert ranks[np.argmax(probabilities)] == -(-target // 1)
        assert probabilities.max() == pytest.approx(1.0)
        assert bottom == pytest.approx(0.0)


# --- a large epsilon is practically no protection


def statement(epsilon):
    return PrivacyStatement("add_remove", epsilon, 1, epsilon, epsilon, None)


def test_what_a_large_loss_means():
    for epsilon in (1e-6, 1.0, 10.0):
        assert weak_privacy_text(epsilon) == statement(epsilon).weak == ""
    assert f"e^10.5 = {math.exp(10.5):,.0f} fold" in str(statement(10.5))
    assert "e^1,000,000 fold" in str(statement(1e6))
    assert statement(math.inf).weak == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1,000,000"), (1e-6, "0.000001"), (12345.678, "12,350"), (0.5, "0.5"), (0.0, "0"), (math.inf, "inf")],
)
def test_losses_are_decimal_numbers(value, text):
    assert decimal_text(value) == text


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(0.9, "0.9"), (0.900005, "0.9"), (0.9012345, "0.901234"), (0.99999, "0.99999"), (0.999999, "0.999999"),
     (0.876543, "0.876543"), (1.0, "1"), (0.8999999, "0.899999")],
)  # fmt: skip
def test_coverage_is_rounded_down(coverage, text):
    assert f"at least {text} on" in str(confide.Guarantee("marginal", coverage, None, 100, None))
    assert float(text) <= coverage


HUNDREDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 18, 20, 21, 23, 25, 28, 30, 33, 35, 40, 45, 50, 55, 70, 90)
SIZES = (*range(1, 21), 24, 29, 39, 49, 59, 79, 99, 100, 124, 149, 199)
"""868 cells: all small sizes, and those at which (n+1)(1-alpha) is a whole number, where floats give wrong ranks."""


def integer_rank(hundredths, n):
    """ceil((n+1)(1-alpha)) in integers alone; None means +inf."""
    rank = -(-(n + 1) * (100 - hundredths) // 100)
    return rank if rank <= n else None


def forms(hundredths):
    """One level in every common form, also as an inexact sum of floats."""
    text = f"0.{hundredths:02d}"
    exact = Fraction(hundredths, 100), f"{hundredths}/100", Decimal(text), text, f"{hundredths}e-2"
    return *exact, float(text), np.float64(text), 1 - (100 - hundredths) / 100


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_ranks_are_those_of_exact_integers_on_the_whole_grid():
    """The threshold of the scores 1, ..., n, if they are candidates, is its own rank."""
    floats_wrong, whole = 0, confide.Candidates.of(np.arange(1.0, 200.0))
    for place, (hundredths, n) in enumerate(itertools.product(HUNDREDTHS, SIZES)):
        rank, written = integer_rank(hundredths, n), forms(hundredths)
        for alpha in written:
            mechanism = split_conformal_for(1 - exact_level("alpha", alpha), n)
            assert mechanism == (None if rank is None else SplitConformal(rank)), (alpha, n)
        scores = np.arange(n, 0.0, -1.0)
        released = confide.calibrate(scores, written[place % len(written)], mechanism="none", candidates=whole)
        assert released.threshold == (math.inf if rank is None else rank), (hundredths, n)
        assert released.guarantee.coverage == (1 if rank is None else pytest.approx(rank / (n + 1), abs=1e-15))
        floats_wrong += math.ceil((n + 1) * (1 - hundredths / 100)) != (rank or n + 1)
    assert place + 1 == 868
    assert floats_wrong == 13  # the grid contains cells that show the difference


def test_coverage_is_exact_for_every_order_and_every_tie():
    """Leave-one-out over all multisets: never below k/(n+1), and equal to it without ties."""
    n, alpha = 5, Fraction(1, 3)
    mechanism = split_conformal_for(1 - alpha, n)
    rank = mechanism.rank
    for points in itertools.combinations_with_replacement(range(4), n + 1):
        covered = 0
        for i in range(n + 1):
            rest = points[:i] + points[i + 1 :]
            covered += points[i] <= mechanism.choose(np.bincount(rest, minlength=5))
        assert covered >= rank
    points = np.arange(n + 1)
    assert sum(p <= mechanism.choose(np.bincount(np.delete(points, p), minlength=n + 2)) for p in points) == rank


@pytest.mark.parametrize("score", [None, "lac", "absolute_residual"])
def test_the_threshold_is_the_least_candidate_that_reaches_the_quantile(score):
    scores = np.random.default_rng(0).random(500)
    released = confide.calibrate(scores, 0.1, mechanism="none", score=score)
    edges, exact = confide.Candidates.from_recipe(released.recipe).edges, np.sort(scores)[450]
    assert released.threshold == edges[edges >= exact][0]
    assert released.threshold - exact < 0.001


def test_release_is_marked_not_private():
    released = confide.calibrate(np.random.default_rng(0).random(500), 0.1, mechanism="none")
    assert released.coverage == pytest.approx(451 / 501)
    assert math.isinf(released.epsilon)
    assert math.isinf(released.privacy.loss("add_remove"))
    assert "NOT PRIVATE" in str(released)
    assert "NOT PRIVATE" in str(confide.Release.from_json(released.to_json()))
    assert released.conditional_coverage(0.05) < 0.9 < released.coverage_at_most() < 0.902


def test_it_is_never_a_default():
    for options in ({}, {"epsilon": 1.0, "mechanism": "none"}):
        with refused(confide.errors.InputError, "epsilon"):
            confide.calibrate([0.5, 0.6], 0.1, **options)


def quantile_scores(counts, level, size=None):
    """OpenDP's scores of all candidates (`make_quantile_score_candidates`), as fractions; larger is better."""
    domain, metric = _space(size)
    candidates = list(range(len(counts)))
    scorer = with_contrib(lambda: make_quantile_score_candidates(domain, metric, candidates, level))
    losses = np.array(scorer(np.repeat(np.arange(len(counts), dtype=np.int64), counts)), dtype=np.float64)
    # OpenDP multiplies by a denominator; the map of two additions determines it.
    unit = scorer.map(2) / (2 * max(level, 1 - level)) if size is None else scorer.map(2)
    return -losses / unit


def formula(counts, a):
    below = np.cumsum(counts) - counts
    above = np.sum(counts) - np.cumsum(counts)
    return -np.abs((1 - a) * below - a * above)


@pytest.mark.parametrize("sized", [False, True])
def test_scores_are_opendps(sized):
    rng = np.random.default_rng(0)
    for _ in range(10):
        counts = rng.integers(0, 6, 7)
        n = int(counts.sum())
        got = quantile_scores(counts, 0.9, n if sized else None)
        np.testing.assert_allclose(got, formula(counts, 0.9), atol=1e-9)


@pytest.mark.parametrize("level", [Fraction(9, 10), Fraction(1, 2), Fraction(2, 3), Fraction(1, 20)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
def test_stated_loss_is_opendps(level, epsilon):
    unsized = opendp_quantile_for(level, epsilon, None)
    assert unsized.measurement(2).map(1) <= unsized.add_remove**2 / 8 * (1 + 1e-12)
    assert unsized.measurement(2).map(2) <= unsized.replace_one**2 / 8 * (1 + 1e-12)
    assert unsized.add_remove <= epsilon
    sized = opendp_quantile_for(level, epsilon, 100)
    assert sized.measurement(2).map(2) <= sized.replace_one**2 / 8 * (1 + 1e-12)
    assert epsilon * (1 - 1e-9) < sized.replace_one <= epsilon


@pytest.mark.slow
def test_loss_by_enumeration():
    """The stated loss is a bound under both relations, and nearly reached under add/remove."""
    unsized = opendp_quantile_for(Fraction(9, 10), 1.0, None)
    output = lambda h: law(formula(np.array(h), 0.9), unsized.scale)  # noqa: E731
    starts = [h for n in range(8) for h in histograms(n, 4)]
    assert worst_log_ratio(output, starts, added) <= unsized.add_remove + 1e-9
    assert 0.8 < worst_log_ratio(output, histograms(39, 3), added) <= unsized.add_remove + 1e-9
    sized = opendp_quantile_for(Fraction(9, 10), 1.0, 8)
    output = lambda h: law(formula(np.array(h), 0.9), sized.scale)  # noqa: E731
    assert worst_log_ratio(output, histograms(8, 4), replaced) <= sized.replace_one + 1e-9


@pytest.mark.long
@pytest.mark.parametrize("sized", [False, True])
def test_sampler_matches_the_law(sized):
    counts = np.array([3, 0, 5, 1, 2, 0, 1])
    mechanism = opendp_quantile_for(Fraction(9, 10), 1.0, 12 if sized else None)
    assert_drawn_from(mechanism, counts, law(formula(counts, 0.9), mechanism.scale), 4000)


def test_ties_pull_it_to_the_wrong_end():
    """85 % of the scores at 0.2 and 15 % at 0.7: at level 0.9 it lands between them, where coverage is 0.85.

    The slope mechanism lands at .7, where everything is covered. Exact laws; n = 1000, epsilon = 1.
    """
    counts = np.array([0, 850, 0, 0, 0, 150, 0, 0])  # ties in the bins of 0.2 and 0.7
    coverage = np.cumsum(counts) / 1000
    theirs = law(formula(counts, 0.9), opendp_quantile_for(Fraction(9, 10), 1.0, None).scale)
    assert theirs[coverage == 0.85].sum() > 1 - 1e-6
    ours = slopes_for(Fraction(0), Fraction(908), 13, 7, "replace_one", 1.0)
    assert mechanism_law(ours, tuple(counts.tolist()))[coverage >= 0.9].sum() > 1 - 1e-6


def test_it_aims_at_the_level_itself():
    """It has no margin for the noise: with 100 uniform scores and epsilon 0.3, mean coverage is below 0.9."""
    counts, edges = np.full(100, 1), np.arange(1, 101) / 100
    u = formula(counts, 0.9) / opendp_quantile_for(Fraction(9, 10), 0.3, None).scale
    assert selection_law(np.exp(u - u.max())) @ edges < 0.9


# --- the note on quantile scores, by number


@pytest.mark.parametrize(
    ("size", "a", "want"),
    [
        (5, 0.5, [-2, -1, 0, -1, -2]),
        (6, 0.5, [-2.5, -1.5, -0.5, -0.5, -1.5, -2.5]),
        (5, 0.25, [-1, 0, -1, -2, -3]),
        (6, 0.25, [-1.25, -0.25, -0.75, -1.75, -2.75, -3.75]),
    ],
)
def test_section_1_1_worked_examples(size, a, want):
    """X = {0..4} and {0..5}, a = .5 and .25: the note's numbers, and those of the installed library."""
    x = range(size)
    assert scores(x, x, a) == scores_by_rank(x, x, a) == [Fraction(w) for w in want]
    np.testing.assert_allclose(quantile_scores(np.ones(size, np.int64), a), want, atol=1e-12)


@pytest.mark.parametrize("a", [0.5, 0.9, 0.25])
def test_both_forms_are_one_and_smith_counts_ties_whole(a):
    """(1) = (4) = the form with a discount of a on ties; Smith's discount is 1. Equal without ties at the candidate."""
    x, candidates, level = [1, 1, 1, 2, 4, 4, 7], [0, 1, 2, 3, 4, 5, 7, 8], Fraction(str(a))
    smith = scores_with_discount(x, candidates, a, Fraction(1))
    assert scores(x, candidates, a) == scores_by_rank(x, candidates, a)
    assert scores(x, candidates, a) == scores_with_discount(x, candidates, a, level)
    for c, ours, theirs in zip(candidates, scores(x, candidates, a), smith, strict=True):
        assert (ours == theirs) == (c not in x) or abs(ours) == abs(theirs)
    assert smith == [-abs(sum(v <= c for v in x) - level * len(x)) for c in candidates]
    assert smith != scores(x, candidates, a)


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.5, 0.75])
def test_sensitivities_by_enumeration(a):
    """Sections 2.4 and 3.4 bound every neighbour, and are attained: with four records already."""
    for n in (2, 3, 4):
        assert largest_range(n, [1, 2], a, sized=False) <= unsized_sensitivity(a)
        assert largest_range(n, [1, 2], a, sized=True) <= sized_sensitivity()
    assert largest_range(4, [1, 2], a, sized=False) == unsized_sensitivity(a)
    assert largest_range(4, [1, 2], a, sized=True) == sized_sensitivity() == 2


def test_the_library_has_the_sensitivities_of_the_derivation_not_of_the_pseudocode():
    """In units of its scores: 2 max(a, 1-a) per added or removed record, 2 and not 4 per changed one.

    OpenDP states the zCDP loss, range^2/8.
    """
    for size, distance, range_ in ((None, 1, unsized_sensitivity(0.9)), (100, 2, sized_sensitivity(2))):
        made = opendp_quantile_for(Fraction(9, 10), 1.0, size)
        assert math.sqrt(8 * made.measurement(2).map(distance)) * made.scale == pytest.approx(float(range_), rel=1e-9)
