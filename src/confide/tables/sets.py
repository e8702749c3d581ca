"""From a table and a calibration to a table of prediction sets or intervals, as an expression of the table's engine.

Nothing is computed until the expression is written or read. Rows whose probabilities or predictions cannot be used get
null instead of a set; `confide.tables.writing` refuses to leave such rows behind.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration, SidesCalibration
from confide.scores.classification import smallest_probability
from confide.scores.kinds import score_kind
from confide.tables.batch_sets import SET, SIZE, BatchSets, batch_sets
from confide.tables.expressions import exact, existing_column, numeric_column, same
from confide.tables.expressions import number as constant
from confide.tables.streamed_sets import StreamedSets

LOWER, UPPER = "lower", "upper"
_DOUBLE = np.dtype(np.float64)


def with_sets(
    table: Any,
    probabilities: str | tuple[str, ...],
    calibration: Calibration | GroupCalibration,
    classes: Sequence[str | int] | None = None,
    *,
    group: str | None = None,
) -> Any:
    """The table with `prediction_set`, a list of class names, and `set_size`.

    The sets are those of `predict_set`, bit for bit. For LAC the engine computes them in SQL. For the other scores
    Spark's executors compute them in Python; on DuckDB and PostgreSQL they are computed in this process as the rows are
    read, and the result is a `StreamedSets`: columns can be selected, and it can be read in batches and written.

    Parameters
    ----------
    table
        An Ibis table expression.
    probabilities
        One column per class, or the name of one list column.
    calibration
        One threshold, or one per group or class.
    classes
        The class names in the order of the probabilities; required for a list column.
    group
        For thresholds per group: the column of each row's group.

    Raises
    ------
    InputError
        If the calibration was made for another score, or columns do not fit.

    Examples
    --------
    >>> import confide, ibis, pyarrow
    >>> from confide import Candidates
    >>> released = confide.calibrate([0.3] * 500, alpha=0.1, epsilon=1.0, score="lac", candidates=Candidates.unit(3))
    >>> table = ibis.memtable(pyarrow.table({"p_a": [0.9, 0.5], "p_b": [0.1, 0.5]}))
    >>> with_sets(table, ("p_a", "p_b"), released, ["a", "b"])["prediction_set"].to_pyarrow().to_pylist()
    [['a'], ['a', 'b']]
    """
    import ibis

    _check_free(table, (SET, SIZE))
    if classes is None and isinstance(probabilities, str):
        raise InputError("classes must be given for a list of probabilities: their names, in its order")
    names = tuple(range(len(probabilities))) if classes is None else tuple(classes)
    if _in_python(calibration):
        return _with_python_sets(table, batch_sets(probabilities, calibration, names, group))
    _check_score(calibration, "lac")
    cuts = _cuts(table, calibration, names, group)
    if isinstance(probabilities, str):
        lists = existing_column(table, probabilities)
        held = ibis.array([ibis.literal(name) for name in names])
        if isinstance(cuts, list):
            limits = ibis.array(cuts)
            members = held.filter(lambda _, i: exact(lists[i]) >= limits[i])
        else:
            members = held.filter(lambda _, i: exact(lists[i]) >= cuts)
        valid = lists.filter(lambda p: (exact(p) >= constant(0.0)) & (exact(p) <= constant(1.0)))
        usable = (lists.length() == len(names)) & (valid.length() == len(names))
    else:
        columns = [exact(numeric_column(table, name)) for name in probabilities]
        if len(columns) != len(names):
            raise InputError(f"classes must name every column; found {len(names)} names for {len(columns)} columns")
        limits_of = cuts if isinstance(cuts, list) else [cuts] * len(names)
        nothing = ibis.null(ibis.literal(names[0]).type())
        inside = [
            (p >= limit).ifelse(ibis.literal(name), nothing)
            for p, limit, name in zip(columns, limits_of, names, strict=True)
        ]
        members = ibis.array(inside).filter(lambda name: name.notnull())
        usable = ibis.literal(True)
        for p in columns:
            usable &= ((p >= constant(0.0)) & (p <= constant(1.0))).fill_null(False)
    if group is not None:
        usable &= cuts.notnull()
    known = usable.fill_null(False)
    sets = known.ifelse(members, ibis.null(members.type()))
    return table.mutate(**{SET: sets}).mutate(**{SIZE: lambda t: t[SET].length().cast("int32")})


def with_intervals(
    table: Any,
    prediction: str | tuple[str, str],
    calibration: Calibration | GroupCalibration | SidesCalibration,
    *,
    group: str | None = None,
) -> Any:
    """The table with `lower` and `upper`, for a calibration of absolute residuals, CQR or its sides.

    The ends are those of `predict_interval`, bit for bit.

    Parameters
    ----------
    prediction
        The column of predicted numbers; for CQR the pair of columns (lower, upper).
    table, calibration, group
        As in `with_sets`.

    Examples
    --------
    >>> import confide, ibis, pyarrow
    >>> from confide import Candidates
    >>> released = confide.calibrate([1.0] * 500, 0.1, 1.0, score="absolute_residual", candidates=Candidates.of([1.0]))
    >>> table = ibis.memtable(pyarrow.table({"f": [10.0]}))
    >>> with_intervals(table, "f", released).to_pyarrow().to_pylist()
    [{'f': 10.0, 'lower': 9.0, 'upper': 11.0}]
    """
    import ibis

    _check_free(table, (LOWER, UPPER))
    names = (prediction,) if isinstance(prediction, str) else prediction
    f = [exact(numeric_column(table, name)) for name in names]
    low, high = (
        (calibration.low, calibration.high) if isinstance(calibration, SidesCalibration) else (calibration, calibration)
    )
    if not isinstance(calibration, SidesCalibration):
        allowed = ("absolute_residual",) if len(names) == 1 else ("cqr", "cqr_low", "cqr_high")
        _check_score(calibration, *allowed)
    family = None if isinstance(calibration, SidesCalibration) else score_kind(_score(calibration)).family
    reaches = [_per_group(table, part, group, _reach) for part in (low, high)]
    lower = constant(-np.inf) if family == "cqr_high" else f[0] - reaches[0]
    upper = constant(np.inf) if family == "cqr_low" else f[-1] + reaches[1]
    finite = ibis.literal(True)
    for value in f:
        finite &= (value > constant(-np.inf)) & (value < constant(np.inf))
    nothing = ibis.null("float64")
    return table.mutate(**{LOWER: finite.ifelse(lower, nothing), UPPER: finite.ifelse(upper, nothing)})


def _in_python(calibration: Any) -> bool:
    """Whether SQL cannot compute the sets."""
    made_for = _score(calibration) if isinstance(calibration, Calibration | GroupCalibration) else None
    kind = score_kind(made_for)
    return kind.task == "classification" and kind.family != "lac"


def _with_python_sets(table: Any, sets: BatchSets) -> Any:
    for name in sets.columns:
        existing_column(table, name)
    if table.get_backend().name == "pyspark":
        from confide.tables.spark import with_python_sets

        return with_python_sets(table, sets)
    return StreamedSets(table, sets, (*table.columns, SET, SIZE))


def _cuts(
    table: Any, calibration: Calibration | GroupCalibration, names: tuple[str | int, ...], group: str | None
) -> Any:
    """The smallest probability that is inside: one constant, one column, or one constant per class."""
    if isinstance(calibration, GroupCalibration) and calibration.by == "class":
        thresholds = calibration.class_thresholds(names, len(names))
        return [constant(_cut(float(threshold))) for threshold in thresholds]
    return _per_group(table, calibration, group, _cut)


def _per_group(table: Any, calibration: Any, group: str | None, of: Any) -> Any:
    import ibis

    if not isinstance(calibration, GroupCalibration):
        if group is not None:
            raise InputError("group must be left out: the calibration has no thresholds per group")
        return constant(of(calibration.threshold))
    if group is None or calibration.by == "class":
        raise InputError("group must name the column of each row's group: the calibration has thresholds per group")
    member = existing_column(table, group)
    clauses = [(same(member, name), constant(of(part.threshold))) for name, part in calibration.parts.items()]
    return ibis.cases(*clauses, else_=ibis.null("float64"))


def _cut(threshold: float) -> float:
    """For float32 probabilities the comparison in double precision has the same answer."""
    if threshold >= 1:
        return 0.0
    return 2.0 if threshold < 0 else float(smallest_probability(threshold, _DOUBLE))


def _reach(threshold: float) -> float:
    return float(np.nextafter(threshold, np.inf))


def _score(calibration: Calibration | GroupCalibration) -> str | None:
    return calibration.score


def _check_score(calibration: Calibration | GroupCalibration, *allowed: str) -> None:
    if not isinstance(calibration, Calibration | GroupCalibration):
        raise InputError(f"calibration must be a confide.Calibration; found {type(calibration).__name__}")
    made_for = _score(calibration)
    if made_for not in (None, *allowed):
        raise InputError(
            f"calibration was made for the score {made_for!r}; this table function knows {', '.join(allowed)}; use "
            "score batches and predict_set for others"
        )


def _check_free(table: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if name in table.columns:
            raise InputError(f"column {name!r} is in the table and would be written as well; drop or rename it")
