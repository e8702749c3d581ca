"""The columns of each record of a table: what every kind of columns defines, and a column of scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from confide.candidates import AnyCandidates
from confide.core import Release, as_release
from confide.errors import InputError
from confide.evaluation import RecordComparison, ScoreOutcomes
from confide.scores import ScoreKind, score_kind
from confide.support import check_types
from confide.tables.named_columns import NamedColumn, Names, group_of_release
from confide.tables.number_columns import NumberColumns
from confide.tables.predictors import AnyGroup, Predictor
from confide.tables.readers import RecordReader, ScoreReader
from confide.tables.table import Table

ELSEWHERE = "compute it where the model runs, keep it in a column, and count that with ScoreColumn"
# Stands for both cqr_low and cqr_high, each with its own threshold.
SIDES = "cqr_sides"


class ProbabilityColumns(Protocol):
    """Columns from which sets of classes or labels are made."""

    def columns(self, table: Table, known: int | None = None) -> tuple[NumberColumns, Names]:
        """The columns of probabilities in a table, and the names of classes; `known` is their number, if stated."""


class ColumnSpec(ABC):
    """The columns of each record, and everything that depends on their kind."""

    # Whether the class of each record is known from these columns.
    _labelled = False

    @property
    def _classified(self) -> "ProbabilityColumns | None":
        """These columns, if sets of classes or labels are made from them."""
        return None

    @property
    @abstractmethod
    def kind(self) -> ScoreKind:
        """The score's name and range; of two sides that of the lower one."""

    @property
    def kinds(self) -> tuple[ScoreKind, ...]:
        """The names and ranges of the scores, one per threshold."""
        return (self.kind,)

    @abstractmethod
    def readers(self, table: Table) -> tuple[RecordReader, ...]:
        """The readers of the columns, after checks; one per threshold."""

    @property
    def _requested(self) -> dict[str, Any]:
        """The fields of a request that follow from these columns: a score, two sides or a loss."""
        return {"score": self.kind.name}

    @property
    def _outputs(self) -> Mapping[str, str]:
        """Public metadata about the outputs of the model."""
        return {}

    @property
    @abstractmethod
    def _types_in_sql(self) -> dict[str, str]:
        """The type of each column in a query on a table that this process does not read: number, text or position.

        Raises `InputError` if such a query cannot compute the score.
        """

    def _with_score(self, score: str | None) -> Self:
        """The columns with the score of a release; unchanged if they cannot give it, or state their score's name."""
        return self

    def _over(self, candidates: AnyCandidates) -> Self:
        """Losses with the candidates that they belong to; other columns unchanged."""
        return self

    @property
    def _whole(self) -> Self:
        """The columns with a score that reads everything on which a score of this kind may depend."""
        return self

    def _class_column(self, table: Table) -> NamedColumn:
        """The column of each record's class, under the names by which classes are released."""
        raise InputError("by_class", "needs the probabilities and the label of every record")

    def _predictors(
        self, table: Table, release: Release, by: str | Sequence[str] | None = None
    ) -> tuple[Predictor, ...]:
        """The predictors of a release for a table: one, or one per level."""
        levels = {"": release}
        if as_release(release).by == "level":
            levels = {f"_{float(alpha):g}": release.at(alpha) for alpha in release.parts}
        predictors = []
        for suffix, level in levels.items():
            if level.by == "group" and by is None:
                raise InputError(
                    "by", "must be given: the column of each record's group, because each group has a threshold"
                )
            if level.by != "group" and by is not None:
                raise InputError("by", "must be left out: the release has no thresholds per group of records")
            group = None if by is None else group_of_release(table, by, level)
            predictors.append(self._predictor(table, level, group, suffix))
        return tuple(predictors)

    def _predictor(self, table: Table, release: Release, group: AnyGroup, suffix: str) -> Predictor:
        raise InputError(
            "probabilities", "probabilities or predictions must be given: sets and intervals are made from them"
        )

    def _comparison(self, table: Table, release: Release) -> tuple[RecordReader, RecordComparison]:
        """The reader of each record and its comparison with a release; that of its score, if nothing else is known."""
        return self._with_score(score_named_by(release)).readers(table)[0], ScoreOutcomes(release)

    def _scores_read(self, reader: RecordReader, arrays: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The scores of a batch and what a plan reports about its records; `reader` is one of `_whole`."""
        return {"scores": reader.score_of(arrays)}


def score_named_by(release: Release) -> str | None:
    """The score under which columns give the scores of a release: its own, or that of both sides."""
    return SIDES if release.by == "side" else release.first.score


@dataclass(frozen=True)
class ScoreColumn(ColumnSpec):
    """A column of scores.

    Parameters
    ----------
    column
        A column of numbers: any integer, decimal or float type.
    score
        The score's name. If it is a known name, the range of the scores is checked.
    """

    column: str
    score: str | None = None

    def __post_init__(self) -> None:
        check_types(self, column=str, score=str)

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    @property
    def _types_in_sql(self) -> dict[str, str]:
        return {self.column: "number"}

    def readers(self, table: Table) -> tuple[RecordReader, ...]:
        """The reader of the column, after checks."""
        table.check_number(self.column)
        return (ScoreReader.of(self.column, self.score),)

    def _with_score(self, score: str | None) -> "ScoreColumn":
        return self if self.score is not None else replace(self, score=score)
