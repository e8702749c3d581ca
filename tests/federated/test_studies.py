"""The federated experiments: their fast draws have the exact distributions, and any CSV file can be studied."""

import csv
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.mechanisms.slopes import slopes_for
from experiments.federated import problems, settings, silos, tables
from experiments.federated.data import folder
from experiments.federated.study import chosen, rows_of, run
from tests.builders import slow
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


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 2))
    y = x @ [1.0, 2.0] + rng.normal(size=900) * (1 + abs(x[:, 0]))
    path = tmp_path / "own.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "y", "name", "b"])
        writer.writerows([[a, t, "text", b] for (a, b), t in zip(x, y, strict=True)])
    return path


@pytest.mark.slow
def test_any_csv_can_be_studied_by_path_and_target(table):
    problem = problems.from_csv(table, "y", "ridge")
    (m, n), many = settings.shapes_for(len(problem.scores))
    assert m < n
    assert many[0] * many[1] < len(problem.scores) > m * n
    rows = {row.method: row for row in rows_of(run(problem, m, n, epsilons=(10.0,), size=30, draws=12))}
    assert set(rows) == {"centralised", "fedcp-avg", "fedcp-qq", "private-qq, epsilon 10", "fedcp2-qq, epsilon 10"}
    for row in rows.values():
        assert row.coverage.mean() > 0.85  # 12 draws: other tests show coverage
    assert rows["fedcp-qq"].finite.mean() < rows["fedcp2-qq, epsilon 10"].finite.mean()


def test_a_target_that_is_not_there_is_named(table):
    with pytest.raises(SystemExit):
        problems.from_csv(table, "z", "ridge")
    with pytest.raises(SystemExit):
        problems.from_csv(table, "name", "ridge")
    with pytest.raises(SystemExit):
        settings.shapes_for(40)


def test_texts_are_encoded_and_row_numbers_left_out():
    table = pd.DataFrame(
        {
            "row": range(1, 101),
            "few": ["b", "a"] * 50,
            "many": [f"t{i % 40}" for i in range(100)],
            "gaps": ["1.5", "?", *["2"] * 98],
            "y": range(100),
        }
    )
    found = tables.features(table, ["y"])
    assert found.shape == (100, 4)  # a, b, the frequency of a text, and the numbers with a median for "?"
    np.testing.assert_array_equal(found[:2, :2], [[0, 1], [1, 0]])
    assert set(found[:, 2]) == {0.02, 0.03}
    np.testing.assert_array_equal(found[:3, 3], [1.5, 2.0, 2.0])
    with pytest.raises(SystemExit):
        tables.features(table[["row", "y"]], ["y"])


def test_a_file_without_a_header_is_recognised(tmp_path, capsys):
    path = tmp_path / "bare.csv"
    path.write_text("8,?,0.19,Lakewood\n53,?,0.16,Tukwila\n24,5,0.42,Aberdeen\n")
    table = tables.read(path)
    assert list(table.columns) == ["1", "2", "3", "4"]
    assert len(table) == 3
    assert "no header" in capsys.readouterr().err
    path.write_text("a,b\n1,2\n")
    assert list(tables.read(path).columns) == ["a", "b"]


def federation_csv(path, silos, task):
    """Write a table of many small silos of unequal size and non-IID records, with a text column."""
    rng = np.random.default_rng(5)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "kind", "truth", "school"])
        for i in range(silos):
            for _ in range(int(rng.integers(30, 110))):
                a, kind = rng.normal(), rng.choice(["x", "y"])
                y = a + (kind == "x") + 0.1 * (i % 3) + rng.normal() * 0.8
                writer.writerow([a, kind, y if task == "regression" else f"c{int(np.clip(round(y), -1, 3))}", f"s {i}"])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", *slow(["regression"])])
def test_silos_are_studied_as_they_are(tmp_path, task):
    path = federation_csv(tmp_path / "schools.csv", 40, task)
    problem = silos.from_csv(path, "truth", "school", "ridge", least=15)
    assert len(problem.sizes) == 30  # ten are public
    assert problem.measure == ("width" if task == "regression" else "labels")
    found = silos.run(problem, draws=12)
    covered = {name: values[:, 0].mean() for name, values in found.items()}
    sizes = {name: values[:, 1].mean() for name, values in found.items()}
    assert set(found) == {
        *("pooled, not private", "pooled, private", "recommended default", "private-qq", "secure-sum"),
        "secure-sum, 6 silos missing",
    }
    assert covered["recommended default"] > 0.88
    assert sizes["recommended default"] < 1.15 * sizes["pooled, private"]
    assert sizes["recommended default"] < sizes["private-qq"]


def test_splits_keep_the_sizes_and_weigh_by_them(tmp_path):
    problem = silos.from_csv(federation_csv(tmp_path / "s.csv", 20, "classification"), "truth", "school", "ridge", 15)
    rows, test, weights = problem.split(np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(problem.places[rows]), problem.sizes)
    assert not set(rows) & set(test)
    assert len(rows) + len(test) == len(problem.scores)
    by_silo = np.bincount(problem.places[test], weights)
    np.testing.assert_allclose(by_silo, problem.sizes / problem.sizes.sum())


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
