"""`noisy-labels`: a threshold from labels that went through randomised response before they were collected.

The counts of noisy labels are corrected by the expected share of random labels in the sets, which the analyst computes
from the features (docs/theory-labels.md). This step draws no noise and spends no budget: the privacy loss is that of
each label where it was randomised.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import Guarantee, RankLaw, law_failure, mean_coverage, noisy_rank, noisy_rank_law
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.privacy import Neighbors, PrivacyStatement
from confide.selection import change_probability, stay_probability
from confide.support import decimal_text

_SLACK = 1e-9
"""Tolerance for another machine's rounding of the sums of a certificate."""


@dataclass(frozen=True)
class NoisyLabels(Mechanism):
    """The last candidate, from +inf downwards, down to which every corrected count reaches the rank.

    Parameters
    ----------
    epsilon
        Privacy loss of one label, with which all were randomised.
    classes
        K, the number of classes.
    rank
        The corrected count that a candidate must reach.

    Examples
    --------
    >>> mechanism = NoisyLabels(1.0, 2, 2)
    >>> mechanism.choose(np.array([[1, 1, 1], [2, 2, 2]]))  # of 3 records: counts of noisy labels, and of both classes
    1
    """

    name: ClassVar[Literal["noisy-labels"]] = "noisy-labels"
    add_remove: ClassVar[None] = None
    replace_one: ClassVar[float] = math.inf

    epsilon: float
    classes: int
    rank: int

    @property
    def truth(self) -> float:
        """p, the probability that a label stays the true one."""
        return stay_probability(self.classes, self.epsilon)

    @property
    def other(self) -> Fraction:
        """q, the probability of each other class."""
        return change_probability(self.classes, self.truth)

    @property
    def kept(self) -> Fraction:
        """The difference p - q: the share of a count that is not noise."""
        return Fraction(self.truth) - self.other

    def corrected(self, counts: NDArray[np.int64]) -> list[Fraction]:
        """Unbiased counts of covered records at every candidate, exactly: (noisy - q all)/(p - q).

        `counts` is int64 of shape (2, m): scores per bin of the noisy labels, and of all classes of all records.
        """
        noisy, of_all = (np.cumsum(one, dtype=np.int64).tolist() for one in counts)
        q, kept = self.other, self.kept
        return [(hits - q * size) / kept for hits, size in zip(noisy, of_all, strict=True)]

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The index of the selected candidate, from the counts of `corrected`; the last one, +inf, always passes."""
        failing = [j for j, count in enumerate(self.corrected(counts)[:-1]) if count < self.rank]
        return failing[-1] + 1 if failing else 0

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The threshold is at least the R-th smallest score of the true labels (docs/theory-labels.md, Theorem L3)."""
        return noisy_rank_law(self.rank, n, self.truth, float(self.kept))

    def guarantee(self, level: Fraction, n: int, delta: float | None) -> Guarantee | None:
        """The guaranteed level, if this rank is the smallest one that guarantees it; else None."""
        law = self.rank_law(n, 0)
        if delta is None:
            kept = mean_coverage(law, n) >= float(level) - _SLACK
        else:
            kept = law_failure(law, n, float(level)) <= delta + _SLACK
        least = noisy_rank(float(level), n, self.truth, float(self.kept), delta)
        if not kept or self.rank > least + 1:
            return None
        return Guarantee("marginal" if delta is None else "training_conditional", float(level), delta, n, None)


def noisy_labels_for(level: Fraction, n: int, epsilon: float, classes: int, delta: float | None = None) -> NoisyLabels:
    """The mechanism with the smallest rank that guarantees the level.

    Examples
    --------
    >>> noisy_labels_for(Fraction(9, 10), 5000, 1.0, 10)
    NoisyLabels(epsilon=1.0, classes=10, rank=4604)
    """
    truth = stay_probability(classes, epsilon)
    kept = float(Fraction(truth) - change_probability(classes, truth))
    return NoisyLabels(epsilon, classes, noisy_rank(float(level), n, truth, kept, delta))


class LabelPrivacy(PrivacyStatement):
    """The privacy of labels that were randomised one by one before collection; features are not protected.

    Examples
    --------
    >>> LabelPrivacy.of(1.0).brief, LabelPrivacy.of(1.0).loss("replace_one"), LabelPrivacy.of(1.0).label_loss(3)
    ('epsilon 1 (of each label, local; features not protected)', inf, 3.0)
    """

    @classmethod
    def of(cls, epsilon: float) -> "LabelPrivacy":
        """The statement for labels that were randomised with this loss."""
        return cls("replace_one", epsilon, 1, None, math.inf, None)

    def label_loss(self, labels: int = 1) -> float:
        """The loss when `labels` labels change at once."""
        return labels * self.epsilon

    def loss(self, neighbors: Neighbors | None = None, records: int = 1) -> float:
        """The loss of whole records with their features: infinite."""
        return math.inf

    @property
    def brief(self) -> str:
        """The loss in a few words."""
        return f"epsilon {decimal_text(self.epsilon)} (of each label, local; features not protected)"

    def __str__(self) -> str:
        weak = f"; {self.weak}" if self.weak else ""
        return (
            f"{decimal_text(self.epsilon)}-differential privacy of each label, local: it was randomised before it "
            f"was collected; features and model outputs are not protected{weak}"
        )
