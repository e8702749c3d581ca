"""What is read of each record of a table, and the number that follows from it: in this process, or as SQL.

A reading knows its columns, the requirements that every record has to fulfil, and how to compute scores: from an Arrow
batch in numpy, or as an Ibis expression that engines compute bit for bit alike (everything in double precision, with at
most one rounding per operation). A record without a score has a finding: the position, from 1 on, of the requirement it
breaks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.calibration import critical_thresholds, false_negative_thresholds
from confide.candidates import Candidates
from confide.scores import ScoreKind, class_score, interval_score, lac_score, score_kind
from confide.tables.batch_columns import column_of, matrix_column, number_column
from confide.tables.expressions import exact, number
from confide.tables.named_column import NamedColumn
from confide.tables.table import Read

Findings: TypeAlias = NDArray[np.int8] | None
"""One number per record, 0 where nothing is wrong; None if nothing is wrong with any."""

Scores: TypeAlias = tuple[NDArray[np.float64], Findings]


class Reading(Protocol):
    """What is read of each record, and its score."""

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""

    @property
    def reads(self) -> tuple[Read, ...]:
        """The columns."""

    @property
    def width(self) -> int:
        """About how many numbers are read of each record."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """What every record has to fulfil, in words; the first is about the score itself."""

    @property
    def in_sql(self) -> bool:
        """Whether engines can compute it."""

    def scores(self, batch: Any) -> Scores:
        """The scores of a batch, shape (n,), and what is wrong with records that have none."""

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The same in terms of an Ibis table: the score, and the records that break each requirement."""


@dataclass(frozen=True)
class ScoreReading:
    """A column of ready-made scores."""

    column: str
    score: str | None
    in_sql: bool = True
    width: int = 1

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def reads(self) -> tuple[Read, ...]:
        """The column."""
        return (Read(self.column),)

    @property
    def requirements(self) -> tuple[str, ...]:
        """A number in the score's range."""
        return (f"column {self.column!r} must hold a number {self.kind.range_text} (not missing, not NaN)",)

    def scores(self, batch: Any) -> Scores:
        """The column; whoever counts looks at its range."""
        return number_column(batch, self.column), None

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The column in double precision."""
        return exact(table[self.column]), {}


@dataclass(frozen=True)
class ProbabilityColumns:
    """Probabilities of K classes, from K columns or from one list column.

    Parameters
    ----------
    columns
        The K columns, or the one list column.
    width
        K.
    from_list
        Whether they come from a list column.
    """

    columns: tuple[str, ...]
    width: int
    from_list: bool

    @property
    def reads(self) -> tuple[Read, ...]:
        """The columns."""
        return tuple(Read(column, "numbers" if self.from_list else "number") for column in self.columns)

    @property
    def requirements(self) -> tuple[str, str]:
        """Probabilities, and as many in a list as there are classes."""
        first = repr(self.columns[0])
        title = f"column {first}" if len(self.columns) == 1 else f"columns {first} and following"
        return (
            f"{title} must hold probabilities between 0 and 1, none missing (apply softmax to logits, divide "
            "percentages by 100)",
            f"{title} must hold a list of {self.width} probabilities, one per class",
        )

    def matrix(self, batch: Any) -> tuple[NDArray[Any], Findings]:
        """The probabilities, shape (n, K), and findings of the two requirements, 1 and 2."""
        if self.from_list:
            p, whole = matrix_column(batch, self.columns[0], self.width)
        else:
            p, whole = _side_by_side([number_column(batch, column) for column in self.columns]), None
        if whole is None and (not p.size or (p.min() >= 0 and p.max() <= 1)):  # NaN fails both
            return p, None
        findings = np.where(((p >= 0) & (p <= 1)).all(axis=1), 0, 1).astype(np.int8)
        if whole is not None:
            findings[~whole] = 2
        return p, findings


@dataclass(frozen=True)
class ClassReading:
    """A classification score of each record's own class."""

    probabilities: ProbabilityColumns
    label: NamedColumn
    score: str
    by_entry: bool = False

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Probabilities and label; of a list, where the table can tell, only the label's entry."""
        if not self.by_entry:
            return (*self.probabilities.reads, self.label.read)
        (column,) = self.probabilities.columns
        return Read(column, "entry", self.label.column), Read(column, "length"), self.label.read

    @property
    def width(self) -> int:
        """Numbers that are read of each record."""
        return 1 if self.by_entry else self.probabilities.width

    @property
    def requirements(self) -> tuple[str, ...]:
        """Probabilities, lists of the right length, and a known label."""
        return (*self.probabilities.requirements, self.label.requirement)

    @property
    def in_sql(self) -> bool:
        """LAC alone, which is one minus a probability."""
        return self.kind.family == "lac"

    def scores(self, batch: Any) -> Scores:
        """Any classification score. Randomised ones draw fresh numbers."""
        place = self.label.places(batch)
        if self.by_entry:
            p, findings = self._entries(batch)
        else:
            p, findings = self.probabilities.matrix(batch)
        unknown = place < 0
        if unknown.any():
            findings = np.zeros(len(place), np.int8) if findings is None else findings
            findings[unknown & (findings != 2)] = 3
        if findings is not None:
            good = findings == 0
            p, place, whole = p[good], place[good], np.full(len(good), np.nan)
        if not len(p):
            scores = np.zeros(0)
        elif self.in_sql:
            own = p if self.by_entry else p[np.arange(len(p)), place][:, None]
            scores = lac_score(own, np.zeros(len(own), np.int64))
        else:
            u = np.random.default_rng() if self.kind.randomised else None
            scores = class_score(p, place, self.score, u=u)
        if findings is None:
            return scores, None
        whole[good] = scores
        return whole, findings

    def _entries(self, batch: Any) -> tuple[NDArray[Any], Findings]:
        """The label's own probability, shape (n, 1)."""
        (column,) = self.probabilities.columns
        own = np.asarray(column_of(batch, Read(column, "entry")))
        length = np.asarray(column_of(batch, Read(column, "length")).fill_null(-1))
        known = self.label.places(batch) >= 0
        wrong = np.where(length != self.probabilities.width, 2, np.where(known & ~((own >= 0) & (own <= 1)), 1, 0))
        return own[:, None], wrong.astype(np.int8) if wrong.any() else None

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """1 - p of the label's own class, in double precision."""
        import ibis

        place, unknown = self.label.expressions(table)
        columns, width = self.probabilities.columns, self.probabilities.width
        if not self.probabilities.from_list:
            clauses = [(place == i, exact(table[column])) for i, column in enumerate(columns)]
            return number(1.0) - ibis.cases(*clauses, else_=ibis.null("float64")), {3: unknown}
        lists = table[columns[0]]
        usable = ~unknown & (lists.length() == width)
        own = usable.ifelse(lists[usable.ifelse(place, 0).cast("int32")], ibis.null(lists.type().value_type))
        return number(1.0) - exact(own), {2: (lists.length() != width).fill_null(True), 3: unknown}


@dataclass(frozen=True)
class TargetReading:
    """A regression score: the absolute residual, or CQR and its sides."""

    predictions: tuple[str, ...]
    target: str
    score: str
    in_sql: bool = True
    width: int = 3

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Predictions and target."""
        return tuple(Read(column) for column in (*self.predictions, self.target))

    @property
    def requirements(self) -> tuple[str, ...]:
        """A finite score, and finite numbers."""
        names = (*self.predictions, self.target)
        return (
            f"columns {', '.join(map(repr, names))} must hold numbers that are not too far apart for their difference",
            *(finite_requirement(name) for name in names),
        )

    def scores(self, batch: Any) -> Scores:
        """|y - f|, or max(lower - y, y - upper)."""
        columns, findings = finite_columns(batch, (*self.predictions, self.target), first=2)
        good = slice(None) if findings is None else findings == 0
        kept = [column[good] for column in columns]
        f = np.column_stack(kept[:-1]) if len(kept) > 2 else kept[0]
        with np.errstate(over="ignore"):
            found = interval_score(f, kept[-1], self.score) if len(kept[0]) else np.zeros(0)
        if findings is None:
            return found, None
        scores = np.full(len(findings), np.nan)
        scores[good] = found
        return scores, findings

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """The same in double precision."""
        f, y = [exact(table[name]) for name in self.predictions], exact(table[self.target])
        wrong = {i: ~finite_expression(column) for i, column in enumerate([*f, y], start=2)}
        if self.score == "absolute_residual":
            return (y - f[0]).abs(), wrong
        below, above = f[0] - y, y - f[-1]
        if self.score == "cqr":
            return (below >= above).ifelse(below, above), wrong
        return (below if self.score == "cqr_low" else above), wrong


@dataclass(frozen=True)
class LossReading:
    """The critical threshold of a monotone bounded loss, from its values at every finite candidate.

    Fresh uniform numbers are drawn, one per record (docs/theory-risk.md, Theorem 1).
    """

    losses: ProbabilityColumns
    candidates: Candidates
    loss: str
    bound: float
    in_sql: bool = False

    @property
    def kind(self) -> ScoreKind:
        """No known range."""
        return score_kind(f"critical threshold of {self.loss}")

    @property
    def reads(self) -> tuple[Read, ...]:
        """The losses."""
        return self.losses.reads

    @property
    def width(self) -> int:
        """Losses of each record."""
        return self.losses.width

    @property
    def requirements(self) -> tuple[str, ...]:
        """Losses that do not increase, one for each finite candidate."""
        title = f"column {self.losses.columns[0]!r}{'' if len(self.losses.columns) == 1 else ' and following'}"
        return (
            f"{title} must hold losses in [0, {self.bound:g}] that do not increase with the threshold",
            f"{title} must hold a list of {self.losses.width} losses, one for each finite candidate",
        )

    def scores(self, batch: Any) -> Scores:
        """The first candidate at which the loss is at most bound * u."""
        losses, _ = self.losses.matrix(batch)
        fine = ((losses >= 0) & (losses <= self.bound)).all(axis=1) & ~(np.diff(losses, axis=1) > 0).any(axis=1)
        scores = np.full(len(losses), np.nan)
        if fine.any():
            scores[fine] = critical_thresholds(
                losses[fine], self.candidates, u=np.random.default_rng(), bound=self.bound
            )
        return scores, None if fine.all() else np.where(fine, 0, 1).astype(np.int8)

    def expressions(self, table: Any) -> tuple[Any, dict[int, Any]]:
        """SQL draws no uniform numbers that two engines would draw alike."""
        raise NotImplementedError


@dataclass(frozen=True)
class FalseNegativeReading:
    """The critical threshold of the false-negative rate of sets of labels; fresh uniform numbers are drawn."""

    probabilities: ProbabilityColumns
    truth: ProbabilityColumns
    in_sql: bool = False

    @property
    def kind(self) -> ScoreKind:
        """No known range."""
        return score_kind("critical threshold of false_negative_rate")

    @property
    def reads(self) -> tuple[Read, ...]:
        """Probabilities and truths."""
        return (*self.probabilities.reads, *self.truth.reads)

    @property
    def width(self) -> int:
        """Probabilities and truths of each record."""
        return 2 * self.truth.width

    @property
    def requirements(self) -> tuple[str, ...]:
        """Probabilities, as many as there are labels, and for each label whether it is true."""
        title = f"column {self.truth.columns[0]!r}{'' if len(self.truth.columns) == 1 else ' and following'}"
        return (
            *self.probabilities.requirements,
            f"{title} must hold 1 for every label that is true and 0 for the others",
        )

    def scores(self, batch: Any) -> Scores:
        """The score 1 - p of one true label, picked at random."""
        p, findings = self.probabilities.matrix(batch)
        truth, wrong = self.truth.matrix(batch)
        binary = ((truth == 0) | (truth == 1)).all(axis=1)
        if findings is None and wrong is None and binary.all():
            return self._thresholds(p, truth), None
        found = np.zeros(len(p), np.int8) if findings is None else findings
        found[~binary] = 3
        scores, good = np.full(len(p), np.nan), found == 0
        if good.any():
            scores[good] = self._thresholds(p[good], truth[good])
        return scores, found

    def _thresholds(self, p: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        return false_negative_thresholds(p, truth == 1, u=np.random.default_rng())

    expressions: Callable[..., Any] = LossReading.expressions


def finite_requirement(column: str) -> str:
    """What a prediction or a target has to be, for messages."""
    return f"column {column!r} must hold a number that is finite (not missing, not NaN)"


def finite_columns(batch: Any, names: tuple[str, ...], first: int) -> tuple[list[NDArray[Any]], Findings]:
    """Columns of numbers, and findings `first`, `first + 1`, ... for records whose number is not finite."""
    columns = [number_column(batch, name) for name in names]
    findings: Findings = None
    for i, column in enumerate(columns):
        wrong = ~np.isfinite(column)
        if wrong.any():
            findings = np.zeros(len(column), np.int8) if findings is None else findings
            findings[wrong & (findings == 0)] = first + i
    return columns, findings


def finite_expression(column: Any) -> Any:
    """Whether a number is finite, as an expression; also where it is missing."""
    return ((column > number(-np.inf)) & (column < number(np.inf))).fill_null(False)


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    matrix = np.empty((len(columns[0]), len(columns)), dtype=np.result_type(*columns))
    for k, column in enumerate(columns):
        matrix[:, k] = column
    return matrix
