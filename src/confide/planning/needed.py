"""How many records it takes until an answer beyond all scores is unlikely.

Where n is public every number of records has candidates, slopes and a rise of its own. Here they are decided as for a
plan, but nothing is certified: the search takes target ranks that are known closely, as decisions themselves do.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from confide.candidates import Candidates, Spread
from confide.planning.choice import Choice, mean_price
from confide.planning.reference_laws import ReferenceLaws
from confide.planning.terms import Terms
from confide.planning.typical import typical_law
from confide.support import MOST_RECORDS

_ROUNDS, _AGREE = 8, 0.03


def likely_enough(request: Terms) -> int:
    """A first guess of the number of records; the same for a loss that is asked for and one that is spent."""
    return min(math.ceil(12 / float(request.alpha) / min(float(f"{request.per_record:.6g}"), 1.0)), MOST_RECORDS)


def needed_text(needed: int, each: str = "") -> str:
    """The number of records that are needed, in words; `each` is what each has so many of.

    Examples
    --------
    >>> needed_text(210)
    'about 210; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, or above every score)'
    """
    return (
        f"about {needed:,}{each}; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, or above "
        "every score)"
    )


def least(enough: Callable[[int], bool], guess: int, parts: int = 10) -> int:
    """The least number that is enough, but for one of so many parts of it; the most that there can be if none is.

    Examples
    --------
    >>> least(lambda n: n >= 100, 30), least(lambda n: n >= 100, 7, parts=1000)
    (105, 100)
    """
    many = guess
    while many < MOST_RECORDS and not enough(many):
        many = min(2 * many, MOST_RECORDS)
    few = many // 2
    while few and enough(few):
        few, many = few // 2, few
    while many - few > max(1, many // parts):
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def closely_needed(request: Terms, of: Candidates | Spread, unlikely: float) -> int:
    """About the least public n with a chance of at most `unlikely`, each n with the decision that suits it.

    The least for one decision is the number that the next decision is made for, until they agree.

    Examples
    --------
    >>> from confide.planning.terms import Terms
    >>> request = Terms.of(0.1, 100, epsilon=1.0, neighbors="replace_one")
    >>> 100 < closely_needed(request, request.candidates, 0.01) < 140
    True
    """
    few, many, tried = 0, MOST_RECORDS + 1, likely_enough(request)
    for _ in range(_ROUNDS):
        choice = replace(request, n=tried).choice_of(of)

        def enough(n: int, choice: Choice = choice) -> bool:
            return chance_beyond_nearly(request, choice, n) <= unlikely

        found = least(enough, tried, parts=50)
        if abs(found - tried) <= _AGREE * tried:
            return max(found, tried)
        few, many = (few, tried) if found < tried else (tried, many)
        tried = found if few < found < many else math.isqrt(max(few, 1) * many)
    return tried


@np.errstate(under="ignore")
def chance_beyond_nearly(request: Terms, choice: Choice, n: int) -> float:
    """The chance of an answer beyond all of n typical scores, for a public n and about the target that is certified."""
    below = typical_law(choice.candidates)
    none_above = np.append(0.0, below[:-1]) ** n
    typical = ReferenceLaws(below[None, :], none_above[None, :], np.ones(1))
    return mean_price(typical, replace(request, n=n).circumstances, choice.left, choice.rise)
