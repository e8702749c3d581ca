"""Scores at a public temperature: the numbers, every entry point that makes sets, and valid names."""

import mpmath
import numpy as np
import pytest

import confide
from confide.errors import InputError
from confide.scores import LIBRARY, score_kind
from confide.scores.kinds import tempered
from tests.refused import refused

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")


@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0, 2.5, 100.0])
def test_probabilities_at_a_temperature_are_powers_rescaled(temperature):
    rows = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [1e-300, 0.5, 0.5], [0.25, 0.25, 0.5]])
    with mpmath.workdps(60):
        for row, found in zip(rows, tempered(rows, temperature), strict=True):
            powers = [mpmath.mpf(float(p)) ** (1 / mpmath.mpf(temperature)) for p in row]
            expected = [float(power / mpmath.fsum(powers)) for power in powers]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_it_is_the_softmax_of_scaled_logits():
    z = np.random.default_rng(0).normal(size=(50, 6)) * 4
    exact = np.exp(z / 3) / np.exp(z / 3).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tempered(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), 3.0), exact, atol=1e-14)


def test_rows_are_computed_separately():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(7) / 5, 301)
    together = tempered(p, 1.7)
    for rows in (slice(0, 1), slice(3, 4), slice(100, 205)):
        assert (tempered(p[rows], 1.7) == together[rows]).all()
    assert (tempered(np.asfortranarray(p), 1.7) == together).all()
    assert not tempered(np.zeros((2, 3)), 2.0).any()


@pytest.mark.parametrize(
    "name",
    ["top_k(temperature=2)", "lac(temperature=0)", "lac(temperature=101)", "lac(temperature=2,temperature=2)", "lac()",
     "lac(temperature=inf)", "absolute_residual(temperature=2)", "raps_deterministic(temperature=2)", "lac(temp=2)"],
)  # fmt: skip
def test_other_names_raise(name):
    with refused(InputError, "score"):
        score_kind(name)


def test_every_score_of_probabilities_has_one():
    for known in LIBRARY:
        if known.task == "classification" and known.name != "top_k":
            parameters = dict.fromkeys(known.parameters, 1)
            assert score_kind(confide.score_name(known.name, **parameters, temperature=2)).temperature == 2.0
