"""The checks together.

Every random check gets an equal share of one level, so that an audit of honest mechanisms fails by chance with at most
that probability (Bonferroni). Enumerations are exact and never fail by chance.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from confide.audit.attack import check_attack
from confide.audit.builtin import library_subjects
from confide.audit.coverage import NASTY, check_coverage, check_exact_coverage
from confide.audit.exact_loss import Laws, Worst, check_exact_loss, check_noise_loss, telling_pair, worst_pair
from confide.audit.finding import Finding, Report
from confide.audit.fit import check_magnitudes, check_sampler
from confide.audit.subject import Subject
from confide.errors import InputError

LEVEL = 1e-4


@dataclass(frozen=True)
class Effort:
    """How often mechanisms are run: per data set (chi-square), per neighbour (attack), per distribution (coverage)."""

    sampler: int
    attack: int
    coverage: int


QUICK = Effort(sampler=2000, attack=20_000, coverage=1000)
BRIEF = Effort(sampler=1000, attack=3000, coverage=400)
LONG = Effort(sampler=30_000, attack=100_000, coverage=5000)


def audit(
    subjects: Iterable[Subject],
    effort: Effort = QUICK,
    *,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
    tell: Callable[[str], None] | None = None,
) -> Report:
    """Check every claim of the subjects.

    Parameters
    ----------
    subjects
        What is audited.
    effort
        `QUICK` or `LONG`, or numbers of one's own.
    level
        Bound on the probability that honest mechanisms fail, in (0, 1); 1e-4 by default.
    rng
        Makes the calibration data of the coverage simulation (not the mechanisms' noise); fresh by default.
    tell
        Called with the name of each subject before it is audited.

    Examples
    --------
    >>> from confide.audit.foreign import foreign_subject
    >>> leaky = foreign_subject(lambda scores: float(scores.max()), "maximum", epsilon=1.0, alpha=0.5)
    >>> report = audit([leaky], Effort(sampler=100, attack=400, coverage=100))
    >>> report.passed, {finding.check for finding in report.findings if not finding.passed}
    (False, {'attack'})
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; found {level!r}")
    chosen = list(subjects)
    share = level / max(1, sum(_random_checks(subject) for subject in chosen))
    rng = np.random.default_rng() if rng is None else rng
    findings: list[Finding] = []
    for subject in chosen:
        if tell is not None:
            tell(subject.name)
        findings += _audit_one(subject, effort, share, rng)
    versions = {name: version(name) for name in ("confide", "opendp", "numpy", "scipy")}
    return Report(tuple(findings), level, versions)


def audit_library(effort: Effort = BRIEF, *, level: float = LEVEL, tell: Callable[[str], None] | None = None) -> Report:
    """Check every claim of the library's own mechanisms, and OpenDP's sampler across magnitudes."""
    report = audit(library_subjects(), effort, level=level / 2, tell=tell)
    if tell is not None:
        tell("OpenDP's sampler")
    return Report((*report.findings, *check_magnitudes(effort.sampler, level / 6)), level, report.versions)


def _random_checks(subject: Subject) -> int:
    claims = subject.claims
    return (subject.law is not None) + (claims.epsilon is not None) + len(NASTY) * (claims.coverage is not None)


def _audit_one(subject: Subject, effort: Effort, share: float, rng: np.random.Generator) -> list[Finding]:
    findings: list[Finding] = []
    target: Worst | None = None
    if subject.claims.epsilon is not None and subject.law is not None:
        laws = Laws(subject, subject.law)
        findings.append(check_exact_loss(subject, worst_pair(laws)))
        target = telling_pair(laws, effort.attack)
    elif subject.claims.epsilon is not None and subject.noise_scale is not None:
        findings.append(check_noise_loss(subject))
    if subject.law is not None:
        findings.append(check_sampler(subject, effort.sampler, share))
    if subject.claims.epsilon is not None:
        findings.append(check_attack(subject, target, effort.attack, share))
    if subject.law is not None and subject.small_coverage is not None:
        findings.append(check_exact_coverage(subject))
    if subject.claims.coverage is not None:
        findings += [check_coverage(subject, name, effort.coverage, share, rng) for name in NASTY]
    return findings
