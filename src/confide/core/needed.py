"""The number of records from which on an answer beyond all typical scores is unlikely, from the terms of a threshold.

If n is public, every n has its own candidates, slopes and rise. They are tuned here as for a plan, but nothing is
certified: the search uses approximate target ranks, as the tuning itself does.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from confide.core.design import Design
from confide.core.expected import designs_for, noise_cases
from confide.core.mean_price import mean_price
from confide.core.reference_laws import ReferenceLaws, typical_law
from confide.core.terms import Terms
from confide.core.tuning import Tuning, tune
from confide.guarantee import least_number
from confide.mechanisms import NoisyHistogram
from confide.support import MOST_RECORDS

# An answer beyond all scores is unlikely if its probability is at most this.
UNLIKELY = 0.01

# With certified targets, 1 to 1.08 times as many records are needed as with approximate ones (36 random requests).
_CLOSE = 1.05

# The search by tunings: its most rounds, when two numbers agree, and the larger numbers that are tried.
_ROUNDS, _AGREE, _FURTHER = 8, 0.03, (1.07, 1.2)

# The relative error of a number is one part.
_NUMBER_PARTS = 50


@lru_cache(maxsize=1024)
def records_for(terms: Terms) -> int:
    """Compute `Plan.records_needed`, which is the same for every n of a plan."""
    if terms.mechanism == "noisy-histogram":
        return _needed_by_counts(terms)
    return min(math.ceil(_CLOSE * _needed_by_slopes(terms)), MOST_RECORDS)


def records_if_public(terms: Terms) -> int | None:
    """The smaller number of records needed if it were public (`replace_one`); None if it is, or cannot be."""
    if terms.public_n or terms.population is not None:
        return None
    return records_for(replace(terms, neighbors="replace_one", size_scale=None))


def needed_text(needed: int, each: str = "") -> str:
    """The required number of records, in words; `each` is a noun for what the number belongs to."""
    return (
        f"about {needed:,}{each}; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, or above "
        "every score)"
    )


def _needed_by_slopes(terms: Terms) -> int:
    """About the n from which on the probability is at most `UNLIKELY`, each n with its own tuning."""

    def tuned(n: int) -> Tuning:
        return tune(terms.known_spread, terms.tuning_inputs(terms.records_of_design(n)))

    def needed_with(tuning: Tuning, guess: int) -> int:
        return _least(lambda n: _chance_beyond(terms, tuning, n) <= UNLIKELY, guess)

    # The least n for one tuning is the n for which the next one is tuned, until both agree.
    low, many, tried = 0, MOST_RECORDS + 1, _guess(terms)
    for _ in range(_ROUNDS):
        result = needed_with(tuned(tried), tried)
        if abs(result - tried) <= _AGREE * tried:
            tried = max(result, tried)
            break
        low, many = (low, tried) if result < tried else (tried, many)
        tried = result if low < result < many else math.isqrt(max(low, 1) * many)

    # A somewhat larger n may have a finer list, with which the probability is larger again.
    for further in _FURTHER:
        n = min(math.ceil(further * tried), MOST_RECORDS)
        tuning = tuned(n)
        if _chance_beyond(terms, tuning, n) > UNLIKELY:
            return max(tried, needed_with(tuning, n))
    return tried


@np.errstate(under="ignore")
def _chance_beyond(terms: Terms, tuning: Tuning, n: int) -> float:
    """The probability of an answer beyond all of n typical scores, for nearly the certified target."""
    below = typical_law(tuning.candidates)
    none_above = np.append(0.0, below[:-1]) ** n
    typical = ReferenceLaws(below[None, :], none_above[None, :], np.ones(1))
    exactly = terms.effective(n)  # a noisy number has a design for 5 scales at least
    inputs = replace(terms.tuning_inputs(n), n=exactly)
    if not terms.moves:
        return mean_price(typical, inputs, tuning.left, tuning.rise, [(exactly, 0.0, 1.0)])
    assert terms.size_scale is not None
    apart, scale = float(terms.level - terms.rate), terms.size_scale
    chance = mean_price(
        typical, inputs, tuning.left, tuning.rise, [(n, apart * z, share) for share, z in noise_cases(scale)]
    )
    short = n - least_number(terms.level, scale)
    return chance + (0.5 * math.exp(-short / scale) if short > 0 else 1.0)


def _needed_by_counts(terms: Terms) -> int:
    """About the n from which on the noise of a histogram rarely exceeds its limit beyond all typical scores."""

    def chance(n: int) -> float:
        return math.fsum(share * _noise_beyond(design, n) for share, design in designs_for(terms, n))

    return _least(lambda n: chance(n) <= UNLIKELY, _guess(terms))


def _noise_beyond(design: Design, n: int) -> float:
    """About the probability of a sum of noises above the limit, at most twice that of all together (Levy)."""
    from scipy.special import ndtr

    mechanism = design.mechanism
    if mechanism is None:
        return 1.0
    assert isinstance(mechanism, NoisyHistogram)
    empty = float((np.append(0.0, typical_law(design.candidates)[:-1]) ** n).sum())
    alone = empty * math.exp(-mechanism.beyond / mechanism.scale) / 2
    return min(1.0, alone + 2 * float(ndtr(-mechanism.beyond / (mechanism.scale * math.sqrt(2 * empty)))))


def _guess(terms: Terms) -> int:
    """A first guess of the number of records: the same for a requested privacy loss and for the one that is spent."""
    return min(math.ceil(12 / float(terms.alpha) / min(float(f"{terms.per_record:.6g}"), 1.0)), MOST_RECORDS)


def _least(enough: Callable[[int], bool], guess: int) -> int:
    """The least sufficient number, up to a relative error of one part; the largest possible number if none suffices."""
    many = guess
    while many < MOST_RECORDS and not enough(many):
        many = min(2 * many, MOST_RECORDS)
    low = many // 2
    while low and enough(low):
        low, many = low // 2, low
    while many - low > max(1, many // _NUMBER_PARTS):
        middle = (low + many) // 2
        low, many = (low, middle) if enough(middle) else (middle, many)
    return many
