"""Prediction sets of a batch of columns, for scores that SQL cannot compute: every classification score, in numpy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.releases.calibration import Calibration
from confide.releases.several import GroupCalibration
from confide.scores.classification import set_mask
from confide.scores.kinds import score_kind
from confide.tables.batch_columns import matrix_column, number_column, positions_among

SET, SIZE = "prediction_set", "set_size"


@dataclass(frozen=True, eq=False)
class BatchSets:
    """A function from a record batch to its prediction sets, made by `batch_sets`; it travels to other processes.

    Parameters
    ----------
    probabilities
        One column per class, or the name of one list column.
    names
        The class names, in the order of the probabilities.
    score
        The score's name. Randomised ones draw fresh numbers.
    thresholds
        float64: one for all, shape (1,); one per class, shape (K,); or one per group, in the order of `groups`.
    by_class
        Whether there is one per class.
    group
        The column of each row's group, for thresholds per group.
    groups
        The groups' names.
    """

    probabilities: str | tuple[str, ...]
    names: tuple[str | int, ...]
    score: str
    thresholds: NDArray[np.float64]
    by_class: bool
    group: str | None
    groups: tuple[str | int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        read = (self.probabilities,) if isinstance(self.probabilities, str) else self.probabilities
        return tuple(dict.fromkeys([*read, *([] if self.group is None else [self.group])]))

    def columns_of(self, batch: Any) -> list[Any]:
        """`prediction_set` and `set_size` as Arrow arrays, null where a row cannot have a set."""
        import pyarrow as pa

        mask, usable = self._mask(batch)
        sizes = np.count_nonzero(mask, axis=1).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        members = pa.array(self.names).take(pa.array(np.flatnonzero(mask) % len(self.names)))
        sets = pa.ListArray.from_arrays(pa.array(offsets), members, mask=pa.array(~usable))
        return [sets, pa.array(sizes, mask=~usable)]

    def appended(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches with both columns."""
        import pyarrow as pa

        for batch in batches:
            columns = [*batch.columns, *self.columns_of(batch)]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, SET, SIZE])

    def _mask(self, batch: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which classes are in the set of each row, and which rows can have one."""
        if isinstance(self.probabilities, str):
            p, usable = matrix_column(batch, self.probabilities, len(self.names))
        else:
            p = np.stack([number_column(batch, name) for name in self.probabilities], axis=1)
            usable = np.ones(len(p), dtype=np.bool_)
        usable = usable & ((p >= 0) & (p <= 1)).all(axis=1)
        limits: Any = self.thresholds if self.by_class else float(self.thresholds[0])
        if self.group is not None:
            place = positions_among(batch, self.group, self.groups)
            usable &= place >= 0
            limits = self.thresholds[place[usable]]
        u = np.random.default_rng() if score_kind(self.score).randomised else None
        if usable.all() and len(p):
            return set_mask(p, self.score, limits, u=u, per_class=self.by_class), usable
        mask = np.zeros(p.shape, dtype=np.bool_)
        if usable.any():
            mask[usable] = set_mask(p[usable], self.score, limits, u=u, per_class=self.by_class)
        return mask, usable


def batch_sets(
    probabilities: str | tuple[str, ...],
    calibration: Calibration | GroupCalibration,
    classes: Sequence[str | int],
    group: str | None = None,
) -> BatchSets:
    """The sets of a calibration; arguments as in `with_sets`.

    Examples
    --------
    >>> import confide, pyarrow
    >>> released = confide.calibrate([0.75] * 500, 0.1, 10.0, score="aps", candidates=confide.Candidates.of([0.75]))
    >>> batch = pyarrow.record_batch({"p": [[0.75, 0.25], [0.5, 0.5]]})
    >>> [column.to_pylist() for column in batch_sets("p", released, ["a", "b"]).columns_of(batch)]
    [[['a'], []], [1, 0]]
    """
    names = tuple(classes)
    if not isinstance(probabilities, str) and len(probabilities) != len(names):
        raise InputError(f"classes must name every column; found {len(names)} names for {len(probabilities)} columns")
    by_class = isinstance(calibration, GroupCalibration) and calibration.by == "class"
    per_group = isinstance(calibration, GroupCalibration) and not by_class
    if per_group != (group is not None):
        raise InputError("group must name the column of each row's group, if there are thresholds per group, only then")
    if not isinstance(calibration, GroupCalibration):
        thresholds = np.array([calibration.threshold])
    elif by_class:
        thresholds = calibration.class_thresholds(names, len(names))
    else:
        thresholds = np.array([part.threshold for part in calibration.parts.values()])
    groups = tuple(calibration.parts) if isinstance(calibration, GroupCalibration) and per_group else ()
    return BatchSets(probabilities, names, calibration.score or "lac", thresholds, by_class, group, groups)
