"""Where a black box gives itself away: neighbouring data sets, and an event that tells them apart.

All pairs are tried briefly, the better half for longer, and so on. What was drawn under a data set is kept, so that a
chain of neighbours costs hardly more than its members. The search only guides the attack, which runs everything afresh.

(5) Fresh noise: the outcomes of consecutive calls are independent, of each other and of the data of earlier calls.

The first calls are made on one of two neighbours each, as a coin decides. The upper half of the outcomes is compared
with the next outcomes, and with those at the distance that the first half of the calls makes suspicious. Then calls on
one data set follow calls on records that are all low or all high, as a coin decides, and are compared with that coin.
Each comparison is Fisher's exact test of independent pairs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from confide.audit.finding import Finding
from confide.audit.subject import (
    Draw,
    Event,
    Pair,
    Scores,
    Subject,
    around,
    best_event,
    chains,
    spread_pairs,
    steepest,
    two_end_pairs,
    two_ends,
)

SIZES = (20, 100, 500)
"""Numbers of records that are tried besides the small data sets, where the subject allows it."""

RAISED = -math.inf
"""The outcome of a run that ended in an error: an error tells as much as a threshold."""

_FINALISTS, _FEWEST = 12, 6


@dataclass(frozen=True)
class Target:
    """Neighbours, and an event that is likelier under the first of them."""

    first: Scores
    second: Scores
    event: Event
    about: str


class Seen:
    """What was drawn under each data set, and more on demand."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._outcomes: dict[bytes, list[float]] = {}

    def of(self, scores: Scores, runs: int) -> NDArray[np.float64]:
        """The first `runs` outcomes under a data set, in the order in which they were drawn."""
        outcomes = self._outcomes.setdefault(scores.tobytes(), [])
        while len(outcomes) < runs:
            outcomes.append(outcome(self._draw, scores))
        return np.array(outcomes[:runs])


def outcome(draw: Draw, scores: Scores) -> float:
    """One run: the threshold, or `RAISED`."""
    try:
        return draw(scores.copy())
    except Exception:
        return RAISED


def search(subject: Subject, runs: int) -> Target:
    """The pair and event for an attack with `runs` runs per data set, found in 3 to 4 x `runs` runs.

    However few they are, every data set is run six times. A mechanism that fails on ordinary data raises its own error.
    """
    subject.draw(two_ends(subject.atoms, subject.records, subject.records // 2))
    seen = Seen(subject.draw)
    pairs = list(_pairs(subject, seen, min(100, max(2 * _FEWEST, runs // 500))))
    effort = max(_FEWEST, runs // (2 * len(pairs)))
    while len(pairs) > _FINALISTS:
        promises = [_best(seen, pair, effort, runs)[0] for pair in pairs]
        kept = np.argsort(promises)[::-1][: max(_FINALISTS, len(pairs) // 2)]
        pairs = [pairs[i] for i in kept]
        effort *= 2
    finals = [_best(seen, pair, max(effort, runs // _FINALISTS), runs) for pair in pairs]
    return max(finals, key=lambda final: final[0])[1]


def _best(seen: Seen, pair: Pair, effort: int, runs: int) -> tuple[float, Target]:
    one, two = seen.of(pair.first, effort), seen.of(pair.second, effort)
    forth, back = best_event(one, two, runs), best_event(two, one, runs)
    if forth[0] >= back[0]:
        return forth[0], Target(pair.first, pair.second, forth[1], pair.about)
    return back[0], Target(pair.second, pair.first, back[1], pair.about)


def _pairs(subject: Subject, seen: Seen, brief: int) -> Iterator[Pair]:
    atoms, n, relation = subject.atoms, subject.records, subject.claims.neighbors
    split = sorted({0, 1, n, *np.linspace(1, n - 1, min(n - 1, 12)).astype(int).tolist()})
    yield from two_end_pairs(atoms, n, split, relation)
    yield from spread_pairs(n, relation)
    if not subject.any_size:
        return

    def outcomes(size: int, high: int) -> NDArray[np.float64]:
        return seen.of(two_ends(atoms, size, high), brief)

    for size in SIZES:
        center = steepest(partial(outcomes, size), size)
        yield from two_end_pairs(atoms, size, around(center, size), relation)
        yield from spread_pairs(size, relation)
    if relation == "add_remove":
        yield from chains(atoms)


Bits = NDArray[np.bool_]
_PILOT = 30


def check_fresh(subject: Subject, runs: int, rng: np.random.Generator, level: float) -> Finding:
    """Run the subject `runs` times on neighbours whose outcome varies, and test for what one call tells of another."""
    data = _most_varied(subject)
    outcomes = np.array([outcome(subject.draw, data[coin]) for coin in rng.integers(2, size=runs // 2)])
    coins = rng.integers(2, size=runs // 4)
    before = [two_ends(subject.atoms, subject.records, high) for high in (0, subject.records)]
    after = np.array([(outcome(subject.draw, before[coin]), outcome(subject.draw, data[0]))[1] for coin in coins])
    p = min(1.0, 3 * min(*repeats(_upper_half(outcomes)), _dependence(coins > 0, _upper_half(after))))
    detail = f"{runs} calls, most of them on two neighbours; p-value {p:.2g} of independence, at least {level:.2g}"
    return Finding(subject.name, "fresh noise", level, p, p >= level, detail)


def repeats(bits: Bits) -> tuple[float, float]:
    """Two p-values of "the bits are independent", shape (k,): from neighbours, and from bits further apart.

    Examples
    --------
    >>> coins = np.random.default_rng(1).random(1000) < 0.5
    >>> [min(repeats(bits)) > 1e-6 for bits in (coins, np.repeat(coins[:500], 2), np.tile(coins[:200], 5))]
    [True, False, False]
    """
    half = len(bits) // 2
    if half < 4:
        return 1.0, 1.0
    later = bits[half:]
    lag = _suspicious(bits[:half], len(later) // 2)
    return _dependence(*_apart(bits, 1)), _dependence(*_apart(later, lag))


def _most_varied(subject: Subject) -> tuple[Scores, Scores]:
    """Neighbours at the two ends whose outcomes divide most evenly; they are run by turns."""
    n, more = subject.records, int(subject.claims.neighbors == "add_remove")
    pairs = [
        (two_ends(subject.atoms, n, high), two_ends(subject.atoms, n + more, high + 1))
        for high in range(0, n, max(1, n // 10))
    ]
    drawn = np.array([[outcome(subject.draw, pair[i % 2]) for pair in pairs] for i in range(_PILOT)])
    return pairs[max(range(len(pairs)), key=lambda i: 0.5 - abs(_upper_half(drawn[:, i]).mean() - 0.5))]


def _upper_half(outcomes: NDArray[np.float64]) -> Bits:
    """Which outcomes lie above the cut that divides them most evenly; it takes no notice of their order."""
    values, counts = np.unique(outcomes, return_counts=True)
    below = np.cumsum(counts) / len(outcomes)
    cut: Bits = outcomes > values[np.abs(below - 0.5).argmin()]
    return cut


def _apart(bits: Bits, lag: int) -> tuple[Bits, Bits]:
    """Pairs of entries `lag` apart, no position in two of them: so the pairs are independent if the calls are."""
    first = np.arange(len(bits) - lag)
    first = first[first // lag % 2 == 0]
    return bits[first], bits[first + lag]


def _suspicious(bits: Bits, most: int) -> int:
    """The distance, from 1 to `most`, at which bits correlate most."""
    centered = bits - bits.mean()
    spectrum = np.abs(np.fft.rfft(centered, 2 * len(bits))) ** 2
    correlation = np.abs(np.fft.irfft(spectrum))[1 : most + 1] / np.sqrt(len(bits) - np.arange(1, most + 1))
    return int(correlation.argmax()) + 1


def _dependence(one: Bits, two: Bits) -> float:
    """The p-value of Fisher's exact test."""
    from scipy.stats import fisher_exact

    table = [[int((one & two).sum()), int((one & ~two).sum())], [int((~one & two).sum()), int((~one & ~two).sum())]]
    return float(fisher_exact(table).pvalue)
