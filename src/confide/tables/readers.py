"""What is read of each record: from an Arrow batch to the input of a score in numpy, or to the score as SQL.

Engines compute the Ibis expression with the same result in every bit, because everything is in double precision with at
most one rounding per operation. A record without a score has a reason: the position of the first requirement in the
list that it does not meet.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.core import critical_thresholds, false_negative_thresholds
from confide.scores import ScoreKind, interval_score, own_class_scores, score_kind
from confide.tables.arrow import ColumnRef, column_of, integers_of, number_column, to_numpy
from confide.tables.column_types import NamedColumn, NumberColumns, Reason, Reasons, mark, number_error, other_sums
from confide.tables.expressions import exact, matches, number
from confide.tables.failures import ColumnError


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
        # Python's numbers would be rounded to float32
        low, high = np.float64(self.kind.low), np.float64(self.kind.high)
        # All of them, as usual: three times faster
        if len(scores) and scores.min() >= low and scores.max() <= high:
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
            usable = reasons == 0
            scores = np.full(len(reasons), np.nan)
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
    def of_sets(cls, p: NumberColumns, score: str) -> "ProbabilityReader":
        """The reader of probabilities alone; those of classes that exclude each other sum to one."""
        sums = (p.sum_requirement,) if p.exclusive else ()
        requirements = (*p.probability_requirements, *sums)
        return cls(score=score, reads=p.reads, requirements=requirements, width=p.width, probabilities=p)

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
        reads = p.reads
        if by_entry:
            reads = (ColumnRef(p.columns[0], "entry", label.read.column), ColumnRef(p.columns[0], "length"))
        return cls(
            score=score,
            reads=(*reads, label.read),
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
        if not self.in_sql:
            return own_class_scores(p, place, str(self.score))
        # One minus the label's own probability, which is the only column of `of_label`; a label that is no class has -1
        of_label = p if self.by_entry else p[np.arange(len(p)), place][:, None]
        return own_class_scores(of_label, np.minimum(place, 0), "lac")

    def _entries(self, batch: Any, place: NDArray[np.int64]) -> tuple[NDArray[Any], Reasons]:
        (column,) = self.probabilities.columns
        p = to_numpy(column_of(batch, ColumnRef(column, "entry")))
        length = integers_of(column_of(batch, ColumnRef(column, "length")), -1)
        reasons = mark(None, length != self.probabilities.width, Reason.LENGTH)
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
        import ibis

        labels = matches(table[self.label.read.column], self.label.values)
        scores = [number(1.0) - p for p in self.probabilities.expressions(table)]
        return ibis.cases(*zip(labels, scores, strict=True), else_=number(np.inf))

    def _score_of_list(self, lists: Any, place: Any) -> Any:
        """The score from lists: engines may evaluate an index of any row, so it is 0 where there is no such entry."""
        import ibis

        width = self.probabilities.width
        usable = (place < width) & (lists.length() == width)
        entry = lists[usable.ifelse(place, 0).cast("int32")]
        p = usable.ifelse(entry, ibis.null(lists.type().value_type))
        return (place >= width).ifelse(number(np.inf), number(1.0) - exact(p))


@dataclass(frozen=True, kw_only=True)
class TargetReader(RecordReader):
    """A regression score: absolute residual, gamma, or CQR and its sides; or predictions alone."""

    names: tuple[str, ...]  # of the predictions, and of the target if it is read
    positive: bool
    scored: bool

    @classmethod
    def of(cls, predictions: tuple[str, ...], target: str | None, score: str) -> "TargetReader":
        """The reader of predictions and targets; without a target of predictions alone, which have no score."""
        names = predictions if target is None else (*predictions, target)
        # Each number must be finite, the first also positive for some scores; with a target the score must be finite
        positive = score_kind(score).positive
        kinds = ["a positive number" if positive else "a number", *["a number"] * (len(names) - 1)]
        requirements = [
            f"column {name!r} must hold {kind} that is finite (not missing, not NaN)"
            for name, kind in zip(names, kinds, strict=True)
        ]
        if target is not None:
            columns = ", ".join(map(repr, names))
            requirements.insert(0, f"columns {columns} must hold numbers that are not too far apart to be subtracted")
        return cls(
            score=score,
            reads=tuple(map(ColumnRef, names)),
            requirements=tuple(requirements),
            width=len(names),
            in_sql=score in ("absolute_residual", "cqr", "cqr_low", "cqr_high"),
            names=names,
            positive=positive,
            scored=target is not None,
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
        columns = {name: number_column(batch, name) for name in self.names}
        reasons = None
        for name, reason in self._reasons.items():
            reasons = mark(reasons, self._unusable(name, columns[name]), reason)
        numbers = list(columns.values())
        predictions, targets = (numbers[:-1], numbers[-1:]) if self.scored else (numbers, [])
        return [predictions[0] if len(predictions) == 1 else np.column_stack(predictions), *targets], reasons

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
        wrong = {}
        for reason, column in zip(self._reasons.values(), (*f, y), strict=True):
            finite = (column > number(-np.inf)) & (column < number(np.inf))
            wrong[reason] = ~finite.fill_null(False)
        if self.score == "absolute_residual":
            return (y - f[0]).abs(), wrong
        # The distance below the lower quantile, and above the upper one
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
