"""A release renewed on a table of new records, wherever it lives."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from confide.calibration import Request, split_options
from confide.candidates import AnyCandidates, Candidates
from confide.errors import InputError
from confide.planning import ClassShift, RecordWeights
from confide.releases import Release
from confide.support import canonical
from confide.tables.calibrate import Rows, TableOptions, group_of, split_columns
from confide.tables.columns import Classified, Losses, Regressed, Scored, What, stated_outputs
from confide.tables.named_columns import NamedColumn
from confide.tables.open_table import opened
from confide.tables.predictors import names_in
from confide.tables.table import Progress, Table, silent


def recalibrate_table(
    previous: Release,
    source: Any,
    what: What,
    *,
    n: int | None = None,
    epsilon: float | None = None,
    candidates: AnyCandidates = None,
    cold: bool = False,
    progress: Progress = silent,
    **options: Unpack[TableOptions],
) -> Any:
    """Renew a release on a table; the statement is that of `recalibrate` on the same scores.

    Parameters
    ----------
    previous
        As in `recalibrate`.
    source, n, progress
        As in `calibrate_table`.
    what
        The columns; the score is that of `previous`, as are the loss and its bound.
    epsilon, candidates, cold, **options
        As in `recalibrate`; `people` and `skip_incomplete` as in `calibrate_table`: as many records of each person
        count as in `previous`. `by`, for a release with groups: the column of each record's group; for one with
        classes, where the label is no column of `what`: that of the true class; likewise for one with class weights.
        `weights`, for a release whose records have weights: the column of each record's.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
        Of the kind of `previous`.

    Raises
    ------
    InputError, EngineError, OtherDataError, BudgetError, LedgerError
        As `calibrate_table` and `recalibrate`.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> january = confide.calibrate(rng.beta(2, 5, 1000), 0.1, 1.0, score="lac")
    >>> february = recalibrate_table(january, pyarrow.table({"s": rng.beta(2, 5, 1000)}), Scored("s"))
    >>> february.score, february.predecessors[0].threshold == january.threshold
    ('lac', True)
    """
    columns, rest = split_columns(options)
    payer, asked = split_options("recalibrate_table", rest, "partition")
    asked["about"] = stated_outputs(what, asked.get("about"))
    request = Request(renews=previous, epsilon=epsilon, candidates=candidates, cold=cold, **asked)
    people, population = columns.people, request.population
    if people is not None:
        payer = replace(payer, dataset=people.payer(payer.dataset))
        if people.most != request.records_per_person:
            raise InputError(
                f"people must bound the records of each person by {request.records_per_person}, as in previous; found "
                f"{people.most}"
            )
    if columns.by_class or columns.groups is not None:
        raise InputError("groups and by_class must be left out: they are those of previous")
    what = _of_the_release(what, request)
    if (columns.weights is not None) != isinstance(population, RecordWeights):
        raise InputError("weights, the column, must be given for a release whose records have weights, and only then")
    with opened(source) as table:
        if isinstance(population, ClassShift):
            group = columns.group(table, what, population)
        else:
            group = _group(table, what, request, columns.by)
        if isinstance(what, Classified | Losses) and what.probabilities is not None:
            names_in(previous, *what.columns(table))
        weight = columns.weight(table, population)
        rows = Rows(table, what, group, people, columns.skip_incomplete, progress, weight, n)
        return rows.released(request, payer)


def _of_the_release(what: What, request: Request) -> What:
    """The same columns, for the score of the release; refused if they give another."""
    parts = list(request.parts.values())
    scores: Sequence[str | None] = [part.score for part in parts]
    if isinstance(what, Scored) and what.score is None:
        what = replace(what, score=scores[0])
    if isinstance(what, Losses) and what.losses is not None:
        what = what.over(parts[0].law if isinstance(parts[0].law, Candidates) else None)
    given = [kind.name for kind in what.kinds] if isinstance(what, Regressed) else [what.kind.name]
    if set(given) != set(scores):
        raise InputError(f"what must give the score {scores[0]!r}, as in previous; it gives {given[0]!r}")
    if isinstance(what, Losses) and request.loss is not None and what.bound != request.bound:
        raise InputError(f"bound must be that of previous, {request.bound:g}; found {what.bound:g}")
    return what


def _group(table: Table, what: What, request: Request, by: str | None) -> NamedColumn | None:
    """What thresholds depend on: the label, or a column with the names of the release; None for no groups."""
    if not request.disjoint:
        if by is not None:
            raise InputError("by must be left out: previous has no thresholds per group of records")
        return None
    names = tuple(request.parts)
    if by is not None:
        return group_of(table, what, by, names, by_class=False)
    if request.by == "group":
        raise InputError("by must be given, the column of each record's group: previous has thresholds for each")
    column = group_of(table, what, None, None, by_class=True)
    assert column is not None
    if set(map(canonical, map(str, column.names))) != set(map(canonical, map(str, names))):
        raise InputError(f"what must have the {len(names)} classes of previous; found others")
    return column
