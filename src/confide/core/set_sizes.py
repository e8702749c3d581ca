"""The sizes of sets or intervals by which a private choice compares scores."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.scores import NamedScores, score_kind
from confide.support import positive_integer, positive_number

# Widths are compared in steps of 1/1000 of the largest one.
_STEPS = 1000


@dataclass(frozen=True, eq=False)
class SetSizes:
    """The scores of all labels, shape (n, K); or of intervals the base and slope of the width, shape (n, 2)."""

    table: NDArray[np.float64]
    most: float
    of_intervals: bool

    def sums(self, rows: NDArray[np.bool_], candidates: Candidates, score: str | None) -> NDArray[np.int64]:
        """The sum of the sizes of these records' sets at each candidate, in steps, shape (m,)."""
        if not self.of_intervals:
            smallest = np.sort(self.table[rows], axis=1)[:, : int(self.most)]
            return ScoreHistogram.from_scores(smallest.ravel(), candidates, score).counts.cumsum()
        base, slope = self.table[rows].T
        with np.errstate(over="ignore"):
            widths = (np.clip((base + slope * t) / self.most, 0, 1) for t in candidates.edges)
            sums = [np.floor(_STEPS * width).sum() for width in widths]
        return np.array([*sums, _STEPS * len(base)], dtype=np.int64)


def read_sizes(
    offers: Mapping[str, NamedScores], n: int, sizes: Mapping[str, ArrayLike] | None, largest: float | None
) -> tuple[dict[str, SetSizes], int]:
    """The sizes by name, and the number of steps from 0 to the largest one."""
    # All names have sizes of the same kind: of sets of labels, or of intervals.
    kinds = [score_kind(offer.score) for offer in offers.values()]
    if sizes is None and all(kind.family == "absolute_residual" for kind in kinds):
        sizes = dict.fromkeys(offers, np.tile([0.0, 2.0], (n, 1)))
    if not isinstance(sizes, Mapping) or set(sizes) != set(offers):
        raise InputError("sizes", "must be given for all names of scores, unless these are all absolute residuals")
    intervals = kinds[0].task == "regression"
    if any((kind.task == "regression") != intervals for kind in kinds):
        raise InputError("scores", "must be all for sets of labels, or all for intervals")

    # Tables of finite numbers.
    tables = {name: as_numeric(f"sizes[{name!r}]", given).astype(np.float64) for name, given in sizes.items()}
    for name, table in tables.items():
        usable = table.ndim == 2 and len(table) == n and table.shape[1] and np.isfinite(table).all()
        if not usable or (intervals and table.shape[1] != 2):
            must = f"must hold finite numbers in the shape ({n}, {2 if intervals else 'K'})"
            raise InputError(f"sizes[{name!r}]", must, got=f"shape {table.shape}")

    # The size from which on all sets are equally bad.
    if intervals and largest is None:
        must = "must be given for intervals: the public width from which on all are equally bad"
        raise InputError("largest_size", must)
    if intervals:
        widest = positive_number("largest_size", largest)
        return {name: SetSizes(table, widest, True) for name, table in tables.items()}, _STEPS
    labels = max(table.shape[1] for table in tables.values())
    limit = labels if largest is None else positive_integer("largest_size", largest, most=labels)
    return {name: SetSizes(table, limit, False) for name, table in tables.items()}, limit
