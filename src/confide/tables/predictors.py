"""From the columns of a record to its prediction set or interval: in this process, or as SQL."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import FALSE_NEGATIVES, UNNAMED, Release, as_release, names_for
from confide.errors import InputError
from confide.scores import interval_ends, score_kind, set_mask, unregistered
from confide.support import check_column_order, is_numbering
from confide.tables.arrow import ColumnRef
from confide.tables.buffers import from_names, from_numpy, from_texts
from confide.tables.columns import ClassColumns, ColumnSpec, LossColumns, TargetColumns
from confide.tables.failures import ColumnError
from confide.tables.named_columns import GroupedColumns, NamedColumn, Names, group_of_release
from confide.tables.readers import (
    NumberColumns,
    Reasons,
    finite_columns,
    finite_errors,
    finite_requirement,
    mark,
    other_sums,
)
from confide.tables.table import Table

SET, SIZE, LOWER, UPPER = "prediction_set", "set_size", "lower", "upper"


@dataclass(frozen=True, eq=False)
class Predictor(ABC):
    """The columns that are added to each record.

    Parameters
    ----------
    reads
        The columns that are read.
    adds
        The columns that are added; the last is null if a record has no prediction.
    requirements
        The requirements on every record, in words.
    width
        The approximate count of numbers that are read of each record.
    thresholds
        float64: one for all, shape (1,); one per class, shape (K,); or one per group, in the order of its names. For
        intervals, shape (2, ...), for the lower and the upper end.
    group
        The column of each record's group, for thresholds per group; the columns, if groups overlap.
    """

    reads: tuple[ColumnRef, ...]
    adds: tuple[str, str]
    requirements: tuple[str, ...]
    width: int
    thresholds: NDArray[np.float64]
    group: NamedColumn | GroupedColumns | None

    @abstractmethod
    def read(self, batch: Any, *, as_text: bool = False) -> tuple[list[Any], Reasons]:
        """The added columns of a batch, and the reasons of unusable records; `as_text` writes lists as JSON."""

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""
        groups = enumerate(() if self.group is None else self.group.each, start=self._first_of_groups)
        return [*self.own_errors(batch), *(one.column_error(batch, reason) for reason, one in groups)]

    @abstractmethod
    def own_errors(self, batch: Any) -> list[ColumnError]:
        """The errors of probabilities or predictions."""

    def thresholds_of(self, batch: Any, reasons: Reasons) -> tuple[NDArray[np.float64], Reasons]:
        """The threshold of each record by its group, and a reason for records of an unknown group.

        If groups overlap, the largest threshold of the record's groups.
        """
        assert self.group is not None
        place = self.group.places(batch)
        for reason, column in enumerate(np.atleast_2d(place.T), start=self._first_of_groups):
            reasons = mark(reasons, column < 0, reason)
        own = self.thresholds[..., np.maximum(place, 0)]
        return own if place.ndim == 1 else own.max(axis=-1), reasons

    @property
    def _first_of_groups(self) -> int:
        """The reason of a record without a group in the first column; the requirements of groups are the last ones."""
        return len(self.requirements) + 1 - (0 if self.group is None else len(self.group.each))


@dataclass(frozen=True, eq=False)
class SetPredictor(Predictor):
    """Sets of classes or labels; randomised scores draw new numbers.

    `names` are in the order of the probabilities. `by_class` states whether each class has its own threshold, and
    `sums` whether rows sum to one.
    """

    probabilities: NumberColumns
    names: Names
    score: str
    by_class: bool
    sums: bool = True

    def read(self, batch: Any, *, as_text: bool = False) -> tuple[list[Any], Reasons]:
        """Lists of class names, and their lengths."""
        p, reasons = self.probabilities.matrix(batch)
        if self.sums:
            reasons = mark(reasons, other_sums(p), 3)
        limits: Any = self.thresholds if self.by_class else float(self.thresholds[0])
        if self.group is not None:
            limits, reasons = self.thresholds_of(batch, reasons)
        good = np.ones(len(p), dtype=np.bool_) if reasons is None else reasons == 0
        mask = np.zeros(p.shape, dtype=np.bool_)
        if good.all() and len(p):
            mask = set_mask(p, self.score, limits, per_class=self.by_class)
        elif good.any():
            own = limits if self.group is None else limits[good]
            mask[good] = set_mask(p[good], self.score, own, per_class=self.by_class)
        return _set_columns(mask, self.names, None if reasons is None else ~good, as_text=as_text), reasons

    def own_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities."""
        return self.probabilities.column_errors(batch)


@dataclass(frozen=True, eq=False)
class IntervalPredictor(Predictor):
    """Intervals around predictions, or around predicted quantiles; `scores` are those of the lower and upper end."""

    predictions: tuple[str, ...]
    scores: tuple[str, str]

    def read(self, batch: Any, *, as_text: bool = False) -> tuple[list[Any], Reasons]:
        """Both ends, rounded outwards."""
        f, reasons = finite_columns(batch, self.predictions, first=1, positive=score_kind(self.scores[0]).positive)
        thresholds: Any = self.thresholds[:, 0]
        if self.group is not None:
            thresholds, reasons = self.thresholds_of(batch, reasons)
        good = np.ones(len(f[0]), dtype=np.bool_) if reasons is None else reasons == 0
        ends = np.full((2, len(good)), np.nan)
        if good.any():
            kept = f[0][good] if len(f) == 1 else np.column_stack(f)[good]
            for side, score in enumerate(self.scores):
                own = float(thresholds[side]) if self.group is None else thresholds[side][good]
                ends[side, good] = interval_ends(kept, score, own)[side]
        return [from_numpy(end, None if reasons is None else ~good) for end in ends], reasons

    def own_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of predictions."""
        return finite_errors(batch, self.predictions, first=1, positive=score_kind(self.scores[0]).positive)


def predictors_of(
    table: Table, what: ColumnSpec, release: Release, by: str | Sequence[str] | None = None
) -> tuple[Predictor, ...]:
    """The predictors of a release for a table: one, or one per level.

    Raises
    ------
    InputError
        If the release is for other scores than those of the columns, or has thresholds per group and `by`, the column
        of the group, is not given.
    """
    if as_release(release).by == "level":
        return tuple(_predictor(table, what, release.at(alpha), by, f"_{float(alpha):g}") for alpha in release.parts)
    return (_predictor(table, what, release, by, ""),)


def release_class_names(release: Release, p: NumberColumns, names: Names) -> Any:
    """The column names for a release (`names_for`); columns named one by one must be in the order of the release.

    Raises
    ------
    InputError
        If the release is for other classes, or the columns have its class names in another order.
    """
    known = release.classes
    number = len(known) if isinstance(known, tuple) else known
    if number is not None and p.width > number:
        texts = set(map(str, known)) if isinstance(known, tuple) else set(map(str, names))
        others = [repr(column) for column, name in zip(p.columns, names, strict=False) if str(name) not in texts]
        raise InputError(
            "probabilities",
            f"must be those of the {number} classes of the release",
            got=f"{p.width} columns, or entries of a list",
            remedy=f"Of no class: {', '.join(others)}" if others else "",
        )
    check_pair_order(p, names, release)
    if isinstance(known, tuple) and len(p.columns) == len(known) and is_numbering(list(map(str, names))):
        check_column_order("classes", known, p.columns)
    return names_for(release, names, p.width)


def check_pair_order(p: NumberColumns, names: Names, release: Release) -> None:
    """Reject one column of two classes that are named in another order than at the calibration.

    It would be the probability of the other class, which is usually a mistake.
    """
    known = release.classes
    if p.of_pair and isinstance(known, tuple) and list(map(str, names)) == list(map(str, reversed(known))):
        raise InputError(
            "classes",
            (
                f"must be {known[0]},{known[1]}, in the order of the calibration, for {p.title} to be the "
                f"probability of {known[1]!r}"
            ),
            remedy=f"If it is that of {known[0]!r}, write one minus it",
        )


def _predictor(
    table: Table, what: ColumnSpec, release: Release, by: str | Sequence[str] | None, suffix: str
) -> Predictor:
    if release.by == "group" and by is None:
        raise InputError("by", "must be given, the column of each record's group, each of which has a threshold")
    if release.by != "group" and by is not None:
        raise InputError("by", "must be left out: the release has no thresholds per group of records")
    group = None if by is None else group_of_release(table, by, release)
    if isinstance(what, TargetColumns):
        return _interval_predictor(table, what, release, group, suffix)
    if isinstance(what, LossColumns):
        if release.loss != FALSE_NEGATIVES:
            raise InputError("release", "must be of the false-negative rate, to make sets of labels")
        score = "lac"
    elif isinstance(what, ClassColumns):
        score = _score(release, "classification")
    else:
        raise InputError(
            "probabilities", "probabilities or predictions must be given: sets and intervals are made from them"
        )
    known = release.classes
    p, found = what.columns(table, len(known) if isinstance(known, tuple) else known)
    names = release_class_names(release, p, found)
    sums = (p.sum_requirement,) if isinstance(what, ClassColumns) else ()
    return SetPredictor(
        reads=(*p.reads, *([] if group is None else (one.read for one in group.each))),
        adds=(SET + suffix, SIZE + suffix),
        requirements=(*p.probability_requirements, *sums, *_required(group)),
        width=p.width,
        thresholds=_limits(release, names),
        group=group,
        probabilities=p,
        names=names,
        score=score,
        by_class=release.by == "class",
        sums=bool(sums),
    )


def _interval_predictor(
    table: Table, what: TargetColumns, release: Release, group: NamedColumn | GroupedColumns | None, suffix: str
) -> IntervalPredictor:
    low, high = map(release.alone, release.parts) if release.by == "side" else (release, release)
    scores = _score(low, "regression"), _score(high, "regression")
    kind = score_kind(scores[0])
    what.check_predictions(table, kind)
    wanted = [finite_requirement(name, kind.positive) for name in what.predictions]
    return IntervalPredictor(
        reads=(*map(ColumnRef, what.predictions), *([] if group is None else (one.read for one in group.each))),
        adds=(LOWER + suffix, UPPER + suffix),
        requirements=(*wanted, *_required(group)),
        width=len(wanted),
        thresholds=np.array([_limits(low), _limits(high)]),
        group=group,
        predictions=what.predictions,
        scores=scores,
    )


def _limits(release: Release, classes: Names = ()) -> NDArray[np.float64]:
    """The thresholds: one, one per group of the release, or one per class, shape (1,), (G,) or (K,)."""
    if release.by == "group":
        return np.array([part.threshold for part in release.parts.values()])
    return np.atleast_1d(release.limits(classes=classes))


def _required(group: NamedColumn | GroupedColumns | None) -> list[str]:
    return [] if group is None else [one.requirement for one in group.each]


def _score(release: Release, task: str) -> str:
    if release.by not in (None, "group", "class"):
        raise InputError(
            "release", f"has no thresholds of a {task} score", remedy=f"Its kind is {type(release).__name__}"
        )
    score = release.first.score
    if score is None:
        raise InputError(*UNNAMED)
    kind = score_kind(score)
    if kind.score is None:
        raise unregistered(score)
    if kind.task != task:
        raise InputError("release", f"was made for the score {score!r}, which is no {task} score")
    return score


def _set_columns(
    mask: NDArray[np.bool_], names: Names, without: NDArray[np.bool_] | None, *, as_text: bool
) -> list[Any]:
    """Lists of class names (as_text: JSON arrays) and their lengths, built from whole arrays, never row by row.

    Examples
    --------
    >>> columns = _set_columns(np.array([[True, True], [False, False]]), ("cat", "dog"), None, as_text=True)
    >>> columns[0].to_pylist(), columns[1].to_pylist()
    (['["cat", "dog"]', '[]'], [2, 0])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = np.count_nonzero(mask, axis=1)
    offsets = np.zeros(len(mask) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    shown = from_texts([json.dumps(name, ensure_ascii=False) for name in names]) if as_text else from_names(names)
    members = shown.take(from_numpy(np.flatnonzero(mask) % mask.shape[1]))
    nulls = None if without is None else from_numpy(without)
    lists = pa.ListArray.from_arrays(from_numpy(offsets), members, mask=nulls)
    if as_text:
        before, between, after, nothing = from_texts(["[", ", ", "]", ""])
        lists = pc.binary_join_element_wise(before, pc.binary_join(lists, between), after, nothing)
    return [lists, from_numpy(sizes.astype(np.int32), without)]
