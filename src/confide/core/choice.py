"""Choose the number of candidates, the division of the privacy loss between the slopes, and the rise of prior weights.

The choice minimises the mean price of the answer under public reference laws of the scores (docs/theory.md, section 5),
by coordinate descent on three short grids. It depends on public numbers only, and affects efficiency, never validity.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.candidates import FINEST, Candidates, Spread, spread_of
from confide.guarantee import sharp_loss, tail, weighted_loss
from confide.mechanisms import OF_TARGET
from confide.selection import selection_law

# Public reference laws of scores, and the price of a threshold under each.
#
# The price of a miscoverage u instead of alpha is ln(alpha/u), in units of alpha n ranks. It is the logarithm of the
# growth of sets if scores have an exponential tail, and increases by one rank per rank at alpha. It is capped at
# `PRICE_OF_ALL`, which is also the price of +inf. So one number covers thresholds that are slightly too large, beyond
# all data, or infinite.
#
# The laws: the one that the kind of score suggests (uniform scores; Gaussian residuals whose unit is wrong by up to a
# factor of 100); scores concentrated in a window of the list, narrow or wide; an empty candidate range over half of
# the list; all scores at the first candidate. They affect efficiency, never validity.

PRICE_OF_ALL = 8.0

# Decades by which the unit of residuals is wrong; several, so that a list is not judged by single positions in it.
_DECADES = (0.05, -0.37, 0.41, -0.9, 1.1, -2.15, 1.9)
_DECADES_WITHOUT_UNIT = (0.05, -0.63, 0.71, -1.4, 1.6, -4.9, 5.1)

# A guess of the threshold is more precise than a unit: distances are multiplied by this, as in the list around it.
_BREADTH_OF_A_GUESS = 0.3
_GAUSSIAN_WEIGHTS = (2.0, 1.5, 1.5, 1.5, 1.5, 1.0, 1.0)

# The share of the list that contains all scores, and where it begins.
_WINDOWS = ((0.3, 0.493), (0.3, 0.211), (0.31, 0.35), (0.1, 0.407), (0.104, 0.25))
_WINDOW_WEIGHT, _UNIFORM_WEIGHT = 0.4, 7.0

# The share of alpha beyond the empty candidate range, and the weight of the law.
_EMPTY_RANGES = ((0.7, 0.25), (0.9, 0.1))
_ATOM_WEIGHT = 0.3


@dataclass(frozen=True)
class ReferenceLaws:
    """k laws over m candidates, +inf included, with weights that sum to 1; the first is the typical one.

    `below` is P(score <= e_j), and `prices` the price of candidate j in units of alpha n ranks: both of shape (k, m).
    """

    below: NDArray[np.float64]
    prices: NDArray[np.float64]
    weights: NDArray[np.float64]


def law_of(candidates: Candidates) -> Spread | None:
    """The law by which these candidates are spread, from their recipe; None for your own lists."""
    kind = candidates.recipe["kind"]
    if kind == "spread":
        return spread_of(candidates.recipe)
    return Spread("probability") if kind in ("unit", "published") else None


def reference_laws(edges: NDArray[np.float64], spread: Spread | None, alpha: float, gaps: float = 1.0) -> ReferenceLaws:
    """The laws for finite candidates `edges`, shape (m-1,), of a kind of score (None if only the list is known).

    `gaps` multiplies the weight of the laws with an empty candidate range.
    """
    k = len(edges)
    shape = None if spread is None else spread.shape

    # The laws that the score suggests, and those of scores that crowd in a window of the list.
    rows, weights = suggested_laws(edges, spread)
    at = np.arange(1, k + 1) / k
    if spread is not None and spread.shape.has_unit:
        unit, far = _size_of_residuals(spread), 10.0 ** _breadth(spread)
        start, stop = (int(place) for place in np.searchsorted(edges, (unit / far, unit * far)))
        crowded = _gaussian(edges, spread, -1.6 * _breadth(spread))
    else:
        narrow = 0.4 if shape and shape.is_concentrated else 1.0
        rows += [np.clip((at - begin) / (narrow * share), 0, 1) for share, begin in _WINDOWS]
        weights += [_WINDOW_WEIGHT] * len(_WINDOWS)
        start, stop = int(0.3 * k), int(0.8 * k)
        crowded = np.clip(np.arange(1, k + 1) / max(start, 1), 0, 1)

    # An empty candidate range after the crowded ones, and all scores at the first candidate.
    for beyond, weight in _EMPTY_RANGES:
        top = 1 - beyond * alpha
        rows.append(top * crowded + (1 - top) * np.clip((np.arange(k) - stop) / max(k - 1 - stop, 1), 0, 1))
        weights.append(gaps * weight)
    rows.append(np.ones(k))
    weights.append(_ATOM_WEIGHT if shape is None else shape.atom_weight)

    # Prices in units of alpha n ranks.
    below = np.array(rows)
    prices = np.log(alpha / np.maximum(1 - below, alpha * math.exp(-PRICE_OF_ALL)))

    # Crossing an empty candidate range costs one unit more; in the last law all candidates but the first do.
    prices[-3:-1] += np.clip((np.arange(k) - start) / max(stop - start, 1), 0, 1)
    prices[-1, :1] = 0.0
    share = np.array(weights)
    return ReferenceLaws(
        np.column_stack([below, np.ones(len(rows))]),
        np.column_stack([prices, np.full(len(rows), PRICE_OF_ALL)]),
        share / share.sum(),
    )


def suggested_laws(edges: NDArray[np.float64], spread: Spread | None) -> tuple[list[NDArray[np.float64]], list[float]]:
    """The laws that the kind of score suggests, the typical one first, and their weights."""
    if spread is not None and spread.shape.has_unit:
        decades = _DECADES if spread.around or spread.unit is not None else _DECADES_WITHOUT_UNIT
        laws = [_gaussian(edges, spread, _breadth(spread) * decade) for decade in decades]
        return laws, list(_GAUSSIAN_WEIGHTS)
    shape = None if spread is None else spread.shape
    if shape is not None and shape.uniform is not None:
        uniform = shape.uniform(edges)
    else:
        uniform = np.arange(1, len(edges) + 1) / len(edges)
    return [uniform], [_UNIFORM_WEIGHT * (0.16 if shape and shape.is_concentrated else 1.0)]


def _size_of_residuals(spread: Spread) -> float:
    return abs(spread.around) / 1.64 if spread.around else spread.unit or 1.0


def _breadth(spread: Spread) -> float:
    return _BREADTH_OF_A_GUESS if spread.around else 1.0


def _gaussian(edges: NDArray[np.float64], spread: Spread, decades: float) -> NDArray[np.float64]:
    """P(score <= e_j) for Gaussian residuals whose unit is wrong by some decades."""
    from scipy.special import erf

    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = erf(edges / _size_of_residuals(spread) / 10.0**decades / math.sqrt(2))
    return scaled if spread.kind == "residual" else (1 + scaled) / 2


# Prior weights that rise as slowly as the competitor ratio G allows: constant at first, then in equal steps.
#
# For a given G the slowest weights are w_j = max(1, (w_1 + ... + w_(j-1))/G): by induction, each is the least that the
# constraint admits. They stay at 1 for the first floor(G) + 1 candidates. After a smaller first step they grow by the
# factor 1 + 1/G. So the log weights ln w_j are equal steps from a point between two candidates on, which is `flat`
# candidates from the beginning (docs/theory.md, section 5).

_LEAST = 1e-3

# A candidate whose weight is at most this share of the largest one is left out of a law of the answer.
_NO_WEIGHT = 1e-12


def total_rise(m: int, rivals: float) -> float:
    """The log-odds by which the last of m candidates must exceed the first, for this G."""
    flat = math.floor(rivals) + 1
    if flat >= m:
        return 0.0
    return math.log(max(1.0, flat / rivals)) + (m - 1 - flat) * math.log1p(1 / rivals)


@lru_cache(maxsize=4096)
def competitor_ratio_for(m: int, rise: float) -> float:
    """The smallest G whose slowest weights rise by at most `rise` in total over m candidates."""
    low, high = _LEAST, max(m - 1.0, _LEAST)
    if rise > 0:
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total_rise(m, middle) > rise else (low, middle)
    return m - 1.0 if rise <= 0 else high


def flat_for(m: int, rise: float) -> Fraction:
    """The point from which on the weights of m candidates rise, counted from 1, in sixteenths; 0 if they do not."""
    rivals = competitor_ratio_for(m, rise)
    flat = math.floor(rivals) + 1
    if rise <= 0 or flat >= m:
        return Fraction(0)
    start = flat + 1 - math.log(max(1.0, flat / rivals)) / math.log1p(1 / rivals)
    return Fraction(min(round(16 * start), 16 * m - 1), 16)


# The choice: candidates, slopes and rise of the least mean price.

# Slopes are integers that sum to PARTS: left = 9, right = 11 puts nine twentieths of the privacy loss on the left.
PARTS = 20

# The lists among which a design chooses: their sizes divide the longest one, of which they are parts.
_SHORTEST, LONGEST, _RATIO = 8, FINEST // 4, 1.2

# The shortest list is taken whose expected coverage of typical scores is within this of the best list's. In the
# mean over all reference laws it may cost three times as much.
_LITTLE = 5e-5

# At most 20: a longer rise would move thresholds across longer empty candidate ranges (see `gap_crossed`).
RISES = (0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0)
LEFTS = tuple(range(4, 16))

# Laws over more candidates than this have mostly entries of 0.
_LONG = 3841

_ROUND = (1, 1.1, 1.25, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3.2, 3.5, 4, 4.5, 5, 5.6, 6.3, 7, 8, 9, 10)

# From about this alpha n epsilon on a target that moves with a noisy number follows the two-sided certificate.
_TWO_SIDED = 16.0

# Below this alpha n epsilon lists of neighbouring sizes differ much, so that a descent may stop at a worse one. Where
# a target follows a noisy number, the search also begins at the best of so many longer lists.
_SMALL, _FURTHER = 30.0, 7
_FEWER_WEIGHT = 0.05

# Where the target does not follow it, a secret n may be smaller by this factor than a guess, or than the noisy number.
# This case has the weight 1/20.
_FEWER, _FEWER_COUNTED = 3.0, 1.3

# A noisy number of records is too large, or too small, by so many scales of its noise in a quarter of the cases.
_FAR_NUMBER = 1.5

# The weight of laws with an empty candidate range is larger by this factor if the design follows a noisy number.
_GAPS_COUNTED = 4.0


@dataclass(frozen=True)
class Choice:
    """Candidates, slopes below and above the target, and rise, chosen together.

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


# Numbers of records, the ranks by which the noise in a noisy number moves the target, and weights.
Cases: TypeAlias = Sequence[tuple[float, float, float]]


@dataclass(frozen=True)
class ChoiceInputs:
    """The inputs of a choice except the candidates: n is the public number of records, or a guess of it.

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
    def fewer(self) -> float:
        """The factor by which the number of records may be smaller than n."""
        return _FEWER_COUNTED if self.counted else _FEWER

    @property
    def gaps(self) -> float:
        """The factor on the weights of laws with an empty candidate range."""
        return _GAPS_COUNTED if self.counted else 1.0

    @property
    def cases(self) -> Cases:
        """The numbers of records that may be at hand."""
        if not self.rate:
            return [(float(self.n), 0.0, 1.0)]
        if not self.moves:
            return [(float(self.n), 0.0, 1.0), (self.n / self.fewer, 0.0, _FEWER_WEIGHT)]
        far = _FAR_NUMBER * float(1 / OF_TARGET.loss - 1) / self.epsilon
        apart = float(self.level - self.rate)
        return [(max(self.n - z, 1.0), apart * z, weight) for z, weight in ((0.0, 0.5), (far, 0.25), (-far, 0.25))]

    def scaled(self) -> "ChoiceInputs":
        """Equivalent inputs with a privacy loss of at least 1 and a round n: only n epsilon matters, and smoothly."""
        epsilon = max(self.epsilon, 1.0)
        n = self.n * self.epsilon / epsilon
        decade = 10.0 ** math.floor(math.log10(n))
        near = min(_ROUND, key=lambda step: abs(math.log(n / decade / step)))
        return replace(self, n=max(1, round(near * decade)), epsilon=epsilon)

    def slopes(self, left: float) -> tuple[float, float]:
        """Log-odds per rank, left and right, if `left` parts of PARTS are on the left."""
        right, rate = PARTS - left, float(self.rate)
        distance = max(left, right, rate * PARTS, (1 - rate) * PARTS) if rate else PARTS
        return self.epsilon * left / distance, self.epsilon * right / distance


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


@lru_cache(maxsize=256)
@np.errstate(under="ignore")
def typical_law(candidates: Candidates) -> NDArray[np.float64]:
    """P(score <= e_j) for typical scores, float64 of shape (m,)."""
    below = np.append(suggested_laws(candidates.edges, law_of(candidates))[0][0], 1.0)
    below.flags.writeable = False
    return below


# Only n epsilon matters to a choice, so that many requests have scaled inputs in common.
@lru_cache(maxsize=1024)
def histogram_size(spread: Spread, n: int, levels: tuple[Fraction, ...], scale: float) -> int:
    """About the best number of bins of a noisy histogram, whose bins have noise of this scale in records.

    More bins cost less distance between candidates, and more spread: the noise of all bins beyond a threshold adds up.
    The size minimises the root mean square of both together, over typical scores and scores that crowd below all bins.
    """

    def price(size: int) -> float:
        below = typical_law(Candidates.quantiles(spread, size))
        places = np.searchsorted(below, [float(level) for level in levels])
        distances = n * np.diff(below, prepend=0.0)[places]  # a threshold lies anywhere between two candidates
        beyond = len(below) - places / 2
        return float(np.sqrt(distances**2 / 3 + 2 * scale**2 * beyond).sum())

    return min(sizes_of(spread), key=price)


def choose(of: Candidates | Spread, inputs: ChoiceInputs) -> Choice:
    """Choose the best number of candidates of a spread (a list is used as given), and slopes and rise for them."""
    return _chosen(of, inputs.scaled())


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")
def _chosen(of: Candidates | Spread, inputs: ChoiceInputs) -> Choice:
    sizes = sizes_of(of) if isinstance(of, Spread) else (of.size,)
    grids = len(sizes), len(RISES), len(LEFTS)

    @cache
    def price(i: int, j: int, k: int) -> float:
        laws = _laws(of, sizes[i], float(1 - inputs.level), inputs.gaps)
        return mean_price(laws, inputs, LEFTS[k], RISES[j])

    def coverage(i: int, j: int, k: int) -> float:
        typical = _laws(of, sizes[i], float(1 - inputs.level), inputs.gaps).below[0]
        return mean_price(
            _between_candidates(typical, float(inputs.level)), inputs, LEFTS[k], RISES[j], [(inputs.n, 0.0, 1.0)]
        )

    # The best list, with its slopes and rise.
    first = _start(of, inputs, sizes)
    starts = {first, (max(first[0] - 1, 0), *first[1:])}
    if inputs.moves and float(1 - inputs.level) * inputs.n * inputs.epsilon < _SMALL:
        longer = range(first[0], min(first[0] + _FURTHER, len(sizes)))
        starts.add(min(((i, *first[1:]) for i in longer), key=lambda place: price(*place)))
    best = min((_descend(start, grids, price) for start in sorted(starts)), key=lambda place: price(*place))

    # The shortest list that costs little more.
    dearest = price(*best) + 3 * _LITTLE / float(1 - inputs.level)
    most = coverage(*best) + _LITTLE if best[0] else 0.0
    while best[0]:
        shorter = _descend((best[0] - 1, *best[1:]), grids, price, axes=(1, 2))
        if price(*shorter) > dearest or coverage(*shorter) > most:
            break
        best = shorter
    candidates = Candidates.quantiles(of, sizes[best[0]]) if isinstance(of, Spread) else of
    left = LEFTS[best[2]]
    return Choice(candidates, left, PARTS - left, RISES[best[1]])


def _between_candidates(below: NDArray[np.float64], level: float) -> ReferenceLaws:
    """The same law of scores, with the level at several places between two candidates; the price is the coverage."""
    place = int(np.searchsorted(below[:-1], level))
    gap = float(below[place] - below[max(place - 1, 0)])
    rows = np.maximum(below - gap * np.linspace(0, 1, 5, endpoint=False)[:, None], 0.0)
    rows[:, -1] = 1.0
    return ReferenceLaws(rows, rows, np.full(len(rows), 1 / len(rows)))


def mean_price(
    laws: ReferenceLaws, inputs: ChoiceInputs, left: float, rise: float, cases: Cases | None = None
) -> float:
    """The mean price of the answer over the reference laws, in units of alpha n ranks, and over `cases` of n."""
    m, (slope_left, slope_right) = laws.below.shape[1], inputs.slopes(left)
    rivals, flat = competitor_ratio_for(m, rise), float(flat_for(m, rise))
    heights = rise / max(m - flat, 1) * np.maximum(np.arange(1, m + 1) - flat, 0)
    total = 0.0
    for n, moved, weight in inputs.cases if cases is None else cases:
        target = _target(n, inputs, (slope_left, slope_right), rivals) + moved
        if target > n:
            total += weight * PRICE_OF_ALL
            continue
        row, column, odds = _likely(n * laws.below, target, slope_left, slope_right, heights)
        priced, whole = (np.bincount(row, z) for z in (odds * laws.prices[row, column], odds))
        total += weight * float(laws.weights @ (priced / whole))
    return total


def answer_law(
    reached: NDArray[np.float64],
    target: float,
    slope_left: float,
    slope_right: float,
    heights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The law of the chosen candidate if `reached` scores, maybe not an integer, lie at or below each; shape (m,).

    `heights` are the log prior weights, shape (m,); the last one may include a prior bonus of +inf.
    """
    law = np.zeros(len(reached))
    _, column, odds = _likely(reached[None, :], target, slope_left, slope_right, heights)
    law[column] = selection_law(odds)
    return law


def _likely(
    reached: NDArray[np.float64],
    target: float,
    slope_left: float,
    slope_right: float,
    heights: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Rows, candidates and weights of all answers that are not negligible, for `reached` of shape (k, m), row by row.

    Weights are relative to the largest one of their row.
    """
    # A candidate, at worst the last one, has penalty 0. Those of a penalty above `most` have no weight next to it.
    most = float(heights[-1] - heights[0]) - math.log(_NO_WEIGHT) + 1
    begins = np.hstack([np.zeros((len(reached), 1)), reached[:, :-1]])
    near = (reached >= target - most / slope_left) & (begins <= target + most / slope_right)
    near[reached[:, -1] < target] = True
    row, column = np.nonzero(near)

    # Utilities: the prior weight less the larger of both penalties.
    short = slope_left * np.maximum(target - reached[near], 0)
    short[column == len(heights) - 1] = 0.0
    utility = heights[column] - np.maximum(slope_right * np.maximum(begins[near] - target, 0), short)

    # Weights of the exponential mechanism among the candidates that have weight.
    largest = np.maximum.reduceat(utility, np.searchsorted(row, np.arange(len(reached))))
    weights = np.exp(utility - largest[row])
    likely = weights > _NO_WEIGHT
    return row[likely], column[likely], weights[likely]


def gap_crossed(rise: float, rivals: float, shift: float, slope_right: float, share: float = 1.0) -> float:
    """The number of ranks beyond the non-private one within which an empty candidate range is likely to be crossed.

    The range contains the `share` of the list, and the target lies `shift` above the non-private rank (1-alpha)(n+1).
    It has exp(share * rise) G times the weight of the candidate before it, against exp(-slope) for every rank before
    it.
    """
    return shift + (share * rise + math.log(max(rivals, 1.0))) / slope_right


def _start(of: Candidates | Spread, inputs: ChoiceInputs, sizes: tuple[int, ...]) -> tuple[int, int, int]:
    """The start of the descent: a closed form in Z = alpha n epsilon, which determines nearly everything."""
    z = float(1 - inputs.level) * inputs.n * inputs.epsilon
    many = 8.0 if isinstance(of, Candidates) or of.unit or of.around else of.shape.density
    size, rise = max(many * z * min(1, z / _SMALL), 10.0), min(0.3 * z, 20.0)
    return (
        int(np.argmin(np.abs(np.log(sizes) - math.log(size)))),
        int(np.argmin(np.abs(np.array(RISES) - rise))),
        int(np.argmin(np.abs(np.array(LEFTS) - 9))),
    )


def _descend(
    at: tuple[int, int, int],
    grids: tuple[int, int, int],
    price: Callable[[int, int, int], float],
    axes: tuple[int, ...] = (1, 2, 0),
) -> tuple[int, int, int]:
    """Coordinate descent over rise, left share and size, in single and double steps, until nothing improves."""
    moved = True
    while moved:
        moved = False
        for axis in axes:
            for step in (-1, 1, -2, 2):
                while True:
                    trial = list(at)
                    trial[axis] += step
                    if not 0 <= trial[axis] < grids[axis] or price(*trial) >= price(*at):
                        break
                    at, moved = (trial[0], trial[1], trial[2]), True
    return at


@lru_cache(maxsize=256)
def _laws(of: Candidates | Spread, size: int, alpha: float, gaps: float) -> ReferenceLaws:
    if isinstance(of, Spread):
        return reference_laws(of.edges(size), of, alpha, gaps)
    # For a long list every k-th candidate is evaluated.
    return reference_laws(of.edges[:: -(-of.size // _LONG)], law_of(of), alpha, gaps)


@lru_cache(maxsize=4096)
def _target(n: float, inputs: ChoiceInputs, slopes: tuple[float, float], rivals: float) -> float:
    """The approximate target rank for n records; the exact one of the certificate is computed after the choice."""
    # Marginal guarantees: the expected loss of the mechanism.
    level, slope = float(inputs.level), slopes[0]
    if inputs.weighted:
        return level * (n + 1) + weighted_loss(0.0, slope, rivals)
    if inputs.delta is None:
        lost = sharp_loss(1.0, slope, rivals)
        many = inputs.moves and (1 - level) * n * inputs.epsilon >= _TWO_SIDED
        if many or not inputs.rate:  # the two-sided certificate, whose gain hardly depends on the competitors
            lost = max(lost / 3, lost - 1.7 / sum(slopes))
        return level * (n + 1) - 1 + lost
    from scipy.special import ndtri

    # The random rank is D below the target, and the binomial count has the variance n q (1 - q).
    step = 0.25 / slope
    at = np.arange(0, (math.log1p(rivals) + 12) / slope, step) + step / 2
    missed = tail(at, slope, rivals)
    mean = float(missed.sum() * step)
    variance = float(2 * (missed * at).sum() * step) - mean**2
    return level * n + mean - float(ndtri(inputs.delta)) * math.sqrt(n * level * (1 - level) + variance) + 0.5
