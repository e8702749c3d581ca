"""Statements about coverage, computed from target ranks and slopes. They do not depend on a particular mechanism.

All rest on the lemma in random_rank.py. certificate.py and two_sided.py have the marginal certificates for a public n,
half_moving.py has that for a secret n, weighted.py that for a known shift, and last_rule.py that of noisy histograms.
"""

from confide.guarantee.certificate import (
    sharp_coverage,
    sharp_loss,
    sharp_target_rank,
    weighted_loss,
    weighted_prior_bonus,
    weighted_shortfall,
)
from confide.guarantee.conditional import (
    TargetGoal,
    TargetLine,
    conditional_offset,
    conditional_target_rank,
    line_holds,
    tangent_rate,
)
from confide.guarantee.half_moving import least_number, moving_line_holds, moving_offset, moving_rate
from confide.guarantee.last_rule import (
    chosen_by_last_rule,
    laplace_residual_life,
    least_counted,
    limit_coverage,
    log_concave_residual_life,
    most_beyond,
    residual_life,
)
from confide.guarantee.random_rank import (
    RankLaw,
    SlopeNoise,
    binomial_at_least,
    competitor_ratio,
    competitor_ratio_right,
    conditional_failure,
    law_failure,
    marginal_coverage,
    mean_overshoot,
    rank_law,
    tail,
)
from confide.guarantee.statement import (
    AboutSilos,
    Guarantee,
    GuaranteeKind,
    LongRun,
    RecordCount,
    coverage_text,
    silos_text,
)
from confide.guarantee.two_sided import two_sided_coverage, two_sided_holds, two_sided_loss, two_sided_target_rank
