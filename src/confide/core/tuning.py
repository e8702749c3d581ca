"""Tune slopes: the number of candidates, the division of the privacy loss between both slopes, and the rise.

The tuning minimises the mean price of the answer under public reference laws of the scores (docs/theory.md, section 5),
by coordinate descent on three short grids. It depends on public numbers only, and affects efficiency, never validity.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.candidates import FINEST, Candidates, Spread
from confide.core.mean_price import PARTS, Case, TuningInputs, flat_for, mean_price
from confide.core.reference_laws import ReferenceLaws, law_of, reference_laws

# The lists among which a design chooses: their sizes divide the longest one, of which they are parts. Sizes
# of neighbours differ at least by this ratio.
LONGEST = FINEST // 4
_SHORTEST = 8
_RATIO = 1.2

# Rises: at most 20, because longer ones move thresholds across longer empty candidate ranges (see `gap_crossed`).
RISES = (0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0)

# Slopes on the left, in parts of PARTS.
LEFTS = tuple(range(4, 16))

# The shortest list is taken whose expected coverage of typical scores is within this of the best list's. In the mean
# over all reference laws it may cost three times as much.
_TOLERANCE = 5e-5

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
    candidates = Candidates.quantiles(spread, sizes[best.size]) if isinstance(spread, Spread) else spread
    left = LEFTS[best.left]
    return Tuning(candidates, left, PARTS - left, RISES[best.rise])


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
    density = 8.0 if isinstance(spread, Candidates) or spread.unit or spread.around else spread.shape.density
    size, rise = max(density * z * min(1, z / _FEW), 10.0), min(0.3 * z, RISES[-1])
    return _Place(
        int(np.argmin(np.abs(np.log(sizes) - math.log(size)))),
        int(np.argmin(np.abs(np.array(RISES) - rise))),
        int(np.argmin(np.abs(np.array(LEFTS) - 9))),
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
