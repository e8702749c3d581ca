"""A noisy number of records, the design for it, and the private choice of a score: joint privacy and coverage."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product
from math import tanh

import numpy as np
import pytest
from scipy import stats

from confide.candidates import Candidates
from confide.core import RecordWeights
from confide.core.promise import sized_privacy
from confide.errors import InputError
from confide.mechanisms import (
    OF_DESIGN,
    OF_TARGET,
    Chosen,
    PrivacyStatement,
    ScoreChoice,
    design_for,
    draw_size,
    privacy_statement,
    size_scale,
    with_choice,
)
from confide.mechanisms.noisy_size import reach_of_noise
from confide.selection import zcdp_of_range
from tests.builders import grid
from tests.designs import design_of
from tests.designs import terms as terms_of
from tests.exact import added, histograms, law, leave_one_out, mechanism_law, over_noisy_numbers, replaced
from tests.refused import Refused


def designs(alpha, epsilon, m, **choices):
    """The terms before the number is known, and the mechanism for each noisy number of records; None is +inf."""
    terms = terms_of(alpha, Candidates.of(np.arange(1, m) / m), epsilon, **choices)
    return terms, cache(lambda counted: design_of(terms, counted).mechanism)


def numbers(terms, most):
    """The smallest and the largest noisy number of each design, below `most`; the loss is monotone between them."""
    by = {}
    for counted in range(-40, most):
        by.setdefault(counted if terms.moves else terms.records_of_design(counted), []).append(counted)
    return sorted({end for same in by.values() for end in (min(same), max(same))})


def drawn(mechanism, h):
    """The law of the candidate, with no probability below 1e-300."""
    return np.maximum(np.eye(len(h))[-1] if mechanism is None else mechanism_law(mechanism, h), 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "epsilon", "m", "delta", "most"),
    [(0.1, 3.0, 3, None, 60), (0.5, 8.0, 4, None, 20), (0.1, 3.0, 3, 0.1, 120), (0.5, 8.0, 4, 0.2, 60)],
)
def test_noisy_number_and_threshold_have_joint_privacy_loss_epsilon(alpha, epsilon, m, delta, most):
    terms, design = designs(alpha, epsilon, m, delta=delta)
    outputs, noise = numbers(terms, most), 1 / terms.size_scale
    assert len({design(counted) for counted in outputs} - {None}) >= 8
    law = cache(lambda h, counted: np.log(drawn(design(counted), h)))
    one_more = one_other = 0.0
    for h in chain.from_iterable(histograms(n, m) for n in range(5)):
        for counted in outputs:
            moved = noise * (abs(counted - sum(h) - 1) - abs(counted - sum(h)))  # of the noisy number
            one_more = max(one_more, *(np.abs(moved + law(h, counted) - law(g, counted)).max() for g in added(h)))
            one_other = max([one_other, *(np.abs(law(h, counted) - law(g, counted)).max() for g in replaced(h))])
    assert 0.3 * epsilon < one_more <= epsilon + 1e-12
    assert one_other <= sized_privacy(terms).replace_one + 1e-12


def test_design_for_the_exact_number_exceeds_epsilon():
    """A control: without noise the design reveals the number of records."""
    _, design = designs(0.5, 8.0, 4)
    small, large = design(2), design(5000)
    lost = max(
        np.abs(np.log(drawn(small, h)) - np.log(drawn(large, g))).max() for h in histograms(2, 4) for g in added(h)
    )
    assert lost > 8.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("alpha", "epsilon", "m", "sizes", "less"),
    [(0.5, 8.0, 4, (1, 2, 5, 9), 1), (0.2, 4.0, 3, (1, 2, 5, 9, 11, 14, 20, 30), 2), (0.1, 3.0, 3, (1, 9, 30, 45), 3)],
)
def test_designs_cover_for_every_number_of_records_over_the_noisy_number(alpha, epsilon, m, sizes, less):
    """Theorem H1 (b) for the designs of the library; targets lower by `less` ranks do not cover."""
    terms, design = designs(alpha, epsilon, m)
    reach = math.ceil(30 * terms.size_scale)

    def worst(less):
        def given(counted, rest):
            made = design(counted)
            return drawn(made and replace(made, offset=made.offset - less), rest)

        def law(rest):
            return over_noisy_numbers(lambda counted: given(counted, rest), sum(rest), terms.size_scale, reach)

        law = cache(law)
        return min(leave_one_out(law, points) for size in sizes for points in histograms(size, m))

    assert 1 - alpha - 1e-12 <= worst(0) < 1
    assert worst(less) < 1 - alpha


STEPS = (0, 1, 25)
WEIGHED = tuple(product(range(3), STEPS))
"""Weighted records over three candidates: bin and weight, in units of 1."""


def weighted_designs(alpha, epsilon):
    """The terms for weights up to 25, and the logarithm of the law of the candidate: by records and noisy number."""
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
    outputs, lost = numbers(terms, most), 0.0
    for records in sets_of_weighted(2):
        for one in WEIGHED:
            more = tuple(sorted((*records, one)))
            for counted in outputs:
                moved = (abs(counted - noised(more)) - abs(counted - noised(records))) / terms.size_scale
                lost = max(lost, np.abs(moved + law(records, counted) - law(more, counted)).max())
    return lost


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.5, 8.0), (0.1, 3.0)])
def test_number_of_weighted_records_and_threshold_have_joint_privacy_loss_epsilon(alpha, epsilon):
    """A record has any weight, also 0 (Theorem N2). Noise of the same scale on the total weight exceeds epsilon."""
    terms, law = weighted_designs(alpha, epsilon)
    assert 0.3 * epsilon < joint_loss(terms, law, len) <= epsilon + 1e-12
    assert joint_loss(terms, law, lambda records: sum(weight for _, weight in records)) > epsilon


@pytest.mark.long
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.5, 8.0), (0.1, 3.0)])
def test_replaced_weighted_record_has_the_stated_loss(alpha, epsilon):
    """The number of records stays the same, and the total weight may change."""
    terms, law = weighted_designs(alpha, epsilon)
    lost = max(
        np.abs(law((*records, one), n) - law((*records, other), n)).max()
        for n in numbers(terms, 120)
        for records in sets_of_weighted(2)
        for one, other in combinations(WEIGHED, 2)
    )
    assert 0.3 * terms.per_record < lost <= sized_privacy(terms).replace_one + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.5, 8.0), (0.1, 3.0)])
def test_every_design_covers_the_shifted_population(alpha, epsilon):
    """One of up to four points, drawn by its weight, is new: it is missed with probability at most alpha."""
    terms, law = weighted_designs(alpha, epsilon)
    worst = 0.0
    for n in numbers(terms, 60):
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
def test_noisy_number_is_converted_to_records_of_the_largest_weight(bound):
    terms = terms_of(0.1, 60, 1.0, population=RecordWeights.bounded(bound))
    assert terms.tuning_inputs(terms.records_of_design(2017)).n == 2000 / bound


@pytest.mark.long
@pytest.mark.usefixtures("noisy_number")
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


@pytest.mark.slow
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
    stated = privacy_statement(design(10**8), "add_remove", records, terms.size_scale)
    assert 0.99 * epsilon < stated.epsilon <= epsilon
    assert stated.replace_one <= sized_privacy(terms).replace_one


@pytest.mark.parametrize(
    ("rho", "population"), [*grid((1e-4, 0.1, 0.5, 3.0), (None,)), (0.5, RecordWeights.bounded(25))]
)
def test_zcdp_of_number_and_threshold_sums_to_rho(rho, population):
    terms = terms_of(0.1, 30, rho=rho, population=population)
    stated = privacy_statement(design_of(terms, 10**5).mechanism, "add_remove", 1, terms.size_scale)
    assert 0.98 * rho < stated.rho <= rho
    assert stated.epsilon <= terms.epsilon


@pytest.mark.parametrize(("share", "least"), [(OF_TARGET, 5e-6), (OF_DESIGN, 2e-5)])
def test_very_small_epsilon_raises(share, least):
    assert size_scale(least, share) == 1e6
    with pytest.raises(InputError) as caught:
        size_scale(0.99 * least, share)
    assert caught.value.argument == "epsilon"


NUMBERS = np.arange(-60, 120)
"""Noisy numbers of records; others have next to no probability, or the design of one of them."""

# A record is a pair of bins, one under each of two scores. Sizes of sets: one step for every bin up to the threshold.


def threshold_law(alpha, epsilon, m):
    """The law of noisy number and threshold's bin, by counts over m bins; shape (numbers, m)."""
    terms = terms_of(alpha, Candidates.of(np.arange(1, m) / m), epsilon)
    mechanisms = [design_of(terms, counted).mechanism for counted in NUMBERS]
    infinite = np.eye(m)[-1]

    def law(h):
        chances = tanh(0.5 / terms.size_scale) * np.exp(-np.abs(NUMBERS - sum(h)) / terms.size_scale)
        laws = [infinite if made is None else mechanism_law(made, h) for made in mechanisms]
        return chances[:, None] * np.maximum(laws, 1e-200)

    return cache(law)


def counts(records, k, m):
    return tuple(sum(record[k] == b for record in records) for b in range(m))


def chosen_law(choosing, records, m):
    """The law of the choice: a record's set at bin t has t + 1 labels, and twice as many under the second score."""
    utilities = []
    for k in (0, 1):
        covered = np.cumsum(counts(records, k, m))
        sizes = np.array([len(records) * min((t + 1) * (k + 1), choosing.steps) for t in range(m)])
        utilities.append(choosing.utility(sizes, covered, len(records)))
    return law(np.array(utilities), choosing.scale)


def coins(n, p):
    """Every share and its probability, if each record has a coin of its own."""
    return [(p ** sum(c) * (1 - p) ** (n - sum(c)), c) for c in itertools.product((0, 1), repeat=n)]


def exact_half(n):
    """Every share of exactly n//2 records."""
    shares = [c for c in itertools.product((0, 1), repeat=n) if sum(c) == n // 2]
    return [(1 / len(shares), c) for c in shares]


def joint_law(records, choosing, threshold, m, shares):
    """The law of choice, noisy number and threshold together, shape (2, numbers, m)."""
    joint = np.zeros((2, len(NUMBERS), m))
    for probability, share in shares:
        choose = [record for record, coin in zip(records, share, strict=True) if coin]
        calibrate = [record for record, coin in zip(records, share, strict=True) if not coin]
        for k, chosen in enumerate(chosen_law(choosing, choose, m)):
            joint[k] += probability * chosen * threshold(counts(calibrate, k, m))
    return joint


def multisets(n, m):
    return itertools.combinations_with_replacement(list(itertools.product(range(m), repeat=2)), n)


def largest_loss(choosing, threshold, m, n, shares):
    """The largest privacy loss of the pair, for a record added to fewer than n: all data sets and all outputs."""
    loss = 0.0
    for k in range(n):
        for records in multisets(k, m):
            one = np.log(joint_law(records, choosing, threshold, m, shares(k)))
            for record in itertools.product(range(m), repeat=2):
                other = np.log(joint_law((*records, record), choosing, threshold, m, shares(k + 1)))
                loss = max(loss, np.abs(one - other).max())
    return loss


CASES = [
    (0.5, 4.0, 4.0, 2, 4, 0.5),
    (0.5, 2.0, 2.0, 2, 5, 0.2),
    (0.5, 4.0, 4.0, 3, 3, 0.5),
    (0.1, 1.0, 3.0, 2, 4, 0.2),
    (0.1, 3.0, 1.0, 2, 4, 0.5),
]


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon_choice", "epsilon", "m", "n", "p"), CASES)
def test_choice_and_threshold_lose_the_larger_epsilon_together(alpha, epsilon_choice, epsilon, m, n, p):
    choosing = ScoreChoice(1 - Fraction(str(alpha)), 2, epsilon_choice)
    threshold = threshold_law(alpha, epsilon, m)
    loss = largest_loss(choosing, threshold, m, n, lambda k: coins(k, p))
    assert 0.1 * max(epsilon_choice, epsilon) < loss <= max(epsilon_choice, epsilon) + 1e-12


@pytest.mark.slow(unless="0.5-4.0-2-5")
@pytest.mark.parametrize(("alpha", "epsilon", "m", "n"), [(0.1, 3.0, 3, 4), (0.5, 4.0, 2, 5)])
def test_choice_alone_loses_at_most_epsilon_and_a_good_part_of_it(alpha, epsilon, m, n):
    choosing = ScoreChoice(1 - Fraction(str(alpha)), 2, epsilon)
    choice = cache(lambda records: np.log(chosen_law(choosing, records, m)))
    loss = max(
        np.abs(choice(records) - choice(tuple(sorted((*records, record))))).max()
        for k in range(n)
        for records in multisets(k, m)
        for record in itertools.product(range(m), repeat=2)
    )
    assert 0.3 * epsilon < loss <= epsilon + 1e-12


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "exceeded"), [(2.0, 2.4), (4.0, 6.4)])
def test_share_of_exactly_half_the_records_exceeds_epsilon(epsilon, exceeded):
    """A control: if the share's size is a function of n, a new record changes both shares."""
    choosing, threshold = FirstBin(epsilon), threshold_law(0.5, epsilon, 2)
    assert largest_loss(choosing, threshold, 2, 5, exact_half) > exceeded
    assert largest_loss(choosing, threshold, 2, 5, lambda k: coins(k, 0.5)) <= epsilon + 1e-12


class FirstBin(ScoreChoice):
    """A choice by the number of records outside the first bin, with range distance 1: its loss is epsilon exactly."""

    def __init__(self, epsilon):
        super().__init__(Fraction(1, 2), 1, epsilon)

    @property
    def range_distance(self):
        return 1

    def utility(self, sizes, covered, n):
        return -int(n - covered[0])


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "epsilon_choice", "epsilon", "m", "n", "p"), CASES)
def test_coverage_holds_whatever_was_chosen(alpha, epsilon_choice, epsilon, m, n, p):
    """Exact leave-one-out coverage of all multisets of n records, and of the best of both choices of every share."""
    choosing = ScoreChoice(1 - Fraction(str(alpha)), 2, epsilon_choice)
    threshold = threshold_law(alpha, epsilon, m)
    worst = 1.0
    for records in multisets(n, m):
        covered = 0.0
        for i, new in enumerate(records):
            joint = joint_law(records[:i] + records[i + 1 :], choosing, threshold, m, coins(n - 1, p))
            covered += sum(joint[k, :, new[k] :].sum() for k in (0, 1)) / n
        worst = min(worst, covered)
    assert 1 - alpha - 1e-12 <= worst < 1


@pytest.mark.long
@pytest.mark.parametrize("level", [Fraction(9, 10), Fraction(1, 2), Fraction(999_983, 1_000_000)])
def test_one_record_moves_utilities_by_at_most_the_range_distance(level):
    """Search: random sums of sizes and counts, a new record that moves each of them by the most that it can."""
    rng = np.random.default_rng(0)
    largest = 0
    for steps in (1, 3, 1000):
        choosing = ScoreChoice(level, steps, 1.0)
        for _ in range(2000):
            n, m = int(rng.integers(0, 40)), 5
            moves = []
            for _ in range(2):
                sizes = np.sort(rng.integers(0, n * steps + 1, m))
                covered = np.sort(rng.integers(0, n + 1, m))
                size = np.sort(rng.integers(0, steps + 1, m))
                if rng.random() < 0.5:
                    size = np.full(m, rng.choice([0, steps]))
                inside = np.arange(m) >= rng.integers(0, m + 1)
                after = choosing.utility(sizes + size, covered + inside, n + 1)
                moves.append(after - choosing.utility(sizes, covered, n))
            moved = abs(moves[0] - moves[1])
            assert moved <= choosing.range_distance
            largest = max(largest, moved / choosing.range_distance)
    assert largest > 0.9


@pytest.mark.parametrize("epsilon", [1e-6, 1 / 3, 1.0, 7.7, 1e5])
@pytest.mark.parametrize("level", [Fraction(9, 10), Fraction(2, 3)])
def test_loss_never_exceeds_epsilon(epsilon, level):
    choosing = ScoreChoice(level, 7, epsilon)
    assert epsilon * (1 - 1e-12) <= choosing.loss <= epsilon
    assert Fraction(choosing.range_distance) <= Fraction(choosing.scale) * Fraction(epsilon)


@pytest.mark.slow
def test_choice_is_drawn_from_its_stated_distribution():
    """Chi-square of 4000 draws; it fails by chance in 1e-7 of runs."""
    choosing, utilities = ScoreChoice(Fraction(9, 10), 2, 1.0), np.array([0, -40, -100])
    expected = law(utilities, choosing.scale)
    drawn = np.bincount([choosing.choose(utilities) for _ in range(4000)], minlength=3)
    assert stats.chisquare(drawn, 4000 * expected).pvalue > 1e-7


def test_statement_of_both_is_the_larger_loss():
    alone = PrivacyStatement("add_remove", 3.0, 3, 1.0, 1.2, 0.5)
    both = with_choice(alone, 2.0)
    assert (both.epsilon, both.add_remove, both.replace_one, both.rho) == (6.0, 2.0, 4.0, zcdp_of_range(6.0))
    smaller = with_choice(alone, 0.5)
    assert (smaller.epsilon, smaller.add_remove, smaller.replace_one) == (3.0, 1.0, 2.0)
    assert smaller.rho == 0.5
    assert with_choice(both, 2.0) == both
    assert with_choice(alone, None) is alone


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"among": ("lac",)}, "scores"),
        ({"among": ("lac", "lac")}, "scores"),
        ({"among": ("lac", "a\n")}, "scores"),
        ({"name": "other"}, "name"),
        ({"share": Fraction(3, 5)}, "choice_share"),
        ({"share": Fraction(0)}, "choice_share"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"largest_size": -1.0}, "largest_size"),
    ],
)
def test_statements_that_no_choice_makes_raise(change, argument):
    good = {"name": "lac", "among": ("lac", "aps"), "share": Fraction(1, 5), "epsilon": 1.0}
    Refused(Chosen, good, change, argument, kind=InputError).check()
