"""Counts that another engine made: laws of noise, target ranks, and coverage over all histograms and all noise."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from scipy import stats

from confide.errors import InputError, InputTypeError
from confide.mechanisms import Noise, PublishedHistogram, StatedPrivacy, noisy_histogram_for, published_histogram_for
from confide.selection import noisy_counts, with_contrib
from tests.exact import histograms, leave_one_out
from tests.refused import refused

LEVEL = Fraction(9, 10)
BINS = (32, 128, 512, 2048)
RANKS = {
    ("discrete_laplace", 1.0): [(3.0, 6.1, 12.2, 24.5), (4.2, 8.6, 17.3, 34.6), (5.2, 10.6, 21.2, 42.4)],
    ("discrete_laplace", 2.0): [(6.2, 12.6, 25.2, 50.5), (8.8, 17.8, 35.7, 71.4), (10.8, 21.8, 43.7, 87.5)],
    ("discrete_gaussian", 1.0): [(2.2, 4.5, 9.0, 18.0), (3.1, 6.4, 12.8, 25.5), (3.8, 7.8, 15.6, 31.3)],
}
"""The mean rank deficit for one, two and three copies of noise, in 32 to 2048 bins."""


@pytest.mark.parametrize(("kind", "scale"), RANKS)
@pytest.mark.parametrize("copies", [1, 2, 3])
def test_the_noise_costs_so_many_ranks_whatever_n(kind, scale, copies):
    noise = Noise(kind, scale, copies)
    for m, ranks in zip(BINS, RANKS[kind, scale][copies - 1], strict=True):
        law = noise.end(m - 1)
        assert law @ np.arange(len(law)) == pytest.approx(ranks, abs=0.051)
        for n in (10**4, 10**6, 10**9):
            offset = published_histogram_for(LEVEL, noise, m, n, None).offset - LEVEL * (n + 1)
            assert ranks - 0.1 <= offset <= ranks + 1.1 + 1e-9 * n


def test_delta_for_two_aggregators():
    """With probability 0.95: 89 ranks for 10,000 records, where the mean needs 18."""
    noise = Noise.discrete_laplace(2.0, 2)
    assert published_histogram_for(LEVEL, noise, 128, 10_000, None, 0.05).offset - 9001 == 89


SMALL = {
    "flat top": Noise.table([0.4, 0.2, 0.1]),
    "two makers": Noise.table([0.5, 0.25], copies=2),
    "narrow": Noise.table([0.98, 0.01]),
}


def unchanged(noisy):
    return noisy


def clipped(noisy):
    return np.maximum(noisy, 0)


def suppressed(noisy):
    return np.where(noisy < 3, 0, noisy)


def index_law(mechanism, m, n, change):
    """The law of the index over all noise vectors, by histogram; `change` is what an engine does with its counts."""
    law = mechanism.noise.law
    for _ in range(mechanism.noise.copies - 1):
        law = np.convolve(law, mechanism.noise.law)
    half = len(law) // 2
    draws = list(itertools.product(range(-half, half + 1), repeat=m))
    weights = [math.prod(law[z + half] for z in draw) for draw in draws]

    def of(h):
        p = np.zeros(m)
        for draw, weight in zip(draws, weights, strict=True):
            p[mechanism.choose(change(np.array(h) + draw), n)] += weight
        return p

    return of


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("m", "n"), [(2, 4), (3, 3)])
def test_coverage_over_all_histograms_and_noise(name, m, n):
    """Theorem E1 for every target, and Proposition E2 for counts that were clipped at 0."""
    for target in range(1, n + 3):
        mechanism = PublishedHistogram(SMALL[name], Fraction(0), Fraction(target))
        ranks, probabilities, _ = mechanism.rank_law(n, m)
        promised = probabilities @ np.minimum(ranks, n + 1) / (n + 1)
        for change in (unchanged, clipped):
            law = index_law(mechanism, m, n, change)
            assert min(leave_one_out(law, h) for h in histograms(n + 1, m)) >= promised - 1e-12


def least_offset(noise, level, m):
    """The least offset in steps of 1/20 that is enough for a secret number of records; tables are for enumeration."""
    steps = (Fraction(k, 20) for k in itertools.count())
    return next(s for s in steps if PublishedHistogram(noise, level, s).lacks(level, m, None, 1, None) <= 0)


def least_coverage(mechanism, m):
    """The least leave-one-out coverage over all histograms of two to six records, of a secret number."""
    law = index_law(mechanism, m, None, unchanged)
    return min(leave_one_out(law, h) for n in range(1, 6) for h in histograms(n + 1, m))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(4, 5), LEVEL])
def test_coverage_for_a_secret_number(name, level):
    """Theorem E1 with the noisy total: one offset for every number of records."""
    offset = least_offset(SMALL[name], level, 3)
    assert least_coverage(PublishedHistogram(SMALL[name], level, offset), 3) >= float(level) - 1e-12


def test_without_an_offset_too_little_is_covered():
    """The control: the same rule for a secret number with an offset of 0."""
    assert least_coverage(PublishedHistogram(SMALL["flat top"], LEVEL, Fraction(0)), 3) < 0.88


@pytest.mark.parametrize(("m", "ranks"), [(32, (10.5, 2.2, 2.2)), (128, (25.0, 4.7, 4.7)), (512, (57.1, 12.0, 9.7))])
def test_a_secret_number_costs_as_many_ranks_as_in_the_own_mechanism(m, ranks):
    """One copy of scale 1, at least 1, 100, 1000 records: the exact worst case, and at most 0.4 ranks more."""
    for n_min, exact in zip((1, 100, 1000), ranks, strict=True):
        own = noisy_histogram_for(LEVEL, 1.0, m, None, n_min).offset
        made = published_histogram_for(LEVEL, Noise.discrete_laplace(1.0), m, None, n_min)
        assert made.offset == own
        assert exact - 0.05 <= made.offset <= exact + 0.4


def test_suppressed_counts_break_the_promise():
    """The control: counts below 3 set to 0 cover less than is certified."""
    mechanism, n = PublishedHistogram(SMALL["flat top"], Fraction(0), Fraction(4)), 5
    ranks, probabilities, _ = mechanism.rank_law(n, 3)
    law = index_law(mechanism, 3, n, suppressed)
    least = min(leave_one_out(law, h) for h in histograms(n + 1, 3))
    assert least < probabilities @ ranks / (n + 1) - 0.05


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


def test_few_records_need_more_than_there_are():
    """The target then exceeds n, and the answer is +inf for nearly all noise."""
    mechanism = published_histogram_for(LEVEL, Noise.discrete_laplace(2.0, 2), 128, 50, None)
    assert mechanism.offset > 50
    assert mechanism.choose(np.zeros(128, dtype=np.int64), 50) == 127


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
        (lambda: published_histogram_for(LEVEL, SMALL["narrow"], 4, None, 1), "noise"),
        (lambda: published_histogram_for(LEVEL, Noise.discrete_laplace(1.0), 4, None, 1, 0.05), "delta"),
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
    assert "as the maker of the counts states" in str(public)
