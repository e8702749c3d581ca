"""Power of a watch to detect a drop: simulated from public numbers, with the same random numbers every time."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from confide.errors import InputError
from confide.support import Described, Level, Section, exact_level, positive_integer, privacy_loss
from confide.watching import e_process
from confide.watching.e_process import advance, bets, log_e_values, log_evidence

PATHS = 1000
_SEED = 20_240_501
_MOST_LOOKS = 1000
_CHANCE = 0.9

Share = Callable[[int, int], float]
"""Fraction of the initial wealth that enters at a look, or is left after it, for a planned number of looks."""


@dataclass(frozen=True, repr=False)
class WatchPower(Described):
    """Number of records that a watch needs to detect a drop of coverage.

    Parameters
    ----------
    promised, tolerance, drop
        Coverage is `promised`, or falls `drop` below it; the watch tests that it is at least `promised - tolerance`.
    batch, epsilon
        Records of a look, and the privacy loss of each record.
    looks
        Planned number of looks.
    error
        Probability of a false alarm over all looks together.
    at_once, halfway
        Records until the alarm with probability 0.9, if coverage falls before the first look, or after half of the
        planned looks; None if that takes more than `most`.
    most
        Number of simulated records.
    enough
        Recommended number of records in a look; with fewer, noise exceeds sampling error.
    """

    promised: float
    tolerance: float
    drop: float
    batch: int
    epsilon: float
    looks: int
    error: float
    at_once: int | None
    halfway: int | None
    most: int
    enough: int

    @property
    def small(self) -> bool:
        """Whether the noise of a look exceeds its sampling error."""
        return self.batch < self.enough

    @property
    def sentence(self) -> str:
        """Sentence that states how soon a drop is detected."""

        def records(number: int | None) -> str:
            return f"more than {self.most:,}" if number is None else f"{number:,}"

        return (
            f"a drop from {self.promised:.4g} to {self.promised - self.drop:.4g} is detected with probability 0.9 in "
            f"{records(self.at_once)} records; within {records(self.halfway)} if it comes after half of the looks"
        )

    def _section(self) -> Section:
        head = (
            f"watch: {self.batch:,} records a look at epsilon {self.epsilon:g}, {self.looks:,} looks planned, tested "
            f"for coverage of at least {self.promised - self.tolerance:.4g}, false alarm in all at most {self.error:g}"
        )
        small = (too_small(self.batch, self.enough),) if self.small else ()
        return Section("WatchPower", f"{head}\n{self.sentence}", notes=small)

    def _brief(self) -> str:
        return f"{self.batch:,} records a look at epsilon {self.epsilon:g}, {self.sentence}"


def watch_power(
    promised: Level,
    epsilon: float,
    batch: int,
    *,
    tolerance: float = 0.02,
    drop: float = 0.05,
    looks: int = 52,
    error: float = 0.05,
    per_person: int = 1,
) -> WatchPower:
    """Number of records after a drop of coverage that a watch needs to detect it with probability 0.9.

    The function simulates 1000 paths with the same random numbers every time. Results are accurate to a few per cent.

    Parameters
    ----------
    promised
        Monitored coverage, for example 0.9.
    epsilon
        Privacy loss of one record in a look.
    batch
        Records of a look.
    tolerance, looks, error
        As in `Watch.start`.
    drop
        Distance by which coverage falls below `promised`.
    per_person
        Maximum number of records of one person in a look. The simulation gives every person as many identical records.

    Raises
    ------
    InputError
        If the drop is not larger than the tolerance, so that the watch does not test for it.

    Examples
    --------
    >>> found = watch_power(0.9, epsilon=1.0, batch=100)
    >>> 1500 < found.at_once < 4000, found.small
    (True, False)
    """
    level, size = float(exact_level("promised", promised)), positive_integer("batch", batch)
    planned, loss = positive_integer("looks", looks), privacy_loss("epsilon", epsilon)
    people = positive_integer("per_person", per_person, most=size)
    alarm, margin, fall = float(exact_level("error", error)), _share("tolerance", tolerance), _share("drop", drop)
    if not margin < fall < level:
        requirement = f"must lie between the tolerance {margin:g} and the coverage {level:g}"
        raise InputError("drop", requirement, got=f"{fall:g}")
    least = level - margin

    def records(before: int) -> int | None:
        found = looks_to_alarm(
            least, size, loss, level, level - fall, before=before, looks=planned, error=alarm, per_person=people
        )
        return None if found is None else found * size

    at_once = records(0)
    halfway = None if at_once is None else records(planned // 2)
    most, enough = _MOST_LOOKS * size, records_enough(level, loss)
    return WatchPower(level, margin, fall, size, loss, planned, alarm, at_once, halfway, most, enough)


def looks_to_alarm(
    least: float,
    batch: int,
    epsilon: float,
    coverage: float,
    dropped_coverage: float,
    *,
    before: int = 0,
    looks: int = 52,
    error: float = 0.05,
    entering_wealth: Share = e_process.entering_wealth,
    cash: Share = e_process.cash,
    per_person: int = 1,
    most: int = _MOST_LOOKS,
) -> int | None:
    """Looks after a drop to `dropped_coverage` until 90 % of the paths have alarmed; None for more than `most`.

    Paths that alarm in the `before` looks before the drop are left out. `entering_wealth` and `cash` are the entering
    wealth.
    """
    paths = PATHS
    rng, bet = np.random.default_rng(_SEED), bets([least], batch, epsilon, per_person=per_person)
    alarm, log_wealth = math.log(1 / error), np.full((paths, bet.price.shape[1]), -np.inf)
    for look in range(1, before + most + 1):
        share = coverage if look <= before else dropped_coverage
        covered = per_person * rng.binomial(batch // per_person, share, len(log_wealth))
        missed = batch // per_person * per_person - covered
        x, y = covered + _noise(rng, epsilon, len(covered)), missed + _noise(rng, epsilon, len(covered))
        log_wealth = advance(log_wealth, log_e_values(bet, x, y), entering_wealth(look, looks))
        quiet = log_evidence(log_wealth, cash(look, looks)) < alarm
        log_wealth = log_wealth[quiet]
        if look <= before:
            paths = len(log_wealth)
        elif len(log_wealth) <= (1 - _CHANCE) * paths:
            return look - before
    return None


def records_enough(coverage: float, epsilon: float) -> int:
    """Number of records at which the sampling variance equals the noise variance of a look.

    Smaller looks show little. Collect small batches until there are as many records; this has no privacy cost.

    Examples
    --------
    >>> records_enough(0.9, 1.0), records_enough(0.9, 0.3), records_enough(0.9, 0.1)
    (21, 246, 2221)
    """
    variance = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    return math.ceil(variance / (coverage * (1 - coverage)))


def too_small(batch: int, enough: int) -> str:
    """Warning that a look has too few records."""
    return (
        f"a look of {batch:,} records shows little: noise exceeds sampling error below {enough:,} records; collect "
        "small batches until there are as many, at no privacy cost"
    )


def _share(name: str, value: float) -> float:
    number = float(value)
    if not 0 <= number < 1:
        raise InputError(name, "must lie in [0, 1)", got=repr(number))
    return number


def _noise(rng: np.random.Generator, epsilon: float, size: int) -> np.ndarray:
    """Noise for simulations; released counts use OpenDP's noise."""
    chance = -math.expm1(-epsilon)
    return rng.geometric(chance, size) - rng.geometric(chance, size)
