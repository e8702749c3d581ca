"""The arguments of each command, which are those of the Python API; and the options: name, type and help of each.

`OPTIONS` has a row for each field of a command (`confide.cli.command`); `BY_COMMAND` has the rows that differ in one
command or in all commands of a group. Arguments and values are stated here again, so that `--help` needs neither NumPy
nor a table's engine; a test compares them with the API.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import click

from confide.errors import InputError

# The environment variable that names a default ledger
DEFAULT_LEDGER = "CONFIDE_LEDGER"

# Values of options

Neighbors: TypeAlias = Literal["add_remove", "replace_one"]
NEIGHBORS = get_args(Neighbors)
RULES = ("basic", "zcdp")
METHODS = ("private-qq", "secure-sum", "fedcp2-qq", "fedcp2-qq-sum")
DIALECTS = ("duckdb", "postgres", "spark", "databricks", "snowflake", "bigquery", "datafusion")

# Arguments, which options or `--set NAME=VALUE` state

# The columns of a score, and the score
COLUMN_NAMES = (
    "probabilities", "label", "classes", "score", "label_positions", "logits", "prediction", "target", "column",
    "losses", "loss", "bound", "truth",
)  # fmt: skip

PEOPLE = "people"
PEOPLE_NAMES = ("person", "most", "order", "sample")
READING = ("decimal", "skip_incomplete")

# Of a ledger's charge, without options
ACCOUNTING = ("one_cell", "charged_by", "ledger_key")

REQUEST_NAMES = (
    "alpha", "epsilon", "rho", "neighbors", "n", "n_min", "delta", "records_per_person", "mechanism", "candidates",
    "unit", "by", "groups", "by_class", "partition", "shares", "share_low", "class_weights", "weights", "weight_bound",
    "skip_incomplete", "about", "fingerprint",
)  # fmt: skip
CHOICE_NAMES = ("choose", "choice_share", "largest_size")
NOISE_NAMES = ("noise", "n_noisy", "n_noise")

# Of a request, and of the command that makes a release of it
NAMES = frozenset([*COLUMN_NAMES, *READING, *REQUEST_NAMES, *CHOICE_NAMES, *NOISE_NAMES, PEOPLE])
CALIBRATE = NAMES | {*ACCOUNTING}

# Of a renewal; all others are those of the release
RENEWED = ("epsilon", "rho", "candidates", "about", "fingerprint", "by", "n", "weights", "partition")
RECALIBRATE = frozenset([*COLUMN_NAMES, *READING, *RENEWED, PEOPLE, *ACCOUNTING])

PREDICT = frozenset(
    [*READING, "probabilities", "classes", "prediction", "logits", "alpha", "by", "keep", "fingerprint"]
)

PRIVATE_NAMES = (
    "epsilon", "neighbors", "n", "records_per_person", "group_names", "parts", "width_bins", "confidence",
)  # fmt: skip
EVALUATE = frozenset([*COLUMN_NAMES, *READING, *PRIVATE_NAMES, *ACCOUNTING, PEOPLE]).union(
    ("candidates", "alpha", "by", "fingerprint")
)

LOOK_NAMES = (
    "batch", "tolerance", "looks", "error", "neighbors", "records_per_person", "reference", "correct", "delay",
    "epsilon", "unlabelled",
)  # fmt: skip
WATCH = frozenset([*COLUMN_NAMES, *READING, *LOOK_NAMES, "alpha", "by", "fingerprint", *ACCOUNTING])

# Of a federation: the choices of its plan, which a request may also state, and the arguments of a silo's answer
PLAN_NAMES = (
    "about", "candidates", "classes", "closes", "colluding", "delta", "dropouts", "liars", "method", "missing", "n_min",
    "n_typical", "neighbors", "population", "score", "shares", "unit",
)  # fmt: skip
FEDERATED_PLAN = NAMES | {*PLAN_NAMES}
ANSWER = frozenset([*COLUMN_NAMES, *READING, PEOPLE, "by"])


# Types of options


def check_address(value: object, param: click.Parameter | None) -> None:
    """Reject an address with a password: other users of the machine and the shell's history would show it."""
    from confide.support import has_password

    if isinstance(value, str) and has_password(value):
        typed = "address"
        if param is not None:
            typed = str(param.metavar) if isinstance(param, click.Argument) else param.opts[0]
        remedy = "Use the driver's environment variables (PGPASSWORD, a service file) instead"
        raise InputError(typed, "an address carries no password", remedy=remedy)


class PlaceType(click.Path):
    """A file, or the address of an object in a store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file of this name, or the object of this address."""
        from confide.support import ObjectPath, as_place

        check_address(value, param)
        return value if isinstance(value, ObjectPath | Path) else as_place(value)


class AddressType(click.Path):
    """A table or a ledger, as text; the shell completes files."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text."""
        check_address(value, param)
        return value


PLACE = PlaceType()
ADDRESS = AddressType()
LOCAL = click.Path(path_type=Path)
_AT_LEAST_0 = click.IntRange(0)
_AT_LEAST_1 = click.IntRange(1)
_LOSS = click.FloatRange(0)

# Options


@dataclass(frozen=True)
class Row:
    """An option or an argument: metavar, help and type; `names` if an option is not named like its field."""

    metavar: str | None
    help: str
    kind: "click.ParamType[Any] | type" = str
    names: tuple[str, ...] = ()
    argument: bool = False


def _argument(metavar: str, text: str, kind: "click.ParamType[Any] | type" = str) -> Row:
    return Row(metavar, text, kind, argument=True)


# Sentences of several rows
_RELEASE = "A release of `confide calibrate`, `recalibrate` or `federated aggregate`."

# The row of each option, by field
OPTIONS: Mapping[str, Row] = {
    # Records and their columns
    "file": _argument("TABLE", "A Parquet, CSV or Arrow file, a folder, a quoted pattern; - for standard input; "
                      "s3://BUCKET/NAME; with --table duckdb://FILE or postgresql://USER@HOST/DB.",
                      ADDRESS),
    "table": Row("NAME", "The table of the database."),
    "release": Row("RELEASE", _RELEASE, PLACE, ("--calibration",)),
    "pilot": Row("TABLE", "PUBLIC records with true labels, such as those of the model's development, to estimate how "
                 "large sets and intervals will be; name their columns. Never private records: the output shows them.",
                 ADDRESS),
    "probabilities": Row("PATTERN|COLUMN", "A pattern such as 'p_*' (quote it), one column per class; or their names, "
                         "A,B,C; or one list column; or, with --classes NO,YES, the probability of YES."),
    "classes": Row("A,B,C", "Class names (default: of the columns, or 0, 1, ...)."),
    "label": Row("COLUMN", "True classes, by name."),
    "prediction": Row("COLUMN[,COLUMN]", "Predicted numbers; or two quantiles, LOWER,UPPER."),
    "target": Row("COLUMN", "True numbers, for regression."),
    "column": Row("COLUMN", "Your own scores: larger means less conforming.", names=("--score-column",)),
    "score": Row("NAME", "For probabilities: lac (default), aps, 'raps(penalty=0.01,k_reg=5)', 'saps(penalty=0.1)', "
                 "margin, top_k; all except the last with a public temperature, 'lac(temperature=2)'. For "
                 "LOWER,UPPER: cqr (default), cqr_low, cqr_high, cqr_sides. For --score-column: its name."),
    "by": Row("COLUMN[,COLUMN]", "Column of each record's group. Several columns: groups that overlap."),
    "groups": Row("A,B,C", "With --by: a threshold for each of these; a public list, not taken from the records. With "
                  "several columns, a list for each: 'f,m;north,south'."),
    "group_names": Row("A,B,C", "With --epsilon and --by: all groups, a public list, not taken from the records.",
                       names=("--groups",)),
    "keep": Row("COLUMN,...", "Input columns to keep; repeatable (default: all except the probabilities)."),
    "counts": Row("FILE", "Instead of TABLE: counts by the query of `confide sql`, with the same request.", PLACE),
    "noisy_counts": Row("FILE", "Instead of TABLE: noisy counts that another engine made, with their law as "
                        "--set noise=LAW.", PLACE),
    # The request
    "alpha": Row("LEVEL[,LEVEL]", "Miscoverage level, the share of true labels that sets may miss: 0.1 means 90 % "
                 "coverage; several, such as 0.2,0.1, give nested thresholds."),
    "epsilon": Row("NUMBER", "Privacy budget; smaller protects better; often 1.", float),
    "neighbors": Row("RELATION", "add_remove: the presence of a record and the number of records are secret. "
                     "replace_one: the contents of a record are secret, the number public.", click.Choice(NEIGHBORS)),
    "n": Row("N", "The public number of records under replace_one; databases need it with --ledger.", int),
    "settings": Row("NAME=VALUE", "Any other argument of the Python function, by the names below; repeat it.",
                    names=("--set",)),
    "request_file": Row("FILE", "A TOML file with arguments of the request, written by `confide request`.", PLACE,
                        names=("--request",)),
    # A release
    "path": _argument("RELEASE", _RELEASE, PLACE),
    "records": Row("K", "Also state the privacy loss if K records change at once.", int),
    "evaluation": Row("FILE", "Output of `confide evaluate --out FILE` for this release; private if it had --epsilon.",
                      PLACE),
    "answers": Row("FILE", "Of a federation: a silo's answer; repeat it.", PLACE, ("--answer",)),
    "signer": Row("FILE", "Public file of the signer, or the coordinator, whose signature is required.", PLACE,
                  ("--signer", "--coordinator")),
    "title": Row("TEXT", "Heading of the page."),
    "task": Row("NAME", "The model's task by its name on the Hub, such as image-classification."),
    "epsilon_at_most": Row("NUMBER", "The largest privacy loss of one person, under every adjacency that is stated; "
                           "for a monitor, of all looks together.", float),
    "coverage_at_least": Row("LEVEL", "The smallest guaranteed coverage, by each of several thresholds; or 1 minus the "
                             "bound on the missed share.", float),
    "private": Row(None, "Records must be protected, not only their labels. (A release without privacy never passes.)"),
    "signed": Row(None, "There must be a signature by any key; --signer requires a certain key."),
    # Evaluations and monitors
    "fail_below_promise": Row(None, "Exit with code 5 if coverage is below the promise by more than chance in the "
                              "calibration explains. A correct release fails at most once in 1,000 times; if the "
                              "number of calibration records is secret, this holds for 1,000 records or more."),
    "state": Row("FILE", "State of the monitor, with the noisy counts of all looks, which are public; created at the "
                 "first look.", PLACE),
    "look": Row("NAME", "Name of this look (batch), such as 2026-03-02; every batch needs a new name."),
    "batch": Row("N", "First look: the planned number of records in a look (default: about 22/epsilon^2, from which on "
                 "the sampling error exceeds the noise).", _AT_LEAST_1),
    "unlabelled": Row(None, "Monitor the sizes of sets instead, with no labels; the first batch is the reference."),
    "in_force": Row("FILE", "With --set correct=auto: write the thresholds in force, for `confide predict`; every look "
                    "replaces it.", PLACE),
    # Plans
    "dialect": Row("NAME", f"{', '.join(DIALECTS)}."),
    "releases": Row("COUNT", "Number of calibrations.", int),
    "evaluations": Row("COUNT", "Number of private evaluations.", int),
    "looks": Row("COUNT", "Number of looks (batches of a monitor).", int),
    "share": Row("SHARE", "The share of calibrations in the total; the others divide the rest."),
    "releases_per_person": Row("K", "The number of releases that one person can be in (default: all).", int),
    "evaluations_per_person": Row("K", "The number of evaluations that one person can be in (default: all).", int),
    "looks_per_person": Row("K", "The number of looks that one person can be in (default: all).", int),
    "records_per_person": Row("K", "The largest number of records of one person in one release.", int),
    "dp_delta": Row("DELTA", "State (epsilon, delta)-privacy; 0 states pure epsilon.", float),
    "rule": Row("RULE", "basic, zcdp, or best: the least excess coverage of releases.", click.Choice((*RULES, "best"))),
    # Federations
    "name": _argument("NAME", "The name of the silo or of the coordinator."),
    "silos": Row("PATH", "Public file of a silo, or a folder; repeat it.", PLACE, ("--silo", "--silos")),
    "keys": Row("FILE", "Private keys, written by keygen.", PLACE),
    "public": Row("FILE", "Output file for the public file.", PLACE),
    "size": Row("N", "Number of calibration records, if it may be public.", _AT_LEAST_1),
    "method": Row("NAME", f"Method of calibration: {', '.join(METHODS)} (default: as --compare recommends).",
                  click.Choice(METHODS)),
    "compare": Row(None, "Print the results of the methods for these silos, with a recommendation."),
    "of": Row("NAME", "With several thresholds: the level, group or class of one, or cqr_low or cqr_high."),
    "dropouts": Row("SILOS", "Number of silos that may be missing.", _AT_LEAST_0),
    "liars": Row("SILOS", "Number of Byzantine silos, which may send anything.", _AT_LEAST_0),
    "missing": Row(None, "Dropouts may depend on the scores of a silo.", names=("--arbitrary",)),
    "colluding": Row("SILOS", "For sums: number of silos that may collude with the coordinator.", _AT_LEAST_0),
    "n_typical": Row("N", "Public guess of secret numbers of records; for efficiency only.", int),
    "closes": Row("TIME", "UTC time after which answers are late, such as 2030-01-31T12:00:00Z."),
    "plan": Row("FILE", "The signed plan.", PLACE),
    "answer": _argument("ANSWER", "The silo's answer, as sent.", PLACE),
    "policy": Row("FILE", "A policy file, instead of --coordinator, --budget, --peer, --allow.", PLACE),
    "coordinator": Row("FILE", "The coordinator's public file, whose fingerprint you have compared.", PLACE),
    "budget": Row("NUMBER", "Privacy budget of all releases about these records together.", _LOSS),
    "per_plan": Row("NUMBER", "Privacy budget of one answer (default: the whole budget).", _LOSS),
    "peers": Row("PATH", "For sums: public file of another silo, whose fingerprint you have compared, or a folder; "
                 "repeat it.", PLACE, ("--peer", "--peers")),
    "methods": Row("NAME", f"Allow this method in addition to private-qq and secure-sum, of {', '.join(METHODS)}; "
                   "repeat it.", click.Choice(METHODS), ("--allow",)),
    "least_colluding": Row("SILOS", "For sums: reject plans with a smaller collusion threshold (default: 1).",
                           _AT_LEAST_0),
    "drop_refused": Row(None, "Leave unusable answers out with a warning, instead of an error."),
    # Ledgers
    "ledger": Row("LEDGER", "Charge this ledger first, for --dataset; the same request about the same data is free. A "
                  "file, or postgresql://ROLE@HOST/DB (default with --dataset: CONFIDE_LEDGER).", ADDRESS),
    "dataset": Row("NAME", "The name of these people's data in the ledger."),
    "again": Row(None, "The same people with new records or a new model: charge a new release."),
    "group": Row("PARTITION=CELL", "Cell of a public partition, as in region=north."),
    "charge_role": Row("NAME", "A role of the server that may charge but not delete; repeat it. A new role is created "
                       "without login."),
    "read_role": Row("NAME", "A role that may read everything except the ledger's key; repeat it."),
    "spent": Row("EPSILON", "What the people of --dataset have lost before.", _LOSS),
    "without_names": Row(None, "Leave out who charged."),
    # Outputs
    "out": Row("FILE", "Output file.", PLACE),
    "force": Row(None, "Replace an earlier output of the same kind, and nothing else."),
    "as_json": Row(None, "Print one line of JSON, nothing else.", names=("--json",)),
}  # fmt: skip

# Rows and sentences of several commands
_ONE_LEVEL = Row("LEVEL", "Of several levels, only this one (default: all).")
_DATASET = _argument("DATASET", "The name of a data set.")
_SILO_LEDGER = "This silo's budget ledger: a file, created if new, or postgresql://ROLE@HOST/DB. Keep it."
_NAMED_LEDGER = (
    "Name this silo's budget ledger (created if new) in the public file; copies of the keys then need it, too."
)

# Differences in a command or in all commands of a group: the help of a field, or its whole row
BY_COMMAND: Mapping[tuple[str, str], Row | str] = {
    ("plan", "alpha"): Row("LEVEL", "Miscoverage level: 0.1 means 90 % coverage; also a fraction."),
    ("plan", "n"): "Number of calibration records for which costs are stated. Under add_remove it is a guess and is "
        "never used.",
    ("plan", "out"): "Also write the plan as an HTML page.",
    ("sql", "table"): "The table, its parts between points.",
    ("recalibrate", "release"): "The release to renew.",
    ("recalibrate", "epsilon"): "Another privacy budget than that of the earlier release.",
    ("recalibrate", "request_file"): "The file of the earlier request, again: what the release states must be equal.",
    ("predict", "alpha"): _ONE_LEVEL,
    ("predict", "out"): Row("FILE|FOLDER", "Output file. A name without an ending, or with / at its end, is a new "
        "folder of Parquet files.", ADDRESS),
    ("evaluate", "alpha"): _ONE_LEVEL,
    ("evaluate", "by"): "Column of each record's group, or any column by which coverage is measured.",
    ("evaluate", "epsilon"): "Evaluate privately with this budget: noisy counts, which may be published.",
    ("evaluate", "out"): "Also write the results as JSON, for `confide report --evaluation FILE`.",
    ("watch", "alpha"): Row("LEVEL", "Of several levels, the one to monitor."),
    ("watch", "epsilon"): "First look: privacy budget of every look.",
    ("watch", "out"): "Also write an HTML page with all looks.",
    ("show", "path"): _argument("FILE", "A release, an evaluation, a monitor, a plan, a file of a federation.", PLACE),
    ("verify", "path"): "A release of `confide calibrate`, `recalibrate` or `federated aggregate`, a private "
        "evaluation, or a monitor.",
    ("verify", "answers"): "A silo's answer, which must be counted; repeat it.",
    ("verify", "neighbors"): "With --epsilon-at-most: only this adjacency (default: all that are stated).",
    ("sign", "path"): "A release of `confide calibrate` or `recalibrate`.",
    ("sign", "keys"): "The private keys of the signer.",
    ("report", "ledger"): "Ledger with its charge and those before and since: a file, or postgresql://ROLE@HOST/DB.",
    ("card", "out"): "Output file: Markdown (.md), such as README.md, or a page (.html).",
    ("demo", "out"): Row("FOLDER", "Folder for the files.", PLACE),
    ("demo", "force"): "Replace the files of an earlier demo.",
    ("budget plan", "alpha"): Row("LEVEL", "Miscoverage level of a release, for the stated coverage."),
    ("budget plan", "n"): Row("N,N", "Numbers of records in one release for which coverage is stated."),
    ("budget plan", "epsilon"): "The total per person, over the whole plan.",
    ("budget plan", "dp_delta"): "The total is (epsilon, delta)-privacy; with 0 epsilons add up.",
    ("budget plan", "neighbors"): "The adjacency of privacy losses: add_remove or replace_one.",
    ("ledger", "file"): _argument("LEDGER", "A file, or postgresql://ROLE@HOST/DB (default: CONFIDE_LEDGER).", ADDRESS),
    ("ledger show", "dataset"): _DATASET,
    ("ledger show", "dp_delta"): "Also state totals at this delta; 0 for pure epsilon only.",
    ("ledger show", "out"): "A page, with the newest charges of one data set or of all.",
    ("ledger init", "file"): _argument("LEDGER", "A new file, or postgresql://OWNER@HOST/DB, a database for it.",
        ADDRESS),
    ("ledger limit", "dataset"): _DATASET,
    ("ledger limit", "epsilon"): _argument("EPSILON", "The limit; leave it out to remove the limit.", float),
    ("ledger limit", "neighbors"): "The adjacency of the data set: add_remove or replace_one.",
    ("ledger export", "out"): "Output file (default: standard output).",
    ("federated", "release"): "The release of aggregate.",
    ("federated", "dataset"): "The name of these records in the ledger.",
    ("federated", "ledger"): _SILO_LEDGER,
    ("federated keygen", "keys"): "Output file for the private keys.",
    ("federated keygen", "ledger"): _NAMED_LEDGER,
    ("federated public", "ledger"): _NAMED_LEDGER,
    ("federated plan", "pilot"): "With --compare: PUBLIC records with true labels; name their columns. Never private "
        "records: the output reveals them.",
    ("federated plan", "groups"): "private-qq: a threshold for each of these; a public list, not taken from the "
        "records.",
    ("federated plan", "out"): "Output file for the plan; optional with --compare.",
    ("federated answer", "by"): "For a plan with a threshold for each group: the column of each record's group.",
    ("federated aggregate", "answers"): _argument("ANSWER...", "The silos' answers.", PLACE),
    ("federated aggregate", "keys"): "The coordinator's private keys, to sign for `confide verify`.",
}  # fmt: skip


def row_of(command: str, field: str) -> Row:
    """The row of an option in a command, such as `ledger show`."""
    for place in (command, command.partition(" ")[0]):
        if (row := BY_COMMAND.get((place, field))) is not None:
            return replace(OPTIONS[field], help=row) if isinstance(row, str) else row
    return OPTIONS[field]
