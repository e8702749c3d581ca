"""A released threshold: what is published about it, and what follows.

It contains no data but the threshold itself, noisy counts, and a noisy number of records.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.guarantee import Guarantee, law_failure
from confide.mechanisms import Mechanism, NoisySize, PrivacyStatement, mechanism_facts
from confide.scores import score_kind
from confide.support import Described, Facts, Level, Section, bisect, exact_level, positive_integer


def level_reached(fails: Callable[[float], float], failure: float) -> float:
    """The largest level of coverage that is missed with at most this probability, to nine digits."""
    steps = 10**9
    return 1.0 if fails(1.0) <= failure else (bisect(lambda step: fails(step / steps) > failure, 0, steps) - 1) / steps


@dataclass(frozen=True, repr=False)
class Threshold(Described):
    """A threshold of a release, with all that is stated about it; a `Release` is a mapping to thresholds.

    Parameters
    ----------
    threshold
        The selected candidate. +inf excludes nothing: every label is in every set, every interval is the whole line.
        The largest value of a bounded score also excludes nothing (`excludes_nothing`).
    alpha
        Miscoverage level, an exact fraction.
    score
        Name of the nonconformity score, or None.
    guarantee
        The coverage guarantee.
    privacy
        The privacy loss in every unit; with a private choice of the score, the loss of threshold and choice together.
    mechanism
        The complete public statement of the mechanism; None if the answer was +inf without reading the data.
    candidates
        Number of candidate thresholds, +inf included.
    recipe
        The rule that made the candidates.
    size
        The noisy number of records that was released first, and the design for it; None without one.
    largest
        The largest value of the score, up to rounding; +inf if it is unknown.
    noisy_counts
        The noisy number of records in the bin below each candidate. The threshold follows from these counts, and so
        does a threshold for any other level (`Release.at`). None if no counts were released.
    """

    threshold: float
    alpha: Fraction
    score: str | None
    guarantee: Guarantee
    privacy: PrivacyStatement
    mechanism: Mechanism | None
    candidates: int
    recipe: Mapping[str, Any] = field(hash=False)
    size: NoisySize | None = None
    largest: float = field(default=math.inf, compare=False)
    noisy_counts: tuple[int, ...] | None = field(default=None, hash=False)

    @property
    def coverage(self) -> float:
        """The guaranteed coverage; `guarantee.kind` states the type of guarantee."""
        return self.guarantee.coverage

    @property
    def epsilon(self) -> float:
        """The privacy loss per person, under `privacy.neighbors`."""
        return self.privacy.epsilon

    @property
    def excludes_nothing(self) -> bool:
        """Whether the threshold is +inf, or at least the largest value of the score: every label is in every set."""
        return self.threshold >= self.largest

    @property
    def n(self) -> int | None:
        """The number of calibration records if it is public (`replace_one`), else None."""
        return self.guarantee.n

    @property
    def text(self) -> str:
        """The threshold with twelve digits; its meaning if it excludes nothing."""
        number = "+inf" if self.threshold == math.inf else f"{self.threshold:.12g}"
        return f"{number} ({meaning_of_infinity(self.score)})" if self.excludes_nothing else number

    def conditional_coverage(self, delta: Level, n: int | None = None) -> float:
        """The largest c such that coverage given the calibration data is at least c with probability 1 - delta.

        By the random-rank lemma (docs/theory.md, Theorem C1b), for i.i.d. data.

        Parameters
        ----------
        delta
            Failure probability, in (0, 1).
        n
            Number of calibration records; required if it is secret, and then used for this statement only. The
            answer depends on a secret n, so it is for people who may see n. If the target moves with a noisy number of
            records, the statement is for this noisy number.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> released = confide.calibrate(rng.random(1000), alpha=0.1, epsilon=1.0, neighbors="replace_one")
        >>> round(released.conditional_coverage(0.05), 3)
        0.878
        """
        return level_reached(self.coverage_failure(n), float(exact_level("delta", delta)))

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        By the random-rank lemma (docs/theory.md, Theorem C1b), for i.i.d. data, whatever their distribution. Exact for
        continuous scores that are the candidates, with `mechanism="none"`. `n` as in `conditional_coverage`.
        """
        # Where the rank of the threshold among the scores has a law, it decides.
        records = self._records(n)
        if self.mechanism is None:
            return lambda level: 0.0
        law = self.mechanism.rank_law(records, self.candidates)
        if law is None and self.guarantee.population is not None:
            must = "a release for another population has no training-conditional statement"
            raise InputError("delta", must, remedy="Its guarantee is marginal")
        if law is None:
            must = f"mechanism {self.mechanism.name!r} has no training-conditional statement"
            raise InputError("delta", must, remedy="Use 'slopes'")
        return lambda level: law_failure(law, records, level)

    def coverage_at_most(self, n: int | None = None) -> float:
        """Upper bound on mean coverage of continuous scores, up to the mass of one bin; 1 if no bound is known.

        Theorem C4 of docs/theory.md. `n` as in `conditional_coverage`.
        """
        n = self._records(n)
        return 1.0 if self.mechanism is None else self.mechanism.coverage_at_most(n, self.candidates)

    @property
    def mechanism_facts(self) -> Facts:
        """The mechanism and its parameters."""
        return mechanism_facts(self.mechanism, self.candidates)

    @property
    def proof(self) -> str:
        """The theorem from which the guarantee follows."""
        if self.guarantee.kind == "none":
            return "no theorem: this mechanism has no certificate"
        return "+inf covers everything" if self.mechanism is None else self.mechanism.theorem(self.guarantee)

    def _records(self, n: int | None) -> int:
        if n is None and self.n is None:
            raise InputError("n", "must be given: the number of calibration records is secret and not stored")
        if n is not None and self.n is not None and n != self.n:
            raise InputError("n", f"must be left out or equal the public number of records, {self.n}", got=str(n))
        return positive_integer("n", self.n if n is None else n)

    def _section(self) -> Section:
        return Section("Threshold", self.text, (("promise", str(self.guarantee)), ("privacy", str(self.privacy))))

    def _brief(self) -> str:
        score = "no score named" if self.score is None else f"score {self.score!r}"
        alpha = f"alpha {float(self.alpha):g}"
        return f"threshold {self.threshold:.6g}, {score}, {alpha}, {self.guarantee.brief}, {self.privacy.brief}"


def meaning_of_infinity(score: str | None) -> str:
    """The meaning of a threshold that excludes nothing, for sets, intervals, or an unknown score."""
    task = score_kind(score).task
    words = {"classification": "every label is in every set", "regression": "every interval is the whole line"}
    return words.get(task, "nothing is excluded")
