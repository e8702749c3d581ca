"""Counts of covered records, in all and by group or side, and the widths of their intervals."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions
from confide.errors import InputError
from confide.evaluation.metrics import coverage_from_counts
from confide.evaluation.release_parts import division_of, fingerprint, promised_coverage
from confide.evaluation.result import CONFIDENCE, SIDES, Evaluation, Subgroup
from confide.releases import GroupCalibration


class CoveredCounts:
    """How many records are covered, in all and by group or side, and how wide their intervals are."""

    def __init__(self, release: Any) -> None:
        self.release, self.by = release, division_of(release)
        self.names = tuple(release.parts) if isinstance(release, GroupCalibration) else ()
        self.n = self.hits = 0
        self.total: float | None = None
        self.counts = np.zeros((2 if self.by == "side" else len(self.names), 2), np.int64)
        self.widths = np.zeros(len(self.counts))

    def places(self, groups: ArrayLike | None, n: int) -> NDArray[np.int64]:
        """The position of each record's group, or true class."""
        if groups is None:
            raise InputError(f"groups must be given: the release has one threshold per {self.by}")
        return as_positions("groups", groups, self.names, n)

    def count(
        self, covered: NDArray[np.bool_], groups: ArrayLike | None, widths: NDArray[np.float64] | None = None
    ) -> None:
        """Add records."""
        self.n, self.hits = self.n + len(covered), self.hits + int(covered.sum())
        with np.errstate(over="ignore"):
            if widths is not None:
                self.total = (self.total or 0.0) + float(widths.sum())
            if self.names:
                place, size = self.places(groups, len(covered)), len(self.names)
                self.counts[:, 0] += np.bincount(place, minlength=size)
                self.counts[:, 1] += np.bincount(place[covered], minlength=size)
                if widths is not None:
                    self.widths += np.bincount(place, widths, minlength=size)

    def count_sides(self, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> None:
        """Add records of which the lower end, and the upper end, may hold."""
        self.counts[:, 0] += len(above)
        self.counts[:, 1] += [int(above.sum()), int(below.sum())]

    def result(self) -> Evaluation:
        """The evaluation of all records so far."""
        coverage = coverage_from_counts(self.hits, self.n, CONFIDENCE)
        mean = None if self.total is None else _mean(self.total, self.n)
        parts = self._parts()
        classes, groups = (parts, ()) if self.by == "class" else ((), parts)
        release = self.release
        return Evaluation(
            fingerprint(release),
            promised_coverage(release),
            coverage,
            mean_width=mean,
            classes=classes,
            groups=groups,
            by=self.by,
        )

    def _parts(self) -> tuple[Subgroup, ...]:
        if self.by == "side":
            own, names = [self.release.low.coverage, self.release.high.coverage], list(SIDES)
        else:
            own = [self.release.parts[name].coverage for name in self.names]
            names = list(map(str, self.names))
        wide = self.total is not None and self.by != "side"
        return tuple(
            Subgroup(name, n, hits, promised=one, mean_width=_mean(width, n) if wide else None)
            for name, one, (n, hits), width in zip(names, own, self.counts.tolist(), self.widths.tolist(), strict=True)
            if n
        )


def _mean(total: float, n: int) -> float:
    return total / n if math.isfinite(total) else math.inf
