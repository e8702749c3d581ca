"""Coverage and size of sets on a table or arrays, either not private or with differential privacy.

Also the counts of a monitor's batch, which are not private.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups
from confide.core import Release, warn_about
from confide.errors import InputError, InputTypeError
from confide.evaluation import (
    ArrayOptions,
    Evaluation,
    LabelledRecords,
    PrivateRequest,
    Tally,
    TooManyGroupsError,
    answer,
    evaluate_arrays,
    exact_query,
    too_many_groups,
)
from confide.mechanisms import Neighbors
from confide.support import Level, check_unknown_arguments, require
from confide.tables.arrow import to_numpy
from confide.tables.columns import ColumnSpec
from confide.tables.named_columns import (
    AnyGroups,
    GroupedColumns,
    NamedColumn,
    group_column,
    group_of_release,
    one_column,
)
from confide.tables.open_table import as_open_table
from confide.tables.people import ContributionBound
from confide.tables.predictors import Predictions, SetPredictor
from confide.tables.record_columns import RecordColumns, checked_batches
from confide.tables.source import Columns
from confide.tables.table import Progress, Table, no_progress

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


class _Arrays(TypedDict, total=False):
    """The arrays that `evaluate` takes: sets or intervals with true values, or scores."""

    probabilities: ArrayLike | None
    labels: ArrayLike | None
    predictions: ArrayLike | None
    targets: ArrayLike | None
    scores: ArrayLike | None


class _PrivateOptions(TypedDict, total=False):
    """The fields of `PrivateRequest` other than epsilon."""

    neighbors: Neighbors
    records_per_person: int
    confidence: Level
    n: int | None
    parts: Sequence[str] | None
    group_names: Sequence[str | int] | None
    width_bins: Sequence[float] | None
    ledger: Ledger | None
    dataset: str | Dataset | None
    again: bool


class EvaluationOptions(_Arrays, ArrayOptions, _PrivateOptions, total=False):
    """Further options of `evaluate`: arrays, and with an epsilon the fields of `PrivateRequest`."""


def evaluate(
    release: Release,
    *unnamed: object,
    groups: Groups | None = None,
    table: Any = None,
    what: ColumnSpec | None = None,
    by: str | Sequence[str] | None = None,
    people: ContributionBound | None = None,
    skip_incomplete: bool = False,
    epsilon: float | None = None,
    progress: Progress = no_progress,
    **options: Unpack[EvaluationOptions],
) -> Evaluation:
    """Evaluate coverage on labelled records; with an epsilon privately, so that the result may be published.

    Parameters
    ----------
    release
        The release to evaluate. All other arguments are given by name, because they depend on the score.
        `evaluate_sets`, `evaluate_intervals` and `evaluate_scores` take the arrays in order, after the release.
    groups
        For arrays: the group of each record, shape (n,).
    table, what, by, people, skip_incomplete, progress
        Instead of arrays: a source that `confide.tables.open_table` opens, its columns, the column of the group, and
        the bound on the records of a person (with epsilon only). `skip_incomplete` and `progress` as in
        `evaluate_table`.
    epsilon
        Privacy loss per person. None: the numbers of `evaluate_sets`, `evaluate_intervals`, `evaluate_scores` or
        `evaluate_table`, which are not private.
    **options
        Of sets: `probabilities`, `labels`, `classes` and `u`, as in `evaluate_sets`. Of intervals: `predictions`,
        `targets` and `difficulty`, as in `evaluate_intervals`. Of ready-made scores: `scores`, as in `evaluate_scores`.
        With epsilon: `neighbors`, `records_per_person`, `confidence`, `n`, `parts`, `group_names`, `width_bins`,
        `ledger`, `dataset` and `again`, as in `confide.evaluation.PrivateRequest`.

    Returns
    -------
    Evaluation
        Coverage over all records and by part. Private results have intervals that hold simultaneously and include the
        noise.

    Warns
    -----
    EarlierReleaseWarning
        If the ledger returns an earlier evaluation. Then nothing was charged.
    CoverageWarning
        If the ledger has a calibration on the same data set, or several records of one person are counted.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used. Then nothing was released.
    BudgetError, OtherDataError, LedgerError
        As in `calibrate`.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> result = evaluate(released, scores=scores, groups=ward, epsilon=1.0, group_names=["a", "b"])
    >>> [group.name for group in result.groups], all(group.low < 0.91 < group.high for group in result.groups[:2])
    (['a', 'b', '(other)'], True)
    """
    if unnamed:
        raise InputTypeError(
            "evaluate",
            "takes arrays by name: evaluate(release, probabilities=p, labels=y), predictions= with "
            "targets=, or scores=",
            got=f"{len(unnamed)} without a name",
            remedy="Only evaluate_sets, evaluate_intervals and evaluate_scores take them in order",
        )
    check_unknown_arguments("evaluate", options, EvaluationOptions.__optional_keys__)
    request = _private_request(epsilon, people, options)
    # Evaluate arrays
    arrays = _given(options, _Arrays)
    array_options = _given(options, ArrayOptions)
    if table is None and what is None:
        if by is not None or people is not None or skip_incomplete:
            raise InputError("by", "by, people and skip_incomplete belong to a table", remedy="Give groups for arrays")
        return evaluate_arrays(release, request, arrays, groups, **array_options)
    # Evaluate a table
    if table is None or what is None or arrays or groups is not None or array_options:
        raise InputError("table", "table and what must be given together, and no arrays with them")
    of_table: dict[str, Any] = {"by": by, "skip_incomplete": skip_incomplete, "progress": progress}
    if request is None:
        return evaluate_table(table, what, release, **of_table)
    return evaluate_table_privately(table, what, release, request, people=people, **of_table)


def _private_request(
    epsilon: float | None, people: ContributionBound | None, options: Mapping[str, Any]
) -> PrivateRequest | None:
    """The request of a private evaluation; None without epsilon, with which alone its other fields may be given."""
    private = {name: value for name, value in options.items() if name in _PrivateOptions.__annotations__}
    if epsilon is not None:
        return PrivateRequest(epsilon, **private)
    first = next(iter(private), "people")
    require(first, people is None and not private, "must be left out without epsilon: the numbers are not private")
    return None


def _given(options: Mapping[str, Any], kind: type) -> dict[str, Any]:
    return {name: options[name] for name in kind.__annotations__ if options.get(name) is not None}


def evaluate_table(
    source: Any,
    what: ColumnSpec,
    release: Release,
    *,
    by: str | Sequence[str] | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> Evaluation:
    """Measure coverage and set size on records with true labels; not private.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    what
        The columns, with label or target. The score is that of the release. `ScoreColumn` compares scores of the true
        labels with the threshold. `LossColumns` compares critical thresholds; the loss is the share beyond the
        threshold, times the bound.
    release
        The release to evaluate.
    by
        The column of each record's group. It is required for thresholds per group, and for `ScoreColumn` with
        thresholds per class, where it names the class. If groups overlap: their columns, as in `predict_table`. For
        every other release it is optional: coverage is then also measured by group.
    skip_incomplete
        Leave out records with a missing value in a column that is read, instead of raising an error. `left_out()` of an
        open table returns their number.
    progress
        As in `score_histogram`.

    Raises
    ------
    InputError
        If columns do not fit the release, or rows cannot be used: how many, and why.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.tables import ScoreColumn
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> result = evaluate_table(pyarrow.table({"s": [0.1, 0.5, 0.99]}), ScoreColumn("s", "lac"), released)
    >>> round(result.coverage.value, 2)
    0.67
    """
    with as_open_table(source) as table:
        tally = _tallied(table, Columns(what, by, skip_incomplete=skip_incomplete), release, progress)
        table.check_rows(tally.total)
    return tally.result()


def _tallied(table: Table, columns: Columns, release: Release, progress: Progress) -> Tally:
    """Coverage and sizes of the records of a table, by group if there is a column of groups."""
    what = columns.what
    by = columns.by
    by_release = release.needs_groups(sets=what._labelled)
    each = "true class" if release.by == "class" else "group"
    must = f"must be given: the column of each record's {each}, because each {each} has a threshold"
    require("by", by is not None or not by_release, must)
    reader, comparison = what._comparison(table, release)
    tally = Tally(comparison, exact_query(comparison, grouped=by is not None))
    group: NamedColumn | GroupedColumns | AnyGroups | None = None
    if by is not None:
        group = group_of_release(table, by, release) if by_release else AnyGroups.of(table, one_column(by))
    records = RecordColumns(reader, group)
    with closing(_read(table, records, progress, skip_incomplete=columns.skip_incomplete)) as batches:
        for batch, evaluated in batches:
            try:
                tally.add(evaluated, None if group is None else group.keys(batch))
            except TooManyGroupsError:
                raise too_many_groups("by", str(by)) from None
    return tally


def _read(
    table: Table, columns: RecordColumns, progress: Progress, *, skip_incomplete: bool
) -> Generator[tuple[Any, LabelledRecords]]:
    """Each batch of the rows that count, with what is compared with a release."""
    rows = columns.counting(table, skip_incomplete=skip_incomplete)
    with closing(checked_batches(rows, columns, progress)) as batches:
        for batch, records in batches:
            yield batch, columns.reader.evaluated(records)


def evaluate_table_privately(
    source: Any,
    what: ColumnSpec,
    release: Release,
    request: PrivateRequest,
    *,
    by: str | Sequence[str] | None = None,
    people: ContributionBound | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> Evaluation:
    """Measure coverage and set size with differential privacy, so that the result may be published.

    Parameters
    ----------
    source, what, release, skip_incomplete, progress
        As in `evaluate_table`. The table may be empty if the number of records is secret.
    request
        The request and its privacy budget.
    by
        The column of each record's group. For a release with thresholds per group it must be one of the release's
        groups. Otherwise it is one of `request.group_names` or another group.
    people
        The bound on the number of records that count for each person. Epsilon is then stated per person.

    Raises
    ------
    InputError
        If an argument or rows cannot be used. Then nothing was released. A charge that preceded the query of an engine
        stands.
    BudgetError, OtherDataError, LedgerError
        As in `confide.calibrate`.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.evaluation import PrivateRequest
    >>> from confide.tables import ScoreColumn
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> table = pyarrow.table({"s": np.linspace(0, 1, 5000)})
    >>> result = evaluate_table_privately(table, ScoreColumn("s", "lac"), released, PrivateRequest(epsilon=1.0))
    >>> 0.85 < result.coverage.low < result.coverage.high < 0.95
    True
    """
    if people is not None:
        bound = people.bound(None if request.records_per_person == 1 else request.records_per_person)
        request = replace(request, records_per_person=bound, dataset=people.payer(request.dataset))
    with as_open_table(source) as table:
        # Look up the columns; the groups are those of the release, or those that the request names
        reader, comparison = what._comparison(table, release)
        by_release = release.needs_groups(sets=what._labelled)
        must = "by and group_names must be given together: a column, and the public list of its values"
        require("by", (by is not None) == (by_release or request.group_names is not None), must)
        if people is not None:
            table.check_people(people)
        group: NamedColumn | GroupedColumns | None = None
        if by is not None and by_release:
            group = group_of_release(table, by, release)
        elif by is not None:
            group = group_column(table, one_column(by), tuple(request.group_names or ()))
        columns = RecordColumns(reader, group, people=people, other_groups=not by_release)

        def count(add: Callable[..., None]) -> None:
            with closing(_read(table, columns, progress, skip_incomplete=skip_incomplete)) as batches:
                for batch, evaluated in batches:
                    if group is None:
                        add(evaluated)
                    elif by_release:
                        add(evaluated, group.keys(batch))
                    else:
                        add(evaluated, places=group.places(batch))

        # Charge and count, in the order that the table requires
        return answer(request, comparison, count, charge_first=not table.local)


def monitoring_coverage_counts(
    source: Any,
    what: ColumnSpec,
    release: Release,
    *,
    by: str | Sequence[str] | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> NDArray[np.int64]:
    """Count covered and missed records of a batch with true labels, which may be empty; not private.

    Parameters
    ----------
    source, what, by, skip_incomplete, progress
        As in `evaluate_table`; `by` only for thresholds per group or class.
    release
        A release of one level.

    Returns
    -------
    int64, shape (parts, 2): for each group or class of the release in its order, or for all records.
    """
    require("release", release.by != "level", "must be of one level", remedy="Choose one with alpha")
    if by is not None and not release.needs_groups(sets=what._labelled):
        raise InputError("by", "must be left out: the release has one threshold for all records")
    with as_open_table(source) as table:
        tally = _tallied(table, Columns(what, by, skip_incomplete=skip_incomplete), release, progress)
    return tally.covered_and_missed()


def size_counts(
    source: Any,
    what: ColumnSpec,
    release: Release,
    bins: Sequence[int],
    *,
    by: str | Sequence[str] | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> NDArray[np.int64]:
    """Count records of a batch, which may be empty, by the size of their sets; needs no true labels. Not private.

    Parameters
    ----------
    source, what, by, skip_incomplete, progress
        As in `predict_table`.
    release
        A release of one level that gives sets.
    bins
        The smallest size of each bin, increasing from 0.

    Returns
    -------
    int64, shape (bins,).
    """
    with as_open_table(source) as table:
        predictors = what._predictors(table, release, by)
        if len(predictors) != 1 or not isinstance(predictors[0], SetPredictor):
            raise InputError("release", "must make one set per record, of one level: the sizes of sets are counted")
        warn_about(release)
        sets = Predictions((), predictors)
        rows = table.drop_missing(sets.reads) if skip_incomplete else table
        counts = np.zeros(len(bins), np.int64)
        with closing(checked_batches(rows, sets, progress)) as batches:
            for _, (_, sizes) in batches:
                place = np.searchsorted(bins, to_numpy(sizes), side="right") - 1
                counts += np.bincount(place, minlength=len(bins))
        return counts
