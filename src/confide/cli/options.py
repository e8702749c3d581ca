"""The options that commands share, with their help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import click
import typer

from confide.errors import InputError
from confide.mechanisms import MECHANISMS, NEIGHBORS
from confide.releases import LevelCalibration, Release
from confide.selection import SELECTORS
from confide.tables import People

_COLUMNS, _PROMISE, _PRIVACY, _OUTPUT = "Columns", "Coverage promise", "Privacy", "Output"

Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A .parquet, .csv, .tsv (also .gz), .arrow, .feather or .ipc file; a folder of them or a quoted pattern; "
        "- for standard input; or with --table a database (postgresql://USER@HOST/DB, duckdb://FILE, sqlite://FILE, "
        "...) or a Spark master (spark://HOST:PORT, local[2]).",
    ),
]
TableName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        rich_help_panel=_COLUMNS,
        help="The table of the database, perhaps as SCHEMA.NAME; for Spark also a path of Parquet files.",
    ),
]
Person: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=_PRIVACY,
        help="Who owns each record. With --max-records-per-person and --order, no more of one person's records count, "
        "and the loss is stated per person.",
    ),
]
MostPerPerson: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--max-records-per-person", metavar="K", rich_help_panel=_PRIVACY, help="How many records of one person count."
    ),
]
Order: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,...",
        rich_help_panel=_PRIVACY,
        help="Columns that tell one person's records apart, but no scores or labels; the first K in that order count.",
    ),
]
Sample: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        rich_help_panel=_PRIVACY,
        help="Take K of each person's records by a hash of this text and the order's columns instead of the first K.",
    ),
]
Probabilities: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN|COLUMN",
        rich_help_panel=_COLUMNS,
        help="Class probabilities: a pattern such as 'p_*' (quote it) with one column per class, named by what the * "
        "stands for; or one list column.",
    ),
]
Label: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=_COLUMNS,
        help="True classes: names, or integers (positions 0, 1, ... unless the class names are integers).",
    ),
]
Truth: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN|COLUMN",
        rich_help_panel=_COLUMNS,
        help="Instead of --label, where several labels can be true: for each class 1 or 0. Then alpha bounds the "
        "expected share of true labels that a set misses.",
    ),
]
LossColumns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--losses",
        metavar="PATTERN|COLUMN",
        rich_help_panel=_COLUMNS,
        help="Risk control: the loss of each record at every finite candidate, in their order; alpha bounds its "
        "expectation. Needs --candidates and --loss.",
    ),
]
LossName: TypeAlias = Annotated[
    str | None, typer.Option("--loss", metavar="NAME", rich_help_panel=_COLUMNS, help="With --losses: the loss's name.")
]
LossBound: TypeAlias = Annotated[
    float, typer.Option("--bound", metavar="NUMBER", rich_help_panel=_COLUMNS, help="With --losses: the largest loss.")
]
Classes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        rich_help_panel=_COLUMNS,
        help="Class names in the order of the probabilities, if the columns do not tell (default: 0, 1, ...).",
    ),
]
Prediction: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[,COLUMN]",
        rich_help_panel=_COLUMNS,
        help="Predicted numbers, for regression; or LOWER,UPPER, the columns of two predicted quantiles, for CQR.",
    ),
]
Target: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=_COLUMNS, help="True numbers, for regression.")
]
ScoreColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=_COLUMNS,
        help="Conformity scores that you computed yourself: one number per record, larger means stranger.",
    ),
]
Score: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=_COLUMNS,
        help="With --probabilities: lac (default), aps, 'raps(penalty=0.01,k_reg=5)', 'saps(penalty=0.1)', margin or "
        "top_k; aps_randomised etc. With --prediction LOWER,UPPER: cqr (default), cqr_low, cqr_high, cqr_sides for a "
        "threshold of each side. With "
        "--score-column: the name of that score. It is recorded in the calibration.",
    ),
]
Alpha: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        rich_help_panel=_PROMISE,
        help="Share of truths that may be missed: 0.1 asks for 90 % coverage. A decimal number or a fraction; several, "
        "as 0.2,0.1, for nested thresholds under one budget.",
    ),
]
OneLevel: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--alpha",
        metavar="LEVEL",
        rich_help_panel=_COLUMNS,
        help="Of a calibration of several levels, this one only (default: all of them).",
    ),
]
Delta: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PROBABILITY",
        rich_help_panel=_PROMISE,
        help="Promise the coverage for this calibration, with probability 1 - delta, instead of on average.",
    ),
]
Epsilon: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=_PRIVACY,
        help="Privacy loss that one person may suffer; smaller is more private. 1 is a common choice.",
    ),
]
Rho: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", rich_help_panel=_PRIVACY, help="zCDP loss, instead of --epsilon."),
]
NeighborsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="RELATION",
        click_type=click.Choice(NEIGHBORS),
        rich_help_panel=_PRIVACY,
        help="add_remove: whether a record is there at all stays secret, and so does their number. "
        "replace_one: what a record says stays secret, their number is public.",
    ),
]
RecordsPerPerson: TypeAlias = Annotated[
    int,
    typer.Option(metavar="K", rich_help_panel=_PRIVACY, help="The most records that belong to one person (public)."),
]
PublicNumber: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--n",
        metavar="N",
        rich_help_panel=_PRIVACY,
        help="The public number of records under --neighbors replace_one; another number is refused. For databases and "
        "Spark it is needed with --ledger, which is charged before they are asked.",
    ),
]
NMin: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N",
        rich_help_panel=_PRIVACY,
        help="A public lower bound on the secret number of records; the promise holds from there on.",
    ),
]
NTypical: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        rich_help_panel=_PRIVACY,
        help="A public guess of the secret number of records; it touches efficiency only.",
    ),
]
SelectorOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        click_type=click.Choice(SELECTORS),
        rich_help_panel=_PRIVACY,
        help="How the threshold is drawn: permute_and_flip (default) or exponential (default with --rho).",
    ),
]
MechanismOption: TypeAlias = Annotated[
    str,
    typer.Option(
        click_type=click.Choice(MECHANISMS),
        rich_help_panel=_PRIVACY,
        help="`slopes`, or a published method to compare with. `none` is NOT PRIVATE and takes no epsilon; `pps` and "
        "`pps-laplace` need --neighbors replace_one; `opendp-quantile` promises no coverage.",
    ),
]
CandidatesSpec: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        rich_help_panel=_PRIVACY,
        help="Public candidate thresholds, such as unit:1000, unit:1000:logit, geometric:UNIT, sinh:UNIT or anything "
        "(default: those that suit the score).",
    ),
]
Unit: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=_PRIVACY,
        help="For regression: a public typical size of the target, around which candidates are made.",
    ),
]
ByColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        rich_help_panel=_COLUMNS,
        help="Thresholds per group: the column that names each record's group; with --score-column and thresholds per "
        "class the true class.",
    ),
]
GroupNames: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="A,B,C",
        rich_help_panel=_COLUMNS,
        help="With --by, one threshold for each of these groups, so that each is covered on its own: a public list, "
        "from a code book and not from the records. Rows of another group are refused.",
    ),
]
ByClass: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--by-class", rich_help_panel=_COLUMNS, help="One threshold for each class, so that each is covered on its own."
    ),
]
Partition: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=_PRIVACY,
        help="With --ledger and groups: the public name of this way to divide the records, such as ward; one name must "
        "always stand for one way.",
    ),
]
CalibrationFile: TypeAlias = Annotated[
    Path,
    typer.Option(metavar="FILE", rich_help_panel="Columns", help="The calibration, as `confide calibrate` wrote it."),
]
Out: TypeAlias = Annotated[Path, typer.Option(metavar="FILE", rich_help_panel=_OUTPUT, help="Where to write.")]
Force: TypeAlias = Annotated[
    bool, typer.Option("--force", rich_help_panel=_OUTPUT, help="Replace the output if it exists.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", rich_help_panel=_OUTPUT, help="Print one JSON document instead of text.")
]


@dataclass(frozen=True)
class PeopleOptions:
    """How many records of each person count."""

    person: Person = None
    max_records_per_person: MostPerPerson = None
    order: Order = None
    sample: Sample = None

    @property
    def people(self) -> People | None:
        """Who owns which record; None if that is not asked."""
        if (self.person, self.max_records_per_person, self.order, self.sample) == (None, None, None, None):
            return None
        if self.person is None or self.max_records_per_person is None or self.order is None:
            raise InputError("--person, --max-records-per-person and --order must be given together")
        return People(self.person, self.max_records_per_person, tuple(split(self.order)), self.sample)


@dataclass(frozen=True)
class GroupOptions:
    """What thresholds depend on."""

    by: ByColumn = None
    groups: GroupNames = None
    by_class: ByClass = False
    partition: Partition = None

    def arguments(self, *, label: str | None, with_ledger: bool) -> dict[str, Any]:
        """What `calibrate_table` takes of them; nothing for one threshold.

        Raises
        ------
        click.UsageError
            If options contradict one another, or lack one.
        """
        if self.by is None and self.groups is None and not self.by_class:
            if self.partition is not None:
                raise click.UsageError("--partition belongs to --by or --by-class")
            return {}
        if self.by_class and (self.by is not None or self.groups is not None):
            raise click.UsageError("give --by with --groups, or --by-class, not both")
        if with_ledger != (self.partition is not None):
            raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger; give both")
        if self.by_class and label is None:
            raise click.UsageError("--by-class needs --probabilities and --label")
        if not self.by_class and (self.by is None or self.groups is None):
            raise click.UsageError(
                "--by, the column, and --groups, the public list of its values, must be given together"
            )
        names = None if self.groups is None else tuple(split(self.groups))
        return {"by": self.by, "groups": names, "by_class": self.by_class, "partition": self.partition}


@dataclass(frozen=True)
class PrivacyOptions:
    """What a release may cost, and how it is drawn."""

    epsilon: Epsilon = None
    rho: Rho = None
    neighbors: NeighborsOption = "add_remove"
    records_per_person: RecordsPerPerson = 1
    n_min: NMin = 1
    n_typical: NTypical = None
    selector: SelectorOption = None
    delta: Delta = None


def at_level(release: Release, alpha: str | None) -> Release:
    """The calibration of one level of a release; the release itself if no level is named."""
    if alpha is None:
        return release
    if not isinstance(release, LevelCalibration):
        raise InputError("--alpha belongs to a calibration of several levels")
    return release[alpha]


def split(text: str) -> list[str]:
    """Names between commas.

    Examples
    --------
    >>> split("cat, dog")
    ['cat', 'dog']
    """
    return [name.strip() for name in text.split(",")]
