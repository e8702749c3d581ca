"""Whatever the library releases, read from a file by its kind."""

import json
from pathlib import Path
from typing import TypeAlias

from confide.calibration.risk import RiskCalibration
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration
from confide.support.files import read_as

Release: TypeAlias = Calibration | LevelCalibration | GroupCalibration | SidesCalibration | RiskCalibration
"""One threshold, or several under one budget. A federated calibration is a `Calibration`."""


def read_release(text: str) -> Release:
    """Read a release of any kind, checking every field and computing its claims again.

    Raises
    ------
    FormatError
        If the text is no release, is damaged, altered or of a newer schema, or claims what does not follow.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> released = confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0)
    >>> type(read_release(released.to_json())).__name__
    'LevelCalibration'
    """
    from confide.releases.several_json import KINDS

    several = KINDS.get(_kind(text))
    return Calibration.from_json(text) if several is None else several.from_json(text)  # type: ignore[return-value]


def load_release(path: str | Path) -> Release:
    """Read a file that holds a release of any kind."""
    return read_as(Path(path), read_release)


def _kind(text: str) -> str:
    """The kind that a text states; empty if it is none, for the reader of calibrations to say what is wrong."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return ""
    kind = content.get("kind") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else ""


def parts_of(release: Release) -> dict[str, Calibration]:
    """The calibrations that a release consists of, by a name for people.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> list(parts_of(confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0)))
    ['alpha 0.2', 'alpha 0.1']
    """
    match release:
        case LevelCalibration():
            return {f"alpha {float(alpha):g}": part for alpha, part in release.parts.items()}
        case GroupCalibration():
            return {f"{release.by} {name}": part for name, part in release.parts.items()}
        case SidesCalibration():
            return {"lower side": release.low, "upper side": release.high}
        case RiskCalibration():
            return {release.loss: release.calibration}
    return {"": release}
