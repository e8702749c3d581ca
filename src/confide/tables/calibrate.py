"""Calibration and recalibration from tables of any kind, and the query and the histograms that they count by."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from confide.candidates import AnyCandidates, Candidates
from confide.core import (
    ClassShift,
    Release,
)
from confide.counting import ScoreHistogram
from confide.support import (
    Level,
    takes_alpha,
)
from confide.tables.columns import ColumnSpec
from confide.tables.counting import Counting
from confide.tables.open_table import as_open_table
from confide.tables.request import TableOptions, TableRequest
from confide.tables.table import ContributionBound, Progress, no_progress


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
    all_options = {"class_weights": class_weights, "weight_bound": weight_bound, **options}
    request = TableRequest.of(what, alpha, epsilon, n=n, candidates=candidates, **all_options)  # type: ignore[arg-type]
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
    **options: Any,
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


def class_histograms(
    source: Any,
    what: ColumnSpec,
    candidates: Candidates,
    *,
    people: ContributionBound | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> dict[str | int, ScoreHistogram]:
    """Count one histogram per class, by the names under which classes are released; arguments as in `score_histogram`.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ClassColumns
    >>> table = pyarrow.table({"p_no": [0.9, 0.2], "p_yes": [0.1, 0.8], "y": ["no", "yes"]})
    >>> counts = class_histograms(table, ClassColumns("p_*", "y"), Candidates.of([0.15, 0.5]))
    >>> {name: histogram.counts.tolist() for name, histogram in counts.items()}
    {'no': [1, 0, 0], 'yes': [0, 1, 0]}
    """
    with as_open_table(source) as table:
        return dict(
            Counting.of(table, what, what._class_column(table), people, skip_incomplete).run(candidates, progress)[0]
        )
