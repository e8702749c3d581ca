"""Warnings about a release: when it is made, and when it is applied."""

import warnings

from confide.core.release import Release, reminder_due
from confide.core.remarks import remarks
from confide.core.rules import unusual
from confide.errors import CoverageWarning
from confide.support import caller_stacklevel

_REMARKS = "_remarks"

# A warning follows if a record is in more groups that overlap.
_MOST_COLUMNS = 10


def warn_about(release: Release) -> None:
    """Warn of `remarks` when a release is applied, at every call; and once of a model that was not compared."""
    cache = vars(release)  # like a cached property: a frozen value stores what follows from it
    if _REMARKS not in cache:
        cache[_REMARKS] = remarks(release)
    due = (uncompared(release),) if reminder_due(release) else ()
    for note in (*cache[_REMARKS], *due):
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())


def uncompared(release: Release) -> str:
    """The reminder that the model of a release was not compared."""
    return (
        f"the model was not compared with the release's fingerprint ({release.fingerprint}), and the promise is "
        "for that model: compare once, with released.for_model(fingerprint) or --set fingerprint=FILE"
    )


def warn_of_choices(release: Release) -> None:
    """Warn of an unusual level or failure probability, or of many columns of groups, once, when a release is made."""
    failures = [threshold.guarantee.delta or 0.0 for threshold in release.parts.values()]
    delta = sum(failures) if release.by in ("level", "side") else max(failures)
    notes = [*unusual(None if release.loss else min(release.levels), delta or None)]
    if release.overlap is not None and (columns := len(release.overlap)) > _MOST_COLUMNS:
        notes.append(
            f"{columns} columns of groups divide the privacy budget into {columns} parts, so each group needs about "
            f"{columns} times as many records; name fewer columns"
        )
    for note in notes:
        warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
