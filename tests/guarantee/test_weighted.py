"""The certificate for weighted records, compared with the enumeration of all small data sets (Theorem A6)."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from confide.core import ClassShift
from confide.guarantee import SlopeNoise, tail, weighted_loss, weighted_prior_bonus, weighted_shortfall
from confide.guarantee.certificate import worst_loss
from confide.mechanisms import Slopes, slopes_for
from tests import designs
from tests.exact import mechanism_law


def missed(mechanism: Slopes, points: tuple[tuple[int, int], ...], m: int) -> Fraction | float:
    """The probability, under the shifted population, that the new point among these (bin, weight) is missed."""
    whole = np.zeros(m, dtype=np.int64)
    for place, weight in points:
        whole[place] += weight
    lost = 0.0
    for (place, weight), times in {point: points.count(point) for point in points}.items():
        others = whole.copy()
        others[place] -= weight
        lost += times * weight * float(mechanism_law(mechanism, others)[:place].sum())
    return lost / int(whole.sum())


def planned(alpha: str, epsilon: float, m: int, rise: float | None = None) -> Slopes:
    """The mechanism for weights 1, 2 and 3."""
    shift = ClassShift.of_weights({"a": 1, "b": 2, "c": 3})
    made = designs.planned(designs.terms(alpha, m, epsilon, population=shift), 10, rise=rise).mechanism
    assert isinstance(made, Slopes)
    assert made.weight == 3
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon", "rise"), [("1/2", 4.0, None), ("1/3", 6.0, 0.0), ("3/10", 12.0, 2.0)])
def test_coverage_of_the_shifted_population_by_enumeration(alpha: str, epsilon: float, rise: float | None) -> None:
    """For all points and weights, the new one, drawn by weight, is missed with probability at most alpha."""
    mechanism = planned(alpha, epsilon, 3, rise)
    kinds = list(product(range(3), (1, 2, 3)))
    worst = max(
        missed(mechanism, points, 3) for size in range(1, 6) for points in combinations_with_replacement(kinds, size)
    )
    assert 0.45 * float(Fraction(alpha)) < worst <= float(Fraction(alpha)) + 1e-12


@pytest.mark.slow
def test_few_records_have_the_head_start_of_infinity() -> None:
    """One or two points over five candidates, at a small alpha: without the bonus half of them are missed."""
    mechanism = planned("1/10", 1.0, 5, 0.0)
    kinds = list(product(range(5), (1, 2, 3)))
    few = [points for size in (1, 2) for points in combinations_with_replacement(kinds, size)]
    assert max(missed(mechanism, points, 5) for points in few) <= 0.1
    assert max(missed(replace(mechanism, head_start=0), points, 5) for points in few) > 0.4


def test_smaller_offset_would_break_the_promise() -> None:
    """The enumeration detects errors: without its offset and bonus the mechanism misses more than alpha."""
    made = planned("1/2", 4.0, 3)
    plain = slopes_for(made.rate, Fraction(-1, 2), made.left, made.right, "add_remove", 4.0, 3)
    kinds = list(product(range(3), (1, 2, 3)))
    worst = max(missed(plain, points, 3) for size in (1, 2) for points in combinations_with_replacement(kinds, size))
    assert worst > 0.5


@pytest.mark.slow
def test_loss_by_enumeration() -> None:
    """All data of weight up to 27 over three candidates, and every neighbour: the stated loss is nearly attained."""
    mechanism, most = planned("1/4", 6.0, 3), 30
    laws = {
        c: np.log(mechanism_law(mechanism, np.array(c))) for c in product(range(most + 1), repeat=3) if sum(c) <= most
    }
    added = replaced = 0.0
    for counts in (one for one in laws if sum(one) <= most - 3):
        more = np.array(
            [
                laws[tuple(count + weight * (i == place) for i, count in enumerate(counts))]
                for place, weight in product(range(3), (1, 2, 3))
            ]
        )
        added = max(added, float(np.abs(more - laws[counts]).max()))
        replaced = max(replaced, float(np.abs(more[:, None] - more[None]).max()))
    assert 0.75 * mechanism.add_remove < added <= mechanism.add_remove + 1e-9
    assert added < replaced <= mechanism.replace_one + 1e-9


@pytest.mark.parametrize("rivals", [3.0, 28.0, 999.0])
def test_never_worse_than_the_random_rank(rivals: float) -> None:
    """The certificate needs less than the direct proof: the mean deficit of the random rank plus one largest weight."""
    slope = 0.6
    deficits = (np.arange(200_000) + 0.5) * 1e-3
    mean = float(tail(deficits, slope, rivals).sum()) * 1e-3
    lost = weighted_loss(0.0, slope, rivals)
    assert lost < 0.75 * mean
    assert mean == pytest.approx(math.log1p(rivals) / slope, rel=1e-3)
    # With equal weights, the unweighted certificate needs half a record less.
    alike = worst_loss(160, SlopeNoise(slope, 0.5, rivals)) - 2
    assert alike < lost < alike + 0.6


def test_head_start_is_needed_and_enough() -> None:
    terms = Fraction(9, 10), Fraction(4)
    noise = SlopeNoise(0.7, 0.5, 30.0)
    ahead = weighted_prior_bonus(*terms, 0.1, noise)
    assert weighted_shortfall(*terms, ahead, 0.1, noise) <= 0
    assert weighted_shortfall(*terms, ahead - 0.2, 0.1, noise) == math.inf
    assert weighted_shortfall(terms[0], Fraction(2), 40.0, 0.1, noise) > 0


def test_sums_beyond_64_bits_are_supported() -> None:
    """Weights are whole numbers up to 2^20: totals that 64 bits cannot multiply are computed exactly."""
    shift = ClassShift.of_weights({"a": "0.999983", "b": 1})
    mechanism = designs.planned(designs.terms("0.123457", 4, 1.0, population=shift), 1).mechanism
    assert isinstance(mechanism, Slopes)
    counts = np.array([2**46, 2**46, 2**40, 0])
    assert mechanism.utilities(counts).argmax() == mechanism.utilities(counts // 2**6).argmax()
