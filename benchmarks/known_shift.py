"""Cost of a threshold for another population: mean coverage under new class shares, compared with the alternatives.

    python -m benchmarks.known_shift

K classes, equally frequent among the calibration records; new records have shares in proportion to 1/2, 1, ..., 1, 2.
Scores are |N(0, 1)|, twice that in the class that becomes twice as frequent. Coverage at level 0.9 given the data is
computed from the mechanism's exact law, and averaged over 100 data sets.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.small import small
from confide import ClassShift, plan
from confide.candidates import Candidates, Spread
from confide.mechanisms import Slopes, slopes_for
from confide.planning import Terms, mechanism_for
from confide.selection import selection_law

CASES = ((3, 500, 1.0), (3, 1000, 1.0), (10, 1000, 1.0), (10, 3000, 1.0), (10, 10_000, 1.0), (10, 3000, 0.3))
LEVEL, DATA_SETS = 0.9, small(100, 2)


def shift_of(classes: int) -> ClassShift:
    """The hard class, named 0, becomes twice as frequent, and another one half as frequent, up to a factor."""
    return ClassShift.of_weights({0: 2, 1: 0.5, **dict.fromkeys(range(2, classes), 1)})


def covered(thresholds: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coverage of a population in which the classes are weighted, at each threshold of each class, shape (..., K)."""
    scale = np.where(np.arange(len(weights)) == 0, 2.0, 1.0)
    return (2 * stats.norm.cdf(thresholds / scale) - 1) @ (weights / weights.sum())


def drawn(mechanism: Slopes, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The exact law of the choice."""
    utilities = mechanism.utilities(counts) / mechanism.scale
    law = selection_law(np.exp(utilities - utilities.max()), mechanism.selector)
    return law / law.sum()


def plain_proof(epsilon: float, m: int, weight: int) -> Slopes:
    """Theorem A6's own price: equal heights and the offset that the mean of the random rank asks for."""
    deficit = sum(1 / k for k in range(2, m + 1))

    def made(left: int) -> Slopes:
        terms = left, 20 - left, "add_remove", epsilon, "permute_and_flip", weight
        slope = slopes_for(Fraction(9, 10), Fraction(1, 20), *terms).slope_left
        return slopes_for(Fraction(9, 10), Fraction(math.ceil(20 * (0.1 + deficit / slope)), 20), *terms)

    return min(map(made, range(10, 19)), key=lambda one: float(one.offset) + 0.6 / one.slope_right)


def slopes_of(**options: Any) -> tuple[Slopes, Candidates]:
    """The mechanism that answers a request, and its candidates."""
    request = Terms.of(alpha="1/10", candidates=Spread("residual", unit=1.0), **options)
    return cast(Slopes, mechanism_for(request)), request.candidates


def mean_coverages(classes: int, n: int, epsilon: float, rng: np.random.Generator) -> Iterator[float]:
    """Unweighted without privacy, Theorem A6's own price, ours, class-conditional, and the share of its +inf."""
    shift = shift_of(classes)
    steps, new = np.array(shift.steps), np.array([float(ratio) for ratio in shift.ratios])
    ours, ours_over = slopes_of(epsilon=epsilon, population=shift, n_typical=n)
    own, own_over = slopes_of(epsilon=epsilon, n_typical=max(1, n // classes))
    many = Candidates.quantiles(Spread("residual", unit=1.0), 999)
    plain = plain_proof(epsilon, many.size, shift.heaviest)
    found = []
    for _ in range(DATA_SETS):
        label = rng.integers(0, classes, n)
        scores = np.abs(rng.normal(size=n)) * np.where(label == 0, 2.0, 1.0)
        row = [float(covered(np.full(classes, np.sort(scores)[math.ceil(LEVEL * (n + 1)) - 1]), new))]
        for mechanism, over in ((plain, many), (ours, ours_over)):
            place = np.searchsorted(over.edges, scores)
            counts = np.bincount(place, weights=steps[label], minlength=over.size).astype(np.int64)
            row.append(float(drawn(mechanism, counts) @ covered(np.repeat(over.values[:, None], classes, 1), new)))
        each, infinite = 0.0, 0.0
        for name in range(classes):
            place = np.searchsorted(own_over.edges, scores[label == name])
            law = drawn(own, np.bincount(place, minlength=own_over.size))
            scale = 2.0 if name == 0 else 1.0
            each += float(law @ (2 * stats.norm.cdf(own_over.values / scale) - 1)) * new[name] / new.sum()
            infinite += float(law[-1]) / classes
        found.append([*row, each, infinite])
    yield from np.mean(found, axis=0).tolist()


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    print("| K, n, epsilon | no weights, no privacy | plain proof | weights | per class (share of +inf) | plan |")
    print("|---|---|---|---|---|---|")
    for classes, n, epsilon in CASES:
        without, plain, ours, own, infinite = mean_coverages(classes, n, epsilon, rng)
        says = plan(0.1, epsilon, n, score="absolute_residual", unit=1.0, class_weights=shift_of(classes), n_typical=n)
        row = f"| {classes}, {n}, {epsilon:g} | {without:.3f} | {plain:.3f} | {ours:.3f} | {own:.3f} ({infinite:.2f})"
        print(f"{row} | {says.expected_coverage:.3f} |")


if __name__ == "__main__":
    main()
