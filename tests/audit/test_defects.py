"""Defects of every kind that are found, those that the checks were not made for included."""

import math

import pytest

from confide.audit import Effort, audit, foreign_subject
from tests.audit import broken

ATTACK = Effort(sampler=0, attack=2000, coverage=0)


def failed(mechanism, effort, **claims):
    report = audit([foreign_subject(mechanism, "broken", **claims)], effort)
    return {finding.check for finding in report.findings if not finding.passed}


@pytest.mark.parametrize(
    ("mechanism", "calibrations"),
    [(broken.covering(0.885), 300), (broken.strictly_below, 200)],
    ids=[".885 for .9", "< for <="],
)
def test_coverage_a_little_too_low_is_found(mechanism, calibrations):
    assert failed(mechanism, Effort(0, 0, calibrations), alpha=0.1) == {"coverage"}


@pytest.mark.long
def test_a_rank_too_low_is_found_by_the_long_audit():
    assert failed(broken.covering(0.8985), Effort(0, 0, 10_000), alpha=0.1) == {"coverage"}


@pytest.mark.parametrize("mechanism", [broken.infinite_below_8, broken.parity_from_20])
def test_a_threshold_that_tells_the_number_of_records_is_found(mechanism):
    assert failed(mechanism, ATTACK, epsilon=0.01, neighbors="add_remove") == {"search"}


def test_noise_that_is_used_again_is_found():
    assert "fresh noise" in failed(broken.Every(50), Effort(0, 0, 0, fresh=1000))
    assert "fresh noise" in failed(broken.Every(2), Effort(0, 0, 0, fresh=1000))
    assert "fresh noise" in failed(broken.Repeating(97), Effort(0, 0, 0, fresh=2000))
    assert "fresh noise" in failed(broken.Late(), Effort(0, 0, 0, fresh=1000))


def test_a_loss_of_135_is_found_where_one_record_decides():
    assert failed(broken.Response(1.35), Effort(0, 3000, 0), epsilon=1.0) == {"search"}


@pytest.mark.long
def test_noise_cut_by_135_is_found():
    assert failed(broken.cut_135, Effort(0, 300_000, 0)) == {"search"}


def test_an_error_on_some_data_is_an_outcome():
    def refuses_few(scores):
        if len(scores) < 5:
            raise ValueError("too few")
        return 0.5

    assert failed(refuses_few, ATTACK, epsilon=1.0, neighbors="add_remove") == {"search"}

    def refuses(scores):
        raise ValueError("always")

    with pytest.raises(ValueError, match="always"):
        failed(refuses, ATTACK, epsilon=1.0)


def test_continuous_thresholds_are_told_apart():
    """No outcome comes twice: neighbours are told apart by intervals."""
    rng = broken.np.random.default_rng()
    assert failed(lambda scores: scores.mean() + rng.laplace(0, 1 / len(scores) / 2), ATTACK, epsilon=1.0) == {"search"}


def test_a_subject_that_needs_many_records_says_so():
    def needs_400(scores):
        return float(broken.np.sort(scores)[-20]) if len(scores) >= 400 else 0.0

    assert failed(needs_400, Effort(0, 0, 100), alpha=0.1) == {"coverage"}
    assert not failed(needs_400, Effort(0, 0, 100), alpha=0.1, least_records=400)
    assert foreign_subject(needs_400, "x", alpha=0.1, least_records=2000).coverage_sizes == (2000,)
    assert math.isclose(foreign_subject(needs_400, "x", alpha=0.1).claims.coverage, 0.9)
