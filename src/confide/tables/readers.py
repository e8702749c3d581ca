"""What is read of each record: from an Arrow batch to the input of a score in numpy, or to the score as SQL.

Engines compute the Ibis expression with the same result in every bit, because everything is in double precision with at
most one rounding per operation. A record without a score has a reason: the position of the first requirement in the
list that it does not meet.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.core import critical_thresholds, false_negative_thresholds
from confide.scores import ScoreKind, interval_score, own_class_scores, score_kind
from confide.tables.arrow import ColumnRef, column_of, integers_of, number_column, to_numpy
from confide.tables.column_types import (
    AnyGroups,
    GroupedColumns,
    NamedColumn,
    NumberColumns,
    Reason,
    Reasons,
    WeightColumn,
    mark,
    number_error,
    other_sums,
)
from confide.tables.expressions import exact, matches, number
from confide.tables.failures import ColumnError, RowErrors
from confide.tables.table import PERSON_ERROR_COLUMN, ContributionBound, Progress, Table


@dataclass(frozen=True, kw_only=True)
class RecordReader(ABC):
    """The columns of each record, and its score."""

    score: str | None
    reads: tuple[ColumnRef, ...]
    requirements: tuple[str, ...]  # on every record, in words; the first is about the score itself
    width: int  # about as many numbers are read of each record
    in_sql: bool = False  # whether engines can compute the score

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    def reason(self, requirement: str) -> int:
        """The reason of records that break a requirement: its position, from 1 on."""
        return self.requirements.index(requirement) + 1

    def in_range(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each score is a number in the score's range."""
        low, high = np.float64(self.kind.low), np.float64(self.kind.high)  # Python's would be rounded to float32
        if len(scores) and scores.min() >= low and scores.max() <= high:  # as usual, and three times faster
            return np.ones(len(scores), np.bool_)
        inside: NDArray[np.bool_] = (scores >= low) & (scores <= high)
        return inside | (scores == np.inf) if self.kind.takes_infinity else inside

    @abstractmethod
    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The input of a score, in arrays of n records, and the reasons of unusable records."""

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors; empty if the reasons have no further details."""
        return []

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[Any]:
        """The scores, shape (n,), of arrays without reasons."""
        return arrays[0]

    def evaluated(self, arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """What an evaluation compares with a release: the score, unless sets or intervals are made from the arrays."""
        return [self.score_of(arrays)]

    def scores(self, batch: Any) -> tuple[NDArray[Any], Reasons]:
        """The scores of a batch, NaN if there is none, and the reasons of those records."""
        arrays, reasons = self.read(batch)
        if reasons is None:
            scores = self.score_of(arrays)
        else:
            usable, scores = reasons == 0, np.full(len(reasons), np.nan)
            if usable.any():
                scores[usable] = self.score_of([array[usable] for array in arrays])
        return scores, mark(reasons, ~self.in_range(scores), Reason.NUMBER)

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The score and the records that break each requirement, as Ibis expressions; only if `in_sql`."""
        raise NotImplementedError


class ScoreReader(RecordReader):
    """A column of ready-made scores."""

    @classmethod
    def of(cls, column: str, score: str | None) -> "ScoreReader":
        """The reader of a column."""
        requirement = f"column {column!r} must hold a number {score_kind(score).range_text} (not missing, not NaN)"
        return cls(score=score, reads=(ColumnRef(column),), requirements=(requirement,), width=1, in_sql=True)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The column."""
        scores = number_column(batch, self.reads[0].column)
        return [scores], mark(None, ~self.in_range(scores), Reason.NUMBER)

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Scores that are missing or out of range."""
        scores = number_column(batch, self.reads[0].column)
        return [number_error(Reason.NUMBER, self.requirements[0], scores, ~self.in_range(scores))]

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The column in double precision."""
        return exact(table[self.reads[0].column]), {}


@dataclass(frozen=True, kw_only=True)
class ProbabilityReader(RecordReader):
    """Probabilities of classes or of labels, from which sets are made."""

    probabilities: NumberColumns

    @classmethod
    def of_sets(cls, probabilities: NumberColumns, score: str) -> "ProbabilityReader":
        """The reader of probabilities alone; those of classes that exclude each other sum to one."""
        sums = (probabilities.sum_requirement,) if probabilities.exclusive else ()
        requirements = (*probabilities.probability_requirements, *sums)
        width, reads = probabilities.width, probabilities.reads
        return cls(score=score, reads=reads, requirements=requirements, width=width, probabilities=probabilities)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The probabilities, shape (n, K)."""
        p, reasons = self.probabilities.matrix(batch)
        if self.probabilities.exclusive:
            reasons = mark(reasons, other_sums(p), self.reason(self.probabilities.sum_requirement))
        return [p], reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities."""
        return self.probabilities.column_errors(batch)


@dataclass(frozen=True, kw_only=True)
class ClassReader(ProbabilityReader):
    """A classification score of each record's own class; of a list, only its entry is read if the table can."""

    label: NamedColumn
    by_entry: bool = False

    @classmethod
    def of(cls, p: NumberColumns, label: NamedColumn, score: str, *, entries: bool) -> "ClassReader":
        """The reader of probabilities and labels; `entries`: the table can read entries of lists."""
        in_sql = score_kind(score).of_one_entry and not p.logits  # one minus a probability
        by_entry = entries and in_sql and p.from_list and label.positions
        entry = ColumnRef(p.columns[0], "entry", label.read.column), ColumnRef(p.columns[0], "length")
        return cls(
            score=score,
            reads=(*(entry if by_entry else p.reads), label.read),
            requirements=(*p.probability_requirements, label.requirement, p.sum_requirement),
            width=1 if by_entry else p.width,
            in_sql=in_sql,
            probabilities=p,
            label=label,
            by_entry=by_entry,
        )

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """Probabilities, shape (n, K), or the label's own, shape (n, 1); and the positions of the labels."""
        place = self.label.places(batch)
        if self.by_entry:
            p, reasons = self._entries(batch, place)
        else:
            p, reasons = self.probabilities.matrix(batch, order="F" if self.in_sql else "C")
            reasons = mark(reasons, other_sums(p), self.reason(self.probabilities.sum_requirement))
        if (place < 0).any():
            reasons = mark(reasons, self.label.unusable(batch), self.reason(self.label.requirement))
        return [p, place], reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities, and the label."""
        reason = self.reason(self.label.requirement)
        return [*super().column_errors(batch), self.label.column_error(batch, reason)]

    def evaluated(self, arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Probabilities and labels."""
        return arrays

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Any classification score; +inf for labels that are no class. Randomised scores draw new numbers."""
        p, place = arrays
        if self.in_sql:
            of_label = p if self.by_entry else p[np.arange(len(p)), place][:, None]
            return own_class_scores(of_label, np.minimum(place, 0), "lac")
        return own_class_scores(p, place, str(self.score))

    def _entries(self, batch: Any, place: NDArray[np.int64]) -> tuple[NDArray[Any], Reasons]:
        (column,) = self.probabilities.columns
        p = to_numpy(column_of(batch, ColumnRef(column, "entry")))
        length = integers_of(column_of(batch, ColumnRef(column, "length")), -1)
        reasons = mark(None, length != self.probabilities.width, Reason.LENGTH)
        return p[:, None], mark(reasons, (place >= 0) & ~((p >= 0) & (p <= 1)), Reason.NUMBER)

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """1 - p of the label's own class, in double precision; +inf for labels that are no class."""
        import ibis

        place, missing = self.label.expressions(table)
        unlabelled = {self.reason(self.label.requirement): missing}
        columns, width = self.probabilities.columns, self.probabilities.width
        # One column per class: compare the label with each name
        if not self.probabilities.from_list:
            labels = matches(table[self.label.read.column], self.label.values)
            scores = [number(1.0) - p for p in self.probabilities.expressions(table)]
            return ibis.cases(*zip(labels, scores, strict=True), else_=number(np.inf)), unlabelled
        # Lists: engines may evaluate an index of any row, so it is 0 where there is no such entry
        lists = table[columns[0]]
        usable = (place < width) & (lists.length() == width)
        p = usable.ifelse(lists[usable.ifelse(place, 0).cast("int32")], ibis.null(lists.type().value_type))
        score = (place >= width).ifelse(number(np.inf), number(1.0) - exact(p))
        return score, {Reason.LENGTH: (lists.length() != width).fill_null(True), **unlabelled}


@dataclass(frozen=True, kw_only=True)
class TargetReader(RecordReader):
    """A regression score: absolute residual, gamma, or CQR and its sides; or predictions alone."""

    names: tuple[str, ...]  # of the predictions, and of the target if it is read
    positive: bool
    scored: bool

    @classmethod
    def of(cls, predictions: tuple[str, ...], target: str | None, score: str) -> "TargetReader":
        """The reader of predictions and targets; without a target of predictions alone, which have no score."""
        scored, positive = target is not None, score_kind(score).positive
        names = predictions if target is None else (*predictions, target)
        apart = f"columns {', '.join(map(repr, names))} must hold numbers that are not too far apart to be subtracted"
        kinds = ["a positive number" if positive else "a number", *["a number"] * (len(names) - 1)]
        finite = [
            f"column {name!r} must hold {kind} that is finite (not missing, not NaN)"
            for name, kind in zip(names, kinds, strict=True)
        ]
        return cls(
            score=score,
            reads=tuple(map(ColumnRef, names)),
            requirements=tuple([apart, *finite] if scored else finite),
            width=len(names),
            in_sql=score in ("absolute_residual", "cqr", "cqr_low", "cqr_high"),
            names=names,
            positive=positive,
            scored=scored,
        )

    @property
    def _reasons(self) -> dict[str, int]:
        """The reason of records without a usable number, by column; after the one about their difference."""
        return {name: reason for reason, name in enumerate(self.names, start=2 if self.scored else 1)}

    def _unusable(self, name: str, column: NDArray[Any]) -> NDArray[np.bool_]:
        wrong: NDArray[np.bool_] = ~np.isfinite(column)
        return wrong | ~(column > 0) if self.positive and name == self.names[0] else wrong

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """Predictions, shape (n,), or quantiles, shape (n, 2); and targets, if they are read."""
        numbers, reasons = [], None
        for name, reason in self._reasons.items():
            numbers.append(number_column(batch, name))
            reasons = mark(reasons, self._unusable(name, numbers[-1]), reason)
        y = [numbers.pop()] if self.scored else []
        return [numbers[0] if len(numbers) == 1 else np.column_stack(numbers), *y], reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, also if several numbers of a record are wrong."""
        columns = {name: number_column(batch, name) for name in self.names}
        return [
            number_error(reason, self.requirements[reason - 1], columns[name], self._unusable(name, columns[name]))
            for name, reason in self._reasons.items()
        ]

    def evaluated(self, arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Predictions and targets."""
        return arrays

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Any regression score that needs no difficulty."""
        with np.errstate(over="ignore"):
            return np.asarray(interval_score(arrays[0], arrays[1], str(self.score)))

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The score in double precision, for the absolute residual and CQR."""
        *f, y = (exact(table[name]) for name in self.names)
        finite = [(column > number(-np.inf)) & (column < number(np.inf)) for column in (*f, y)]
        wrong = {
            reason: ~is_finite.fill_null(False)
            for reason, is_finite in zip(self._reasons.values(), finite, strict=True)
        }
        if self.score == "absolute_residual":
            return (y - f[0]).abs(), wrong
        below, above = f[0] - y, y - f[-1]
        if self.score == "cqr":
            return (below >= above).ifelse(below, above), wrong
        return (below if self.score == "cqr_low" else above), wrong


@dataclass(frozen=True, kw_only=True)
class LossReader(RecordReader):
    """The critical threshold of a monotone bounded loss, by a fresh uniform number per record (theory.md, R1)."""

    losses: NumberColumns
    candidates: Candidates
    bound: float

    @classmethod
    def of(cls, losses: NumberColumns, candidates: Candidates, score: str, bound: float) -> "LossReader":
        """The reader of losses."""
        requirements = (
            f"{losses.title} must hold losses in [0, {bound:g}] that do not increase with the threshold",
            f"{losses.title} must hold a list of {losses.width} losses, one for each finite candidate",
        )
        return cls(
            score=score,
            reads=losses.reads,
            requirements=requirements,
            width=losses.width,
            losses=losses,
            candidates=candidates,
            bound=bound,
        )

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The losses, shape (n, m - 1)."""
        losses, reasons = self.losses.matrix(batch, self.bound)
        return [losses], mark(reasons, np.any(np.diff(losses, axis=1) > 0, axis=1), Reason.NUMBER)

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """The first candidate at which the loss is at most bound * u."""
        return critical_thresholds(arrays[0], self.candidates, bound=self.bound)


@dataclass(frozen=True, kw_only=True)
class FalseNegativeReader(ProbabilityReader):
    """The critical threshold of the false-negative rate of sets of labels; draws new uniform random numbers."""

    truth: NumberColumns

    @classmethod
    def of(cls, p: NumberColumns, truth: NumberColumns, score: str) -> "FalseNegativeReader":
        """The reader of probabilities and true labels."""
        requirement = f"{truth.title} must hold 1 for each label that is true and 0 for others"
        return cls(
            score=score,
            reads=(*p.reads, *truth.reads),
            requirements=(*p.probability_requirements, requirement),
            width=2 * p.width,
            probabilities=p,
            truth=truth,
        )

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """Probabilities and true labels, shape (n, K) each."""
        arrays, reasons = super().read(batch)
        truth, _ = self.truth.matrix(batch)
        unknown = ~((truth == 0) | (truth == 1)).all(axis=1)
        return [*arrays, truth], mark(reasons, unknown, self.reason(self.requirements[-1]))

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """The score 1 - p of one true label, chosen at random."""
        return false_negative_thresholds(arrays[0], arrays[1] == 1)


# Numbers in a batch, unless its rows would be fewer or more than these.
_NUMBERS = 2**18
_LEAST_ROWS = 2**11
_MOST_ROWS = 2**17


def rows_per_batch(width: int) -> int:
    """Rows of a batch, so that it has a quarter of a million numbers, or 2048 rows."""
    return min(_MOST_ROWS, max(_LEAST_ROWS, _NUMBERS // max(width, 1)))


class BatchReader(Protocol):
    """A function of every batch: arrays for scores, or predictions."""

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns."""

    @property
    def width(self) -> int:
        """The approximate count of numbers that are read of each record."""

    @property
    def requirements(self) -> Sequence[str]:
        """The requirements on every record, in words."""

    def read(self, batch: Any) -> tuple[Any, Reasons]:
        """The result for a batch, and the reasons of its unusable records."""

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""


def checked_batches(
    table: Table,
    reader: BatchReader,
    progress: Progress,
    *,
    keep: Sequence[ColumnRef] = (),
    shows_types: bool = False,
) -> Generator[tuple[Any, Any]]:
    """Read a table batch by batch, and yield each batch with the result of its reader, and with the columns of `keep`.

    At the end `InputError` reports the records that cannot be used. After the first of them no batch is yielded. With
    `shows_types` a table without rows gives one batch without rows.
    """
    errors, start, empty = RowErrors(), 0, None
    reads = tuple(dict.fromkeys([*keep, *reader.reads]))
    with closing(table.batches(reads, rows_per_batch(reader.width + len(keep)))) as batches:
        for batch in batches:
            if not batch.num_rows:
                empty = batch
                continue
            # Read on after an error, so that all unusable records are counted
            values, reasons = reader.read(batch)
            if reasons is not None:
                errors.note(reasons, start if table.ordered else None, reader.column_errors(batch))
            start += batch.num_rows
            progress(batch.num_rows)
            if not errors:
                yield batch, values
    if errors:
        errors.refuse(reader.requirements, table.rows, skips=table.lacks_values(reader.reads))
    if shows_types and not start:
        yield empty, reader.read(empty)[0]


@dataclass(frozen=True)
class RecordColumns:
    """The columns of a record: those of its score, its group, its weight and its person.

    A reason is the number of a requirement: first come those of the reader, then the group's, the weight's and the
    person's two.
    """

    reader: RecordReader
    group: NamedColumn | GroupedColumns | AnyGroups | None = None
    weight: WeightColumn | None = None
    people: ContributionBound | None = None
    other_groups: bool = False  # whether records of groups outside the public list are accepted; then without a weight

    def counting(self, table: Table, *, skip_incomplete: bool) -> Table:
        """The rows that count: complete ones if others are left out, and a bounded number of each person."""
        if skip_incomplete:
            persons = () if self.people is None else (self.people.person, *self.people.order)
            table = table.drop_missing([*self._columns, *(ColumnRef(column, "value") for column in persons)])
        return table if self.people is None else table.bound_contributions(self.people)

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns, each once; with people also the column of errors about persons."""
        people = [] if self.people is None else [ColumnRef(PERSON_ERROR_COLUMN)]
        return tuple(dict.fromkeys([*self._columns, *people]))

    @property
    def width(self) -> int:
        """The approximate count of numbers that are read of each record."""
        return self.reader.width

    @property
    def requirements(self) -> list[str]:
        """The requirements on every record, in words."""
        persons = () if self.people is None else self.people.requirements
        return [*self.reader.requirements, *(column.requirement for column in self.required.values()), *persons]

    @property
    def required(self) -> dict[int, NamedColumn | AnyGroups | WeightColumn]:
        """The columns beside the score that every record must have a value in, by the reason of those without one."""
        columns = () if self.other_groups else self._groups_and_weight
        return dict(enumerate(columns, start=len(self.reader.requirements) + 1))

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The input of a score, in arrays of n records, and the reasons of unusable records."""
        arrays, reasons = self.reader.read(batch)
        unusable = [column.unusable(batch) for column in self.required.values()]
        return arrays, self.with_column_reasons(batch, reasons, unusable)

    def with_column_reasons(self, batch: Any, reasons: Reasons, unusable: Iterable[NDArray[np.bool_]]) -> Reasons:
        """The reasons, with those of the required columns, whose `unusable` records are given, and of people."""
        flags = [] if self.people is None else [number_column(batch, PERSON_ERROR_COLUMN) == flag for flag in (1, 2)]
        for reason, wrong in enumerate([*unusable, *flags], start=len(self.reader.requirements) + 1):
            reasons = mark(reasons, wrong, reason)
        return reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""
        others = [column.column_error(batch, reason) for reason, column in self.required.items()]
        return [*self.reader.column_errors(batch), *others]

    @property
    def _columns(self) -> list[ColumnRef]:
        return [*self.reader.reads, *(column.read for column in self._groups_and_weight)]

    @property
    def _groups_and_weight(self) -> tuple[NamedColumn | AnyGroups | WeightColumn, ...]:
        groups = () if self.group is None else self.group.each
        return groups if self.weight is None else (*groups, self.weight)
