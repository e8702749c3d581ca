"""Handwritten digits from scikit-learn (UCI "Optical Recognition of Handwritten Digits"), and a model for them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.evaluation import coverage
from confide.scores import set_mask
from confide.sets import CoverageEstimate, PredictionSets
from confide.support import needs_extra

TRAINING, CALIBRATION = 60, 700


@dataclass(frozen=True)
class Digits:
    """Class probabilities and true digits of the calibration images and of the unseen ones."""

    calibration: NDArray[np.float64]
    calibration_digits: NDArray[np.int64]
    unseen: NDArray[np.float64]
    unseen_digits: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of the unseen images whose most probable digit is the true one."""
        return float(np.mean(self.unseen.argmax(axis=1) == self.unseen_digits))


@dataclass(frozen=True)
class Outcome:
    """What a threshold does on the unseen images: the sets, and whether they hold the true digit."""

    threshold: float
    sets: PredictionSets
    covered: NDArray[np.bool_]

    @property
    def coverage(self) -> CoverageEstimate:
        """Share of sets with the true digit."""
        return coverage(self.covered)


def train() -> Digits:
    """Train on few images, on purpose: a model that is unsure makes sets worth looking at."""
    with needs_extra("the demo", "standard"):
        from sklearn.datasets import load_digits
        from sklearn.linear_model import LogisticRegression

    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    training, calibration, unseen = np.split(order, [TRAINING, TRAINING + CALIBRATION])
    model = LogisticRegression(C=0.1, max_iter=1000).fit(images[training], digits[training])
    known, new = model.predict_proba(images[calibration]), model.predict_proba(images[unseen])
    return Digits(known, digits[calibration], new, digits[unseen])


def outcome(digits: Digits, threshold: float) -> Outcome:
    """The sets that a threshold gives for the unseen images."""
    sets = PredictionSets(set_mask(digits.unseen, "lac", threshold))
    return Outcome(threshold, sets, sets.contains(digits.unseen_digits))
