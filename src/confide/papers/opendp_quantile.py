"""OpenDP's note on quantile scores of candidates, by number, in exact fractions.

Shoemate, Covington and Globus-Harris, "def quantile_score_candidates", 28 September 2022. The note is about the scores
and does not specify a selection mechanism. `mechanism="opendp-quantile"` is the private quantile of the later library.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

from confide.papers.checked import without_nan
from confide.support import Level, exact_level

Scores = list[Fraction]


def scores(x: Sequence[float], candidates: Sequence[float], a: Level) -> Scores:
    """(1) and (2): -abs((1-a) #(X < c) - a #(X > c)) for each candidate c.

    Examples
    --------
    >>> [float(s) for s in scores(range(5), range(5), 0.5)]
    [-2.0, -1.0, 0.0, -1.0, -2.0]
    """
    level = exact_level("a", a)
    x = _numbers("x", x)
    candidates = _numbers("candidates", candidates)
    return [-abs((1 - level) * sum(v < c for v in x) - level * sum(v > c for v in x)) for c in candidates]


def scores_by_rank(x: Sequence[float], candidates: Sequence[float], a: Level) -> Scores:
    """(3) and (4): minus the distance of candidate rank and ideal rank, -abs(#(X < c) - a (n - #(X = c))).

    Examples
    --------
    >>> [float(s) for s in scores_by_rank(range(6), range(6), 0.25)]
    [-1.25, -0.25, -0.75, -1.75, -2.75, -3.75]
    """
    level = exact_level("a", a)
    x = _numbers("x", x)
    candidates = _numbers("candidates", candidates)
    return [-abs(sum(v < c for v in x) - level * (len(x) - sum(v == c for v in x))) for c in candidates]


def scores_with_discount(x: Sequence[float], candidates: Sequence[float], a: Level, discount: Fraction) -> Scores:
    """Section 1: -abs(#(X < c) + discount #(X = c) - a n); discount a gives the note's scores, discount 1 Smith's.

    Examples
    --------
    >>> ties, smith = [1, 1, 1, 2], Fraction(1)
    >>> [float(s) for s in scores_with_discount(ties, [1, 2], 0.5, smith)]
    [-1.0, -2.0]
    >>> [float(s) for s in scores(ties, [1, 2], 0.5)]
    [-0.5, -1.5]
    """
    level = exact_level("a", a)
    x = _numbers("x", x)
    candidates = _numbers("candidates", candidates)
    return [-abs(sum(v < c for v in x) + discount * sum(v == c for v in x) - level * len(x)) for c in candidates]


def unsized_sensitivity(a: Level) -> Fraction:
    """Section 2.4: range of score differences when one record is added or removed, 2 max(a, 1-a).

    Examples
    --------
    >>> unsized_sensitivity(0.9)
    Fraction(9, 5)
    """
    level = exact_level("a", a)
    return 2 * max(level, 1 - level)


def sized_sensitivity(distance: int = 2) -> Fraction:
    """Section 3.4: range of score differences at a symmetric distance when the size is public, 1 per unit.

    One changed record is a distance of 2. The pseudocode of 3.1 multiplies by 2 once more, an error of the note: as
    printed it requires twice the necessary amount.

    Examples
    --------
    >>> sized_sensitivity()
    Fraction(2, 1)
    """
    return Fraction(distance)


def largest_range(n: int, candidates: Sequence[float], a: Level, *, sized: bool) -> Fraction:
    """Sections 2.4 and 3.4 by enumeration: largest range of score differences over all data sets of n records.

    Values lie at the candidates, between them, and beyond both ends. Neighbours have one additional record or, if
    `sized`, one changed record.

    Examples
    --------
    >>> largest_range(4, [1, 2], 0.75, sized=False), largest_range(4, [1, 2], 0.75, sized=True)
    (Fraction(3, 2), Fraction(2, 1))
    """
    # Data sets are multisets of these places.
    ordered = sorted(candidates)
    between = [(p + q) / 2 for p, q in pairwise(ordered)]
    places = [ordered[0] - 1, *ordered, *between, ordered[-1] + 1]

    # The largest difference of changes over all neighbours.
    worst = Fraction(0)
    for x in combinations_with_replacement(places, n):
        here = scores(x, candidates, a)
        for other in _neighbours(x, places, sized):
            change = [s - t for s, t in zip(here, scores(other, candidates, a), strict=True)]
            worst = max(worst, max(change) - min(change))
    return worst


def _neighbours(x: tuple[float, ...], places: list[float], sized: bool) -> Iterator[tuple[float, ...]]:
    for place in places:
        if sized:
            yield from ((*x[:i], place, *x[i + 1 :]) for i in range(len(x)))
        else:
            yield (*x, place)


def _numbers(name: str, values: Sequence[float]) -> list[float]:
    return [float(number) for number in without_nan(name, list(values))]
