"""Which columns a command reads: what was typed, checked for sense before the file is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import click

from confide.errors import InputError
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.scores.kinds import FAMILIES, score_kind
from confide.tables import choose
from confide.tables.parts import Label, Number, Probabilities
from confide.tables.source import Table

Task: TypeAlias = Literal["score", "classification", "regression"]

_COMPUTED = {
    "--probabilities": [name for name, family in FAMILIES.items() if family.task == "classification"],
    "--prediction": ["absolute_residual"],
    "--prediction LOWER,UPPER": ["cqr", "cqr_low", "cqr_high"],
}
"""The scores that the command line computes, by the columns that they need; the first is the default."""

_OPTIONS: dict[Task, str] = {
    "score": "--score-column",
    "classification": "--probabilities",
    "regression": "--prediction",
}


@dataclass(frozen=True)
class Scored:
    """A column of ready-made scores."""

    column: Number


@dataclass(frozen=True)
class Classified:
    """Class probabilities, with the label column if it was asked for."""

    probabilities: Probabilities
    label: Label | None


@dataclass(frozen=True)
class Regressed:
    """Predicted numbers, or lower and upper predicted quantiles, with the target column if it was asked for."""

    predictions: tuple[Number, ...]
    target: Number | None


@dataclass(frozen=True)
class Columns:
    """The column options of a command line."""

    score_column: str | None = None
    score: str | None = None
    probabilities: str | None = None
    label: str | None = None
    classes: str | None = None
    prediction: str | None = None
    target: str | None = None
    ways: str = "--probabilities with --label, --prediction with --target, or --score-column"

    @property
    def task(self) -> Task | None:
        """What the columns are for; None if none were named.

        Raises
        ------
        click.UsageError
            If options contradict one another.
        """
        given: dict[Task, str | None] = {
            "score": self.score_column,
            "classification": self.probabilities,
            "regression": self.prediction,
        }
        tasks = [task for task, value in given.items() if value is not None]
        if len(tasks) > 1:
            raise click.UsageError(f"give one of {' and '.join(_OPTIONS[task] for task in tasks)}, not both")
        task = tasks[0] if tasks else None
        if self.score is not None and task is not None:
            self._check_score(task)
        companions: tuple[tuple[str, str | None, Task], ...] = (
            ("--label", self.label, "classification"),
            ("--classes", self.classes, "classification"),
            ("--target", self.target, "regression"),
        )
        for option, value, owner in companions:
            if value is not None and task is not None and task != owner:
                raise click.UsageError(f"{option} belongs to {_OPTIONS[owner]}, not to {_OPTIONS[task]}")
        return task

    def check_truth(self) -> None:
        """Refuse probabilities without labels, and predictions without targets."""
        if self.task == "classification" and self.label is None:
            raise click.UsageError("--probabilities needs --label, the column of the true classes")
        if self.task == "regression" and self.target is None:
            raise click.UsageError("--prediction needs --target, the column of the true values")

    def _check_score(self, task: Task) -> None:
        """Any name for a column of scores, else one that these columns give."""
        if task == "score" or _computes(self._way, self.score):
            return
        names = ", ".join(_COMPUTED[self._way])
        if task == "regression":
            one_of = "one of " if "," in names else ""
            raise click.UsageError(f"--score must be left out, or be {one_of}{names}, with {self._way}")
        raise click.UsageError(
            f"--score must be one of {names} with {self._way}, with its parameters; "
            "another score belongs to --score-column"
        )

    @property
    def predictions(self) -> tuple[str, ...]:
        """The column of predicted numbers, or those of the lower and the upper quantile."""
        text = self.prediction or ""
        names = tuple(split(text)) if "," in text else (text,)
        if len(names) > 2:
            raise click.UsageError(f"--prediction names one column, or two, LOWER,UPPER; found {len(names)}")
        return names

    @property
    def _way(self) -> str:
        if self.probabilities is not None:
            return "--probabilities"
        return "--prediction" if len(self.predictions) == 1 else "--prediction LOWER,UPPER"

    @property
    def score_name(self) -> str | None:
        """The name of the score that these columns give."""
        return self.score or (None if self.task in (None, "score") else _COMPUTED[self._way][0])

    @property
    def class_names(self) -> Sequence[str] | None:
        """The names given with --classes."""
        return None if self.classes is None else split(self.classes)

    def open(self, table: Table) -> "Scored | Classified | Regressed":
        """The columns in the file, or a refusal that says what can be named and which columns there are."""
        if self.score_column is not None:
            return Scored(choose.score(table, self.score_column, self.score))
        if self.probabilities is not None:
            if self.label is not None:
                table.kind(self.label)  # the shorter message first
            p = choose.probabilities(table, self.probabilities, self.class_names, self.label)
            return Classified(p, None if self.label is None else choose.label(table, self.label, p.names))
        if self.prediction is not None:
            target = None if self.target is None else choose.number(table, self.target)
            return Regressed(tuple(choose.number(table, name) for name in self.predictions), target)
        raise InputError(f"say which columns to read, by {self.ways}; {table.existing()}")

    def check_fits(self, calibration: Calibration | GroupCalibration, path: object) -> None:
        """Refuse a calibration that was made for another score."""
        made_for, task = calibration.score, self.task
        if made_for is None and task == "regression" and len(self.predictions) > 1:
            raise InputError(f"calibration {str(path)!r} does not name its score, which {self._way} needs to be cqr")
        if task is None or task == "score" or made_for is None or _computes(self._way, made_for):
            return
        right = next((way for way in _COMPUTED if _computes(way, made_for)), None)
        remedy = (
            f"name the columns with {right}"
            if right
            else "only its own program computes that score; use threshold from `confide show` there"
        )
        raise InputError(
            f"calibration {str(path)!r} was made for the score {made_for!r}, and {self._way} gives the score "
            f"{_COMPUTED[self._way][0]!r}; {remedy}"
        )


def _computes(way: str, score: str | None) -> bool:
    """Whether the command line computes this score from these columns."""
    return score in _COMPUTED[way] or (way == "--probabilities" and score_kind(score).task == "classification")


def split(text: str) -> list[str]:
    """Names between commas.

    Examples
    --------
    >>> split("cat, dog")
    ['cat', 'dog']
    """
    return [name.strip() for name in text.split(",")]
