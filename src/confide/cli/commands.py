"""The commands of one machine: each is a dataclass of its options, with its help, and names the function that runs it.

A field has the name of the argument of the Python API, and a row of `confide.cli.options`.
"""

from dataclasses import dataclass
from pathlib import Path

from confide.cli.command import command
from confide.cli.options import CALIBRATE, EVALUATE, NAMES, PREDICT, RECALIBRATE, WATCH, Neighbors
from confide.cli.output_options import OptionalOutput, Output

# Options that several commands share


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The choice of printing JSON."""

    as_json: bool = False


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """The columns of a model's outputs, and other arguments as NAME=VALUE."""

    probabilities: str | None = None
    classes: str | None = None
    prediction: str | None = None
    by: str | None = None
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Scored(Predicted):
    """The columns of a score."""

    label: str | None = None
    target: str | None = None
    column: str | None = None
    score: str | None = None


@dataclass(frozen=True, kw_only=True)
class OfRelease:
    """A table, and the release that it is about."""

    file: str
    table: str | None = None
    release: Path


@dataclass(frozen=True, kw_only=True)
class RequestOptions(Scored):
    """The everyday options of a request, and its file."""

    alpha: str | None = None
    epsilon: float | None = None
    neighbors: str | None = None
    n: int | None = None
    groups: str | None = None
    request_file: Path | None = None


@dataclass(frozen=True)
class LedgerOptions:
    """The options of the ledger and the data set."""

    ledger: str | None = None
    dataset: str | None = None
    again: bool = False
    group: str | None = None


# Commands


@command("plan", "plan:plan", NAMES)
class Plan(RequestOptions, Printed):
    """Compute guarantee and cost of a calibration, without private data.

    The request is that of `confide calibrate`; its columns matter for the
    score, and for --pilot, a PUBLIC sample: with it the plan states how large
    sets and intervals will be. With --out it is also written as a page.

    Example:

      confide plan --alpha 0.1 --epsilon 1 --n 2000 --out plan.html
    """

    pilot: str | None = None
    table: str | None = None
    output: OptionalOutput


@command("calibrate", "calibrate:calibrate", CALIBRATE)
class Calibrate(RequestOptions, Printed):
    r"""Calibrate privately on records with true labels.

    TABLE has one record per row. A private threshold is selected from their
    scores: of class probabilities and labels, of predictions and targets, or
    ready-made. The output file contains the threshold, its guarantee and its
    privacy cost, and nothing else about the records. Every run spends epsilon
    again, unless --ledger recognises the same request with the same data.
    `confide request` writes a file with all arguments of a request, for
    --request or, one by one, for --set.

    Example:

      confide calibrate records.parquet --probabilities 'p_*' --label label \
        --alpha 0.1 --epsilon 1 --out cal.json
    """

    file: str = ""
    table: str | None = None
    counts: tuple[Path, ...] = ()
    noisy_counts: Path | None = None
    budget: LedgerOptions
    output: Output


@command("request", "request_file:write_request")
class WriteRequest:
    """Write a file with all arguments of a request, to edit and to review.

    It is TOML for --request of `confide calibrate`, `recalibrate`, `plan`,
    `sql` and `federated plan`: every argument is a comment with its sentence
    and its default. An argument that the file states cannot be changed by an
    option or by --set.

    Example: confide request --out request.toml
    """

    output: Output


@command("recalibrate", "calibrate:recalibrate", RECALIBRATE)
class Recalibrate(Scored, OfRelease, Printed):
    r"""Renew a release on new records with true labels.

    The request (level, score, adjacency, groups, privacy loss) is that of the
    release; name the columns of TABLE again, or give the --request file of
    the release. It costs as much as a new release (--epsilon: by default that
    of the earlier one), and the costs add up for people who are in both. The
    file states the SHA-256 of the release that it renews.

    Example:

      confide recalibrate february.parquet --calibration january.json \
        --probabilities 'p_*' --label label --out february.json
    """

    epsilon: float | None = None
    n: int | None = None
    request_file: Path | None = None
    budget: LedgerOptions
    output: Output


@command("predict", "predict:predict", PREDICT)
class Predict(Predicted, OfRelease, Printed):
    r"""Predict sets of classes, or intervals, for new records.

    The output is a file or a folder. It has the columns of TABLE (without the
    probabilities) and, for classes, prediction_set (a list of class names; in
    CSV a JSON array) and set_size; for numbers, lower and upper; for several
    levels such columns for each. Predicting costs no privacy.

    Example:

      confide predict new.parquet --calibration cal.json \
        --probabilities 'p_*' --out sets.parquet
    """

    alpha: str | None = None
    keep: tuple[str, ...] = ()
    out: str
    force: bool = False


@command("evaluate", "predict:evaluate", EVALUATE)
class Evaluate(Scored, OfRelease, Printed):
    r"""Measure coverage and set size on records with true labels.

    TABLE has records that were not used for calibration. The output first
    states whether their coverage is below the promised one by more than chance
    in the calibration explains. If so, the records, the model or a column
    differ from those of the calibration. The promise is an average. The output
    therefore also lists coverage by class, by group (--by, any column) and by
    set size, and marks all parts that are below it beyond chance. The numbers
    are computed without noise: they are not private. Share them only if you
    may publish facts about these records.

    With --epsilon the counts have noise, and may be published: coverage over
    all, by class, by set size, and by group (--by with --groups), with
    intervals that hold simultaneously, noise included.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label --epsilon 1 --out private.json
    """

    alpha: str | None = None
    epsilon: float | None = None
    group_names: str | None = None
    fail_below_promise: bool = False
    budget: LedgerOptions
    output: OptionalOutput


@command("watch", "watch:watch", WATCH)
class Watch(Scored, OfRelease, Printed):
    r"""Monitor coverage privately, batch by batch; exit code 6 is an alarm.

    TABLE is a new batch of records with true labels, of a day or a week. One
    batch is one look. Two noisy counts of it are stored. With those of all
    earlier looks they test whether coverage is still at least the promised
    one, minus a tolerance (--set tolerance). The probability of a false alarm
    is at most 0.05 (--set error) over all looks together. A person in k
    batches spends epsilon k times. The first look needs --epsilon and fixes
    it. Small batches are collected in a folder and counted together, as one
    look.

    Example:

      confide watch monday.parquet --calibration cal.json \
        --state watch.json --look 2026-03-02 --epsilon 1 --batch 500 \
        --probabilities 'p_*' --label label
    """

    state: Path
    look: str | None = None
    alpha: str | None = None
    epsilon: float | None = None
    batch: int | None = None
    unlabelled: bool = False
    in_force: Path | None = None
    budget: LedgerOptions
    output: OptionalOutput


@command("show", "show:show")
class Show(Printed):
    """Print the promise and the privacy cost of a release.

    FILE is a release of `confide calibrate` or `confide federated aggregate`.
    Every claim is recomputed from the mechanisms that the file states. FILE may
    also be an output of `confide evaluate --out` or a monitor. It may also be a
    public file, a plan, a policy or an answer of a silo: signatures are checked,
    and the fingerprints are printed for comparison.

    Example:

      confide show cal.json --records 3
    """

    path: Path
    records: int = 1


@command("verify", "show:verify")
class Verify(Printed):
    r"""Check a release: its claims, its signature, and your conditions.

    Every claim is recomputed from the file; a file that claims more than
    follows gives exit code 3. For a federation the output states who signed
    the release and which answers its threshold was computed from. No file
    shows that a threshold was drawn with noise: this rests on those who ran
    the calibration. Exit code 5, and a line for each reason, if the release is
    not private, does not meet a condition, is not signed by --signer, or
    does not count an --answer.

    Example:

      confide verify released.json --epsilon-at-most 1.2 \
        --coverage-at-least 0.9 && publish released.json
    """

    path: Path
    epsilon_at_most: float | None = None
    coverage_at_least: float | None = None
    private: bool = False
    signed: bool = False
    neighbors: str | None = None
    signer: Path | None = None
    answers: tuple[Path, ...] = ()


@command("sign", "show:sign_release")
class Sign:
    """Sign a release of one machine, for `confide verify --signer`.

    RELEASE is a release of `confide calibrate` or `recalibrate`. Every claim is
    recomputed first. All commands that read a release read the signed file as
    well. `confide federated keygen` creates keys and their public file. (A
    federation's release is signed by `confide federated aggregate --keys`.)

    Example:

      confide sign released.json --keys office.key --out signed.json
    """

    path: Path
    keys: Path
    output: Output


@dataclass(frozen=True, kw_only=True)
class AboutRelease:
    """A document about a release, with an evaluation of it."""

    path: Path
    evaluation: Path | None = None
    title: str | None = None
    output: Output


@command("report", "show:report")
class Report(AboutRelease):
    """Write an HTML page about a release: promise, privacy, cost, provenance.

    RELEASE is a release of `confide calibrate` or `confide federated
    aggregate`. Every claim is recomputed first. The page is one HTML file that
    loads nothing; without --evaluation it contains nothing about the records
    except the release. With --ledger it states the budget spent before and
    with this release.

    Example:

      confide report cal.json --out report.html
    """

    answers: tuple[Path, ...] = ()
    ledger: str | None = None


@command("card", "show:card")
class Card(AboutRelease):
    """Write a model card of a release, with metadata for the Hugging Face Hub.

    RELEASE is a release of `confide calibrate` or `confide federated
    aggregate`. Every claim is recomputed first. The card is Markdown that
    begins with YAML (`model-index`): guaranteed coverage, epsilon, and with
    --evaluation coverage with its interval. With a name that ends in .html it
    is a page.

    Example:

      confide card released.json --evaluation evaluation.json --out README.md
    """

    task: str | None = None


@command("sql", "calibrate:sql", NAMES)
class Sql(RequestOptions):
    r"""Print the query that counts in a warehouse, where no Python runs.

    Nothing is read, connected to or charged. The query computes a score per
    record (lac, absolute_residual, cqr and its sides, or a column of scores)
    and counts it over the candidates that follow from the request. Run it,
    keep its answer where the records are kept, for it is as private, and
    hand it to `confide calibrate --counts` with the same request. Class names
    stand for the * of --probabilities: the request has to list all classes.

    Example:

      confide sql --dialect snowflake --table clinic.records \
        --request request.toml > count.sql
    """

    dialect: str
    table: str


@command("demo", "calibrate:demo")
class Demo:
    """Run an example on real data, with explanations.

    Takes some seconds: trains a model on handwritten digits, calibrates it
    privately, predicts sets for unseen images, and writes the release, the
    sets and the probabilities to files that you can continue with.

    Example:

      confide demo --out demo-output
    """

    out: Path = Path("demo-output")
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class Year:
    """The arguments of `budget_plan`."""

    epsilon: float
    dp_delta: float = 1e-6
    releases: int = 0
    evaluations: int = 0
    looks: int = 0
    share: str = "0.5"
    releases_per_person: int | None = None
    evaluations_per_person: int | None = None
    looks_per_person: int | None = None
    records_per_person: int = 1
    neighbors: str = "add_remove"


@command("budget plan", "plan:budget_plan")
class Budget(Printed):
    r"""Divide one total per person among a year's releases, from public numbers.

    Compares the rules of composition: the epsilon of each release, the
    expected coverage of its threshold, and the number of records from which
    noise adds less than sampling to a look. Give the epsilons to the commands
    of these releases.

    Example:

      confide budget plan --releases 12 --looks 52 --looks-per-person 1 \
        --epsilon 3 --n 500,1000,5000
    """

    year: Year
    rule: str = "best"
    n: str = "1000"
    alpha: str = "0.1"


@command("ledger list", "ledger:list_")
class LedgerList(Printed):
    """List the data sets with the budget spent and left.

    Example: confide ledger list budget.db
    """

    file: str | None = None


@command("ledger show", "ledger:show")
class LedgerShow(Printed):
    """Show every charge of a data set, their total, and its derivation.

    With --out one HTML page for privacy officers, about one data set or all.
    Every seal of the ledger is checked first.

    Example: confide ledger show budget.db patients --dp-delta 1e-6
    """

    file: str | None = None
    dataset: str | None = None
    dp_delta: float = 0.0
    without_names: bool = False
    title: str | None = None
    output: OptionalOutput


@command("ledger limit", "ledger:limit")
class LedgerLimit(Printed):
    """Set the limit of a data set, and create its ledger; without EPSILON remove it.

    If CONFIDE_LEDGER names a ledger, one or two arguments are DATASET [EPSILON].

    Example: confide ledger limit budget.db patients 2.0
    """

    file: str
    dataset: str | None = None
    epsilon: float | None = None
    dp_delta: float = 0.0
    neighbors: Neighbors = "add_remove"


@command("ledger export", "ledger:export")
class LedgerExport:
    """Write the contents of a ledger as one JSON document.

    Every seal of the ledger is checked first.

    Example: confide ledger export budget.db --out budget.json
    """

    file: str | None = None
    output: OptionalOutput


@command("ledger init", "ledger:init")
class LedgerInit:
    """Create a ledger, or let more roles use one on a PostgreSQL server.

    On a server the role of the address owns it and sets limits; jobs use a
    role of --charge-role. Put passwords into the file that PGPASSFILE names.
    --spent enters what the people of --dataset have lost before, for example
    according to a ledger of an earlier version.

    Example:

      confide ledger init postgresql://dpo@db/budget --charge-role jobs
    """

    file: str
    charge_role: tuple[str, ...] = ()
    read_role: tuple[str, ...] = ()
    dataset: str | None = None
    spent: float | None = None
    neighbors: Neighbors = "add_remove"
