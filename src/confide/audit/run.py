"""The checks together.

Every random check gets an equal share of one level, so that an audit of honest mechanisms fails by chance with at most
that probability (Bonferroni). Enumerations are exact and never fail by chance.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TypeAlias

import numpy as np

from confide.audit.attack import check_attack, check_search
from confide.audit.builtin import library_subjects
from confide.audit.coverage import NASTY, check_coverage, check_exact_coverage
from confide.audit.effort import BRIEF, SECONDS, Effort, effort_within
from confide.audit.exact_loss import Laws, check_exact_loss, check_noise_loss, telling_pair, worst_pair
from confide.audit.finding import Finding, Report
from confide.audit.fit import check_magnitudes, check_sampler, magnitude_runs
from confide.audit.fresh import check_fresh
from confide.audit.runs import Advance, Runs
from confide.audit.subject import Subject
from confide.errors import InputError

LEVEL = 1e-4

Exact: TypeAlias = Callable[[], Finding]
Random: TypeAlias = Callable[[float], Finding]
"""A check that fails by chance with at most the probability that it is given."""


def audit(
    subjects: Iterable[Subject],
    effort: Effort | None = None,
    *,
    seconds: float = SECONDS,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
    tell: Callable[[str], None] | None = None,
    watch: Callable[[int], Advance] | None = None,
) -> Report:
    """Check every claim of the subjects.

    Parameters
    ----------
    subjects
        What is audited.
    effort
        How often mechanisms are run; by default as often as fits into `seconds`.
    seconds
        About how long each subject is audited, if there is no `effort`.
    level
        Bound on the probability that honest mechanisms fail, in (0, 1); 1e-4 by default.
    rng
        Makes the data of the simulations (not the mechanisms' noise); fresh by default.
    tell
        Called with the name of each subject before it is audited.
    watch
        Called once with about the number of runs to come; what it returns is told of runs that were made, of as many
        in all as were announced.

    Examples
    --------
    >>> from confide.audit.foreign import foreign_subject
    >>> leaky = foreign_subject(lambda scores: float(scores.max()), "maximum", epsilon=1.0, alpha=0.5)
    >>> report = audit([leaky], Effort(sampler=0, attack=400, coverage=100))
    >>> report.passed, {finding.check for finding in report.findings if not finding.passed}
    (False, {'search'})
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; found {level!r}")
    work = [(subject, effort or effort_within(subject, seconds)) for subject in subjects]
    advance = _unwatched if watch is None else watch(sum(chosen.runs(subject) for subject, chosen in work))
    rng = np.random.default_rng() if rng is None else rng
    checks = []
    for subject, chosen in work:
        runs = Runs(chosen.runs(subject), advance)
        checks.append((subject.name, *_checks(_counted(subject, runs), chosen, rng), runs.end))
    share = level / max(1, sum(len(random) for _, _, random, _ in checks))
    findings: list[Finding] = []
    for name, exact, random, end in checks:
        if tell is not None:
            tell(name)
        findings += [check() for check in exact]
        findings += [check(share) for check in random]
        end()
    versions = {name: version(name) for name in ("confide", "opendp", "numpy", "scipy")}
    return Report(tuple(findings), level, versions)


def audit_library(
    effort: Effort = BRIEF,
    *,
    level: float = LEVEL,
    tell: Callable[[str], None] | None = None,
    watch: Callable[[int], Advance] | None = None,
) -> Report:
    """Check every claim of the library's own mechanisms, and OpenDP's sampler across magnitudes."""
    advance: list[Advance] = []

    def watch_all(runs: int) -> Advance:
        advance.append(_unwatched if watch is None else watch(runs + magnitude_runs(effort.sampler)))
        return advance[0]

    report = audit(library_subjects(), effort, level=level / 2, tell=tell, watch=watch_all)
    if tell is not None:
        tell("OpenDP's sampler")
    findings = (*report.findings, *check_magnitudes(effort.sampler, level / 6))
    advance[0](magnitude_runs(effort.sampler))
    return Report(findings, level, report.versions)


def _checks(subject: Subject, effort: Effort, rng: np.random.Generator) -> tuple[list[Exact], list[Random]]:
    """Checks that are exact, and checks that may fail by chance."""
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
        random += [partial(check_coverage, subject, name, effort.coverage, rng) for name in NASTY]
    return exact, random


def _with_law(subject: Subject, laws: Laws, effort: Effort, exact: list[Exact], random: list[Random]) -> None:
    if subject.claims.epsilon is not None:
        exact.append(lambda: check_exact_loss(subject, worst_pair(laws)))
        if effort.attack:
            random.append(lambda level: check_attack(subject, telling_pair(laws, effort.attack), effort.attack, level))
    if subject.small_coverage is not None:
        exact.append(partial(check_exact_coverage, subject))
    if effort.sampler:
        random.append(partial(check_sampler, subject, effort.sampler))


def _counted(subject: Subject, runs: Runs) -> Subject:
    """The subject, with runs that are counted."""
    large = None if subject.large is None else runs.counted(subject.large)
    return replace(subject, draw=runs.counted(subject.draw), large=large)


def _unwatched(runs: int) -> None:
    """Nobody watches."""
