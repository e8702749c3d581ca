"""The options that say which columns are read: what was typed, checked for sense before the table is opened."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import click

from confide.candidates import AnyCandidates, Candidates, Spread
from confide.cli import options as o
from confide.cli.candidates import parse_candidates
from confide.cli.output import warn
from confide.errors import InputError
from confide.releases import FROM_LOGITS, Release, about_of
from confide.scores import FAMILIES, score_kind
from confide.tables import SIDES, Classified, Losses, Regressed, Scored, What

Task: TypeAlias = Literal["score", "classification", "regression", "losses"]

_COMPUTED = {
    "--probabilities": [name for name, family in FAMILIES.items() if family.task == "classification"],
    "--prediction": ["absolute_residual", "gamma"],
    "--prediction LOWER,UPPER": ["cqr", "cqr_low", "cqr_high", SIDES],
}
"""The scores that the command line computes, by the columns that they need; the first is the default."""

_OPTIONS: dict[Task, str] = {
    "score": "--score-column",
    "classification": "--probabilities",
    "regression": "--prediction",
    "losses": "--losses",
}

_COMPANIONS: dict[str, Task] = {
    "label": "classification",
    "truth": "classification",
    "classes": "classification",
    "target": "regression",
    "loss": "losses",
}

Score: TypeAlias = Annotated[
    str | None,
    o.columns(
        "NAME",
        "Of probabilities: lac (default), aps, 'raps(penalty=0.01,k_reg=5)', 'saps(penalty=0.1)', margin, top_k; all "
        "but the last with a public temperature, 'lac(temperature=2)'. Of "
        "LOWER,UPPER: cqr (default), cqr_low, cqr_high, cqr_sides. Of --score-column: its name.",
    ),
]


@dataclass(frozen=True)
class PredictedColumns:
    """What a model says of each record, as a query reads it."""

    probabilities: Annotated[
        str | None,
        o.columns(
            "PATTERN|COLUMN",
            "A pattern such as 'p_*' (quote it), one column per class; or their names, A,B,C; or one list column; or, "
            "with --classes NO,YES, the probability of YES.",
        ),
    ] = None
    classes: Annotated[
        str | None,
        o.columns("A,B,C", "Class names (default: by the columns, or 0, 1, ...)."),
    ] = None
    prediction: Annotated[
        str | None,
        o.columns("COLUMN[,COLUMN]", "Predicted numbers; or two quantiles, LOWER,UPPER."),
    ] = None


@dataclass(frozen=True)
class ModelColumns(PredictedColumns):
    """What a model says of each record."""

    logits: Annotated[
        bool,
        o.columns(None, "--probabilities names logits; softmax is taken.", "--logits"),
    ] = False

    @property
    def predictions(self) -> str | tuple[str, str]:
        """The column of predicted numbers, or those of the lower and the upper quantile."""
        text = self.prediction or ""
        match o.split(text) if "," in text else [text]:
            case [one]:
                return one
            case [lower, upper]:
                return lower, upper
            case names:
                raise click.UsageError(f"--prediction names one column, or two, LOWER,UPPER; found {len(names)}")

    @property
    def class_columns(self) -> str | tuple[str, ...]:
        """What --probabilities names: a pattern, one column, or several between commas."""
        return _column_names(str(self.probabilities))

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The names given with --classes."""
        return None if self.classes is None else tuple(o.split(self.classes))

    @property
    def way(self) -> str:
        """The option that names the columns."""
        if self.probabilities is not None:
            return "--probabilities"
        return "--prediction" if isinstance(self.predictions, str) else "--prediction LOWER,UPPER"

    def to_predict(self, release: Release, path: object) -> What | None:
        """What is read to predict; None if no columns were named."""
        if self.probabilities is not None and self.prediction is not None:
            raise click.UsageError("give one of --probabilities and --prediction, not both")
        if self.probabilities is None and self.prediction is None:
            return None
        self.check_logits(release, path)
        if release.bounded:
            if self.probabilities is None:
                raise InputError(f"calibration {str(path)!r} is one of sets of labels; name their --probabilities")
            return Losses(probabilities=self.class_columns, classes=self.class_names)
        check_fits(self.way, release, path)
        if self.probabilities is not None:
            return Classified(self.class_columns, None, self.class_names, logits=self.logits)
        return Regressed(self.predictions, None, _score_of(release))

    def check_logits(self, release: Release | None = None, path: object = None) -> None:
        """Refuse --logits where there are none, and say if a release was made from logits."""
        if self.logits and (self.probabilities is None or getattr(self, "truth", None) is not None):
            raise click.UsageError("--logits belongs to --probabilities of classes, of which one is true")
        if self.logits and release is not None and release.bounded:
            raise click.UsageError("--logits must be left out for sets of labels: write the sigmoid of their logits")
        if self.probabilities is None or self.logits or release is None:
            return
        if about_of(release).get("outputs") == FROM_LOGITS:
            warn(
                f"calibration {str(path)!r} was made from {FROM_LOGITS}; {self.probabilities!r} is read as "
                "probabilities, which must be that softmax: give --logits for logits"
            )


@dataclass(frozen=True)
class OneTruthColumns:
    """The truth of records of which one class, or one number, is true; or their scores."""

    score_column: Annotated[
        str | None,
        o.columns("COLUMN", "Your own scores: larger means stranger."),
    ] = None
    label: Annotated[
        str | None,
        o.columns("COLUMN", "True classes, by their names."),
    ] = None
    label_positions: Annotated[
        bool,
        o.columns(
            None,
            "The labels count the classes from 0, as integers.",
            "--label-positions",
        ),
    ] = False
    target: Annotated[str | None, o.columns("COLUMN", "True numbers, for regression.")] = None


@dataclass(frozen=True)
class CountedColumns(OneTruthColumns, PredictedColumns):
    """The columns that a query counts, and the score that it computes of them."""

    score: Score = None

    @property
    def all(self) -> "Columns":
        """The same among all that there are."""
        return Columns(**vars(self))


@dataclass(frozen=True)
class TrueColumns(OneTruthColumns, ModelColumns):
    """The columns of records whose truth is known, for a score and a loss that are known from elsewhere."""

    truth: Annotated[
        str | None,
        o.columns(
            "PATTERN|COLUMN",
            "Instead of --label, where several can be true: 1 or 0 for each. Alpha bounds the share missed.",
        ),
    ] = None
    losses: Annotated[
        str | None,
        o.columns(
            "PATTERN|COLUMN",
            "Risk control: losses at every finite candidate, bounded by alpha; needs --candidates and --loss.",
        ),
    ] = None

    ways = "--probabilities with --label, --prediction with --target, or --score-column"


@dataclass(frozen=True)
class Columns(TrueColumns):
    """The columns of records whose truth is known, and what is made of them."""

    score: Score = None
    loss: Annotated[str | None, o.columns("NAME", "With --losses: the loss's name.")] = None
    bound: Annotated[float, o.columns("NUMBER", "With --losses: the largest loss.")] = 1.0

    @property
    def task(self) -> Task | None:
        """What the columns are for; None if none were named."""
        given: dict[Task, str | None] = {
            "score": self.score_column,
            "classification": self.probabilities,
            "regression": self.prediction,
            "losses": self.losses,
        }
        tasks = [task for task, value in given.items() if value is not None]
        if len(tasks) > 1:
            raise click.UsageError(f"give one of {' and '.join(_OPTIONS[task] for task in tasks)}, not both")
        task = tasks[0] if tasks else None
        if self.score is not None and task is not None:
            self._check_score(task)
        for name, owner in _COMPANIONS.items():
            if getattr(self, name) is not None and task is not None and task != owner:
                raise click.UsageError(f"--{name} belongs to {_OPTIONS[owner]}, not to {_OPTIONS[task]}")
        if self.logits and task != "classification":
            self.check_logits()
        if self.label_positions and self.label is None:
            raise click.UsageError("--label-positions belongs to --label")
        return task

    @property
    def one_score(self) -> bool:
        """Whether each record has one score, and so one threshold at the level alpha."""
        return self.task in ("score", "classification", "regression") and self.truth is None and self.score != SIDES

    def what(self, candidates: Candidates | None = None) -> What | None:
        """What is read of each record; None if no columns were named."""
        match self.task:
            case "score":
                return Scored(str(self.score_column), self.score)
            case "classification":
                self.check_logits()
                if self.truth is not None:
                    if self.label is not None:
                        raise click.UsageError("give one of --label and --truth, not both")
                    if self.score is not None:
                        raise click.UsageError("--score must be left out with --truth")
                    truth = _column_names(self.truth)
                    return Losses(probabilities=self.class_columns, truth=truth, classes=self.class_names)
                if self.label is None:
                    raise click.UsageError("--probabilities needs --label, the column of the true classes")
                score, counted = self.score or "lac", self.label_positions
                return Classified(self.class_columns, self.label, self.class_names, score, counted, self.logits)
            case "regression":
                if self.target is None:
                    raise click.UsageError("--prediction needs --target, the column of the true values")
                return Regressed(self.predictions, self.target, self.score or _COMPUTED[self.way][0])
            case "losses":
                if self.loss is None:
                    raise click.UsageError("--losses needs --loss, the name of the loss")
                return Losses(self.losses, self.loss, self.bound, candidates=candidates)
        return None

    def to_evaluate(self, release: Release, path: object, candidates: Candidates | None = None) -> What | None:
        """What is read to evaluate a release, whose score counts."""
        what = self.what(candidates)
        self.check_logits(release, path)
        if isinstance(what, Scored):
            if release.by == "side":
                raise click.UsageError("a calibration of two sides needs --prediction LOWER,UPPER with --target")
            return Scored(what.column, _score_of(release) if self.score is None else self.score)
        if isinstance(what, Classified | Regressed):
            check_fits(self.way, release, path)
        if isinstance(what, Regressed):
            return Regressed(what.prediction, what.target, _score_of(release) or what.score)
        return what

    def _check_score(self, task: Task) -> None:
        """Any name for a column of scores, else one that these columns give."""
        if task in ("score", "losses") or _computes(self.way, self.score):
            return
        names = ", ".join(_COMPUTED[self.way])
        if task == "regression":
            one_of = "one of " if "," in names else ""
            raise click.UsageError(f"--score must be left out, or be {one_of}{names}, with {self.way}")
        raise click.UsageError(
            f"--score must be one of {names} with {self.way}, with its parameters; another score belongs to "
            "--score-column"
        )


def _column_names(text: str) -> str | tuple[str, ...]:
    return tuple(o.split(text)) if "," in text and "*" not in text else text


def check_fits(way: str, release: Release, path: object) -> None:
    """Refuse a release that was made for another score than these columns give."""
    for part in release.parts.values():
        made_for = part.score
        if made_for is None:
            raise InputError(
                f"calibration {str(path)!r} does not name its score, so {way} cannot give it; calibrate with --score "
                "NAME, or compare your own scores with its threshold"
            )
        if _computes(way, made_for):
            continue
        remedy = "only its own program computes that score; use threshold from `confide show` there"
        if right := next((other for other in _COMPUTED if _computes(other, made_for)), None):
            remedy = f"name the columns with {right}"
        raise InputError(
            f"calibration {str(path)!r} was made for the score {made_for!r}, and {way} gives the score "
            f"{_COMPUTED[way][0]!r}; {remedy}"
        )


def chosen_candidates(spec: str | None, unit: float | None, what: What | None) -> AnyCandidates:
    """The candidates that --candidates or --unit ask for; None for those that suit the score."""
    if spec is not None and unit is not None:
        raise click.UsageError("give one of --candidates and --unit, not both")
    if unit is None:
        return parsed(spec)
    if not isinstance(what, Regressed | Scored):
        raise click.UsageError("--unit belongs to --prediction or --score-column")
    return what.kind.spread(unit)


def parsed(spec: str | None) -> AnyCandidates:
    """The candidates that --candidates asks for, or how they are spread."""
    return None if spec is None else parse_candidates(spec)


def parsed_list(spec: str | None) -> Candidates | None:
    """The same where only a list will do."""
    found = parsed(spec)
    if isinstance(found, Spread | int):
        raise InputError(f"--candidates must be the list that losses belong to, as unit:1000; found {spec!r}")
    return found


def _score_of(release: Release) -> str | None:
    """The score of a regression release."""
    return SIDES if release.by == "side" else release.first.score


def _computes(way: str, score: str | None) -> bool:
    """Whether the command line computes this score from these columns."""
    return score in _COMPUTED[way] or (way == "--probabilities" and score_kind(score).task == "classification")
