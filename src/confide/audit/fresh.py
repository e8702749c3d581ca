"""(5) Fresh noise: the outcomes of consecutive calls are independent, of each other and of the data of earlier calls.

Each call is made on one of two neighbours, as a coin decides. Halves of outcomes are compared by Fisher's exact test:
calls with the next ones, calls with later ones at the distance that the first half of the calls makes suspicious, and
the coins of calls with the next outcomes. Under independence the p-values are valid however many calls there are.
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
    data, cut = _most_varied(subject)
    coins = rng.random(runs) < 0.5
    outcomes = np.array([outcome(subject.draw, data[int(coin)]) for coin in coins])
    p = fresh_p_value(outcomes > cut, coins)
    detail = f"{runs} calls on two neighbours; p-value {p:.2g} of independence, at least {level:.2g}"
    return Finding(subject.name, "fresh noise", level, p, p >= level, detail)


def fresh_p_value(bits: Bits, coins: Bits) -> float:
    """A p-value of "bit i depends on coin i alone", from consecutive bits and fair coins, each of shape (k,).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> coins = rng.random(400) < 0.5
    >>> fresh_p_value(rng.random(400) < 0.5, coins) > 1e-6, fresh_p_value(np.repeat(coins[::4], 4), coins) > 1e-6
    (True, False)
    """
    half = len(bits) // 2
    if half < 4:
        return 1.0
    later = bits[half:]
    lag = _suspicious(bits[:half], len(later) // 2)
    compared = (_apart(bits, bits, 1), _apart(later, later, lag), _apart(coins, bits, 1))
    tests = [_dependence(one, two) for one, two in compared]
    return min(1.0, len(tests) * min(tests))


def _most_varied(subject: Subject) -> tuple[tuple[Scores, Scores], float]:
    """Neighbours at the two ends, and the cut that divides the outcomes of both most evenly."""
    best, chosen = -1.0, None
    n, more = subject.records, int(subject.claims.neighbors == "add_remove")
    for high in range(0, n, max(1, n // 10)):
        data = two_ends(subject.atoms, n, high), two_ends(subject.atoms, n + more, high + 1)
        drawn = np.array([outcome(subject.draw, data[i % 2]) for i in range(_PILOT)])
        for cut in np.unique(drawn):
            above = float((drawn > cut).mean())
            if min(above, 1 - above) > best:
                best, chosen = min(above, 1 - above), (data, float(cut))
    assert chosen is not None
    return chosen


def _apart(bits: Bits, others: Bits, lag: int) -> tuple[Bits, Bits]:
    """Pairs of entries `lag` apart, no position in two of them: so the pairs are independent if the calls are."""
    first = np.arange(len(bits) - lag)
    first = first[first // lag % 2 == 0]
    return bits[first], others[first + lag]


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
