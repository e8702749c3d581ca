"""A release that bounds a loss: the threshold and the calibration of critical thresholds behind it."""

import re
from dataclasses import dataclass

from confide.errors import InputError
from confide.mechanisms import PrivacyStatement
from confide.releases.calibration import Calibration, threshold_text
from confide.releases.needed import needed_line
from confide.releases.release import Release
from confide.support import positive_number

FALSE_NEGATIVES = "false_negative_rate"
"""The loss of sets of labels: the share of true labels that they miss."""

_SHARE = re.compile(r"false_negative_rate|missed_area(\(.*\))?", re.DOTALL)


@dataclass(frozen=True, repr=False)
class RiskCalibration(Release):
    """A threshold at which a loss is small on average, and the calibration of critical thresholds behind it.

    Parameters
    ----------
    loss
        Name of the loss.
    bound
        Its largest possible value.
    calibration
        The release: coverage of critical thresholds, and the privacy statement.
    """

    loss: str
    bound: float
    calibration: Calibration

    def __post_init__(self) -> None:
        check_bound(self.loss, self.bound)
        if not isinstance(self.loss, str) or self.calibration.score != critical_score(self.loss):
            raise InputError("calibration must be one of critical thresholds of this loss")

    @property
    def threshold(self) -> float:
        """The released threshold."""
        return self.calibration.threshold

    @property
    def risk(self) -> float:
        """The guaranteed bound on the expected loss, in the sense of `calibration.guarantee`."""
        return self.bound * (1 - self.calibration.coverage)

    @property
    def promise(self) -> str:
        """What is promised, in words.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random((4000, 3))
        >>> confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.2, 1.0).promise
        "at most 20 % of a record's true labels are missed on average over calibration data and new records, for ..."
        """
        average = self.calibration.guarantee.delta is None  # and then the guarantee says it of all
        return self.calibration.guarantee.of(self.limit if average else f"on average {self.limit}")

    @property
    def limit(self) -> str:
        """The bound in words, without saying that it holds on average."""
        if self.bound == 1 and self.loss == FALSE_NEGATIVES:
            return f"at most {100 * self.risk:.6g} % of a record's true labels are missed"
        if self.bound == 1 and _SHARE.fullmatch(self.loss):
            return f"at most {100 * self.risk:.6g} % of an image's true area is missed"
        return f"a loss {self.loss!r} of at most {self.risk:.6g}"

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss."""
        return self.calibration.privacy

    def __str__(self) -> str:
        return (
            f"threshold {threshold_text(self.calibration)} for the loss {self.loss!r}\n"
            f"promise: {self.promise}\nprivacy: {self.privacy}{needed_line([self.calibration])}"
        )

    def _brief(self) -> str:
        least = self.calibration.guarantee
        sure = "" if least.delta is None else f" with probability {1 - least.delta:.6g}"
        said = f"loss {self.loss!r}, expected loss at most {self.risk:.6g}{sure}"
        return f"threshold {self.threshold:.6g}, {said}, {self.privacy.brief}"


def check_bound(loss: str, bound: float) -> float:
    """The bound of a loss; of a share, which reaches 1, a smaller one would make the promise of the risk too good.

    Examples
    --------
    >>> check_bound("cost", 0.5), check_bound("missed_area", 1)
    (0.5, 1.0)
    """
    found = positive_number("bound", bound)
    if found < 1 and isinstance(loss, str) and _SHARE.fullmatch(loss):
        raise InputError(f"bound must be at least 1 for the loss {loss!r}, a share; name a loss of your own otherwise")
    return found


def critical_score(loss: str) -> str:
    """The name of the score that a calibration of critical thresholds of this loss has."""
    return f"critical threshold of {loss}"
