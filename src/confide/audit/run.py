"""All checks together, with the number of runs of each check, and progress.

Every random check gets an equal share of one level, so an audit of honest mechanisms fails by chance with at most that
probability (Bonferroni). Enumerations are exact and do not fail by chance.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import TypeAlias

import numpy as np

from confide.audit.coverage import DIFFICULT_LAWS, check_coverage
from confide.audit.exact import (
    Laws,
    check_exact_coverage,
    check_exact_loss,
    check_noise_loss,
    most_revealing_pair,
    worst_pair,
)
from confide.audit.library import library_subjects
from confide.audit.sampler import check_fresh, check_magnitudes, check_sampler, magnitude_runs
from confide.audit.search import check_attack, check_search
from confide.audit.subject import Draw, Finding, Report, Scores, Subject, two_ends
from confide.errors import InputError

SECONDS = 120.0
"""Default duration of an audit of one mechanism from outside, in seconds."""

_TRIAL = 0.2

_LEAST_SEARCH = {"replace_one": 6_500, "add_remove": 20_000}
"""Approximate minimum number of runs of a search, because every data set is run a few times."""


@dataclass(frozen=True)
class Effort:
    """Number of runs of each check; 0 leaves a check out.

    Parameters
    ----------
    sampler
        Runs per data set, for the chi-square test.
    attack
        Runs per neighbour. The search for neighbours needs three to four times as many, and some thousands at least.
    coverage
        Calibrations per distribution and number of records.
    fresh
        Consecutive calls that are tested for independence.
    """

    sampler: int
    attack: int
    coverage: int
    fresh: int = 0

    def runs(self, subject: Subject) -> int:
        """Approximate total number of runs of the subject."""
        claims, law = subject.claims, subject.law is not None
        search = max(3 * self.attack, _LEAST_SEARCH[claims.neighbors]) + 2 * self.attack
        private = 2 * self.attack * law + search * subject.searched + self.fresh
        covering = len(DIFFICULT_LAWS) * len(subject.coverage_sizes) * self.coverage * (claims.coverage is not None)
        return 3 * self.sampler * law + private * (claims.epsilon is not None) + covering


BRIEF = Effort(sampler=2000, attack=8000, coverage=500, fresh=2000)
LONG = Effort(sampler=20_000, attack=80_000, coverage=5000, fresh=20_000)
LEAST = Effort(sampler=1000, attack=2000, coverage=200, fresh=1000)
MOST = Effort(sampler=30_000, attack=1_000_000, coverage=20_000, fresh=40_000)


def effort_within(subject: Subject, seconds: float) -> Effort:
    """Effort that fits into a number of seconds, by a short trial; at least `LEAST` and at most `MOST`."""
    few = many = 0.0
    if subject.claims.epsilon is not None:
        few = _speed(subject.draw, two_ends(subject.atoms, subject.records, subject.records // 2))
    if subject.claims.coverage is not None:
        many = _speed(subject.large or subject.draw, np.linspace(0.0, 1.0, max(subject.coverage_sizes)))
    return effort_at(few, many, seconds, len(subject.coverage_sizes))


def effort_at(few: float, many: float, seconds: float, sizes: int) -> Effort:
    """Effort from runs per second with few and with many records; 0 runs per second means no such claim.

    Examples
    --------
    >>> effort_at(1000.0, 500.0, 120.0, 3)
    Effort(sampler=1800, attack=12000, coverage=1666, fresh=3000)
    """
    seconds /= max(1, (few > 0) + (many > 0))
    runs, calibrations = few * seconds, many * seconds / (len(DIFFICULT_LAWS) * sizes)
    wanted = (0.03 * runs, 0.2 * runs, calibrations, 0.05 * runs)
    return Effort(
        *(int(min(max(*two), most)) for *two, most in zip(wanted, astuple(LEAST), astuple(MOST), strict=True))
    )


def _speed(draw: Draw, scores: Scores) -> float:
    """Runs per second."""
    draw(scores.copy())  # the first call may load something
    runs, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < _TRIAL or not runs:
        draw(scores.copy())
        runs += 1
    return runs / passed


Advance: TypeAlias = Callable[[int], object]
"""Callback with the number of runs since the last call; 0 if there are more runs than announced."""

_STEP = 64


class Runs:
    """Count the runs of one subject, in total about as many as were announced.

    Examples
    --------
    >>> counts = []
    >>> runs = Runs(announced=100, advance=counts.append)
    >>> draw = runs.counted(lambda scores: 1.0)
    >>> thresholds = [draw(None) for _ in range(70)]
    >>> runs.end()
    >>> counts
    [64, 36]
    """

    def __init__(self, announced: int, advance: Advance) -> None:
        self._left, self._untold, self._advance = announced, 0, advance

    def counted(self, draw: Draw) -> Draw:
        """Return the same mechanism, with counted runs."""

        def run(scores: Scores) -> float:
            self._untold += 1
            if self._untold == _STEP:
                self._untold = 0
                self._tell(min(_STEP, self._left))
            return draw(scores)

        return run

    def end(self) -> None:
        """Report the rest of the announced runs."""
        self._tell(self._left)

    def _tell(self, runs: int) -> None:
        self._left -= runs
        self._advance(runs)


LEVEL = 1e-4

Exact: TypeAlias = Callable[[], Finding]
Random: TypeAlias = Callable[[float], Finding]
"""A check that fails by chance with at most the given probability."""


def audit(
    subjects: Iterable[Subject],
    effort: Effort | None = None,
    *,
    seconds: float = SECONDS,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
    on_subject: Callable[[str], None] | None = None,
    on_start: Callable[[int], Advance] | None = None,
) -> Report:
    """Check all claims of the subjects.

    Parameters
    ----------
    subjects
        Mechanisms to audit.
    effort
        Number of runs; by default as many as fit into `seconds`.
    seconds
        Approximate duration for each subject, if there is no `effort`.
    level
        Bound on the probability that honest mechanisms fail, in (0, 1); 1e-4 by default.
    rng
        Generator for the data of the simulations, not for the mechanisms' noise; fresh by default.
    on_subject
        Callback with the name of each subject before its audit.
    on_start
        Callback with the approximate number of runs, called once. Its result is called with numbers of finished runs,
        which add up to the announced number.

    Examples
    --------
    >>> from confide.audit.subject import foreign_subject
    >>> leaky = foreign_subject(lambda scores: float(scores.max()), "maximum", epsilon=1.0, alpha=0.5)
    >>> report = audit([leaky], Effort(sampler=0, attack=400, coverage=100))
    >>> report.passed, {finding.check for finding in report.findings if not finding.passed}
    (False, {'search'})
    """
    if not 0 < level < 1:
        raise InputError("level", "must lie between 0 and 1", got=repr(level))
    work = [(subject, effort or effort_within(subject, seconds)) for subject in subjects]
    advance = _unwatched if on_start is None else on_start(sum(chosen.runs(subject) for subject, chosen in work))
    rng = np.random.default_rng() if rng is None else rng
    checks = []
    for subject, chosen in work:
        runs = Runs(chosen.runs(subject), advance)
        checks.append((subject.name, *_checks(_counted(subject, runs), chosen, rng), runs.end))
    share = level / max(1, sum(len(random) for _, _, random, _ in checks))
    findings: list[Finding] = []
    for name, exact, random, end in checks:
        if on_subject is not None:
            on_subject(name)
        findings += [check() for check in exact]
        findings += [check(share) for check in random]
        end()
    versions = {name: version(name) for name in ("confide", "opendp", "numpy", "scipy")}
    return Report(tuple(findings), level, versions)


def audit_library(
    effort: Effort = BRIEF,
    *,
    level: float = LEVEL,
    on_subject: Callable[[str], None] | None = None,
    on_start: Callable[[int], Advance] | None = None,
) -> Report:
    """Check all claims of the library's own mechanisms, and OpenDP's sampler across magnitudes."""
    advance: list[Advance] = []

    def watch_all(runs: int) -> Advance:
        advance.append(_unwatched if on_start is None else on_start(runs + magnitude_runs(effort.sampler)))
        return advance[0]

    report = audit(library_subjects(), effort, level=level / 2, on_subject=on_subject, on_start=watch_all)
    if on_subject is not None:
        on_subject("OpenDP's sampler")
    findings = (*report.findings, *check_magnitudes(effort.sampler, level / 6))
    advance[0](magnitude_runs(effort.sampler))
    return Report(findings, level, report.versions)


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


def _counted(subject: Subject, runs: Runs) -> Subject:
    """Subject with counted runs."""
    large = None if subject.large is None else runs.counted(subject.large)
    return replace(subject, draw=runs.counted(subject.draw), large=large)


def _unwatched(runs: int) -> None:
    """No-op progress callback."""
