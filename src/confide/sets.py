"""From a threshold to prediction sets {y : score(x, y) <= threshold} and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_labels, as_probabilities, class_names
from confide.calibration import Calibration
from confide.errors import InputError, InputTypeError
from confide.scores.classification import lac_mask
from confide.scores.kinds import score_kind
from confide.scores.regression import finite_vector


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets:
    """One set of classes per record.

    Parameters
    ----------
    mask
        bool, shape (n, K): whether class k is in the set of record i.
    classes
        The K class names, or None for 0 .. K-1.

    Examples
    --------
    >>> sets = PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog"))
    >>> sets.labels()
    [['cat'], ['cat', 'dog']]
    >>> sets
    PredictionSets(n=2, classes=2, mean size 1.50, empty 0)
    """

    mask: NDArray[np.bool_]
    classes: tuple[object, ...] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of classes in each set, shape (n,)."""
        sizes: NDArray[np.int64] = np.count_nonzero(self.mask, axis=1).astype(np.int64)
        return sizes

    def labels(self) -> list[list[Any]]:
        """The sets as lists of class names (class indices without names)."""
        names = range(self.mask.shape[1]) if self.classes is None else self.classes
        return [[names[k] for k in np.flatnonzero(row).tolist()] for row in self.mask]

    def contains(self, labels: ArrayLike) -> NDArray[np.bool_]:
        """Whether each record's label is in its set: bool, shape (n,)."""
        y = as_labels("labels", labels, self.mask.shape[0], self.mask.shape[1], self.classes)
        inside: NDArray[np.bool_] = self.mask[np.arange(len(y)), y]
        return inside

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        n, k = self.mask.shape
        sizes = self.sizes
        return f"PredictionSets(n={n}, classes={k}, mean size {sizes.mean():.2f}, empty {int((sizes == 0).sum())})"


def predict_set(
    probabilities: ArrayLike, calibration: Calibration, classes: Sequence[object] | None = None
) -> PredictionSets:
    """Prediction sets {y : 1 - p_y <= threshold} for new records.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1], any float dtype.
    calibration
        Made from `lac_score` values (named `"lac"`, or without a name).
    classes
        The K class names, kept with the sets.

    Raises
    ------
    InputError
        If the calibration was made for another score, or the probabilities are not valid.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> calibration = confide.calibrate(rng.random(2000) / 2, alpha=0.1, epsilon=1.0, score="lac")
    >>> confide.predict_set([[0.9, 0.1], [0.6, 0.6]], calibration).labels()
    [[0], [0, 1]]
    """
    check_score(calibration, "lac", "predict_set")
    p = as_probabilities("probabilities", probabilities)
    names = None if classes is None else class_names(classes, p.shape[1])
    return PredictionSets(lac_mask(p, calibration.threshold), names)


def predict_interval(
    predictions: ArrayLike, calibration: Calibration
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Prediction intervals {y : |y - f(x)| <= threshold} for new records.

    The ends are rounded outwards by one float, so that every y whose computed score is at most the threshold lies
    between them.

    Parameters
    ----------
    predictions
        Shape (n,), finite.
    calibration
        Made from `absolute_residual_score` values (named `"absolute_residual"`, or without a name).

    Returns
    -------
    lower, upper
        float64, shape (n,) each; infinite if the threshold is. A negative threshold, possible for a calibration
        without a name, gives lower > upper: the empty interval.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> calibration = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="absolute_residual")
    >>> lower, upper = confide.predict_interval([10.0], calibration)
    >>> bool(8.9 < lower[0] < 9.2 and 10.8 < upper[0] < 11.1)
    True
    """
    check_score(calibration, "absolute_residual", "predict_interval")
    f = finite_vector("predictions", predictions)
    with np.errstate(over="ignore", under="ignore"):
        reach = np.nextafter(calibration.threshold, np.inf)
        return np.nextafter(f - reach, -np.inf), np.nextafter(f + reach, np.inf)


def check_score(calibration: Calibration, name: str, caller: str) -> None:
    """Refuse a calibration that was made for another score than the one `caller` computes."""
    if not isinstance(calibration, Calibration):
        raise InputTypeError(f"calibration must be a confide.Calibration; found {type(calibration).__name__}")
    if calibration.score is not None and calibration.score != name:
        other = score_kind(calibration.score).task
        hint = {"regression": "use predict_interval", "classification": "use predict_set"}.get(
            other, "compute that score for every label and compare it with calibration.threshold"
        )
        raise InputError(
            f"calibration was made for the score {calibration.score!r}, and {caller} computes {name!r}; {hint}"
        )
