"""From the columns of a record to its prediction set or interval, and the predictions of a table in batches."""

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.core import UNNAMED, Release, names_for
from confide.errors import InputError
from confide.scores import interval_ends, score_kind, set_mask, unregistered
from confide.support import check_column_order, is_numbering, require
from confide.tables.arrow import ColumnRef, from_names, from_numpy, from_texts
from confide.tables.deferred import pa, pc
from confide.tables.named_columns import GroupedColumns, NamedColumn, Names
from confide.tables.number_columns import NumberColumns, Reasons
from confide.tables.readers import ProbabilityReader, TargetReader
from confide.tables.record_columns import RecordColumns, checked_batches
from confide.tables.row_errors import ColumnError
from confide.tables.table import Progress, Table

AnyGroup: TypeAlias = NamedColumn | GroupedColumns | None

# The names of added columns; those of a level end in its number.
SET = "prediction_set"
SIZE = "set_size"
LOWER = "lower"
UPPER = "upper"


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictor(RecordColumns):
    """The columns of a record, and those that are added to it."""

    adds: tuple[str, str]
    # One for all, shape (1,); per class, shape (K,); or per group, shape (G,). For both ends of intervals, (2, ...).
    thresholds: NDArray[np.float64]

    def predict(self, batch: Any, *, as_text: bool) -> tuple[list[Any], Reasons]:
        """The added columns, unless a record of the batch is unusable; `as_text` writes lists as JSON."""
        records, reasons = self.read(batch)
        return [] if reasons.any() else self.predicted(batch, records.outputs, as_text=as_text), reasons

    def predicted(self, batch: Any, outputs: NDArray[Any], *, as_text: bool) -> list[Any]:
        """The added columns of a batch, from the outputs of the model."""
        raise NotImplementedError

    def thresholds_of(self, batch: Any) -> NDArray[np.float64]:
        """The threshold of each record by its group; if groups overlap, the largest of the record's groups."""
        assert isinstance(self.group, NamedColumn | GroupedColumns)
        place = self.group.places(batch)
        thresholds = self.thresholds[..., place]
        return thresholds if place.ndim == 1 else thresholds.max(axis=-1)


@dataclass(frozen=True, eq=False, kw_only=True)
class SetPredictor(Predictor):
    """Sets of classes or labels; randomised scores draw new numbers."""

    reader: ProbabilityReader
    names: Names  # in the order of the probabilities
    score: str
    by_class: bool  # whether each class has its own threshold

    def predicted(self, batch: Any, outputs: NDArray[Any], *, as_text: bool) -> list[Any]:
        """Lists of class names, and their lengths."""
        limits: Any = self.thresholds if self.by_class else float(self.thresholds[0])
        limits = limits if self.group is None else self.thresholds_of(batch)
        mask = set_mask(outputs, self.score, limits, per_class=self.by_class)
        return _set_columns(mask, self.names, as_text=as_text)


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalPredictor(Predictor):
    """Intervals around predictions, or around predicted quantiles."""

    scores: tuple[str, str]  # of the lower and the upper end

    def predicted(self, batch: Any, outputs: NDArray[Any], *, as_text: bool) -> list[Any]:
        """Both ends, rounded outwards."""
        low, high = self.thresholds[:, 0].tolist() if self.group is None else self.thresholds_of(batch)
        score_of_lower, score_of_upper = self.scores
        lower, _ = interval_ends(outputs, score_of_lower, low)
        _, upper = interval_ends(outputs, score_of_upper, high)
        return [from_numpy(lower), from_numpy(upper)]


def set_predictor(
    p: NumberColumns, names: Names, score: str, release: Release, group: AnyGroup, suffix: str
) -> SetPredictor:
    """The predictor of sets from columns of probabilities, whose names are `names`."""
    names = release_class_names(release, p, names)
    return SetPredictor(
        reader=ProbabilityReader(score=score, probabilities=p),
        group=group,
        adds=(SET + suffix, SIZE + suffix),
        thresholds=_limits(release, names),
        names=names,
        score=score,
        by_class=release.by == "class",
    )


def interval_predictor(
    predictions: tuple[str, ...], scores: tuple[str, str], release: Release, group: AnyGroup, suffix: str
) -> IntervalPredictor:
    """The predictor of intervals from columns of predictions."""
    return IntervalPredictor(
        reader=TargetReader(score=scores[0], predictions=predictions, target=None),
        group=group,
        adds=(LOWER + suffix, UPPER + suffix),
        thresholds=np.array([_limits(side) for side in sides_of(release)]),
        scores=scores,
    )


def sides_of(release: Release) -> tuple[Release, Release]:
    """The releases of the lower and of the upper end of an interval."""
    low, high = map(release.alone, release.parts) if release.by == "side" else (release, release)
    return low, high


def number_of_classes(release: Release) -> int | None:
    """The number of classes of a release, if it states them."""
    return len(release.classes) if isinstance(release.classes, tuple) else release.classes


def release_class_names(release: Release, p: NumberColumns, names: Names) -> Any:
    """The column names for a release (`names_for`); columns named one by one must be in the order of the release."""
    known = release.classes
    number = number_of_classes(release)
    # More columns than classes: name those that are of no class
    if number is not None and p.width > number:
        classes = set(map(str, known)) if isinstance(known, tuple) else set(map(str, names))
        unknown = [repr(column) for column, name in zip(p.columns, names, strict=False) if str(name) not in classes]
        must = f"must be those of the {number} classes of the release"
        remedy = f"None of these is a class: {', '.join(unknown)}" if unknown else ""
        raise InputError("probabilities", must, got=f"{p.width} columns, or entries of a list", remedy=remedy)
    # Names of columns, or of the pair, state an order
    _check_pair_order(p, names, release)
    if isinstance(known, tuple) and len(p.columns) == len(known) and is_numbering(list(map(str, names))):
        check_column_order("classes", known, p.columns)
    return names_for(release, names, p.width)


def _check_pair_order(p: NumberColumns, names: Names, release: Release) -> None:
    """Reject one column of two classes that are named in another order: it would be that of the other class."""
    known = release.classes
    if p.of_pair and isinstance(known, tuple) and list(map(str, names)) == list(map(str, reversed(known))):
        raise InputError(
            "classes",
            f"must be {known[0]},{known[1]}, in the order of the calibration, for {p.title} to be the "
            f"probability of {known[1]!r}",
            remedy=f"If it is that of {known[0]!r}, write one minus it",
        )


def _limits(release: Release, classes: Names = ()) -> NDArray[np.float64]:
    """The thresholds: one, one per group of the release, or one per class, shape (1,), (G,) or (K,)."""
    if release.by == "group":
        return np.array([group.threshold for group in release.parts.values()])
    return np.atleast_1d(release.limits(classes=classes))


def score_of_release(release: Release, task: str) -> str:
    """The score of a release; raises `InputError` if its thresholds are not those of a score for this task."""
    must = f"has no thresholds of a {task} score"
    require("release", release.by in (None, "group", "class"), must, remedy=f"Its kind is {type(release).__name__}")
    score = release.first.score
    if score is None:
        raise InputError(*UNNAMED)
    kind = score_kind(score)
    if kind.score is None:
        raise unregistered(score)
    require("release", kind.task == task, f"was made for the score {score!r}, which is no {task} score")
    return score


def _set_columns(mask: NDArray[np.bool_], names: Names, *, as_text: bool) -> list[Any]:
    """Lists of class names (as_text: JSON arrays) and their lengths, built from whole arrays, never row by row."""
    # The members of all sets, one after the other, and where each set ends
    sizes = np.count_nonzero(mask, axis=1).astype(np.int32)
    offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
    shown = from_texts([json.dumps(name, ensure_ascii=False) for name in names]) if as_text else from_names(names)
    members = shown.take(from_numpy(np.flatnonzero(mask) % mask.shape[1]))
    lists = pa.ListArray.from_arrays(from_numpy(offsets), members)
    if as_text:
        before, between, after, nothing = from_texts(["[", ", ", "]", ""])
        lists = pc.binary_join_element_wise(before, pc.binary_join(lists, between), after, nothing)
    return [lists, from_numpy(sizes)]


@dataclass(frozen=True, eq=False)
class Predictions:
    """The columns that are kept of a record, and its predictions; each predictor finds the same errors in a record."""

    keep: tuple[str, ...]
    predictors: tuple[Predictor, ...]
    as_text: bool = False  # whether columns are texts that fit into CSV cells

    def batches(self, table: Table, progress: Progress) -> Generator[Any]:
        """Record batches of all columns.

        A table without rows gives one batch without rows. At the end `InputError` reports rows without a prediction.
        """
        for name in self.keep if self.as_text else ():
            table.check_cell(name)
        checked = checked_batches(table, self, progress, keep=self.kept, shows_types=True)
        with closing(checked) as batches:
            for batch, added in batches:
                columns = [batch.column(read.alias) for read in self.kept]
                yield pa.RecordBatch.from_arrays([*columns, *added], names=self.names)

    @property
    def names(self) -> list[str]:
        """The names of the columns that are kept and of those that are added."""
        return [*self.keep, *(name for predictor in self.predictors for name in predictor.adds)]

    @property
    def kept(self) -> tuple[ColumnRef, ...]:
        """The columns that are kept, as they are read."""
        return tuple(ColumnRef(name, "text" if self.as_text else "value") for name in self.keep)

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns of the predictors."""
        return tuple(dict.fromkeys(read for predictor in self.predictors for read in predictor.reads))

    @property
    def requirements(self) -> list[str]:
        """The requirements on every record, in words."""
        return self.predictors[0].requirements

    def read(self, batch: Any) -> tuple[list[Any], Reasons]:
        """The added columns, and the reasons of unusable records."""
        predictions = [predictor.predict(batch, as_text=self.as_text) for predictor in self.predictors]
        return [column for columns, _ in predictions for column in columns], predictions[0][1]

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""
        return self.predictors[0].column_errors(batch)
