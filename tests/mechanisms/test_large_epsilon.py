"""A large epsilon is reported as practically no protection, in readable numbers, wherever a loss is printed."""

import math

import pytest

import confide
from confide.cli.federated import SiloRecords
from confide.ledger import Cost, compose
from confide.mechanisms import PrivacyStatement, weak_privacy_text
from confide.support import decimal_text
from tests.calibrations import released


def statement(epsilon):
    return PrivacyStatement("add_remove", epsilon, 1, epsilon, epsilon, None)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 10.0])
def test_other_losses_have_no_warning(epsilon):
    assert weak_privacy_text(epsilon) == statement(epsilon).weak == ""
    assert str(statement(epsilon)) == f"{decimal_text(epsilon)}-differential privacy for adding or removing one record"


def test_what_a_large_loss_means():
    said = str(statement(10.5))
    assert "practically no protection" in said
    assert f"e^10.5 = {math.exp(10.5):,.0f} fold" in said
    assert "e^1,000,000 fold" in str(statement(1e6))
    assert "practically no protection" not in str(statement(math.inf))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e6, "1,000,000"), (1e-6, "0.000001"), (12345.678, "12,350"), (0.5, "0.5"), (0.0, "0"), (math.inf, "inf")],
)
def test_losses_are_decimal_numbers(value, text):
    assert decimal_text(value) == text


def test_a_large_loss_on_every_screen():
    cal, plan = released("large epsilon"), confide.plan(0.1, 1e6)
    for shown in (str(cal), cal._repr_html_(), str(plan), confide.report(cal).html, confide.report(plan).html):
        assert "1,000,000" in shown
        assert "practically no protection" in shown
        assert "1e+06" not in shown.split('<script type="application/json"')[0].split('id="certificate"')[0]
    assert "practically no protection" not in confide.report(released("lac")).html


def test_a_large_loss_of_several_releases_and_of_a_silo(tmp_path):
    for epsilon, weak in ((10.0, False), (11.0, True)):
        path = tmp_path / f"{weak}.db"
        costs = [Cost(epsilon / 2, "replace_one", "slopes")] * 2
        for i, one in enumerate(costs):
            confide.Ledger(path).charge("records", one, f"{i:064}")
        for shown in (compose(costs), SiloRecords(path, "records").spent(20.0)):
            assert ("practically no protection" in str(shown)) == weak


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(0.9, "0.9"), (0.900005, "0.9"), (0.9012345, "0.901234"), (0.99999, "0.99999"), (0.999999, "0.999999"),
     (0.876543, "0.876543"), (1.0, "1"), (0.8999999, "0.899999")],
)  # fmt: skip
def test_coverage_is_rounded_down(coverage, text):
    assert f"at least {text} on" in str(confide.Guarantee("marginal", coverage, None, 100, None))
    assert float(text) <= coverage


def test_without_coverage_there_is_no_guarantee():
    assert str(confide.Guarantee("marginal", 0.0, None, 100, None)) == "NO COVERAGE IS PROMISED by this mechanism"
