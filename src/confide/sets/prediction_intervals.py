"""`PredictionIntervals`: a pair of arrays; and the functions that make intervals from a release."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Groups,
    as_array,
    as_numeric,
    as_vector,
    frame_of,
    one_per_record,
    refuse_other_rows,
    row_index,
)
from confide.core import Release, warn_about
from confide.errors import CoverageWarning, InputError
from confide.guarantee import coverage_text
from confide.scores import interval_ends
from confide.sets.coverage import CoverageEstimate, covered_share
from confide.sets.prediction_sets import MOST_SHOWN, Records, positions_of, promise_notes, score_of_task
from confide.support import BAD, FILL, INK, Level, Section, Table, axes_of, caller_stacklevel, labelled, legend, require

if TYPE_CHECKING:
    import pandas

_FEW = 300
"""Up to this many records are drawn with full lines and dots; more are drawn thinner and paler."""

_MOST_VECTORS = 2000
"""Lines and dots of more records are stored as an image, because files would be large."""


def _left_out(low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    endless = int((np.isinf(low) | np.isinf(high)).sum())
    empty = int((low > high).sum())
    counts = [f"{count:,} {what}" for count, what in ((endless, "infinite"), (empty, "empty")) if count]
    return f" ({' and '.join(counts)} ones not drawn)" if counts else ""


class _Ends(NamedTuple):
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class PredictionIntervals(_Ends, Records):
    """One interval per record; `lower, upper = intervals` unpacks the ends.

    The value is a pair of the ends. Slices, positions or booleans select records and return intervals again.

    Parameters
    ----------
    lower, upper
        float64, shape (n,): both ends belong to the interval, which is empty if lower > upper.
    promised
        The coverage that the release guarantees, if the intervals come from one; not an item of the pair.
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

    promised: float | None

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
        vars(pair).update(promised=promised, calibration=calibration, index=index)
        return pair

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name!r} of intervals cannot be set")

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
        return covered_share(self.contains(targets), self.calibration, confidence)

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
        # What is drawn where.
        require("intervals", len(self.lower), "must be at least one for a plot", got="none")
        low, high = self
        if along is None:
            with np.errstate(invalid="ignore"):
                x = low / 2 + high / 2
        else:
            x = self._one_each("along", along)
        y = None if targets is None else self._one_each("targets", targets)
        name = name or ("middle of the interval" if along is None else "prediction")
        level = self.promised if level is None else level

        # Finite intervals; very many are stored as an image.
        axes = axes_of(ax)
        finite = np.isfinite(low) & np.isfinite(high) & (low <= high)
        weight = math.sqrt(min(1.0, _FEW / len(x)))
        stored = {"rasterized": len(x) > _MOST_VECTORS}
        axes.vlines(
            x[finite], low[finite], high[finite], color=FILL, linewidth=0.5 + 0.9 * weight, alpha=0.08 + 0.5 * weight,
            label="interval", **stored,
        )  # fmt: skip
        title = f"Prediction intervals, {len(x):,} records{_left_out(low, high)}\n"

        # Targets, by whether they lie in their intervals.
        if y is not None:
            inside = self.contains(y)
            _plot_targets(axes, x, y, inside, weight, **stored)
            title += f"{inside.mean():.1%} inside"

        # The promise, and a legend that pale lines do not hide.
        if level is not None:
            title += f"{', ' if y is not None else ''}promised on average: {coverage_text(level)}"
        for handle in legend(axes, ax, columns=3).legend_handles:
            handle.set(alpha=1, linewidth=3)
        return labelled(axes, name, "target", title.rstrip("\n"))

    def to_frame(self, like: Any = "pandas") -> Any:
        """A data frame with the columns `lower` and `upper`, of the kind of `like`; see `PredictionSets.to_frame`.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0]), np.array([2.0])).to_frame("pyarrow").column_names
        ['lower', 'upper']
        """
        return frame_of([*self._asdict().items()], like, self.index)

    @overload
    def __getitem__(self, which: SupportsIndex) -> NDArray[np.float64]: ...

    @overload
    def __getitem__(self, which: slice | ArrayLike) -> PredictionIntervals: ...

    def __getitem__(self, which: Any) -> NDArray[np.float64] | PredictionIntervals:
        """The lower or upper ends, [0] or [1]; or the intervals of some records: a slice, positions, or booleans."""
        if isinstance(which, SupportsIndex) and np.ndim(which) == 0:  # type: ignore[arg-type]
            end: NDArray[np.float64] = tuple.__getitem__(self, which)
            return end
        chosen = positions_of("intervals", "must be chosen by a slice, or a vector of positions or booleans", which)
        ends = self.lower[chosen], self.upper[chosen]
        return PredictionIntervals(*ends, self.promised, **self._origin_of(which, chosen))

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
        frame: pandas.DataFrame = frame_of([*self._asdict().items()], "pandas", self.index if index is None else index)
        return frame

    def __repr__(self) -> str:
        n = len(self.lower)
        widths = self.widths
        mean = f"{widths.mean():.4g}" if n else "undefined"
        empty = int((self.lower > self.upper).sum())
        infinite = int(np.isinf(widths).sum())
        return f"PredictionIntervals(n={n}, mean width {mean}, empty {empty}, infinite {infinite})"

    def __str__(self) -> str:
        return repr(self)

    def _section(self) -> Section:
        ends = zip(self.lower[:MOST_SHOWN].tolist(), self.upper[:MOST_SHOWN].tolist(), strict=True)
        rows = tuple((f"{i}", f"{low:.6g}", f"{high:.6g}") for i, (low, high) in enumerate(ends))
        table = Table(("record", "lower", "upper"), rows, total=len(self.lower))
        return Section(repr(self), tables=(table,), notes=promise_notes(self.promised))


def _plot_targets(
    axes: Any, x: NDArray[Any], y: NDArray[Any], inside: NDArray[np.bool_], weight: float, **stored: Any
) -> None:
    """Dots inside and crosses outside of the intervals, which are heavier if there are few of them."""
    dots: dict[str, Any] = {"color": INK, "markersize": 1.5 + 3 * weight, "alpha": 0.25 + 0.6 * weight}
    crosses: dict[str, Any] = {
        "color": BAD, "markersize": 3 + 2.5 * weight, "markeredgewidth": 0.6 + 0.7 * weight, "zorder": 3
    }  # fmt: skip
    label = "{:,} targets {}".format
    axes.plot(x[inside], y[inside], ".", label=label(inside.sum(), "inside"), **dots, **stored)
    axes.plot(x[~inside], y[~inside], "x", label=label((~inside).sum(), "outside"), **crosses, **stored)


def predict_interval(
    predictions: ArrayLike,
    calibration: Release,
    *,
    difficulty: ArrayLike | None = None,
    groups: Groups | None = None,
    score: str | None = None,
) -> PredictionIntervals:
    """Prediction intervals {y : score(x, y) <= threshold} for new records, with the score that the calibration states.

    The ends are rounded outwards, so that every y whose computed score is at most the threshold lies between them.

    Parameters
    ----------
    predictions
        Finite: shape (n,) or (n, 1), or shape (n, 2) with lower and upper quantiles for CQR; n may be 0.
    calibration
        A release for a regression score. It may have one threshold for each side of CQR (`calibrate_sides`).
    difficulty
        For `normalised_residual`: positive numbers, shape (n,).
    groups
        For thresholds per group: the group of each record, shape (n,).
    score
        Only for a calibration without a score name: the score of the calibration.

    Returns
    -------
    PredictionIntervals
        The pair (lower, upper), float64, shape (n,) each, which can be unpacked; infinite if the threshold is. A
        negative threshold, possible with CQR, can give lower > upper: the empty interval. `promised` is the guaranteed
        coverage, for groups that of the group with the least.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> calibration = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="absolute_residual")
    >>> lower, upper = confide.predict_interval([10.0], calibration)
    >>> bool(8.9 < lower[0] < 9.2 and 10.8 < upper[0] < 11.1)
    True
    """
    intervals = intervals_of(predictions, calibration, difficulty=difficulty, groups=groups, score=score)
    warn_of_intervals(as_numeric("predictions", predictions), *intervals)
    return intervals


def intervals_of(
    predictions: ArrayLike,
    calibration: Release,
    *,
    difficulty: ArrayLike | None,
    groups: Groups | None,
    score: str | None = None,
) -> PredictionIntervals:
    """Intervals without a warning about their widths, which would reveal something about private records."""
    # Two thresholds, one for each end; or one, or that of each group.
    refuse_other_rows(predictions=predictions, difficulty=difficulty, groups=groups)
    if isinstance(calibration, Release) and calibration.by == "side":
        if difficulty is not None or groups is not None:
            raise InputError("difficulty", "difficulty and groups must be left out for thresholds per side")
        lower, _ = interval_ends(predictions, "cqr_low", calibration["low"].threshold)
        _, upper = interval_ends(predictions, "cqr_high", calibration["high"].threshold)
    else:
        name = str(score_of_task(calibration, "regression", score).name)
        array = as_array("predictions", predictions)
        records = len(array if array.ndim == 2 else one_per_record("predictions", array))
        limits = calibration.limits(records, groups=groups)
        lower, upper = interval_ends(predictions, name, limits, difficulty=difficulty)
    warn_about(calibration)
    return PredictionIntervals(lower, upper, calibration.promised, calibration, row_index(predictions))


# Warnings about uninformative intervals.

_FEWEST = 10
"""The spread of fewer predictions is not estimated."""

_WIDE = 20.0
"""A width in units of that spread: intervals of a model that explains 0.1 % of the variance are so wide."""

_FIRST = 1000
"""Number of records that are examined before all."""


def warn_of_widths(records: int, width: float, least: float, most: float) -> None:
    """Warn if intervals are uninformative: the narrowest has `width`; the other numbers describe the predictions.

    There is no warning for equal predictions, or for infinite intervals, which have another warning.

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
    if not len(predictions):
        return
    first = slice(_FIRST)
    width, least, most = _narrowest(predictions[first], lower[first], upper[first])
    if width > _WIDE * (most - least):
        warn_of_widths(len(predictions), *_narrowest(predictions, lower, upper))


def _narrowest(
    predictions: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[float, float, float]:
    """The width of the narrowest interval, and the least and the largest prediction."""
    centres = predictions if predictions.ndim == 1 else predictions.mean(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        width = float((upper - lower).min())
    return width, float(centres.min()), float(centres.max())
