"""Whether coverage on labelled records violates the promise of a release, beyond an unlucky calibration."""

import warnings
from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Release, Threshold
from confide.errors import CoverageWarning, InputError
from confide.guarantee import binomial_at_least
from confide.sets.coverage import CHANCE, CoverageEstimate, count_limit, share_covered
from confide.sets.shortfall import Luck, Shortfall
from confide.support import Level, bisect, caller_stacklevel

TYPICAL = 1000
"""If the number of calibration records is secret, and no promise rests on a noisy one, this many are assumed for luck,
or `n_min` if that is larger."""

_OF_NUMBER = CHANCE / 10
"""The probability that the records are more than their noisy number allows for."""

_OF_LAW = 0.4 * CHANCE
"""The probability that a correct calibration covers less than the level that is tested."""

# The numbers of records that are tried, if the number is secret.
_GRID = 40


def covered_share(inside: NDArray[np.bool_], release: Release | None, confidence: Level) -> CoverageEstimate:
    """Coverage of a release's sets, with a warning if it falls short; nothing is known about other sets."""
    estimate = share_covered(inside, confidence)
    if release is not None and (short := count_shortfall(release, int(inside.sum()), len(inside))) is not None:
        warnings.warn(short.sentence, CoverageWarning, stacklevel=caller_stacklevel())
    return estimate


def count_shortfall(release: Release, hits: int, n: int) -> Shortfall | None:
    """The shortfall of a release on n records of which `hits` are covered; None if there is none."""
    return shortfall_at(release, hits / n, count_limit(hits, n), n)


def shortfall_at(release: Release, coverage: float, high: float, n: int | None) -> Shortfall | None:
    """The shortfall from an upper limit of coverage, which holds with probability 1 - CHANCE/2.

    A marginal guarantee allows that one calibration of a correct release covers less. The law of coverage over
    calibrations (`Threshold.coverage_failure`) bounds how often. A correct release is called broken with probability
    CHANCE at most: either `high` is below its coverage, or its coverage is below a level that calibrations reach with
    probability 1 - CHANCE/2. This holds for records like the calibration records, independent of them and of each
    other. If their number is secret, the law is that of the most that a noisy number of records allows (with a fifth of
    that probability for its noise); without a noisy number it holds for the numbers that the shortfall states.
    """
    promised = release.promised
    if high >= promised or release.by == "level":  # each of several levels is tested separately
        return None
    first = release.first.guarantee
    parts = release.by if release.disjoint else None

    def because_of(luck: Luck, from_records: int | None = None) -> Shortfall:
        statement = (promised, luck, from_records, first.delta, release.bounded, parts, first.population)
        return Shortfall(coverage, high, n, *statement)

    # Without a law: as without privacy, the least effect of luck.
    if not has_law(release):
        records = first.n or TYPICAL
        rank = np.array([min(ceil((records + 1) * promised), records)])
        lucky = binomial_at_least(rank, records, high)[0] > CHANCE / 2
        return None if lucky or promised == 0 else because_of("unknown")

    # By the law, of a public or noisy number of records, or of all numbers that a secret one may be.
    secret = [threshold for threshold in release.parts.values() if _has_secret_number(threshold)]
    if not secret:
        least = None
        excluded = _failure_bound(release, None)(high) <= _OF_LAW
    else:
        n_min = max(threshold.guarantee.n_min or 1 for threshold in secret)
        typical = TYPICAL if parts is None else -(-TYPICAL // len(secret))
        least = _from_records(release, high, n_min, max(n_min, typical))
        excluded = least is not None
        least = None if least == n_min else least  # with fewer than n_min records there is no guarantee
    if excluded:
        return because_of("excluded", least)
    return None if first.delta is None else because_of("rare")


def has_law(release: Release) -> bool:
    """Whether the law of coverage over calibrations is known, so that a guarantee can be tested."""
    parts = list(release.parts.values())
    if any(threshold.coverage == 0 or threshold.guarantee.silos == "by size" for threshold in parts):
        return False  # there is no guarantee, or the law holds for identically distributed silos
    try:
        _failure_bound(release, TYPICAL)
    except InputError:
        return False
    return True


def _has_secret_number(threshold: Threshold) -> bool:
    return threshold.mechanism is not None and threshold.n is None and not threshold.guarantee.sized


def _records(threshold: Threshold, secret: int | None, parts: int) -> int | None:
    """The number of records for the law of coverage: public, the most by the noisy number, or `secret`."""
    if threshold.size is not None and threshold.guarantee.sized:
        return threshold.size.most(_OF_NUMBER / parts)
    return secret if _has_secret_number(threshold) else None


def _from_records(release: Release, high: float, few: int, many: int) -> int | None:
    """The number from which on luck does not explain such a coverage; None if luck of `many` records explains it."""
    # The smallest of a grid from which on all exclude luck, and then the number itself by bisection.

    def excluded(n: int) -> bool:
        return _failure_bound(release, n)(high) <= _OF_LAW

    tried: list[int] = np.unique(np.geomspace(few, many, _GRID).astype(np.int64)).tolist()
    passed = list(takewhile(excluded, reversed(tried)))
    if not passed:
        return None
    below, least = max((n for n in tried if n < passed[-1]), default=few - 1), passed[-1]
    return bisect(excluded, below, least)


def _failure_bound(release: Release, n: int | None) -> Callable[[float], float]:
    """Level c -> a bound on the probability that coverage of the release is below c, with n records if n is secret.

    The coverage over all groups is below c only if that of one group is. The two ends of an interval divide the
    miscoverage as they divide alpha.
    """
    # Parts with equal inputs have the same law, which is computed once.
    parts = list(release.parts.values())
    sides = release.by == "side"
    shares = [float(threshold.alpha / release.levels[0]) if sides else 1.0 for threshold in parts]
    multiplicity = Counter((_law_inputs(threshold), share) for threshold, share in zip(parts, shares, strict=True))
    first_of = {_law_inputs(threshold): threshold for threshold in parts}
    laws = [
        (count, share, first_of[key].coverage_failure(_records(first_of[key], n, len(parts))))
        for (key, share), count in multiplicity.items()
    ]
    return lambda level: sum(count * law(1 - share * (1 - level)) for count, share, law in laws)


def _law_inputs(threshold: Threshold) -> Any:
    """The inputs of the law of coverage."""
    if threshold.mechanism is None:
        return threshold
    return threshold.mechanism, threshold.candidates, threshold.guarantee, threshold.size
