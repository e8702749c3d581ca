"""The released calibration: a threshold, what is promised with it, and what it cost. No trace of the data.

Everything but the threshold is a function of public choices and is computed again when a calibration is read, so a
file that claims more than its mechanism delivers is refused. A checksum finds accidental damage; it is no signature.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from confide.errors import InputError
from confide.guarantee import Guarantee, law_failure
from confide.mechanisms import Mechanism, PrivacyStatement
from confide.planning import Population
from confide.releases.about import check_about
from confide.releases.needed import needed_line
from confide.releases.predecessors import Predecessor, check_predecessors
from confide.releases.release import Release
from confide.scores import score_kind
from confide.support import Classes, Level, exact_level, positive_integer, public_classes


@dataclass(frozen=True, repr=False)
class Calibration(Release):
    """All that is ever released about the calibration data.

    Parameters
    ----------
    threshold
        The selected candidate; +inf excludes nothing: every label is in every set, every interval is the whole line.
    alpha
        Miscoverage level, an exact fraction.
    guarantee
        What is promised about coverage.
    privacy
        The privacy loss in every unit.
    mechanism
        The complete public statement of the mechanism; None if +inf was answered without touching the data.
    candidates
        Number of candidate thresholds, +inf included.
    recipe
        How the candidates were made.
    score
        Name of the conformity score, or None.
    versions
        Versions of the libraries that made the release.
    classes
        The class names that it is for, or their number; None for regression, and where nobody said.
    population
        Where the promise is for a population that is a known shift away: the public weights that say which; else None.
    about
        Public words: `model`, `version` of the model, `data`, `purpose`, `responsible`, `date`; those that were given.
    predecessors
        The earlier releases of its chain, oldest first; none for a release that renews none.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = confide.calibrate(rng.random(5000), alpha=0.1, epsilon=1.0, candidates=confide.Candidates.unit(1000))
    >>> 0.87 < released.threshold < 0.95, released.coverage
    (True, 0.9)
    >>> released == confide.Calibration.from_json(released.to_json())
    True
    """

    threshold: float
    alpha: Fraction
    guarantee: Guarantee
    privacy: PrivacyStatement
    mechanism: Mechanism | None
    candidates: int
    recipe: Mapping[str, Any] = field(hash=False)
    score: str | None
    versions: Mapping[str, str] = field(hash=False)
    classes: Classes | None = field(default=None, kw_only=True)
    about: Mapping[str, str] = field(default_factory=dict, kw_only=True, hash=False)
    population: Population | None = field(default=None, kw_only=True)
    predecessors: tuple[Predecessor, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", public_classes("classes", self.classes))
        object.__setattr__(self, "about", check_about(self.about))
        object.__setattr__(self, "predecessors", check_predecessors(self.predecessors))
        around = self.recipe.get("around")
        if self.predecessors and around is not None and around != self.predecessors[-1].threshold:
            raise InputError("candidates must be spread around the threshold of the last predecessor, or around none")
        object.__setattr__(self, "recipe", MappingProxyType(dict(self.recipe)))
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    @property
    def coverage(self) -> float:
        """The guaranteed coverage; `guarantee.kind` says in which sense."""
        return self.guarantee.coverage

    @property
    def epsilon(self) -> float:
        """The privacy loss spent, per person, under `privacy.neighbors`."""
        return self.privacy.epsilon

    @property
    def n(self) -> int | None:
        """The number of calibration records where it is public (`replace_one`), else None."""
        return self.guarantee.n

    def conditional_coverage(self, delta: Level, n: int | None = None) -> float:
        """The largest c such that coverage given the calibration data is at least c with probability 1 - delta.

        By the random-rank lemma (docs/theory.md, Theorem 2b), for i.i.d. data.

        Parameters
        ----------
        delta
            Failure probability, in (0, 1).
        n
            Number of calibration records; required if it is secret, and then used for this statement only. The
            answer for a secret n belongs to those who know n.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> released = confide.calibrate(rng.random(1000), alpha=0.1, epsilon=1.0, neighbors="replace_one")
        >>> round(released.conditional_coverage(0.05), 3)
        0.879
        """
        failure, fails = float(exact_level("delta", delta)), self.coverage_failure(n)
        if fails(1.0) <= failure:
            return 1.0
        low, high = 0.0, 1.0
        while high - low > 1e-9:
            level = (low + high) / 2
            low, high = (low, level) if fails(level) > failure else (level, high)
        return low

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        By the random-rank lemma (docs/theory.md, Theorem 2b), for i.i.d. data, whatever their distribution. Exact for
        continuous scores with `mechanism="none"`. `n` as in `conditional_coverage`.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> released = confide.calibrate(rng.random(1000), alpha=0.1, epsilon=1.0, neighbors="replace_one")
        >>> round(released.coverage_failure()(0.88), 3)
        0.063
        """
        records = self._records(n)
        if self.mechanism is None:
            return lambda level: 0.0
        law = self.mechanism.rank_law(records, self.candidates)
        if law is None and self.population is not None:
            raise InputError(
                "a release for another population has no training-conditional statement; its promise is one on average"
            )
        if law is None:
            raise InputError(f"mechanism {self.mechanism.name!r} has no training-conditional statement; use 'slopes'")
        return lambda level: law_failure(law, records, level)

    def coverage_at_most(self, n: int | None = None) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin (docs/theory.md, Theorem 5).

        1 for a mechanism without such a bound. `n` as in `conditional_coverage`.
        """
        n = self._records(n)
        if self.mechanism is None:
            return 1.0
        return self.mechanism.coverage_at_most(n, self.candidates)

    def _records(self, n: int | None) -> int:
        if n is None and self.n is None:
            raise InputError("n must be given: the number of calibration records is secret and not stored")
        if n is not None and self.n is not None and n != self.n:
            raise InputError(f"n must be left out or equal the public number of records, {self.n}; found {n}")
        return positive_integer("n", self.n if n is None else n)

    def __str__(self) -> str:
        name = "unnamed score" if self.score is None else f"score {self.score!r}"
        value = threshold_text(self)
        method = "" if self.mechanism is None or self.mechanism.name == "slopes" else f"\nmethod: {self.mechanism.name}"
        said = f"threshold {value} for the {name}\npromise: {self.guarantee}\nprivacy: {self.privacy}{method}"
        return said + needed_line([self])

    def _brief(self) -> str:
        score = "no score named" if self.score is None else f"score {self.score!r}"
        alpha = f"alpha {float(self.alpha):g}"
        return f"threshold {self.threshold:.6g}, {score}, {alpha}, {self.guarantee.brief}, {self.privacy.brief}"


def threshold_text(calibration: Calibration) -> str:
    """A threshold in twelve digits, or what it means that it is +inf."""
    if math.isinf(calibration.threshold) and calibration.threshold > 0:
        return f"+inf ({everything(calibration.score)})"
    return f"{calibration.threshold:.12g}"


def everything(score: str | None) -> str:
    """What the threshold +inf means for sets, intervals, or a score of which nothing is known.

    Examples
    --------
    >>> everything("lac"), everything("cqr"), everything("my own")
    ('every label is in every set', 'every interval is the whole line', 'nothing is excluded')
    """
    task = score_kind(score).task
    words = {"classification": "every label is in every set", "regression": "every interval is the whole line"}
    return words.get(task, "nothing is excluded")
