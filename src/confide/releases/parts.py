"""The calibrations that a release consists of."""

from confide.errors import InputTypeError
from confide.releases.calibration import Calibration
from confide.releases.release import Release
from confide.releases.risk import RiskCalibration
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration


def parts_of(release: Release) -> dict[str, Calibration]:
    """The calibrations that a release consists of, by a name for people.

    Raises
    ------
    InputTypeError
        If it is no release.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> list(parts_of(confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0)))
    ['alpha 0.2', 'alpha 0.1']
    """
    match release:
        case Calibration():
            return {"": release}
        case LevelCalibration():
            return {f"alpha {float(alpha):g}": part for alpha, part in release.parts.items()}
        case GroupCalibration():
            return {f"{release.by} {name}": part for name, part in release.parts.items()}
        case SidesCalibration():
            return {"lower side": release.low, "upper side": release.high}
        case RiskCalibration():
            return {release.loss: release.calibration}
    raise InputTypeError(f"release must be something that was released; found {type(release).__name__}")
