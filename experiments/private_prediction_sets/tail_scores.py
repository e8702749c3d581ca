"""LAC scores of many records and many classes, of which only those are kept that a set can contain."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SMALLEST = 1e-4
"""Probabilities below it are not kept."""


@dataclass(frozen=True, eq=False)
class TailScores:
    """Scores 1 - p of the true classes, and those of all classes with p >= `SMALLEST` as sorted pairs.

    Parameters
    ----------
    name
        For tables.
    classes
        How many classes there are.
    accuracy
        Share of records whose most probable class is the true one.
    truth
        Scores of the true classes, shape (N,).
    records, scores
        The pairs in increasing order of their scores, shape (P,) each.
    """

    name: str
    classes: int
    accuracy: float
    truth: NDArray[np.float64]
    records: NDArray[np.int32]
    scores: NDArray[np.float64]

    @classmethod
    def of(cls, name: str, blocks: Iterable[tuple[NDArray, NDArray[np.int64]]]) -> "TailScores":
        """From blocks of class probabilities, shape (n, K), and labels, shape (n,)."""
        truth, records, scores, right, start, classes = [], [], [], 0, 0, 0
        for p, labels in blocks:
            truth.append(1 - p[np.arange(len(p)), labels].astype(np.float64))
            row, column = np.nonzero(p >= SMALLEST)
            records.append((row + start).astype(np.int32))
            scores.append(1 - p[row, column].astype(np.float64))
            right += int(np.count_nonzero(p.argmax(axis=1) == labels))
            start, classes = start + len(p), p.shape[1]
        every = np.concatenate(scores)
        order = np.argsort(every)
        return cls(name, classes, right / start, np.concatenate(truth), np.concatenate(records)[order], every[order])

    def sizes(self, threshold: float) -> NDArray[np.int64]:
        """Set sizes of all records, shape (N,); all classes above 1 - `SMALLEST`, where not all scores are kept."""
        if threshold > 1 - SMALLEST:
            return np.full(len(self.truth), self.classes)
        inside = np.searchsorted(self.scores, threshold, side="right")
        return np.bincount(self.records[:inside], minlength=len(self.truth))
