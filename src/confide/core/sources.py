"""Records, wherever they are stored, as the counts that a release uses: over public candidates, and nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, as_positions, as_vector, refuse_other_rows
from confide.candidates import Candidates
from confide.core.population import ClassShift, Population, RecordWeights
from confide.core.request import Request
from confide.core.statement import Key
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.support import canonical_name

Item = TypeVar("Item")


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

    `empty` is the requirement in the error message if there is no record and the number of records would be public.
    """

    scores: Iterable[NDArray[Any]]
    empty: str
    n = None
    reading_is_visible = False

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The counts of all batches."""
        ((row, score),) = request.rows.items()
        counts = ScoreHistogram.empty(candidates)
        for scores in self.scores:
            counts += ScoreHistogram.from_scores(scores, candidates, score)
        if request.public_n and not counts.total:
            raise InputError("loader", self.empty, got="none")
        return {row: counts}


def first_and_all(values: Iterable[Item]) -> tuple[Item | None, Iterator[Item]]:
    """Return the first of values that are read once (None if there is none), and an iterator over all of them."""
    rest = iter(values)
    for first in rest:
        return first, chain([first], rest)
    return None, rest


@dataclass(frozen=True)
class Scores:
    """Scores in memory, shape (n,), by key: one row per side, or one row with the key None; with groups or weights.

    `places` may replace `groups`: the position of each record's group among the rows of the request, -1 for no group,
    of shape (n,), or (n, columns) if groups overlap.
    """

    values: Mapping[Key, NDArray[Any]]
    groups: Groups | None = None
    labels: ArrayLike | None = None
    weights: ArrayLike | None = None
    places: NDArray[np.int64] | None = None
    reading_is_visible = False

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        groups: Groups | None = None,
        labels: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> "Scores":
        """Make a source of one score for each record, shape (n,), with further data of each record."""
        refuse_other_rows(scores=scores, groups=groups, labels=labels, weights=weights)
        return cls({None: as_vector("scores", scores, empty=True)}, groups, labels, weights)

    @property
    def n(self) -> int:
        """The number of records."""
        return len(next(iter(self.values.values())))

    def count(self, request: Request, candidates: Candidates) -> Mapping[Key, ScoreHistogram]:
        """The counts of each row; an error about a score reports its position among all records."""
        if request.disjoint:
            return self._count_groups(request, candidates)
        rows = {request.row(key): terms for key, terms in request.terms.items()}
        by_row: dict[Key, ScoreHistogram] = {}
        for row, terms in rows.items():
            array = self.values[row]
            counts = ScoreHistogram.from_scores(array, candidates, terms.score)
            if terms.population is not None:
                counts = ScoreHistogram.from_weights(array, self._steps(terms.population), candidates)
            by_row[row] = counts
        return by_row

    def _count_groups(self, request: Request, candidates: Candidates) -> dict[Key, ScoreHistogram]:
        # The positions of each record's groups among the rows, shape (n, columns).
        rows, array = request.rows, self.values[None]
        positions = self.places
        if positions is None and request.overlap is not None:
            positions = request.overlap.places(self.groups, len(array))  # type: ignore[arg-type]
        elif positions is None:
            of_class = request.by == "class"  # a label that is no class belongs to no threshold
            positions = as_positions("groups", self.groups, tuple(rows), len(array), unknown=of_class)  # type: ignore[arg-type]
        if positions.ndim == 1:
            positions = positions[:, None]

        # All scores first, because an error about one states its position among all records.
        score = next(iter(rows.values()))
        ScoreHistogram.from_scores(array, candidates, score)
        return {
            row: ScoreHistogram.from_scores(array[(positions == i).any(axis=1)], candidates, score)
            for i, row in enumerate(rows)
        }

    def _steps(self, population: Population) -> NDArray[Any]:
        if isinstance(population, RecordWeights):
            given = as_vector("weights", self.weights, empty=True)  # type: ignore[arg-type]
            if len(given) != self.n:
                raise InputError("weights", f"must have shape ({self.n},), one per record", got=f"shape {given.shape}")
            return population.whole(given)
        places = as_positions("labels", self.labels, population.classes, self.n)  # type: ignore[arg-type]
        return np.array(population.steps)[places]


def weighted_sum(counts: Mapping[Any, ScoreHistogram], population: ClassShift) -> ScoreHistogram:
    """Weighted counts of records, and their number, computed from the counts of each class."""
    named = {canonical_name(name): class_counts for name, class_counts in counts.items()}
    steps = dict(zip(map(canonical_name, population.classes), population.steps, strict=True))
    total = sum(class_counts.counts * steps[name] for name, class_counts in named.items())
    records = sum(class_counts.total for class_counts in named.values())
    return ScoreHistogram(next(iter(named.values())).candidates, np.asarray(total), records)
