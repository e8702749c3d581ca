"""The options of the command line: panel, type and help of each.

A command names its options by fields (`confide.cli.command`). `OPTIONS` has a row for each field; `BY_COMMAND` has the
rows that differ in one command or in all commands of a group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypedDict

import click

from confide.cli.help import (
    COLUMNS,
    CONDITIONS,
    CONTENT,
    FEDERATION,
    GROUPS,
    LEDGER,
    OUTPUT,
    PEOPLE,
    PLANNED,
    PRIVACY,
    PROMISE,
    SHIFT,
    THRESHOLD,
    WATCH,
)
from confide.core import ABOUT, RULES
from confide.mechanisms import NEIGHBORS
from confide.support import ObjectPath, as_place


class PlaceType(click.Path):
    """A file, or the address of an object in a store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the file of this name, or the object of this address."""
        return value if isinstance(value, ObjectPath | Path) else as_place(value)


class TableType(click.Path):
    """A table, as text; the shell completes files."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text."""
        return value


PLACE, LOCAL, TABLE = PlaceType(), click.Path(path_type=Path), TableType()


@dataclass(frozen=True)
class Row:
    """An option: metavar, help and type; `names` if it is not named like its field.

    `listed` is the place of a list that the help contains, such as `confide.federated:METHODS`. It is imported when the
    command is: most commands do without its package.
    """

    metavar: str | None
    help: str
    kind: "click.ParamType[Any] | type | None" = str
    everyday: bool = False
    names: tuple[str, ...] = ()
    argument: bool = False
    hidden: bool = False
    panel: str = ""
    listed: str = ""

    def resolved(self) -> "Row":
        """The same with its list in the help, and as the type if there is no other one."""
        if not self.listed:
            return self
        names = tuple(resolve_name(self.listed))
        return replace(self, help=self.help.format(", ".join(names)), kind=self.kind or click.Choice(names), listed="")


def _panel(title: str, /, **rows: Row) -> Iterator[tuple[str, Row]]:
    """The rows of a panel, by field."""
    for field, row in rows.items():
        yield field, replace(row, panel=title)


def _argument(metavar: str, text: str, kind: "click.ParamType[Any] | type" = str, *, hidden: bool = False) -> Row:
    return Row(metavar, text, kind, everyday=True, argument=True, hidden=hidden)


RELEASE = "A release of `confide calibrate`, `recalibrate` or `federated aggregate`."
_TABLE = (
    "A Parquet, CSV or Arrow file, a folder, a quoted pattern; - for standard input; s3://BUCKET/NAME; with --table "
    "duckdb://FILE, postgresql://USER@HOST/DB, or Spark as sc://HOST."
)
_PILOT = (
    "PUBLIC records with true labels, such as those of the model's development, to estimate how large sets and "
    "intervals will be; use the options of columns. Never private records: the output reveals them."
)
_AT_LEAST_0, _AT_LEAST_1 = click.IntRange(0), click.IntRange(1)
_LOSS = click.FloatRange(0)
_METHODS = "confide.federated:METHODS"

OPTIONS: Mapping[str, Row] = dict([
    *_panel(COLUMNS,
        file=_argument("TABLE", _TABLE, TABLE),
        second=_argument("TABLE", "The table, if RELEASE is the first argument.", TABLE, hidden=True),
        calibration=Row("RELEASE", RELEASE, PLACE, everyday=True),
        pilot=Row("TABLE", _PILOT, TABLE, everyday=True),
        table=Row("NAME", "The table of the database; for Spark also a path."),
        skip_incomplete=Row(None, "Leave out records with missing values; the guarantee is then about complete ones."),
        decimal=Row("MARK", "In CSV: ',' for a decimal comma."),
        probabilities=Row("PATTERN|COLUMN", "A pattern such as 'p_*' (quote it), one column per class; or their names, "
                          "A,B,C; or one list column; or, with --classes NO,YES, the probability of YES.",
                          everyday=True),
        classes=Row("A,B,C", "Class names (default: of the columns, or 0, 1, ...)."),
        prediction=Row("COLUMN[,COLUMN]", "Predicted numbers; or two quantiles, LOWER,UPPER.", everyday=True),
        logits=Row(None, "--probabilities are logits; softmax is applied."),
        score_column=Row("COLUMN", "Your own scores: larger means less conforming."),
        label=Row("COLUMN", "True classes, by name.", everyday=True),
        label_positions=Row(None, "The labels are positions of classes, from 0."),
        target=Row("COLUMN", "True numbers, for regression.", everyday=True),
        truth=Row("PATTERN|COLUMN", "Instead of --label, if several classes can be true: 1 or 0 for each. Alpha bounds "
                  "the share of missed ones."),
        losses=Row("PATTERN|COLUMN", "Risk control: losses at every finite candidate, bounded by alpha; needs "
                   "--candidates and --loss."),
        score=Row("NAME", "For probabilities: lac (default), aps, 'raps(penalty=0.01,k_reg=5)', 'saps(penalty=0.1)', "
                  "margin, top_k; all except the last with a public temperature, 'lac(temperature=2)'. For "
                  "LOWER,UPPER: cqr (default), cqr_low, cqr_high, cqr_sides. For --score-column: its name."),
        loss=Row("NAME", "With --losses: the name of the loss."),
        bound=Row("NUMBER", "With --losses: the largest loss.", float),
        counts=Row("FILE", "Instead of TABLE: counts by the query of `confide sql`, with the same request.", PLACE),
        request_file=Row("FILE", "A TOML file with arguments of the request, written by `confide request`.", PLACE,
                         everyday=True, names=("--request",)),
        settings=Row("NAME=VALUE", "Any other argument of the request, such as delta=0.05; repeat it.", everyday=True,
                     names=("--set",)),
        plan=Row("FILE", "With --counts: the plan of `confide sql`.", PLACE),
        noisy_counts=Row("FILE", "Instead of TABLE: noisy counts that another engine made, over --candidates.", PLACE),
    ),
    *_panel(PROMISE,
        alpha=Row("LEVEL[,LEVEL]", "Miscoverage level, the share of true labels that sets may miss: 0.1 means 90 % "
                  "coverage; several, such as 0.2,0.1, give nested thresholds.", everyday=True),
        delta=Row("PROBABILITY", "Guarantee the coverage after this calibration with probability 1 - delta, not on "
                                 "average."),
    ),
    *_panel(PRIVACY,
        epsilon=Row("NUMBER", "Privacy budget; smaller protects better; often 1.", float, everyday=True),
        rho=Row("NUMBER", "zCDP budget, instead of --epsilon.", float),
        neighbors=Row("RELATION", "add_remove: the presence of a record and the number of records are secret. "
                      "replace_one: the contents of a record are secret, the number public.", click.Choice(NEIGHBORS)),
        records_per_person=Row("K", "Public bound on the records of one person.", int),
        n=Row("N", "The public number of records under replace_one; databases need it with --ledger.", int),
        n_min=Row("N", "Public lower bound on the secret number of records.", int),
        dp_delta=Row("DELTA", "State (epsilon, delta)-privacy; 0 states pure epsilon.", float),
        confidence=Row("LEVEL", "Probability that all intervals hold simultaneously (default: 0.95)."),
        rule=Row("RULE", "basic, zcdp, or best: the least excess coverage of releases.",
                 click.Choice((*RULES, "best"))),
    ),
    *_panel(THRESHOLD,
        candidates=Row("SPEC", "Public candidates, such as unit:1000, around:THRESHOLD, "
                       "or their number (default: suitable for the score)."),
        unit=Row("NUMBER", "For residuals: a public typical size of the target.", float),
    ),
    *_panel(PEOPLE,
        person=Row("COLUMN", "The person of each record; loss is per person."),
        max_records_per_person=Row("K", "Use at most this many records of each person.", int),
        order=Row("COLUMN,...", "Columns that distinguish a person's records, no scores or labels; the first K count."),
        sample=Row("TEXT", "Take K by a hash of this text and --order."),
        releases_per_person=Row("K", "The number of releases that one person can be in (default: all).", int),
        evaluations_per_person=Row("K", "The number of evaluations that one person can be in (default: all).", int),
        looks_per_person=Row("K", "The number of looks that one person can be in (default: all).", int),
    ),
    *_panel(GROUPS,
        by=Row("COLUMN,...", "Column of each record's group; any in `evaluate`. Several columns: groups that overlap."),
        groups=Row("A,B,C", "With --by: a threshold for each of these; a public list, not taken from the records. With "
                            "several columns, a list for each: 'f,m;north,south'."),
        by_class=Row(None, "A threshold for each class (class-conditional)."),
        partition=Row("NAME", "With --ledger: the public name of this division into groups, such as ward."),
        parts=Row("KIND[,KIND]", "For sets: {} (default: both), or none, for the total alone.",
                  listed="confide.evaluation:PARTS"),
        width_bins=Row("NUMBER,...", "With --epsilon, for intervals: public widths as limits of the bins in which "
                                     "they are counted."),
    ),
    *_panel(SHIFT,
        weight_column=Row("COLUMN", "Or public weights, functions of covariates."),
    ),
    *_panel(WATCH,
        state=Row("FILE", "State of the monitor, with the noisy counts of all looks, which are public; created at the "
                          "first look.",
                  PLACE, everyday=True),
        look=Row("NAME", "Name of this look (batch), such as 2026-03-02; every batch needs a new name.", everyday=True),
        batch=Row("N", "First look: the planned number of records in a look (default: about 22/epsilon^2, from which "
                       "on the sampling error exceeds the noise).", _AT_LEAST_1, everyday=True),
        tolerance=Row("SHARE", "How far coverage may be below the promise (default: 0.02).", float),
        looks=Row("N", "The planned number of looks (default: 52).", _AT_LEAST_1),
        error=Row("SHARE", "First look: probability of a false alarm over all looks together (default: 0.05)."),
        correct=Row("GAMMA|auto", "First look: also correct the threshold from the noisy counts of looks, at no "
                    "further privacy cost; a look moves it by at most this share of its scale, up to 0.2."),
        delay=Row("LOOKS", "With --correct: by how many looks labels are late (default: 0).", _AT_LEAST_0),
        in_force=Row("FILE", "With --correct: write the thresholds in force, for `confide predict`; every look "
                     "replaces it.", PLACE),
        unlabelled=Row(None, "Monitor the sizes of sets instead, without true labels; the first batch is the "
                             "reference."),
        reference=Row("FILE", "With --unlabelled: a private evaluation with set sizes, instead of the first batch.",
                      PLACE),
    ),
    *_panel(PLANNED,
        releases=Row("COUNT", "Number of calibrations.", int, everyday=True),
        evaluations=Row("COUNT", "Number of private evaluations.", int, everyday=True),
        share=Row("SHARE", "The share of calibrations in the total; the others divide the rest."),
    ),
    *_panel(FEDERATION,
        answers=_argument("ANSWER...", "The silos' answers.", PLACE),
        opening=_argument("OPENING", "The opening (reconstruction request) that the coordinator sent to this "
                                     "silo.", PLACE),
        name=_argument("NAME", "The name of the silo or of the coordinator."),
        silo=Row("PATH", "Public file of a silo, or a folder; repeat it.", PLACE, True, ("--silo", "--silos")),
        keys=Row("FILE", "Private keys, written by keygen.", PLACE, everyday=True),
        public=Row("FILE", "Output file for the public file.", PLACE),
        size=Row("N", "Number of calibration records, if it may be public.", _AT_LEAST_1),
        method=Row("NAME", "Method of calibration: {} (default: as --compare recommends).", None, everyday=True,
                   listed=_METHODS),
        compare=Row(None, "Print the results of the methods for these silos, with a recommendation.", everyday=True),
        also=Row("NAME", "With --compare: also this published method ({}); repeat it.", None,
                 listed="confide.federated:COMPARABLE"),
        of=Row("NAME", "With several thresholds: the level, group or class of one, or cqr_low or cqr_high."),
        dropouts=Row("SILOS", "Number of silos that may be missing.", _AT_LEAST_0),
        liars=Row("SILOS", "Number of Byzantine silos, which may send anything.", _AT_LEAST_0),
        arbitrary=Row(None, "Dropouts may depend on the scores of a silo."),
        colluding=Row("SILOS", "For sums: number of silos that may collude with the coordinator.", _AT_LEAST_0),
        closes=Row("TIME", "UTC time after which answers are late, such as 2030-01-31T12:00:00Z."),
        policy=Row("FILE", "A policy file, instead of --coordinator, --budget, --peer, --allow.", PLACE),
        coordinator=Row("FILE", "The coordinator's public file, whose fingerprint you have "
                                "compared.", PLACE, everyday=True),
        budget=Row("NUMBER", "Privacy budget of all releases about these records together.", _LOSS,
                   everyday=True),
        per_plan=Row("NUMBER", "Privacy budget of one answer (default: the whole budget).", _LOSS),
        peer=Row("PATH", "For sums: public file of another silo, whose fingerprint you have compared, or a folder; "
                         "repeat it.",
                 PLACE, names=("--peer", "--peers")),
        allow=Row("NAME", "Allow this method in addition to private-qq and secure-sum, of {}; repeat it.", None,
                  listed=_METHODS),
        least_colluding=Row("SILOS", "For sums: reject plans with a smaller collusion threshold (default: 1).",
                            _AT_LEAST_0),
        drop_refused=Row(None, "Leave unusable answers out with a warning, instead of an error."),
    ),
    *_panel(LEDGER,
        ledger=Row("LEDGER", "Charge this ledger first, for --dataset; the same request about the same data is free. A "
                   "file, or postgresql://ROLE@HOST/DB (default with --dataset: CONFIDE_LEDGER).", everyday=True),
        dataset=Row("NAME", "The name of these people's data in the ledger.", everyday=True),
        again=Row(None, "The same people with new records or a new model: charge a new release."),
        group=Row("PARTITION=CELL", "Cell of a public partition, as in region=north."),
        one_cell=Row(None, "With --person: each person is in one cell only."),
        charged_by=Row("NAME", "Who charges, for a file; a server stores roles."),
        ledger_key=Row("FILE", "16 secret random bytes or more: binds the name to this input file.", PLACE),
        charge_role=Row("NAME", "A role of the server that may charge but not delete; repeat it. A new role is "
                        "created without login."),
        read_role=Row("NAME", "A role that may read everything except the ledger's key; repeat it."),
        spent=Row("EPSILON", "What the people of --dataset have lost before.", _LOSS),
    ),
    *_panel(CONTENT,
        dialect=Row("NAME", "{}.", everyday=True,
                    listed="confide.warehouse:DIALECTS"),
        records=Row("K", "Also state the privacy loss if K records change at once.", int),
        evaluation=Row("FILE", "Output of `confide evaluate --out FILE` for this release; private if it had "
                       "--epsilon.", PLACE),
        answer=Row("FILE", "Federated: a silo's answer to show; repeat it.", PLACE),
        title=Row("TEXT", "Heading of the page."),
        task=Row("NAME", "The model's task by its name on the Hub, such as image-classification."),
        needed=Row(None, "Also state how many records common scores need."),
        without_names=Row(None, "Leave out who charged."),
    ),
    *_panel(CONDITIONS,
        epsilon_at_most=Row("NUMBER", "The largest privacy loss of one person, under every adjacency that is "
                            "stated; for a monitor, of all looks together.", float),
        coverage_at_least=Row("LEVEL", "The smallest guaranteed coverage, by each of several thresholds; or 1 minus "
                                       "the "
                              "bound on the missed share.", float),
        private=Row(None, "Records must be protected, not only their labels. (A release without privacy never "
                          "passes.)"),
        signed=Row(None, "There must be a signature by any key; --signer requires a certain key."),
    ),
    *_panel(OUTPUT,
        out=Row("FILE", "Output file.", PLACE, everyday=True),
        out_folder=Row("FOLDER", "Folder for a file for every opener (share holder); created if new.", PLACE),
        keep=Row("COLUMN,...", "Input columns to keep; repeatable (default: all except the probabilities)."),
        about=Row("KEY=TEXT", f"Public metadata, repeatable; KEY: {', '.join(ABOUT)}."),
        fingerprint=Row("FILE", "A table of the model's outputs on PUBLIC probe records, or the model's file: other "
                        "models are then rejected.", PLACE),
        examples=Row("K", "Include the sets and true labels of the first K records, unchanged.",
                     _AT_LEAST_0),
        fail_below_promise=Row(None, "Exit with code 5 if coverage is below the promise by more than chance in the "
                               "calibration explains. A correct release fails at most once in 1,000 times; if the "
                               "number of calibration records is secret, this holds for 1,000 records or more."),
        force=Row(None, "Replace an earlier output of the same kind, and nothing else.", everyday=True),
        as_json=Row(None, "Print one line of JSON, nothing else.", everyday=True, names=("--json",)),
    ),
])  # fmt: skip
"""The row of each option, by field."""


class Change(TypedDict, total=False):
    """Differences of an option's row in a command."""

    metavar: str
    help: str
    kind: "click.ParamType[Any]"
    everyday: bool
    panel: str


_SAME = Change(help="The same file, by the option of commands that read a table.", panel="")
_ONE_LEVEL = Change(
    help="Of several levels, only this one (default: all).", metavar="LEVEL", panel=COLUMNS, everyday=False
)
_OF_PILOT = dict.fromkeys(("probabilities", "prediction", "label", "target"), Change(everyday=False))
_COMPARED = Change(
    help="Reject another model than the release states: its outputs on the same public probe records, or its file.",
    panel=COLUMNS,
)
_DATASET = _argument("DATASET", "The name of a data set.")
_SIZES_OF_SILOS = "Public lower bound on the secret number of records (default: 1; of each group 0)."
_SILO_LEDGER = "This silo's budget ledger: a file, created if new, or postgresql://ROLE@HOST/DB. Keep it."
_NAMED_LEDGER = (
    "Name this silo's budget ledger (created if new) in the public file; copies of the keys then need it, too."
)

BY_COMMAND: Mapping[str, Mapping[str, Row | Change | str]] = {
    "plan": {
        **_OF_PILOT,
        "alpha": Change(help="Miscoverage level: 0.1 means 90 % coverage; also a fraction.",
                        metavar="LEVEL"),
        "n": Change(help="Number of calibration records for which costs are stated. Under add_remove it is a guess "
                         "and is never used.", panel=PROMISE, everyday=True),
        "out": "Also write the plan as an HTML page.",
    },
    "recalibrate": {
        "partition": "With --ledger, for groups: the public name of this division, such as ward.",
        "weight_column": Change(help="For a release with public weights: their column.",
                                panel=COLUMNS),
    },
    "predict": {
        "alpha": _ONE_LEVEL,
        "fingerprint": _COMPARED,
        "out": Change(help="Output file. A name without an ending, or with / at its end, is a new folder of "
                           "Parquet files; from Spark the executors write it, also to an address such as "
                           "s3a://BUCKET/NAME.", metavar="FILE|FOLDER", kind=TABLE),
    },
    "evaluate": {
        "alpha": _ONE_LEVEL,
        "fingerprint": _COMPARED,
        "epsilon": "Evaluate privately with this budget: noisy counts, which may be published.",
        "neighbors": "add_remove (default): the number of records is secret. replace_one: it is public.",
        "groups": "With --epsilon and --by: all groups, a public list, not taken from the records.",
        "out": "Also write the results as JSON, for `confide report --evaluation FILE`.",
    },
    "watch": {
        "alpha": {**_ONE_LEVEL, "help": "Of several levels, the one to monitor."},
        "fingerprint": _COMPARED,
        "epsilon": "First look: privacy budget of every look.",
        "neighbors": "First look: add_remove (default) or replace_one.",
        "records_per_person": Change(help="First look: the largest number of records of one person in a look (public).",
                                     kind=_AT_LEAST_1),
        "tolerance": "First look: how far coverage may be below the promise (default: 0.02).",
        "looks": "First look: the planned number of looks; more may follow (default: 52).",
        "out": Change(help="Also write an HTML page with all looks.", everyday=False),
        "force": Change(everyday=False),
    },
    "sql": {
        "n": "The public number of records, required under replace_one.",
        "table": Change(help="The table, its parts between points.",
                        panel=CONTENT, everyday=True),
    },
    "show": {
        "file": _argument("FILE", "A release, an evaluation, a monitor, a plan, a file of a "
                          "federation.", PLACE),
        "calibration": _SAME,
    },
    "verify": {
        "file": _argument("RELEASE", f"{RELEASE} Or a private evaluation, or a monitor.", PLACE),
        "calibration": _SAME,
        "signer": Row("FILE", "Public file of the signer, or the coordinator, whose signature is required.", PLACE,
                      names=("--signer", "--coordinator"), panel=CONDITIONS),
        "answer": Change(help="A silo's answer, which must be counted; repeat it.", panel=CONDITIONS),
        "neighbors": Change(help="With --epsilon-at-most: only this adjacency (default: all that are "
                            "stated).", panel=CONDITIONS),
    },
    "sign": {
        "file": _argument("RELEASE", "A release of `confide calibrate` or `recalibrate`.", PLACE),
        "keys": "The private keys of the signer.",
    },
    "report": {
        "file": _argument("RELEASE", RELEASE, PLACE),
        "calibration": _SAME,
        "ledger": Change(help="Ledger with its charge and those before and since: a file, or "
                              "postgresql://ROLE@HOST/DB.", panel=CONTENT),
    },
    "card": {
        "file": _argument("RELEASE", RELEASE, PLACE),
        "calibration": _SAME,
        "out": "Output file: Markdown (.md), such as README.md, or a page (.html).",
    },
    "demo": {
        "out": Change(help="Folder for the files.", metavar="FOLDER"),
        "force": "Replace the files of an earlier demo.",
    },
    "budget plan": {
        "alpha": Change(help="Miscoverage level of a release, for the stated coverage.", metavar="LEVEL"),
        "n": Row("N,N", "Numbers of records in one release for which coverage is stated.", panel=PROMISE),
        "epsilon": "The total per person, over the whole plan.",
        "dp_delta": "The total is (epsilon, delta)-privacy; with 0 epsilons add up.",
        "neighbors": "The adjacency of privacy losses: add_remove or replace_one.",
        "records_per_person": Change(help="The largest number of records of one person in one release.", panel=PEOPLE),
        "looks": Row("COUNT", "Number of looks (batches of a monitor).", int, everyday=True, panel=PLANNED),
    },
    "ledger": {"file": _argument("LEDGER", "A file, or postgresql://ROLE@HOST/DB (default: CONFIDE_LEDGER).")},
    "ledger show": {
        "dataset": _DATASET,
        "dp_delta": Change(help="Also state totals at this delta; 0 for pure epsilon only.", panel=CONTENT),
        "out": "A page, with the newest charges of one data set or of all.",
    },
    "ledger init": {"file": _argument("LEDGER", "A new file, or postgresql://OWNER@HOST/DB, a database for it.")},
    "ledger limit": {
        "dataset": _DATASET,
        "epsilon": _argument("EPSILON", "The limit; leave it out to remove the limit.", float),
        "neighbors": "The adjacency of the data set: add_remove or replace_one.",
    },
    "ledger export": {"out": "Output file (default: standard output)."},
    "federated": {
        "plan": Change(help="The signed plan.", panel=FEDERATION, everyday=True),
        "calibration": Change(help="The release of aggregate.", panel=FEDERATION),
        "dataset": Change(help="The name of these records in the ledger.", everyday=False),
        "ledger": _SILO_LEDGER,
    },
    "federated keygen": {
        "keys": "Output file for the private keys.",
        "ledger": _NAMED_LEDGER,
    },
    "federated public": {"ledger": _NAMED_LEDGER},
    "federated plan": {
        "n_typical": Row("N", "Public guess of secret numbers of records; for efficiency only.", click.INT,
                         panel=PRIVACY),
        **_OF_PILOT,
        "pilot": f"With --compare: {_PILOT}",
        "n_min": Change(help=_SIZES_OF_SILOS, kind=_AT_LEAST_0),
        "groups": "private-qq: a threshold for each of these; a public list, not taken from the records.",
        "by_class": "private-qq: a threshold for each of --classes, with class-conditional coverage.",
        "out": "Output file for the plan; optional with --compare.",
    },
    "federated answer": {"by": "For a plan with a threshold for each group: the column of each record's group."},
    "federated open": {"policy": "A policy file, instead of --coordinator."},
    "federated aggregate": {
        "answers": "The silos' answers, and the parts of openers (share holders) if there are any.",
        "keys": "The coordinator's private keys, to sign for `confide verify`.",
    },
    "federated own": {"answer": _argument("ANSWER", "The silo's answer, as sent.", PLACE)},
}  # fmt: skip
"""Differences in a command or in all commands of a group, by field: the help, parts of the row, or a whole row."""


def row_of(command: str, field: str) -> Row:
    """The row of an option in a command, such as `ledger show`."""
    return _row(command, field).resolved()


def _row(command: str, field: str) -> Row:
    group = command.partition(" ")[0]
    for owner in (command, group):
        match BY_COMMAND.get(owner, {}).get(field):
            case Row() as row:
                return row
            case str(text):
                return replace(OPTIONS[field], help=text)
            case dict(change):
                return replace(OPTIONS[field], **change)
    return OPTIONS[field]
