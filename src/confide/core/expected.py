"""Expectations of a plan: answers for typical scores, required records, and sets on a public pilot sample."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric, as_vector
from confide.candidates import Candidates
from confide.core.choice import Choice, ReferenceLaws, answer_law, choose, mean_price, typical_law
from confide.core.design import Design, design_at
from confide.core.terms import Terms
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.guarantee import least_number
from confide.mechanisms import NoisyHistogram, Slopes
from confide.scores import name_of_scores, score_kind
from confide.support import MOST_RECORDS

# The answer of a mechanism for typical scores: the law of its choice if counts equal their expectations.
#
# Typical scores are the first of the reference laws: uniform, or Gaussian residuals with the right unit.


def answer_among(mechanism: Slopes, below: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The law of the chosen candidate for n scores, of which the shares `below` are at most each; shape (m,)."""
    slopes, heights = (mechanism.slope_left, mechanism.slope_right), mechanism.log_weights(len(below), n)
    return answer_law(n * below, float(mechanism.target(n)), *slopes, heights)


@dataclass(frozen=True)
class Expectation:
    """What n typical scores lead to: coverage, and the chances of +inf and of a threshold beyond all of them."""

    coverage: float
    chance_of_all: float
    chance_beyond: float


# The noisy numbers of records of an expectation: one in the middle of each of these parts of their law.
_PARTS = (0.0, 0.002, 0.01, 0.03, 0.1, 0.25, 0.42, 0.58, 0.75, 0.9, 0.97, 0.99, 0.998, 1.0)


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def expectation(design: Design, n: int) -> Expectation:
    """What a design leads to, or with a noisy number of records all designs of its terms."""
    terms, effective = design.terms, design.terms.effective(n)
    weighted = _by_noisy_number(terms, n) if terms.sized else [(1.0, design)]
    parts = [[share * value for value in _expected_of(each, effective, n)] for share, each in weighted]
    return Expectation(*(min(1.0, math.fsum(column)) for column in zip(*parts, strict=True)))


def _by_noisy_number(terms: Terms, n: int) -> list[tuple[float, Design]]:
    """The designs for noisy numbers of n records, and their probabilities; without noise the only one."""
    if terms.size_scale is None:
        return [(1.0, design_at(terms, n))]
    return [(share, design_at(terms, n + z)) for share, z in _noise(terms.size_scale)]


def _noise(scale: float) -> list[tuple[float, int]]:
    cases = []
    # The quantile of the Laplace distribution in the middle of each part.
    for low, high in pairwise(_PARTS):
        middle = (low + high) / 2
        far = round(-scale * math.log(2 * min(middle, 1 - middle)))
        cases.append((high - low, far if middle > 0.5 else -far))
    return cases


def _expected_of(design: Design, effective: int, n: int) -> tuple[float, float, float]:
    mechanism = design.mechanism
    if mechanism is None:
        return 1.0, 1.0, 1.0
    assert isinstance(mechanism, Slopes)
    below = typical_law(design.candidates)
    law = answer_among(mechanism, below, effective)
    none_above = np.append(0.0, below[:-1]) ** n
    return min(1.0, float(law @ below)), float(law[-1]), min(1.0, float(law @ none_above))


# The number of records from which on an answer beyond all scores is unlikely.
#
# If n is public, every n has its own candidates, slopes and rise. They are chosen here as for a plan, but nothing is
# certified: the search uses approximate target ranks, as the choice itself does.

_ROUNDS, _AGREE, _FURTHER = 8, 0.03, (1.07, 1.2)


def likely_enough(terms: Terms) -> int:
    """A first guess of the number of records; the same for a requested privacy loss and for the one that is spent."""
    return min(math.ceil(12 / float(terms.alpha) / min(float(f"{terms.per_record:.6g}"), 1.0)), MOST_RECORDS)


def needed_text(needed: int, each: str = "") -> str:
    """The required number of records, in words; `each` is a noun for what the number belongs to."""
    return (
        f"about {needed:,}{each}; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, or above "
        "every score)"
    )


def least(enough: Callable[[int], bool], guess: int, parts: int = 10) -> int:
    """The least sufficient number, up to a relative error of 1/parts; the largest possible number if none suffices."""
    many = guess
    while many < MOST_RECORDS and not enough(many):
        many = min(2 * many, MOST_RECORDS)
    low = many // 2
    while low and enough(low):
        low, many = low // 2, low
    while many - low > max(1, many // parts):
        middle = (low + many) // 2
        low, many = (low, middle) if enough(middle) else (middle, many)
    return many


def closely_needed(terms: Terms, unlikely: float) -> int:
    """About the n from which on the probability is at most `unlikely`, each n with its own optimal choice."""

    def chosen(n: int) -> Choice:
        return choose(terms.known_spread, terms.inputs(terms.records_of_design(n)))

    def needed_with(choice: Choice, guess: int) -> int:
        return least(lambda n: chance_beyond_nearly(terms, choice, n) <= unlikely, guess, parts=50)

    # The least n for one choice is the n for which the next choice is made, until both agree.
    low, many, tried = 0, MOST_RECORDS + 1, likely_enough(terms)
    for _ in range(_ROUNDS):
        result = needed_with(chosen(tried), tried)
        if abs(result - tried) <= _AGREE * tried:
            tried = max(result, tried)
            break
        low, many = (low, tried) if result < tried else (tried, many)
        tried = result if low < result < many else math.isqrt(max(low, 1) * many)

    # A somewhat larger n may have a finer list, with which the probability is larger again.
    for further in _FURTHER:
        n = min(math.ceil(further * tried), MOST_RECORDS)
        choice = chosen(n)
        if chance_beyond_nearly(terms, choice, n) > unlikely:
            return max(tried, needed_with(choice, n))
    return tried


@np.errstate(under="ignore")
def chance_beyond_nearly(terms: Terms, choice: Choice, n: int) -> float:
    """The probability of an answer beyond all of n typical scores, for nearly the certified target."""
    below = typical_law(choice.candidates)
    none_above = np.append(0.0, below[:-1]) ** n
    typical = ReferenceLaws(below[None, :], none_above[None, :], np.ones(1))
    exactly = terms.effective(n)  # a noisy number has a design for 5 scales at least
    inputs = replace(terms.inputs(n), n=exactly)
    if not terms.moves:
        return mean_price(typical, inputs, choice.left, choice.rise, [(exactly, 0.0, 1.0)])
    assert terms.size_scale is not None
    apart, scale = float(terms.level - terms.rate), terms.size_scale
    chance = mean_price(
        typical, inputs, choice.left, choice.rise, [(n, apart * z, share) for share, z in _noise(scale)]
    )
    short = n - least_number(terms.level, scale)
    return chance + (0.5 * math.exp(-short / scale) if short > 0 else 1.0)


def needed_by_counts(terms: Terms, unlikely: float) -> int:
    """About the n from which on the noise of a histogram rarely exceeds its limit beyond all typical scores."""

    def chance(n: int) -> float:
        return math.fsum(share * _noise_beyond(design, n) for share, design in _by_noisy_number(terms, n))

    return least(lambda n: chance(n) <= unlikely, likely_enough(terms), parts=50)


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


# Sets and intervals of a plan on a public pilot sample, whose distribution is used as the true one.
#
# A pilot sample is PUBLIC: records without privacy protection, such as those that trained the model. A plan reads all
# of it and reveals the results. The mechanism, the guarantee and the cost of privacy do not depend on it.


@dataclass(frozen=True, eq=False)
class Pilot:
    """A public sample of scores. Never pass private records: a plan reveals what it computes from them.

    Parameters
    ----------
    scores
        The scores of the true labels or targets, shape (N,).
    class_scores
        For set sizes: the scores of all classes, shape (rows, K), as `all_scores` returns them, of the same records or
        of others.
    width
        For the widths of intervals by CQR: the mean width of the predicted ones.
    score
        The score's name; by default the one of the plan.

    Raises
    ------
    InputError, InputTypeError
        If there is no score, if one is NaN, or if the class scores are not a table of numbers.

    Examples
    --------
    >>> import confide
    >>> p = np.random.default_rng(0).dirichlet(np.ones(4) / 9, 500)
    >>> pilot = Pilot(confide.lac_score(p, p.argmax(axis=1)), confide.all_scores(p))
    >>> found = confide.plan(alpha=0.1, epsilon=1.0, n=1000, pilot=pilot).on_pilot
    >>> 1 < found.ratio < 1.1
    True
    """

    scores: ArrayLike
    class_scores: ArrayLike | None = None
    width: float | None = None
    score: str | None = None

    def __post_init__(self) -> None:
        scores = as_vector("pilot", self.scores)
        if np.isnan(scores).any():
            raise InputError("pilot", "must not hold NaN", got=str(np.count_nonzero(np.isnan(scores))))
        if self.class_scores is not None:
            table = as_numeric("class_scores", self.class_scores)
            if table.ndim != 2 or not table.size or np.isnan(table).any():
                raise InputError(
                    "class_scores",
                    "must be a table of numbers, one row per record",
                    got=f"shape {table.shape} with {np.count_nonzero(np.isnan(table))} NaN",
                )

    @classmethod
    def of(cls, given: Any, score: str) -> "Pilot":
        """Make a sample from a `Pilot`, or from scores of the plan's score."""
        pilot = given if isinstance(given, cls) else cls(given)
        name, _ = name_of_scores(pilot.scores, pilot.score or score, None)
        ScoreHistogram.from_scores(pilot.scores, Candidates.unit(1), name)  # rejects values outside the score's range
        return replace(pilot, score=name)


@dataclass(frozen=True)
class OnPilot:
    """Results of a plan if scores are distributed as in a pilot sample, averaged over the noise.

    Parameters
    ----------
    records
        The number of scores in the sample.
    threshold, plain_threshold
        The mean threshold, given that it is at most the largest score of the sample; the one without privacy.
    size, plain_size
        The mean number of classes in a set, with all classes for +inf, and without privacy; None without class scores.
    ratio
        The mean set size or interval width, divided by that without privacy. None if neither sizes nor widths are
        given, or if everything would be included without privacy, too. Widths are those of finite thresholds as above.
    chance_beyond, chance_of_all
        The probability of a threshold beyond the largest score of the sample, +inf included, and that of +inf.
    """

    records: int
    threshold: float
    plain_threshold: float
    size: float | None
    plain_size: float | None
    ratio: float | None
    chance_beyond: float
    chance_of_all: float

    @property
    def in_words(self) -> list[tuple[str, str]]:
        """Pairs of a name and a result, for printing."""
        facts = [("threshold", f"{self.threshold:.4g} on average; {self.plain_threshold:.4g} without privacy")]
        if self.size is not None:
            facts.append(("mean set size", f"{self.size:.3g}; {self.plain_size:.3g} without privacy"))
        if self.ratio is not None:
            what = "intervals are" if self.size is None else "sets are"
            facts.append(("price of privacy", f"{what} {self.ratio:.3f} times as large as without"))
        return [*facts, ("beyond its scores", f"{chance_text(self.chance_beyond)} of thresholds")]


def chance_text(chance: float) -> str:
    """A probability in percent."""
    return f"{chance:.1%}" if chance >= 0.0005 else "below 0.05%"


def on_pilot(pilot: Pilot, mechanism: Slopes | None, candidates: Candidates, level: Fraction, n: int) -> OnPilot:
    """The answer for n scores that are distributed as in the pilot sample."""
    law = np.eye(1, candidates.size, candidates.size - 1)[0]
    if mechanism is not None:
        law = answer_among(mechanism, share_of_pilot(pilot, candidates), n)
    return answered_on_pilot(pilot, law, candidates, level, n)


def share_of_pilot(pilot: Pilot, candidates: Candidates) -> NDArray[np.float64]:
    """The share of the sample's scores at or below each candidate, float64 of shape (m,)."""
    counts = ScoreHistogram.from_scores(_sorted(pilot), candidates, pilot.score).counts
    share: NDArray[np.float64] = np.cumsum(counts) / counts.sum()
    return share


def answered_on_pilot(
    pilot: Pilot, law: NDArray[np.float64], candidates: Candidates, level: Fraction, n: int
) -> OnPilot:
    """Results for the sample from a law of the threshold over the candidates, shape (m,), with n scores."""
    # The thresholds: the non-private one, and the mean of the private ones within the sample.
    scores = _sorted(pilot)
    records = len(scores)
    last = int(np.flatnonzero(np.diff(share_of_pilot(pilot, candidates), prepend=0.0))[-1])
    rank = math.ceil(level * (n + 1))
    plain = math.inf if rank > n else float(scores[-(-rank * records // n) - 1])
    within, values = law[: last + 1], candidates.values[: last + 1]
    mean = float(within @ values / within.sum()) if math.isfinite(values[-1]) and within.sum() else math.inf
    # Set sizes, if the scores of all classes are known; else the widths of intervals.
    size, plain_size, ratio = None, None, _ratio(pilot, mean, plain)
    if pilot.class_scores is not None:
        table = as_numeric("class_scores", pilot.class_scores).astype(np.float64)
        size = float(law @ _sizes(table, candidates.values))
        plain_size = float(np.count_nonzero(table <= plain) / len(table))
        ratio = size / plain_size if plain < math.inf and plain_size else None
    return OnPilot(records, mean, plain, size, plain_size, ratio, float(law[last + 1 :].sum()), float(law[-1]))


def _sorted(pilot: Pilot) -> NDArray[np.float64]:
    return np.sort(as_vector("pilot", pilot.scores).astype(np.float64))


def _sizes(table: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean number of classes at or below each candidate, shape (m,)."""
    bins = np.bincount(np.searchsorted(values, table.ravel()), minlength=len(values))
    mean: NDArray[np.float64] = np.cumsum(bins) / len(table)
    return mean


# Scores whose intervals are as wide as their threshold, up to a factor.
_PROPORTIONAL = ("absolute_residual", "normalised_residual", "gamma")


def _ratio(pilot: Pilot, threshold: float, plain: float) -> float | None:
    """Widths of intervals at one threshold divided by those at another; None if they are unknown."""
    kind, width = score_kind(pilot.score), 0.0
    if kind.family == "cqr" and pilot.width is not None:
        threshold, plain, width = 2 * threshold, 2 * plain, pilot.width
    elif kind.family not in _PROPORTIONAL:
        return None
    return (width + threshold) / (width + plain) if math.isfinite(threshold) and 0 < width + plain < math.inf else None
