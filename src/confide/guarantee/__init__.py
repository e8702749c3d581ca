"""In come target ranks and slopes, out go statements about coverage: theorems, without a word about mechanisms.

random_rank.py  the random-rank lemma: privacy noise is a random rank that knows nothing of the data
rivals.py       how much the candidates weigh that can go wrong: G
certificate.py  the sharp marginal certificate
two_sided.py    the two-sided certificate: competitors on both sides of the target
secret_n.py     the same where n is secret
adversary.py    the worst case of the two-sided certificate, bounded
left_side.py    its candidates left of the target, which can go wrong
right_side.py   its candidates right of the target, which compete with them
weighted.py     the sharp certificate where records weigh differently: a known shift
marginal.py     target ranks for the marginal guarantee
conditional.py  target ranks for the training-conditional guarantee
noise_walk.py   the maximum of a noise walk, for noisy histograms
noisy_labels.py the law of a rank where labels were randomised one by one
statement.py    `Guarantee`: what is promised, in numbers and in words
"""

from confide.guarantee.certificate import private_shortfall, public_coverage, sharp_loss
from confide.guarantee.conditional import line_holds, private_offset, public_target, tangent_rate
from confide.guarantee.marginal import NEVER_SMALL, private_head_start, private_shift, public_shift
from confide.guarantee.noise_walk import maximum, total_above, walk_maximum
from confide.guarantee.noisy_labels import mean_coverage, noise_tail, noisy_rank, noisy_rank_law
from confide.guarantee.random_rank import (
    RankLaw,
    binomial_at_least,
    conditional_failure,
    law_failure,
    marginal_coverage,
    mean_overshoot,
    rank_law,
    tail,
)
from confide.guarantee.rivals import rivals_left, rivals_right
from confide.guarantee.secret_n import (
    two_sided_head_start,
    two_sided_offset,
    two_sided_secret,
    two_sided_shortfall,
)
from confide.guarantee.statement import (
    CERTIFICATES,
    GUARANTEE_KINDS,
    AboutSilos,
    Guarantee,
    GuaranteeKind,
    coverage_text,
    silos_text,
)
from confide.guarantee.two_sided import (
    two_sided_coverage,
    two_sided_holds,
    two_sided_loss,
    two_sided_shift,
)
from confide.guarantee.weighted import weighted_head_start, weighted_loss, weighted_shortfall
