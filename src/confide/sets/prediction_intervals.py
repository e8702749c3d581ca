"""`PredictionIntervals`: a pair of arrays, the ends of one interval per record."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector, frame_of, refuse_other_rows
from confide.core import Release
from confide.errors import InputError
from confide.guarantee import coverage_text
from confide.sets.coverage import CoverageEstimate
from confide.sets.records import MOST_SHOWN, Records, positions_of, promise_notes
from confide.sets.shortfall import compared_coverage
from confide.support import BAD, FILL, INK, Level, Section, Table, axes_of, labelled, legend, require

if TYPE_CHECKING:
    import pandas

_FEW = 300
"""Up to this many records are drawn with full lines and dots; more are drawn thinner and paler."""

_MOST_VECTORS = 2000
"""Lines and dots of more records are stored as an image, because files would be large."""


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
        return compared_coverage(self.contains(targets), self.calibration, confidence)

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
        x = self._middles if along is None else self._one_each("along", along)
        y = None if targets is None else self._one_each("targets", targets)
        name = name or ("middle of the interval" if along is None else "prediction")
        level = self.promised if level is None else level

        # Intervals, and targets by whether they lie in them.
        axes = axes_of(ax)
        self._plot_ends(axes, x)
        facts = []
        if y is not None:
            inside = self.contains(y)
            _plot_targets(axes, x, y, inside)
            facts.append(f"{inside.mean():.1%} inside")
        if level is not None:
            facts.append(f"promised on average: {coverage_text(level)}")

        # A legend that pale lines do not hide, and the facts as a second line of the title.
        for handle in legend(axes, ax, columns=3).legend_handles:
            handle.set(alpha=1, linewidth=3)
        title = f"Prediction intervals, {len(x):,} records{self._left_out}"
        return labelled(axes, name, "target", "\n".join([title, ", ".join(facts)]).rstrip("\n"))

    @property
    def _middles(self) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):  # of infinite intervals
            return self.lower / 2 + self.upper / 2

    def _plot_ends(self, axes: Any, x: NDArray[np.float64]) -> None:
        low, high = self
        finite = np.isfinite(low) & np.isfinite(high) & (low <= high)
        weight = _weight(len(x))
        axes.vlines(
            x[finite], low[finite], high[finite], color=FILL, linewidth=0.5 + 0.9 * weight, alpha=0.08 + 0.5 * weight,
            label="interval", rasterized=len(x) > _MOST_VECTORS,
        )  # fmt: skip

    @property
    def _left_out(self) -> str:
        """The number of intervals that cannot be drawn, in words."""
        endless = int((np.isinf(self.lower) | np.isinf(self.upper)).sum())
        empty = int((self.lower > self.upper).sum())
        counts = [f"{count:,} {what}" for count, what in ((endless, "infinite"), (empty, "empty")) if count]
        return f" ({' and '.join(counts)} ones not drawn)" if counts else ""

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
            return tuple.__getitem__(self, which)
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


def _weight(records: int) -> float:
    """How heavily lines and dots are drawn, at most 1."""
    return math.sqrt(min(1.0, _FEW / records))


def _plot_targets(axes: Any, x: NDArray[Any], y: NDArray[Any], inside: NDArray[np.bool_]) -> None:
    """Dots inside and crosses outside of the intervals."""
    weight = _weight(len(x))
    dots: dict[str, Any] = {"color": INK, "markersize": 1.5 + 3 * weight, "alpha": 0.25 + 0.6 * weight}
    crosses: dict[str, Any] = {
        "color": BAD, "markersize": 3 + 2.5 * weight, "markeredgewidth": 0.6 + 0.7 * weight, "zorder": 3
    }  # fmt: skip
    label = "{:,} targets {}".format
    stored = {"rasterized": len(x) > _MOST_VECTORS}
    axes.plot(x[inside], y[inside], ".", label=label(inside.sum(), "inside"), **dots, **stored)
    axes.plot(x[~inside], y[~inside], "x", label=label((~inside).sum(), "outside"), **crosses, **stored)
