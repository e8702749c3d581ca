"""How often mechanisms are run: a fixed number of times, or as often as fits into some seconds."""

import time
from dataclasses import astuple, dataclass

import numpy as np

from confide.audit.coverage import NASTY
from confide.audit.neighbors import two_ends
from confide.audit.subject import Draw, Scores, Subject

SECONDS = 120.0
"""How long somebody else's mechanism is audited, unless more is asked for."""

_TRIAL = 0.2

_LEAST_SEARCH = {"replace_one": 6_500, "add_remove": 20_000}
"""About how many runs a search takes at least: every data set is run a few times."""


@dataclass(frozen=True)
class Effort:
    """How often mechanisms are run; 0 leaves a check out.

    Parameters
    ----------
    sampler
        Runs per data set, for the chi-square test.
    attack
        Runs per neighbour. The search for neighbours takes three to four times as many, and some thousands at least.
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
        """About how often the subject will be run in all."""
        claims, law = subject.claims, subject.law is not None
        search = max(3 * self.attack, _LEAST_SEARCH[claims.neighbors]) + 2 * self.attack
        private = 2 * self.attack * law + search * subject.searched + self.fresh
        covering = len(NASTY) * len(subject.coverage_sizes) * self.coverage * (claims.coverage is not None)
        return 3 * self.sampler * law + private * (claims.epsilon is not None) + covering


BRIEF = Effort(sampler=2000, attack=8000, coverage=500, fresh=2000)
LONG = Effort(sampler=20_000, attack=80_000, coverage=5000, fresh=20_000)
LEAST = Effort(sampler=1000, attack=2000, coverage=200, fresh=1000)
MOST = Effort(sampler=30_000, attack=1_000_000, coverage=20_000, fresh=40_000)


def effort_within(subject: Subject, seconds: float) -> Effort:
    """As many runs as fit into so many seconds, judged by a short trial; at least `LEAST` and at most `MOST`."""
    few = many = 0.0
    if subject.claims.epsilon is not None:
        few = _speed(subject.draw, two_ends(subject.atoms, subject.records, subject.records // 2))
    if subject.claims.coverage is not None:
        many = _speed(subject.large or subject.draw, np.linspace(0.0, 1.0, max(subject.coverage_sizes)))
    return effort_at(few, many, seconds, len(subject.coverage_sizes))


def effort_at(few: float, many: float, seconds: float, sizes: int) -> Effort:
    """The effort for mechanisms that do so many runs a second with few records, and with many; 0 where no claim is.

    Examples
    --------
    >>> effort_at(1000.0, 500.0, 120.0, 3)
    Effort(sampler=1800, attack=12000, coverage=1666, fresh=3000)
    """
    seconds /= max(1, (few > 0) + (many > 0))
    runs, calibrations = few * seconds, many * seconds / (len(NASTY) * sizes)
    wanted = (0.03 * runs, 0.2 * runs, calibrations, 0.05 * runs)
    return Effort(
        *(int(min(max(*two), most)) for *two, most in zip(wanted, astuple(LEAST), astuple(MOST), strict=True))
    )


def _speed(draw: Draw, scores: Scores) -> float:
    """Runs per second."""
    draw(scores.copy())  # the first may load something
    runs, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < _TRIAL or not runs:
        draw(scores.copy())
        runs += 1
    return runs / passed
