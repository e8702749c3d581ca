"""Every option of the command line, once: its panel in the help, what it takes, what it is for.

A command names options by the fields of its values (`confide.cli.command`). `OPTIONS` has a row for each name;
`BY_COMMAND` has the rows that differ in one command, or in all below a group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

import click

from confide.evaluation import MOST_EXAMPLES, PARTS
from confide.federated import COMPARABLE, METHODS
from confide.ledger import RULES
from confide.mechanisms import MECHANISMS, NEIGHBORS
from confide.planning import NOISY
from confide.releases import ABOUT
from confide.selection import SELECTORS
from confide.support import ObjectPath, as_place
from confide.warehouse import DIALECTS

COLUMNS, PROMISE, PRIVACY, THRESHOLD = "Columns", "Coverage promise", "Privacy", "Threshold"
PEOPLE, GROUPS, SHIFT = "People with several records", "Groups", "A known shift"
WATCH, PLANNED, LEDGER = "Watch", "What is planned", "Budget ledger"
FEDERATION, AUDIT, CONTENT, OUTPUT = "Federation", "Audit", "Content", "Output"
CONDITIONS = "Conditions"

PANELS = (
    COLUMNS, PROMISE, PRIVACY, THRESHOLD, PEOPLE, GROUPS, SHIFT, WATCH, PLANNED, FEDERATION, LEDGER, AUDIT, CONTENT,
    CONDITIONS, OUTPUT,
)  # fmt: skip
"""The panels, in the order of the help."""


class PlaceType(click.Path):
    """A file, or an object of a store by its address."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file of this name, or the object of this address."""
        return value if isinstance(value, ObjectPath | Path) else as_place(value)


class TableType(click.Path):
    """A table, as text; the shell completes files."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text."""
        return value


class RecordsType(click.types.IntParamType):
    """A number of records, or `noisy`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or `noisy`."""
        return value if value == NOISY else super().convert(value, param, ctx)


PLACE, LOCAL, TABLE = PlaceType(), click.Path(path_type=Path), TableType()


@dataclass(frozen=True)
class Row:
    """An option: what it takes and is for; `names` where it is not called as its field is."""

    metavar: str | None
    help: str
    kind: "click.ParamType[Any] | type" = str
    everyday: bool = False
    names: tuple[str, ...] = ()
    argument: bool = False
    hidden: bool = False
    panel: str = ""


def _panel(title: str, /, **rows: Row) -> Iterator[tuple[str, Row]]:
    """The rows of a panel, by the fields that name them."""
    for field, row in rows.items():
        yield field, replace(row, panel=title)


def _argument(metavar: str, text: str, kind: "click.ParamType[Any] | type" = str, *, hidden: bool = False) -> Row:
    return Row(metavar, text, kind, everyday=True, argument=True, hidden=hidden)


RELEASE = "What `confide calibrate`, `recalibrate` or `federated aggregate` wrote."
_TABLE = (
    "A Parquet, CSV or Arrow file, a folder, a quoted pattern; - for standard input; s3://BUCKET/NAME; with --table "
    "duckdb://FILE, postgresql://USER@HOST/DB, or Spark as sc://HOST."
)
_PILOT = (
    "PUBLIC records with known truth, such as those of the model's development, to say how large sets and intervals "
    "will be; named by the options of columns. Never private ones: what is printed tells of them."
)
_AT_LEAST_0, _AT_LEAST_1 = click.IntRange(0), click.IntRange(1)
_LOSS = click.FloatRange(0)

OPTIONS: Mapping[str, Row] = dict([
    *_panel(COLUMNS,
        file=_argument("TABLE", _TABLE, TABLE),
        second=_argument("TABLE", "The table, where RELEASE was typed first.", TABLE, hidden=True),
        calibration=Row("RELEASE", RELEASE, PLACE, everyday=True),
        pilot=Row("TABLE", _PILOT, TABLE, everyday=True),
        table=Row("NAME", "The table of the database; for Spark also a path."),
        skip_incomplete=Row(None, "Leave out records with missing values, instead of refusing them."),
        decimal=Row("MARK", "Of CSV: ',' for a decimal comma."),
        probabilities=Row("PATTERN|COLUMN", "A pattern such as 'p_*' (quote it), one column per class; or their names, "
                          "A,B,C; or one list column; or, with --classes NO,YES, the probability of YES.",
                          everyday=True),
        classes=Row("A,B,C", "Class names (default: by the columns, or 0, 1, ...)."),
        prediction=Row("COLUMN[,COLUMN]", "Predicted numbers; or two quantiles, LOWER,UPPER.", everyday=True),
        logits=Row(None, "--probabilities names logits; softmax is taken."),
        score_column=Row("COLUMN", "Your own scores: larger means stranger."),
        label=Row("COLUMN", "True classes, by their names.", everyday=True),
        label_positions=Row(None, "The labels count the classes from 0, as integers."),
        target=Row("COLUMN", "True numbers, for regression.", everyday=True),
        truth=Row("PATTERN|COLUMN", "Instead of --label, where several can be true: 1 or 0 for each. Alpha bounds the "
                  "share missed."),
        losses=Row("PATTERN|COLUMN", "Risk control: losses at every finite candidate, bounded by alpha; needs "
                   "--candidates and --loss."),
        score=Row("NAME", "Of probabilities: lac (default), aps, 'raps(penalty=0.01,k_reg=5)', 'saps(penalty=0.1)', "
                  "margin, top_k; all but the last with a public temperature, 'lac(temperature=2)'. Of LOWER,UPPER: "
                  "cqr (default), cqr_low, cqr_high, cqr_sides. Of --score-column: its name."),
        loss=Row("NAME", "With --losses: the loss's name."),
        bound=Row("NUMBER", "With --losses: the largest loss.", float),
        counts=Row("FILE", "Instead of TABLE: what `confide sql` had counted.", PLACE),
        plan=Row("FILE", "With --counts: the plan of `confide sql`.", PLACE),
    ),
    *_panel(PROMISE,
        alpha=Row("LEVEL[,LEVEL]", "Share of truths that may be missed: 0.1 asks for 90 % coverage; several, as "
                  "0.2,0.1, for nested thresholds.", everyday=True),
        delta=Row("PROBABILITY", "Promise coverage of this calibration with probability 1 - delta, not on average."),
    ),
    *_panel(PRIVACY,
        epsilon=Row("NUMBER", "Privacy loss; smaller is more private; 1 is common.", float, everyday=True),
        rho=Row("NUMBER", "zCDP loss, instead of --epsilon.", float),
        neighbors=Row("RELATION", "add_remove: whether a record is there stays secret, and so does their number. "
                      "replace_one: what it says stays secret, their number is public.", click.Choice(NEIGHBORS)),
        records_per_person=Row("K", "The most records of one person (public).", int),
        n=Row("N", "The public number of records under replace_one; databases need it with --ledger.", int),
        n_min=Row("N", "Public lower bound on the secret number of records.", int),
        n_typical=Row("N|noisy", "Public guess of the secret number of records, for efficiency only; or noisy: release "
                      "a noisy number first, at a twentieth of the privacy loss.", RecordsType()),
        dp_delta=Row("DELTA", "State (epsilon, delta)-privacy; 0 states pure epsilon.", float),
        label_epsilon=Row("LOSS", "Of labels that `confide randomise-labels` made: its --epsilon, or the file "
                          ".labels.json that it wrote."),
        confidence=Row("LEVEL", "Probability that all intervals hold at once (default: 0.95)."),
        rule=Row("RULE", "basic, zcdp, pld (which fixes the schedule in advance), or best: whose releases cover least "
                 "too much.", click.Choice((*RULES, "best"))),
    ),
    *_panel(THRESHOLD,
        selector=Row("RULE", "permute_and_flip (default) or exponential (with --rho).", click.Choice(SELECTORS)),
        mechanism=Row("NAME", "slopes, or to compare pps, pps-laplace, noisy-histogram, opendp-quantile, pcoqs and "
                      "pcoqs-published (with --rho: zCDP and no epsilon), or none, which is NOT PRIVATE.",
                      click.Choice(MECHANISMS)),
        candidates=Row("SPEC", "Public candidates, as unit:1000, geometric:UNIT, sinh:UNIT, around:THRESHOLD, "
                       "around:RELEASE, or their number (default: those that suit the score)."),
        unit=Row("NUMBER", "Of residuals: a public typical size of the target.", float),
        cold=Row(None, "Start without the earlier threshold; needed if records were in an earlier release of the "
                 "chain, too."),
    ),
    *_panel(PEOPLE,
        person=Row("COLUMN", "Who owns each record; the loss is stated per person."),
        max_records_per_person=Row("K", "How many of one person's records count.", int),
        order=Row("COLUMN,...", "What tells them apart, no scores or labels; the first K count."),
        sample=Row("TEXT", "Take K by a hash of this text and --order."),
        releases_per_person=Row("K", "In how many of the releases one person can be (default: in all).", int),
        evaluations_per_person=Row("K", "In how many of the evaluations one person can be (default: in all).", int),
        looks_per_person=Row("K", "In how many of the looks one person can be (default: in all).", int),
    ),
    *_panel(GROUPS,
        by=Row("COLUMN", "The column of each record's group; `evaluate` takes any column."),
        groups=Row("A,B,C", "With --by: a threshold for each of these; a public list, not taken from the records."),
        by_class=Row(None, "A threshold for each class, so that each is covered on its own."),
        partition=Row("NAME", "With --ledger: the public name of this division into groups, as ward."),
        parts=Row("KIND[,KIND]", f"Of sets: {' and '.join(PARTS)} (default: both), or none, for the total alone."),
        width_bins=Row("NUMBER,...", "With --epsilon, of intervals: public widths between which they are counted."),
    ),
    *_panel(SHIFT,
        class_weights=Row("A=W", "How many times as frequent classes are anew: A=0.5,B=2."),
        source_shares=Row("A=P", "Or by public shares: where the records come from,"),
        target_shares=Row("A=P", "and those of new records."),
        weight_column=Row("COLUMN", "Or public weights, functions of covariates alone."),
        weight_bound=Row("NUMBER", "What no weight exceeds.", float),
    ),
    *_panel(WATCH,
        state=Row("FILE", "Where the noisy counts of all looks are kept, which are public; made at the first look.",
                  PLACE, everyday=True),
        look=Row("NAME", "What this batch is called, as 2026-03-02; every batch has a new name.", everyday=True),
        batch=Row("N", "First look: the planned number of records of a look.", _AT_LEAST_1, everyday=True),
        watch_batch=Row("N", "Also say how soon `confide watch` sees a drop, with N records in each look.",
                        _AT_LEAST_1),
        watch_epsilon=Row("NUMBER", "Privacy loss of one look (default: 1).", float),
        tolerance=Row("SHARE", "How far below the promise coverage may lie (default: 0.02).", float),
        drop=Row("SHARE", "How far coverage falls below the promise (default: 0.05).", float),
        looks=Row("N", "How many looks are planned (default: 52).", _AT_LEAST_1),
        error=Row("SHARE", "First look: chance of a false alarm, ever (default: 0.05)."),
        unlabelled=Row(None, "Watch the sizes of sets instead, which need no truth; the first batch is the reference."),
        reference=Row("FILE", "With --unlabelled: a private evaluation with set sizes, instead of the first batch.",
                      PLACE),
    ),
    *_panel(PLANNED,
        releases=Row("COUNT", "Thresholds that are calibrated.", int, everyday=True),
        evaluations=Row("COUNT", "Private evaluations.", int, everyday=True),
        share=Row("SHARE", "The releases' share of the total; the others divide the rest."),
    ),
    *_panel(FEDERATION,
        answers=_argument("ANSWER...", "The silos' answers.", PLACE),
        opening=_argument("OPENING", "What the coordinator sent to this silo.", PLACE),
        name=_argument("NAME", "The name of the silo or of the coordinator."),
        silo=Row("PATH", "Public file of a silo, or a folder; repeat it.", PLACE, True, ("--silo", "--silos")),
        keys=Row("FILE", "Private keys, written by keygen.", PLACE, everyday=True),
        public=Row("FILE", "Where to write the public file.", PLACE),
        size=Row("N", "Number of calibration records, if it may be public.", _AT_LEAST_1),
        method=Row("NAME", f"How to calibrate: {', '.join(METHODS)} (default: as --compare recommends).",
                   click.Choice(METHODS), everyday=True),
        compare=Row(None, "Print what the methods would give for these silos, and which one to take.", everyday=True),
        also=Row("NAME", f"With --compare: this published method, too ({', '.join(COMPARABLE)}); repeat it.",
                 click.Choice(COMPARABLE)),
        of=Row("NAME", "Of several thresholds: the level, group or class that is meant, or cqr_low or cqr_high."),
        dropouts=Row("SILOS", "Silos that may be missing.", _AT_LEAST_0),
        liars=Row("SILOS", "Silos that may send anything.", _AT_LEAST_0),
        arbitrary=Row(None, "Whether a silo answers may depend on its scores."),
        colluding=Row("SILOS", "Of sums: silos that may collude with the coordinator.", _AT_LEAST_0),
        closes=Row("TIME", "UTC time after which answers are late, as 2030-01-31T12:00:00Z."),
        policy=Row("FILE", "A policy file, instead of --coordinator, --budget, --peer, --allow.", PLACE),
        coordinator=Row("FILE", "The coordinator's public file, compared by you.", PLACE, everyday=True),
        budget=Row("NUMBER", "Privacy loss that all releases about these records together may cost.", _LOSS,
                   everyday=True),
        per_plan=Row("NUMBER", "Privacy loss that one answer may cost (default: the whole budget).", _LOSS),
        peer=Row("PATH", "Of sums: public file of another silo, compared by you, or a folder of such files; repeat it.",
                 PLACE, names=("--peer", "--peers")),
        allow=Row("NAME", f"Allow this method, too, beside private-qq and secure-sum, of {', '.join(METHODS)}; "
                  "repeat it.", click.Choice(METHODS)),
        least_colluding=Row("SILOS", "Of sums: refuse plans that withstand fewer colluding silos (default: 1).",
                            _AT_LEAST_0),
        drop_refused=Row(None, "Leave unusable answers out and say so, instead of stopping."),
    ),
    *_panel(LEDGER,
        server=_argument("SERVER", "postgresql://OWNER@HOST/DB, a database that is the ledger's own."),
        old=_argument("FROM", "A ledger: a file, or its owner's address."),
        new=_argument("TO", "A new file, or postgresql://OWNER@HOST/DB."),
        ledger=Row("LEDGER", "Charge this ledger first, for --dataset; the same request about the same data is free. A "
                   "file, or postgresql://ROLE@HOST/DB.", everyday=True),
        dataset=Row("NAME", "The name of these people's data in the ledger.", everyday=True),
        again=Row(None, "The same people with new records or a new model: charge a new release."),
        group=Row("PARTITION=CELL", "One cell of a public partition, as region=north."),
        one_cell=Row(None, "With --person: each person is in one cell only."),
        charged_by=Row("NAME", "Who charges, kept in a file; a server has roles."),
        ledger_key=Row("FILE", "At least 16 secret random bytes: binds the name to this very input file.", PLACE),
        schedule=Row("FILE", "Take what this may spend from a schedule, as `confide budget plan --out` wrote it.",
                     PLACE),
        charge_role=Row("NAME", "A role of the server that may charge, and never erase; repeat it. Made, without "
                        "login, if it is new."),
        read_role=Row("NAME", "A role that may read all but the ledger's key; repeat it."),
        head=Row("FILE", "Remembers the last record, and refuses a ledger without it.", PLACE),
    ),
    *_panel(AUDIT,
        paths=_argument("PATH", "Files, and folders with all below: which advisories concern them?", PLACE),
        least_records=Row("N", "The least number of records for which its coverage is claimed (default: 50).",
                          _AT_LEAST_1),
        seconds=Row("S", "Run the mechanism as often as fits into this time (default: 120).", _LOSS),
        long=Row(None, "Run everything ten times as often."),
        level=Row("P", "Probability, at most, that honest mechanisms fail the audit by chance.", float),
    ),
    *_panel(CONTENT,
        dialect=Row("NAME", f"{', '.join(DIALECTS)}; with --dbt also several, as duckdb,snowflake.", everyday=True),
        dbt=Row(None, "Print a macro for dbt instead of a query."),
        records=Row("K", "Also state the loss when K records change at once.", int),
        previous=Row("FILE", "An earlier release: demand that it is in the chain; repeat it.", PLACE),
        evaluation=Row("FILE", "What `confide evaluate --out FILE` wrote for this release; private if it had "
                       "--epsilon.", PLACE),
        answer=Row("FILE", "Federated: a silo's answer, to show it; repeat it.", PLACE),
        silo_report=Row("FILE", "Federated: a silo's private estimate of its coverage; repeat it.", PLACE),
        title=Row("TEXT", "Heading of the page."),
        explorer=Row(None, "Sliders that try other values of epsilon, alpha and n."),
        without_names=Row(None, "Leave out who charged."),
    ),
    *_panel(CONDITIONS,
        epsilon_at_most=Row("NUMBER", "The largest privacy loss of one person: the larger under the relations that "
                            "are stated; of a watch, of all looks together.", float),
        coverage_at_least=Row("LEVEL", "The least coverage that may be promised: by each of several thresholds; or the "
                              "rest of the share that is missed at most.", float),
        private=Row(None, "Records must be protected, not their labels alone. (Without privacy no release passes.)"),
        signed=Row(None, "There must be a signature, by any key; --signer demands a certain one."),
    ),
    *_panel(OUTPUT,
        out=Row("FILE", "Where to write.", PLACE, everyday=True),
        out_table=Row("NAME", "A new table in the same database or Spark."),
        out_folder=Row("FOLDER", "Where to write a file for every opener; made if new.", PLACE),
        partition_by=Row("COLUMN,...", "For a folder: columns whose values become folders in it."),
        keep=Row("COLUMN,...", "Input columns to keep; may be repeated (default: all but the probabilities)."),
        about=Row("KEY=TEXT", f"Public words, repeatable; KEY: {', '.join(ABOUT)}."),
        examples=Row("K", "Keep the sets and true labels of the first K records in it, as they are.",
                     click.IntRange(0, MOST_EXAMPLES)),
        fail_below_promise=Row(None, "Exit with code 5 if coverage is surely less than promised, and luck in "
                               "calibrating does not explain it. A correct release fails once in 1,000 times at most; "
                               "where the number of calibration records is secret, that is of 1,000 records or more."),
        force=Row(None, "Replace an earlier output of the same kind, and nothing else.", everyday=True),
        as_json=Row(None, "Print one line of JSON, nothing else.", everyday=True, names=("--json",)),
    ),
])  # fmt: skip
"""The row of each option, by the field that names it."""


class Change(TypedDict, total=False):
    """In what the row of an option differs in a command."""

    metavar: str
    help: str
    kind: "click.ParamType[Any]"
    everyday: bool
    panel: str


_SAME = Change(help="The same file, as commands that read a table name it.", panel="")
_ONE_LEVEL = Change(
    help="Of several levels this one only (default: all).", metavar="LEVEL", panel=COLUMNS, everyday=False
)
_OF_PILOT = dict.fromkeys(("probabilities", "prediction", "label", "target"), Change(everyday=False))
_DATASET = _argument("DATASET", "The name of a data set.")
_SIZES_OF_SILOS = "Public lower bound on the secret number of records (default: 1; of each group 0)."
_SILO_LEDGER = "This silo's budget ledger: a file, made if new, or postgresql://ROLE@HOST/DB. Keep it."
_NAMED_LEDGER = "Name this silo's budget ledger (made if new) in the public file: copies of the keys need it, too."

BY_COMMAND: Mapping[str, Mapping[str, Row | Change | str]] = {
    "plan": {
        **_OF_PILOT,
        "alpha": Change(help="Share of truths that may be missed: 0.1 asks for 90 % coverage; also a fraction.",
                        metavar="LEVEL"),
        "n": Change(help="Number of calibration records to state the cost for. Under add_remove it is a guess and is "
                         "never used.", panel=PROMISE, everyday=True),
        "candidates": Change(help="Number of candidate thresholds, or a SPEC as in `confide calibrate` (default: as "
                                  "many as suit the score and the other choices).", metavar="NUMBER|SPEC"),
        "out": "Also write an HTML page that shows it, to be moved.",
    },
    "recalibrate": {
        "partition": "With --ledger, for groups: the public name of this division, as ward.",
        "weight_column": Change(help="For a release whose records have public weights: the column of each.",
                                panel=COLUMNS),
    },
    "predict": {
        "alpha": _ONE_LEVEL,
        "out": Change(help="Where to write. A name without an ending, or one that ends in /, is a new folder of "
                           "Parquet files; from Spark the executors write it, also to an address such as "
                           "s3a://BUCKET/NAME.", metavar="FILE|FOLDER", kind=TABLE),
    },
    "evaluate": {
        "alpha": _ONE_LEVEL,
        "epsilon": "Evaluate privately, at this loss: counts with noise, which may be published.",
        "neighbors": "add_remove (default): the number of records stays secret. replace_one: it is public.",
        "groups": "With --epsilon and --by: all groups, a public list, not taken from the records.",
        "out": "Also write what was found as JSON, for `confide report --evaluation FILE`.",
    },
    "watch": {
        "alpha": {**_ONE_LEVEL, "help": "Of several levels the one that is watched."},
        "epsilon": "First look: privacy loss of every look, for whoever is in it.",
        "neighbors": "First look: add_remove (default) or replace_one.",
        "records_per_person": Change(help="First look: the most records of one person in a look (public).",
                                     kind=_AT_LEAST_1),
        "n_typical": Change(help="Public guess of the number of calibration records, to judge the tolerance.",
                            kind=_AT_LEAST_1, panel=WATCH),
        "tolerance": "First look: how far below the promise coverage may lie (default: 0.02).",
        "looks": "First look: how many are planned; more may follow (default: 52).",
        "out": Change(help="Also write an HTML page with the course of all looks.", everyday=False),
        "force": Change(everyday=False),
    },
    "sql": {
        "n": "The public number of records, needed under replace_one.",
        "table": Change(help="The table, its parts between points; with --dbt the model says it.",
                        panel=CONTENT, everyday=True),
        "mechanism": "As in `confide calibrate`.",
        "plan": Change(help="Also write the request, for `confide calibrate --counts COUNTS --plan FILE`.",
                       panel=OUTPUT, everyday=True),
    },
    "randomise-labels": {
        "label": "The true labels, which are randomised.",
        "classes": "All class names: a public list, not taken from the labels.",
        "epsilon": "Privacy loss of each label.",
        "keep": "Other columns to keep; may be repeated (default: all).",
        "out": "A new table; FILE.labels.json beside it says how labels were randomised.",
    },
    "show": {
        "file": _argument("FILE", "A release, an evaluation, a watch, a schedule, a plan, a statement, a file of a "
                          "federation.", PLACE),
        "calibration": _SAME,
    },
    "verify": {
        "file": _argument("RELEASE", f"{RELEASE} Or a private evaluation, or a watch.", PLACE),
        "calibration": _SAME,
        "signer": Row("FILE", "Public file of the signer, or the coordinator: demand this signature.", PLACE,
                      names=("--signer", "--coordinator"), panel=CONDITIONS),
        "answer": Change(help="A silo's answer: demand that it counts; repeat it.", panel=CONDITIONS),
        "previous": Change(panel=CONDITIONS),
        "neighbors": Change(help="With --epsilon-at-most: the one relation that it is about (default: all that are "
                            "stated).", panel=CONDITIONS),
    },
    "sign": {
        "file": _argument("RELEASE", "What `confide calibrate` or `recalibrate` wrote.", PLACE),
        "keys": "The private keys of the signer.",
    },
    "report": {
        "file": _argument("RELEASE", RELEASE, PLACE),
        "calibration": _SAME,
        "ledger": Change(help="What was charged for it, and spent before and since: a file, or "
                              "postgresql://ROLE@HOST/DB.", panel=CONTENT),
    },
    "audit": {
        "mechanism": Row("MODULE:CALLABLE", "Audit this mechanism instead of the library's own: a function of an array "
                         "of scores in [0, 1] that returns a threshold (docs/audit.md). Its code is run.", panel=AUDIT),
        "epsilon": Change(help="The privacy loss that it claims per record.", panel=AUDIT),
        "alpha": Change(help="The share of truths that it claims to miss at most.", metavar="LEVEL", panel=AUDIT),
        "neighbors": Change(help="The relation of its privacy claim: add_remove or replace_one (default: replace_one).",
                            panel=AUDIT),
        "records": Row("N", "Size of the small data sets that it is attacked on.", click.IntRange(2, 1000),
                       panel=AUDIT),
        "out": "Also write the findings as JSON.",
    },
    "demo": {
        "out": Change(help="Where to leave the files.", metavar="FOLDER"),
        "force": "Replace the files of an earlier demo.",
    },
    "budget plan": {
        "alpha": Change(help="Share of truths that a release may miss, likewise.", metavar="LEVEL"),
        "n": Row("N,N", "Numbers of records in one release to state its coverage for.", panel=PROMISE),
        "epsilon": "The total per person, over all that is planned.",
        "dp_delta": "The total is (epsilon, delta)-privacy; with 0 epsilons add up.",
        "neighbors": "The relation that losses are stated for: add_remove or replace_one.",
        "records_per_person": Change(help="The most records of one person within one release.", panel=PEOPLE),
        "looks": Row("COUNT", "Looks at the coverage of a batch of records.", int, everyday=True, panel=PLANNED),
        "out": "Write the schedule, for --schedule and `confide ledger follow`.",
    },
    "ledger": {"file": _argument("LEDGER", "A ledger: its file, or postgresql://ROLE@HOST/DB.")},
    "ledger show": {"dataset": _DATASET},
    "ledger limit": {
        "dataset": _DATASET,
        "epsilon": _argument("EPSILON", "The most that may be spent; leave out to lift the limit.", float),
        "neighbors": "The relation that the data set is accounted under: add_remove or replace_one.",
    },
    "ledger follow": {
        "dataset": "The data set whose charges follow it.",
        "schedule": _argument("SCHEDULE", "The schedule, as `confide budget plan --out` wrote.", PLACE),
    },
    "ledger export": {"out": "Where to write (default: standard output)."},
    "ledger report": {
        "dataset": Change(help="Only this data set.", panel=CONTENT),
        "dp_delta": Change(help="Add up at this delta besides pure epsilon; 0 for none.", panel=CONTENT),
    },
    "federated": {
        "plan": Change(help="The signed plan.", panel=FEDERATION, everyday=True),
        "calibration": Change(help="What aggregate wrote.", panel=FEDERATION),
        "dataset": Change(help="The name of these records in the ledger.", everyday=False),
        "ledger": _SILO_LEDGER,
    },
    "federated keygen": {
        "keys": "Where to write the private keys.",
        "ledger": _NAMED_LEDGER,
    },
    "federated public": {"ledger": _NAMED_LEDGER},
    "federated plan": {
        "n_typical": Change(help="Public guess of secret numbers of records; for efficiency only.", kind=click.INT),
        **_OF_PILOT,
        "pilot": f"With --compare: {_PILOT}",
        "n_min": Change(help=_SIZES_OF_SILOS, kind=_AT_LEAST_0),
        "dp_delta": "fedcp2-qq-sum: let the opened sum cost (epsilon, this), where summing saves loss.",
        "groups": "private-qq: a threshold for each of these; a public list, not taken from the records.",
        "by_class": "private-qq: a threshold for each of --classes, so that each is covered.",
        "out": "Where to write the plan; with --compare it can be left out.",
    },
    "federated answer": {"by": "For a plan with a threshold for each group: the column of each record's group."},
    "federated open": {"policy": "A policy file, instead of --coordinator."},
    "federated aggregate": {
        "answers": "The silos' answers, and openers' parts where there are.",
        "keys": "The coordinator's private keys: sign, for `confide verify`.",
    },
    "federated own": {"answer": _argument("ANSWER", "The silo's answer, as it was sent.", PLACE)},
    "federated report": {
        "by": "For a release with a threshold for each group: the column of each record's group.",
        "silo": Row("NAME", "This silo's name in the plan.", everyday=True, panel=FEDERATION),
        "epsilon": "Privacy loss that the report may cost.",
        "again": "New records of the same people: count and charge anew.",
    },
}  # fmt: skip
"""What differs in a command, or in all commands of a group, by the field: the help alone, more of the row, or all."""


def row_of(command: str, field: str) -> Row:
    """The row of an option in a command, such as `ledger show`."""
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
