"""Calibration and recalibration from tables of any kind: the request, the records as its source, and the calls."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Unpack

from confide.candidates import AnyCandidates, Candidates, Spread
from confide.core import (
    ClassShift,
    GroupOptions,
    Payer,
    Population,
    RecordWeights,
    Release,
    Request,
    check_combinations,
    check_together,
    is_several,
    open_account,
    prepare,
    refuse_weights,
    release,
    renewed,
    shares_of_sides,
    shifted_population,
    split_options,
)
from confide.errors import InputError
from confide.scores import kind_of_task
from confide.support import Level, order_of, positive_integer, require, takes_alpha
from confide.tables.bin_counts import Job
from confide.tables.columns import ColumnSpec, score_named_by
from confide.tables.named_columns import GroupedColumns
from confide.tables.open_table import as_open_table
from confide.tables.people import ContributionBound
from confide.tables.predictors import release_class_names
from confide.tables.query_answers import CountsFiles
from confide.tables.source import Columns, TableSource
from confide.tables.table import Progress, Table, no_progress
from confide.tables.unread import UnreadTable


class TableOptions(GroupOptions, total=False):
    """Further options of `calibrate_table`, which documents them."""

    by: str | Sequence[str] | None
    groups: Sequence[str | int] | Mapping[str, Sequence[str | int]] | None
    by_class: bool
    weights: str | None
    people: ContributionBound | None
    skip_incomplete: bool
    classes: Any
    share_low: Level
    shares: Sequence[Level] | None


class QueryOptions(TableOptions, total=False):
    """Further options of `counting_query`: those of `calibrate_table`, except progress."""

    n: int | None
    candidates: AnyCandidates
    class_weights: Mapping[Any, Any] | ClassShift | None
    weight_bound: float | None


@dataclass(frozen=True)
class TableRequest:
    """A request to calibrate on a table. It is checked before the table is opened; its classes are named afterwards."""

    columns: Columns
    request: Request
    payer: Payer
    n: int | None = None
    previous: Release | None = None

    def __post_init__(self) -> None:
        self.payer.check(divided=self.is_divided)
        if self.n is not None and (self.is_divided or not self.request.public_n):
            raise InputError("n", "must be left out: the number of records, or of those in each group, is secret")

    @property
    def is_divided(self) -> bool:
        """Whether there is a threshold for each group or class, whose names may come from the table."""
        return self.request.disjoint or self.columns.by_class

    @classmethod
    def of(
        cls,
        what: ColumnSpec,
        alpha: Level | Sequence[Level],
        epsilon: float | None = None,
        *,
        n: int | None = None,
        candidates: AnyCandidates = None,
        class_weights: Mapping[Any, Any] | ClassShift | None = None,
        weight_bound: float | None = None,
        **options: Unpack[TableOptions],
    ) -> "TableRequest":
        """Build the request from the arguments of `calibrate_table`."""
        # Divide the options into columns, the payer and fields of a request
        if what._labelled:
            kind_of_task(str(what.kind.name), "classification", "a classification score, such as 'lac' or 'aps'")
        columns, rest = Columns.split(what, options)
        payer, request_options = split_options("calibrate_table", rest, "partition", "share_low", "shares", "classes")
        if "classes" in request_options and what._classified is not None:
            raise InputError("classes", "must be left out: they are those of the columns of probabilities")
        columns = replace(columns, what=what._over(candidates))
        if columns.people is not None:
            request_options["records_per_person"] = columns.people.bound(request_options.get("records_per_person"))
        # Refuse what does not fit together
        if n is not None:
            positive_integer("n", n)
        check_together(weights=columns.weights, weight_bound=weight_bound)
        population = shifted_population(class_weights, weight_bound)
        columns.check(population)
        request_options |= _division(columns, alpha, population)
        if population is not None:
            refuse_weights(request_options.get("by"), ["weights" if class_weights is None else "class_weights"])
        if columns.by_class:
            check_combinations({**request_options, "by": "class"})
        # Derive the remaining fields
        share_low = request_options.pop("share_low", None)
        if share_low is not None:
            must = "must be left out: it divides the loss between two sides, instead of shares"
            require("share_low", request_options.get("by") == "side" and "shares" not in request_options, must)
            request_options["shares"] = shares_of_sides(share_low)
        request_options["about"] = _about(what, request_options)
        request = Request(alpha=alpha, epsilon=epsilon, candidates=candidates, population=population, **request_options)
        return cls(columns, request, payer, n)

    @classmethod
    def again(
        cls,
        previous: Release,
        what: ColumnSpec,
        *,
        n: int | None = None,
        epsilon: float | None = None,
        candidates: AnyCandidates = None,
        **options: Unpack[TableOptions],
    ) -> "TableRequest":
        """Build the request from the arguments of `recalibrate_table`."""
        # Renew the request of the release, with the columns that are given
        columns, rest = Columns.split(what, options)
        payer, request_options = split_options("recalibrate_table", rest, "partition")
        request_options["about"] = _about(what, request_options)
        request = renewed(previous, epsilon=epsilon, candidates=candidates, **request_options)
        # Refuse columns that would change what the release states
        if columns.people is not None and columns.people.most != request.records_per_person:
            must = f"must bound the records of each person by {request.records_per_person}, as in previous"
            raise InputError("people", must, got=str(columns.people.most))
        if columns.by_class or columns.groups is not None:
            raise InputError("groups", "groups and by_class must be left out: they are those of previous")
        weighted = isinstance(request.population, RecordWeights)
        must = "weights, the column, must be given for a release whose records have weights, and only then"
        require("weights", (columns.weights is not None) == weighted, must)
        what = what._with_score(score_named_by(previous))
        columns = replace(_with_release_groups(columns, request), what=_with_release_score(what, request))
        return cls(columns, request, payer, n, previous)

    def check_limit(self) -> None:
        """Check the ledger's limit; for classes and groups, whose names come from the table, as if there were one."""
        bills = {key: step.bill for key, step in prepare(self.request, self.n).items()}
        with open_account(self.request, self._charged.payment(self.request, bills)) as account:
            account.check_limit()

    @property
    def _charged(self) -> Payer:
        people = self.columns.people
        return self.payer if people is None else replace(self.payer, dataset=people.payer(self.payer.dataset))

    def release(self, source: Any, progress: Progress = no_progress) -> Release:
        """Make the release from the table of this name, from an open table, or from the files of its counts."""
        with ExitStack() as opening:
            if isinstance(source, CountsFiles):
                table: Table = UnreadTable(self.columns, files=source.paths)
            else:
                table = opening.enter_context(as_open_table(source))
            records, request = self._records(table, progress)
            counted = bounded(request, table.most_candidates, self.n) if records.in_sql else request
            released = release(records, counted, self._charged)
        return released if counted is request else replace(released, request=request.stated())

    def query(self, dialect: str, table: str) -> str:
        """The query that counts for the request; no table is read."""
        unread = UnreadTable(self.columns, table, dialect)
        records, request = self._records(unread)
        prepare(request, self.n)
        candidates = bounded(request, unread.most_candidates, self.n).counted_over(self.n)
        rows = records.rows
        assert isinstance(rows, UnreadTable)
        return rows.query([Job(columns, candidates) for columns in records.records])

    def _records(self, table: Table, progress: Progress = no_progress) -> tuple[TableSource, Request]:
        """The records of a table, and the request with the names of classes and groups, which may come from it."""
        columns = self.columns
        request = self.request
        records = columns.source(table, request.population, progress=progress, n=self.n)
        # The fields that follow from the columns
        from_table: dict[str, Any] = {}
        if (classified := columns.what._classified) is not None:
            probabilities, classes = classified.columns(table)
            from_table["classes"] = classes
        if (group := records.group) is not None and request.population is None:
            names = group.columns if isinstance(group, GroupedColumns) else group.names
            from_table |= {"by": "class" if columns.by_class else "group", "names": names}
        # A renewal already states them, so that the table's must agree
        if self.previous is not None:
            if classified is not None:
                release_class_names(self.previous, probabilities, classes)
            if columns.by_class and order_of(from_table["names"], tuple(request.terms)) is None:
                raise InputError("what", f"must have the {len(request.terms)} classes of previous", got="others")
            return records, request
        changes = {name: value for name, value in from_table.items() if getattr(request, name) != value}
        return records, replace(request, **changes) if changes else request


def bounded(request: Request, most: int | None, n: int | None) -> Request:
    """The request over lists of at most this many candidates; your own list is unchanged."""
    spread = next(iter(request.terms.values())).spread
    if most is None or not isinstance(spread, Spread) or request.counted_over(n).recipe["size"] <= most:
        return request
    return replace(request, candidates=replace(spread, most=most), unit=None)


def _about(what: ColumnSpec, request_options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The public metadata of a request: of its columns, and those that the caller states."""
    return {**what._outputs, **(request_options.get("about") or {})} or None


def _division(columns: Columns, alpha: Any, population: Population | None) -> dict[str, Any]:
    """The division into several thresholds, as fields of a request; the names of classes come from the table later."""
    requested = columns.what._requested  # may divide by side, or by loss
    by_level = is_several(alpha)
    by_group = columns.by is not None and population is None
    if sum([by_level, by_group, columns.by_class, "by" in requested, "loss" in requested]) > 1:
        must = "several levels, groups or classes, two sides, and losses must not be combined"
        raise InputError("by", must, got="two of them")
    if by_group:
        return {"by": "group", "names": columns.names, **requested}
    return {"by": "level", **requested} if by_level else requested


def _with_release_score(what: ColumnSpec, request: Request) -> ColumnSpec:
    """The same columns for the score of the release; raises `InputError` if they give another score or bound."""
    first, *_ = request.terms.values()
    what = what._over(first.spread if isinstance(first.spread, Candidates) else None)
    if {kind.name for kind in what.kinds} != {terms.score for terms in request.terms.values()}:
        must = f"must give the score {first.score!r}, as in previous"
        raise InputError("what", must, remedy=f"It gives {what.kinds[0].name!r}")
    bound = what._requested.get("bound", request.bound)
    if request.loss is not None and bound != request.bound:
        raise InputError("bound", f"must be that of previous, {request.bound:g}", got=f"{bound:g}")
    return what


def _with_release_groups(columns: Columns, request: Request) -> Columns:
    """The columns with the groups or classes of the release; `by` may also name the column of each record's class."""
    if not request.disjoint and request.overlap is None:
        if columns.by is not None and not isinstance(request.population, ClassShift):
            raise InputError("by", "must be left out: previous has no thresholds per group of records")
        return columns
    if columns.by is None and request.by == "group":
        raise InputError("by", "must be given, the column of each record's group: previous has thresholds for each")
    names = tuple(request.terms) if request.overlap is None else request.overlap.columns
    return replace(columns, by_class=True) if columns.by is None else replace(columns, groups=names)


@takes_alpha
def calibrate_table(
    source: Any,
    what: ColumnSpec,
    alpha: Level | Sequence[Level],
    epsilon: float | None = None,
    *,
    n: int | None = None,
    candidates: AnyCandidates = None,
    progress: Progress = no_progress,
    class_weights: Mapping[Any, Any] | ClassShift | None = None,
    weight_bound: float | None = None,
    **options: Unpack[TableOptions],
) -> Release:
    """Release thresholds from a table, with the guarantees of `calibrate` and related functions on the same scores.

    With a ledger, the budget is charged before the mechanism gets a count. If an engine counts, the budget is charged
    before the query is sent, because the engine's logs or its timing may reveal something. If this process reads the
    rows, unusable rows raise an error first and nothing is charged. A request that looks identical to an earlier one is
    counted first, for every kind of table, to decide whether the data are the same.

    Parameters
    ----------
    source, progress
        As in `score_histogram`.
    what
        The columns of each record. Regression with the score `cqr_sides` releases a threshold for each side, and
        `LossColumns` a threshold at which the expected loss is at most alpha.
    alpha
        The miscoverage level, or several for nested thresholds under one budget.
    n
        The public number of rows, under `replace_one` only. It is required there with a ledger if an engine counts. A
        table with another number of rows raises an error. Default candidates fit this number, as those of
        `confide.plan` do. Without `n` they fit the actual number. If rows can be read only once, the scores are counted
        over every candidate that may be selected.
    class_weights
        As in `calibrate`, with the classes named as in the table. The class of a record is its label, or the value of
        the column `by`.
    weight_bound
        The public bound of all weights in the column `weights`, as in `calibrate`.
    epsilon, candidates, **options
        As in `calibrate` (with `partition` for the ledger) and `calibrate_sides`.
        Further columns: `by` and `groups`, the column of the group and the public list of its values, for a threshold
        per group. For groups that overlap: several columns, and a mapping from each to the list of its values.
        `by_class`, for a threshold per class. `weights`, the column of the public weight. `people` and
        `skip_incomplete`, as in `score_histogram`. With `people`, epsilon is stated per person
        (docs/engines/README.md), and `records_per_person` follows from it.

    Returns
    -------
    Release
        Its keys follow from the arguments: None, levels, the names of groups or classes, or sides.

    Raises
    ------
    InputError
        If an argument cannot be used or rows have no usable score. Then nothing was released. A charge that preceded
        the query of an engine stands. A table without rows raises an error under `replace_one` only. Under
        `add_remove` it gives a release like every other table, because the existence of rows is secret.
    EngineError
        If the engine fails. Then nothing was released, and a charge stands.
    BudgetError, LedgerError
        If the ledger rejects the charge. Then no query was sent.

    Examples
    --------
    >>> import pyarrow, numpy as np
    >>> from confide.tables import ScoreColumn
    >>> rng = np.random.default_rng(0)
    >>> table = pyarrow.table({"s": rng.random(5000), "ward": rng.choice(["a", "b"], 5000)})
    >>> print(calibrate_table(table, ScoreColumn("s", "lac"), alpha=0.1, epsilon=1.0).privacy)
    1-differential privacy and 0.0993-zCDP for adding or removing one record
    >>> list(calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, by="ward", groups=["a", "b"]).parts)
    ['a', 'b']
    """
    shift: dict[str, Any] = {"class_weights": class_weights, "weight_bound": weight_bound}
    request = TableRequest.of(what, alpha, epsilon, n=n, candidates=candidates, **shift, **options)
    return request.release(source, progress)


def recalibrate_table(
    previous: Release,
    source: Any,
    what: ColumnSpec,
    *,
    n: int | None = None,
    epsilon: float | None = None,
    candidates: AnyCandidates = None,
    progress: Progress = no_progress,
    **options: Unpack[TableOptions],
) -> Release:
    """Recalibrate a release on a table, with the guarantees of `recalibrate` on the same scores.

    Parameters
    ----------
    previous
        As in `recalibrate`.
    source, n, progress
        As in `calibrate_table`.
    what
        The columns. The score, the loss and its bound are those of `previous`.
    epsilon, candidates, **options
        As in `recalibrate`; `people` and `skip_incomplete` as in `calibrate_table`. As many records of each person
        count as in `previous`. `by` names the column of each record's group for a release with groups. For a release
        with classes or class weights it names the column of the true class if the label is not a column of `what`.
        `weights` names the column of weights for a release whose records have weights.

    Returns
    -------
    Release
        With the keys of `previous`.

    Raises
    ------
    InputError, EngineError, OtherDataError, BudgetError, LedgerError
        As `calibrate_table` and `recalibrate`.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.tables import ScoreColumn
    >>> rng = np.random.default_rng(0)
    >>> january = confide.calibrate(rng.beta(2, 5, 1000), 0.1, 1.0, score="lac")
    >>> february = recalibrate_table(january, pyarrow.table({"s": rng.beta(2, 5, 1000)}), ScoreColumn("s"))
    >>> february.score, february.renews == january.checksum
    ('lac', True)
    """
    request = TableRequest.again(previous, what, n=n, epsilon=epsilon, candidates=candidates, **options)
    return request.release(source, progress)


def counting_query(
    dialect: str,
    table: str,
    what: ColumnSpec,
    alpha: Level | Sequence[Level],
    epsilon: float | None = None,
    **options: Unpack[QueryOptions],
) -> str:
    """Write the query that counts for a request, in the SQL of an engine that this process does not connect to.

    Run it, and give the file of its answer to `calibrate_table` as `CountsFiles`, with the same request.

    Parameters
    ----------
    dialect
        The engine: `duckdb`, `postgres`, `spark`, `databricks`, `snowflake`, `bigquery` or `datafusion`.
    table
        The name of the table, with points between its parts.
    what, alpha, epsilon, **options
        As in `calibrate_table`. All classes must be named.

    Returns
    -------
    str
        One statement. **Its answer is private**, like every histogram.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, SQL cannot compute the score, or the query would be longer than the engine
        permits.

    Examples
    --------
    >>> import duckdb
    >>> from confide.tables import ScoreColumn
    >>> query = counting_query("duckdb", "records", ScoreColumn("s", "lac"), 0.1, 1.0, candidates=Candidates.unit(3))
    >>> with duckdb.connect() as database:
    ...     _ = database.execute("CREATE TABLE records AS SELECT unnest([0.2, 0.5, 0.7, NULL]) AS s")
    ...     answer = database.execute(query).fetchall()
    >>> sorted(row[1:] for row in answer if row[2] == 0), [row[5] for row in answer if row[2]]
    ([(0, 0, 0, 0, 2), (0, 0, 0, 1, 1)], [1])
    """
    return TableRequest.of(what, alpha, epsilon, **options).query(dialect, table)
