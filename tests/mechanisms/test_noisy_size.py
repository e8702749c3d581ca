"""A noisy number of records and the design for it: joint privacy, coverage given the number, noise."""

import math
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats

from confide.candidates import Candidates
from confide.core import RecordWeights
from confide.core.design import design, price
from confide.errors import InputError
from confide.mechanisms import design_for, draw_size, privacy_statement, size_scale
from confide.mechanisms.noisy_size import reach_of_noise
from tests.builders import grid, slow
from tests.designs import terms as terms_of
from tests.exact import added, histograms, leave_one_out, mechanism_law, replaced


def mechanism_of(terms, counted):
    """The mechanism for a noisy number of records."""
    return design(terms, terms.records_of_design(counted)).mechanism


def designs(alpha, epsilon, m, **choices):
    """The terms before the number is known, and the mechanism for each number of records."""
    terms = terms_of(alpha, Candidates.of(np.arange(1, m) / m), epsilon, **choices)
    return terms, cache(lambda n: mechanism_of(terms, n))


def numbers(terms, most):
    """The smallest and the largest noisy number of each design, below `most`; the loss is monotone between them."""
    by = {}
    for counted in range(-40, most):
        by.setdefault(terms.records_of_design(counted), []).append(counted)
    return [(min(same), max(same)) for same in by.values()]


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon", "m", "most"), [(0.1, 3.0, 3, 120), (0.5, 8.0, 4, 60)])
def test_noisy_number_and_threshold_have_joint_privacy_loss_epsilon(alpha, epsilon, m, most):
    terms, design = designs(alpha, epsilon, m)
    noise = 1 / terms.size_scale
    outputs = [counted for ends in numbers(terms, most) for counted in ends]
    assert len({terms.records_of_design(counted) for counted in outputs}) >= 8
    law = cache(lambda h, n: np.log(mechanism_law(design(n), h)))
    one_more = one_other = 0.0
    for h in chain.from_iterable(histograms(n, m) for n in range(5)):
        for counted in outputs:
            n = terms.records_of_design(counted)
            moved = noise * (abs(counted - sum(h) - 1) - abs(counted - sum(h)))  # of the noisy number
            one_more = max(one_more, *(np.abs(moved + law(h, n) - law(g, n)).max() for g in added(h)))
            one_other = max([one_other, *(np.abs(law(h, n) - law(g, n)).max() for g in replaced(h))])
    assert 0.3 * epsilon < one_more <= epsilon + 1e-12
    assert one_other <= price(terms).replace_one + 1e-12


def test_design_for_the_exact_number_exceeds_epsilon():
    """A control: without noise the design reveals the number of records."""
    _, design = designs(0.5, 8.0, 4)
    small, large = design(2), design(5000)
    lost = max(
        np.abs(np.log(mechanism_law(small, h)) - np.log(mechanism_law(large, g))).max()
        for h in histograms(2, 4)
        for g in added(h)
    )
    assert lost > 8.0


@pytest.mark.parametrize(("alpha", "epsilon", "m"), [(0.1, 3.0, 3), (0.5, 8.0, 4)])
def test_every_design_covers_for_every_number_of_records(alpha, epsilon, m):
    terms, design = designs(alpha, epsilon, m)
    worst = 1.0
    for _, counted in numbers(terms, 60):
        n = terms.records_of_design(counted)
        law = cache(lambda h, n=n: mechanism_law(design(n), h))
        worst = min(worst, *(leave_one_out(law, h) for size in range(1, 6) for h in histograms(size, m)))
    assert 1 - alpha - 1e-12 <= worst < 1


STEPS = (0, 1, 25)
WEIGHED = tuple(product(range(3), STEPS))
"""Weighted records over three candidates: bin and weight, in units of 1."""


def weighted_designs(alpha, epsilon):
    """The terms for weights up to 25, and the logarithm of the law of the candidate: by records and n of the design."""
    population = RecordWeights.bounded(25)
    terms, design = designs(alpha, epsilon, 3, population=population)

    @cache
    def law(sums, n):
        counts = np.array(sums) * int(population.scale)
        return np.log(mechanism_law(design(n), counts))

    return terms, lambda records, n: law(tuple(sum(w for b, w in records if b == place) for place in range(3)), n)


def sets_of_weighted(most):
    return chain.from_iterable(combinations_with_replacement(WEIGHED, size) for size in range(most + 1))


def joint_loss(terms, law, noised, most=120):
    """The largest joint loss of noisy statistic and candidate for one more record: all sets of up to three records."""
    outputs = [counted for ends in numbers(terms, most) for counted in ends]
    lost = 0.0
    for records in sets_of_weighted(2):
        for one in WEIGHED:
            more = tuple(sorted((*records, one)))
            for counted in outputs:
                n = terms.records_of_design(counted)
                moved = (abs(counted - noised(more)) - abs(counted - noised(records))) / terms.size_scale
                lost = max(lost, np.abs(moved + law(records, n) - law(more, n)).max())
    return lost


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.5, 8.0), (0.1, 3.0)])
def test_number_of_weighted_records_and_threshold_have_joint_privacy_loss_epsilon(alpha, epsilon):
    """A record has any weight, also 0 (Theorem N2). Noise of the same scale on the total weight exceeds epsilon."""
    terms, law = weighted_designs(alpha, epsilon)
    assert 0.3 * epsilon < joint_loss(terms, law, len) <= epsilon + 1e-12
    assert joint_loss(terms, law, lambda records: sum(weight for _, weight in records)) > epsilon


@pytest.mark.parametrize(("alpha", "epsilon"), slow([(0.5, 8.0), (0.1, 3.0)], [(0.5, 8.0)]))
def test_replaced_weighted_record_has_the_stated_loss(alpha, epsilon):
    """The number of records stays the same, and the total weight may change."""
    terms, law = weighted_designs(alpha, epsilon)
    lost = max(
        np.abs(law((*records, one), n) - law((*records, other), n)).max()
        for n in {terms.records_of_design(counted) for _, counted in numbers(terms, 120)}
        for records in sets_of_weighted(2)
        for one, other in combinations(WEIGHED, 2)
    )
    assert 0.3 * terms.per_record < lost <= price(terms).replace_one + 1e-12


@pytest.mark.parametrize(("alpha", "epsilon"), slow([(0.5, 8.0), (0.1, 3.0)], [(0.5, 8.0)]))
def test_every_design_covers_the_shifted_population(alpha, epsilon):
    """One of up to four points, drawn by its weight, is new: it is missed with probability at most alpha."""
    terms, law = weighted_designs(alpha, epsilon)
    worst = 0.0
    for _, counted in numbers(terms, 60):
        n = terms.records_of_design(counted)
        for points in sets_of_weighted(4):
            if whole := sum(weight for _, weight in points):
                missed = [
                    weight * np.exp(law((*points[:i], *points[i + 1 :]), n))[:place].sum()
                    for i, (place, weight) in enumerate(points)
                    if weight
                ]
                worst = max(worst, sum(missed) / whole)
    assert 0 < worst <= alpha + 1e-12


@pytest.mark.parametrize("bound", [1, 2, 25])
def test_design_of_weighted_records_is_that_of_a_stated_number(bound):
    """n~ is a number of records like n_typical: both are converted to records of the largest weight once."""
    population = RecordWeights.bounded(bound)
    sized = terms_of(0.1, 60, 1.0, population=population)
    guessed = terms_of(0.1, 60, 0.95, population=population, n_typical=2000)
    inputs = sized.inputs(sized.records_of_design(2017))
    assert inputs == replace(guessed.inputs(2000), counted=True)
    assert inputs.n == 2000 / bound


def test_record_that_changes_its_group_has_privacy_loss_epsilon():
    terms, design = designs(0.1, 1.0, 3)  # half of epsilon = 2 for each group
    noise, sizes = 1 / terms.size_scale, [terms.records_of_design(counted) for counted in (0, 150, 400)]
    one = max(
        np.abs(np.log(mechanism_law(design(n), h)) - np.log(mechanism_law(design(n), g))).max()
        for n in sizes
        for size in range(4)
        for h in histograms(size, 3)
        for g in added(h)
    )
    assert one + noise <= 1.0 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("scale", [20.0, 0.7])
def test_noise_has_its_stated_distribution(scale):
    """Chi-square test of 5000 draws, in at most 14 bins with 50 expected draws or more; it fails by chance in 1e-7."""
    drawn = np.array([draw_size(1000, scale, 1).counted - 1000 for _ in range(5000)])
    edges = np.unique(np.round(scale * np.linspace(-3, 3, 13)).astype(int))
    y = math.exp(-1 / scale)

    def at_most(z):
        return 1 - y ** (z + 1) / (1 + y) if z >= 0 else y ** (-z) / (1 + y)

    shares = np.diff([0.0, *(at_most(int(z)) for z in edges), 1.0])
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    assert (shares * len(drawn)).min() > 50
    assert stats.chisquare(counts, shares * len(drawn)).pvalue > 1e-7


def test_noise_stays_within_its_reach_with_the_stated_probability():
    y, reach = math.exp(-1 / 20), reach_of_noise(20.0, 0.1)
    beyond = 2 * y ** (reach + 1) / (1 + y)
    assert beyond <= 0.1 < 2 * y**reach / (1 + y)


def test_design_is_the_nearest_of_twenty_steps_a_decade():
    steps = sorted({design_for(n, 1e-6, 1) for n in range(100, 10_000)})
    assert len(steps) == 41
    for n in range(100, 10_000, 7):
        assert design_for(n, 1e-6, 1) == min(steps, key=lambda step: abs(math.log(n / step)))
        assert design_for(design_for(n, 1e-6, 1), 1e-6, 1) == design_for(n, 1e-6, 1)


@pytest.mark.parametrize(
    ("counted", "scale", "n_min", "design"),
    [(-(2**62), 20.0, 1, 100), (0, 20.0, 1, 100), (0, 20.0, 400, 400), (2**62, 20.0, 1, 2.8e14), (5, 1e9, 1, 5e9)],
)
def test_design_is_bounded(counted, scale, n_min, design):
    assert design_for(counted, scale, n_min) == design


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "records", "population"),
    grid((0.1, 1 / 3, 1e5, 0.3, 1.0, 7.7), (1, 3, 1000), (None, RecordWeights.bounded(25))),
)
def test_losses_of_number_and_threshold_sum_to_epsilon(epsilon, records, population):
    terms, design = designs(0.1, epsilon, 30, records_per_person=records, population=population)
    stated = privacy_statement(design(1000), "add_remove", records, terms.size_scale)
    assert 0.99 * epsilon < stated.epsilon <= epsilon
    assert stated.replace_one <= price(terms).replace_one


@pytest.mark.parametrize(
    ("rho", "population"), [*grid((1e-4, 0.1, 0.5, 3.0), (None,)), (0.5, RecordWeights.bounded(25))]
)
def test_zcdp_of_number_and_threshold_sums_to_rho(rho, population):
    terms = terms_of(0.1, 30, rho=rho, population=population)
    mechanism = mechanism_of(terms, 1000)
    stated = privacy_statement(mechanism, "add_remove", 1, terms.size_scale)
    assert 0.98 * rho < stated.rho <= rho
    assert stated.epsilon <= terms.epsilon


def test_very_small_epsilon_raises():
    with pytest.raises(InputError) as caught:
        size_scale(1e-5)
    assert caught.value.argument == "n_typical"
