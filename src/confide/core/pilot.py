"""What a design leads to for a pilot sample: thresholds, sizes of sets and widths of intervals.

A pilot sample is PUBLIC: records without privacy protection, such as those that trained the model. A plan reads all of
it and reveals the results. The mechanism, the guarantee and the cost of privacy do not depend on it.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric, as_vector
from confide.candidates import Candidates
from confide.core.answer_law import answer_among
from confide.counting import ScoreHistogram, check_scores
from confide.errors import InputError
from confide.mechanisms import Slopes
from confide.scores import name_of_scores, score_kind
from confide.support import chance_text


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
        missing = int(np.isnan(as_vector("pilot", self.scores)).sum())
        if missing:
            raise InputError("pilot", "must not hold NaN", got=str(missing))
        if self.class_scores is not None:
            table = as_numeric("class_scores", self.class_scores)
            missing = int(np.isnan(table).sum())
            if table.ndim != 2 or not table.size or missing:
                got = f"shape {table.shape} with {missing} NaN"
                raise InputError("class_scores", "must be a table of numbers, one row per record", got=got)

    @classmethod
    def of(cls, given: Any, score: str) -> "Pilot":
        """Make a sample from a `Pilot`, or from scores of the plan's score."""
        pilot = given if isinstance(given, cls) else cls(given)
        name, _ = name_of_scores(pilot.scores, pilot.score or score, None)
        check_scores(pilot.scores, name)
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
        given, or if the threshold without privacy excludes nothing. Widths are those of thresholds up to the largest
        score of the sample.
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
            subject = "intervals are" if self.size is None else "sets are"
            facts.append(("price of privacy", f"{subject} {self.ratio:.3f} times as large as without"))
        return [*facts, ("beyond its scores", f"{chance_text(self.chance_beyond)} of thresholds")]


def on_pilot(pilot: Pilot, mechanism: Slopes | None, candidates: Candidates, level: Fraction, n: int) -> OnPilot:
    """The answer for n scores that are distributed as in the pilot sample."""
    if mechanism is None:  # the answer is +inf, the last candidate
        law = np.zeros(candidates.size)
        law[-1] = 1.0
    else:
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
    # The threshold without privacy: the score at the rank of n records, or the share of it in the sample.
    scores = _sorted(pilot)
    rank = math.ceil(level * (n + 1))
    plain_threshold = math.inf if rank > n else float(scores[-(-rank * len(scores) // n) - 1])

    # The mean of the private ones up to the first candidate that no score of the sample exceeds.
    *_, last = np.flatnonzero(np.diff(share_of_pilot(pilot, candidates), prepend=0.0))
    within, values = law[: last + 1], candidates.values[: last + 1]
    threshold = float(within @ values / within.sum()) if math.isfinite(values[-1]) and within.sum() else math.inf

    # Set sizes, if the scores of all classes are known; else the widths of intervals.
    if pilot.class_scores is None:
        size = plain_size = None
        ratio = _ratio_of_widths(pilot, threshold, plain_threshold)
    else:
        table = as_numeric("class_scores", pilot.class_scores).astype(np.float64)
        size = float(law @ _sizes(table, candidates.values))
        plain_size = float(np.count_nonzero(table <= plain_threshold) / len(table))
        ratio = size / plain_size if plain_threshold < math.inf and plain_size else None
    return OnPilot(
        records=len(scores),
        threshold=threshold,
        plain_threshold=plain_threshold,
        size=size,
        plain_size=plain_size,
        ratio=ratio,
        chance_beyond=float(law[last + 1 :].sum()),
        chance_of_all=float(law[-1]),
    )


def _sorted(pilot: Pilot) -> NDArray[np.float64]:
    return np.sort(as_vector("pilot", pilot.scores).astype(np.float64))


def _sizes(table: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean number of classes at or below each candidate, shape (m,)."""
    bins = np.bincount(np.searchsorted(values, table.ravel()), minlength=len(values))
    mean: NDArray[np.float64] = np.cumsum(bins) / len(table)
    return mean


# Scores whose intervals are as wide as their threshold, up to a factor.
_PROPORTIONAL = ("absolute_residual", "normalised_residual", "gamma")


def _ratio_of_widths(pilot: Pilot, threshold: float, plain: float) -> float | None:
    """Widths of intervals at one threshold divided by those at another; None if they are unknown."""
    family = score_kind(pilot.score).family
    predicted = pilot.width if family == "cqr" else 0.0
    if predicted is None or family not in ("cqr", *_PROPORTIONAL):
        return None
    width = predicted + 2 * threshold
    plain_width = predicted + 2 * plain
    return width / plain_width if math.isfinite(threshold) and 0 < plain_width < math.inf else None
