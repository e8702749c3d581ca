"""What is read of each record: from an Arrow batch to the input of a score in numpy, or to the score as SQL.

Engines compute the Ibis expression with the same result in every bit, because everything is in double precision with at
most one rounding per operation. A record without a score has a reason: the position of the first requirement in the
list that it does not meet.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.core import critical_thresholds, false_negative_thresholds
from confide.errors import InputError
from confide.evaluation import LabelledRecords
from confide.scores import ScoreKind, interval_score, own_class_scores, score_kind
from confide.tables.arrow import ColumnRef, column_of, integers_of, number_column, to_numpy
from confide.tables.deferred import ibis
from confide.tables.expressions import exact, matches, number
from confide.tables.named_columns import NamedColumn
from confide.tables.number_columns import NumberColumns, Reason, Reasons, mark, no_reasons, number_error, other_sums
from confide.tables.row_errors import ColumnError

ELSEWHERE = "compute it where the model runs, keep it in a column, and count that with ScoreColumn"


@dataclass(frozen=True, kw_only=True)
class RecordReader(ABC):
    """The columns of each record, and its score."""

    score: str | None

    @property
    @abstractmethod
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns."""

    @property
    @abstractmethod
    def requirements(self) -> tuple[str, ...]:
        """The requirements on every record, in words; the first is about the score itself."""

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    def reason(self, requirement: str) -> int:
        """The reason of records that break a requirement: its position, from 1 on."""
        return self.requirements.index(requirement) + 1

    def in_range(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each score is a number in the score's range."""
        kind = self.kind
        # Python's numbers would be rounded to float32
        low = np.float64(kind.low)
        high = np.float64(kind.high)
        # All of them, as usual: three times faster
        if len(scores) and scores.min() >= low and scores.max() <= high:
            return np.ones(len(scores), np.bool_)
        inside: NDArray[np.bool_] = (scores >= low) & (scores <= high)
        return inside | (scores == np.inf) if kind.takes_infinity else inside

    @abstractmethod
    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """The input of a score, and the reasons of unusable records."""

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors; empty if the reasons have no further details."""
        return []

    def score_of(self, records: LabelledRecords) -> NDArray[Any]:
        """The scores, shape (n,), of records without reasons."""
        return records.outputs

    def evaluated(self, records: LabelledRecords) -> LabelledRecords:
        """What an evaluation compares with a release: outputs with the truth, or else the score."""
        return LabelledRecords(self.score_of(records)) if records.truth is None else records

    def scores(self, batch: Any) -> tuple[NDArray[Any], Reasons]:
        """The scores of a batch, NaN if there is none, and the reasons of those records."""
        records, reasons = self.read(batch)
        usable = reasons == 0
        if usable.all():
            scores = self.score_of(records)
        else:
            scores = np.full(len(reasons), np.nan)
            if usable.any():
                truth = None if records.truth is None else records.truth[usable]
                scores[usable] = self.score_of(LabelledRecords(records.outputs[usable], truth))
        return scores, mark(reasons, ~self.in_range(scores), Reason.NUMBER)

    @property
    def in_sql(self) -> bool:
        """Whether engines can compute the score."""
        return False

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The score and the records that break each requirement, as Ibis expressions."""
        raise self.not_in_sql()

    def not_in_sql(self) -> InputError:
        """The error about a score that engines cannot compute."""
        return InputError("score", f"{self.score!r} is not computed in SQL", remedy=ELSEWHERE)


@dataclass(frozen=True, kw_only=True)
class ScoreReader(RecordReader):
    """A column of ready-made scores."""

    column: str
    in_sql = True

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The column."""
        return (ColumnRef(self.column),)

    @property
    def requirements(self) -> tuple[str, ...]:
        """A number in the range of the score."""
        return (f"column {self.column!r} must hold a number {self.kind.range_text} (not missing, not NaN)",)

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """The scores."""
        scores = number_column(batch, self.column)
        return LabelledRecords(scores), mark(no_reasons(scores), ~self.in_range(scores), Reason.NUMBER)

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Scores that are missing or out of range."""
        scores = number_column(batch, self.column)
        return [number_error(Reason.NUMBER, self.requirements[0], scores, ~self.in_range(scores))]

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The column in double precision."""
        return exact(table[self.column]), {}


@dataclass(frozen=True, kw_only=True)
class ProbabilityReader(RecordReader):
    """Probabilities of classes or of labels, from which sets are made; those of exclusive classes sum to one."""

    probabilities: NumberColumns

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns of probabilities."""
        return self.probabilities.reads

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Probabilities, in lists of the right length, and their sum."""
        p = self.probabilities
        return (*p.probability_requirements, p.sum_requirement) if p.exclusive else p.probability_requirements

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """The probabilities, shape (n, K)."""
        p, reasons = self.probabilities.matrix(batch)
        if self.probabilities.exclusive:
            reasons = mark(reasons, other_sums(p), self.reason(self.probabilities.sum_requirement))
        return LabelledRecords(p), reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities."""
        return self.probabilities.column_errors(batch)


@dataclass(frozen=True, kw_only=True)
class ClassReader(ProbabilityReader):
    """A classification score of each record's own class; of a list, only its entry is read if the table can."""

    label: NamedColumn
    takes_entries: bool  # whether the table can read entries of lists

    @property
    def in_sql(self) -> bool:
        """Whether the score is one minus a probability."""
        return self.kind.of_one_entry and not self.probabilities.logits

    @property
    def by_entry(self) -> bool:
        """Whether only one entry of each list is read."""
        return self.takes_entries and self.in_sql and self.probabilities.from_list and self.label.positions

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns of probabilities and of the label."""
        if not self.by_entry:
            return (*self.probabilities.reads, self.label.read)
        (column,) = self.probabilities.columns
        return ColumnRef(column, "entry", self.label.read.column), ColumnRef(column, "length"), self.label.read

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Probabilities, in lists of the right length, a label, and the sum of probabilities."""
        p = self.probabilities
        return (*p.probability_requirements, self.label.requirement, p.sum_requirement)

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """Probabilities, shape (n, K), or the label's own, shape (n, 1); and the positions of the labels."""
        place = self.label.places(batch)
        if self.by_entry:
            p, reasons = self._entries(batch, place)
        else:
            p, reasons = self.probabilities.matrix(batch)
            reasons = mark(reasons, other_sums(p), self.reason(self.probabilities.sum_requirement))
        if (place < 0).any():
            reasons = mark(reasons, self.label.unusable(batch), self.reason(self.label.requirement))
        return LabelledRecords(p, place), reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities, and the label."""
        reason = self.reason(self.label.requirement)
        return [*super().column_errors(batch), self.label.column_error(batch, reason)]

    def score_of(self, records: LabelledRecords) -> NDArray[np.float64]:
        """Any classification score; +inf for labels that are no class. Randomised scores draw new numbers."""
        p = records.outputs
        place: NDArray[np.int64] = np.asarray(records.truth)
        if not self.in_sql:
            return own_class_scores(p, place, str(self.score))
        # One minus the label's own probability, the only column of a matrix, or +inf for a label that is no class
        own_column = p if self.by_entry else p[np.arange(len(p)), place][:, None]
        return own_class_scores(own_column, np.where(place < 0, -1, 0), "lac")

    def _entries(self, batch: Any, place: NDArray[np.int64]) -> tuple[NDArray[Any], Reasons]:
        (column,) = self.probabilities.columns
        p = to_numpy(column_of(batch, ColumnRef(column, "entry")))
        length = integers_of(column_of(batch, ColumnRef(column, "length")), -1)
        reasons = mark(no_reasons(p), length != self.probabilities.width, Reason.LENGTH)
        return p[:, None], mark(reasons, (place >= 0) & ~((p >= 0) & (p <= 1)), Reason.NUMBER)

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """1 - p of the label's own class, in double precision; +inf for labels that are no class."""
        place, missing = self.label.expressions(table)
        wrong = {self.reason(self.label.requirement): missing}
        if not self.probabilities.from_list:
            return self._score_of_columns(table), wrong
        lists = table[self.probabilities.columns[0]]
        wrong[Reason.LENGTH] = (lists.length() != self.probabilities.width).fill_null(True)
        return self._score_of_list(lists, place), wrong

    def _score_of_columns(self, table: Any) -> Any:
        """The score from one column per class: the label is compared with the name of each."""
        labels = matches(table[self.label.read.column], self.label.values)
        scores = [number(1.0) - p for p in self.probabilities.expressions(table)]
        return ibis.cases(*zip(labels, scores, strict=True), else_=number(np.inf))

    def _score_of_list(self, lists: Any, place: Any) -> Any:
        """The score from lists: engines may evaluate an index of any row, so it is 0 where there is no such entry."""
        width = self.probabilities.width
        usable = (place < width) & (lists.length() == width)
        entry = lists[usable.ifelse(place, 0).cast("int32")]
        p = usable.ifelse(entry, ibis.null(lists.type().value_type))
        return (place >= width).ifelse(number(np.inf), number(1.0) - exact(p))


@dataclass(frozen=True, kw_only=True)
class TargetReader(RecordReader):
    """A regression score: absolute residual, gamma, or CQR and its sides; or predictions alone."""

    predictions: tuple[str, ...]
    target: str | None  # None for predictions alone, which have no score

    @property
    def in_sql(self) -> bool:
        """Whether the score is a difference, or the larger of two."""
        return self.score in ("absolute_residual", "cqr", "cqr_low", "cqr_high")

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns of predictions and targets."""
        return tuple(map(ColumnRef, self._number_requirements))

    @cached_property
    def _number_requirements(self) -> dict[str, str]:
        """The requirement on each number by its column: it is finite, the first also positive for some scores."""
        names = self.predictions if self.target is None else (*self.predictions, self.target)
        must = dict.fromkeys(names, "a number")
        if self.kind.positive:
            must[names[0]] = "a positive number"
        return {
            name: f"column {name!r} must hold {kind} that is finite (not missing, not NaN)"
            for name, kind in must.items()
        }

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Finite numbers; with a target first a finite score."""
        of_numbers = tuple(self._number_requirements.values())
        if self.target is None:
            return of_numbers
        columns = ", ".join(map(repr, self._number_requirements))
        return (f"columns {columns} must hold numbers that are not too far apart to be subtracted", *of_numbers)

    def _unusable(self, name: str, column: NDArray[Any]) -> NDArray[np.bool_]:
        wrong: NDArray[np.bool_] = ~np.isfinite(column)
        return wrong | ~(column > 0) if self.kind.positive and name == self.predictions[0] else wrong

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """Predictions, shape (n,), or quantiles, shape (n, 2); and targets, if they are read."""
        reasons = no_reasons(batch)
        columns = {}
        for name, requirement in self._number_requirements.items():
            columns[name] = number_column(batch, name)
            reasons = mark(reasons, self._unusable(name, columns[name]), self.reason(requirement))
        outputs = [columns[name] for name in self.predictions]
        truth = None if self.target is None else columns[self.target]
        return LabelledRecords(outputs[0] if len(outputs) == 1 else np.column_stack(outputs), truth), reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, also if several numbers of a record are wrong."""
        errors = []
        for name, requirement in self._number_requirements.items():
            column = number_column(batch, name)
            errors.append(number_error(self.reason(requirement), requirement, column, self._unusable(name, column)))
        return errors

    def score_of(self, records: LabelledRecords) -> NDArray[np.float64]:
        """Any regression score that needs no difficulty."""
        with np.errstate(over="ignore"):
            return np.asarray(interval_score(records.outputs, np.asarray(records.truth), str(self.score)))

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The score in double precision, for the absolute residual and CQR."""
        columns = {name: exact(table[name]) for name in self._number_requirements}
        wrong = {}
        for name, requirement in self._number_requirements.items():
            finite = (columns[name] > number(-np.inf)) & (columns[name] < number(np.inf))
            wrong[self.reason(requirement)] = ~finite.fill_null(False)
        *predictions, y = columns.values()
        if self.score == "absolute_residual":
            return (y - predictions[0]).abs(), wrong
        # The distances below the lower quantile, and above the upper one
        below = predictions[0] - y
        above = y - predictions[-1]
        if self.score == "cqr":
            return (below >= above).ifelse(below, above), wrong
        return (below if self.score == "cqr_low" else above), wrong


@dataclass(frozen=True, kw_only=True)
class LossReader(RecordReader):
    """The critical threshold of a monotone bounded loss, by a fresh uniform number per record (theory.md, R1)."""

    losses: NumberColumns
    candidates: Candidates
    bound: float

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns of losses."""
        return self.losses.reads

    @property
    def requirements(self) -> tuple[str, ...]:
        """Monotone losses, in lists of the right length."""
        return (
            f"{self.losses.title} must hold losses in [0, {self.bound:g}] that do not increase with the threshold",
            f"{self.losses.title} must hold a list of {self.losses.width} losses, one for each finite candidate",
        )

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """The losses, shape (n, m - 1)."""
        losses, reasons = self.losses.matrix(batch, self.bound)
        return LabelledRecords(losses), mark(reasons, np.any(np.diff(losses, axis=1) > 0, axis=1), Reason.NUMBER)

    def score_of(self, records: LabelledRecords) -> NDArray[np.float64]:
        """The first candidate at which the loss is at most bound * u."""
        return critical_thresholds(records.outputs, self.candidates, bound=self.bound)


@dataclass(frozen=True, kw_only=True)
class FalseNegativeReader(ProbabilityReader):
    """The critical threshold of the false-negative rate of sets of labels; draws new uniform random numbers."""

    truth: NumberColumns

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns of probabilities and of true labels."""
        return (*self.probabilities.reads, *self.truth.reads)

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Probabilities, in lists of the right length, and true labels."""
        of_truth = f"{self.truth.title} must hold 1 for each label that is true and 0 for others"
        return (*self.probabilities.probability_requirements, of_truth)

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """Probabilities and true labels, shape (n, K) each."""
        records, reasons = super().read(batch)
        truth, _ = self.truth.matrix(batch)
        unknown = ~((truth == 0) | (truth == 1)).all(axis=1)
        return LabelledRecords(records.outputs, truth), mark(reasons, unknown, self.reason(self.requirements[-1]))

    def score_of(self, records: LabelledRecords) -> NDArray[np.float64]:
        """The score 1 - p of one true label, chosen at random."""
        return false_negative_thresholds(records.outputs, np.asarray(records.truth) == 1)

    def evaluated(self, records: LabelledRecords) -> LabelledRecords:
        """The score: sets of labels are compared by what they lose."""
        return LabelledRecords(self.score_of(records))
