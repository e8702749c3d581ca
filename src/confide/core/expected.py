"""What a design leads to for typical scores, and the number of records needed.

Typical scores are the first of the reference laws: uniform, or Gaussian residuals with the right unit. The law of the
answer is that for counts which equal their expectations.

The number of records needed follows from the terms of a threshold alone. If n is public, every n has its own
candidates, slopes and rise. They are tuned here as for a plan, but nothing is certified: the search uses approximate
target ranks, as the tuning itself does.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.candidates import BUILDERS, Candidates, OwnCandidates
from confide.core.answer_law import answer_among
from confide.core.design import Design, design_at
from confide.core.reference_laws import ReferenceLaws, typical_law
from confide.core.request import Request
from confide.core.terms import NUMBERED, Terms
from confide.core.threshold import Threshold
from confide.core.thresholds import Key, Thresholds
from confide.core.tuning import Case, Tuning, mean_price, tune
from confide.guarantee import LongRun, least_number
from confide.mechanisms import NoisyHistogram, Slopes
from confide.support import MOST_CANDIDATES, MOST_RECORDS

# The noisy numbers of records of an expectation: one in the middle of each of these parts of their law.
_PARTS_OF_NOISE = (0.0, 0.002, 0.01, 0.03, 0.1, 0.25, 0.42, 0.58, 0.75, 0.9, 0.97, 0.99, 0.998, 1.0)


def noise_cases(scale: float) -> list[tuple[float, int]]:
    """Noises of a number of records, rounded, with the probabilities of the parts of their law."""
    cases = []
    for low, high in pairwise(_PARTS_OF_NOISE):
        # The quantile of the Laplace distribution in the middle of the part.
        middle = (low + high) / 2
        distance = round(-scale * math.log(2 * min(middle, 1 - middle)))
        cases.append((high - low, distance if middle > 0.5 else -distance))
    return cases


def designs_for(terms: Terms, n: int) -> list[tuple[float, Design]]:
    """The designs for noisy numbers of n records, after their probabilities; without noise the only one."""
    if terms.size_scale is None:
        return [(1.0, design_at(terms, n))]
    return [(share, design_at(terms, n + noise)) for share, noise in noise_cases(terms.size_scale)]


def none_above(below: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The probability that none of n scores lies above the candidate before each, shape (m,)."""
    return np.append(0.0, below[:-1]) ** n


# Coverage, and the probabilities of +inf and of a threshold beyond all scores.


class Expectation(NamedTuple):
    """What n typical scores lead to: coverage, and the chances of +inf and of a threshold beyond all of them."""

    coverage: float
    chance_of_all: float
    chance_beyond: float


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def expectation(design: Design, n: int) -> Expectation:
    """What a design leads to, or with a noisy number of records all designs of its terms."""
    effective = design.terms.effective(n)
    weighted = designs_for(design.terms, n) if design.terms.sized else [(1.0, design)]
    parts = [[share * value for value in _expectation(each, effective, n)] for share, each in weighted]
    return Expectation(*(min(1.0, math.fsum(column)) for column in zip(*parts, strict=True)))


def _expectation(design: Design, effective: int, n: int) -> Expectation:
    mechanism = design.mechanism
    if mechanism is None:
        return Expectation(coverage=1.0, chance_of_all=1.0, chance_beyond=1.0)
    assert isinstance(mechanism, Slopes)
    below = typical_law(design.candidates)
    law = answer_among(mechanism, below, effective)
    beyond = float(law @ none_above(below, n))
    return Expectation(min(1.0, float(law @ below)), chance_of_all=float(law[-1]), chance_beyond=min(1.0, beyond))


# The number of records needed, from the terms of a threshold.

# An answer beyond all scores is unlikely if its probability is at most this.
UNLIKELY = 0.01

# With certified targets, 1 to 1.08 times as many records are needed as with approximate ones (36 random requests).
_CERTIFIED_FACTOR = 1.05

# The search begins at this number divided by alpha and the privacy loss, at most 1.
_GUESS = 12

# The search by tunings: at most so many rounds; two numbers agree if their relative distance is at most this.
_ROUNDS = 8
_AGREE = 0.03

# A somewhat larger number may have a finer list, with which the probability is larger again: these are tried.
_LARGER = (1.07, 1.2)

# A search among numbers ends at a relative error of one part.
_NUMBER_PARTS = 50


@lru_cache(maxsize=1024)
def records_for(terms: Terms) -> int:
    """Compute `Plan.records_needed`, which is the same for every n of a plan."""
    if terms.mechanism == "noisy-histogram":
        return _needed_by_counts(terms)
    return min(math.ceil(_CERTIFIED_FACTOR * _needed_by_slopes(terms)), MOST_RECORDS)


def records_if_public(terms: Terms) -> int | None:
    """The smaller number of records needed if it were public (`replace_one`); None if it is, or cannot be."""
    if terms.public_n or terms.population is not None:
        return None
    return records_for(replace(terms, neighbors="replace_one", size_scale=None))


def _needed_by_slopes(terms: Terms) -> int:
    """About the n from which on the probability is at most `UNLIKELY`, each n with its own tuning."""

    def tuned(n: int) -> Tuning:
        return tune(terms.known_spread, terms.tuning_inputs(terms.records_of_design(n)))

    def needed_with(tuning: Tuning, guess: int) -> int:
        return _least(lambda n: _chance_beyond(terms, tuning, n) <= UNLIKELY, guess)

    # The larger numbers: if one does not suffice with its own list, its search decides.
    n = _agreed(lambda n: needed_with(tuned(n), n), _guess(terms))
    for factor in _LARGER:
        larger = min(math.ceil(factor * n), MOST_RECORDS)
        tuning = tuned(larger)
        if _chance_beyond(terms, tuning, larger) > UNLIKELY:
            return max(n, needed_with(tuning, larger))
    return n


def _agreed(needed_if_tuned_for: Callable[[int], int], guess: int) -> int:
    """A number of records that about equals the number needed with the tuning for it."""
    n = guess
    too_few = 0
    enough = MOST_RECORDS + 1
    for _ in range(_ROUNDS):
        needed = needed_if_tuned_for(n)
        if abs(needed - n) <= _AGREE * n:
            return max(needed, n)
        if needed < n:
            enough = n
        else:
            too_few = n
        # The next number is the one needed, unless that is known not to agree.
        n = needed if too_few < needed < enough else math.isqrt(max(too_few, 1) * enough)
    return n


@np.errstate(under="ignore")
def _chance_beyond(terms: Terms, tuning: Tuning, n: int) -> float:
    """The probability of an answer beyond all of n typical scores, for nearly the certified target."""
    # The price of an answer is the probability that it lies beyond all scores.
    below = typical_law(tuning.candidates)
    typical = ReferenceLaws(below[None, :], prices=none_above(below, n)[None, :], weights=np.ones(1))
    effective = terms.effective(n)  # a noisy number has a design for 5 scales at least
    inputs = replace(terms.tuning_inputs(n), n=effective)
    if not terms.moves:
        return mean_price(typical, inputs, tuning.left, tuning.rise, [Case(effective)])

    # A target that moves with the noisy number: the mean over its noise, and the chance of a number that is too small.
    assert terms.size_scale is not None
    apart, scale = float(terms.level - terms.rate), terms.size_scale
    cases = [Case(n, apart * noise, share) for share, noise in noise_cases(scale)]
    chance = mean_price(typical, inputs, tuning.left, tuning.rise, cases)
    spare = n - least_number(terms.level, scale)
    return chance + (0.5 * math.exp(-spare / scale) if spare > 0 else 1.0)


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
    # The noise of one of the empty bins beyond all scores, or by the normal law their sum.
    empty = float(none_above(typical_law(design.candidates), n).sum())
    alone = empty * math.exp(-mechanism.beyond / mechanism.scale) / 2
    return min(1.0, alone + 2 * float(ndtr(-mechanism.beyond / (mechanism.scale * math.sqrt(2 * empty)))))


def _guess(terms: Terms) -> int:
    """A first guess of the number of records; of the loss six digits, so that a requested and a spent one agree."""
    loss = min(float(f"{terms.per_record:.6g}"), 1.0)
    return min(math.ceil(_GUESS / (float(terms.alpha) * loss)), MOST_RECORDS)


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


# The number of records needed, from a release: from its request alone, so it reveals nothing about a secret number.


def candidates_of(threshold: Threshold) -> Candidates:
    """The candidates of a threshold, for statements about typical scores; of your own ones only the number is known."""
    if threshold.recipe.get("kind") in BUILDERS:
        return Candidates.from_recipe(threshold.recipe)
    return Candidates.unit(min(threshold.candidates, MOST_CANDIDATES))


def terms_of(release: Thresholds) -> dict[Key, Terms]:
    """The terms of the thresholds whose number of required records is known."""
    request = release.request
    if not isinstance(request, Request):
        return {}
    known = {}
    for key, threshold in release.parts.items():
        terms = request.terms[key]
        # It is not known for published methods, one candidate, and after a correction.
        corrected = isinstance(threshold.guarantee, LongRun)
        if terms.mechanism not in NUMBERED or threshold.candidates == 1 or corrected:
            continue
        unlisted = isinstance(terms.spread, OwnCandidates)
        known[key] = replace(terms, spread=candidates_of(threshold)) if unlisted else terms
    return known


def records_needed(release: Thresholds, key: Key = None) -> int | None:
    """About how many records a threshold needs, as in `confide.plan`; None if unknown, as for published methods.

    Parameters
    ----------
    release
        A release.
    key
        One of its keys; by default the threshold that needs most.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate([0.5] * 500, 0.1, 1.0, score="absolute_residual")
    >>> records_needed(released), confide.plan(0.1, 1.0, score="absolute_residual").records_needed
    (208, 208)
    """
    known = terms_of(release)
    if key is not None:
        return records_for(known[key]) if key in known else None
    return max(map(records_for, known.values()), default=None)
