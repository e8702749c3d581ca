"""From counts to an evaluation: what a release promises, and to which of its parts a count belongs."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.metrics import coverage_from_counts
from confide.evaluation.result import CONFIDENCE, By, Evaluation, Part, Shown, shares
from confide.releases.reading import Release, parts_of
from confide.releases.several import GroupCalibration, SidesCalibration


def fingerprint(release: Release) -> str:
    """SHA-256 of a release's JSON, hexadecimal."""
    return hashlib.sha256(release.to_json().encode()).hexdigest()


def promised(release: Release) -> float:
    """The coverage that every record of a release is promised: for groups the least of theirs, for two sides together.

    Of a bound on a loss it is the coverage of critical thresholds.
    """
    parts = [part.coverage for part in parts_of(release).values()]
    return max(0.0, 1 - sum(1 - one for one in parts)) if isinstance(release, SidesCalibration) else min(parts)


def kind_of(release: Release) -> By | None:
    """What has a threshold of its own in a release."""
    if isinstance(release, SidesCalibration):
        return "side"
    return release.by if isinstance(release, GroupCalibration) else None


def class_keys(release: GroupCalibration, names: Sequence[object]) -> list[str | int]:
    """The classes of a release, in the order of the columns, whose names may be texts that read like them.

    Raises
    ------
    InputError
        If the columns have other classes, unless the release has 0 to K-1 and the columns K names.
    """
    by_text = {str(key): key for key in release.parts}
    texts = [str(name) for name in names]
    if len(by_text) == len(release.parts) and sorted(texts) == sorted(by_text):
        return [by_text[text] for text in texts]
    if set(release.parts) == set(range(len(texts))):
        return list(range(len(texts)))
    some = ", ".join(list(by_text)[:10]) + (", ..." if len(by_text) > 10 else "")
    raise InputError(
        f"classes must be the {len(release.parts)} that were calibrated ({some}); found {len(texts)} columns or other "
        "names; give the names in the order of the columns"
    )


def of_counts(
    release: Release,
    names: Sequence[object],
    by_class: NDArray[np.int64],
    by_size: NDArray[np.int64],
    examples: Sequence[Shown] = (),
    groups: Sequence[Part] = (),
) -> Evaluation:
    """An evaluation of sets from counts.

    Parameters
    ----------
    release
        What the sets were made with: one calibration, or one with a threshold per group or class.
    names
        The K class names.
    by_class
        int64, shape (K, 3): records, covered records and labels in sets, by true class.
    by_size
        int64, shape (K + 1, 2): records and covered records, by set size.
    groups
        The groups that occur, for thresholds per group.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> by_class, by_size = np.array([[8, 7, 9], [2, 2, 3]]), np.array([[0, 0], [8, 7], [2, 2]])
    >>> found = of_counts(released, ["cat", "dog"], by_class, by_size)
    >>> found.coverage.value, found.mean_size, found.sizes[1].name
    (0.9, 1.2, '2')
    >>> Evaluation.from_json(found.to_json()) == found
    True
    """
    n, hits, by = int(by_class[:, 0].sum()), int(by_class[:, 1].sum()), kind_of(release)
    own: list[float | None] = [None] * len(names)
    if isinstance(release, GroupCalibration) and by == "class":
        own = [release.parts[key].coverage for key in class_keys(release, names)]
    rows = zip(names, by_class.tolist(), own, strict=True)
    classes = tuple(Part(str(name), a, b, members, one) for name, (a, b, members), one in rows if a)
    sizes = tuple(Part(str(k), a, b, k * a) for k, (a, b) in enumerate(by_size.tolist()) if a)
    return Evaluation(
        fingerprint(release),
        promised(release),
        coverage_from_counts(hits, n, CONFIDENCE),
        classes=classes,
        sizes=sizes,
        groups=tuple(groups),
        by=by,
        examples=tuple(examples),
        **shares(classes, sizes, n),
    )
