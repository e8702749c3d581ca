"""Theorem P1: the loss by enumeration, and that of noisy number and threshold for random requests."""

import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from confide.candidates import Candidates, Spread
from confide.core import RecordWeights
from confide.core.design import sized_design
from confide.core.promise import sized_privacy
from confide.errors import InputError
from confide.mechanisms import NoisySize
from confide.mechanisms.slopes import Slopes, add_remove_range, free_fade, replace_one_range, slopes_for
from tests.builders import grid
from tests.designs import terms as terms_of
from tests.exact import added, assert_drawn_from, histograms, mechanism_law, replaced, stepped, worst_log_ratio

SLOPES = [(1, 1), (3, 1), (13, 7), (9, 1), (1, 4)]


@pytest.mark.parametrize(
    ("slopes", "target", "epsilon"), grid(SLOPES, [Fraction(3), Fraction(25, 4), Fraction(8)], [0.3, 1.0, 2.5])
)
def test_replace_one_loss_is_at_most_epsilon(slopes, target, epsilon):
    mechanism = slopes_for(Fraction(0), target, *slopes, "replace_one", epsilon)
    for n, m in [(8, 4), (8, 3), (5, 5)]:
        worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(n, m), replaced)
        assert worst <= mechanism.replace_one + 1e-9
    assert mechanism.replace_one <= epsilon


LINES = [(Fraction(9, 10), Fraction(1), 0), (Fraction(1, 2), Fraction(5, 4), 7), (Fraction(2, 3), Fraction(0), 40)]
"""Rate, offset and prior bonus."""


@pytest.mark.slow
@pytest.mark.parametrize(("slopes", "line"), grid(SLOPES, LINES))
def test_add_remove_loss_is_at_most_epsilon(slopes, line):
    rate, offset, head_start = line
    mechanism = slopes_for(rate, offset, *slopes, "add_remove", 1.0)
    mechanism = Slopes(rate, offset, *slopes, mechanism.scale, head_start)
    for n_max, m in [(8, 4), (5, 5)]:
        starts = [h for n in range(n_max) for h in histograms(n, m)]
        assert worst_log_ratio(lambda h: mechanism_law(mechanism, h), starts, added) <= mechanism.add_remove + 1e-9
    # The same mechanism under the other adjacency.
    worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(7, 4), replaced)
    assert worst <= mechanism.replace_one + 1e-9
    assert mechanism.add_remove <= 1.0


AHEAD = {
    3: [(0, 0.7, 1.4), (0, 4, 4)],
    4: [(0, 0.5, 1, 1.5), (0, 0, 0, 3), (0, 2, 2, 2.1)],
    5: [(0, 0, 0.5, 1, 1.5), (0, 0.2, 1.5, 1.6, 5)],
}
"""Prior log-odds of m candidates relative to the first: equal steps, one step at any place, and others."""


@pytest.mark.slow(unless="slopes9-3")
@pytest.mark.parametrize(("slopes", "m"), grid(SLOPES, [3, 4, 5]))
def test_rising_weights_cost_nothing(slopes, m):
    """The same loss for any heights that never fall, under both adjacencies, with whole or fractional targets."""
    for target in (Fraction(3), Fraction(25, 4)):
        base = slopes_for(Fraction(0), target, *slopes, "replace_one", 1.0)
        for ahead in AHEAD[m]:
            mechanism = stepped(base, ahead)
            assert mechanism.replace_one == base.replace_one <= 1.0
            starts = histograms(8 if m < 5 else 5, m)
            assert worst_log_ratio(lambda h, of=mechanism: mechanism_law(of, h), starts, replaced) <= 1.0 + 1e-9


FADING = [
    (Fraction(9, 10), Fraction(1), (0, 3)),
    (Fraction(9, 10), Fraction(3, 10), (40, 3)),
    (Fraction(1, 2), Fraction(5, 4), (13, 9)),
    (Fraction(2, 3), Fraction(0), (60, 70)),
    (Fraction(1, 10), Fraction(2), (55, 5)),
]
"""Rate, offset, bonus and fade: not needed, fading while n grows, gone at once, never gone."""


@pytest.mark.slow
@pytest.mark.parametrize(("slopes", "fading"), grid(SLOPES, FADING))
def test_a_fading_head_start_costs_what_is_stated(slopes, fading):
    """Theorem P1b with a bonus that fades with the secret n, and any heights: all n from 0, all neighbours."""
    rate, offset, head_start = fading
    base = slopes_for(rate, offset, *slopes, "add_remove", 1.0)
    for m, n_max in [(3, 9), (4, 7), (5, 5)]:
        for ahead in AHEAD[m][:2]:
            fading = Slopes(**{**vars(base), "head_start": head_start[0], "fade": head_start[1]})
            mechanism = stepped(fading, ahead)
            starts = [h for n in range(n_max) for h in histograms(n, m)]
            worst = worst_log_ratio(lambda h, of=mechanism: mechanism_law(of, h), starts, added)
            assert worst <= mechanism.add_remove + 1e-9
            worst = worst_log_ratio(lambda h, of=mechanism: mechanism_law(of, h), histograms(n_max - 1, m), replaced)
            assert worst <= mechanism.replace_one + 1e-9
    assert Slopes(**{**vars(base), "head_start": 40, "fade": free_fade(base)}).add_remove <= 1.0


@pytest.mark.slow
def test_a_head_start_that_fades_faster_costs_more():
    """`free_fade` is the largest free fade: a faster one has a loss above epsilon for some data."""
    base = slopes_for(Fraction(1, 2), Fraction(0), 1, 3, "add_remove", 1.0)
    starts = [h for n in range(9) for h in histograms(n, 3)]
    losses = []
    for fade in (free_fade(base), free_fade(base) + 3):
        mechanism = Slopes(**{**vars(base), "head_start": 10 * fade + 40, "fade": fade})
        losses.append(worst_log_ratio(lambda h, of=mechanism: mechanism_law(of, h), starts, added))
    assert losses[0] <= 1.0 + 1e-9
    assert losses[1] > 1.2


@pytest.mark.slow
def test_no_budget_is_wasted():
    """For some data the loss is nearly epsilon: the stated loss is tight (the published method wastes half of it)."""
    public = slopes_for(Fraction(0), Fraction(6), 9, 1, "replace_one", 1.0)
    assert worst_log_ratio(lambda h: mechanism_law(public, h), histograms(8, 5), replaced) > 0.97
    secret = slopes_for(Fraction(9, 10), Fraction(0), 9, 1, "add_remove", 1.0)
    assert worst_log_ratio(lambda h: mechanism_law(secret, h), histograms(39, 3), added) > 0.94


def test_log_ratios_have_a_bounded_range():
    """Its log-ratio moves within an interval of length epsilon, the premise of epsilon^2/8-zCDP."""
    mechanism = slopes_for(Fraction(0), Fraction(5), 13, 7, "replace_one", 1.0)
    logs = {h: np.log(mechanism_law(mechanism, h)) for h in histograms(7, 4)}
    assert 0.99 < max(float(np.ptp(logs[h] - logs[g])) for h in logs for g in replaced(h)) <= 1.0 + 1e-9


def brute_force_range(left, right, rate, unit, neighbours, starts, head_start=(3, 0), ahead=()):
    offset = Fraction(1, unit) if rate else Fraction(51, 10)
    mechanism = Slopes(rate, offset, left, right, 1.0, *(head_start if rate else (0, 0)))
    mechanism = stepped(mechanism, ahead) if ahead else mechanism
    assert mechanism.unit == unit
    worst = 0
    for h in starts:
        u = mechanism.utilities(np.array(h))
        for g in neighbours(h):
            change = mechanism.utilities(np.array(g)) - u
            worst = max(worst, int(change.max() - change.min()))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slopes", "rate"), grid([*SLOPES, (2, 9)], [Fraction(1, 2), Fraction(9, 10), Fraction(1, 10), Fraction(3, 5)])
)
def test_range_distances_are_exact(slopes, rate):
    """The closed forms of Theorem P1 equal the largest range distance found by enumeration."""
    starts = [h for n in range(9) for h in histograms(n, 4)]
    assert brute_force_range(*slopes, rate, 10, added, starts) <= add_remove_range(*slopes, rate, 10)
    assert brute_force_range(*slopes, Fraction(0), 10, replaced, starts) == replace_one_range(*slopes, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fade", "slopes", "rate"),
    grid([0, 1, 4, 25], [(1, 1), (9, 1), (1, 9)], [Fraction(1, 2), Fraction(9, 10), Fraction(1, 10)]),
)
def test_range_distances_of_a_fading_head_start_are_exact(slopes, rate, fade):
    """The closed form of Theorem P1b bounds every change in utility, and equals the largest one; heights drop out."""
    starts = [h for n in range(13) for h in histograms(n, 4)]
    bound = add_remove_range(*slopes, rate, 10, fade)
    found = brute_force_range(*slopes, rate, 10, added, starts, (40 * fade, fade), (0, 5, 5, 20))
    assert found <= bound
    if rate < Fraction(9, 10):  # otherwise the target is too high for so few records
        assert found == bound


@pytest.mark.long
def test_whole_mechanism_matches_exact_law():
    """From counts to the selected index, through the public code."""
    mechanism = slopes_for(Fraction(4, 5), Fraction(2), 13, 7, "add_remove", 0.8)
    counts = np.array([3, 0, 5, 1, 2, 0, 1])
    assert_drawn_from(mechanism, counts, mechanism_law(mechanism, counts), 6000)


def own_utilities(mechanism, counts):
    """Integer utilities by the formulas of docs/theory.md, section 2, in Python's integers."""
    heaviest = mechanism.weight or 1
    unit = math.lcm(mechanism.rate.denominator, mechanism.offset.denominator)
    target = (mechanism.rate * (Fraction(sum(counts), heaviest) + 1) + mechanism.offset) * heaviest * unit
    assert target.denominator == 1
    start, parts = mechanism.flat.numerator, mechanism.flat.denominator
    steps, last = max(parts * len(counts) - start, 1), len(counts) - 1
    below, utilities = 0, []
    for place, count in enumerate(counts):
        above = mechanism.right * max(unit * below - int(target), 0)
        below += count
        short = mechanism.left * max(int(target) - unit * below, 0) if place < last else 0
        rise = mechanism.rise * min(max(parts * (place + 1) - start, 0), steps) // steps
        utilities.append(rise - max(above, short))
    utilities[-1] += max(0, mechanism.head_start - mechanism.fade * sum(counts))
    return utilities


def distance(one, other):
    """The length of an interval of all differences: scale times the largest log-ratio of two laws, or more."""
    apart = [a - b for a, b in zip(one, other, strict=True)]
    return max(apart) - min(apart)


def random_request(rng):
    """Level, epsilon or rho, candidates and choices; and how many records a person has."""
    choices = {}
    alpha = rng.choice(["1/10", "1/2", "1/20", "1/3", "3/4", "9/10", "1/100", f"{rng.randint(1, 999)}/1000"])
    if rng.random() < 0.2:
        choices["delta"] = rng.choice([0.05, 0.1, 0.3, 0.01])
    if rng.random() < 0.3:
        choices["records_per_person"] = rng.choice([2, 3, 10, 1000])
    if "delta" not in choices and rng.random() < 0.2:
        choices["population"] = RecordWeights.bounded(rng.choice([1, 2, 3.5, 25]))
    elif rng.random() < 0.3:
        choices["n_min"] = rng.choice([2, 5, 17, 100, 3000, 10**6])
    epsilon = math.exp(rng.uniform(math.log(0.05), math.log(40)))
    if rng.random() < 0.25:
        return alpha, None, choices | {"rho": epsilon**2 / 8}
    return alpha, epsilon, choices


def neighbouring_counts(rng, mechanism, m):
    """Counts near the target of few and of many records, small ones, and some of any size."""
    heaviest = mechanism.weight or 1
    for _ in range(60):
        n = rng.choice([rng.randint(0, 5), rng.randint(1, 60), rng.randint(60, 3000)])
        target = float(mechanism.target(n))
        cuts = sorted(max(0, min(n, int(target + rng.gauss(0, 6)))) for _ in range(m - 1))
        yield [heaviest * (high - low) for low, high in zip([0, *cuts], [*cuts, n], strict=True)]
        yield [rng.choice([0, 0, 1, 2, rng.randint(0, 200), rng.randint(0, 10**6), 10**12]) for _ in range(m)]


@dataclass
class Audit:
    """What was compared, and the largest loss over the stated one."""

    pairs: int = 0
    designs: int = 0
    added: float = 0.0
    replaced: float = 0.0


def compare(rng, pairs):
    """Compare as many pairs of neighbours; raise AssertionError if one loses more than stated."""
    audit = Audit()
    while audit.pairs < pairs:
        alpha, epsilon, choices = random_request(rng)
        m = rng.randint(2, 6)
        listed = Candidates.of(sorted(rng.sample(range(1, 60), m - 1)))
        spread = listed if rng.random() < 0.6 else Spread(rng.choice(["probability", "residual", "any"]))
        try:
            terms = terms_of(alpha, spread, epsilon, **choices)
        except InputError:  # a budget too small for so many records
            continue
        for _ in range(2):
            counted = rng.choice([-(2**40), 3, rng.randint(0, 3000), int(10 ** rng.uniform(2, 14)), 2**48, 2**62])
            design = sized_design(terms, NoisySize.of(counted, terms.size_scale, terms.n_min))
            compare_design(rng, design, epsilon, audit)
    return audit


def compare_design(rng, design, epsilon, audit):
    """Compare counts with those of one record more, and with those of another record instead."""
    terms, mechanism, stated = design.terms, design.mechanism, design.privacy
    audit.designs += 1
    people, number = terms.records_per_person, 1 / Fraction(terms.size_scale)
    limit = sized_privacy(terms)
    assert epsilon is None or Fraction(stated.epsilon) <= Fraction(epsilon)
    assert stated.epsilon <= limit.epsilon
    assert stated.replace_one <= limit.replace_one
    if mechanism is None:
        return
    heaviest, m = mechanism.weight or 1, min(design.candidates.size, 6)
    added = replaced = 0
    for counts in neighbouring_counts(rng, mechanism, m):
        utilities = own_utilities(mechanism, counts)
        for place in range(m):
            changed = [
                [*counts[:at], counts[at] + rng.choice([1, heaviest // 2, heaviest]), *counts[at + 1 :]]
                for at in (place, rng.randrange(m))
            ]
            more, other = (own_utilities(mechanism, one) for one in changed)
            added = max(added, distance(more, utilities))
            replaced = max(replaced, distance(more, other))
            audit.pairs += 2
    scale = Fraction(mechanism.scale)
    joint = (added / scale + number) * people
    assert joint <= Fraction(stated.epsilon), (terms, design.size)
    assert replaced / scale <= Fraction(stated.replace_one), (terms, design.size)
    audit.added = max(audit.added, float(joint / Fraction(stated.epsilon)))
    audit.replaced = max(audit.replaced, float(replaced / scale / Fraction(stated.replace_one)))


@pytest.mark.long
def test_no_pair_of_neighbours_loses_more_than_stated():
    audit = compare(random.Random(0), 100_000)
    assert audit.added > 0.999  # the statement is sharp
    assert audit.replaced > 0.999


@pytest.mark.slow
def test_a_loss_above_the_stated_one_is_noticed():
    """A control: the same designs with a noise of a tenth less fail."""
    terms = terms_of("1/10", Candidates.of([1, 2, 3]), 1.0)
    design = sized_design(terms, NoisySize.of(1000, terms.size_scale, 1))
    louder = replace(design, mechanism=replace(design.mechanism, scale=0.9 * design.mechanism.scale))
    compare_design(random.Random(0), design, 1.0, Audit())
    with pytest.raises(AssertionError):
        compare_design(random.Random(0), louder, 1.0, Audit())
