"""The subject of an audit: a mechanism that runs on scores, with its claims, and the findings of the checks.

Scores are in [0, 1], and larger means less conforming. With an exact law of the threshold, the loss is computed by
enumeration; without one, it is bounded from below by attacks.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms import Neighbors

Scores: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[Scores], float]
"""Function that runs the mechanism once: scores of shape (n,) to a threshold, possibly +inf."""

Law: TypeAlias = Callable[[Scores], Mapping[float, float]]
"""Function that returns the exact law of the threshold: each possible value with its probability."""

Data: TypeAlias = tuple[int, ...]
"""A small data set: number of records with each of the subject's atoms as their score."""

COVERAGE_SIZES = (50, 499, 500)
"""Few records, for which one rank matters most, and many, even and odd."""


@dataclass(frozen=True)
class Claims:
    """Claims of a mechanism: the privacy loss of one record and marginal coverage; None without such a claim."""

    epsilon: float | None
    neighbors: Neighbors
    coverage: float | None


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit."""

    name: str
    claims: Claims
    draw: Draw
    law: Law | None
    atoms: tuple[float, ...]
    """Score values of small data sets, increasing."""
    records: int
    """Number of records in small data sets; under `add_remove`, the largest number."""
    small_coverage: float | None = None
    """Claimed coverage for small data sets."""
    noise_scale: float | None = None
    """Scale of Laplace noise on counts over the atoms, if the threshold depends on private data through them alone."""
    large: Draw | None = None
    """A larger instance for coverage by simulation."""
    coverage_sizes: tuple[int, ...] = COVERAGE_SIZES
    any_size: bool = True
    """Whether `draw` may be attacked with other numbers of records than `records`."""

    @property
    def searched(self) -> bool:
        """Whether to search for neighbours: yes, unless enumeration includes all of them."""
        return self.law is None or self.any_size

    def scores(self, data: Data) -> Scores:
        """Scores of a small data set."""
        return np.repeat(np.array(self.atoms, dtype=np.float64), data)

    def datasets(self, n: int) -> Iterator[Data]:
        """All data sets of n records."""
        for cuts in itertools.combinations_with_replacement(range(n + 1), len(self.atoms) - 1):
            yield tuple(np.diff([0, *cuts, n]).tolist())

    def pairs(self) -> Iterator[tuple[Data, Data]]:
        """All pairs of neighbouring data sets of up to `records` records, each pair once."""
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


def two_ends(atoms: tuple[float, ...], n: int, high: int) -> Scores:
    """Scores of n records, `high` of them at the highest atom and the others at the lowest."""
    return np.repeat(np.array([atoms[0], atoms[-1]]), (n - high, high))


ATOMS = (0.05, 0.35, 0.65, 0.95)


def foreign_subject(
    mechanism: Any,
    name: str = "broken",
    *,
    epsilon: float | None = None,
    alpha: float | None = None,
    neighbors: Neighbors | None = None,
    records: int = 8,
    least_records: int = 0,
) -> Subject:
    """A subject from a callable, whose attributes are the claims that are not given, and its law."""
    epsilon = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    alpha = getattr(mechanism, "alpha", None) if alpha is None else alpha
    relation = neighbors or getattr(mechanism, "neighbors", "replace_one")
    claims = Claims(epsilon, relation, None if alpha is None else 1 - alpha)
    sizes = tuple(n for n in COVERAGE_SIZES if n >= least_records) or (least_records,)
    law = getattr(mechanism, "law", None)
    return Subject(name, claims, lambda scores: float(mechanism(scores)), law, ATOMS, records, coverage_sizes=sizes)


@dataclass(frozen=True)
class Finding:
    """The result of one check: the claimed number, the number that was found, and whether they agree."""

    subject: str
    check: str
    claim: float
    found: float
    passed: bool
    detail: str


@dataclass(frozen=True)
class Report:
    """All findings of an audit; its text has those that failed, one a line."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self.findings if not finding.passed)
