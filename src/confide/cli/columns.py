"""The options that name columns, checked before the table is opened."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import click

from confide.candidates import Candidates
from confide.cli.choices import split
from confide.cli.output import print_warning
from confide.core import FROM_LOGITS, Release
from confide.errors import InputError
from confide.scores import LIBRARY, score_kind
from confide.tables import SIDES, ClassColumns, ColumnSpec, LossColumns, ScoreColumn, TargetColumns

Task: TypeAlias = Literal["score", "classification", "regression", "losses"]

_COMPUTED = {
    "--probabilities": [score.name for score in LIBRARY if score.task == "classification"],
    "--prediction": ["absolute_residual", "gamma"],
    "--prediction LOWER,UPPER": ["cqr", "cqr_low", "cqr_high", SIDES],
}
"""The scores that the command line computes, by the option of their columns; the first is the default."""


@dataclass(frozen=True)
class Columns:
    """The columns to read, and the score; a command has the fields that it needs."""

    probabilities: str | None = None
    classes: str | None = None
    prediction: str | None = None
    logits: bool = False
    score_column: str | None = None
    label: str | None = None
    label_positions: bool = False
    target: str | None = None
    truth: str | None = None
    losses: str | None = None
    score: str | None = None
    loss: str | None = None
    bound: float = 1.0

    ALTERNATIVES: ClassVar[str] = "--probabilities with --label, --prediction with --target, or --score-column"

    @property
    def predictions(self) -> str | tuple[str, str]:
        """The column of predicted numbers, or the columns of the lower and the upper quantile."""
        text = self.prediction or ""
        match split(text) if "," in text else [text]:
            case [one]:
                return one
            case [lower, upper]:
                return lower, upper
            case names:
                raise click.UsageError(f"--prediction must name one column, or two, LOWER,UPPER; got {len(names)}")

    @property
    def class_columns(self) -> str | tuple[str, ...]:
        """The columns of --probabilities: a pattern, one column, or several between commas."""
        return _column_names(str(self.probabilities))

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names of --classes."""
        return None if self.classes is None else tuple(split(self.classes))

    @property
    def way(self) -> str:
        """The option that names the columns."""
        if self.probabilities is not None:
            return "--probabilities"
        return "--prediction" if isinstance(self.predictions, str) else "--prediction LOWER,UPPER"

    def to_predict(self, release: Release, path: object) -> ColumnSpec | None:
        """The columns for a prediction; None if none were named."""
        if self.probabilities is None and self.prediction is None:
            return None
        self.check_logits(release, path)
        if release.loss:
            if self.probabilities is None:
                raise InputError(
                    "calibration", f"{str(path)!r} is for sets of labels", remedy="Name their --probabilities"
                )
            return LossColumns(probabilities=self.class_columns, classes=self.class_names)
        check_score(self.way, release, path)
        if self.probabilities is not None:
            return ClassColumns(self.class_columns, None, self.class_names, logits=self.logits)
        return TargetColumns(self.predictions, None, _score_of(release))

    def check_logits(self, release: Release, path: object) -> None:
        """Reject --logits for sets of labels; warn if a release was computed from logits and none are named."""
        if self.logits and release.loss:
            raise click.UsageError("--logits must be left out for sets of labels: write the sigmoid of their logits")
        if self.probabilities is None or self.logits:
            return
        if release.about.get("outputs") == FROM_LOGITS:
            print_warning(
                f"calibration {str(path)!r} was made from {FROM_LOGITS}; {self.probabilities!r} is read as "
                "probabilities, which must be that softmax: give --logits for logits"
            )

    @property
    def task(self) -> Task | None:
        """The task of the columns; None if none were named."""
        given: dict[Task, str | None] = {
            "score": self.score_column,
            "classification": self.probabilities,
            "regression": self.prediction,
            "losses": self.losses,
        }
        task = next((task for task, value in given.items() if value is not None), None)
        if self.score is not None and task is not None:
            self._check_score(task)
        return task

    def columns_to_read(self, candidates: Candidates | None = None) -> ColumnSpec | None:
        """The columns to read; None if none were named."""
        match self.task:
            case "score":
                return ScoreColumn(str(self.score_column), self.score)
            case "classification":
                if self.truth is not None:
                    truth = _column_names(self.truth)
                    return LossColumns(probabilities=self.class_columns, truth=truth, classes=self.class_names)
                if self.label is None:
                    raise click.UsageError("--probabilities needs --label, the column of the true classes")
                score, counted = self.score or "lac", self.label_positions
                return ClassColumns(self.class_columns, self.label, self.class_names, score, counted, self.logits)
            case "regression":
                if self.target is None:
                    raise click.UsageError("--prediction needs --target, the column of the true values")
                return TargetColumns(self.predictions, self.target, self.score or _COMPUTED[self.way][0])
            case "losses":
                if self.loss is None:
                    raise click.UsageError("--losses needs --loss, the name of the loss")
                return LossColumns(self.losses, self.loss, self.bound, candidates=candidates)
        return None

    def to_evaluate(self, release: Release, path: object, candidates: Candidates | None = None) -> ColumnSpec | None:
        """The columns for an evaluation with the score of a release."""
        what = self.columns_to_read(candidates)
        self.check_logits(release, path)
        if isinstance(what, ScoreColumn):
            if release.by == "side":
                raise click.UsageError("a release of two sides needs --prediction LOWER,UPPER with --target")
            return ScoreColumn(what.column, _score_of(release) if self.score is None else self.score)
        if isinstance(what, ClassColumns | TargetColumns):
            check_score(self.way, release, path)
        if isinstance(what, TargetColumns):
            return TargetColumns(what.prediction, what.target, _score_of(release) or what.score)
        return what

    def _check_score(self, task: Task) -> None:
        """Check --score: any name for a column of scores, else a score that these columns give."""
        if task in ("score", "losses") or _computes(self.way, self.score):
            return
        names = ", ".join(_COMPUTED[self.way])
        if task == "regression":
            one_of = "one of " if "," in names else ""
            raise click.UsageError(f"--score must be left out, or be {one_of}{names}, with {self.way}")
        raise click.UsageError(
            f"--score must be one of {names} with {self.way}, with its parameters; for other scores use --score-column"
        )


def _column_names(text: str) -> str | tuple[str, ...]:
    return tuple(split(text)) if "," in text and "*" not in text else text


def check_score(way: str, release: Release, path: object) -> None:
    """Check that a release is for the score that these columns give."""
    for part in release.parts.values():
        made_for = part.score
        if made_for is None:
            raise InputError(
                "calibration",
                f"{str(path)!r} does not name its score, so {way} cannot give it",
                remedy="Calibrate with --score NAME, or compare your own scores with its threshold",
            )
        if _computes(way, made_for):
            continue
        remedy = "only its own program computes that score; use the threshold of `confide show` there"
        if right := next((other for other in _COMPUTED if _computes(other, made_for)), None):
            remedy = f"name the columns with {right}"
        raise InputError(
            "calibration",
            (f"{str(path)!r} was made for the score {made_for!r}, and {way} gives the score {_COMPUTED[way][0]!r}"),
            remedy=remedy,
        )


def _score_of(release: Release) -> str | None:
    """The score of a regression release."""
    return SIDES if release.by == "side" else release.score


def _computes(way: str, score: str | None) -> bool:
    """Whether the command line computes this score from these columns."""
    return score in _COMPUTED[way] or (way == "--probabilities" and score_kind(score).task == "classification")
