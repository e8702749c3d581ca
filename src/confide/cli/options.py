"""The options that commands share, with their help."""

from pathlib import Path
from typing import Annotated, TypeAlias

import click
import typer

from confide.mechanisms.interface import MECHANISMS
from confide.mechanisms.privacy import NEIGHBORS
from confide.selection.selector import SELECTORS

_COLUMNS, _PROMISE, _PRIVACY, _OUTPUT = "Columns", "Coverage promise", "Privacy", "Output"

File: TypeAlias = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .parquet, .csv, .tsv, .arrow, .feather or .ipc file.")
]
Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A .parquet, .csv, .tsv, .arrow, .feather or .ipc file; a glob of Parquet files (quote it); or with "
        "--table a database (postgresql://USER@HOST/DB, duckdb://FILE) or a Spark master (spark://HOST:PORT, "
        "local[2]).",
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
        "top_k; aps_randomised etc. With --prediction LOWER,UPPER: cqr (default), cqr_low or cqr_high. With "
        "--score-column: the name of that score. It is recorded in the calibration.",
    ),
]
Alpha: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="LEVEL",
        rich_help_panel=_PROMISE,
        help="Share of truths that may be missed: 0.1 asks for 90 % coverage. A decimal number or a fraction.",
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
        help="The public number of records under --neighbors replace_one; another number is refused. For databases, "
        "Spark and globs it is needed with --ledger, which is charged before they are asked.",
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
