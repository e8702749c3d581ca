"""What is audited: a mechanism that can be run on scores, its claims, and its exact law if that is known."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms import Neighbors

Scores: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[Scores], float]
"""Runs the mechanism once: scores of shape (n,) to a threshold, possibly +inf."""

Law: TypeAlias = Callable[[Scores], Mapping[float, float]]
"""The exact law of the threshold: each value it can take, with its probability."""

Data: TypeAlias = tuple[int, ...]
"""A small data set: how many records have each of the subject's atoms as their score."""

COVERAGE_SIZES = (50, 499, 500)
"""Few records, where a rank more or less weighs most, and many, even and odd."""


@dataclass(frozen=True)
class Claims:
    """What a mechanism claims.

    Parameters
    ----------
    epsilon
        Pure differential-privacy loss of one record, or None if none is claimed.
    neighbors
        The relation it is claimed for.
    coverage
        Marginal coverage P(score <= threshold) for exchangeable scores, or None if none is claimed.
    """

    epsilon: float | None
    neighbors: Neighbors
    coverage: float | None


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit.

    Parameters
    ----------
    name
        Shown in the report.
    claims
        What is checked.
    draw
        Runs it once.
    law
        Its exact law, or None if it can only be run.
    atoms
        Score values that small data sets are made of, increasing.
    records
        The number of records in small data sets (under `add_remove`, the largest).
    small_coverage
        Coverage claimed for small data sets of up to `records` records (exactly `records` if their number is public),
        or None.
    noise_scale
        If the threshold is a function of counts over the atoms with Laplace noise of this scale, and of nothing else
        private, that scale: the loss of the noisy counts is then known exactly. Else None.
    large
        A larger instance for coverage by simulation; None to use `draw`.
    coverage_sizes
        The numbers of records for coverage by simulation.
    any_size
        Whether `draw` may be attacked with other numbers of records than `records`.
    """

    name: str
    claims: Claims
    draw: Draw
    law: Law | None
    atoms: tuple[float, ...]
    records: int
    small_coverage: float | None = None
    noise_scale: float | None = None
    large: Draw | None = None
    coverage_sizes: tuple[int, ...] = COVERAGE_SIZES
    any_size: bool = True

    @property
    def searched(self) -> bool:
        """Whether neighbours are to be searched: unless enumeration sees them all."""
        return self.law is None or self.any_size

    def scores(self, data: Data) -> Scores:
        """A small data set as scores."""
        return np.repeat(np.array(self.atoms, dtype=np.float64), data)

    def datasets(self, n: int) -> Iterator[Data]:
        """Every data set of n records."""
        for cuts in itertools.combinations_with_replacement(range(n + 1), len(self.atoms) - 1):
            yield tuple(np.diff([0, *cuts, n]).tolist())

    def pairs(self) -> Iterator[tuple[Data, Data]]:
        """Every pair of neighbouring data sets of up to `records` records, each pair once."""
        if self.claims.neighbors == "add_remove":
            for n in range(1, self.records):
                for data in self.datasets(n):
                    for atom in range(len(data)):
                        yield data, _changed(data, {atom: 1})
        else:
            for data in self.datasets(self.records):
                for a, b in itertools.combinations(range(len(data)), 2):
                    if data[a]:
                        yield data, _changed(data, {a: -1, b: 1})


def _changed(data: Data, changes: Mapping[int, int]) -> Data:
    return tuple(count + changes.get(i, 0) for i, count in enumerate(data))
