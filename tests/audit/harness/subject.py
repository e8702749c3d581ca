"""The subject of an audit: a mechanism that runs on scores, with its claims, and the findings of the checks.

A mechanism from outside is a callable that takes scores, a float64 array of shape (n,) with values in [0, 1] where
larger means less conforming. It runs the mechanism once and returns a threshold (a float, possibly +inf). Its claims
are arguments of `foreign_subject`, or attributes of the callable with the same names. It may have an attribute `law`: a
function of the same scores that returns the exact law of the threshold as a dictionary from thresholds to
probabilities. With a law, the loss is computed by enumeration.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import Level, exact_level, one_of, privacy_loss

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
    """Claims of a mechanism.

    Parameters
    ----------
    epsilon
        Pure differential-privacy loss of one record, or None without such a claim.
    neighbors
        Adjacency of the claim.
    coverage
        Marginal coverage P(score <= threshold) for exchangeable scores, or None without such a claim.
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
        Name in the report.
    claims
        Claims to check.
    draw
        Function that runs the mechanism once.
    law
        Exact law, or None if the mechanism can only be run.
    atoms
        Score values of small data sets, increasing.
    records
        Number of records in small data sets (under `add_remove`, the largest number).
    small_coverage
        Claimed coverage for small data sets of up to `records` records (exactly `records` if their number is public),
        or None.
    noise_scale
        Scale of Laplace noise on counts over the atoms, if the threshold depends on private data only through these
        noisy counts. Their loss is then computed exactly. Else None.
    large
        A larger instance for coverage by simulation; None to use `draw`.
    coverage_sizes
        Numbers of records for coverage by simulation.
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
    name: str,
    *,
    epsilon: float | None = None,
    alpha: Level | None = None,
    neighbors: Neighbors | None = None,
    records: int = 8,
    least_records: int | None = None,
) -> Subject:
    """Make a subject from a callable; claims that are not given are taken from its attributes.

    Parameters
    ----------
    mechanism
        Function from scores to a threshold, as described in this module.
    name
        Name in the report.
    epsilon, alpha
        Claimed privacy loss and claimed miscoverage level; at least one of them.
    neighbors
        Adjacency of the loss; `"replace_one"` by default.
    records
        Size of the small data sets for enumeration and attack.
    least_records
        Smallest number of records for which coverage is claimed; 50 by default.

    Raises
    ------
    InputError
        If there is no claim.

    Examples
    --------
    >>> foreign_subject(lambda scores: 1.0, "constant", epsilon=0.1, alpha=0.1).claims
    Claims(epsilon=0.1, neighbors='replace_one', coverage=0.9)
    """
    epsilon = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    alpha = getattr(mechanism, "alpha", None) if alpha is None else alpha
    if epsilon is None and alpha is None:
        raise InputError(
            "epsilon", "must be claimed unless alpha is, as an argument or as an attribute of the mechanism"
        )
    relation = neighbors or getattr(mechanism, "neighbors", "replace_one")
    claims = Claims(
        None if epsilon is None else privacy_loss("epsilon", epsilon),
        one_of("neighbors", relation, NEIGHBORS),
        None if alpha is None else float(1 - exact_level("alpha", alpha)),
    )

    def draw(scores: Scores) -> float:
        threshold = float(mechanism(scores))
        if math.isnan(threshold):
            raise InputError("mechanism", f"must return a threshold; {name!r} does not", got="NaN")
        return threshold

    def checked_law(scores: Scores) -> Mapping[float, float]:
        law = {float(t): float(p) for t, p in mechanism.law(scores).items()}
        if any(p < 0 for p in law.values()) or abs(sum(law.values()) - 1) > 1e-6:
            raise InputError(
                "law", f"must consist of probabilities that add up to 1; that of mechanism {name!r} does not"
            )
        return law

    least = getattr(mechanism, "least_records", 0) if least_records is None else least_records
    sizes = tuple(n for n in COVERAGE_SIZES if n >= least) or (least,)
    law = checked_law if hasattr(mechanism, "law") else None
    return Subject(name, claims, draw, law, ATOMS, records, coverage_sizes=sizes)


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Parameters
    ----------
    subject
        Name of the subject.
    check
        `"exact loss"`, `"sampler"`, `"attack"`, `"search"`, `"fresh noise"`, `"exact coverage"` or `"coverage"`.
    claim
        Claimed number.
    found
        Number that the check found, to be compared with the claim.
    passed
        Whether the check found nothing against the claim.
    detail
        One line that describes the check.
    """

    subject: str
    check: str
    claim: float
    found: float
    passed: bool
    detail: str


@dataclass(frozen=True)
class Report:
    """All findings of an audit.

    Examples
    --------
    >>> report = Report((Finding("mine", "exact loss", 1.0, 1.5, False, "n=6"),))
    >>> report.passed
    False
    >>> print(report)
    Finding(subject='mine', check='exact loss', claim=1.0, found=1.5, passed=False, detail='n=6')
    """

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(finding.passed for finding in self.findings)

    def __str__(self) -> str:
        """The checks that failed, one a line."""
        return "\n".join(str(finding) for finding in self.findings if not finding.passed)
