"""Records to exact cell counts, batch by batch, by what a tally sees of them. **Private**: only `draw` lets any out."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.evaluation.private import PrivateEvaluation, Question
from confide.evaluation.private_parts import Partition
from confide.evaluation.set_tally import SetTally
from confide.evaluation.tally import Look, Tally
from confide.noisy_counts import draw_counts
from confide.support import library_versions


class CellTally:
    """The exact counts of the cells that a question asks for.

    Parameters
    ----------
    tally
        What says of records whether they are covered, and how large their sets or intervals are.
    question
        What is counted; its n is not looked at.
    """

    def __init__(self, tally: Tally, question: Question) -> None:
        self._tally, self._question = tally, question
        self._counts = [np.zeros(np.prod(question.shape(table)), np.int64) for table in question.tables]

    def add(
        self, *arrays: Any, groups: ArrayLike | None = None, places: NDArray[np.int64] | None = None, **more: Any
    ) -> None:
        """Count records.

        Parameters
        ----------
        *arrays, **more
            As the tally takes them.
        groups
            The names of their groups, or classes, where these have thresholds of their own.
        places
            The positions of their groups in the public list, shape (n,), -1 where they are not in it.
        """
        looks = self._tally.looks(*arrays, groups, **more)
        classes = arrays[1] if isinstance(self._tally, SetTally) else places
        axes = [_axis(partition, looks[0], classes, places) for partition in self._question.partitions]
        outcome = _outcomes(looks)
        for table, counts in zip(self._question.tables, self._counts, strict=True):
            cell = np.ravel_multi_index((*(axes[place] for place in table), outcome), self._question.shape(table))
            counts += np.bincount(cell, minlength=len(counts))

    @property
    def total(self) -> int:
        """How many records there are."""
        return int(self._counts[0].sum())

    def content(self) -> bytes:
        """All counts as bytes: the same for the same data, wherever they were counted."""
        return b"".join(counts.astype("<i8").tobytes() for counts in self._counts)

    def draw(self, question: Question, confidence: float) -> PrivateEvaluation:
        """The private evaluation, from fresh noise; `question` is that of the counts, with n where it is public."""
        exact = [self._counts[0][:1]] if question.one_count else self._counts
        noisy = tuple(tuple(draw_counts(counts, question.noise).tolist()) for counts in exact)
        return PrivateEvaluation(question, confidence, noisy, library_versions())


def _outcomes(looks: list[Look]) -> NDArray[np.int64]:
    """The outcome of each record: of several levels, which are nested, how many do not cover it."""
    if looks[0].ends is not None:
        low, high = looks[0].ends
        return np.where(low, np.where(high, 0, 2), np.where(high, 1, 3))
    missed: NDArray[np.int64] = np.sum([~look.covered for look in looks], axis=0, dtype=np.int64)
    return missed


def _axis(
    partition: Partition, look: Look, classes: NDArray[np.int64] | None, groups: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """The part of each record."""
    if partition.binned:
        assert look.size is not None
        place = np.searchsorted(np.array(partition.edges), look.size, side="right") - 1
        return np.maximum(place, 0)  # an interval whose ends have crossed has no width
    found = classes if partition.kind == "class" else groups
    if found is None:
        raise InputError(f"groups must be given: coverage is asked by {partition.kind}")
    return np.where(found < 0, len(partition) - 1, found)
