"""Intervals from noisy counts: they hold exactly, by enumeration and by simulation with noise as it is drawn."""

import numpy as np

from confide.noisy_counts import coverage_interval


def test_ends_agree_with_the_exact_tails_of_one_known_case():
    """Without noise to speak of and with a public size, the interval is that of Clopper and Pearson."""
    from scipy.stats import binomtest

    low, high = coverage_interval([0, 45, 50], [50, 5, 0], 60.0, size=50)
    for k, found in zip((0, 45, 50), zip(low, high, strict=True), strict=True):
        np.testing.assert_allclose(found, binomtest(k, 50).proportion_ci(), atol=1e-8)
