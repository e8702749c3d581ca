"""Counts that another engine made: laws of noise, target ranks, and coverage over all histograms and all noise."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from scipy import stats

from confide.errors import InputError, InputTypeError
from confide.mechanisms import Noise, PublishedHistogram, StatedPrivacy, published_histogram_for
from confide.selection import noisy_counts, with_contrib
from tests.exact import histograms, leave_one_out, over_noisy_numbers
from tests.refused import refused

LEVEL, HALF = Fraction(9, 10), Fraction(1, 2)
RANKS = {
    ("discrete_laplace", 1.0): (1.58, 1.90, 2.20),
    ("discrete_laplace", 2.0): (2.54, 3.37, 4.08),
    ("discrete_laplace", 20.0): (20.50, 30.37, 37.85),
    ("discrete_gaussian", 1.0): (1.21, 1.50, 1.74),
    ("discrete_gaussian", 4.0): (3.53, 4.84, 5.86),
}
"""The cost in ranks of one, two and three copies of noise."""


@pytest.mark.parametrize(("kind", "scale"), RANKS)
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_the_noise_costs_so_many_ranks_whatever_n_and_the_bins(kind, scale, copies):
    """E[X | X > 0] by direct sums: the limit is the largest integer that leaves so many ranks."""
    noise, one, law = Noise(kind, scale, copies), np.abs(np.arange(-3000, 3001)) / scale, np.ones(1)
    one = np.exp(-one if kind == "discrete_laplace" else -(one**2) / 2)
    for _ in range(copies):
        law = np.convolve(law, one / one.sum())
    above = law[len(law) // 2 + 1 :]
    cost = np.arange(1, len(above) + 1) @ above / above.sum()
    assert noise.cost == pytest.approx(cost, rel=1e-9)
    assert cost == pytest.approx(RANKS[kind, scale][copies - 1], abs=0.0051)
    for m, n in itertools.product((32, 2048), (10**4, 10**6, 10**9)):
        ranks = n - published_histogram_for(LEVEL, noise, m, n, None).beyond - LEVEL * (n + 1)
        assert cost <= ranks < cost + 1 + 1e-6


def test_mass_outside_a_table_counts_as_unlimited_noise():
    """Each noise may be outside: the coverage is less by their number times the missing mass."""
    half, n = Noise.table([0.4, 0.2, 0.1 - 4e-13]), 10**6
    assert half.missing == pytest.approx(8e-13, rel=1e-3)
    whole = Noise.table([0.4, 0.2, 0.1])
    lost = [PublishedHistogram(noise, 9).certified(LEVEL, 2**20, n, None) for noise in (whole, half)]
    assert float(lost[0] - lost[1]) == pytest.approx(2**20 * half.missing, rel=1e-3)


SMALL = {
    "flat top": Noise.table([0.4, 0.2, 0.1]),
    "two makers": Noise.table([0.5, 0.25], copies=2),
    "narrow": Noise.table([0.98, 0.01]),
    "long tail": Noise.table([0.7, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01]),
}
COSTS = {"flat top": 4 / 3, "two makers": 1.2, "narrow": 1, "long tail": 3}
"""By hand: (1 * 0.2 + 2 * 0.1)/0.3; (1 * 4 + 2 * 1)/5; 1; and (1 + 2 + 3 + 4 + 5)/5 beyond a gap of 1."""


def unchanged(noisy):
    return noisy


def clipped(noisy):
    return np.maximum(noisy, 0)


def suppressed(noisy):
    return np.where(noisy < 3, 0, noisy)


def index_law(mechanism, m, change=unchanged):
    """The law of the index over all noise vectors, by histogram; `change` is what an engine does with its counts."""
    law = mechanism.noise.law
    for _ in range(mechanism.noise.copies - 1):
        law = np.convolve(law, mechanism.noise.law)
    half = len(law) // 2
    draws = list(itertools.product(range(-half, half + 1), repeat=m))
    weights = [math.prod(law[z + half] for z in draw) for draw in draws]

    @lru_cache
    def of(h):
        p = np.zeros(m)
        for draw, weight in zip(draws, weights, strict=True):
            p[mechanism.choose(change(np.array(h) + draw))] += weight
        return p

    return of


def least_coverage(mechanism, m, n, change=unchanged):
    law = index_law(mechanism, m, change)
    return min(leave_one_out(law, h) for h in histograms(n + 1, m))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("m", "n"), [(2, 4), (3, 3)])
def test_coverage_over_all_histograms_and_noise(name, m, n):
    """Theorem E1 for every limit, and Proposition E2 for counts that were clipped at 0."""
    assert SMALL[name].cost == pytest.approx(COSTS[name])
    for beyond in range(n + 1):
        mechanism = PublishedHistogram(SMALL[name], beyond)
        promised = float(mechanism.certified(LEVEL, m, n, None))
        assert promised == pytest.approx(max(0, n - beyond - COSTS[name]) / (n + 1))
        for change in (unchanged, clipped):
            assert least_coverage(mechanism, m, n, change) >= promised - 1e-12


def sized_coverage(noise, scale, n, made, change=unchanged):
    """The least coverage of n + 1 records in 3 bins, on average over a noisy number of this scale."""
    laws = lru_cache(lambda beyond: index_law(PublishedHistogram(noise, beyond), 3, change))

    def coverage(h):
        at = lru_cache(lambda beyond: leave_one_out(laws(beyond), h))

        def given(counted):
            mechanism = made(HALF, noise, 3, counted, scale)
            return 1.0 if mechanism is None else at(min(mechanism.beyond, n + 12))

        return over_noisy_numbers(given, n, scale, math.ceil(14 * scale))

    return min(map(coverage, histograms(n + 1, 3)))


@pytest.mark.long
@pytest.mark.parametrize(("name", "scale"), [("flat top", 0.6), ("two makers", 1.0), ("narrow", 3.0)])
@pytest.mark.parametrize("change", [unchanged, clipped])
def test_coverage_for_a_secret_number(name, scale, change):
    """Theorem E1 with a noisy number of records, from one record on, and Proposition E2 for it."""
    for n in range(1, 8):
        assert sized_coverage(SMALL[name], scale, n, published_histogram_for, change) >= 0.5 - 1e-6


@pytest.mark.slow
def test_a_limit_that_is_too_large_covers_too_little():
    """The control: three records more beyond the threshold."""

    def larger(*stated):
        made = published_histogram_for(*stated)
        return made and replace(made, beyond=made.beyond + 3)

    assert sized_coverage(SMALL["narrow"], 0.6, 7, larger) < 0.45


def test_suppressed_counts_break_the_promise():
    """The control: counts below 3 set to 0 cover less than is certified."""
    mechanism, n = PublishedHistogram(SMALL["flat top"], 0), 5
    assert least_coverage(mechanism, 3, n, suppressed) < float(mechanism.certified(LEVEL, 3, n, None)) - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Noise.discrete_laplace(2.0), Noise.discrete_gaussian(1.5)])
def test_makers_draw_from_the_stated_law(noise):
    """OpenDP's draws against the table: chi-square at 5e-7."""
    zeros, runs = np.zeros(20_000, dtype=np.int64), 20_000
    if noise.kind == "discrete_laplace":
        drawn = noisy_counts(zeros, noise.parameter)
    else:
        space = vector_domain(atom_domain(T="i64")), l2_distance(T="i64")
        drawn = np.array(with_contrib(lambda: make_gaussian(*space, scale=noise.parameter))(zeros))
    half, law = len(noise.law) // 2, noise.law
    z = np.arange(-half, half + 1)
    seen = np.array([(drawn == v).sum() for v in z])
    keep = law * runs > 10
    seen, expected = np.append(seen[keep], seen[~keep].sum()), np.append(law[keep], law[~keep].sum()) * runs
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 5e-7


@pytest.mark.parametrize("noise", [Noise.discrete_laplace(0.05), Noise.discrete_gaussian(300.0), SMALL["two makers"]])
def test_laws_are_whole_and_symmetric(noise):
    assert noise.law.sum() == pytest.approx(1, abs=1e-12)
    assert (noise.law == noise.law[::-1]).all()


def test_few_records_have_no_limit():
    """The answer is then +inf: 42 records are too few for a cost of 3.37 ranks, and 43 are enough."""
    noise = Noise.discrete_laplace(2.0, 2)
    assert published_histogram_for(LEVEL, noise, 128, 42, None) is None
    assert published_histogram_for(LEVEL, noise, 128, 43, None).beyond == 0


@pytest.mark.parametrize(
    ("made", "argument"),
    [
        (lambda: Noise.discrete_laplace(0.0), "scale"),
        (lambda: Noise.discrete_laplace(1e5), "scale"),
        (lambda: Noise.discrete_gaussian("1"), "sigma"),
        (lambda: Noise.discrete_laplace(1.0, copies=0), "copies"),
        (lambda: Noise("laplace", 1.0), "kind"),
        (lambda: Noise.table([]), "probabilities"),
        (lambda: Noise.table([0.4, 0.2]), "probabilities"),
        (lambda: Noise.table([0.2, 0.4]), "probabilities"),
        (lambda: Noise.table([float("nan"), 0.4]), "probabilities"),
        (lambda: Noise.parse("discrete_laplace(epsilon=1)"), "noise"),
        (lambda: Noise.parse("laplace(scale=1)"), "noise"),
        (lambda: Noise.parse("discrete_laplace(scale=1,copies=1.5)"), "noise"),
        (lambda: Noise.parse("discrete_laplace(scale=two)"), "noise"),
        (lambda: Noise.parse("table(probabilities=1)"), "noise"),
        (lambda: StatedPrivacy.of(SMALL["narrow"], 5), "epsilon"),
        (lambda: Noise.table([0.7, 0.1, 0.05], copies=2).cost, "copies"),
    ],
)
def test_refused(made, argument):
    with refused((InputError, InputTypeError), argument):
        made()


def test_privacy_follows_from_one_copy():
    """Of two makers one may be honest: their law counts once."""
    laplace, gaussian = Noise.discrete_laplace(2.0, 2), Noise.discrete_gaussian(2.0, 3)
    public, secret = StatedPrivacy.of(laplace, 100), StatedPrivacy.of(laplace, None)
    assert (public.neighbors, public.epsilon, public.add_remove) == ("replace_one", 1.0, None)
    assert (secret.neighbors, secret.epsilon, secret.replace_one) == ("add_remove", 0.5, 1.0)
    assert (StatedPrivacy.of(gaussian, 100).rho, StatedPrivacy.of(gaussian, None).rho) == (0.25, 0.125)
    assert StatedPrivacy.of(laplace, 100, 3.0).epsilon == 3.0
    assert StatedPrivacy.of(laplace, None, size_scale=20.0).epsilon == pytest.approx(0.55)
    assert StatedPrivacy.of(gaussian, None, size_scale=2.0).rho == pytest.approx(0.25)
    assert "as the maker of the counts states" in str(public)
