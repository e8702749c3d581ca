"""Scores of trained classifiers on held-out records: probabilities, labels, and curves over candidates.

ImageNet logits, if there are any, are read from the file named by CONFIDE_IMAGENET (an npz with arrays `logits` of shape
(n, K) and `labels` of shape (n,)).
"""

import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import confide
from experiments.cifar10 import data_folder

BLOOD = ("basophil", "eosinophil", "erythroblast", "immature gr.", "lymphocyte", "monocyte", "neutrophil", "platelet")
SKIN = ("actinic ker.", "basal cell c.", "benign ker.", "dermatofibr.", "melanoma", "nevus", "vascular")


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """Class probabilities of shape (N, K) and labels of shape (N,)."""

    name: str
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """LAC scores, 1 - p of the true class."""
        return confide.lac_score(self.probabilities, self.labels)

    @property
    def accuracy(self) -> float:
        """Share of records whose most probable class is the true one."""
        return float(np.mean(self.probabilities.argmax(axis=1) == self.labels))

    def binned(self, candidates: confide.Candidates) -> "Binned":
        """The scores as indices of candidates."""
        edges = candidates.edges
        every = np.searchsorted(edges, 1 - self.probabilities, side="left").astype(np.int32)
        return Binned(candidates, np.searchsorted(edges, self.scores, side="left"), every)


@dataclass(frozen=True, eq=False)
class Binned:
    """Scores of true labels, (N,), and of all labels, (N, K), as indices of the first candidate not below them."""

    candidates: confide.Candidates
    truth: NDArray[np.int64]
    every: NDArray[np.int32]

    def counts(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts per bin of these records, shape (m,)."""
        return np.bincount(self.truth[records], minlength=self.candidates.size)

    def validate(self, calibration: NDArray[np.int64], chosen: int) -> tuple[float, float]:
        """Coverage and mean set size of all other records with candidate `chosen` as the threshold."""
        rest = len(self.truth) - len(calibration)
        covered = self._covered[chosen] - np.count_nonzero(self.truth[calibration] <= chosen)
        sizes = self._sizes[chosen] - np.count_nonzero(self.every[calibration] <= chosen)
        return covered / rest, sizes / rest

    @cached_property
    def _covered(self) -> NDArray[np.int64]:
        """How many of all records each candidate covers, (m,)."""
        return np.cumsum(np.bincount(self.truth, minlength=self.candidates.size))

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """The sum of all records' set sizes at each candidate, (m,)."""
        return np.cumsum(np.bincount(self.every.ravel(), minlength=self.candidates.size))


def softmax(logits: NDArray) -> NDArray[np.float64]:
    """Probabilities from logits, row by row."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


@lru_cache(maxsize=1)
def cifar100() -> ScoreSet:
    """CIFAR-100 test images, a small ResNet."""
    data = np.load(data_folder() / "cifar100_resnet14.npz")
    logits = np.concatenate([data["val_logits"], data["test_logits"]])
    return ScoreSet("CIFAR-100", softmax(logits), np.concatenate([data["val_labels"], data["test_labels"]]).ravel())


def imagenet(path: str | Path | None = None) -> ScoreSet | None:
    """ImageNet logits from a file, or None if no path is given."""
    path = path or os.environ.get("CONFIDE_IMAGENET")
    if not path:
        return None
    data = np.load(path)
    return ScoreSet("ImageNet", softmax(data["logits"]), data["labels"].ravel().astype(np.int64))
