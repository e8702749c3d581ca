"""All checks together, with the number of runs of each check.

Every random check gets an equal share of one level, so an audit of honest mechanisms fails by chance with at most that
probability (Bonferroni). Enumerations are exact and do not fail by chance.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from tests.audit.harness.coverage import DIFFICULT_LAWS, check_coverage
from tests.audit.harness.exact import (
    Laws,
    check_exact_coverage,
    check_exact_loss,
    check_noise_loss,
    most_revealing_pair,
    worst_pair,
)
from tests.audit.harness.library import library_subjects
from tests.audit.harness.sampler import check_fresh, check_magnitudes, check_sampler
from tests.audit.harness.search import check_attack, check_search
from tests.audit.harness.subject import Finding, Report, Subject

LEVEL = 1e-4

Exact: TypeAlias = Callable[[], Finding]
Random: TypeAlias = Callable[[float], Finding]
"""A check that fails by chance with at most the given probability."""


@dataclass(frozen=True)
class Effort:
    """Number of runs of each check; 0 leaves a check out."""

    sampler: int
    """Runs per data set, for the chi-square test."""
    attack: int
    """Runs per neighbour; the search for neighbours needs three to four times as many, and some thousands at least."""
    coverage: int
    """Calibrations per distribution and number of records."""
    fresh: int = 0
    """Consecutive calls that are tested for independence."""


def audit(
    subjects: Iterable[Subject], effort: Effort, *, level: float = LEVEL, rng: np.random.Generator | None = None
) -> Report:
    """Check all claims of the subjects; `rng` draws the data of the simulations, not the noise of the mechanisms."""
    rng = np.random.default_rng() if rng is None else rng
    checks = [_checks(subject, effort, rng) for subject in subjects]
    share = level / max(1, sum(len(random) for _, random in checks))
    findings: list[Finding] = []
    for exact, random in checks:
        findings += [check() for check in exact]
        findings += [check(share) for check in random]
    return Report(tuple(findings))


def audit_library(effort: Effort, *, level: float = LEVEL) -> Report:
    """Check all claims of the library's own mechanisms, and OpenDP's sampler across magnitudes."""
    report = audit(library_subjects(), effort, level=level / 2)
    return Report((*report.findings, *check_magnitudes(effort.sampler, level / 6)))


def _checks(subject: Subject, effort: Effort, rng: np.random.Generator) -> tuple[list[Exact], list[Random]]:
    """Exact checks, and checks that may fail by chance."""
    exact: list[Exact] = []
    random: list[Random] = []
    if subject.law is not None:
        _with_law(subject, Laws(subject, subject.law), effort, exact, random)
    elif subject.noise_scale is not None:
        exact.append(partial(check_noise_loss, subject))
    if subject.claims.epsilon is not None:
        if effort.attack and subject.searched:
            random.append(partial(check_search, subject, effort.attack))
        if effort.fresh:
            random.append(partial(check_fresh, subject, effort.fresh, rng))
    if subject.claims.coverage is not None and effort.coverage:
        random += [partial(check_coverage, subject, name, effort.coverage, rng) for name in DIFFICULT_LAWS]
    return exact, random


def _with_law(subject: Subject, laws: Laws, effort: Effort, exact: list[Exact], random: list[Random]) -> None:
    if subject.claims.epsilon is not None:
        exact.append(lambda: check_exact_loss(subject, worst_pair(laws)))
        if effort.attack:
            random.append(
                lambda level: check_attack(subject, most_revealing_pair(laws, effort.attack), effort.attack, level)
            )
    if subject.small_coverage is not None:
        exact.append(partial(check_exact_coverage, subject))
    if effort.sampler:
        random.append(partial(check_sampler, subject, effort.sampler))
