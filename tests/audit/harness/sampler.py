"""Checks of the noise: samplers against their exact laws by Pearson's chi-square test, and fresh noise in every call.

For fresh noise, each of the first calls is made on one of two neighbours, chosen by a coin. The upper half of the
outcomes is compared with the next outcomes, and with outcomes at the distance where the first half of the calls
correlates most. Then each call on one data set follows a call on records that are all low or all high, chosen by a
coin, and is compared with that coin. Each comparison is Fisher's exact test of independent pairs.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from confide.selection import noisy_counts, select
from tests import exact
from tests.audit.harness.search import outcome
from tests.audit.harness.subject import Finding, Scores, Subject, two_ends

LEAST_EXPECTED = 10.0

MAGNITUDES: tuple[tuple[tuple[int, ...], float], ...] = (
    ((0, 0, 0, -1), 1.0),
    ((-30, -20, -10, 0, -5, -15, -45), 10.0),
    ((-7, -1, 0, -2), 1 / 3),
    ((-(10**6), -(10**6) - 7, -(10**6) - 20), 11.7),
    ((-(10**15), -(10**15) - 3 * 10**14, -(10**15) - 5 * 10**14), 4.1e14),
    ((2**61, 2**61 - 1, -(2**61)), 1.0),
)
"""Utilities and scales from 1 to the limit of 64 bits, for OpenDP's sampler alone."""

NOISE_SCALES = (0.3, 1.0, 7.3, 1e3, 1e6, 1e12)


def chi_square(draws: Sequence[float], law: Mapping[float, float]) -> float:
    """P-value of draws under a law; rare outcomes are pooled, and an impossible one gives 0.

    Examples
    --------
    >>> round(chi_square([0.0] * 52 + [1.0] * 48, {0.0: 0.5, 1.0: 0.5}), 3)
    0.689
    >>> chi_square([2.0], {0.0: 0.5, 1.0: 0.5})
    0.0
    """
    from scipy.stats import chi2

    counts = Counter(draws)
    if any(law.get(outcome, 0.0) <= 0 for outcome in counts):
        return 0.0
    outcomes = [outcome for outcome, chance in law.items() if chance > 0]
    expected = np.array([law[outcome] * len(draws) for outcome in outcomes])
    observed = np.array([float(counts[outcome]) for outcome in outcomes])
    rare = expected < LEAST_EXPECTED
    if rare.any():
        pooled = expected[rare].sum()
        expected, observed = np.append(expected[~rare], pooled), np.append(observed[~rare], observed[rare].sum())
        if pooled < LEAST_EXPECTED and len(expected) > 1:  # still too rare: merge with the smallest other cell
            smallest = int(np.argmin(expected[:-1]))
            expected[smallest], observed[smallest] = expected[smallest] + pooled, observed[smallest] + observed[-1]
            expected, observed = expected[:-1], observed[:-1]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def check_sampler(subject: Subject, runs: int, level: float) -> Finding:
    """Run the subject on three data sets and compare with its law."""
    assert subject.law is not None
    data = [subject.scores(data) for data in subject.datasets(subject.records)]
    chosen = (data[0], data[len(data) // 2], data[-2])
    found = [chi_square([subject.draw(scores) for _ in range(runs)], subject.law(scores)) for scores in chosen]
    return _finding(subject.name, found, level, f" of 3 x {runs} runs")


def check_magnitudes(runs: int, level: float) -> list[Finding]:
    """Check OpenDP's exponential mechanism and its discrete Laplace noise alone, across magnitudes; two findings."""
    found = []
    for utilities, scale in MAGNITUDES:
        u = np.array(utilities, dtype=np.int64)
        gaps = (u.astype(object) - max(utilities)).astype(np.float64)  # exact: 64-bit differences may overflow
        law = exact.law(gaps, scale)
        draws = [float(select(u, scale)) for _ in range(runs)]
        found.append(chi_square(draws, {float(i): float(p) for i, p in enumerate(law)}))
    how = f", {len(MAGNITUDES)} magnitudes x {runs} runs of OpenDP's sampler"
    findings = [_finding("opendp exponential", found, level, how)]
    runs *= 4
    zeros = np.zeros(runs, dtype=np.int64)
    found = [chi_square(*_in_cells(noisy_counts(zeros, scale), scale)) for scale in NOISE_SCALES]
    how = f", {len(NOISE_SCALES)} scales x {runs} draws of OpenDP's discrete Laplace"
    return [*findings, _finding("opendp discrete laplace", found, level, how)]


def _finding(name: str, found: Sequence[float], level: float, how: str) -> Finding:
    """Finding from the smallest p-value, multiplied by their number (Bonferroni)."""
    p = min(1.0, len(found) * min(found))
    return Finding(name, "sampler", level, p, p >= level, f"chi-square p-value{how}, least allowed")


def _in_cells(draws: NDArray[np.int64], scale: float) -> tuple[list[float], dict[float, float]]:
    """Draws in about forty cells of equal width around 0, the outer two unbounded, with exact cell probabilities."""
    width = max(1, round(scale / 5))
    edges = width * np.arange(-20, 20)  # a cell holds edge < z <= next edge

    def up_to(z: NDArray[np.int64]) -> NDArray[np.float64]:  # P(noise <= z), with P(z) = (1-a)/(1+a) a^|z|
        log_a = -1 / scale
        half = 1 / (1 + math.exp(log_a))
        left = np.exp(log_a * np.maximum(-z, 0)) * half
        right = 1 - np.exp(log_a * (np.maximum(z, 0) + 1)) * half
        return np.where(z < 0, left, right)

    chances = np.diff(np.concatenate([[0.0], up_to(edges), [1.0]]))
    cells = np.searchsorted(edges, draws, side="left")
    return cells.astype(float).tolist(), {float(i): float(p) for i, p in enumerate(chances)}


Bits = NDArray[np.bool_]
_PILOT = 30


def check_fresh(subject: Subject, runs: int, rng: np.random.Generator, level: float) -> Finding:
    """Run the subject `runs` times on neighbours with varying outcomes, and test whether calls are independent."""
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
    """Neighbours at the two ends whose outcomes divide most evenly; they are run in turn."""
    n, more = subject.records, int(subject.claims.neighbors == "add_remove")
    pairs = [
        (two_ends(subject.atoms, n, high), two_ends(subject.atoms, n + more, high + 1))
        for high in range(0, n, max(1, n // 10))
    ]
    drawn = np.array([[outcome(subject.draw, pair[i % 2]) for pair in pairs] for i in range(_PILOT)])
    return pairs[max(range(len(pairs)), key=lambda i: 0.5 - abs(_upper_half(drawn[:, i]).mean() - 0.5))]


def _upper_half(outcomes: NDArray[np.float64]) -> Bits:
    """Outcomes above the cut that divides them most evenly; their order is not used."""
    values, counts = np.unique(outcomes, return_counts=True)
    below = np.cumsum(counts) / len(outcomes)
    cut: Bits = outcomes > values[np.abs(below - 0.5).argmin()]
    return cut


def _apart(bits: Bits, lag: int) -> tuple[Bits, Bits]:
    """Pairs of entries `lag` apart without common positions, so that pairs are independent if the calls are."""
    first = np.arange(len(bits) - lag)
    first = first[first // lag % 2 == 0]
    return bits[first], bits[first + lag]


def _suspicious(bits: Bits, most: int) -> int:
    """Distance, from 1 to `most`, at which bits correlate most."""
    centered = bits - bits.mean()
    spectrum = np.abs(np.fft.rfft(centered, 2 * len(bits))) ** 2
    correlation = np.abs(np.fft.irfft(spectrum))[1 : most + 1] / np.sqrt(len(bits) - np.arange(1, most + 1))
    return int(correlation.argmax()) + 1


def _dependence(one: Bits, two: Bits) -> float:
    """P-value of Fisher's exact test."""
    from scipy.stats import fisher_exact

    table = [[int((one & two).sum()), int((one & ~two).sum())], [int((~one & two).sum()), int((~one & ~two).sum())]]
    return float(fisher_exact(table).pvalue)
