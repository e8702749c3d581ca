"""The noisy histogram, also of counts that another engine made: noise, privacy, coverage by enumeration, bins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import pytest
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from scipy import stats

from confide.candidates import Candidates, Spread
from confide.core import histogram_size
from confide.errors import InputError, InputTypeError
from confide.guarantee import RecordCount
from confide.mechanisms import Noise, PublishedHistogram, StatedPrivacy, published_histogram_for
from confide.mechanisms.noisy_histogram import NoisyHistogram, noisy_histogram_for
from confide.selection import noisy_counts, with_contrib
from confide.selection.draws import laplace
from tests.builders import slow
from tests.exact import (
    added,
    assert_drawn_from,
    histograms,
    last_rule_laws,
    leave_one_out,
    over_noisy_numbers,
    replaced,
    worst_log_ratio,
)
from tests.refused import refused

TENTH = Fraction(1, 10)


def unit_pmf(scale, reach):
    a = math.exp(-1 / scale)
    z = np.arange(-reach, reach + 1)
    return z, (1 - a) / (1 + a) * a ** np.abs(z)


def law_of(mechanism, m, reach):
    """The output law by histogram, over all noise values up to `reach` in each bin."""
    return partial(last_rule_laws(unit_pmf(mechanism.scale, reach)[1], m), beyond=mechanism.beyond)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.4, 1.0, 7.3])
def test_installed_noise_matches_its_law(scale):
    """Chi-square at level 1e-6 of OpenDP's discrete Laplace sampler."""
    draws = noisy_counts(np.zeros(40_000, np.int64), scale)
    reach = math.ceil(scale * math.log(40_000 / 40))
    z, p = unit_pmf(scale, reach)
    observed = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(z)).astype(float)
    wanted = p.copy()
    wanted[[0, -1]] /= 1 - math.exp(-1 / scale)  # the end cells contain the tails
    assert wanted.sum() == pytest.approx(1, abs=1e-12)
    assert stats.chisquare(observed, 40_000 * wanted).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3])
def test_scales_meet_opendp_privacy_map(epsilon):
    public = noisy_histogram_for(Fraction(1, 2), epsilon, 10_000)
    secret = noisy_histogram_for(Fraction(1, 2), epsilon, 10_000, 20.0)
    assert laplace(public.scale).map(2) <= epsilon * (1 + 1e-15)
    assert laplace(secret.scale).map(1) <= epsilon * (1 + 1e-15)
    assert epsilon * (1 - 1e-12) < public.replace_one <= epsilon
    assert epsilon * (1 - 1e-12) < secret.add_remove <= epsilon


@pytest.mark.parametrize("scale", [0.5, *slow([1.0])])
def test_privacy_by_enumeration(scale):
    """The privacy loss of the release is at most that of the noisy counts, under both adjacencies."""
    mechanism = NoisyHistogram(1, scale)
    law = law_of(mechanism, 3, math.ceil(34 * scale))
    assert worst_log_ratio(law, histograms(4, 3), replaced) <= mechanism.replace_one + 1e-6
    starts = [h for n in range(4) for h in histograms(n, 3)]
    worst = worst_log_ratio(law, starts, added)
    assert 0.5 / scale < worst <= mechanism.add_remove + 1e-6


@pytest.mark.long
def test_mechanism_matches_its_law():
    mechanism = NoisyHistogram(2, 1.0)
    assert_drawn_from(mechanism, [2, 3, 2], law_of(mechanism, 3, 30)((2, 3, 2)), 4000)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "scale"), [(3, 4, 1.0), (9, 3, 0.5), (6, 4, 0.5)])
def test_public_coverage_for_every_multiset(n, m, scale):
    """Theorem W3 for every limit: the claim holds, the worst data are about c ranks above it, and noise is not free."""
    worst = []
    for beyond in range(n + 1):
        law = law_of(NoisyHistogram(beyond, scale), m, math.ceil(14 * scale))
        worst.append(min(leave_one_out(law, h) for h in histograms(n + 1, m)))
    claims = [float(NoisyHistogram(beyond, scale).certified(1 - TENTH, m, RecordCount(n))) for beyond in range(n + 1)]
    ranks = (np.array(worst) - claims) * (n + 1)
    assert ranks.min() >= -1e-5
    assert ranks.max() <= NoisyHistogram(0, scale).cost(3, 100) + 1
    if m == 4:
        free = (n - np.arange(n + 1)) / (n + 1)
        assert (free - worst).max() > 1e-3


@pytest.mark.slow(unless="1/2-4.0-9")
@pytest.mark.parametrize(("level", "epsilon", "n"), [("9/10", 1.0, 1000), ("1/2", 4.0, 9), ("99/100", 0.1, 9000)])
def test_limits_are_the_largest_that_are_certified(level, epsilon, n):
    """The cost is E[X | X > 0], summed term by term; one record more beyond the threshold is too many."""
    level, mechanism = Fraction(level), noisy_histogram_for(Fraction(level), epsilon, n)
    z, p = unit_pmf(mechanism.scale, 3000)
    cost = float(z[3001:] @ p[3001:] / p[3001:].sum())
    assert mechanism.cost(3, n) == pytest.approx(cost, rel=1e-9)
    claims = [NoisyHistogram(limit, mechanism.scale).certified(level, 9, RecordCount(n)) for limit in range(n + 1)]
    assert np.array(claims, float) == pytest.approx(np.maximum(n - np.arange(n + 1) - cost, 0) / (n + 1))
    assert claims[mechanism.beyond] >= level > claims[mechanism.beyond + 1]
    assert mechanism.rank_law(n, 9) is None
    assert mechanism.coverage_at_most(n, 9) == 1


@lru_cache
def least_sized_coverage(level, epsilon, size_scale, n, made=noisy_histogram_for, more=0):
    """The least leave-one-out coverage of n + 1 records in 3 bins, on average over the noisy number of records."""
    laws = last_rule_laws(unit_pmf(1 / epsilon, math.ceil(14 / epsilon))[1], 3)

    def coverage(h):
        at = lru_cache(lambda beyond: leave_one_out(partial(laws, beyond=beyond), h))

        def given(counted):
            mechanism = made(level, epsilon, counted, size_scale)
            return 1.0 if mechanism is None else at(min(mechanism.beyond + more, 3 * n + 60))

        return over_noisy_numbers(given, n, size_scale, math.ceil(14 * size_scale))

    return min(map(coverage, histograms(n + 1, 3)))


SECRET = [("1/2", 2.5, 1.0), ("3/5", 2.0, 0.4), ("1/2", 1.0, 3.0), ("9/10", 2.0, 30.0)]


@pytest.mark.long
@pytest.mark.parametrize(("level", "epsilon", "size_scale"), SECRET)
def test_secret_coverage_for_every_multiset_and_every_n(level, epsilon, size_scale):
    """Theorem W3b from one record on; numbers on both sides of the least noisy one that has a limit."""
    level = Fraction(level)
    for n in range(1, 12):
        assert least_sized_coverage(level, epsilon, size_scale, n) >= float(level) - 2e-6


@pytest.mark.long
def test_three_records_more_beyond_the_threshold_are_too_many():
    """The control of the enumeration for a secret number."""
    assert min(least_sized_coverage(Fraction(1, 2), 2.5, 1.0, n, more=3) for n in range(5, 12)) < 0.48


@pytest.mark.slow
def test_few_noisy_records_need_the_threshold_inf():
    """The control of the least noisy number: with a limit for all, a single record is often missed."""

    def always(level, epsilon, counted, size_scale):
        limit = math.floor((1 - level) * (counted + 1) - 3)
        return NoisyHistogram(limit, 1 / epsilon) if limit >= 0 else None

    assert least_sized_coverage(Fraction(9, 10), 2.0, 30.0, 1, always) < 0.85


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "alpha", "epsilon"), [(500, 0.1, 1.0), (1000, 0.1, 3.0), (5000, 0.1, 1.0), (2000, 0.02, 1.0)]
)
def test_number_of_bins_is_near_the_best(n, alpha, epsilon):
    """Root mean square of what is covered beyond the level, for uniform and for crowded scores of many sizes together.

    No other number of bins is 15 % better. Crowded scores are the 8th powers of uniform ones.
    """
    rng, runs, spread = np.random.default_rng(0), 2000, Spread("probability")
    level = 1 - Fraction(str(alpha))
    mechanism = noisy_histogram_for(level, epsilon, n)
    chosen = histogram_size(spread, n, (level,), mechanism.scale)
    p = -math.expm1(-1 / mechanism.scale)

    def mean_square(size, power):
        edges = Candidates.quantiles(spread, size).edges
        shrunk = 1 - np.arange(runs)[:, None] / runs * 2 / size  # the largest score: candidates lie anywhere among them
        below = np.column_stack([np.minimum(edges / shrunk, 1) ** (1 / power), np.ones(runs)])
        counts = rng.multinomial(n, np.diff(below, prepend=0))
        noisy = counts + rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
        return np.mean((below[np.arange(runs), last_rule(noisy, mechanism.beyond)] - (1 - alpha)) ** 2)

    def price(size):
        return math.sqrt(mean_square(size, 1) + mean_square(size, 8))

    ours = price(chosen)  # standard errors are below 5 % of it
    assert all(ours < 1.15 * price(round(chosen * share)) for share in (0.3, 0.5, 0.75, 1.5, 2.5))
    assert ours < 0.9 * price(chosen // 10)
    assert ours < 0.9 * price(chosen * 10)


def last_rule(noisy, limit):
    """The first candidate from which on at most `limit` noisy records lie beyond each."""
    beyond = np.cumsum(noisy[:, :0:-1], axis=1)
    failed = beyond > limit
    return noisy.shape[1] - 1 - np.where(failed.any(axis=1), failed.argmax(axis=1), noisy.shape[1] - 1)


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
    lost = [PublishedHistogram(noise, 9).certified(LEVEL, 2**20, RecordCount(n)) for noise in (whole, half)]
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
        promised = float(mechanism.certified(LEVEL, m, RecordCount(n)))
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
    assert least_coverage(mechanism, 3, n, suppressed) < float(mechanism.certified(LEVEL, 3, RecordCount(n))) - 0.05


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
        (lambda: Noise("table", 2.0), "probabilities"),
        (lambda: Noise("discrete_laplace", (1.0,)), "scale"),
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
