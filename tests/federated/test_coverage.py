"""Exact coverage of every method with a guarantee, with ties, dropouts and worst-case Byzantine silos; and efficiency.

Only `test_installed_samplers_have_the_enumerated_coverage` simulates; it is an exact binomial test.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide import federated
from confide.candidates import Candidates
from confide.federated.certificates import order_statistic_coverage
from confide.federated.reply_laws import RandomRankReply
from tests.builders import slow
from tests.exact import histograms
from tests.federated.exact_coverage import (
    coverage,
    failure,
    populations,
    reply_law,
    threshold_law,
    worst_thresholds,
    worst_thresholds_of_all,
)
from tests.federated.helpers import kth_reply

BINS = 4
LEVEL = 1e-6
SIZES, EQUAL = (9, 7, 8, 9), (9, 9, 9, 9)


def make(method, alpha, epsilon, sizes, bins=BINS, **options):
    silos = [federated.SiloKeys.generate(f"silo {i}").public(n) for i, n in enumerate(sizes)]
    return federated.plan(silos, alpha, epsilon, method=method, candidates=Candidates.unit(bins), **options)


ALL_HONEST = [
    ("private-qq", 0.3, 4.0, SIZES),
    *slow(
        [
            ("private-qq", 0.4, 1.5, (8,) * 5),
            ("fedcp2-qq", 0.4, 12.0, EQUAL),
            ("fedcp-qq", 0.2, None, SIZES),
            ("fedcp-qq", 0.1, None, EQUAL),
        ]
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "alpha", "epsilon", "sizes"), ALL_HONEST)
def test_every_subset_of_silos_is_covered_as_certified(method, alpha, epsilon, sizes):
    plan = make(method, alpha, epsilon, sizes)
    m = len(sizes)
    for answered in itertools.chain.from_iterable(itertools.combinations(range(m), size) for size in range(1, m + 1)):
        k, guarantee = plan.certify(answered)
        promise = plan.promises()[len(answered)]
        assert guarantee.coverage >= promise.coverage
        assert k <= promise.k
        if k > len(answered):
            assert guarantee.coverage == 1.0
            assert promise.infinite != "never"
            continue
        assert guarantee.coverage == 1 - alpha
        assert promise.infinite != "always"
        promised = order_statistic_coverage([plan.protocol.reply_law(plan, i) for i in answered], k)
        assert promised >= 1 - alpha
        thresholds = worst_thresholds(plan, answered)
        for population in populations(BINS, 1 - alpha):
            assert coverage(threshold_law(plan, population, thresholds), population) >= promised - 1e-9


LYING = [
    ("private-qq", 0.4, 4.0, SIZES, {"liars": 1}),
    *slow(
        [
            ("private-qq", 0.4, 4.0, SIZES, {"liars": 1, "dropouts": 1}),
            ("private-qq", 0.5, 8.0, (9,) * 5, {"liars": 2}),
            ("fedcp2-qq", 0.5, 12.0, EQUAL, {"liars": 1, "dropouts": 1}),
            ("fedcp-qq", 0.3, None, SIZES, {"liars": 1, "dropouts": 1}),
            ("fedcp-qq", 0.4, None, (9,) * 5, {"liars": 2}),
        ]
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "alpha", "epsilon", "sizes", "options"), LYING)
def test_worst_byzantine_silos_are_covered(method, alpha, epsilon, sizes, options):
    """Test Byzantine silos that know all replies and try every message, with every allowed set of dropouts."""
    plan = make(method, alpha, epsilon, sizes, **options)
    tried = 0
    for size in range(len(sizes) - plan.dropouts, len(sizes) + 1):
        for answered in itertools.combinations(range(len(sizes)), size):
            k, guarantee = plan.certify(answered)
            assert k <= len(answered)
            for liars in itertools.combinations(answered, plan.liars):
                thresholds = worst_thresholds(plan, answered, liars)
                for population in populations(BINS, 1 - alpha)[:: 1 if len(sizes) < 5 else 4]:
                    tried += 1
                    assert (
                        coverage(threshold_law(plan, population, thresholds), population) >= guarantee.coverage - 1e-9
                    )
    assert tried >= 80


@pytest.mark.slow
def test_the_worst_lie_is_the_lowest_candidate_and_it_matters():
    plan = make("private-qq", 0.4, 4.0, SIZES, liars=1)
    k, _ = plan.certify()
    lowest = [kth_reply([0, *r[1:]], k, BINS) for r in np.ndindex(*(BINS,) * 4)]
    worst = worst_thresholds(plan, liars=(0,))
    np.testing.assert_array_equal(worst.ravel(), lowest)
    careless = make("private-qq", 0.4, 4.0, SIZES)  # planned without Byzantine silos, so that one breaks it
    population = np.array([0.4, 0.19999, 1e-5, 0.4])
    broken = coverage(threshold_law(careless, population, worst_thresholds(careless, liars=(0,))), population)
    assert broken < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "epsilon", "alpha", "liars"),
    [
        ("private-qq", 4.0, 0.4, 0),
        ("private-qq", 6.0, 0.5, 1),
        ("fedcp-qq", None, 0.4, 1),
        *slow([("fedcp2-qq", 12.0, 0.5, 0)]),
    ],
)
def test_absence_and_lies_that_depend_on_all_scores(method, epsilon, alpha, liars):
    """`arbitrary`: in every round an attacker who knows all replies chooses the dropouts and the Byzantine silos."""
    plan = make(method, alpha, epsilon, EQUAL, missing="arbitrary", liars=liars)
    thresholds = worst_thresholds_of_all(plan)
    promised = plan.certify()[1].coverage
    for population in populations(BINS, 1 - alpha):
        assert coverage(threshold_law(plan, population, thresholds), population) >= promised - 1e-9


@pytest.mark.parametrize(("method", "epsilon"), [("private-qq", 4.0), ("fedcp-qq", None), ("fedcp2-qq", 12.0)])
@pytest.mark.parametrize("liars", [0, 1])
def test_training_conditional_promises(method, epsilon, liars):
    alpha, delta = 0.5, 0.25
    plan = make(method, alpha, epsilon, EQUAL, delta=delta, liars=liars)
    assert plan.certify()[0] <= 4
    thresholds = worst_thresholds(plan, liars=tuple(range(liars)))
    worst = max(
        failure(threshold_law(plan, population, thresholds), population, 1 - alpha)
        for population in populations(BINS, 1 - alpha)
    )
    assert 0 < worst <= delta + 1e-9


def exact_on_fine_candidates(plan, answered=None):
    """Return the coverage of fedcp-qq on uniform scores from binomial tails, its certificate, and a bin's mass."""
    bins = plan.candidates.size
    who = range(len(plan.silos)) if answered is None else answered
    up_to = np.arange(1, bins + 1) / bins
    below = [stats.binom.sf(plan.protocol.targets[i] - 1, plan.silos[i].size, up_to) for i in who]
    k, _ = plan.certify(who)
    enough = np.zeros(bins)
    for outcome in itertools.product([0, 1], repeat=len(below)):
        if sum(outcome) >= k:
            enough += np.prod([b if o else 1 - b for b, o in zip(below, outcome, strict=True)], axis=0)
    exact = float(np.diff(enough, prepend=0.0, append=1.0) @ np.append(up_to, 1.0))
    replies = [plan.protocol.reply_law(plan, i) for i in who]
    return exact, order_statistic_coverage(replies, k), 1 / bins


@pytest.mark.parametrize("sizes", [(200,) * 5, (60, 100, 150, 90)])
def test_fedcp_qq_covers_exactly_what_it_certifies(sizes):
    """The certificate is exact up to the rounding to a candidate, which shows validity and efficiency."""
    plan = make("fedcp-qq", 0.1, None, sizes, bins=4000, dropouts=1)
    for answered in (range(len(sizes)), range(1, len(sizes))):
        exact, certified, bin_mass = exact_on_fine_candidates(plan, answered)
        assert 0.9 <= certified <= exact + 1e-9
        assert exact <= certified + bin_mass
    assert certified <= 0.912


@pytest.mark.slow
@pytest.mark.parametrize("population", [np.full(BINS, 0.25), *slow([np.array([0.5, 0.2, 0.2, 0.1])])])
def test_private_qq_overcovers_less_than_the_published_method(population):
    """The published correction covers more at the same privacy loss, size and level, without Byzantine silos."""
    ours, published = (make(method, 0.4, 12.0, EQUAL) for method in ("private-qq", "fedcp2-qq"))
    wanted, theirs = (
        coverage(threshold_law(plan, population, worst_thresholds(plan)), population) for plan in (ours, published)
    )
    assert 0.6 <= wanted < theirs


@pytest.mark.slow
def test_published_private_method_keeps_its_ranks():
    """With honest silos and no dropouts (l + l_cor, k) are as published, and the certificate confirms them."""
    for m, n, alpha, epsilon, bins in [(5, 200, 0.1, 5.0, 100), (4, 9, 0.4, 12.0, 4)]:
        choice = federated.best_published(m, n, alpha, epsilon, bins)
        plan = make("fedcp2-qq", alpha, epsilon, (n,) * m, bins=bins)
        assert plan.protocol.targets == (choice.rank,) * m
        assert plan.certify()[0] == choice.k
        assert plan.certify()[1].coverage == pytest.approx(1 - alpha)


# Baselines


@pytest.mark.slow
def test_centralised_baseline_by_enumeration():
    """Check every multiset of 8 pooled scores: all reach the level, and the one without ties reaches it exactly."""
    n, alpha = 7, Fraction(3, 10)
    wanted = -(-((n + 1) * (1 - alpha)) // 1)
    for h in histograms(n + 1, 8):
        points = np.repeat(np.arange(8), h)
        hits = 0
        for out in range(n + 1):
            rest = np.delete(points, out)
            hits += points[out] <= federated.centralised_threshold([rest[:3], rest[3:]], alpha)
        assert hits >= wanted >= (1 - alpha) * (n + 1)
        if max(h) == 1:
            assert hits == wanted


@pytest.mark.slow
def test_average_has_no_guarantee_and_says_so():
    """Exact coverage for scores 0 or 1: unless all nine silos report 1 the mean is below 1 and misses 1."""
    plan = make("fedcp-avg", 0.3, None, (9,) * 9, bins=4)
    assert plan.certify()[1].coverage == 0.0
    assert plan.promises()[9].coverage == 0.0
    p = 0.33  # probability of the score 1; rank 7 of 9 in each silo
    exact = 1 - p + p * stats.binom.sf(2, 9, p) ** 9
    assert exact < 0.68
    rng, hits = np.random.default_rng(0), 0
    for _ in range(3000):
        silos = (rng.random((9, 9)) < p).astype(float)
        hits += float(rng.random() < p) <= federated.average_threshold(silos, 0.3)
    assert stats.binomtest(hits, 3000, exact).pvalue > LEVEL


# Installed samplers: one exact binomial test per method


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "alpha", "epsilon", "options"),
    [
        ("private-qq", 0.4, 4.0, {"liars": 1, "dropouts": 1}),
        *slow([("private-qq", 0.3, 4.0, {}), ("fedcp2-qq", 0.4, 12.0, {}), ("fedcp-qq", 0.3, None, {"liars": 1})]),
    ],
)
def test_installed_samplers_have_the_enumerated_coverage(method, alpha, epsilon, options):
    """With one new record per round, hits are binomial with the enumerated coverage, which the certificate bounds."""
    plan = make(method, alpha, epsilon, EQUAL, **options)
    answered = range(plan.dropouts, 4)
    liars = tuple(answered[: plan.liars])
    population = np.array([0.35, 0.3, 0.25, 0.1])
    k, guarantee = plan.certify(answered)
    exact = coverage(threshold_law(plan, population, worst_thresholds(plan, answered, liars)), population)
    rng, rounds, hits = np.random.default_rng(9), 1000, 0
    for _ in range(rounds):
        counts = rng.multinomial(9, population, size=4)
        output = [0 if i in liars else plan.protocol.mechanism(plan, i).choose(counts[i]) for i in answered]
        hits += rng.choice(BINS, p=population) <= kth_reply(output, k, BINS)
    assert stats.binomtest(hits, rounds, exact).pvalue > LEVEL
    assert stats.binomtest(hits, rounds, guarantee.coverage, "less").pvalue > LEVEL
    assert exact >= guarantee.coverage


def test_reply_law_of_the_enumeration_agrees_with_the_library_where_both_are_exact():
    plan = make("fedcp-qq", 0.3, None, (9, 9))
    population = np.array([0.1, 0.5, 0.3, 0.1])
    law = np.cumsum(reply_law(plan.protocol.mechanism(plan, 0), 9, population))[:-1]
    library = RandomRankReply.fixed(9, plan.protocol.targets[0]).below(np.cumsum(population)[:-1])
    np.testing.assert_allclose(law, library, atol=1e-12)
