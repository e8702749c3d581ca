"""The federated experiments: their fast draws have the exact distributions, and any CSV file can be studied."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.mechanisms.slopes import slopes_for
from experiments.federated import silos
from experiments.federated.data import folder
from experiments.federated.study import chosen
from tests.exact import histograms
from tests.federated.exact_coverage import choice_laws

MECHANISMS = [
    slopes_for(Fraction(0), Fraction(6), 3, 1, "replace_one", 1.0),
    published_quantile(9, 6, 1.5),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["slopes", "published"])
def test_seeded_draws_have_the_law_of_the_mechanism(mechanism):
    counts, rng = (3, 2, 3, 1), np.random.default_rng(0)
    law = choice_laws(mechanism, 9, 4)[histograms(9, 4).index(counts)]
    drawn = [chosen(mechanism, np.array(counts), rng) for _ in range(4000)]
    assert min(law) * 4000 > 5
    assert stats.chisquare(np.bincount(drawn, minlength=4), law * 4000).pvalue > 1e-6


CHEM97 = folder() / "chem97" / "Chem97.csv"


@pytest.mark.slow
@pytest.mark.skipif(not CHEM97.exists(), reason=f"the Chem97 data are not at {CHEM97}")
def test_education_authorities_get_nearly_the_sets_of_their_pooled_records():
    """93 small authorities, 200 splits: exact tests of coverage at 1e-6; sets at most 1.04 times the pooled ones."""
    problem = silos.from_csv(CHEM97, "score", "lea", "ridge")
    plan, threshold, *_ = silos.timed_round(problem)
    assert plan.method == "secure-sum"
    assert np.isfinite(threshold)
    found = silos.run(problem, draws=200)
    default, pooled = found["recommended default"], found["pooled, private"]
    assert default[:, 1].mean() <= 1.04 * pooled[:, 1].mean()
    for name in ("recommended default", "secure-sum", "secure-sum, 18 silos missing"):
        assert silos.promise_kept(found[name][:, 2]) > 1e-6
        assert found[name][:, 0].mean() > 0.9
