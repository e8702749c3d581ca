"""How soon a watch sees a drop: simulated from public numbers alone, with the same random numbers every time."""

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
"""What enters at a look, or has not entered after it, where so many looks are planned."""


@dataclass(frozen=True, repr=False)
class WatchPower(Described):
    """How many records a watch needs to see a drop of coverage.

    Parameters
    ----------
    promised, tolerance, drop
        Coverage is `promised`, or falls `drop` below it; the watch tests that it is at least `promised - tolerance`.
    batch, epsilon
        Records of a look, and the privacy loss of each.
    looks
        How many are planned.
    error
        The chance of a false alarm, ever.
    at_once, halfway
        Records until the alarm with probability .9, if coverage falls before the first look, and after half of the
        planned looks; None if that takes more than `most`.
    most
        Records that were simulated.
    enough
        Records that a look should have: fewer say less than their noise.
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
        """Whether the noise of a look outweighs its records."""
        return self.batch < self.enough

    @property
    def seen(self) -> str:
        """How soon a drop is seen, in a sentence."""

        def records(found: int | None) -> str:
            return f"more than {self.most:,}" if found is None else f"{found:,}"

        return (
            f"a drop from {self.promised:.4g} to {self.promised - self.drop:.4g} is seen with probability 0.9 within "
            f"{records(self.at_once)} records; within {records(self.halfway)} if it comes after half of the looks"
        )

    def _section(self) -> Section:
        head = (
            f"watch: {self.batch:,} records a look at epsilon {self.epsilon:g}, {self.looks:,} looks planned, tested "
            f"for coverage of at least {self.promised - self.tolerance:.4g}, false alarm ever at most {self.error:g}"
        )
        small = (too_small(self.batch, self.enough),) if self.small else ()
        return Section("WatchPower", f"{head}\n{self.seen}", notes=small)

    def _brief(self) -> str:
        return f"{self.batch:,} records a look at epsilon {self.epsilon:g}, {self.seen}"


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
    """How many records after a drop of coverage a watch needs to see it with probability .9.

    Simulated on 1000 paths with the same random numbers every time, so it is right to a few per cent.

    Parameters
    ----------
    promised
        The coverage that is watched, as .9.
    epsilon
        The privacy loss of one record in a look.
    batch
        Records of a look.
    tolerance, looks, error
        As in `Watch.start`.
    drop
        How far coverage falls below `promised`.
    per_person
        The most records of one person in a look. All people are simulated with as many, which are all alike.

    Raises
    ------
    InputError
        If the drop is not larger than the tolerance: then nothing has to be seen.

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
    good: float,
    fallen: float,
    *,
    before: int = 0,
    looks: int = 52,
    error: float = 0.05,
    stake: Share = e_process.stake,
    cash: Share = e_process.cash,
    per_person: int = 1,
    most: int = _MOST_LOOKS,
) -> int | None:
    """Looks after a drop from `good` to `fallen` until nine of ten paths have alarmed; None for more than `most`.

    Paths that alarm before the drop, after `before` looks, are left out. `stake` and `cash` are when stakes enter.
    """
    paths = PATHS
    rng, bet = np.random.default_rng(_SEED), bets([least], batch, epsilon, per_person=per_person)
    alarm, log_stakes = math.log(1 / error), np.full((paths, bet.price.shape[1]), -np.inf)
    for look in range(1, before + most + 1):
        share = good if look <= before else fallen
        covered = per_person * rng.binomial(batch // per_person, share, len(log_stakes))
        missed = batch // per_person * per_person - covered
        x, y = covered + _noise(rng, epsilon, len(covered)), missed + _noise(rng, epsilon, len(covered))
        log_stakes = advance(log_stakes, log_e_values(bet, x, y), stake(look, looks))
        quiet = log_evidence(log_stakes, cash(look, looks)) < alarm
        log_stakes = log_stakes[quiet]
        if look <= before:
            paths = len(log_stakes)
        elif len(log_stakes) <= (1 - _CHANCE) * paths:
            return look - before
    return None


def records_enough(coverage: float, epsilon: float) -> int:
    """Records of which sampling is as uncertain as the noise of a look.

    Fewer say little: hold small days back until there are as many, which costs nothing in privacy.

    Examples
    --------
    >>> records_enough(0.9, 1.0), records_enough(0.9, 0.3), records_enough(0.9, 0.1)
    (21, 246, 2221)
    """
    variance = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    return math.ceil(variance / (coverage * (1 - coverage)))


def too_small(batch: int, enough: int) -> str:
    """What it means that a look has too few records."""
    return (
        f"a look of {batch:,} records says little: its noise outweighs fewer than {enough:,}; hold small batches back "
        "until there are as many, which costs nothing in privacy"
    )


def _share(name: str, value: float) -> float:
    number = float(value)
    if not 0 <= number < 1:
        raise InputError(name, "must lie in [0, 1)", got=repr(number))
    return number


def _noise(rng: np.random.Generator, epsilon: float, size: int) -> np.ndarray:
    """Noise for simulations; what is released has OpenDP's."""
    chance = -math.expm1(-epsilon)
    return rng.geometric(chance, size) - rng.geometric(chance, size)
