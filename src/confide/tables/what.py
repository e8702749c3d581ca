"""From columns to one score per row, as expressions that every engine computes bit for bit like numpy.

Everything is cast to double precision first, exactly; then there is at most one rounding per operation, as in numpy.
Rows that have no score say why (`Finding`).
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from confide.scores.kinds import ScoreKind, score_kind
from confide.tables.engine_findings import Finding
from confide.tables.expressions import exact, number, numeric_column, own_probability

Expression: TypeAlias = Any
"""An Ibis expression."""


class Source(Protocol):
    """Which columns hold the scores, or what they are computed from."""

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""

    @property
    def in_sql(self) -> bool:
        """Whether engines compute it themselves; else it is computed in Python, from batches of rows."""

    def expressions(self, table: Any) -> "tuple[Expression, dict[Finding, Expression]]":
        """The score (float64; null where there is none) and, per finding, the rows that have it."""


@dataclass(frozen=True)
class Scored:
    """A column of scores.

    Parameters
    ----------
    column
        A column of numbers: any integer, decimal or float type.
    score
        The score's name; a known one has its range checked.
    """

    column: str
    score: str | None = None

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def in_sql(self) -> bool:
        """Whether engines compute it themselves."""
        return True

    def expressions(self, table: Any) -> tuple[Expression, dict[Finding, Expression]]:
        """The column in double precision."""
        return exact(numeric_column(table, self.column)), {}


@dataclass(frozen=True)
class Classified:
    """A classification score of the row's own class; engines compute LAC, one minus its probability, in SQL.

    Parameters
    ----------
    probabilities
        One column per class, or the name of one list column.
    label
        The column of the true classes: positions, or names out of `classes`.
    classes
        The class names, in the order of the columns; by default 0 .. K-1 for columns, required for a list column.
    score
        Any classification score of `class_score`; all but LAC are computed in Python, from batches of rows.
    """

    probabilities: str | tuple[str, ...]
    label: str
    classes: tuple[str | int, ...] | None = None
    score: str = "lac"

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def in_sql(self) -> bool:
        """Whether engines compute it themselves."""
        return self.kind.family == "lac"

    def expressions(self, table: Any) -> tuple[Expression, dict[Finding, Expression]]:
        """1 - p in double precision."""
        own, findings = own_probability(table, self.probabilities, self.label, self.classes)
        return number(1.0) - exact(own), findings


@dataclass(frozen=True)
class Regressed:
    """Scores of regression: the absolute residual, or CQR and its sides.

    Parameters
    ----------
    prediction
        The column of predicted numbers; for CQR the pair of columns (lower, upper) of predicted quantiles.
    target
        The column of true numbers.
    score
        `absolute_residual`, `cqr`, `cqr_low` or `cqr_high`.
    """

    prediction: str | tuple[str, str]
    target: str
    score: str = "absolute_residual"

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def in_sql(self) -> bool:
        """Whether engines compute it themselves."""
        return self.score in ("absolute_residual", "cqr", "cqr_low", "cqr_high")

    def expressions(self, table: Any) -> tuple[Expression, dict[Finding, Expression]]:
        """`|y - f|`, or `max(lower - y, y - upper)`."""
        y = exact(numeric_column(table, self.target))
        names = (self.prediction,) if isinstance(self.prediction, str) else self.prediction
        f = [exact(numeric_column(table, name)) for name in names]
        if self.score == "absolute_residual":
            return (y - f[0]).abs(), {}
        below, above = f[0] - y, y - f[-1]
        if self.score == "cqr":
            return (below >= above).ifelse(below, above), {}
        return (below if self.score == "cqr_low" else above), {}
