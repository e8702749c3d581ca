"""`PredictionSets`: a mask with class names; and the functions that make sets of classes from a release."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Groups,
    Uniforms,
    as_labels,
    as_numeric,
    class_columns,
    frame_of,
    in_order,
    refuse_other_rows,
    refuse_other_sums,
    row_index,
    warn_of_unknown_labels,
)
from confide.core import FALSE_NEGATIVES, UNNAMED, Release, Threshold, area_of, names_for, warn_about
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.scores import ScoreKind, score_kind, set_mask, unregistered
from confide.sets.coverage import CoverageEstimate, covered_share
from confide.support import Described, Level, Section, Table, caller_stacklevel, column_order, needs_extra, require

if TYPE_CHECKING:
    import pandas
    import pyarrow

MOST_SHOWN = 10
"""Number of records that are shown to people."""

_MOST_NAMED = 20
"""Number of classes of a set that are shown to people."""


class Records(Described):
    """Sets or intervals of records, with the release and the index that they were made from."""

    index: Any
    calibration: Release | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "calibration": None}

    def _origin_of(self, which: Any, positions: slice | NDArray[Any]) -> dict[str, Any]:
        """The release, for which only a slice of its records is a fair sample, and the index of a selection."""
        return {
            "calibration": self.calibration if isinstance(which, slice) else None,
            "index": None if self.index is None else self.index[positions],
        }


def positions_of(argument: str, requirement: str, which: Any) -> slice | NDArray[Any]:
    """A selection of records: a slice, one position, or a vector of positions or booleans."""
    if isinstance(which, slice):
        return which
    positions = np.asarray(which)
    require(argument, positions.ndim <= 1, requirement, got=f"{positions.ndim} dimensions")
    kinds = "iub" if positions.ndim else "iu"  # one boolean is no position
    if positions.size and positions.dtype.kind not in kinds:
        raise InputTypeError(argument, requirement, got=f"{type(which).__name__} of dtype {positions.dtype}")
    return positions if positions.size else positions.astype(np.int64)  # an empty list has the dtype float64


def promise_notes(promised: float | None) -> tuple[str, ...]:
    """The guarantee of sets or intervals in words, if it is known."""
    return () if promised is None else (f"promised: coverage at least {promised:.4g} on average",)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets(Records):
    """One set of classes per record.

    Parameters
    ----------
    mask
        bool, shape (n, K): whether class k is in the set of record i.
    classes
        The K class names, or None for 0 .. K-1.
    promised
        The coverage that the release guarantees, if the sets come from one.
    calibration
        The calibration that they come from, which `coverage` uses. There is no guarantee for a selection of records by
        positions or booleans, so it is dropped from selections, and also from copies and pickles.
    index
        The index of the pandas object that the sets were made from; labels and groups must have the same index.

    Examples
    --------
    >>> sets = PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog"))
    >>> sets.labels()
    [['cat'], ['cat', 'dog']]
    >>> sets
    PredictionSets(n=2, classes=2, mean size 1.50, empty 0)
    >>> sets[0], [len(one) for one in sets], sets[1:].labels()
    (['cat'], [1, 2], [['cat', 'dog']])
    """

    mask: NDArray[np.bool_]
    classes: tuple[object, ...] | None = None
    promised: float | None = None
    calibration: Release | None = None
    index: Any = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of classes in each set, shape (n,)."""
        sizes: NDArray[np.int64] = np.count_nonzero(self.mask, axis=1).astype(np.int64)
        return sizes

    def labels(self) -> list[list[Any]]:
        """The sets as lists of class names (class indices without names)."""
        return list(self)

    def contains(self, labels: ArrayLike) -> NDArray[np.bool_]:
        """Whether each record's label is in its set: bool, shape (n,).

        A label that is not among the classes is in no set; there is a `CoverageWarning` with the number of such labels.
        """
        refuse_other_rows(sets=self, labels=labels)
        n, k = self.mask.shape
        y = as_labels("labels", labels, n, k, self.classes, unknown=True)
        warn_of_unknown_labels("labels", y, self._names)
        # A label that is no class has the position -1, whose entry is read and does not count.
        inside: NDArray[np.bool_] = self.mask[np.arange(n), y] & (y >= 0)
        return inside

    def coverage(self, labels: ArrayLike, confidence: Level = 0.95) -> CoverageEstimate:
        """The share of records whose label is in their set, with its exact interval; labels of shape (n,).

        Warns
        -----
        CoverageWarning
            If it is below the guarantee beyond chance, also beyond the variation between calibrations.

        Examples
        --------
        >>> PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog")).coverage(["dog", "dog"]).value
        0.5
        """
        return covered_share(self.contains(labels), self.calibration, confidence)

    def to_frame(self, like: Any = "pandas") -> Any:
        """A boolean data frame, one column per class, in a data-frame library of your choice.

        Parameters
        ----------
        like
            A data frame whose type the result has: pandas (with its index), polars, an Arrow table, or any type that
            narwhals supports. Or the name of the library, such as `"polars"`; with `"pandas"` the result has the sets'
            own index.

        Raises
        ------
        InputError
            If `like` has another number of rows, is not a data frame, or does not support columns of these names.

        Examples
        --------
        >>> import polars
        >>> sets = PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog"))
        >>> sets.to_frame(polars.DataFrame({"age": [7, 3]})).columns, type(sets.to_frame("pyarrow")).__name__
        (['cat', 'dog'], 'Table')
        """
        return frame_of([(name, self.mask[:, k]) for k, name in enumerate(self._names)], like, self.index)

    def to_arrow(self) -> pyarrow.Array:
        """An Arrow list column of class names (class indices without names), one list per record.

        Examples
        --------
        >>> PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog")).to_arrow().to_pylist()
        [['cat'], ['cat', 'dog']]
        """
        with needs_extra("to_arrow", "standard"):
            import pyarrow as pa

        # Offsets of 64 bits only for more members than 32 bits can count.
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        members = np.nonzero(self.mask)[1]
        values = pa.array(members) if self.classes is None else _arrow_names(self.classes).take(pa.array(members))
        if len(members) < 2**31:
            return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
        return pa.LargeListArray.from_arrays(pa.array(offsets), values)

    def to_pandas(self, index: Any = None) -> pandas.DataFrame:
        """A boolean data frame, one column per class; `index` names the records, by default the sets' own.

        Examples
        --------
        >>> PredictionSets(np.array([[True, False]]), ("cat", "dog")).to_pandas()
            cat    dog
        0  True  False
        """
        with needs_extra("to_pandas", "pandas"):
            import pandas as pd
        columns = None if self.classes is None else pd.Index(self.classes, tupleize_cols=False)
        return pd.DataFrame(self.mask, columns=columns, index=self.index if index is None else index)

    def __len__(self) -> int:
        return len(self.mask)

    def __iter__(self) -> Iterator[list[Any]]:
        return map(self._members, self.mask)

    @overload
    def __getitem__(self, which: int | np.integer) -> list[Any]: ...

    @overload
    def __getitem__(self, which: slice | ArrayLike) -> PredictionSets: ...

    def __getitem__(self, which: Any) -> list[Any] | PredictionSets:
        """The set of one record, as `labels` lists it, or the sets of several: a slice, positions, or booleans."""
        must = "must be chosen by one position, a slice, or a vector of positions or booleans"
        positions = positions_of("sets", must, which)
        rows = self.mask[positions]
        if rows.ndim == 1:
            return self._members(rows)
        return replace(self, mask=rows, **self._origin_of(which, positions))

    def _members(self, row: NDArray[np.bool_]) -> list[Any]:
        return [self._names[k] for k in np.flatnonzero(row).tolist()]

    @property
    def _names(self) -> Sequence[object]:
        """Name of each column of the mask."""
        return range(self.mask.shape[1]) if self.classes is None else self.classes

    def _section(self) -> Section:
        rows = tuple((f"{i}", f"{len(members)}", _set_text(members)) for i, members in enumerate(self[:MOST_SHOWN]))
        table = Table(("record", "size", "set"), rows, total=len(self))
        return Section(repr(self), tables=(table,), notes=promise_notes(self.promised))

    def _brief(self) -> str:
        n, k = self.mask.shape
        sizes = self.sizes
        mean = f"{sizes.mean():.2f}" if n else "undefined"
        full = ", every class in every set" if n and k > 1 and sizes.min() == k else ""
        return f"n={n}, classes={k}, mean size {mean}, empty {int((sizes == 0).sum())}{full}"


def _arrow_names(classes: tuple[object, ...]) -> pyarrow.Array:
    """Names as one Arrow column; of different types, such as 1 and "a", they become strings."""
    import pyarrow as pa

    try:
        return pa.array(list(classes))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(list(map(str, classes)))


def _set_text(members: list[Any]) -> str:
    names = ", ".join(map(str, members[:_MOST_NAMED])) or "empty"
    return names + (f" and {len(members) - _MOST_NAMED:,} more" if len(members) > _MOST_NAMED else "")


def predict_set(
    probabilities: ArrayLike,
    calibration: Release,
    classes: Sequence[object] | None = None,
    *,
    u: Uniforms = None,
    groups: Groups | None = None,
    score: str | None = None,
    out: NDArray[np.bool_] | None = None,
) -> PredictionSets:
    """Prediction sets {y : score(x, y) <= threshold} for new records, with the score that the calibration states.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1], any float dtype; n may be 0, also as []. NaN, values outside, and rows that do
        not sum to one raise an error. The columns of a data frame are matched with the calibration's classes by name,
        and put in their order.
    calibration
        A release for a classification score; it may have one threshold per class or per group.
    classes
        The K class names, in the order of the columns; by default those of a data frame, else those of the calibration.
        They are stored with the sets. A data frame whose columns have these names may have them in another order.
    u
        For randomised scores: numbers in [0, 1], shape (n,), one per record and independent of it. By default they are
        drawn. The same record gets the same set again only with the same number.
    groups
        For thresholds per group: the group of each record, shape (n,).
    score
        Only for a calibration without a score name: the score of the calibration.
    out
        A bool array of shape (n, K) that receives the mask.

    Raises
    ------
    InputError
        If the calibration is for another score or other classes, or has no score name, or the probabilities are not
        valid.

    Warns
    -----
    CoverageWarning
        If a threshold is +inf or nearly so (`confide.core.remarks`), here and in `predict_interval` and
        `predict_labels`; in `predict_interval` also if intervals are far wider than the range of the predictions. Here
        also if more than 1 % of the sets are empty.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4.0, 1.0], 2000)
    >>> y = (p[:, 1] > rng.random(2000)).astype(int)
    >>> calibration = confide.calibrate(confide.lac_score(p, y), alpha=0.1, epsilon=1.0)
    >>> confide.predict_set([[0.99, 0.01], [0.5, 0.5]], calibration, classes=["well", "ill"]).labels()
    [['well'], ['well', 'ill']]
    """
    sets = sets_of(probabilities, calibration, classes, u=u, groups=groups, score=score, out=out)
    empty = sets.mask.view(np.uint8).max(axis=1, initial=0) == 0  # takes half the time of counting
    warn_of_empty_sets(int(empty.sum()), len(sets), calibration.score or score)
    return sets


def sets_of(
    probabilities: ArrayLike,
    calibration: Release,
    classes: Sequence[object] | None,
    *,
    u: Uniforms,
    groups: Groups | None,
    score: str | None = None,
    out: NDArray[np.bool_] | None = None,
) -> PredictionSets:
    """Sets without a warning about empty ones, which would reveal something about private records."""
    # Check the arguments, and put the columns in the order of the calibration.
    kind = score_of_task(calibration, "classification", score)
    refuse_other_rows(probabilities=probabilities, groups=groups, u=u)
    p, names = _match_columns(probabilities, calibration, classes)

    # Compare each score with the limit of its record or class. A model without classes has no scores.
    limits = calibration.limits(len(p), groups=groups, classes=p.shape[1] if names is None else names)
    if p.shape[1]:
        mask = set_mask(p, str(kind.name), limits, u=u, per_class=calibration.by == "class", out=out)
    else:
        mask = np.zeros(p.shape, np.bool_)
    refuse_other_sums("probabilities", p)
    warn_about(calibration)
    return PredictionSets(mask, names, calibration.promised, calibration, row_index(probabilities))


def predict_labels(
    probabilities: ArrayLike, calibration: Release, classes: Sequence[object] | None = None
) -> PredictionSets:
    """Multilabel sets {k : 1 - p_k <= threshold} for new records; rows need not sum to one.

    `classes` are the names of the labels, as in `predict_set`.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 3))
    >>> released = confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0)
    >>> predict_labels([[0.9, 0.5, 0.01]], released).labels()
    [[0, 1]]
    """
    if not isinstance(calibration, Release) or calibration.loss != FALSE_NEGATIVES:
        raise InputTypeError("calibration", "must come from calibrate_false_negatives")
    p, names = _match_columns(probabilities, calibration, classes)
    mask = set_mask(p, "lac", calibration.threshold) if p.shape[1] else np.zeros(p.shape, np.bool_)
    warn_about(calibration)
    return PredictionSets(mask, names, index=row_index(probabilities))


def predict_masks(probabilities: ArrayLike, calibration: Release) -> NDArray[np.bool_]:
    """The pixels {1 - p <= threshold} of each class of one image: bool, shape `(K, *pixels)`, that of `probabilities`.

    Parameters
    ----------
    probabilities
        Shape `(K, *pixels)`, also if K is 1, values in [0, 1]. The size may differ from that of other images.
    calibration
        A release of `calibrate_masks`.

    Raises
    ------
    InputError, InputTypeError
        If the calibration is of another kind or for another number of classes, or values are not probabilities.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> images = [(p, rng.random(p.shape) < p) for p in rng.random((2000, 1, 4, 4))]
    >>> predict_masks([[[0.9, 0.05]]], confide.calibrate_masks(images, 0.1, 1.0))
    array([[[ True, False]]])
    """
    area_of(calibration)
    p = as_numeric("probabilities", probabilities)
    require("probabilities", p.ndim >= 2, "must have shape (classes, *pixels)", got=str(p.shape))
    names_for(calibration, None, len(p))
    rows = p.reshape(1, -1)
    mask = set_mask(rows, "lac", calibration.threshold) if p.size else np.zeros(rows.shape, np.bool_)
    warn_about(calibration)
    return mask.reshape(p.shape)


def _match_columns(
    probabilities: ArrayLike, calibration: Release, classes: Sequence[object] | None
) -> tuple[NDArray[Any], tuple[object, ...] | None]:
    """The probabilities and the names of their columns; those of a data frame in the order of the calibration."""
    # [] stands for no records; it gets the columns of the stated classes.
    stated = calibration.classes
    if _is_empty_vector(probabilities):
        columns = stated if classes is None else tuple(classes)
        if columns is None:
            return np.zeros((0, 0)), None
        probabilities = np.zeros((0, columns if isinstance(columns, int) else len(columns)))

    # Columns of a data frame are matched by name; `classes` states the order of the columns.
    p, given = class_columns(probabilities, classes)
    names = names_for(calibration, given, p.shape[1])
    if classes is None and given is not None and isinstance(stated, tuple):
        return in_order(p, column_order("classes", stated, given)), stated
    return p, names


def _is_empty_vector(array: Any) -> bool:
    is_empty_list = isinstance(array, list | tuple) and not array
    return is_empty_list or getattr(array, "shape", None) == (0,)


def score_of(calibration: Release, given: str | None = None) -> ScoreKind:
    """The score to compute for new records: the one of the calibration, or, if it names none, the given one."""
    score = calibration.first.score
    if score is None and given is None:
        raise InputError(*UNNAMED)
    if score is not None and given not in (None, score):
        raise InputError("score", f"must be left out: the calibration was made for {score!r}", got=repr(given))
    kind = score_kind(score or given)
    if kind.score is None:
        raise unregistered(kind.name)
    return kind


def score_of_task(calibration: Any, task: str, given: str | None = None) -> ScoreKind:
    """The score of a calibration that must make sets, or intervals."""
    # Each record needs one threshold.
    must = "must be a confide.Release with one threshold, or one per group or class"
    choose_level = "Choose a level by release.at(alpha)"
    if not isinstance(calibration, Release):
        remedy = choose_level if isinstance(calibration, Threshold) else ""
        raise InputTypeError("calibration", must, type(calibration).__name__, remedy)
    if calibration.loss is not None:
        raise InputTypeError("calibration", must, "a bound on a loss")
    if calibration.by in ("level", "side"):
        remedy = choose_level if calibration.by == "level" else ""
        raise InputTypeError("calibration", must, f"one by {calibration.by}", remedy)

    # The score must be for the task of the caller.
    kind = score_of(calibration, given)
    callers = {"classification": "predict_set", "regression": "predict_interval"}
    must = f"was made for the score {kind.name!r}, which {callers[task]} does not compute"
    require("calibration", kind.task == task, must, remedy=f"use {callers[kind.task]}")
    return kind


_FEWEST_SETS = 100
"""Of fewer sets one empty set is already more than 1 %."""


def warn_of_empty_sets(empty: int, records: int, score: str | None) -> None:
    """Warn if more than 1 % of the sets are empty, with advice that depends on the score.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_empty_sets(10, 1000, "lac")
    ...     warn_of_empty_sets(404, 5180, "lac")
    >>> print(*(one.message for one in caught))
    404 of 5,180 sets are empty (7.8 %), and an empty set never contains the true label. ...
    """
    if records < _FEWEST_SETS or 100 * empty <= records:
        return
    other = "" if score_kind(score).randomised else "compare the randomised score, such as 'aps', or "
    warnings.warn(
        f"{empty:,} of {records:,} sets are empty ({100 * empty / records:.2g} %), and an empty set never contains the "
        f"true label. If every record needs a label, {other}take a smaller alpha",
        CoverageWarning,
        stacklevel=caller_stacklevel(),
    )
