"""`Shortfall`: coverage that lies below the promise of a release, and whether luck in calibrating explains it."""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import takewhile
from math import ceil
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.core import Release, Threshold
from confide.errors import CoverageWarning, InputError
from confide.guarantee import binomial_at_least, coverage_text
from confide.sets.coverage import CHANCE, CoverageEstimate, count_limit, share_covered
from confide.support import Level, bisect, caller_stacklevel

Luck: TypeAlias = Literal["excluded", "rare", "unknown", "not read"]
"""The role of luck in calibrating: it does not explain the shortfall; only an unlucky calibration does,
which a guarantee with probability 1 - delta allows; no law of coverage is known; the evaluation was read without its
release."""

_CAUSES = "Possible causes: other records than the calibration records, another model, or a wrong column."


@dataclass(frozen=True)
class Shortfall:
    """Coverage below the guarantee by more than chance explains."""

    # The share of n records, whose number may be secret, and its upper limit with probability 1 - CHANCE/2.
    coverage: float
    high: float
    n: int | None

    # What is guaranteed, and whether luck explains it; with a secret number of calibration records from which number on
    # it does not.
    promised: float
    luck: Luck
    from_records: int | None = None

    # Of the guarantee: its delta; name and largest value of a loss; what distinguishes thresholds; a known shift.
    delta: float | None = None
    loss: tuple[str, float] | None = None
    parts: str | None = None
    population: str | None = None

    @property
    def is_broken(self) -> bool:
        """Whether a correct release falls so short with probability CHANCE, or CHANCE + delta, at most."""
        return self.luck in ("excluded", "rare")

    @property
    def sentence(self) -> str:
        """The shortfall in words, whether an unlucky calibration explains it, and other possible causes.

        Examples
        --------
        >>> Shortfall(0.505, 0.52, 8780, 0.9, "excluded").sentence
        'Covered surely less than promised: 50.5 % of 8,780 records where 90 % is promised. Luck in ...'
        """
        # The coverage or the loss, with its promise; 1 - delta is computed from the decimal digits of delta.
        records = "the records" if self.n is None else f"{self.n:,} records"
        sure = "" if self.delta is None else f" with probability {float(1 - Fraction(str(self.delta))):.6g}"
        if self.loss is None:
            less = "Covered surely less than promised"
            share = f"{100 * self.coverage:.4g} %"
            promised = f"{100 * float(coverage_text(self.promised)):.6g} %"
            what = f"{less}: {share} of {records} where {promised} is promised{sure}."
        else:
            name, bound = self.loss
            loss = f"{bound * (1 - self.coverage):.4g}"
            most = f"{bound * (1 - self.promised):.6g}"
            lead = f"Loss {name!r} surely larger than promised"
            what = f"{lead}: {loss} on {records} where at most {most} is promised{sure}."
        return f"{what} {self._luck} {_CAUSES}"

    @property
    def _luck(self) -> str:
        match self.luck:
            case "excluded":
                limit = ""
                if self.from_records is not None:
                    each = f" in one {self.parts}" if self.parts else ""
                    limit = f", unless fewer than {self.from_records:,} records calibrated{each}"
                return f"Luck in calibrating does not explain this{limit}."
            case "rare":
                rare = f"{100 * (self.delta or 0):.6g} %"
                return f"Only an unlucky calibration, one of the {rare} that the promise excludes, would explain this."
            case "unknown":
                only = "" if self.population is None else f"The promise is {self.population}. "
                return f"{only}It is unknown how far an unlucky calibration may fall short of this promise."
        return "A report of the release with this evaluation states whether luck in calibrating explains this."

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        stated = {name: value for name, value in asdict(self).items() if value is not None}
        return {**stated, "broken": self.is_broken, "chance": CHANCE + (self.delta or 0), "sentence": self.sentence}


def sentence_of(name: str, shortfall: Shortfall) -> str:
    """A finding about one guarantee, with its name; "" for a release as a whole."""
    return f"{name}: {shortfall.sentence}" if name else shortfall.sentence


TYPICAL = 1000
"""If the number of calibration records is secret, and no promise rests on a noisy one, this many are assumed for luck,
or `n_min` if that is larger."""

# CHANCE is divided: one half is for the upper limit of coverage, a tenth for a noisy number, the rest for the law.

_CHANCE_OF_NUMBER = CHANCE / 10
"""The probability that the records are more than their noisy number allows for."""

_CHANCE_OF_LAW = 0.4 * CHANCE
"""The probability that a correct calibration covers less than the level that is tested."""

_TRIED_NUMBERS = 40
"""How many numbers of records are tried, if the number is secret."""


def compared_coverage(inside: NDArray[np.bool_], release: Release | None, confidence: Level) -> CoverageEstimate:
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
    other. If the number of calibration records is secret, the law is for the largest number that the noisy number of
    records allows (with a tenth of CHANCE for its noise). Without a noisy number it holds for the numbers that the
    shortfall states.
    """
    promised = release.promised
    guarantee = release.first.guarantee
    if high >= promised or release.by == "level":  # each of several levels is tested separately
        return None
    short = Shortfall(
        coverage,
        high,
        n,
        promised,
        luck="unknown",
        delta=guarantee.delta,
        loss=release.bounded,
        parts=release.by if release.disjoint else None,
        population=guarantee.population,
    )
    return _judged_by_law(short, release) if has_law(release) else _judged_without_law(short, guarantee.n or TYPICAL)


def _judged_without_law(short: Shortfall, n: int) -> Shortfall | None:
    """The shortfall, unless luck explains it, which has at least the effect that it has without privacy."""
    rank = np.array([min(ceil((n + 1) * short.promised), n)])
    is_luck = binomial_at_least(rank, n, short.high)[0] > CHANCE / 2
    return None if is_luck or short.promised == 0 else short


def _judged_by_law(short: Shortfall, release: Release) -> Shortfall | None:
    """The shortfall with the role of luck, by the law; None if luck explains it."""
    # Of a public or noisy number of records, or of all numbers that a secret one may be.
    secret = [threshold for threshold in release.parts.values() if _has_secret_number(threshold)]
    from_records = None
    if not secret:
        is_excluded = _failure_bound(release, None)(short.high) <= _CHANCE_OF_LAW
    else:
        n_min = max(threshold.guarantee.n_min or 1 for threshold in secret)
        typical = -(-TYPICAL // len(secret)) if release.disjoint else TYPICAL
        least = _least_number(release, short.high, n_min, max(n_min, typical))
        is_excluded = least is not None
        # With fewer than n_min records there is no guarantee, so that number is not worth stating.
        from_records = None if least == n_min else least
    if is_excluded:
        return replace(short, luck="excluded", from_records=from_records)
    return None if short.delta is None else replace(short, luck="rare")


def has_law(release: Release) -> bool:
    """Whether the law of coverage over calibrations is known, so that a guarantee can be tested."""
    parts = list(release.parts.values())
    if any(threshold.coverage == 0 or threshold.guarantee.silos == "by size" for threshold in parts):
        return False  # there is no guarantee, or the law holds for identically distributed silos
    # A release whose law cannot be computed raises for any number of records.
    try:
        _failure_bound(release, TYPICAL)
    except InputError:
        return False
    return True


def _has_secret_number(threshold: Threshold) -> bool:
    return threshold.mechanism is not None and threshold.n is None and not threshold.guarantee.sized


def _least_number(release: Release, high: float, few: int, many: int) -> int | None:
    """The number from which on luck does not explain such a coverage; None if luck of `many` records explains it."""

    def is_excluded(n: int) -> bool:
        return _failure_bound(release, n)(high) <= _CHANCE_OF_LAW

    # The smallest of a grid from which on all exclude luck, and then the number itself by bisection.
    tried: list[int] = np.unique(np.geomspace(few, many, _TRIED_NUMBERS).astype(np.int64)).tolist()
    excluded = list(takewhile(is_excluded, reversed(tried)))
    if not excluded:
        return None
    least = excluded[-1]
    below = max((n for n in tried if n < least), default=few - 1)
    return bisect(is_excluded, below, least)


def _failure_bound(release: Release, n: int | None) -> Callable[[float], float]:
    """Level c -> a bound on the probability that coverage of the release is below c, with n records if n is secret.

    The coverage over all groups is below c only if that of one group is. The two ends of an interval divide the
    miscoverage as they divide alpha.
    """
    # Parts with equal inputs have the same law, which is computed once.
    parts = list(release.parts.values())
    threshold_by_inputs = {_law_inputs(threshold): threshold for threshold in parts}
    laws = {
        inputs: threshold.coverage_failure(_number_for_law(threshold, n, len(parts)))
        for inputs, threshold in threshold_by_inputs.items()
    }

    # How often each law occurs, with the share of the miscoverage.
    counts = Counter[tuple[Any, float]]()
    for threshold in parts:
        share = float(threshold.alpha / release.levels[0]) if release.by == "side" else 1.0
        counts[_law_inputs(threshold), share] += 1
    return lambda level: sum(count * laws[inputs](1 - share * (1 - level)) for (inputs, share), count in counts.items())


def _number_for_law(threshold: Threshold, secret: int | None, parts: int) -> int | None:
    """The number of records for the law: the most by the noisy number, `secret`, or None for a public one."""
    if threshold.size is not None and threshold.guarantee.sized:
        return threshold.size.most(_CHANCE_OF_NUMBER / parts)
    return secret if _has_secret_number(threshold) else None


def _law_inputs(threshold: Threshold) -> Any:
    if threshold.mechanism is None:
        return threshold
    return threshold.mechanism, threshold.candidates, threshold.guarantee, threshold.size
