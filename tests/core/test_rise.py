"""Rise of the prior weights: as slow as their competitors allow, capped because of gaps, and less for few records."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import confide
from confide.core.choice import RISES, competitor_ratio_for, flat_for, gap_crossed, total_rise
from confide.mechanisms.slopes import Slopes
from tests.builders import slow
from tests.exact import mechanism_law


@pytest.mark.parametrize(("m", "rise"), [(13, 3.0), (61, 6.0), (481, 16.0), (1000, 20.0), (30, 1.0)])
def test_prior_weights_rise_as_slowly_as_competitors_allow(m, rise):
    """The stated log weights, against the recursion w_j = max(1, (w_1 + ... + w_(j-1))/G) for their G."""
    rivals = competitor_ratio_for(m, rise)
    weights = [1.0]
    while len(weights) < m:
        weights.append(max(1.0, sum(weights) / rivals))
    assert math.log(weights[-1]) == pytest.approx(rise, abs=1e-6)
    assert total_rise(m, rivals) == pytest.approx(rise, abs=1e-6)
    stated = Slopes(Fraction(0), Fraction(9), 9, 11, 1e6, flat=flat_for(m, rise), rise=int(rise * 1e6))
    step = math.log1p(1 / rivals)
    assert (
        np.abs(stated.log_prior_weights(m) / stated.scale - np.log(weights)).max() < step / 16
    )  # `flat` is in sixteenths
    assert stated.rivals(m) == pytest.approx(rivals, rel=0.05)


@pytest.mark.parametrize("neighbors", ["replace_one", *slow(["add_remove"])])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_gap_is_crossed_where_the_formula_states(neighbors, share):
    """All scores at one candidate and, beyond a gap, at another: the exact probability of an answer beyond it."""
    plan = confide.plan(0.1, 1.0, 2000, neighbors=neighbors, score="lac")
    mechanism, m = plan.mechanism, plan.candidates.size
    shift = float(mechanism.target(2000)) - 0.9 * 2001
    slope = mechanism.slope_right
    limit = gap_crossed(mechanism.total_rise, mechanism.rivals(m), shift, slope, share)
    if share == 0.5:
        assert plan.gap == limit
    begin = round((1 - share) * m) - 5

    def beyond(ranks):
        counts = np.zeros(m, dtype=np.int64)
        counts[begin] = round(0.9 * 2001 + ranks)
        counts[begin + round(share * m)] = 2000 - counts[begin]
        return mechanism_law(mechanism, counts)[begin + 1 :].sum()

    chances = [beyond(limit + away / slope) for away in (-5, -2, 0, 2, 5)]
    assert all(a > b for a, b in pairwise(chances))
    assert chances[0] > 0.98
    assert 0.2 < chances[2] < 0.8
    assert chances[-1] < 0.02


@pytest.mark.parametrize("neighbors", ["replace_one", *slow(["add_remove"])])
def test_the_rise_is_capped_and_small_for_few_records(neighbors):
    """At most 20 for any number of records, increasing with it, and about 0.3 alpha n epsilon for few."""
    assert max(RISES) == 20.0
    sizes = (80, 200, 1000, 100_000)
    made = [confide.plan(0.1, 1.0, n, neighbors=neighbors, score="lac").mechanism for n in sizes]
    rises = [mechanism.total_rise for mechanism in made]
    assert rises == sorted(rises)
    assert rises[0] <= 4.5
    assert 18 <= rises[-1] <= 20
