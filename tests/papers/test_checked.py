"""What is no number, count or share is refused by the name of the argument, and never becomes a NaN or a traceback."""

import math

import pytest

from confide.errors import InputError
from confide.papers import one_shot_federated, opendp_quantile, private_prediction_sets
from confide.papers import private_prediction_sets_v1 as v1
from tests.refused import refused

NAN, INF = math.nan, math.inf
ASKED = [
    ("counts", lambda: private_prediction_sets.weights([], 0.5)),
    ("counts", lambda: private_prediction_sets.weights([-1, 2], 0.5)),
    ("counts", lambda: private_prediction_sets.quantile_law([0.5, 1], 0.9, 1.0)),
    ("counts", lambda: one_shot_federated.quantile_law([], 0.9, 1.0)),
    ("noisy_counts", lambda: v1.private_distribution([NAN], 1)),
    ("distribution", lambda: v1.cutoff([NAN, 1.0], 0.5, [0.0, 1.0])),
    ("t", lambda: v1.exceedance(10, 3, 1.0, -1.0)),
    ("t", lambda: v1.sum_tail(1, NAN)),
    ("m", lambda: v1.levy_bound(0, 1.0)),
    ("t", lambda: v1.bernstein_tail(-1.0, 1.0, 1.0)),
    ("b", lambda: v1.subexponential_parameters(0.0)),
    ("b", lambda: v1.laplace_moment(-1.0, 0.5)),
    ("rate", lambda: v1.moment_bound(1.0, INF)),
    ("noise", lambda: v1.adjusted_level(10, 0.1, 0.5, NAN)),
    ("n", lambda: v1.excess_rate(1, 0.9, 1e-6)),
    ("x", lambda: opendp_quantile.scores([NAN], [0.0], 0.5)),
    ("candidates", lambda: opendp_quantile.scores_by_rank([0.0], [NAN], 0.5)),
    ("p", lambda: one_shot_federated.ehm_bound([])),
    ("p", lambda: one_shot_federated.ehm_lower_bound([2.0], 0.1)),
    ("at", lambda: one_shot_federated.order_statistic_cdf(2.0, 1, 1)),
    ("l", lambda: one_shot_federated.order_statistic_density(0.5, 1.0, 3, 2)),
    ("sizes", lambda: one_shot_federated.unequal_ranks([0], 0.1)),
    ("r", lambda: one_shot_federated.rectangle_probability([0], [1], 1, 5)),
    ("k", lambda: one_shot_federated.order_statistic([1.0], 0)),
    ("l", lambda: one_shot_federated.qq_coverage_sum(0, 1, 2, 3)),
    ("l", lambda: one_shot_federated.qq_coverage_sum(4, 1, 2, 3)),
    ("k", lambda: one_shot_federated.qq_coverage_sum(1, 0, 2, 3)),
    ("k", lambda: one_shot_federated.qq_coverage_sum(1, 3, 2, 3)),
    ("m n", lambda: one_shot_federated.upper_bounds(2, 4, 0.1)),
    ("scores_below", lambda: one_shot_federated.non_iid_bound([lambda u: 2 * u], 1, 1, 1)),
    ("l", lambda: one_shot_federated.non_iid_coverage([lambda u: u] * 5, 21, 1, 20)),
    ("training", lambda: one_shot_federated.loss_of_pipeline(0.0, 1.0)),
    ("ranks", lambda: one_shot_federated.unequal_coverage_sum([3], [1, 2], 1)),
    ("l", lambda: one_shot_federated.unequal_coverage_sum([3], [5], 1)),  # 4 stands for +inf, 5 for nothing
    ("n", lambda: private_prediction_sets.upper_bound_steps(50, 0.1, 0.1, 1000, 0.001)),
    ("alpha", lambda: v1.simplified_zeta(1000, 3, 1.0, 0.1, 0.5)),
    ("gamma", lambda: v1.simplified_zeta(1000, 6, 1.0, 0.1, 0.09)),
    ("rate", lambda: v1.laplace_moment(2.0, 0.5)),
    *(("delta", lambda at=at: one_shot_federated.published_deviation(5, 200, at)) for at in (0.51, 0.9, 1.0, 0.0)),
    *(("gamma", lambda at=at: one_shot_federated.private_correction(5, 0.1, 1.0, 100, at)) for at in (0.0, 1.0)),
    *(("q", lambda at=at: private_prediction_sets.quantile_law([1, 2], at, 1.0)) for at in (0.0, 1.5)),
    *(("q", lambda at=at: private_prediction_sets.weights([1, 2], at)) for at in (0.0, 1.5)),
    ("n", lambda: private_prediction_sets.adjusted_level(0, 0.1, 1.0, 100)),
    ("epsilon", lambda: private_prediction_sets.adjusted_level(1000, 0.1, 0.0, 100)),
    ("m", lambda: private_prediction_sets.adjusted_level(1000, 0.1, 1.0, 0)),
    ("gamma", lambda: private_prediction_sets.adjusted_level(1000, 0.1, 1.0, 100, 1.0)),
    ("n", lambda: private_prediction_sets.gamma_roots(-5, 0.1, 1.0)),
    ("epsilon", lambda: private_prediction_sets.optimal_gamma(1000, 0.1, INF)),
    ("n", lambda: private_prediction_sets.least_share_at_or_below(0, 0.9, 1.0, 100, 0.05)),
    ("m", lambda: private_prediction_sets.largest_share_below(1000, 0.9, 1.0, 0, 0.05)),
    ("delta", lambda: private_prediction_sets.weight_excess(1.0, 1.0, 100, 0.0)),
    ("gamma", lambda: private_prediction_sets.lower_bound_rank(1000, 0.1, 0.0)),
    ("p_max", lambda: private_prediction_sets.published_upper_bound(50, 0.1, 0.1, 1000, 0.0)),
    ("n", lambda: private_prediction_sets.suggested_bins(0, 1.0)),
    ("density", lambda: private_prediction_sets.simplified_upper_bound(1000, 0.1, 1.0, density=NAN)),
]


@pytest.mark.parametrize(("name", "ask"), ASKED)
def test_what_cannot_be_used_is_refused_by_name(name, ask):
    with refused(InputError, name):
        ask()


def test_what_lies_at_the_edge_is_answered():
    assert v1.bernstein_tail(INF, 1.0, 1.0) == v1.sum_tail(2, INF) == 0
    assert v1.sum_tail(3, 0.0) == pytest.approx(1, abs=1e-12)
    assert private_prediction_sets.weights([0], 1).tolist() == [0]
    assert v1.excess_rate(1, 0.5, 0.5) == 0
    assert v1.cutoff([0.1, 0.5], 0.4, [0.1, 0.2]) == 0.2
