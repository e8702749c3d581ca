"""private-qq: every silo answers with the slope mechanism, whose noise is a random rank.

A silo's reply is at least S_(R), where R is independent of the data and has a known law. So the integral of FedCP-QQ
holds with a mixture in place of one order statistic (docs/theory-federated.md, Theorem F3).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice, product
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from confide.core import PARTS, flat_for
from confide.federated.certificates import certified_k
from confide.federated.many_silos import (
    Goal,
    Line,
    Search,
    StandIns,
    expected_coverage,
    expected_in_search,
    target_rank,
)
from confide.guarantee import TargetGoal, conditional_offset, tangent_rate
from confide.mechanisms import UNIT, Slopes, slopes_for
from confide.support import bisect

# Above this number of silos a fast search with representative sizes finds the plan. The certificate uses all silos.
MANY = 64

# Parts of the loss left of the target, for public sizes
_SPLITS = (8, 10, 12, 14, 16)

# At most 10: the k-th smallest reply may be that of one silo whose scores leave an empty candidate range, and a larger
# rise would move the reply across it
_RISES = (0.0, 3.0, 6.0, 10.0)


@dataclass(frozen=True)
class MechanismChoice:
    """A choice of a mechanism for each silo, and of k, the rank of the threshold among honest replies if all answer.

    `coverage` is the guarantee in this case: the marginal coverage, or the level that holds with probability 1 - delta.
    `expected` is the mean coverage on uniform scores.
    """

    mechanisms: tuple[Slopes, ...]
    k: int
    coverage: float
    expected: float


def best_private_qq(
    sizes: Sequence[int | None],
    level: Fraction,
    epsilon: float,
    candidates: int,
    *,
    delta: float | None = None,
    honest: int | None = None,
    absent: int = 0,
    most_k: int | None = None,
    n_min: int = 1,
    n_typical: int = 1000,
) -> MechanismChoice | None:
    """Mechanisms and k for all silos, of least expected coverage among those that certify the level.

    Public sizes: target ranks are T_j = ceil(x (n_j + 1)), at most n_j. Secret sizes: one line rate (n + 1) + offset
    with rate above the level for all silos, certified for every n_j >= n_min (Theorem F4).

    Parameters
    ----------
    sizes
        Numbers of scores; None for all of them if they are secret.
    level
        Required coverage.
    epsilon
        Loss of each silo: when one of its records is replaced if sizes are public, else when one is added or removed.
    candidates
        Number of candidate thresholds, +inf included.
    delta
        None for the marginal guarantee, else the failure probability of a training-conditional one.
    honest
        Number of silos that certainly answer and are honest; by default all.
    absent
        Number of the other silos that are missing (the rest are Byzantine). It affects the expected coverage only.
    most_k
        The largest allowed k; by default `honest`.
    n_min, n_typical
        For secret sizes: the least number of scores of a silo, and the one for which the plan is optimized.

    Returns
    -------
    MechanismChoice or None
        None if the level cannot be certified with a finite threshold.

    Examples
    --------
    >>> choice = best_private_qq([200] * 5, Fraction(9, 10), 5.0, 100)
    >>> choice.k, {int(m.offset) for m in choice.mechanisms}, round(choice.expected, 3)
    (5, {176}, 0.907)
    >>> choice = best_private_qq([None] * 5, Fraction(9, 10), 2.0, 100, n_min=50, n_typical=300)
    >>> choice.coverage >= 0.9, choice.expected < 0.95
    (True, True)
    """
    honest = len(sizes) if honest is None else honest
    most_k = min(honest, most_k or honest)
    return _best(Goal(tuple(sizes), level, epsilon, candidates, delta, honest, absent, most_k, n_min, n_typical))


@lru_cache(maxsize=256)
def _best(goal: Goal) -> MechanismChoice | None:
    """The choice for a goal, cached: comparisons, several levels and the final plan have most goals in common."""
    # Many silos, or different sizes
    if len(goal.public) > MANY or len(set(goal.public)) > 1:
        return _for_many(goal)

    # Of all certified choices that of least expected coverage
    tried = _targets(goal) if goal.public else _lines(goal)
    choices = (_with_expected(goal, _choice(goal, mechanisms, guess)) for mechanisms, guess in tried)
    return min((choice for choice in choices if choice is not None), key=_expected, default=None)


def _choice(goal: Goal, mechanisms: tuple[Slopes, ...], guess: int | None) -> MechanismChoice | None:
    """These mechanisms with the smallest certified k; None if it is too large. The expected coverage is still open."""
    certificate = certified_k(goal.replies(mechanisms), goal.level, goal.delta, goal.honest, guess)
    if certificate is None or certificate[0] > goal.most_k:
        return None
    return MechanismChoice(mechanisms, *certificate, expected=math.nan)


_expected = attrgetter("expected")


def _with_expected(goal: Goal, choice: MechanismChoice | None) -> MechanismChoice | None:
    """The choice with its expected coverage; None without one.

    It is computed as if the silos with the fewest records answered, and Byzantine ones replied lowest.
    """
    if choice is None:
        return None
    typical = [goal.n_typical if n is None else n for n in goal.sizes]
    pairs = sorted(zip(typical, choice.mechanisms, strict=True), key=lambda pair: pair[0])
    targets = [(n, slopes.target(n)) for n, slopes in pairs[: goal.present]]
    expected = expected_coverage(targets, choice.k + goal.byzantine, choice.mechanisms[0], goal.candidates)
    return replace(choice, expected=expected)


def _targets(goal: Goal) -> Iterator[tuple[tuple[Slopes, ...], int]]:
    """For every rise, split of the loss and k the smallest certified targets, with k as a first guess.

    Target ranks are integers: with few records per silo a smaller k may serve at the same targets.
    """
    for rise, left in product(_RISES, _SPLITS):
        trial = _trial(goal, rise, left)
        for k in _some_k(goal.most_k):
            if (mechanisms := _smallest_targets(goal, trial, k)) is not None:
                yield mechanisms, k


def _some_k(most: int) -> Sequence[int]:
    """The k to try up to a number: all, or nine if there are many."""
    if most <= 9:
        return range(1, most + 1)
    return sorted({max(1, round(most * share)) for share in np.linspace(0.15, 0.95, 9)})


def _smallest_targets(goal: Goal, trial: Slopes, k: int) -> tuple[Slopes, ...] | None:
    """The smallest target that is certified with this k, for silos of one size; None if no target is."""

    def enough(target: int) -> bool:
        return goal.certifies(_aimed(trial, [target] * len(goal.sizes)), k)

    largest = goal.public[0]
    return _aimed(trial, [bisect(enough, 0, largest)] * len(goal.sizes)) if enough(largest) else None


def _trial(goal: Goal, rise: float, left: int) -> Slopes:
    """The mechanism of this rise and split of the loss for a public size, without its target."""
    plain = slopes_for(Fraction(0), Fraction(1), left, PARTS - left, "replace_one", goal.epsilon)
    return _raised(plain, rise, goal.candidates)


def _raised(plain: Slopes, rise: float, candidates: int) -> Slopes:
    """The mechanism with this rise, in log-odds, over the longest possible range."""
    flat = flat_for(candidates, rise)
    steps = math.floor(rise * plain.scale)
    return replace(plain, flat=flat, rise=steps) if flat and steps else plain


def _aimed(trial: Slopes, targets: Sequence[int]) -> tuple[Slopes, ...]:
    return tuple(replace(trial, offset=Fraction(target)) for target in targets)


# For secret sizes: parts of the loss left of the target, and probabilities that one silo's reply misses the level
_LEFT = 14
_FAILURES = (0.35, 0.2, 0.1)


def _lines(goal: Goal) -> Iterator[tuple[tuple[Slopes, ...], None]]:
    """Lines rate (n + 1) + offset on which one silo's reply misses the level with a few probabilities."""

    def slopes(rate: Fraction, offset: Fraction, rise: float) -> Slopes:
        plain = slopes_for(rate, offset, _LEFT, PARTS - _LEFT, "add_remove", goal.epsilon)
        return _raised(plain, rise, goal.candidates)

    # Offsets are multiples of 1/unit, and so is the level
    unit = goal.level.denominator * -(-UNIT // goal.level.denominator)
    least = max(goal.n_min, 1)
    for failure, rise in product(_FAILURES, _RISES[1::2]):
        rate = tangent_rate(goal.level, failure, goal.n_typical)
        noise = slopes(rate, Fraction(1, unit), rise).noise(goal.candidates)
        offset = conditional_offset(rate, TargetGoal(goal.level, failure, least), goal.n_typical, noise, unit)
        yield (slopes(rate, offset, rise),) * len(goal.sizes), None


# For many silos: rises, lines of every mechanism at first, and mechanisms of which more lines are tried
_RISES_OF_MANY = (0.0, 6.0, 10.0)
_FIRST_LINES = 4
_LINES = 16
_BEST_MECHANISMS = 3

# Up to this number of silos all lines are tried at once, and so many certified choices are compared exactly
_FEW = 16
_REFINED = 6


class Trial(NamedTuple):
    """A line of the fast search, its mechanism without a target, and its approximate expected coverage."""

    expected: float
    rise: float
    left: int
    slopes: Slopes
    line: Line


def _for_many(goal: Goal) -> MechanismChoice | None:
    """The first line that is certified, in the order of the fast search; for few silos the best of several."""
    certified = (_certified(goal, trial) for trial in sorted(_tried_lines(goal), key=_expected))
    most = _REFINED if len(goal.sizes) <= _FEW else 1
    return min(islice((choice for choice in certified if choice is not None), most), key=_expected, default=None)


def _tried_lines(goal: Goal) -> list[Trial]:
    """Lines of many mechanisms, with their approximate expected coverages."""
    invited = StandIns.of(goal.public)
    answering = StandIns.of(sorted(goal.public)[: goal.present])

    def trials(rise: float, left: int, steps: int) -> Iterator[Trial]:
        slopes = _trial(goal, rise, left)
        for line in Search(goal, invited, slopes).lines(steps):
            # Byzantine silos reply lowest
            of_all = Line(line.rate, line.k + goal.byzantine)
            expected = expected_in_search(answering, of_all, slopes, goal.candidates, goal.level)
            yield Trial(expected, rise, left, slopes, line)

    # Lines of every mechanism: a few, or for few silos all
    few = len(goal.sizes) <= _FEW
    splits = _SPLITS if few else _SPLITS[::2]
    steps = _LINES if few else _FIRST_LINES
    tried = [trial for rise, left in product(_RISES_OF_MANY, splits) for trial in trials(rise, left, steps)]

    # All lines of the best mechanisms
    mechanisms = dict.fromkeys((trial.rise, trial.left) for trial in sorted(tried, key=_expected))
    for rise, left in list(mechanisms)[:_BEST_MECHANISMS]:
        tried += trials(rise, left, _LINES)
    return tried


def _certified(goal: Goal, trial: Trial) -> MechanismChoice | None:
    """The line with the certificate of all silos; for few silos the lowest line that is certified with its k."""

    def mechanisms(rate: Fraction) -> tuple[Slopes, ...]:
        return _aimed(trial.slopes, [target_rank(n, rate) for n in goal.public])

    line = trial.line
    choice = _choice(goal, mechanisms(line.rate), line.k)
    if choice is None:
        return None
    if len(goal.sizes) > _FEW:
        return replace(choice, expected=trial.expected)

    # Rates are multiples of 1/(n + 1) for the largest n
    k = choice.k
    steps = max(goal.public) + 1
    lowest = bisect(lambda step: goal.certifies(mechanisms(Fraction(step, steps)), k), 0, int(line.rate * steps))
    return _with_expected(goal, _choice(goal, mechanisms(Fraction(lowest, steps)), k))
