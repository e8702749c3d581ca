"""OpenDP's quantile: its scores, its loss, and why it is unsuitable for calibration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from opendp.transformations import make_quantile_score_candidates

import confide
from confide.mechanisms.opendp_quantile import _records, _space, opendp_quantile_for
from confide.mechanisms.slopes import slopes_for
from confide.papers.opendp_quantile import (
    largest_range,
    scores,
    scores_by_rank,
    scores_with_discount,
    sized_sensitivity,
    unsized_sensitivity,
)
from confide.selection import selection_law, with_contrib
from tests.exact import added, assert_drawn_from, histograms, law, mechanism_law, replaced, worst_log_ratio


def quantile_scores(counts, level, size=None):
    """OpenDP's scores of all candidates (`make_quantile_score_candidates`), as fractions; larger is better."""
    domain, metric = _space(size)
    candidates = list(range(len(counts)))
    scorer = with_contrib(lambda: make_quantile_score_candidates(domain, metric, candidates, level))
    losses = np.array(scorer(_records(counts)), dtype=np.float64)
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
    assert unsized.privacy_map(1) <= unsized.add_remove**2 / 8 * (1 + 1e-12)
    assert unsized.privacy_map(2) <= unsized.replace_one**2 / 8 * (1 + 1e-12)
    assert unsized.add_remove <= epsilon
    sized = opendp_quantile_for(level, epsilon, 100)
    assert sized.privacy_map(2) <= sized.replace_one**2 / 8 * (1 + 1e-12)
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


@pytest.mark.slow
def test_ties_undercover_through_the_library():
    """The same through `calibrate` with default candidates: the release states that there is no guarantee."""
    scores = np.repeat([0.2, 0.7], [850, 150])
    for _ in range(20):
        released = confide.calibrate(scores, 0.1, 1.0, score="lac", mechanism="opendp-quantile")
        assert np.mean(scores <= released.threshold) == 0.85
        assert (released.guarantee.kind, released.coverage) == ("none", 0.0)
        assert "NO COVERAGE" in str(released)
        assert np.mean(scores <= confide.calibrate(scores, 0.1, 1.0, score="lac").threshold) == 1.0


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
        assert math.sqrt(8 * made.privacy_map(distance)) * made.scale == pytest.approx(float(range_), rel=1e-9)
