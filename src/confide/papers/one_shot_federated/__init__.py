"""One-shot federated conformal prediction, by number: the paper's sections, one a file.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023 (PMLR 202).

split_conformal.py        2      (2), Theorem 2.1, the particular cases of 3.2
quantile_of_quantiles.py  3.1-3  Definition 3.1, Theorem 3.2, (5), (6), Figures 1, 6, 7
conditional.py            3.4    Theorem 3.3
unlike_silos.py           3.5    Proposition 3.4, Remark C.2, Theorem C.3
private.py                4      Algorithms 2 and 3, (9), (10), Theorem 4.1, Remark 4.2, Lemma C.4, Figure 2
sizes.py                  A.1    unequal sizes
rectangles.py             A.2    (11)
largest.py                A.3    Proposition A.1, Lemma C.5
order_statistics.py       C.1    Lemma C.1
"""

from confide.papers.one_shot_federated.conditional import (
    conditional_miscoverage,
    published_conditional_k,
    published_deviation,
)
from confide.papers.one_shot_federated.largest import gamma_sum, largest_scores_coverage, largest_scores_k
from confide.papers.one_shot_federated.order_statistics import order_statistic_cdf, order_statistic_density
from confide.papers.one_shot_federated.private import (
    PrivateRanks,
    best_gamma,
    loss_of_pipeline,
    private_correction,
    private_ranks,
    quantile_law,
    quantile_sensitivity,
    quantile_shortfall,
)
from confide.papers.one_shot_federated.quantile_of_quantiles import (
    UpperBounds,
    qq_coverage_sum,
    qq_coverage_table,
    quantile_of_quantiles,
    upper_bounds,
)
from confide.papers.one_shot_federated.rectangles import qq_coverage_by_rectangles, rectangle_probability
from confide.papers.one_shot_federated.sizes import unequal_coverage_sum, unequal_ranks
from confide.papers.one_shot_federated.split_conformal import conformal_rank, order_statistic, split_conformal_bounds
from confide.papers.one_shot_federated.unlike_silos import (
    UnlikeReply,
    UnlikeSilos,
    distance_to_binomial,
    ehm_bound,
    ehm_lower_bound,
    loss_of_equal_treatment,
    total_variation,
    unlike_silos_bound,
    unlike_silos_coverage,
)

__all__ = [
    "PrivateRanks", "UnlikeReply", "UnlikeSilos", "UpperBounds", "best_gamma", "conditional_miscoverage",
    "conformal_rank", "distance_to_binomial", "ehm_bound", "ehm_lower_bound", "gamma_sum", "largest_scores_coverage",
    "largest_scores_k", "loss_of_equal_treatment", "loss_of_pipeline", "order_statistic", "order_statistic_cdf",
    "order_statistic_density", "private_correction", "private_ranks", "published_conditional_k", "published_deviation",
    "qq_coverage_by_rectangles", "qq_coverage_sum", "qq_coverage_table", "quantile_law", "quantile_of_quantiles",
    "quantile_sensitivity", "quantile_shortfall", "rectangle_probability", "split_conformal_bounds", "total_variation",
    "unequal_coverage_sum", "unequal_ranks", "unlike_silos_bound", "unlike_silos_coverage", "upper_bounds",
]  # fmt: skip
