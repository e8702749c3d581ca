"""Where a warning belongs: with the caller, not inside the library."""

import sys

_BETWEEN = (__name__.partition(".")[0], "sklearn", "joblib")
"""This package, and those that call its estimators for somebody: pipelines, searches, their threads."""


def outside() -> int:
    """The `stacklevel` with which a warning points at the first caller outside this package and scikit-learn."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    return level
