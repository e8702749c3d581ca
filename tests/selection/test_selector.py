"""The exponential mechanism: its exact law, its scale, and the installed sampler."""

from fractions import Fraction

import numpy as np
import pytest
from opendp import mod
from scipy import stats

from confide.selection import select, selection_law, with_contrib
from confide.selection.selector import noisy_max
from confide.support import scale_for
from tests.exact import law


@pytest.mark.parametrize(("distance", "epsilon"), [(20, 1.0), (18, 0.7), (7, 0.1), (123456, 3.3), (10**12, 1e-3)])
def test_scale_is_the_smallest_that_keeps_the_loss(distance, epsilon):
    """Range distance/scale, the loss by Lemma P2, exactly: at most epsilon, and above it at the float below."""
    scale = scale_for(distance, epsilon)
    assert distance / Fraction(scale) <= Fraction(epsilon)
    assert distance / Fraction(float(np.nextafter(scale, 0))) > Fraction(epsilon)


@pytest.mark.parametrize("on", [False, True])
def test_features_of_opendp_stay_as_they_were(on, monkeypatch):
    monkeypatch.setattr("opendp.mod.GLOBAL_FEATURES", {"contrib"} if on else set())
    assert with_contrib(lambda: "contrib" in mod.GLOBAL_FEATURES)
    assert ("contrib" in mod.GLOBAL_FEATURES) is on
    with pytest.raises(ZeroDivisionError):
        with_contrib(lambda: 1 / 0)
    assert ("contrib" in mod.GLOBAL_FEATURES) is on


@pytest.mark.parametrize("scale", [0.5, 20.0, 1e9 / 3])
def test_opendps_map_is_twice_the_largest_change_over_the_scale(scale):
    """OpenDP's map for the largest change d of one utility is 2 d/scale, whose square over 8 is rho."""
    loss = 2 * 20 / scale
    assert noisy_max(scale).map(20) == pytest.approx(loss**2 / 8, rel=1e-12)


@pytest.mark.parametrize(
    "utilities", [[0, 0, 0, 0], [-3, 0, -1, -6, -40], [-1000, -999, -1003, -1001], list(range(-12, 1))]
)
def test_library_law_is_the_exact_law(utilities):
    u = np.array(utilities, dtype=np.int64)
    exact = law(u, 2.0)
    np.testing.assert_allclose(selection_law(np.exp((u - u.max()) / 2.0)), exact, rtol=1e-9)
    assert exact.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("utilities", "scale"),
    [
        ([-30, -20, -10, 0, -5, -15, -45], 10.0),
        ([0, 0, 0, -1], 1.0),
        ([-(10**15), -(10**15) - 3 * 10**14, -(10**15) - 5 * 10**14], 4.1e14),
        (list(range(-60, 0)) + list(range(0, -40, -1)), 11.7),
    ],
)
def test_installed_sampler_matches_exact_law(utilities, scale):
    """Chi-square at level 1e-6 of OpenDP's sampler, compared with the exact law."""
    u = np.array(utilities, dtype=np.int64)
    draws = np.bincount([select(u, scale) for _ in range(6000)], minlength=len(u))
    expected = 6000 * selection_law(np.exp((u - u.max()) / scale))
    small = expected < 10
    observed = np.append(draws[~small], draws[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    keep = wanted > 0
    statistic = np.sum((observed[keep] - wanted[keep]) ** 2 / wanted[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-6
