"""The federated experiments: their fast draws have the exact distributions, and texts become numbers."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.mechanisms.slopes import slopes_for
from experiments.federated.draws import chosen
from tests.exact import histograms
from tests.federated.exact_coverage import choice_laws

MECHANISMS = [
    slopes_for(Fraction(0), Fraction(6), 3, 1, "replace_one", 1.0),
    published_quantile(9, 6, 1.5),
]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["slopes", "published"])
def test_seeded_draws_have_the_law_of_the_mechanism(mechanism):
    counts, rng = (3, 2, 3, 1), np.random.default_rng(0)
    law = choice_laws(mechanism, 9, 4)[histograms(9, 4).index(counts)]
    drawn = [chosen(mechanism, np.array(counts), rng) for _ in range(4000)]
    assert min(law) * 4000 > 5
    assert stats.chisquare(np.bincount(drawn, minlength=4), law * 4000).pvalue > 1e-6
