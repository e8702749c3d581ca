"""`PredictionSets`: a mask with class names, one set of classes per record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_labels, frame_of, refuse_other_rows, warn_of_unknown_labels
from confide.core import Release
from confide.sets.coverage import CoverageEstimate
from confide.sets.records import MOST_SHOWN, Records, positions_of, promise_notes
from confide.sets.shortfall import compared_coverage
from confide.support import Level, Section, Table, needs_extra

if TYPE_CHECKING:
    import pandas
    import pyarrow

_MOST_NAMED = 20
"""Number of classes of a set that are shown to people."""


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
        return holds_class(self.mask, y)

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
        return compared_coverage(self.contains(labels), self.calibration, confidence)

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


def holds_class(mask: NDArray[np.bool_], y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each set has its class, by position; a label that is no class has the position -1 and is in no set."""
    inside: NDArray[np.bool_] = mask[np.arange(len(y)), y]  # for -1 the last entry, which does not count
    return inside & (y >= 0)


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
