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
    def privacy(self) -> PrivacyStatement:
        """The privacy loss."""
        return self.calibration.privacy

    def __str__(self) -> str:
        return (
            f"threshold {threshold_text(self.calibration)} for the loss {self.loss!r}\n"
            f"promise: expected loss at most {self.risk:.6g}, that is, for critical thresholds: "
            f"{self.calibration.guarantee}\nprivacy: {self.privacy}{needed_line([self.calibration])}"
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
