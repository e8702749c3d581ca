"""Tune slopes: the number of candidates, the division of the privacy loss between both slopes, and the rise.

The tuning minimises the mean price of the answer under public reference laws of the scores (docs/theory.md, section 5),
by coordinate descent on three short grids. It depends on public numbers only, and affects efficiency, never validity.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.candidates import LENGTHS, Candidates, Spread, listed
from confide.core.answer_law import Utility, competitor_ratio_for, flat_for, likely_answers
from confide.core.reference_laws import PRICE_OF_ALL, ReferenceLaws, law_of, reference_laws
from confide.guarantee import sharp_loss, tail, weighted_loss
from confide.mechanisms import OF_TARGET

# The inputs of a tuning.

# Slopes are integers that sum to PARTS: left = 9, right = 11 puts nine twentieths of the privacy loss on the left.
PARTS = 20

# The steps of round numbers of records, within a decade.
_ROUND = (1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3.2, 3.5, 4, 4.5, 5, 5.6, 6.3, 7, 8, 9, 10)

# Where the target does not follow it, a secret n may be smaller by this factor than a guess, or than the noisy number;
# this case has the weight 1/20.
_FEWER_THAN_GUESSED = 3.0
_FEWER_THAN_COUNTED = 1.3
_FEWER_WEIGHT = 0.05

# A noisy number of records is too large, or too small, by so many scales of its noise in a quarter of the cases.
_WRONG_SCALES = 1.5


class Case(NamedTuple):
    """A number of records that may be at hand, and by how many ranks the noise of a noisy number moves the target."""

    n: float
    moved: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True)
class TuningInputs:
    """The inputs of a tuning except the candidates: n is the public number of records, or a guess of it.

    The target moves by `rate` with each record. With weights, n is a number of records of the largest weight. If
    `counted`, n is a noisy number of records instead of a guess, and if `moves`, the target moves with it, too.
    """

    n: int
    level: Fraction
    epsilon: float
    rate: Fraction
    delta: float | None
    weighted: bool = False
    counted: bool = False
    moves: bool = False

    @property
    def cases(self) -> list[Case]:
        """The numbers of records that may be at hand."""
        if not self.rate:
            return [Case(float(self.n))]
        if not self.moves:
            fewer = _FEWER_THAN_COUNTED if self.counted else _FEWER_THAN_GUESSED
            return [Case(float(self.n)), Case(self.n / fewer, weight=_FEWER_WEIGHT)]
        wrong = _WRONG_SCALES * float(1 / OF_TARGET.loss - 1) / self.epsilon
        apart = float(self.level - self.rate)
        noises = ((0.0, 0.5), (wrong, 0.25), (-wrong, 0.25))
        return [Case(max(self.n - noise, 1.0), apart * noise, weight) for noise, weight in noises]

    def scaled(self) -> "TuningInputs":
        """Equivalent inputs with a privacy loss of at least 1 and a round n: only n epsilon matters, and smoothly."""
        epsilon = max(self.epsilon, 1.0)
        n = self.n * self.epsilon / epsilon
        decade = 10.0 ** math.floor(math.log10(n))
        near = min(_ROUND, key=lambda step: abs(math.log(n / decade / step)))
        return replace(self, n=max(1, round(near * decade)), epsilon=epsilon)

    def slopes(self, left: float) -> tuple[float, float]:
        """Log-odds per rank, left and right, if `left` parts of PARTS are on the left."""
        right = PARTS - left
        rate = float(self.rate)
        distance = max(left, right, rate * PARTS, (1 - rate) * PARTS) if rate else PARTS
        return self.epsilon * left / distance, self.epsilon * right / distance


# The mean price.

# From about this alpha n epsilon on a target that moves with a noisy number follows the two-sided certificate. It gains
# about so many ranks in units of one over both slopes, and divides the loss by so much at most.
_TWO_SIDED = 16.0
_GAINED = 1.7
_LARGEST_DIVISOR = 3


def mean_price(
    laws: ReferenceLaws, inputs: TuningInputs, left: float, rise: float, cases: Sequence[Case] | None = None
) -> float:
    """The mean price of the answer over the reference laws, in units of alpha n ranks, and over `cases` of n."""
    # Slopes and prior weights.
    m = laws.below.shape[1]
    slopes = inputs.slopes(left)
    rivals = competitor_ratio_for(m, rise)
    flat = float(flat_for(m, rise))
    heights = rise / max(m - flat, 1) * np.maximum(np.arange(1, m + 1) - flat, 0)

    # The sum over the cases of the price of each law, weighted by the law of the answer.
    total = 0.0
    for n, moved, weight in inputs.cases if cases is None else cases:
        target = _target(n, inputs, slopes, rivals) + moved
        if target > n:
            total += weight * PRICE_OF_ALL
            continue
        row, column, odds = likely_answers(n * laws.below, Utility(target, *slopes, heights))
        price_sums = np.bincount(row, odds * laws.prices[row, column])
        weight_sums = np.bincount(row, odds)
        total += weight * float(laws.weights @ (price_sums / weight_sums))
    return total


@lru_cache(maxsize=4096)
def _target(n: float, inputs: TuningInputs, slopes: tuple[float, float], rivals: float) -> float:
    """The approximate target rank for n records; the exact one of the certificate is computed after the tuning."""
    # Marginal guarantees: the ranks that the mechanism loses in expectation.
    level = float(inputs.level)
    slope = slopes[0]
    if inputs.weighted:
        return level * (n + 1) + weighted_loss(0.0, slope, rivals)
    if inputs.delta is None:
        lost = sharp_loss(1.0, slope, rivals)
        many = inputs.moves and (1 - level) * n * inputs.epsilon >= _TWO_SIDED
        if many or not inputs.rate:  # the two-sided certificate, whose gain hardly depends on the competitors
            lost = max(lost / _LARGEST_DIVISOR, lost - _GAINED / sum(slopes))
        return level * (n + 1) - 1 + lost
    from scipy.special import ndtri

    # Training-conditional ones: the random rank is D below the target, and the binomial count has the variance
    # n q (1 - q).
    step = 0.25 / slope
    at = np.arange(0, (math.log1p(rivals) + 12) / slope, step) + step / 2
    missed = tail(at, slope, rivals)
    mean = float(missed.sum() * step)
    variance = float(2 * (missed * at).sum() * step) - mean**2
    return level * n + mean - float(ndtri(inputs.delta)) * math.sqrt(n * level * (1 - level) + variance) + 0.5


# The search of a tuning.

# The lists among which a design chooses: their sizes divide the longest one, of which they are parts. Sizes
# of neighbours differ at least by this ratio.
LONGEST = LENGTHS[0]
_SHORTEST = 8
_RATIO = 1.2

# Rises: at most 20, because longer ones move thresholds across longer empty candidate ranges (see `gap_crossed`).
RISES = (0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0)

# Slopes on the left, in parts of PARTS.
LEFTS = tuple(range(4, 16))

# The shortest list is taken whose expected coverage of typical scores is within this of the best list's. In the mean
# over all reference laws it may cost three times as much.
_TOLERANCE = 5e-5

# The start of a search: candidates and rise in units of alpha n epsilon, the fewest candidates, and the left slope.
_DENSITY = 8.0
_RISE = 0.3
_FEWEST = 10.0
_LEFT = LEFTS.index(9)

# Below this alpha n epsilon lists of neighbouring sizes differ much, so that a descent may stop at a worse one. Where
# a target follows a noisy number, the search also begins at the best of so many longer lists.
_FEW = 30.0
_LONGER_LISTS = 7

# The weight of laws with an empty candidate range is larger by this factor if the design follows a noisy number.
_GAPS_COUNTED = 4.0

# Laws over more candidates than this have mostly entries of 0.
_LONG = 3841


@dataclass(frozen=True)
class Tuning:
    """Candidates, slopes below and above the target, and rise, tuned together.

    Only the ratio of the slopes matters. The rise is the log-odds by which the last candidate exceeds the first.
    """

    candidates: Candidates
    left: int
    right: int
    rise: float

    @property
    def flat(self) -> Fraction:
        """The point at which the rise begins."""
        return flat_for(self.candidates.size, self.rise)


def tune(spread: Candidates | Spread, inputs: TuningInputs) -> Tuning:
    """Choose the best number of candidates of a spread (a list is used as given), and slopes and rise for them."""
    return _tuned(spread, inputs.scaled())


class _Place(NamedTuple):
    """A place on the grids of the search: the positions of a size, a rise and a left slope."""

    size: int
    rise: int
    left: int


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def _tuned(spread: Candidates | Spread, inputs: TuningInputs) -> Tuning:
    sizes = sizes_of(spread) if isinstance(spread, Spread) else (spread.size,)
    grids = _Place(len(sizes), len(RISES), len(LEFTS))
    alpha = float(1 - inputs.level)

    def laws(place: _Place) -> ReferenceLaws:
        return _laws(spread, sizes[place.size], alpha, _GAPS_COUNTED if inputs.counted else 1.0)

    @cache
    def price(place: _Place) -> float:
        return mean_price(laws(place), inputs, LEFTS[place.left], RISES[place.rise])

    def coverage(place: _Place) -> float:
        between = _between_candidates(laws(place).below[0], float(inputs.level))
        return mean_price(between, inputs, LEFTS[place.left], RISES[place.rise], [Case(inputs.n)])

    # The best list, with its slopes and rise: the descent has several starts.
    first = _start(spread, inputs, sizes)
    starts = {first, first._replace(size=max(first.size - 1, 0))}
    if inputs.moves and alpha * inputs.n * inputs.epsilon < _FEW:
        longer = range(first.size, min(first.size + _LONGER_LISTS, len(sizes)))
        starts.add(min((first._replace(size=size) for size in longer), key=price))
    best = min((_descend(start, grids, price) for start in sorted(starts)), key=price)

    # The shortest list that costs little more.
    dearest = price(best) + 3 * _TOLERANCE / alpha
    most = coverage(best) + _TOLERANCE if best.size else 0.0
    while best.size:
        shorter = _descend(best._replace(size=best.size - 1), grids, price, axes=("rise", "left"))
        if price(shorter) > dearest or coverage(shorter) > most:
            break
        best = shorter
    left = LEFTS[best.left]
    return Tuning(listed(spread, sizes[best.size]), left, PARTS - left, RISES[best.rise])


@lru_cache(maxsize=64)
def sizes_of(spread: Spread) -> tuple[int, ...]:
    """The sizes of the lists of a spread; the longest one resolves coverage of 90 % to less than a ten-thousandth."""
    # Residuals need twice as many candidates with a unit, and four times as many without one.
    of_residuals = 2 if spread.unit or spread.around else 4
    longest = spread.most or LONGEST * (of_residuals if spread.shape.has_unit else 1)
    sizes = [longest]
    for size in range(longest, _SHORTEST - 1, -1):
        if longest % size == 0 and _RATIO * size <= sizes[-1]:
            sizes.append(size)
    return tuple(reversed(sizes))


def _between_candidates(below: NDArray[np.float64], level: float) -> ReferenceLaws:
    """The same law of scores, with the level at several places between two candidates; the price is the coverage."""
    place = int(np.searchsorted(below[:-1], level))
    gap = float(below[place] - below[max(place - 1, 0)])
    rows = np.maximum(below - gap * np.linspace(0, 1, 5, endpoint=False)[:, None], 0.0)
    rows[:, -1] = 1.0
    return ReferenceLaws(rows, rows, np.full(len(rows), 1 / len(rows)))


def _start(spread: Candidates | Spread, inputs: TuningInputs, sizes: tuple[int, ...]) -> _Place:
    """The start of the descent: a closed form in Z = alpha n epsilon, which determines nearly everything."""
    z = float(1 - inputs.level) * inputs.n * inputs.epsilon
    density = _DENSITY if isinstance(spread, Candidates) or spread.scale else spread.shape.length.density
    size = max(density * z * min(1, z / _FEW), _FEWEST)
    return _Place(
        size=int(np.argmin(np.abs(np.log(sizes) - math.log(size)))),
        rise=int(np.argmin(np.abs(np.array(RISES) - _RISE * z))),
        left=_LEFT,
    )


def _descend(
    place: _Place, grids: _Place, price: Callable[[_Place], float], axes: tuple[str, ...] = ("rise", "left", "size")
) -> _Place:
    """Coordinate descent along these axes, in single and double steps, until a round improves nothing."""
    before = None
    while place != before:
        before = place
        for axis, step in product(axes, (-1, 1, -2, 2)):
            # As many steps as improve the price.
            while True:
                position = getattr(place, axis) + step
                trial = place._replace(**{axis: position})
                if not 0 <= position < getattr(grids, axis) or price(trial) >= price(place):
                    break
                place = trial
    return place


@lru_cache(maxsize=256)
def _laws(spread: Candidates | Spread, size: int, alpha: float, gaps: float) -> ReferenceLaws:
    if isinstance(spread, Spread):
        return reference_laws(spread.edges(size), spread, alpha, gaps)
    # For a long list every k-th candidate is evaluated.
    return reference_laws(spread.edges[:: -(-spread.size // _LONG)], law_of(spread), alpha, gaps)
