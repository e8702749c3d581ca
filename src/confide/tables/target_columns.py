"""Columns of predicted numbers or quantiles, and of the true number of a record."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Release
from confide.errors import InputError
from confide.evaluation import IntervalOutcomes, RecordComparison
from confide.scores import SCORES, ScoreKind, score_kind
from confide.support import check_types
from confide.tables.columns import SIDES, ColumnSpec, score_named_by
from confide.tables.predictors import AnyGroup, Predictor, interval_predictor, score_of_release, sides_of
from confide.tables.readers import RecordReader, TargetReader
from confide.tables.table import Table

# Column names whose end states which of two quantiles the column contains, such as y_lo, upper or y_q95.
_QUANTILE_NAME = re.compile(
    r"(.*[^a-z])?((?P<word>lower|low|lo|upper|high|hi)|(q|p|quantile|percentile)_?(?P<level>[0-9]+))", re.DOTALL
)


@dataclass(frozen=True)
class TargetColumns(ColumnSpec):
    """Scores of regression: the absolute residual, also relative to the prediction, or CQR and its sides.

    Parameters
    ----------
    prediction
        The column of predicted numbers; for CQR the pair of columns (lower, upper) of predicted quantiles.
    target
        The column of true numbers. It is optional for prediction.
    score
        `absolute_residual`, `gamma`, `cqr`, `cqr_low` or `cqr_high`; `cqr_sides` for one threshold per side. The
        default is `absolute_residual`, or `cqr` for a pair.
    """

    prediction: str | tuple[str, str]
    target: str | None = None
    score: str | None = None

    def __post_init__(self) -> None:
        check_types(self, prediction=(str, tuple), target=str, score=str)
        if len(self.predictions) not in (1, 2):
            must = "must name one column, or two: of the lower and the upper quantile"
            raise InputError("prediction", must, got=f"{len(self.predictions)} columns")
        if self.target in self.predictions:
            raise InputError(
                "target",
                "must be another column than prediction",
                got=f"{self.target!r} for both: every error would be 0",
            )
        if len(set(self.predictions)) != len(self.predictions):
            raise InputError(
                "prediction",
                "must name two different columns, of the lower and the upper quantile",
                got=f"{self.predictions[0]!r} twice",
            )
        if len(self.predictions) == 2 and _upper_first(*self.predictions):
            raise InputError(
                "prediction",
                "must name the column of the lower quantile first",
                got=f"{self.predictions[0]!r} before {self.predictions[1]!r}",
            )

    @property
    def predictions(self) -> tuple[str, ...]:
        """The column of predictions, or those of both quantiles."""
        return (self.prediction,) if isinstance(self.prediction, str) else tuple(self.prediction)

    @property
    def kinds(self) -> tuple[ScoreKind, ...]:
        """The names and ranges of the scores, one per threshold."""
        chosen = self.score or ("absolute_residual" if len(self.predictions) == 1 else "cqr")
        return tuple(map(score_kind, ("cqr_low", "cqr_high") if chosen == SIDES else (chosen,)))

    @property
    def kind(self) -> ScoreKind:
        """The name and range of the score; of the lower side if there are two."""
        return self.kinds[0]

    @property
    def _requested(self) -> dict[str, Any]:
        return super()._requested if len(self.kinds) == 1 else {"by": "side"}

    def _with_score(self, score: str | None) -> "TargetColumns":
        fits = score == SIDES or score_kind(score).task == "regression"
        return replace(self, score=str(score)) if fits else self

    def check_predictions(self, table: Table, kind: ScoreKind) -> None:
        """Reject columns that are missing or not numeric, and a number of columns that does not fit the score."""
        if kind.score is None or kind.task != "regression" or kind.score.difficulty:
            computed = [name for name, score in SCORES.items() if score.task == "regression" and not score.difficulty]
            raise InputError(
                "score",
                f"must be one of {', '.join(computed)} or {SIDES} for predictions",
                remedy="Compute others elsewhere and name their column, or register a confide.Score",
            )
        needed = 2 if kind.score.quantiles else 1
        if len(self.predictions) != needed:
            raise InputError(
                "prediction",
                f"must name {'one column' if needed == 1 else 'two columns'} for the score {kind.name!r}",
                got=str(len(self.predictions)),
            )
        for name in self.predictions:
            table.check_number(name)

    @property
    def _types_in_sql(self) -> dict[str, str]:
        return dict.fromkeys([*self.predictions, *([] if self.target is None else [self.target])], "number")

    def readers(self, table: Table) -> tuple[RecordReader, ...]:
        """The readers of the columns, after checks; one per threshold."""
        if self.target is None:
            raise InputError("target", "must be given: the column of the true numbers")
        self.check_predictions(table, self.kind)
        table.check_number(self.target)
        return tuple(TargetReader.of(self.predictions, self.target, str(kind.name)) for kind in self.kinds)

    def _predictor(self, table: Table, release: Release, group: AnyGroup, suffix: str) -> Predictor:
        low, high = (score_of_release(side, "regression") for side in sides_of(release))
        self.check_predictions(table, score_kind(low))
        return interval_predictor(self.predictions, (low, high), release, group, suffix)

    def _comparison(self, table: Table, release: Release) -> tuple[RecordReader, RecordComparison]:
        return self._with_score(score_named_by(release)).readers(table)[0], IntervalOutcomes(release)

    def _scores_read(self, reader: RecordReader, arrays: list[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        scores = super()._scores_read(reader, arrays)
        if self.kind.family != "cqr":
            return scores
        # Crossing quantiles have width 0
        return scores | {"widths": np.maximum(np.diff(arrays[0], axis=1), 0)[:, 0]}


def _upper_first(lower: str, upper: str) -> bool:
    """Whether the names of two columns, such as y_q95 and y_q05, state that the first contains the upper quantile."""
    first, second = (_QUANTILE_NAME.fullmatch(name.lower()) for name in (lower, upper))
    if first is None or second is None:
        return False
    if first["word"] and second["word"]:
        return first["word"].startswith(("up", "hi")) and second["word"].startswith("lo")
    # A name without a level never has the larger one
    return float(first["level"] or 0) > float(second["level"] or 100)
