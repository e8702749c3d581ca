"""OpenDP's note on quantile scores: worked examples, both forms, Smith's scores, sensitivities by enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest

from confide.mechanisms import opendp_quantile_for
from confide.papers.opendp_quantile import (
    largest_range,
    scores,
    scores_by_rank,
    scores_with_discount,
    sized_sensitivity,
    unsized_sensitivity,
)
from tests.mechanisms.opendp_scores import quantile_scores


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
