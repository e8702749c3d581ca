"""The loss of masks: the share of an image's true area that a mask misses, and how releases name it."""

import re
from dataclasses import dataclass

from confide.errors import InputError, InputTypeError
from confide.releases.risk import RiskCalibration

_NAME = re.compile(r"missed_area(?:\((?:background=(\d+))?,?(?:average=(classes))?\))?")


@dataclass(frozen=True)
class MissedAreaLoss:
    """The share of the true area of an image that a mask misses; 0 for an image without any.

    Parameters
    ----------
    background
        The class whose pixels are no area, or None.
    by_class
        Whether every class that occurs counts alike, however large it is; else every pixel does.

    Examples
    --------
    >>> MissedAreaLoss(background=0, by_class=True).name
    'missed_area(background=0,average=classes)'
    >>> MissedAreaLoss.of("missed_area") == MissedAreaLoss(), MissedAreaLoss.of("false_negative_rate") is None
    (True, True)
    """

    background: int | None = None
    by_class: bool = False

    @property
    def name(self) -> str:
        """What a release calls it."""
        said = [] if self.background is None else [f"background={self.background}"]
        said += ["average=classes"] if self.by_class else []
        return f"missed_area({','.join(said)})" if said else "missed_area"

    @classmethod
    def of(cls, name: str) -> "MissedAreaLoss | None":
        """The loss of this name; None if it is another."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        made = cls(None if match[1] is None else int(match[1]), match[2] is not None)
        return made if made.name == name else None

    def check(self, classes: int) -> None:
        """Refuse a background that is none of the classes, or the only one."""
        if self.background is not None and not (classes > 1 and self.background < classes):
            raise InputError(
                f"background must be the number of one of several classes, or be left out; found {self.background} "
                f"for {classes}"
            )


def area_of(calibration: RiskCalibration) -> MissedAreaLoss:
    """The loss of a calibration of masks; others are refused."""
    area = MissedAreaLoss.of(calibration.loss) if isinstance(calibration, RiskCalibration) else None
    if area is None:
        raise InputTypeError("calibration must come from calibrate_masks")
    return area
