"""Who made a release of what, when and what for: what it says itself, and what it leaves unsaid."""

import shlex
from typing import Any

from confide.releases import ABOUT, Release, about_of

EXAMPLES = {
    "model": "NAME",
    "version": "NUMBER",
    "data": "NAME",
    "purpose": "TEXT",
    "responsible": "NAME",
    "contact": "ADDRESS",
    "date": "2026-11-22",
}
"""What every release should say, and how; what else a release says of itself is shown if it does."""


def stated(release: Release) -> dict[str, Any]:
    """What a release says of itself, with None for what it leaves unsaid, and how the missing ones are given.

    Examples
    --------
    >>> import confide, numpy as np
    >>> found = stated(confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, about={"model": "resnet"}))
    >>> found["rows"][:2], found["missing"][:2]
    ([('Model', 'resnet'), ('Version of the model', None)], ['Version of the model', 'Calibration data'])
    """
    about = about_of(release)
    left = [key for key in EXAMPLES if key not in about]
    return {
        "rows": [(name, about.get(key)) for key, name in ABOUT.items() if key in {*about, *EXAMPLES}],
        "missing": [ABOUT[key] for key in left],
        "options": " ".join(f"--about {shlex.quote(f'{key}={EXAMPLES[key]}')}" for key in left),
    }
