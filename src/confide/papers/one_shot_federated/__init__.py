"""One-shot federated conformal prediction, by number.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023 (PMLR 202).

order_statistics.py       2      (2), Theorem 2.1, the particular cases of 3.2
                          3.4    Theorem 3.3
                          A.1-3  unequal sizes, (11), Proposition A.1, Lemma C.5
                          C.1    Lemma C.1
quantile_of_quantiles.py  3.1-3  Definition 3.1, Theorem 3.2, (5), (6), Figures 1, 6, 7
                          3.5    Proposition 3.4, Remark C.2, Theorem C.3
                          4      Algorithms 2 and 3, (9), (10), Theorem 4.1, Remark 4.2, Lemma C.4, Figure 2
"""

from confide.papers.one_shot_federated.order_statistics import (
    conditional_miscoverage,
    conformal_rank,
    gamma_sum,
    largest_scores_coverage,
    largest_scores_k,
    order_statistic,
    order_statistic_cdf,
    order_statistic_density,
    published_conditional_k,
    published_deviation,
    qq_coverage_by_rectangles,
    rectangle_probability,
    split_conformal_bounds,
    unequal_coverage_sum,
    unequal_ranks,
)
from confide.papers.one_shot_federated.quantile_of_quantiles import (
    NonIidBound,
    NonIidReply,
    PrivateRanks,
    UpperBounds,
    best_gamma,
    distance_to_binomial,
    ehm_bound,
    ehm_lower_bound,
    loss_of_equal_treatment,
    loss_of_pipeline,
    non_iid_bound,
    non_iid_coverage,
    private_correction,
    private_ranks,
    qq_coverage_sum,
    qq_coverage_table,
    quantile_law,
    quantile_of_quantiles,
    quantile_sensitivity,
    quantile_shortfall,
    total_variation,
    upper_bounds,
)

__all__ = [
    "NonIidBound",
    "NonIidReply",
    "PrivateRanks",
    "UpperBounds",
    "best_gamma",
    "conditional_miscoverage",
    "conformal_rank",
    "distance_to_binomial",
    "ehm_bound",
    "ehm_lower_bound",
    "gamma_sum",
    "largest_scores_coverage",
    "largest_scores_k",
    "loss_of_equal_treatment",
    "loss_of_pipeline",
    "non_iid_bound",
    "non_iid_coverage",
    "order_statistic",
    "order_statistic_cdf",
    "order_statistic_density",
    "private_correction",
    "private_ranks",
    "published_conditional_k",
    "published_deviation",
    "qq_coverage_by_rectangles",
    "qq_coverage_sum",
    "qq_coverage_table",
    "quantile_law",
    "quantile_of_quantiles",
    "quantile_sensitivity",
    "quantile_shortfall",
    "rectangle_probability",
    "split_conformal_bounds",
    "total_variation",
    "unequal_coverage_sum",
    "unequal_ranks",
    "upper_bounds",
]  # fmt: skip
