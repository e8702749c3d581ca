"""The population of a guarantee, wherever it is printed: IID silos, or a silo drawn by size."""

import warnings

import numpy as np
import pytest
from scipy import stats

import confide
from confide import federated
from confide.cli.run import main
from confide.errors import CoverageWarning
from tests.federated.helpers import Federation


@pytest.fixture
def three(tmp_path):
    return Federation.uniform(tmp_path, *[300] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1000.0, 1.0, 30.0, 0.001])
def test_a_silo_of_another_unit_is_pointed_out(tmp_path, capsys, factor):
    """Residuals in micrograms, and one silo's in nanograms: the public replies show the difference."""
    rng = np.random.default_rng(0)
    scores = [rng.exponential(30, 400) for _ in range(4)]
    four = Federation(tmp_path, [*scores, factor * rng.exponential(30, 400)], names=["a", "b", "c", "d", "Dongsi"])
    wide = confide.Candidates.of(np.geomspace(1e-3, 1e6, 181))
    text = four.plan(epsilon=8.0, candidates=wide)
    answers = four.answers(text)
    far = factor in (1000.0, 0.001)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        released = federated.aggregate(text, answers)
    said = [str(one.message) for one in caught if issubclass(one.category, CoverageWarning)]
    assert len(said) == far
    if far:
        assert said[0].startswith("replies of 'Dongsi' (")
        assert "Compare their units, their model and their numbers of records" in said[0]
    for name, message in zip(["plan", "0", "1", "2", "3", "4"], [text, *answers], strict=True):
        (tmp_path / f"{name}.json").write_text(message)
    files = [str(tmp_path / f"{i}.json") for i in range(5)]
    out = str(tmp_path / "released.json")
    assert main(["federated", "aggregate", *files, "--plan", str(tmp_path / "plan.json"), "--out", out]) == 0
    assert ("warning: replies of 'Dongsi' (" in capsys.readouterr().err) is far
    page = confide.report(released, answers=answers).html
    assert ("Replies of &#39;Dongsi&#39; (" in page) is far


@pytest.mark.slow
def test_probabilities_of_iid_silos_may_be_any_small_numbers(three):
    """Scores from 0 to 1 have no unit, and those of a confident model span decades."""
    read = federated.read_plan(three.plan(score="lac"))
    assert federated.distant_replies(read, {"silo 0": 1e-6, "silo 1": 0.5, "silo 2": 0.6}) is None


@pytest.mark.parametrize("m", [2, 4, 9])
def test_a_test_of_iid_silos_has_no_useful_level(m):
    """Theorem F13: the mean over p of P(Bin(m, p) = k) is 1/(m + 1), so some p has at least this probability."""
    x, weights = np.polynomial.legendre.leggauss(m + 1)
    for k in range(m + 1):
        assert weights @ stats.binom.pmf(k, m, (x + 1) / 2) / 2 == pytest.approx(1 / (m + 1), rel=1e-12)


@pytest.mark.slow
def test_two_replies_and_infinite_ones_are_looked_at(three):
    read = federated.read_plan(three.plan(candidates=confide.Candidates.of([1.0, 1e4, 1e9])))
    assert federated.distant_replies(read, {"silo 0": 1.0, "silo 1": 1e4}).startswith("replies of 'silo 1' (10000)")
    assert federated.distant_replies(read, {"silo 0": 1.0, "silo 1": float("inf")}) is None
    assert federated.distant_replies(read, {"silo 0": -1.0, "silo 1": 1e4, "silo 2": 1e9}) is None
    read = federated.read_plan(three.plan(candidates=confide.Candidates.of([0.001, 1.0, 1.5])))
    assert federated.distant_replies(read, {"silo 0": 0.001, "silo 1": 1.0, "silo 2": 1.5}) is not None


@pytest.mark.slow
def test_errors_for_secret_sizes_name_methods_for_different_silos(three, tmp_path, capsys):
    for keys in three.keys:
        (tmp_path / f"{keys.name}.silo").write_text(keys.public().to_json())
    three.coordinator.save(tmp_path / "coordinator.key")
    silos = [part for keys in three.keys for part in ("--silo", str(tmp_path / f"{keys.name}.silo"))]
    asked = ["--alpha", "0.1", "--epsilon", "4", "--set", "candidates=20", "--set", "n_min=100", "--compare"]
    assert main(["federated", "plan", *silos, "--keys", str(tmp_path / "coordinator.key"), *asked]) == 0
    said = capsys.readouterr().out
    assert "private-qq: " in said
    assert "see the reply of each silo" in said
    assert "you can use secure-sum, whose promise holds for non-IID silos" in said
