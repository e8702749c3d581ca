"""Prediction sets of classes as a value: one mask, class names, and conversions to other forms."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_labels, frame_of, refuse_other_rows, warn_of_unknown_labels
from confide.core import Release
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.sets.promise import CoverageEstimate, compared, promise_notes
from confide.support import Described, Level, Section, Table, caller_stacklevel, needs_extra

if TYPE_CHECKING:
    import pandas
    import pyarrow

MOST_SHOWN = 10
_MOST_NAMED = 20
_CHOSEN = "must be chosen by one position, a slice, or a vector of positions or booleans"


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets(Described):
    """One set of classes per record.

    Parameters
    ----------
    mask
        bool, shape (n, K): whether class k is in the set of record i.
    classes
        The K class names, or None for 0 .. K-1.
    promised
        The coverage that the calibration guarantees at least, if the sets come from one.
    calibration
        The calibration that they come from, which `coverage` uses. There is no guarantee for a selection of records by
        positions or booleans, so it is dropped from selections, and also from copies and pickles.
    index
        The index of the pandas object that the sets were made from; labels and groups must have the same.

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
        warn_of_unknown_labels("labels", y, range(k) if self.classes is None else self.classes)
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
        return compared(self.contains(labels), self.calibration, confidence)

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
        names = range(self.mask.shape[1]) if self.classes is None else self.classes
        return frame_of([(name, self.mask[:, k]) for k, name in enumerate(names)], like, self.index)

    def to_arrow(self) -> pyarrow.Array:
        """An Arrow list column of class names (class indices without names), one list per record.

        Examples
        --------
        >>> PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog")).to_arrow().to_pylist()
        [['cat'], ['cat', 'dog']]
        """
        with needs_extra("to_arrow", "standard"):
            import pyarrow as pa

        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        members = np.nonzero(self.mask)[1]
        if len(members) < 2**31:
            column, index = pa.ListArray, offsets.astype(np.int32)
        else:
            column, index = pa.LargeListArray, offsets
        values = pa.array(members) if self.classes is None else _arrow_names(self.classes).take(pa.array(members))
        return column.from_arrays(pa.array(index), values)

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

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "calibration": None}

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
        chosen = positions_of("sets", _CHOSEN, which)
        rows = self.mask[chosen]
        if rows.ndim == 1:
            return self._members(rows)
        calibration = self.calibration if isinstance(which, slice) else None
        index = None if self.index is None else self.index[chosen]
        return PredictionSets(rows, self.classes, self.promised, calibration, index)

    def _members(self, row: NDArray[np.bool_]) -> list[Any]:
        names = range(len(row)) if self.classes is None else self.classes
        return [names[k] for k in np.flatnonzero(row).tolist()]

    def _section(self) -> Section:
        rows = tuple((f"{i}", f"{len(members)}", _set_text(members)) for i, members in enumerate(self[:MOST_SHOWN]))
        table = Table(("record", "size", "set"), rows, total=len(self))
        return Section(repr(self), tables=(table,), notes=tuple(promise_notes(self.promised)))

    def _brief(self) -> str:
        n, k = self.mask.shape
        sizes = self.sizes
        mean = f"{sizes.mean():.2f}" if n else "undefined"
        full = ", every class in every set" if n and k > 1 and sizes.min() == k else ""
        return f"n={n}, classes={k}, mean size {mean}, empty {int((sizes == 0).sum())}{full}"


_FEWEST = 100
"""Of fewer records one empty set is already more than 1 %."""


def warn_of_empty_sets(empty: int, records: int) -> None:
    """Warn if more than 1 % of the sets are empty.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_empty_sets(10, 1000)
    ...     warn_of_empty_sets(404, 5180)
    >>> print(*(one.message for one in caught))
    404 of 5,180 sets are empty (7.8 %), and an empty set never contains the true label. ...
    """
    if records < _FEWEST or 100 * empty <= records:
        return
    warnings.warn(
        f"{empty:,} of {records:,} sets are empty ({100 * empty / records:.2g} %), and an empty set never contains the "
        "true label. If every record needs a label, compare the randomised score, such as 'aps', or take a smaller "
        "alpha",
        CoverageWarning,
        stacklevel=caller_stacklevel(),
    )


def positions_of(argument: str, requirement: str, which: Any) -> slice | NDArray[Any]:
    """Convert a selection of records: slice, one position, or a vector of positions or booleans; names are invalid."""
    if isinstance(which, slice):
        return which
    positions = np.asarray(which)
    if positions.ndim > 1:
        raise InputError(argument, requirement, got=f"{positions.ndim} dimensions")
    kinds = "iub" if positions.ndim else "iu"
    if positions.size and positions.dtype.kind not in kinds:
        raise InputTypeError(argument, requirement, got=f"{type(which).__name__} of dtype {positions.dtype}")
    return positions if positions.size else positions.astype(np.int64)


def _set_text(members: list[Any]) -> str:
    """The classes of one set in a table cell; of very many only the first."""
    names = ", ".join(map(str, members[:_MOST_NAMED])) or "empty"
    return names + (f" and {len(members) - _MOST_NAMED:,} more" if len(members) > _MOST_NAMED else "")


def _arrow_names(classes: tuple[object, ...]) -> pyarrow.Array:
    """Names as one Arrow column; of different types, such as 1 and "a", they become strings."""
    import pyarrow as pa

    try:
        return pa.array(list(classes))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(list(map(str, classes)))
