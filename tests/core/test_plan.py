"""A plan states the mechanism of `calibrate`, its costs, and the required number of records."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import confide
from confide.core import Pilot, excess_text, typical_law
from confide.core.answer_law import competitor_ratio_for, flat_for, gap_crossed, total_rise
from confide.core.promise import promised
from confide.mechanisms import NEIGHBORS
from confide.mechanisms.privacy import privacy_statement
from confide.mechanisms.slopes import Slopes, add_remove_range, slopes_for
from tests.builders import slow
from tests.calibrations import OPTIONS, released
from tests.designs import design_of, overridden
from tests.exact import added, histograms, mechanism_law
from tests.refused import refused
from tests.threshold_laws import Law, outcome, size_ratio, threshold_ratio


def guarantee(plan):
    terms, size = plan.terms, plan.design.size
    return promised(terms, plan.n, plan.candidates.size, plan.mechanism, size)[0]


@pytest.mark.xdist_group("released")
@pytest.mark.parametrize("name", slow(OPTIONS, everyday=["add_remove", "large epsilon"]))
def test_calibrate_runs_the_mechanism_of_the_plan(name):
    unplanned = ("score", "candidates", "classes", "about", "labels", "weights")
    options = {k: v for k, v in OPTIONS[name].items() if k not in unplanned}
    calibration = released(name)
    stated = OPTIONS[name].get("candidates") or confide.core.candidates_of(calibration)
    plan = confide.plan(**{"alpha": 0.1, "epsilon": 1.0, **options}, n=1000, candidates=stated)
    assert calibration.mechanism == plan.mechanism
    assert calibration.guarantee == guarantee(plan) == plan.guarantee
    assert calibration.alpha == plan.terms.alpha
    if plan.mechanism is not None:
        r = plan.terms
        expected = privacy_statement(plan.mechanism, r.neighbors, r.records_per_person, size=r.size_scale)
        assert calibration.privacy == expected
    assert calibration.coverage >= float(1 - calibration.alpha)
    assert calibration.coverage_at_most(1000) == plan.coverage_at_most


@pytest.mark.slow(unless="1000-0.945")
@pytest.mark.parametrize(("n", "most"), [(1000, 0.945), (10_000, 0.91)])
def test_the_upper_bound_on_coverage_says_something(n, most):
    """It lies above the coverage for uniform scores, and reaches the level as n grows."""
    plan = confide.plan(0.1, 1.0, n, neighbors="replace_one")
    assert plan.expected_coverage < plan.coverage_at_most < most


REQUESTS = [
    *({"epsilon": epsilon} for epsilon in (2e-5, 1e-3, 0.05, 0.1, 1.0, 10.0, 100.0, 1e6)),
    *({"alpha": alpha, "n": 5000} for alpha in (1e-6, 0.001, "1/3", 0.5, 0.9, 1 - 1e-6)),
    *({"n": n} for n in (1, 2)),
    *({"n": n, "n_min": n} for n in (10**6, 2**31, 2**48)),
    *({"candidates": number} for number in (1, 2, 50_000, 2**20)),
    {"records_per_person": 10**6, "epsilon": 20.0},
    {"epsilon": 2e-5, "alpha": 1e-6},
    {"epsilon": 2e-5, "alpha": 1 - 1e-6},
    {"epsilon": 1e6, "alpha": 1e-6},
]
"""Ordinary and extreme requests, each with each delta, and with one of the relations."""


@pytest.mark.slow(unless="{'n': 1}-None-add_remove")
@pytest.mark.parametrize(
    ("request_", "delta", "neighbors"),
    slow(
        [
            (request_, delta, NEIGHBORS[(i + j) % 2])
            for i, request_ in enumerate(REQUESTS)
            for j, delta in enumerate([None, 0.05, 1e-6, 0.5, 1 - 1e-6] if "alpha" in request_ else [None, 0.05])
        ],
        everyday=[({"alpha": 1e-6, "n": 5000}, None, "add_remove"), ({"n": 1}, None, "add_remove")],
    ),
    ids=str,
)
def test_any_request_is_planned_as_promised(request_, delta, neighbors):
    plan = confide.plan(**{"alpha": 0.1, "epsilon": 1.0, "neighbors": neighbors, "delta": delta, **request_})
    assert guarantee(plan).coverage >= float(plan.terms.level)
    assert math.isinf(plan.target_rank) or plan.target_rank > 0
    assert plan.records_needed >= 1
    assert math.isfinite(plan.expected_excess)
    if plan.mechanism is not None:
        people, asked = plan.terms.records_per_person, request_.get("epsilon", 1.0)
        spent = privacy_statement(plan.mechanism, neighbors, people, size=plan.terms.size_scale).epsilon
        assert asked * (1 - 1e-9) <= spent <= asked
    if "alpha" not in request_ and "candidates" not in request_ and "n" not in request_:
        assert 0.9 - 0.002 <= plan.expected_coverage <= 1.0
        assert plan.expected_coverage <= plan.coverage_at_most + np.diff(typical_law(plan.candidates)).max()


@pytest.mark.parametrize("n", [2**24, 2**31 - 1, 2**31, 2**40])
def test_binomial_tails_of_many_records(n):
    """A training-conditional target lies about 1.645 binomial deviations above the level, for any number of records."""
    plan = confide.plan(alpha=0.1, epsilon=1.0, n=n, neighbors="replace_one", delta=0.05)
    beyond = plan.target_rank - 0.9 * (n + 1) - 1.6448536 * math.sqrt(n * 0.09)
    assert 0 < beyond < 30  # the cost of privacy at epsilon = 1


@pytest.mark.slow
@pytest.mark.parametrize("n", [999, 9999])
def test_cost_above_the_upper_bound_is_that_of_distant_candidates(n):
    """Candidates 0.1 apart, uniform scores, level 0.85: the threshold is 0.9, whatever privacy costs."""
    plan = confide.plan(alpha=0.15, epsilon=1.0, n=n, candidates=confide.Candidates.unit(11))
    beyond = (0.9 - plan.coverage_at_most) * (n + 1)
    assert beyond > 0.8 * 0.05 * (n + 1)
    expected = f"{0.05 * (n + 1):.1f} more records covered than requested, at least {beyond:.1f} of them because"
    assert excess_text(plan) == f"{expected} the candidates lie apart, and not for privacy"
    close = confide.plan(alpha=0.15, epsilon=1.0, n=n, score="lac")
    assert close.expected_coverage < close.coverage_at_most
    assert excess_text(close) == f"{close.expected_excess:.1f} more records covered than requested"


# --- required number of records


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "epsilon", "delta"), list(product(["public", "noisy"], [0.3, 1.0, 5.0], [None, 0.05]))
)
def test_records_needed_makes_an_answer_beyond_all_scores_unlikely(number, epsilon, delta):
    """Each number has its own design."""

    def beyond(n):
        return confide.plan(**{**options, "n": n}).chance_beyond

    options = {"alpha": 0.1, "epsilon": epsilon, "n": 200, "delta": delta}
    options |= {"public": {"neighbors": "replace_one"}, "noisy": {}}[number]
    needed = confide.plan(**options).records_needed
    assert beyond(math.ceil(1.04 * needed)) <= 0.01
    assert beyond(2 * needed) <= 0.01
    assert beyond(round(0.7 * needed)) > 0.01


@pytest.mark.long
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_stated_chances_are_those_of_the_draw(neighbors):
    """By the exact law on 400 data sets of uniform scores: at most two differ, and by at most a thirtieth."""
    rng = np.random.default_rng(3)
    for n in (60, 100, 150):
        plan, found = confide.plan(0.1, 1.0, n, neighbors=neighbors), []
        for _ in range(400):
            design = plan.design
            if neighbors == "add_remove":
                up, down = rng.geometric(1 - math.exp(-1 / plan.terms.size_scale), 2)
                design = design_of(plan.terms, n + int(up) - int(down))
            counts = confide.ScoreHistogram.from_scores(rng.random(n), design.candidates).counts
            law = np.eye(len(counts))[-1] if design.mechanism is None else mechanism_law(design.mechanism, counts)
            found.append((law[-1], law[np.flatnonzero(counts).max() + 1 :].sum()))
        infinite, beyond = np.mean(found, axis=0)
        for stated, measured in ((plan.chance_of_all, infinite), (plan.chance_beyond, beyond)):
            assert stated / 2 - 1e-3 <= measured <= 2 * stated + 1e-3
            assert abs(stated - measured) < 1 / 30


@pytest.mark.slow
def test_records_needed_does_not_depend_on_a_secret_n():
    assert len({confide.plan(alpha=0.1, epsilon=1.0, n=n).records_needed for n in (1, 1000, 10**6)}) == 1


# --- monotonicity


@pytest.mark.long
@pytest.mark.parametrize(("delta", "neighbors"), list(product([None, 0.05], NEIGHBORS)))
def test_a_larger_privacy_loss_costs_fewer_ranks(neighbors, delta):
    losses = [0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0]
    same = {"alpha": 0.1, "n": 5000, "neighbors": neighbors, "delta": delta}
    plans = [overridden(epsilon=e, candidates=1000, slopes=(1, 1), rise=8, **same) for e in losses]
    targets = [p.target_rank for p in plans]
    assert targets == sorted(targets, reverse=True)
    assert len(set(targets)) == len(targets)
    needed = [confide.plan(epsilon=e, **same).records_needed for e in (0.2, 1.0, 5.0)]
    assert needed == sorted(needed, reverse=True)


# --- plans are values


def test_nonprivate_rank_and_target_are_stated_for_n():
    plan = confide.plan(alpha="0.1", epsilon=1.0, n=99)
    assert plan.nonprivate_rank == 90
    assert plan.target_rank == float(plan.mechanism.target(99))
    assert replace(plan, n=199).nonprivate_rank == 180
    assert replace(plan, n=1).nonprivate_rank == 2


@pytest.mark.parametrize("n", [99, 100, 101, 10**6])
def test_utilities_beyond_64_bits_are_saturated_whatever_n_is(n):
    """Choices that raised an error from 101 records on, which revealed that there were more than 100."""
    mechanism = Slopes(Fraction(999, 1000), Fraction(4611686018226), 1000, 1, 1e6, head_start=10**6)
    counts = np.array([n - n // 2, n // 2, 0])
    whole = [int(count) for count in counts]
    target, at_or_below = int(mechanism.target(n) * mechanism.unit), [mechanism.unit * s for s in (whole[0], n, n)]
    exact = [-1000 * max(target - b, 0) for b in at_or_below[:2]] + [mechanism.head_start]
    found = mechanism.utilities(counts)
    relative = [max(u - max(exact), -(2**62)) for u in exact]
    assert [int(u) - int(found.max()) for u in found] == relative
    assert mechanism.choose(counts) == 2
    with refused(confide.errors.InputError, "alpha"):
        slopes_for(Fraction(1, 10**6), Fraction(1), 1000, 1000, "add_remove", 1e-9)


def test_saturated_utilities_keep_the_range_distance():
    """Every neighbour of small histograms, and a target that exceeds 64 bits for some of them."""
    room = 2**62 // 1000
    mechanism = Slopes(Fraction(1, 2), Fraction(room, 2), 1000, 1, 4.0)
    for h in histograms(3, 3):
        u = mechanism.utilities(np.array(h)).astype(object)
        for g in added(h):
            change = mechanism.utilities(np.array(g)).astype(object) - u
            assert change.max() - change.min() <= add_remove_range(1000, 1, mechanism.rate, mechanism.unit)


# --- the rise of prior weights: as slow as their competitors allow, capped because of gaps, less for few records


@pytest.mark.parametrize(("m", "rise"), [(13, 3.0), (61, 6.0), (481, 16.0), (1000, 20.0), (30, 1.0)])
def test_prior_weights_rise_as_slowly_as_competitors_allow(m, rise):
    """The stated log weights, against the recursion w_j = max(1, (w_1 + ... + w_(j-1))/G) for their G."""
    rivals = competitor_ratio_for(m, rise)
    weights = [1.0]
    while len(weights) < m:
        weights.append(max(1.0, sum(weights) / rivals))
    assert math.log(weights[-1]) == pytest.approx(rise, abs=1e-6)
    assert total_rise(m, rivals) == pytest.approx(rise, abs=1e-6)
    stated = Slopes(Fraction(0), Fraction(9), 9, 11, 1e6, flat=flat_for(m, rise), rise=int(rise * 1e6))
    step = math.log1p(1 / rivals)
    assert (
        np.abs(stated.log_prior_weights(m) / stated.scale - np.log(weights)).max() < step / 16
    )  # `flat` is in sixteenths
    assert stated.rivals(m) == pytest.approx(rivals, rel=0.05)


@pytest.mark.parametrize("neighbors", ["replace_one", *slow(["add_remove"])])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_gap_is_crossed_where_the_formula_states(neighbors, share):
    """All scores at one candidate and, beyond a gap, at another: the exact probability of an answer beyond it."""
    plan = confide.plan(0.1, 1.0, 2000, neighbors=neighbors, score="lac")
    mechanism, m = plan.mechanism, plan.candidates.size
    shift = float(mechanism.target(2000)) - 0.9 * 2001
    slope = mechanism.slope_right
    limit = gap_crossed(mechanism.total_rise, mechanism.rivals(m), shift, slope, share)
    if share == 0.5:
        assert plan.gap == limit
    begin = round((1 - share) * m) - 5

    def beyond(ranks):
        counts = np.zeros(m, dtype=np.int64)
        counts[begin] = round(0.9 * 2001 + ranks)
        counts[begin + round(share * m)] = 2000 - counts[begin]
        return mechanism_law(mechanism, counts)[begin + 1 :].sum()

    chances = [beyond(limit + away / slope) for away in (-5, -2, 0, 2, 5)]
    assert all(a > b for a, b in pairwise(chances))
    assert chances[0] > 0.98
    assert 0.2 < chances[2] < 0.8
    assert chances[-1] < 0.02


# --- statements about a pilot sample hold for records like it; nothing else depends on it


def probabilities(seed=0, n=3000):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(6) / 3, n)
    return p, (np.cumsum(p, axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 5)


def plan(n=1000, **options):
    return confide.plan(0.1, 1.0, n, **{"neighbors": "replace_one", **options})


@pytest.mark.slow(unless="lac-1000")
@pytest.mark.parametrize(("score", "n"), [("lac", 1000), ("lac", 300), ("aps_deterministic", 1000)])
def test_set_sizes_match_samples_of_the_pilot(score, n):
    """Compared with forty samples of n records, exactly over the noise: within 2 %, also the non-private size."""
    p, y = probabilities()
    scores, every = confide.class_score(p, y, score), confide.all_scores(p, score)
    made, rng = plan(n, score=score, pilot=Pilot(scores, every)), np.random.default_rng(1)
    found, ordered = made.on_pilot, np.sort(every, axis=None)
    sizes = np.mean([size_ratio(made, ordered, rng.choice(scores, n)) for _ in range(40)], axis=0) / len(p)
    np.testing.assert_allclose([found.size, found.plain_size], sizes, rtol=0.02)
    assert found.ratio == found.size / found.plain_size
    assert 1 < found.ratio < 1.2


@pytest.mark.slow
def test_widths_and_probabilities_match_samples_of_the_pilot():
    residuals = np.abs(np.random.default_rng(2).normal(size=4000)) * 30
    again = Law(
        lambda g, n: g.choice(residuals, n), lambda v: np.searchsorted(np.sort(residuals), v, side="right") / 4000
    )
    for n, score in ((1000, "absolute_residual"), (200, "normalised_residual")):
        made = plan(n, score=score, pilot=residuals)
        assert abs(made.on_pilot.ratio - threshold_ratio(made, again, 40)) < 0.05
        assert made.on_pilot.size is None
        assert made.on_pilot.chance_beyond <= outcome(made, again, 40).beyond + 0.01


@pytest.mark.slow
def test_the_non_private_threshold_is_that_of_n_records():
    scores = np.arange(1, 1001) / 1000
    assert plan(1000, pilot=scores).on_pilot.plain_threshold == 0.901  # the 901st of 1000
    assert plan(100, pilot=scores).on_pilot.plain_threshold == 0.91  # the 91st of 100
    nothing = plan(5, pilot=Pilot(scores, np.ones((10, 3)))).on_pilot
    assert (nothing.plain_threshold, nothing.chance_of_all, nothing.chance_beyond) == (math.inf, 1.0, 1.0)
    assert (nothing.size, nothing.ratio) == (3.0, None)


@pytest.mark.slow(unless="replace_one")
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_nothing_else_depends_on_the_pilot(neighbors):
    scores = np.random.default_rng(4).random(500)
    without, tried = (plan(neighbors=neighbors, pilot=pilot) for pilot in (None, scores))
    assert tried.mechanism == without.mechanism
    assert tried.design == without.design
    assert tried.guarantee == without.guarantee
    assert tried.privacy == without.privacy
    assert without.on_pilot is None
    assert str(tried).startswith(str(without))
    assert hash(tried) is not None
    assert repr(scores[0]) not in repr(tried)


@pytest.mark.parametrize(
    ("pilot", "argument", "got"),
    [
        ([], "pilot", "no values"),
        ([0.5, np.nan], "pilot", "1"),
        ([[0.5, 0.6]], "pilot", "shape (1, 2)"),
        ([0.5, 3.0], "scores", "0 NaN and 1 outside, the first at position 1"),
    ],
)
def test_invalid_pilot_samples(pilot, argument, got):
    with refused(confide.errors.InputError, argument) as caught:
        plan(pilot=pilot)
    assert caught.value.got == got
    with refused(confide.errors.InputError, "class_scores"):
        Pilot([0.5], [0.5, 0.6])
    with refused(confide.errors.InputError, "score"):
        plan(pilot=confide.aps_score([[0.5, 0.5]], [0]))
