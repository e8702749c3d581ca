"""Releases: thresholds under one statement, in a mapping whose keys `by` describes; and their use for new records.

Releases contain no data. Everything but the thresholds follows from the request and from the public statement of the
mechanism. A reader of a release computes it again, by the same functions.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.arrays import Groups, as_positions
from confide.candidates import BUILDERS
from confide.core.description import brief_of, section_of
from confide.core.design import threshold_at
from confide.core.documents import Document, load
from confide.core.fingerprint import ModelFingerprint, check_fingerprint
from confide.core.losses import MissedAreaLoss
from confide.core.request import Request
from confide.core.threshold import Threshold, meaning_of_infinity
from confide.core.thresholds import Key, Statement, Thresholds
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.support import (
    Classes,
    Level,
    Section,
    caller_stacklevel,
    canonical_name,
    class_count,
    exact_level,
    is_numbering,
    name_text,
    order_of,
)

_UNCOMPARED = "_uncompared"
_OTHER_MODEL = (
    "Recalibrate for this model, or use the calibrated one; if it is the same, compare the probe records, or leave the "
    "fingerprint out"
)


@dataclass(frozen=True, repr=False, eq=False)
class Release(Document, Thresholds):
    """Thresholds under one statement: a mapping from keys to thresholds, their request, and their cost together.

    A single threshold has the key None, and its fields are also those of the release: `threshold`, `guarantee`, ...
    Several have their levels, the names of groups or classes, or "low" and "high" as keys. A record of groups that
    overlap takes the largest threshold of its groups; every group of every column has the guarantee, and no
    intersection of groups has one (docs/theory.md, Theorem G1). Thresholds of several levels are nested.

    Parameters
    ----------
    request
        All public parameters (`confide.core.Request`).
    parts
        The thresholds by key; those of levels with decreasing levels.
    versions
        Versions of the libraries that made the release.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores, ward = np.random.default_rng(0).random(4000), ["a", "b"] * 2000
    >>> released = confide.calibrate(scores, alpha=0.1, epsilon=1.0, candidates=confide.Candidates.unit(1000))
    >>> 0.87 < released.threshold < 0.95, released.coverage
    (True, 0.9)
    >>> released == confide.Release.from_json(released.to_json())
    True
    >>> released = confide.calibrate(scores, [0.2, 0.1], epsilon=1.0, score="lac")
    >>> released[0.1].threshold >= released[0.2].threshold, released.privacy.epsilon
    (True, 1.0)
    >>> confide.calibrate(scores, 0.1, 1.0, groups=ward, names=["a", "b"], score="lac").privacy.epsilon
    1.0
    """

    def places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """The position of each record's group, or class, among the parts, int64, shape (n,).

        If groups overlap: the positions of all its groups, shape (n, columns).
        """
        if self.overlap is not None:
            return self.overlap.places(groups, n)
        return as_positions("groups", groups, tuple(self.parts), n)  # type: ignore[arg-type]  # a mapping raises

    def needs_groups(self, *, sets: bool) -> bool:
        """Whether the caller must give each record's group, or true class; for `sets` of classes the class is known."""
        return self.by == "group" or (self.by == "class" and not sets)

    def at(self, alpha: Level | None) -> "Release":
        """The release of one level; without an argument that of the only level.

        If the release contains a noisy histogram, every other level can be computed from it at no further privacy loss.
        The guarantee of a level holds if the level was chosen without looking at the release. It does not hold if you
        try levels until a set looks right.

        Parameters
        ----------
        alpha
            Miscoverage level in (0, 1). Without a noisy histogram: one of the stated levels.

        Returns
        -------
        Release
            Its threshold is +inf if alpha is too small for the number of records, or for the list of candidates.

        Warns
        -----
        CoverageWarning
            If the threshold of another level than the stated ones excludes nothing.

        Raises
        ------
        InputError
            If `alpha` is not one of the levels and no other level can be computed, or is missing although there are
            several levels.

        Notes
        -----
        Theorems W3 and W3b of docs/theory-one-number.md, for each level.

        Examples
        --------
        >>> import confide
        >>> released = confide.calibrate(np.linspace(0, 1, 2000), [0.1, 0.2], 2.0, score="lac")
        >>> released.at(0.2).threshold == released[0.2].threshold, released.at(0.2).epsilon
        (True, 2.0)
        >>> released.at(0.2).threshold < released.at(0.15).threshold < released.at(0.1).threshold
        True
        """
        exact = None if alpha is None else exact_level("alpha", alpha)
        if exact is not None and exact not in self.levels and self._answers_all:
            return self._at_another(exact)
        level = self.level_of(alpha)
        return self.alone(level) if self.by == "level" else self

    @property
    def _answers_all(self) -> bool:
        """Whether noisy counts over a known list were released for every threshold."""
        if self.loss is not None or not isinstance(self.request, Request):
            return False
        thresholds = self.parts.values()
        return all(threshold.noisy_counts and threshold.recipe["kind"] in BUILDERS for threshold in thresholds)

    def _at_another(self, alpha: Fraction) -> "Release":
        assert isinstance(self.request, Request)
        request = self.request.at_level(alpha)
        counted = {None: self.first} if self.by == "level" else self.parts
        thresholds = {key: threshold_at(request.terms[key], threshold) for key, threshold in counted.items()}
        another = self._with(request, thresholds)
        if another.infinite:
            meaning = meaning_of_infinity(self.score)
            remedy = "More records, or a list with candidates closer together, resolve it"
            note = f"the threshold for alpha={float(alpha):g} excludes nothing: {meaning}. {remedy}"
            warnings.warn(note, CoverageWarning, stacklevel=caller_stacklevel())
        return another

    def alone(self, key: Key) -> "Release":
        """The threshold of one level or side as a release of its own, with its share of the budget.

        Examples
        --------
        >>> import confide
        >>> quantiles, targets = np.tile([-1.0, 1.0], (2000, 1)), np.linspace(-2, 2, 2000)
        >>> confide.calibrate_sides(quantiles, targets, 0.1, 1.0).alone("low").score
        'cqr_low'
        """
        return self._with(self.request.at(key), {None: self.parts[key]})

    def _with(self, request: Statement, parts: Mapping[Key, Threshold]) -> "Release":
        """The release of another request and other thresholds, which share the reminder to compare the model."""
        other = replace(self, request=request, parts=parts)
        if _UNCOMPARED in vars(self):
            vars(other)[_UNCOMPARED] = vars(self)[_UNCOMPARED]
        return other

    def for_model(self, fingerprint: ModelFingerprint) -> Self:
        """Return this release if its fingerprint is that of the model in use; otherwise raise an error.

        Parameters
        ----------
        fingerprint
            The fingerprint of the model in use, from the same public probe records or from its file.

        Raises
        ------
        InputError, InputTypeError
            If the model is another one, the release states no fingerprint, or the argument is of another type.

        Examples
        --------
        >>> import confide
        >>> probe = np.random.default_rng(0).dirichlet([1, 1], 50)  # the model's outputs for public records
        >>> model = confide.ModelFingerprint.of(probe)
        >>> released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac", fingerprint=model)
        >>> confide.predict_set([[0.99, 0.01]], released.for_model(model)).labels()
        [[0]]
        >>> released.for_model(confide.ModelFingerprint.of(probe**2))
        Traceback (most recent call last):
            ...
        confide.errors.InputError: fingerprint: must be that of the calibrated model; got outputs rounded to ...
        """
        stated = self.fingerprint
        used = check_fingerprint(fingerprint)
        if used is None:
            raise InputTypeError("fingerprint", "must be a ModelFingerprint", got="None")
        if stated is None:
            remedy = "Calibrate with fingerprint=, or leave it out"
            raise InputError("fingerprint", "must be left out: the release states none to compare", remedy=remedy)
        if used != stated:
            got = f"{used}, instead of {stated}"
            raise InputError("fingerprint", "must be that of the calibrated model", got=got, remedy=_OTHER_MODEL)
        reminder_due(self)  # no longer
        return self

    def limits(
        self, n: int | None = None, *, groups: Groups | None = None, classes: Sequence[object] | int | None = None
    ) -> float | NDArray[np.float64]:
        """Limits for scores, for sets, intervals, SQL, ONNX and PyTorch.

        Parameters
        ----------
        n
            The number of records, for thresholds per group.
        groups
            The group of each record, shape (n,), for thresholds per group. If groups overlap: a data frame or a mapping
            of their columns.
        classes
            For thresholds per class: the names in the order of the columns, or their number. Classes that were
            calibrated as positions, 0 to K-1, match K columns with any names.

        Returns
        -------
        float or array
            The threshold; or float64, shape (n,), the threshold of each record, the largest of its groups; or shape
            (k,), that of each class.

        Raises
        ------
        InputError, InputTypeError
            If groups or classes are missing, unknown or not applicable, or if thresholds are for several levels or
            sides, of which one has to be chosen.

        Examples
        --------
        >>> import confide
        >>> scores = np.random.default_rng(0).random(4000)
        >>> released = confide.calibrate(scores, 0.1, 1.0, groups=["a", "b"] * 2000, names=["a", "b"])
        >>> released.limits(3, groups=["b", "a", "b"]) == [released[name].threshold for name in "bab"]
        array([ True,  True,  True])
        """
        if self.by in ("level", "side"):
            raise self._several()
        values = np.array([threshold.threshold for threshold in self.parts.values()])
        if self.by == "group":
            if groups is None or n is None:
                raise InputError("groups", "must be given: the calibration has one threshold per group")
            thresholds = values[self.places(groups, n)]
            return thresholds if thresholds.ndim == 1 else thresholds.max(axis=1)
        if groups is not None:
            per = "thresholds per class; groups do not apply to it" if self.by == "class" else "no thresholds per group"
            raise InputError("groups", f"must be left out: the calibration has {per}")
        return values[self._order(classes)] if self.by == "class" else float(values[0])

    def _order(self, classes: Sequence[object] | int | None) -> list[int]:
        if classes is None:
            raise InputError("classes", "must be given: the calibration has one threshold per class")
        k = class_count(classes)
        # By their names, or else by their positions.
        for names in (tuple(range(k)) if isinstance(classes, int) else classes, tuple(range(k))):
            if (order := order_of(names, tuple(self.parts))) is not None:
                return order
        must = f"must be given, because the calibration has {len(self.parts)} named classes"
        got = f"{k} columns without these names: pass classes=[...] in the order of the columns"
        raise InputError("classes", must, got=got)

    def _section(self) -> Section:
        return section_of(self)

    def _brief(self) -> str:
        return brief_of(self)


def mark_uncompared(release: Release) -> None:
    """Mark a release that was read and states a fingerprint: the model has not been compared with it yet."""
    if release.fingerprint is not None:
        vars(release)[_UNCOMPARED] = [True]  # like a cached property, no part of the value; shared with its parts


def reminder_due(release: Release) -> bool:
    """Whether a reminder to compare the model is due: for a release that was read, at the first call alone."""
    mark = vars(release).get(_UNCOMPARED)
    return bool(mark and mark.pop())


def as_release(release: Any) -> Release:
    """Return a release unchanged; raises `InputTypeError` for all other values, also for other documents."""
    if not isinstance(release, Release):
        raise InputTypeError("release", "must be a confide.Release", got=type(release).__name__)
    return release


def load_release(path: str | Path) -> Release:
    """Like `confide.load`, for thresholds only: a monitor or an evaluation raises an error."""
    return as_release(load(path))


# What a release requires of the records that it is applied to: one group, masks, a named score, or classes.


def refuse_overlapping(release: Release, remedy: str = "") -> None:
    """Reject a release of groups that overlap where a record must have one group."""
    if release.overlap is not None:
        must = "must have one threshold, or groups that divide the records"
        raise InputError("release", must, got="groups that overlap", remedy=remedy)


def area_of(release: Release) -> MissedAreaLoss:
    """The loss of a release for masks; raises an error for others."""
    loss = release.loss if isinstance(release, Release) else None
    area = None if loss is None else MissedAreaLoss.of(loss)
    if area is None:
        raise InputTypeError("calibration", "must come from calibrate_masks")
    return area


# The arguments of the `InputError` of a release without a name for its score, which makes no sets and no intervals.
UNNAMED = (
    "calibration",
    "must name its score, so that it can be computed for new records",
    "none",
    "Calibrate on named scores, such as those of lac_score, or with score=NAME, or compare your own scores with "
    "calibration.threshold",
)


def names_for(release: Release, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The names of k columns that a release is applied to: their own names, or the release's if they have none.

    Columns without names, or with the names 0 to k-1, stand for the release's classes in their order. If each class has
    its own threshold, the order of the classes is unknown, and the columns must have names. The error for other classes
    contains the numbers of missing and unknown ones and the first of each, because names of classes are public.
    """
    classes = release.classes
    if classes is None:
        return names
    matched = names_among(classes, names, k)
    return names if release.by == "class" and matched is classes else matched


def names_among(known: Classes, names: tuple[object, ...] | None, k: int) -> tuple[object, ...] | None:
    """The names of k columns if the classes are known from elsewhere, or the classes that unnamed columns stand for."""
    # Without names on one side only the number of columns is compared.
    unnamed = names is None or is_numbering(list(map(name_text, names)))
    if isinstance(known, int) or unnamed:
        count = class_count(known)
        if k != count:
            must = f"must have one column for each of the {count} classes that were calibrated"
            raise InputError("probabilities", must, got=str(k), remedy="Give all of them, or calibrate for these")
        return names if isinstance(known, int) else known
    assert names is not None
    if order_of(names, known) is None:
        remedy = (
            "give the columns the names of the calibration's classes, or name them with classes=[...] in their order"
        )
        must = f"must be the {len(known)} that were calibrated"
        raise InputError("classes", must, remedy=f"{_others(names, known)}; {remedy}")
    return names


def _others(names: tuple[object, ...], known: tuple[str | int, ...]) -> str:
    """The numbers of missing and unknown classes, and the first of each."""
    given = {name_text(name): name for name in names}
    expected = {canonical_name(name): name for name in known}
    differences: Mapping[str, list[object]] = {
        "missing": [name for text, name in expected.items() if text not in given],
        "unknown": [name for text, name in given.items() if text not in expected],
    }
    return ", ".join(f"{len(some)} {which} (the first: {some[0]!r})" for which, some in differences.items() if some)
