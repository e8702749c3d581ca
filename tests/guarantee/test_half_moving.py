"""Theorem H1, Lemmas H2 to H4 and Corollary H5: a target that moves half with n and half with the noisy number."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from confide.guarantee.adversary import largest
from confide.guarantee.slope_noise import SlopeNoise
from confide.guarantee.two_sided import adversaries
from tests.builders import slow
from tests.exact import added, histograms
from tests.one_number import (
    CAP,
    Design,
    Walks,
    guard,
    law_of,
    least_n_0,
    mass_from,
    mean_from,
    reserve,
    residual_life,
    served,
)
from tests.sharp_program import climbed

COUNTS = law_of({-2: 1, -1: 3, 0: 6, 1: 3, 2: 1})
CASES = [
    ("4/5", "1/2", 2.0, 6.0, 3),
    ("7/10", "1/2", 2.0, 5.0, 4),
    ("3/5", "2/5", 1.0, 4.0, 3),
    ("9/10", "1/2", 2.0, 6.0, 3),
]
"""q, kappa, losses of the noisy number and of the threshold, bins."""
STEEP = "9/10", "1/2", 0.5, 2.0, 5
REAL = "9/10", "1/2", 0.15, 0.85, 8


def lost(design, counted=None):
    """The largest joint loss of n~ and J for one more record, by the law; and of J by utilities, for all prior weights.

    All histograms of up to three records and all neighbours, at one n~; None stands for n, which is not counted.
    """
    by_law = by_range = 0.0
    for h in itertools.chain.from_iterable(histograms(n, design.m) for n in range(4)):
        for g in added(h):
            two = [(np.array(x), sum(x), sum(x) if counted is None else counted) for x in (h, g)]
            number = design.number_loss * (abs(two[1][2] - sum(g)) - abs(two[0][2] - sum(h)))
            by_law = max(by_law, np.abs(np.subtract(*(np.log(design.law(*x)) for x in two)) + number).max())
            by_range = max(by_range, np.ptp(np.subtract(*(design.utilities(*x) for x in two))))
    return by_law, by_range


@pytest.mark.parametrize(("level", "kappa"), [("9/10", "1/2"), ("9/10", "3/4"), ("1/2", "2/5")])
def test_number_and_threshold_lose_the_sum_of_their_losses(level, kappa):
    """Theorem H1 (a): 0.6 and 2 in all. For a target that moves with n alone, slopes for kappa = 1/2 lose more."""
    design = Design(Fraction(level), Fraction(kappa), 0.6, 2.0, 4, tau=-0.8)
    by_law, by_range = np.array([lost(design, counted) for counted in (-3, 0, 7)]).max(axis=0)
    assert 0.8 * 2.6 < by_law <= 2.6 + 1e-12
    assert by_range == pytest.approx(2)
    assert kappa != "1/2" or lost(design)[1] > 2.1


def with_counts(design, price=None, n_g=None):
    """Noisy counts for n~ from n_g to n_0, and +inf below: a design with n_0 >= n_g + 6, and the covered points."""
    laws, level = [COUNTS] * (design.m - 1), float(design.level)
    price = float(residual_life(laws)) if price is None else price
    n_g = guard(design.y, level, price) if n_g is None else n_g
    walks = Walks.of(laws)

    def below(points, n, z):
        targets = np.ceil(level * (n + 1) + price - (1 - level) * z - 1e-9)
        return np.where(n + z < n_g, n + 1.0, walks.covered(points, targets) / walks.parts)

    return replace(design, n_0=max(design.n_0, n_g + 6)), below


def least(design, sizes, below=None):
    """The least slack in ranks over every multiset of these sizes."""
    return min(float(design.slack(np.array(histograms(size, design.m)), below).min()) for size in sizes)


@pytest.mark.parametrize("case", slow([(case,) for case in CASES], [(CASES[0],)]))
def test_every_multiset_is_covered_over_the_noisy_number(case):
    """Theorem H1 (b) with +inf below n_0; an offset too small fails."""
    design = served(*case)
    sizes = [*range(2, 9), *range(design.n_0, design.n_0 + 9, 2)]
    assert least(design, sizes) >= 0
    assert least(replace(design, tau=design.tau - 1.5), sizes) < 0


@pytest.mark.parametrize("case", slow([(case,) for case in CASES], [(CASES[2],)]))
def test_every_multiset_is_covered_with_noisy_counts_below(case):
    """Corollary H5; without a price and a guard it fails."""
    joint = with_counts(served(*case))
    sizes = range(2, joint[0].n_0 + 6, 2)
    assert least(joint[0], sizes, joint[1]) >= 0
    worse = with_counts(joint[0], -1.0, 1)
    assert least(worse[0], sizes, worse[1]) < 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_size_on_both_sides_of_n_0(case):
    """Theorem H1 (b) and Corollary H5 for n from 1 to beyond n_0."""
    design, below = with_counts(served(*case))
    sizes = range(2, min(2 * design.n_0, 60 if case[-1] < 4 else 24))
    assert least(design, sizes) >= 0
    assert least(design, sizes, below) >= 0


def climb(design, sizes, steps, seed, below=None):
    """The least slack in ranks that moving records between bins finds, from sets with cuts near the target."""
    rng, worst = np.random.default_rng(seed), math.inf
    for size in sizes:
        near = float(design.level) * size + design.tau + rng.normal(0, 6 / design.loss, design.m - 1)
        points = np.diff([0, *np.sort(np.clip(near.astype(int), 0, size)), size])
        best = math.inf
        for _ in range(steps):
            moved = points.copy()
            i, j = rng.choice(np.flatnonzero(points)), rng.integers(design.m)
            some = min(moved[i], rng.choice([0, 1, 1, 2, 4, 9]))
            moved[i] -= some
            moved[j] += some
            value = float(design.slack(moved[None, :], below)[0])
            if value < best:
                points, best = moved, value
        worst = min(worst, best)
    return worst


@pytest.mark.parametrize(
    ("case", "steps"), slow([(STEEP, 30), (REAL, 400), (("19/20", "1/2", 0.3, 1.7, 12), 400)], [(STEEP, 30)])
)
def test_climbing_finds_no_set_below_the_level(case, steps):
    """At sizes from n_0 / 2 to 4 n_0, with +inf and with noisy counts below n_0; an offset too small is found out."""
    design = served(*case)
    sizes = [int(part * design.n_0) for part in (0.5, 1.0, 1.1, 1.3, 2.0, 4.0)]
    assert climb(design, sizes, steps, 1) >= 0
    if design.m < 6:
        assert climb(with_counts(design)[0], sizes[:4], steps // 4, 2, with_counts(design)[1]) >= 0
    assert climb(replace(design, tau=design.tau - 3), sizes, steps, 1) < 0


@pytest.mark.parametrize(("level", "kappa", "extra"), [("9/10", "1/2", 6), ("1/2", "2/5", 3), ("99/100", "9/10", 0)])
def test_targets_up_to_the_stated_noise_are_at_most_n(level, kappa, extra):
    """Lemma H2: Z <= Z*(n) gives T <= n for offsets of t or up to the cap; and a whole step of Z more does not."""
    design, over = Design(Fraction(level), Fraction(kappa), 1.0, 1.0, 3), 0
    for n in range(1, 300):
        last = math.floor(design.finite_up_to(n, extra))
        for z in range(max(last - 3, -n), last + 2):
            offsets = extra, extra + CAP * (1 - design.level) * (n + z)
            below = [n >= design.level * (n + 1) + design.w * z + offset for offset in offsets]
            assert all(below) or z > last
            over += not all(below)
    assert over > 100


LEVELS = [("1/2", "2/5"), ("4/5", "1/2"), ("9/10", "1/2"), ("19/20", "1/2"), ("99/100", "1/2"), ("99/100", "9/10")]


@pytest.mark.parametrize(("level", "kappa"), LEVELS)
@pytest.mark.parametrize(("loss", "extra"), [(0.15, 0), (0.15, 5), (1.0, 0)])
def test_the_reserve_serves_every_n(level, kappa, loss, extra):
    """Lemma H3, by the sum over Z at every n; with a third of n_0, or with no reserve, some n fails if sigma > 0."""
    design = Design(Fraction(level), Fraction(kappa), loss, 1.0, 3)
    b, sigma = reserve(design)
    y, n_0 = design.y, least_n_0(design, b, extra=extra)

    def worst(n_0, sigma):
        n = n_0 + np.arange(1, 10 * b + 20)
        high = np.array([max(0, math.floor(design.finite_up_to(int(k), extra))) for k in n])
        mean = mean_from(y, n - n_0 + 1) - mean_from(y, high + 1)
        mass = 1 - mass_from(y, n - n_0 + 1) - mass_from(y, high + 1)
        return float((float(design.w) * mean + sigma * mass).min())

    assert design.finite_up_to(n_0, extra) >= 0
    assert worst(n_0, sigma) >= 0
    if design.w > (1 - 2 * CAP) * (1 - design.level):
        assert worst(n_0 // 3, sigma) < 0
        assert worst(n_0, 0.0) < 0


LONG = [("9/10", "1/2", 0.15, 0.85, 30), ("99/100", "1/2", 0.3, 1.7, 9), ("1/2", "2/5", 0.15, 0.85, 30)]


@pytest.mark.parametrize("case", LONG)
def test_plus_infinity_wins_where_the_target_exceeds_n(case):
    """Lemma H4: L(X) <= (1-q)N at every n from 1 on with T > n; without its condition it fails."""
    design = served(*case)
    w, rest = float(design.w), float(1 - design.level)

    def lost(x):
        return climbed(x, design.loss, design.m - 1.0, gap=0.02)[0]

    def worst(n_0):
        sizes = range(2, math.ceil(lost(1.0) / rest) + 1)
        return min(rest * size - lost(max(w * (n_0 - size + 1) + design.tau + 2 - rest * size, 1.0)) for size in sizes)

    assert worst(design.n_0) >= 0 > worst(1)


@pytest.mark.slow
def test_the_two_sided_certificate_serves_too():
    """With its smaller offset at Y >= 5 and the larger n_0 that it needs; an offset of two ranks less is found out."""
    design, beyond = served("9/10", "1/2", 0.15, 0.85, 12), 5
    noise = SlopeNoise(design.left, design.right, design.m - 1.0, step=1.0)
    choices = [case for k in range(10) for case in adversaries(noise, k / 10, (k + 1) / 10, beyond, None)]
    saved = design.tau - reserve(design)[1] - (largest(noise, choices) - 2)
    n_0 = max(design.n_0, least_n_0(design, reserve(design)[0], beyond))
    grows = design.finite_up_to(1) - design.finite_up_to(0)
    assert 0.5 < saved <= design.w * design.finite_up_to(n_0, beyond) / (1 + grows)
    design = replace(design, tau=design.tau - saved, n_0=n_0)
    sizes = [int(part * n_0) for part in (0.3, 0.7, 1.0, 1.1, 1.3, 2.0)]
    assert climb(design, sizes, 150, 3) >= 0
    assert climb(replace(design, tau=design.tau - 2), sizes, 150, 3) < 0
