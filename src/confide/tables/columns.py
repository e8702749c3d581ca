"""The columns of each record of a table: a score, predicted numbers, probabilities or losses.

A specification states the names of columns, and everything that depends on their kind. Its members with an underscore
are for the other modules of this package, and no promise to users.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.candidates import AnyCandidates, Candidates, Spread
from confide.core import BOTH_SIDES, FALSE_NEGATIVES, FROM_LOGITS, Release, as_release, critical_score
from confide.errors import InputError
from confide.evaluation import IntervalOutcomes, LabelledRecords, RecordComparison, ScoreOutcomes, SetOutcomes
from confide.scores import SCORES, ScoreKind, all_scores, score_kind
from confide.support import (
    canonical_name,
    check_column_order,
    check_types,
    column_order,
    positive_number,
    refuse_first_of_pair,
    require,
    several,
)
from confide.tables.arrow import is_number, is_text
from confide.tables.named_columns import NamedColumn, Names, group_of_release, label_column
from confide.tables.number_columns import NumberColumns, is_pattern, number_columns
from confide.tables.predictors import (
    AnyGroup,
    Predictor,
    interval_predictor,
    number_of_classes,
    release_class_names,
    score_of_release,
    set_predictor,
    sides_of,
)
from confide.tables.readers import (
    ELSEWHERE,
    ClassReader,
    FalseNegativeReader,
    LossReader,
    RecordReader,
    ScoreReader,
    TargetReader,
)
from confide.tables.table import TableColumns


class ColumnSpec(ABC):
    """The columns of each record, and everything that depends on their kind."""

    # Whether the class of each record is known from these columns.
    _labelled = False

    @property
    def _classified(self) -> "ClassColumns | LossColumns | None":
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
    def readers(self, table: TableColumns) -> tuple[RecordReader, ...]:
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

    def _class_column(self, table: TableColumns) -> NamedColumn:
        """The column of each record's class, under the names by which classes are released."""
        raise InputError("by_class", "needs the probabilities and the label of every record")

    def _predictors(
        self, table: TableColumns, release: Release, by: str | Sequence[str] | None = None
    ) -> tuple[Predictor, ...]:
        """The predictors of a release for a table: one, or one per level."""
        levels = {"": release}
        if as_release(release).by == "level":
            levels = {f"_{float(alpha):g}": release.at(alpha) for alpha in release.parts}
        predictors = []
        for suffix, level in levels.items():
            must = "must be given: the column of each record's group, because each group has a threshold"
            require("by", level.by != "group" or by is not None, must)
            if level.by != "group" and by is not None:
                raise InputError("by", "must be left out: the release has no thresholds per group of records")
            group = None if by is None else group_of_release(table, by, level)
            predictors.append(self._predictor(table, level, group, suffix))
        return tuple(predictors)

    def _predictor(self, table: TableColumns, release: Release, group: AnyGroup, suffix: str) -> Predictor:
        must = "probabilities or predictions must be given: sets and intervals are made from them"
        raise InputError("probabilities", must)

    def _comparison(self, table: TableColumns, release: Release) -> tuple[RecordReader, RecordComparison]:
        """The reader of each record and its comparison with a release; that of its score, if nothing else is known."""
        return self._with_score(score_named_by(release)).readers(table)[0], ScoreOutcomes(release)

    def _scores_read(self, reader: RecordReader, records: LabelledRecords) -> dict[str, NDArray[Any]]:
        """The scores of a batch and what a plan reports about its records; `reader` is one of `_whole`."""
        return {"scores": reader.score_of(records)}


def score_named_by(release: Release) -> str | None:
    """The score under which columns give the scores of a release: its own, or that of both sides."""
    return BOTH_SIDES if release.by == "side" else release.first.score


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

    def readers(self, table: TableColumns) -> tuple[RecordReader, ...]:
        """The reader of the column, after checks."""
        table.check_number(self.column)
        return (ScoreReader(score=self.score, column=self.column),)

    def _with_score(self, score: str | None) -> "ScoreColumn":
        return self if self.score is not None else replace(self, score=score)


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
        must = "must name one column, or two: of the lower and the upper quantile"
        require("prediction", len(self.predictions) in (1, 2), must, got=f"{len(self.predictions)} columns")
        if self.target in self.predictions:
            must = "must be another column than prediction"
            raise InputError("target", must, got=f"{self.target!r} for both: every error would be 0")
        if len(set(self.predictions)) != len(self.predictions):
            must = "must name two different columns, of the lower and the upper quantile"
            raise InputError("prediction", must, got=f"{self.predictions[0]!r} twice")
        if len(self.predictions) == 2 and _upper_first(*self.predictions):
            must = "must name the column of the lower quantile first"
            raise InputError("prediction", must, got=f"{self.predictions[0]!r} before {self.predictions[1]!r}")

    @property
    def predictions(self) -> tuple[str, ...]:
        """The column of predictions, or those of both quantiles."""
        return (self.prediction,) if isinstance(self.prediction, str) else tuple(self.prediction)

    @property
    def kinds(self) -> tuple[ScoreKind, ...]:
        """The names and ranges of the scores, one per threshold."""
        chosen = self.score or ("absolute_residual" if len(self.predictions) == 1 else "cqr")
        return tuple(map(score_kind, ("cqr_low", "cqr_high") if chosen == BOTH_SIDES else (chosen,)))

    @property
    def kind(self) -> ScoreKind:
        """The name and range of the score; of the lower side if there are two."""
        return self.kinds[0]

    @property
    def _requested(self) -> dict[str, Any]:
        return super()._requested if len(self.kinds) == 1 else {"by": "side"}

    def _with_score(self, score: str | None) -> "TargetColumns":
        fits = score == BOTH_SIDES or score_kind(score).task == "regression"
        return replace(self, score=str(score)) if fits else self

    def check_predictions(self, table: TableColumns, kind: ScoreKind) -> None:
        """Reject columns that are missing or not numeric, and a number of columns that does not fit the score."""
        if kind.score is None or kind.task != "regression" or kind.score.difficulty:
            computed = [name for name, score in SCORES.items() if score.task == "regression" and not score.difficulty]
            remedy = "Compute others elsewhere and name their column, or register a confide.Score"
            raise InputError(
                "score", f"must be one of {', '.join(computed)} or {BOTH_SIDES} for predictions", remedy=remedy
            )
        needed = 2 if kind.score.quantiles else 1
        must = f"must name {'one column' if needed == 1 else 'two columns'} for the score {kind.name!r}"
        require("prediction", len(self.predictions) == needed, must, got=str(len(self.predictions)))
        for name in self.predictions:
            table.check_number(name)

    @property
    def _types_in_sql(self) -> dict[str, str]:
        names = self.predictions if self.target is None else (*self.predictions, self.target)
        return dict.fromkeys(names, "number")

    def readers(self, table: TableColumns) -> tuple[RecordReader, ...]:
        """The readers of the columns, after checks; one per threshold."""
        if self.target is None:
            raise InputError("target", "must be given: the column of the true numbers")
        self.check_predictions(table, self.kind)
        table.check_number(self.target)
        return tuple(
            TargetReader(score=kind.name, predictions=self.predictions, target=self.target) for kind in self.kinds
        )

    def _predictor(self, table: TableColumns, release: Release, group: AnyGroup, suffix: str) -> Predictor:
        low, high = (score_of_release(side, "regression") for side in sides_of(release))
        self.check_predictions(table, score_kind(low))
        return interval_predictor(self.predictions, (low, high), release, group, suffix)

    def _comparison(self, table: TableColumns, release: Release) -> tuple[RecordReader, RecordComparison]:
        return self._with_score(score_named_by(release)).readers(table)[0], IntervalOutcomes(release)

    def _scores_read(self, reader: RecordReader, records: LabelledRecords) -> dict[str, NDArray[Any]]:
        scores = super()._scores_read(reader, records)
        if self.kind.family != "cqr":
            return scores
        # Crossing quantiles have width 0
        return scores | {"widths": np.maximum(np.diff(records.outputs, axis=1), 0)[:, 0]}


def _upper_first(lower: str, upper: str) -> bool:
    """Whether the names of two columns, such as y_q95 and y_q05, state that the first contains the upper quantile."""
    first, second = (_QUANTILE_NAME.fullmatch(name.lower()) for name in (lower, upper))
    if first is None or second is None:
        return False
    if first["word"] and second["word"]:
        return first["word"].startswith(("up", "hi")) and second["word"].startswith("lo")
    # A name without a level never has the larger one
    return float(first["level"] or 0) > float(second["level"] or 100)


def class_keys(names: Names) -> Names:
    """The names under which classes are released: positions as numbers, other names unchanged.

    Examples
    --------
    >>> class_keys(("0", "1")), class_keys(("cat", "1"))
    ((0, 1), ('cat', '1'))
    """
    positions = tuple(range(len(names)))
    return positions if tuple(map(canonical_name, names)) == tuple(map(str, positions)) else names


@dataclass(frozen=True)
class ClassColumns(ColumnSpec):
    """A classification score of the record's own class; engines compute LAC, one minus its probability, in SQL.

    Parameters
    ----------
    probabilities
        One column per class: a pattern with one `*`, such as `p_*`, that matches one column per class; the classes are
        then named by the text in place of the `*`. Or the name of one list column. Or, with the names of two `classes`,
        the column of the probability of the second class.
    label
        The column of the true classes: names out of `classes`. It is optional for prediction. Another value is a class
        that the model never learned: no set covers the record, so its score is +inf. A missing value raises an error.
        With `label_positions`, every value that is not a position raises an error, because positions counted from 1 are
        a mistake.
    classes
        The class names, in the order of the columns; by default those of the pattern, otherwise 0 .. K-1. If the `*` of
        a pattern stands for these names, the columns may have another order.
    score
        Any classification score of `class_score`. Randomised ones draw new numbers.
    label_positions
        Whether the label column contains integers that count the classes from 0 although the classes have other names.
    logits
        Whether `probabilities` names logits, or the one logit of two classes. Their softmax is computed in double
        precision, in this process or on Spark's executors, because the exponentials of engines differ in the last bit.
    """

    probabilities: str | tuple[str, ...]
    label: str | None = None
    classes: Names | None = None
    score: str = "lac"
    label_positions: bool = False
    logits: bool = False

    _labelled = True

    def __post_init__(self) -> None:
        check_types(self, probabilities=(str, tuple), label=str, score=str, label_positions=bool, logits=bool)
        if self.classes is not None:
            several("classes", self.classes)
        if isinstance(self.probabilities, tuple) and self.classes is not None:
            check_column_order("classes", tuple(self.classes), self.probabilities)

    @property
    def kind(self) -> ScoreKind:
        """The score's name and range."""
        return score_kind(self.score)

    def columns(self, table: TableColumns, known: int | None = None) -> tuple[NumberColumns, Names]:
        """The columns of probabilities in a table, and the class names.

        `known` is the number of classes if a column of lists has no list and no class names are given.
        """
        if isinstance(self.probabilities, str) and self.label is not None:
            table.type_of(self.label)  # the shorter message first
        # One column of two classes, or one column or entry per class
        names: Names = (0, 1)
        p = self._pair(table)
        if p is None:
            length = known if self.classes is None else len(self.classes)
            p, names = number_columns(table, self.probabilities, "probabilities", leave_out=self.label, length=length)
        # Match the columns with the class names, by name where the columns have names
        classes = names if self.classes is None else tuple(self.classes)
        if len(classes) != p.width:
            raise InputError("classes", "must name every class", got=f"{len(classes)} names for {p.width} classes")
        must = "must differ from one another"
        require("classes", len(set(classes)) == len(classes), must, got=f"{len(classes) - len(set(classes))} repeated")
        matched = p.in_order(column_order("classes", classes, names))
        must = "must have the order of the columns, because label_positions counts the classes in this order"
        require("classes", matched == p or not self.label_positions, must, got="another")
        return replace(matched, logits=self.logits), classes

    def _pair(self, table: TableColumns) -> NumberColumns | None:
        """The one column of two classes, or None if there are others or `probabilities` names something else."""
        column = self.probabilities
        if self.classes is None or len(self.classes) != 2 or not isinstance(column, str) or is_pattern(table, column):
            return None
        kind = table.type_of(column)
        if not is_number(kind) and not (is_text(kind) and table.holds_numbers(column)):
            return None
        table.check_number(column)
        refuse_first_of_pair(column, self.classes)
        return NumberColumns((column,), 2, from_list=False)

    def label_column(self, table: TableColumns, names: Names) -> NamedColumn:
        """The label column of a table."""
        if self.label is None:
            raise InputError("label", "must be given: the column of the true classes")
        return label_column(table, self.label, names, positions=self.label_positions)

    @property
    def _types_in_sql(self) -> dict[str, str]:
        require("logits", not self.logits, "must be left out: their softmax is not computed in SQL", remedy=ELSEWHERE)
        if self.classes is None:
            raise InputError("classes", "must be given, all of them: no table is read that has their names")
        probabilities = self.probabilities
        if not isinstance(probabilities, tuple):
            # The classes are known, so a pattern names its columns without a table
            names = [canonical_name(name) for name in self.classes] if "*" in probabilities else [""]
            probabilities = tuple(probabilities.replace("*", name, 1) for name in names)
        label = {} if self.label is None else {self.label: "position" if self.label_positions else "text"}
        return dict.fromkeys(probabilities, "number") | label

    def readers(self, table: TableColumns) -> tuple[RecordReader, ...]:
        """The reader of the columns, after checks."""
        p, names = self.columns(table)
        label = self.label_column(table, names)
        return (ClassReader(score=self.score, probabilities=p, label=label, takes_entries=table.takes_entries),)

    @property
    def _classified(self) -> "ClassColumns":
        return self

    @property
    def _outputs(self) -> Mapping[str, str]:
        return {"outputs": FROM_LOGITS} if self.logits else {}

    def _with_score(self, score: str | None) -> "ClassColumns":
        return replace(self, score=str(score)) if score_kind(score).task == "classification" else self

    @property
    def _whole(self) -> "ClassColumns":
        return replace(self, score="aps_deterministic")  # depends on all probabilities of a record

    def _class_column(self, table: TableColumns) -> NamedColumn:
        _, names = self.columns(table)
        return replace(self.label_column(table, names), names=class_keys(names))

    def _predictor(self, table: TableColumns, release: Release, group: AnyGroup, suffix: str) -> Predictor:
        score = score_of_release(release, "classification")
        return set_predictor(*self.columns(table, number_of_classes(release)), score, release, group, suffix)

    def _comparison(self, table: TableColumns, release: Release) -> tuple[RecordReader, RecordComparison]:
        (reader,) = self._whole.readers(table)
        p, names = self.columns(table)
        release_class_names(release, p, names)
        return reader, SetOutcomes(release, names)

    def _scores_read(self, reader: RecordReader, records: LabelledRecords) -> dict[str, NDArray[Any]]:
        class_scores = all_scores(records.outputs, self.score)
        place: NDArray[np.int64] = np.asarray(records.truth)
        scores = np.where(place < 0, np.inf, class_scores[np.arange(len(place)), place])
        return {"scores": scores, "class_scores": class_scores}


@dataclass(frozen=True)
class LossColumns(ColumnSpec):
    """Risk control: what a threshold would lose on each record (docs/theory.md, section 7).

    Parameters
    ----------
    losses
        One column per finite candidate, in their order, or one list column. The losses must not increase.
    loss
        The loss's name, recorded in the release.
    bound
        Its largest possible value.
    probabilities, truth
        For the false-negative rate of sets of labels, instead of losses: one column per label or one list column, as in
        `ClassColumns`. `probabilities` names the probabilities, and `truth` whether each label is true. `truth` is
        optional for prediction.
    classes
        The names of the labels.
    """

    losses: str | tuple[str, ...] | None = None
    loss: str = "false_negative_rate"
    bound: float = 1.0
    probabilities: str | tuple[str, ...] | None = None
    truth: str | tuple[str, ...] | None = None
    classes: Names | None = None
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        check_types(self, losses=(str, tuple), loss=str, probabilities=(str, tuple), truth=(str, tuple))
        positive_number("bound", self.bound)
        if (self.losses is None) == (self.probabilities is None):
            raise InputError("losses", "losses or probabilities must be given, and not both")

    @property
    def kind(self) -> ScoreKind:
        """The name of the critical thresholds, and the default candidates for them."""
        kind = score_kind(critical_score(self.loss))
        return kind if self.losses is not None else replace(kind, unregistered_spread=Spread("probability"))

    @property
    def _classified(self) -> "LossColumns | None":
        return None if self.probabilities is None else self

    @property
    def _requested(self) -> dict[str, Any]:
        return {"loss": self.loss, "bound": self.bound}

    def _over(self, candidates: AnyCandidates) -> "LossColumns":
        if self.losses is None:
            return self
        if not isinstance(candidates, Candidates):
            raise _no_candidates()
        return replace(self, candidates=candidates)

    def columns(self, table: TableColumns, known: int | None = None) -> tuple[NumberColumns, Names]:
        """The columns of probabilities in a table, and the label names; `known` is the number of labels, if stated."""
        if self.probabilities is None:
            raise InputError("probabilities", "must be given: sets of labels are made from them")
        p, names = ClassColumns(self.probabilities, None, self.classes).columns(table, known)
        p = replace(p, exclusive=False)
        if p.of_pair:
            must = f"{p.title} holds numbers"
            raise InputError("probabilities", must, remedy="Several labels need one column each, or a column of lists")
        return p, names

    @property
    def _types_in_sql(self) -> dict[str, str]:
        raise InputError("losses", "losses, and sets of several labels, are not computed in SQL", remedy=ELSEWHERE)

    def readers(self, table: TableColumns) -> tuple[RecordReader, ...]:
        """The reader of the columns, after checks."""
        if self.losses is None:
            return (self._label_reader(table),)
        if self.candidates is None:
            raise _no_candidates()
        losses, _ = number_columns(table, self.losses, "losses", length=self.candidates.size - 1)
        if losses.width != self.candidates.size - 1:
            must = "must have one column, or one entry, per finite candidate"
            raise InputError("losses", must, got=f"{losses.width} for {self.candidates.size - 1} candidates")
        name = self.kind.name
        return (LossReader(score=name, losses=losses, candidates=self.candidates, bound=float(self.bound)),)

    def _label_reader(self, table: TableColumns) -> FalseNegativeReader:
        if self.truth is None:
            raise InputError("truth", "must be given: the columns that state which labels are true")
        p, labels = self.columns(table)
        truth, names = number_columns(table, self.truth, "true labels", booleans=True, length=p.width)
        if p.width != truth.width:
            raise InputError("truth", "must name one column per label", got=f"{truth.width} for {p.width} labels")
        if set(p.columns) & set(truth.columns):
            raise InputError("truth", "must name other columns than probabilities", got="some for both")
        truth = truth.in_order(column_order("truth", labels, names, "labels"))
        return FalseNegativeReader(score=self.kind.name, probabilities=p, truth=truth)

    def _predictor(self, table: TableColumns, release: Release, group: AnyGroup, suffix: str) -> Predictor:
        if release.loss != FALSE_NEGATIVES:
            raise InputError("release", "must be of the false-negative rate, to make sets of labels")
        return set_predictor(*self.columns(table, number_of_classes(release)), "lac", release, group, suffix)

    def _comparison(self, table: TableColumns, release: Release) -> tuple[RecordReader, RecordComparison]:
        reader, outcomes = super()._comparison(table, release)
        if self._classified is not None:
            release_class_names(release, *self.columns(table))
        require("release", release.loss is not None, "must be a bound on a loss, to be evaluated on losses")
        return reader, outcomes


def _no_candidates() -> InputError:
    return InputError("candidates", "must be given for losses: the thresholds at which the losses are stated")
