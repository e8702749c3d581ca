"""Prediction intervals as a value: a pair of arrays, lower and upper ends, with their origin."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector, frame_of, refuse_other_rows
from confide.core import Release
from confide.errors import CoverageWarning, InputError
from confide.guarantee import coverage_text
from confide.sets.prediction_sets import positions_of
from confide.sets.promise import CoverageEstimate, compared, promise_notes
from confide.support import (
    BAD,
    FILL,
    INK,
    Described,
    Level,
    Section,
    Table,
    axes_of,
    caller_stacklevel,
    labelled,
    legend,
    needs_extra,
)

if TYPE_CHECKING:
    import pandas

_FEWEST, _FIRST, _WIDE = 10, 1000, 20.0
"""The spread of fewer predictions is not estimated. If a model explains 0.1 % of the variance, intervals are twenty
times as wide as its predictions are spread."""


def warn_of_widths(records: int, width: float, least: float, most: float) -> None:
    """Warn if intervals are uninformative; `width` is that of the narrowest, the rest describes the predictions.

    There is no warning for equal predictions, or for infinite intervals, which have a warning of their own.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_widths(1000, 3e10, 0.0, 300.0)
    ...     warn_of_widths(1000, 200.0, 0.0, 300.0)
    >>> print(*(one.message for one in caught))
    the intervals are at least 1e+08 times as wide as the predictions are spread, from the least to the largest: ...
    """
    spread = most - least
    if records < _FEWEST or not math.isfinite(width) or not 0 < spread < math.inf or width <= _WIDE * spread:
        return
    times = width / spread
    often = f"{times:.0f}" if times < 1e5 else f"{times:.0e}"
    warnings.warn(
        f"the intervals are at least {often} times as wide as the predictions are spread, from the least to the "
        "largest: they say next to nothing. Either there were too few calibration records, or the model's predictions "
        "hardly differ",
        CoverageWarning,
        stacklevel=caller_stacklevel(),
    )


def warn_of_intervals(predictions: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """Warn for arrays: predictions of shape (n,), or (n, 2) with quantiles, and the ends of their intervals.

    If an interval among the first records is narrow enough, so is one of all: with more records the narrowest interval
    is no wider, and the range of predictions is no smaller.
    """
    for records in (slice(_FIRST), slice(None)) if len(predictions) > _FIRST else (slice(None),):
        centres = predictions[records] if predictions.ndim == 1 else predictions[records].mean(axis=1)
        if not len(centres):
            return
        with np.errstate(invalid="ignore", over="ignore"):
            width = float((upper[records] - lower[records]).min())
        least, most = float(centres.min()), float(centres.max())
        if width <= _WIDE * (most - least):
            return
    warn_of_widths(len(centres), width, least, most)


_FEW = 300
"""Up to this many records are drawn with full lines and dots; more are drawn thinner and paler."""


def draw_intervals(
    x: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    y: NDArray[np.float64] | None,
    *,
    level: float | None = None,
    name: str = "prediction",
    ax: Any = None,
) -> Any:
    """Draw lines from low to high at x, dots for targets y inside and crosses for those outside; all of shape (n,)."""
    axes, finite = axes_of(ax), np.isfinite(low) & np.isfinite(high) & (low <= high)
    many = math.sqrt(min(1.0, _FEW / len(x)))
    whole = {"rasterized": len(x) > 2000}
    axes.vlines(
        x[finite], low[finite], high[finite], color=FILL, linewidth=0.5 + 0.9 * many, alpha=0.08 + 0.5 * many,
        label="interval", **whole,
    )  # fmt: skip
    title = f"Prediction intervals, {len(x):,} records{_left_out(low, high)}\n"
    if y is not None:
        inside = (low <= y) & (y <= high)
        axes.plot(x[inside], y[inside], ".", markersize=1.5 + 3 * many, color=INK, alpha=0.25 + 0.6 * many,
                  label=f"{inside.sum():,} targets inside", **whole)  # fmt: skip
        axes.plot(x[~inside], y[~inside], "x", markersize=3 + 2.5 * many, markeredgewidth=0.6 + 0.7 * many, color=BAD,
                  label=f"{(~inside).sum():,} targets outside", zorder=3, **whole)  # fmt: skip
        title += f"{inside.mean():.1%} inside"
    if level is not None:
        title += f"{', ' if y is not None else ''}promised on average: {coverage_text(level)}"
    for handle in legend(axes, ax, columns=3).legend_handles:
        handle.set(alpha=1, linewidth=3)
    return labelled(axes, name, "target", title.rstrip("\n"))


def _left_out(low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Intervals that are not drawn, in words: infinite and empty ones."""
    endless = int((np.isinf(low) | np.isinf(high)).sum())
    empty = int((low > high).sum())
    counts = [f"{count:,} {what}" for count, what in ((endless, "infinite"), (empty, "empty")) if count]
    return f" ({' and '.join(counts)} ones not drawn)" if counts else ""


MOST_SHOWN = 10
_CHOSEN = "must be chosen by a slice, or a vector of positions or booleans"


class _Ends(NamedTuple):
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class PredictionIntervals(_Ends, Described):
    """One interval per record; `lower, upper = intervals` unpacks the ends.

    The value is a pair of the ends. Slices, positions or booleans select records and return intervals again.

    Parameters
    ----------
    lower, upper
        float64, shape (n,): both ends belong to the interval, which is empty if lower > upper.
    promised
        The coverage that the calibration guarantees at least, if the intervals come from one; not an item of the pair.
    calibration
        The calibration that they come from, as in `PredictionSets`; not an item of the pair.
    index
        The index of the pandas object that they were made from; targets must have the same. Not an item of the pair.

    Examples
    --------
    >>> intervals = PredictionIntervals(np.array([0.0, 1.0]), np.array([2.0, 4.0]))
    >>> intervals
    PredictionIntervals(n=2, mean width 2.5, empty 0, infinite 0)
    >>> intervals.contains([2.0, 0.5])
    array([ True, False])
    >>> intervals[1:].widths, intervals[[False, True]].lower
    (array([3.]), array([1.]))
    """

    _promised: float | None = None
    _calibration: Release | None = None
    _index: Any = None

    def __new__(
        cls,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        promised: float | None = None,
        calibration: Release | None = None,
        index: Any = None,
    ) -> Self:
        """Make the pair; the guarantee, the calibration and the index are attributes."""
        pair = super().__new__(cls, lower, upper)
        pair._promised, pair._calibration, pair._index = promised, calibration, index
        return pair

    def __getstate__(self) -> dict[str, Any]:
        """The attributes of copies and pickles: all but the release."""
        return {**vars(self), "_calibration": None}

    @property
    def calibration(self) -> Release | None:
        """The calibration that they come from, if it is known; copies and pickles do not contain it."""
        return self._calibration

    @property
    def promised(self) -> float | None:
        """The coverage that the calibration guarantees at least; None for intervals without a calibration."""
        return self._promised

    @property
    def index(self) -> Any:
        """The index of the pandas object that the intervals were made from; None without one."""
        return self._index

    @property
    def widths(self) -> NDArray[np.float64]:
        """Upper minus lower end, shape (n,); 0 for an empty interval."""
        with np.errstate(over="ignore"):
            return np.maximum(self.upper - self.lower, 0.0)

    def contains(self, targets: ArrayLike) -> NDArray[np.bool_]:
        """Whether each record's target lies in its interval: bool, shape (n,).

        Raises
        ------
        InputError
            If there is not one target per interval.
        """
        y = self._one_each("targets", targets)
        return np.asarray((self.lower <= y) & (y <= self.upper))

    def coverage(self, targets: ArrayLike, confidence: Level = 0.95) -> CoverageEstimate:
        """The share of records whose target is in their interval, with its exact interval; targets of shape (n,).

        Warns
        -----
        CoverageWarning
            If it is below the guarantee beyond chance, also beyond the variation between calibrations.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0, 1.0]), np.array([2.0, 4.0])).coverage([2.0, 0.5]).value
        0.5
        """
        return compared(self.contains(targets), self.calibration, confidence)

    def plot(
        self,
        targets: ArrayLike | None = None,
        *,
        along: ArrayLike | None = None,
        level: float | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the intervals on matplotlib axes, targets as dots and those outside as crosses. Returns the axes.

        The picture is **not private**: it shows every record.

        Parameters
        ----------
        targets
            True values, shape (n,).
        along
            The position of each interval, shape (n,): the predictions, or a feature; by default the middle of the
            interval.
        level
            The guaranteed coverage, for the title; by default that of the intervals' calibration.
        name
            The label of the positions; by default "prediction", or "middle of the interval".
        ax
            Matplotlib axes to draw on; by default those of a new figure.

        Raises
        ------
        InputError
            If there are no intervals, or not one number for each.
        """
        if not len(self.lower):
            raise InputError("intervals", "must be at least one for a plot", got="none")
        if along is None:
            with np.errstate(invalid="ignore"):
                x = self.lower / 2 + self.upper / 2
        else:
            x = self._one_each("along", along)
        y = None if targets is None else self._one_each("targets", targets)
        named = name or ("middle of the interval" if along is None else "prediction")
        level = self.promised if level is None else level
        return draw_intervals(x, self.lower, self.upper, y, level=level, name=named, ax=ax)

    def to_frame(self, like: Any = "pandas") -> Any:
        """A data frame with the columns `lower` and `upper`, of the kind of `like`; see `PredictionSets.to_frame`.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0]), np.array([2.0])).to_frame("pyarrow").column_names
        ['lower', 'upper']
        """
        return frame_of([("lower", self.lower), ("upper", self.upper)], like, self.index)

    @overload
    def __getitem__(self, which: SupportsIndex) -> NDArray[np.float64]: ...

    @overload
    def __getitem__(self, which: slice | ArrayLike) -> PredictionIntervals: ...

    def __getitem__(self, which: Any) -> NDArray[np.float64] | PredictionIntervals:
        """The lower or upper ends, [0] or [1]; or the intervals of some records: a slice, positions, or booleans."""
        if isinstance(which, SupportsIndex) and np.ndim(which) == 0:  # type: ignore[arg-type]
            end: NDArray[np.float64] = tuple.__getitem__(self, which)
            return end
        chosen = positions_of("intervals", _CHOSEN, which)
        calibration = self.calibration if isinstance(which, slice) else None
        index = None if self.index is None else self.index[chosen]
        return PredictionIntervals(self.lower[chosen], self.upper[chosen], self.promised, calibration, index)

    def _one_each(self, name: str, values: ArrayLike) -> NDArray[np.float64]:
        refuse_other_rows(intervals=self, **{name: values})
        vector = as_vector(name, values, empty=True)
        if len(vector) != len(self.lower):
            raise InputError(name, "must have one entry per interval", got=f"{len(vector)} for {len(self.lower)}")
        return vector

    def to_pandas(self, index: Any = None) -> pandas.DataFrame:
        """A data frame with the columns `lower` and `upper`; `index` names the records, by default the intervals' own.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0]), np.array([2.0])).to_pandas()
           lower  upper
        0    0.0    2.0
        """
        with needs_extra("to_pandas", "pandas"):
            import pandas as pd
        return pd.DataFrame({"lower": self.lower, "upper": self.upper}, index=self.index if index is None else index)

    def __repr__(self) -> str:
        n, widths = len(self.lower), self.widths
        mean = f"{widths.mean():.4g}" if n else "undefined"
        empty, infinite = int((self.lower > self.upper).sum()), int(np.isinf(widths).sum())
        return f"PredictionIntervals(n={n}, mean width {mean}, empty {empty}, infinite {infinite})"

    def __str__(self) -> str:
        return repr(self)

    def _section(self) -> Section:
        ends = zip(self.lower[:MOST_SHOWN].tolist(), self.upper[:MOST_SHOWN].tolist(), strict=True)
        rows = tuple((f"{i}", f"{low:.6g}", f"{high:.6g}") for i, (low, high) in enumerate(ends))
        table = Table(("record", "lower", "upper"), rows, total=len(self.lower))
        return Section(repr(self), tables=(table,), notes=tuple(promise_notes(self.promised)))
