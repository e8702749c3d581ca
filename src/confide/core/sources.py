"""Records, wherever they are stored, as the counts that a release uses: over public candidates, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, as_positions, as_vector
from confide.candidates import Candidates
from confide.core.population import ClassShift, Population
from confide.core.request import Request
from confide.core.thresholds import Key
from confide.counting import ScoreHistogram, check_scores
from confide.errors import InputError


class Source(Protocol):
    """Access to records, wherever they are stored."""

    @property
    def n(self) -> int | None:
        """The number of records if it is cheap to determine, else None."""

    @property
    def reading_is_visible(self) -> bool:
        """Whether reading the records informs another system, so that a ledger must be charged first."""

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The counts of each row of the request over the candidates."""


@dataclass(frozen=True)
class GivenCounts:
    """Counts that were computed elsewhere, by row, over the required candidates or a superset."""

    counts: Mapping[Key, ScoreHistogram]
    reading_is_visible = False

    @property
    def n(self) -> int:
        """The number of records."""
        return next(iter(self.counts.values())).total

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The same counts."""
        return self.counts


@dataclass(frozen=True)
class Batches:
    """Scores in batches of shape (n,) that are read once, for example from a loader.

    `if_empty` is the requirement in the error message if there is no record, and their number would be public.
    """

    scores: Iterable[NDArray[Any]]
    if_empty: str
    n = None
    reading_is_visible = False

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The counts of all batches."""
        ((row, score),) = request.rows.items()
        counts = ScoreHistogram.empty(candidates)
        for scores in self.scores:
            counts += ScoreHistogram.from_scores(scores, candidates, score)
        if request.public_n and not counts.total:
            raise InputError("loader", self.if_empty, got="none")
        return {row: counts}


@dataclass(frozen=True)
class Scores:
    """Scores in memory, shape (n,), by key: one row per side, or one row with the key None."""

    values: Mapping[Key, NDArray[Any]]
    reading_is_visible = False

    @property
    def n(self) -> int:
        """The number of records."""
        return len(next(iter(self.values.values())))

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The counts of each row."""
        return {
            row: ScoreHistogram.from_scores(self.values[row], candidates, score) for row, score in request.rows.items()
        }


@dataclass(frozen=True)
class GroupedScores:
    """Scores in memory, shape (n,), with the group or class of each record.

    `positions` states their positions among the rows of the request if these are known: -1 for no row, shape (n,).
    """

    scores: NDArray[Any]
    groups: Groups
    positions: NDArray[np.int64] | None = None
    reading_is_visible = False

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.scores)

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The counts of each group or class."""
        positions = self._positions(request)
        score = next(iter(request.rows.values()))  # that of all groups
        check_scores(self.scores, score)  # here, because an error states the position among all records
        return {
            row: ScoreHistogram.from_scores(self.scores[(positions == place).any(axis=1)], candidates, score)
            for place, row in enumerate(request.rows)
        }

    def _positions(self, request: Request) -> NDArray[np.int64]:
        """The positions of each record's groups among the rows, -1 for none; shape (n, columns)."""
        if self.positions is not None:
            return self.positions[:, None]
        if request.overlap is not None:
            return request.overlap.places(self.groups, self.n)
        of_class = request.by == "class"  # a label that is no class belongs to no threshold
        groups: Any = self.groups  # a mapping raises an error
        return as_positions("groups", groups, tuple(request.rows), self.n, unknown=of_class)[:, None]


@dataclass(frozen=True)
class WeightedScores:
    """Scores in memory, shape (n,), with the weight of each record, or with its label if classes have weights."""

    scores: NDArray[Any]
    weights: ArrayLike | None = None
    labels: ArrayLike | None = None
    reading_is_visible = False

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.scores)

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The weight of all records in each bin, and their number."""
        ((row, score),) = request.rows.items()
        assert request.population is not None
        check_scores(self.scores, score)
        return {row: ScoreHistogram.from_weights(self.scores, self._steps(request.population), candidates)}

    def _steps(self, population: Population) -> NDArray[np.int64]:
        """The weight of each record, in whole steps."""
        if isinstance(population, ClassShift):
            assert self.labels is not None
            places = as_positions("labels", self.labels, population.classes, self.n)
            return np.array(population.steps)[places]
        assert self.weights is not None
        weights = as_vector("weights", self.weights, empty=True)
        if len(weights) != self.n:
            raise InputError("weights", f"must have shape ({self.n},), one per record", got=f"shape {weights.shape}")
        return population.whole(weights)


def source_of(
    values: Mapping[Key, NDArray[Any]],
    *,
    groups: Groups | None = None,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Source:
    """The source of scores by row, and of the data of each record that belong to the request, if there are any."""
    if groups is not None:
        return GroupedScores(values[None], groups)
    if weights is not None or labels is not None:
        return WeightedScores(values[None], weights, labels)
    return Scores(values)
