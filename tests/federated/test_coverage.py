"""Exact coverage of every method with a guarantee: ties, dropouts and worst-case Byzantine silos; and efficiency."""

import itertools

import numpy as np
import pytest

from confide import federated
from confide.candidates import Candidates
from confide.federated.certificates import order_statistic_coverage
from tests.federated.exact_coverage import (
    coverage,
    failure,
    populations,
    threshold_law,
    worst_thresholds,
    worst_thresholds_of_all,
)
from tests.federated.helpers import kth_reply

BINS = 4
SIZES, EQUAL = (9, 7, 8, 9), (9, 9, 9, 9)


def make(method, alpha, epsilon, sizes, bins=BINS, **options):
    silos = [federated.SiloKeys.generate(f"silo {i}").public(n) for i, n in enumerate(sizes)]
    return federated.plan(silos, alpha, epsilon, method=method, candidates=Candidates.unit(bins), **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "alpha", "epsilon", "sizes"),
    [("private-qq", 0.3, 4.0, SIZES), ("private-qq", 0.4, 1.5, (8,) * 5), ("fedcp2-qq", 0.4, 12.0, EQUAL)],
)
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
        promised = order_statistic_coverage([plan.protocol.reply_law(plan.first, i) for i in answered], k)
        assert promised >= 1 - alpha
        thresholds = worst_thresholds(plan, answered)
        for population in populations(BINS, 1 - alpha):
            assert coverage(threshold_law(plan, population, thresholds), population) >= promised - 1e-9


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "alpha", "epsilon", "sizes", "options"),
    [
        ("private-qq", 0.4, 4.0, SIZES, {"liars": 1}),
        ("private-qq", 0.4, 4.0, SIZES, {"liars": 1, "dropouts": 1}),
        ("private-qq", 0.5, 8.0, (9,) * 5, {"liars": 2}),
        ("fedcp2-qq", 0.5, 12.0, EQUAL, {"liars": 1, "dropouts": 1}),
    ],
)
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
    [("private-qq", 4.0, 0.4, 0), ("private-qq", 6.0, 0.5, 1), ("fedcp2-qq", 12.0, 0.5, 0)],
)
def test_absence_and_lies_that_depend_on_all_scores(method, epsilon, alpha, liars):
    """`arbitrary`: in every round an attacker who knows all replies chooses the dropouts and the Byzantine silos."""
    plan = make(method, alpha, epsilon, EQUAL, missing="arbitrary", liars=liars)
    thresholds = worst_thresholds_of_all(plan)
    promised = plan.certify()[1].coverage
    for population in populations(BINS, 1 - alpha):
        assert coverage(threshold_law(plan, population, thresholds), population) >= promised - 1e-9


@pytest.mark.slow(unless="0-fedcp2-qq-12.0")
@pytest.mark.parametrize(("method", "epsilon"), [("private-qq", 4.0), ("fedcp2-qq", 12.0)])
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


@pytest.mark.slow
def test_published_private_method_keeps_its_ranks():
    """With honest silos and no dropouts (l + l_cor, k) are as published, and the certificate confirms them."""
    for m, n, alpha, epsilon, bins in [(5, 200, 0.1, 5.0, 100), (4, 9, 0.4, 12.0, 4)]:
        choice = federated.best_published(m, n, alpha, epsilon, bins)
        plan = make("fedcp2-qq", alpha, epsilon, (n,) * m, bins=bins)
        assert plan.protocol.targets == (choice.rank,) * m
        assert plan.certify()[0] == choice.k
        assert plan.certify()[1].coverage == pytest.approx(1 - alpha)
