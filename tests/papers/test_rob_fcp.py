"""Rob-FCP's certificate against arithmetic of its own in fifty digits, and what it comes to compared with ours."""

from pathlib import Path

import mpmath
import pytest
from mpmath import mp, mpf

from benchmarks.newer_methods import rob_fcp_table
from confide.papers import rob_fcp


def bounds(honest, byzantine, n, bins, alpha, beta, distance):
    """Lower and upper bound in fifty digits, written down from the program's formula."""
    with mp.workdps(50):
        alpha, beta, distance = mpf(alpha), mpf(beta), mpf(distance)
        tau = mpf(byzantine) / honest
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - beta / (bins * honest))
        wide = bins * z / 2 / mpmath.sqrt(n) * (1 + tau) / (1 - tau)
        low = 1 - alpha - (distance * n + 1) / (n + honest) - wide
        return low, 1 - alpha + distance + mpf(honest) / (n + honest) + wide


@pytest.mark.parametrize(
    "setting",
    [
        (17, 3, 200, 2, "0.1", "0.05", 0),
        (17, 3, 200, 100, "0.1", "0.05", 0),
        (17, 3, 10_000, 10, "0.1", "0.05", "0.01"),
        (5, 4, 40_000, 2, "0.05", "0.001", 0),
        (100, 0, 17, 1, "0.2", "0.5", "0.125"),
    ],
)
def test_the_certificate_is_the_programs(setting):
    low, high = bounds(*setting)
    asked = *setting[:4], setting[4], setting[5], float(setting[6])
    assert abs(rob_fcp.lower_bound(*asked) - low) < 1e-12 * max(1, abs(low))
    assert abs(rob_fcp.upper_bound(*asked) - high) < 1e-12 * max(1, abs(high))


@pytest.mark.parametrize(
    ("n", "found"), [(200, (0.574, None, None)), (10_000, (0.854, 0.641, None))]
)  # None: below zero
def test_it_is_vacuous_at_the_sizes_of_hospitals(n, found):
    for bins, stated in zip((2, 10, 100), found, strict=True):
        value = rob_fcp.lower_bound(17, 3, n, bins)
        assert value < 0 if stated is None else round(value, 3) == stated


def test_it_tends_to_the_level_as_silos_grow():
    """What its abstract says: asymptotically close to the level, here at distance 0; a distance stays."""
    low, high = rob_fcp.lower_bound(17, 3, 2**46, 2), rob_fcp.upper_bound(17, 3, 2**46, 2)
    assert 0.9 - 1e-5 < low < 0.9 < high < 0.9 + 1e-5
    assert rob_fcp.lower_bound(17, 3, 2**46, 2, distance=0.05) == pytest.approx(0.85, abs=1e-5)


def test_the_table_of_the_page_is_what_the_command_prints():
    page = (Path(__file__).parents[2] / "docs" / "theory-federated.md").read_text(encoding="utf-8")
    assert "\n".join(rob_fcp_table()) in page.replace("$", "")  # the page sets the formulas of the head
