"""A large epsilon is reported as practically no protection, in readable numbers, wherever a loss is printed."""

import math

import pytest

import confide
from confide.mechanisms import PrivacyStatement, weak_privacy_text
from confide.support import decimal_text


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


@pytest.mark.parametrize(
    ("coverage", "text"),
    [(0.9, "0.9"), (0.900005, "0.9"), (0.9012345, "0.901234"), (0.99999, "0.99999"), (0.999999, "0.999999"),
     (0.876543, "0.876543"), (1.0, "1"), (0.8999999, "0.899999")],
)  # fmt: skip
def test_coverage_is_rounded_down(coverage, text):
    assert f"at least {text} on" in str(confide.Guarantee("marginal", coverage, None, 100, None))
    assert float(text) <= coverage
