"""The columns that are read of each record, and the score computed from them: in this process, or as SQL.

A reader has columns, requirements on every record, and two implementations of its score: from an Arrow batch in numpy,
and as an Ibis expression. Engines compute the expression with the same result in every bit, because everything is in
double precision with at most one rounding per operation. A record without a score has a reason: the position, from 1
on, of the requirement that it breaks.
"""

from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.arrays import SUM_REMEDY, SUM_TO_ONE, far_from_one, look_like_probabilities, softmax
from confide.candidates import Candidates
from confide.core import critical_thresholds, false_negative_thresholds
from confide.scores import ScoreKind, interval_score, own_class_scores, score_kind
from confide.tables.arrow import ColumnRef, column_of, integers_of, matrix_column, number_column, to_numpy
from confide.tables.expressions import exact, matches, number
from confide.tables.failures import ColumnError, RowErrors
from confide.tables.named_columns import NamedColumn
from confide.tables.table import Table

LOOKED_AT = 100
"""The number of rows of each batch whose sum is checked."""

_MOSTLY = 0.9

Reasons: TypeAlias = NDArray[np.integer] | None
"""The reason why each record cannot be used: the position of the broken requirement, from 1 on, or 0; or None."""


@dataclass(frozen=True)
class RecordReader(ABC):
    """The columns of each record, and its score.

    Parameters
    ----------
    score
        The score's name.
    reads
        The columns.
    requirements
        The requirements on every record, in words; the first is about the score itself.
    width
        The approximate count of numbers that are read of each record.
    in_sql
        Whether engines can compute the score.
    """

    checked_when_counted = False
    """Whether only the one who counts the scores checks their range."""

    score: str | None
    reads: tuple[ColumnRef, ...]
    requirements: tuple[str, ...]
    width: int
    in_sql: bool

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    def in_range(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each score is a number in the score's range."""
        low, high = np.float64(self.kind.low), np.float64(self.kind.high)  # float would be rounded to float32
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
            return self.score_of(arrays), None
        good, scores = reasons == 0, np.full(len(reasons), np.nan)
        if good.any():
            scores[good] = self.score_of([array[good] for array in arrays])
        return scores, reasons

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The score and the records that break each requirement, as Ibis expressions; only if `in_sql`."""
        raise NotImplementedError


class ScoreReader(RecordReader):
    """A column of ready-made scores."""

    checked_when_counted = True

    @classmethod
    def of(cls, column: str, score: str | None) -> "ScoreReader":
        """The reader of a column."""
        wanted = f"column {column!r} must hold a number {score_kind(score).range_text} (not missing, not NaN)"
        return cls(score, (ColumnRef(column),), (wanted,), 1, True)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The column."""
        return [number_column(batch, self.reads[0].column)], None

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Scores that are missing or out of range."""
        scores = number_column(batch, self.reads[0].column)
        return [number_error(1, self.requirements[0], scores, ~self.in_range(scores))]

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The column in double precision."""
        return exact(table[self.reads[0].column]), {}


@dataclass(frozen=True)
class NumberColumns:
    """Numbers for K classes, labels or candidates, from K columns or from one list column.

    For two classes one column is enough, that of the second: the first class has one minus it, in double precision.

    Parameters
    ----------
    columns
        The K columns, or the one list column, or the one column of two classes.
    width
        K.
    from_list
        Whether they come from a list column.
    logits
        Whether they are logits, whose softmax is used. The one column of two classes is the logit of the second
        compared with the first.
    exclusive
        Whether exactly one of K classes is true; otherwise each of K labels can be true.
    """

    columns: tuple[str, ...]
    width: int
    from_list: bool
    logits: bool = False
    exclusive: bool = True

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns."""
        return tuple(ColumnRef(column, "numbers" if self.from_list else "number") for column in self.columns)

    @property
    def of_pair(self) -> bool:
        """Whether one column stands for both of two classes."""
        return not self.from_list and len(self.columns) == 1 and self.width == 2

    def in_order(self, order: list[int]) -> "NumberColumns":
        """The same numbers with the columns in another order; lists and the one column of two classes are unchanged."""
        if len(self.columns) != self.width:
            return self
        return replace(self, columns=tuple(self.columns[place] for place in order))

    @property
    def title(self) -> str:
        """The name of the columns in messages."""
        first = repr(self.columns[0])
        return f"column {first}" if len(self.columns) == 1 else f"columns {first} and following"

    @property
    def probability_requirements(self) -> tuple[str, str]:
        """The requirements on probabilities, and on the length of lists: reasons 1 and 2 of `matrix`."""
        if self.logits:
            return (
                f"{self.title} must hold finite logits, none missing,",
                f"{self.title} must hold a list of {self.width} logits, one per class",
            )
        remedy = "give logits=True for logits" if self.exclusive else "write the sigmoid of logits"
        return (
            f"{self.title} must hold probabilities between 0 and 1, none missing ({remedy}, divide percentages by 100)",
            f"{self.title} must hold a list of {self.width} probabilities, one per class",
        )

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Numbers that are not probabilities, column by column, with the requirement about each: reason 1."""
        columns = {} if self.from_list else {name: number_column(batch, name) for name in self.columns}
        requirement = self.probability_requirements[0]
        found = [
            number_error(1, requirement.replace(self.title, f"column {name!r}", 1), p, self._unusable(p))
            for name, p in columns.items()
        ]
        if self.logits:
            return [one for one in found if one.wrong.any()]
        some_are_right = not all(one.wrong.any() for one in found)
        return [replace(one, requirement=_or_no_class(one)) for one in found] if some_are_right else found

    @property
    def sum_requirement(self) -> str:
        """The requirement on the sum of rows, if the numbers are probabilities of classes that exclude each other."""
        if self.logits:
            return (
                f"{self.title} must hold logits and not probabilities, as far as the first rows show (leave out "
                "logits=True for those),"
            )
        return f"{self.title} must hold probabilities that {SUM_TO_ONE}, as far as the first rows show ({SUM_REMEDY}),"

    def matrix(self, batch: Any, most: float = 1.0, order: Literal["C", "F"] = "C") -> tuple[NDArray[Any], Reasons]:
        """The numbers, shape (n, K); reason 1 for those outside [0, most], 2 for lists of another length.

        The order "F" copies columns as they are, which is faster if one entry of each row is needed.
        """
        if self.from_list:
            p, whole = matrix_column(batch, self.columns[0], self.width)
        else:
            columns = [number_column(batch, column) for column in self.columns]
            if self.of_pair and not self.logits:
                second = columns[0].astype(np.float64)
                columns = [1 - second, second]
            p, whole = _side_by_side(columns, "C" if self.logits else order), None
        if self.logits:
            return self._softmax(p, whole)
        if whole is None and (not p.size or (p.min() >= 0 and p.max() <= most)):  # NaN fails both
            return p, None
        reasons = np.where(((p >= 0) & (p <= most)).all(axis=1), 0, 1).astype(np.int8)
        if whole is not None:
            reasons[~whole] = 2
        return p, reasons

    def _unusable(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """The numbers of a column that are not logits, or not probabilities."""
        return ~np.isfinite(column) if self.logits else ~((column >= 0) & (column <= 1))

    def _softmax(self, z: NDArray[Any], whole: NDArray[np.bool_] | None) -> tuple[NDArray[np.float64], Reasons]:
        """The softmax of logits; rows that are already probabilities become 0, which does not sum to one."""
        wrong, already = ~np.isfinite(z).all(axis=1), look_like_probabilities(z)
        reasons = mark(None, wrong if whole is None else wrong & whole, 1)
        reasons = reasons if whole is None else mark(reasons, ~whole, 2)
        sound = np.where(wrong[:, None], 0, z) if wrong.any() else z
        p = softmax(np.column_stack([np.zeros(len(z)), sound]) if self.of_pair else sound)
        p[already] = 0
        return p, reasons

    def expressions(self, table: Any) -> list[Any]:
        """The numbers as Ibis expressions, in double precision; not for lists."""
        columns = [exact(table[column]) for column in self.columns]
        return [number(1.0) - columns[0], *columns] if self.of_pair else columns


@dataclass(frozen=True)
class ProbabilityReader(RecordReader):
    """Probabilities of classes or of labels, from which sets are made."""

    probabilities: NumberColumns

    @classmethod
    def of_sets(cls, p: NumberColumns, score: str) -> "ProbabilityReader":
        """The reader of probabilities alone; those of classes that exclude each other sum to one."""
        sums = (p.sum_requirement,) if p.exclusive else ()
        return cls(score, p.reads, (*p.probability_requirements, *sums), p.width, False, p)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The probabilities, shape (n, K)."""
        p, reasons = self.probabilities.matrix(batch)
        return [p], mark(reasons, other_sums(p), 3) if self.probabilities.exclusive else reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities."""
        return self.probabilities.column_errors(batch)


@dataclass(frozen=True)
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
        own = entry if by_entry else p.reads
        wanted = (*p.probability_requirements, label.requirement, p.sum_requirement)
        return cls(score, (*own, label.read), wanted, 1 if by_entry else p.width, in_sql, p, label, by_entry)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """Probabilities, shape (n, K), or the label's own, shape (n, 1); and the positions of the labels."""
        place = self.label.places(batch)
        if self.by_entry:
            p, reasons = self._entries(batch, place)
        else:
            p, reasons = self.probabilities.matrix(batch, order="F" if self.in_sql else "C")
            reasons = mark(reasons, other_sums(p), 4)
        wrong = place < 0
        return [p, place], mark(reasons, self.label.unusable(batch), 3) if wrong.any() else reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Columns of probabilities, and the label."""
        return [*super().column_errors(batch), self.label.column_error(batch, 3)]

    def evaluated(self, arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Probabilities and labels."""
        return arrays

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Any classification score; +inf for labels that are no class. Randomised scores draw new numbers."""
        p, place = arrays
        if self.in_sql:
            own = p if self.by_entry else p[np.arange(len(p)), place][:, None]
            return own_class_scores(own, np.minimum(place, 0), "lac")
        return own_class_scores(p, place, str(self.score))

    def _entries(self, batch: Any, place: NDArray[np.int64]) -> tuple[NDArray[Any], Reasons]:
        """The label's own probability, shape (n, 1)."""
        (column,) = self.probabilities.columns
        own = to_numpy(column_of(batch, ColumnRef(column, "entry")))
        length = integers_of(column_of(batch, ColumnRef(column, "length")), -1)
        reasons = mark(None, length != self.probabilities.width, 2)
        return own[:, None], mark(reasons, (place >= 0) & ~((own >= 0) & (own <= 1)), 1)

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """1 - p of the label's own class, in double precision; +inf for labels that are no class."""
        import ibis

        place, missing = self.label.expressions(table)
        columns, width = self.probabilities.columns, self.probabilities.width
        if not self.probabilities.from_list:
            labels = matches(table[self.label.read.column], self.label.values)
            scores = [number(1.0) - p for p in self.probabilities.expressions(table)]
            return ibis.cases(*zip(labels, scores, strict=True), else_=number(np.inf)), {3: missing}
        lists = table[columns[0]]
        usable = (place < width) & (lists.length() == width)
        own = usable.ifelse(lists[usable.ifelse(place, 0).cast("int32")], ibis.null(lists.type().value_type))
        score = (place >= width).ifelse(number(np.inf), number(1.0) - exact(own))
        return score, {2: (lists.length() != width).fill_null(True), 3: missing}


@dataclass(frozen=True)
class TargetReader(RecordReader):
    """A regression score: absolute residual, gamma, or CQR and its sides; or predictions alone.

    `names` are the columns of predictions and of the target, if it is read.
    """

    names: tuple[str, ...]
    positive: bool
    scored: bool

    @classmethod
    def of(cls, predictions: tuple[str, ...], target: str | None, score: str) -> "TargetReader":
        """The reader of predictions and targets; without a target of predictions alone, which have no score."""
        names, positive = (*predictions, *(() if target is None else (target,))), score_kind(score).positive
        apart = f"columns {', '.join(map(repr, names))} must hold numbers that are not too far apart to be subtracted"
        finite = [finite_requirement(name, positive and place == 0) for place, name in enumerate(names)]
        in_sql = score in ("absolute_residual", "cqr", "cqr_low", "cqr_high")
        wanted = (*(() if target is None else (apart,)), *finite)
        return cls(score, tuple(map(ColumnRef, names)), wanted, len(names), in_sql, names, positive, target is not None)

    @property
    def _columns(self) -> list[tuple[int, str, bool]]:
        """The reason of each column's requirement, its name, and whether its numbers must be positive."""
        reasons = enumerate(self.names, start=2 if self.scored else 1)
        return [(reason, name, self.positive and name == self.names[0]) for reason, name in reasons]

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """Predictions, shape (n,), or quantiles, shape (n, 2); and targets, if they are read."""
        numbers, reasons = [number_column(batch, name) for name in self.names], None
        for column, (reason, _, positive) in zip(numbers, self._columns, strict=True):
            reasons = mark(reasons, _unusable(column, positive), reason)
        y = [numbers.pop()] if self.scored else []
        return [numbers[0] if len(numbers) == 1 else np.column_stack(numbers), *y], reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The same errors column by column, also if several numbers of a record are wrong."""
        errors = []
        for reason, name, positive in self._columns:
            column = number_column(batch, name)
            errors.append(number_error(reason, self.requirements[reason - 1], column, _unusable(column, positive)))
        return errors

    def evaluated(self, arrays: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Predictions and targets."""
        return arrays

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """Any regression score that needs no difficulty."""
        with np.errstate(over="ignore"):
            return np.asarray(interval_score(arrays[0], arrays[1], str(self.score)))

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The same in double precision, for the absolute residual and CQR."""
        *f, y = (exact(table[name]) for name in self.names)
        wrong = {i: ~finite_expression(column) for i, column in enumerate([*f, y], start=2)}
        if self.score == "absolute_residual":
            return (y - f[0]).abs(), wrong
        below, above = f[0] - y, y - f[-1]
        if self.score == "cqr":
            return (below >= above).ifelse(below, above), wrong
        return (below if self.score == "cqr_low" else above), wrong


@dataclass(frozen=True)
class LossReader(RecordReader):
    """The critical threshold of a monotone bounded loss, from its values at every finite candidate.

    Fresh uniform numbers are drawn, one per record (docs/theory.md, Theorem R1).
    """

    losses: NumberColumns
    candidates: Candidates
    bound: float

    @classmethod
    def of(cls, losses: NumberColumns, candidates: Candidates, score: str, bound: float) -> "LossReader":
        """The reader of losses."""
        wanted = (
            f"{losses.title} must hold losses in [0, {bound:g}] that do not increase with the threshold",
            f"{losses.title} must hold a list of {losses.width} losses, one for each finite candidate",
        )
        return cls(score, losses.reads, wanted, losses.width, False, losses, candidates, bound)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """The losses, shape (n, m - 1)."""
        losses, reasons = self.losses.matrix(batch, self.bound)
        return [losses], mark(reasons, np.any(np.diff(losses, axis=1) > 0, axis=1), 1)

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """The first candidate at which the loss is at most bound * u."""
        return critical_thresholds(arrays[0], self.candidates, bound=self.bound)


@dataclass(frozen=True)
class FalseNegativeReader(ProbabilityReader):
    """The critical threshold of the false-negative rate of sets of labels; draws new uniform random numbers."""

    truth: NumberColumns

    @classmethod
    def of(cls, p: NumberColumns, truth: NumberColumns, score: str) -> "FalseNegativeReader":
        """The reader of probabilities and true labels."""
        wanted = f"{truth.title} must hold 1 for each label that is true and 0 for others"
        return cls(score, (*p.reads, *truth.reads), (*p.probability_requirements, wanted), 2 * p.width, False, p, truth)

    def read(self, batch: Any) -> tuple[list[NDArray[Any]], Reasons]:
        """Probabilities and true labels, shape (n, K) each."""
        arrays, reasons = super().read(batch)
        truth, _ = self.truth.matrix(batch)
        return [*arrays, truth], mark(reasons, ~((truth == 0) | (truth == 1)).all(axis=1), 3)

    def score_of(self, arrays: list[NDArray[Any]]) -> NDArray[np.float64]:
        """The score 1 - p of one true label, chosen at random."""
        return false_negative_thresholds(arrays[0], arrays[1] == 1)


def _or_no_class(column_error: ColumnError) -> str:
    """The requirement of one column among correct others; it may not be a class if nearly no row is usable."""
    mostly = np.count_nonzero(column_error.wrong) >= _MOSTLY * len(column_error.wrong)
    remedy = "percentages by 100; if it is no class, leave it out by a narrower pattern)"
    return column_error.requirement.replace("percentages by 100)", remedy) if mostly else column_error.requirement


def other_sums(p: NDArray[Any]) -> NDArray[np.bool_]:
    """The rows of a batch that do not sum to one, shape (n,), among the first rows."""
    wrong = np.zeros(len(p), dtype=np.bool_)
    far = far_from_one(p, LOOKED_AT)
    wrong[: len(far)] = far
    return wrong


def refuse_first_rows(table: Table, p: NumberColumns) -> None:
    """Reject a table whose first rows do not sum to one, if no other code checks all entries of a row."""
    found = RowErrors()
    with closing(table.head(LOOKED_AT).batches(p.reads, LOOKED_AT)) as batches:
        first = next(batches, None)
        if first is not None and first.num_rows:
            matrix, unusable = p.matrix(first)  # other checks report unusable rows
            wrong = other_sums(matrix) if unusable is None else other_sums(matrix) & (unusable == 0)
            found.note(wrong.astype(np.int8), 0 if table.ordered else None)
    found.refuse([p.sum_requirement], table.rows)


def mark(reasons: Reasons, wrong: NDArray[np.bool_], reason: int) -> Reasons:
    """Reasons with one more reason, for records that are wrong and had none."""
    if not wrong.any():
        return reasons
    reasons = np.zeros(len(wrong), np.int8) if reasons is None else reasons
    reasons[wrong & (reasons == 0)] = reason
    return reasons


def finite_requirement(column: str, positive: bool = False) -> str:
    """The requirement on a prediction or a target, for messages."""
    what = "a positive number" if positive else "a number"
    return f"column {column!r} must hold {what} that is finite (not missing, not NaN)"


def _unusable(column: NDArray[Any], positive: bool) -> NDArray[np.bool_]:
    """The numbers that are not finite, or not positive where this is required."""
    wrong: NDArray[np.bool_] = ~np.isfinite(column)
    return wrong | ~(column > 0) if positive else wrong


def number_error(reason: int, requirement: str, column: NDArray[Any], wrong: NDArray[np.bool_]) -> ColumnError:
    """The error of a column of numbers, in which missing numbers are NaN."""
    return ColumnError(reason, requirement, wrong, bool(np.isnan(column).any()))


def finite_expression(column: Any) -> Any:
    """Whether a number is finite, as an expression; defined for missing numbers as well."""
    return ((column > number(-np.inf)) & (column < number(np.inf))).fill_null(False)


def _side_by_side(columns: list[NDArray[Any]], order: Literal["C", "F"]) -> NDArray[Any]:
    matrix = np.empty((len(columns[0]), len(columns)), dtype=np.result_type(*columns), order=order)
    for k, column in enumerate(columns):
        matrix[:, k] = column
    return matrix
