"""(5) Fresh noise: the outcomes of consecutive calls are independent, of each other and of the data of earlier calls.

The first calls are made on one of two neighbours each, as a coin decides. The upper half of the outcomes is compared
with the next outcomes, and with those at the distance that the first half of the calls makes suspicious. Then calls on
one data set follow calls on records that are all low or all high, as a coin decides, and are compared with that coin.
Each comparison is Fisher's exact test of independent pairs.
"""

import numpy as np
from numpy.typing import NDArray

from confide.audit.finding import Finding
from confide.audit.neighbors import two_ends
from confide.audit.search import outcome
from confide.audit.subject import Scores, Subject

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
