"""The table of the variation of coverage has the numbers of the library, and its law holds for drawn thresholds."""

import numpy as np
import pytest
from scipy.stats import beta, binom

import confide
from confide.reports.words import variation
from tests.calibrations import released
from tests.exact_tests import LEVEL

pytestmark = pytest.mark.xdist_group("released")
TITLE = "How coverage varies"


def test_law_without_privacy_is_beta():
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, mechanism="none")
    levels = np.linspace(0.8, 1, 50)
    below = cal.coverage_failure()
    assert np.allclose([below(c) for c in levels], beta.cdf(levels, cal.mechanism.rank, 501 - cal.mechanism.rank))
    (row,) = variation({"500": below}, 0.9).tables[0].rows
    assert float(row[4]) == pytest.approx(beta.median(cal.mechanism.rank, 501 - cal.mechanism.rank), abs=6e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_bound_holds_for_drawn_thresholds():
    """Calibrations on uniform scores: no more of them below a level than the law says, at LEVEL."""
    rng = np.random.default_rng(0)
    candidates, n = confide.Candidates.unit(500), 300
    drawn = [
        confide.calibrate(rng.random(n), 0.1, 1.0, candidates=candidates, neighbors="replace_one") for _ in range(400)
    ]
    below, levels = drawn[0].coverage_failure(), np.linspace(0.8, 1, 60)
    thresholds = np.array([min(one.threshold, 1.0) for one in drawn])
    for level in levels:
        assert binom.sf(np.sum(thresholds < level) - 1, len(drawn), min(below(level), 1.0)) > LEVEL / len(levels)


def test_page_without_known_law():
    cal = confide.calibrate(np.linspace(0, 1, 500), 0.1, 1.0, mechanism="opendp-quantile")
    for release in (released("too few records"), cal):
        assert TITLE not in [part.title for part in confide.report(release).section.parts]
