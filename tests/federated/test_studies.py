"""The federated experiments: their fast draws have the exact laws, and any CSV can be studied."""

import csv
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.federated.protocols.fedcp2_qq import published_quantile
from confide.mechanisms.slopes import slopes_for
from experiments.federated import problems, settings
from experiments.federated.study import chosen, rows_of, run
from tests.exact import histograms
from tests.federated.exact_coverage import choice_laws

MECHANISMS = [
    slopes_for(Fraction(0), Fraction(6), 3, 1, "replace_one", 1.0, "permute_and_flip"),
    slopes_for(Fraction(0), Fraction(6), 3, 1, "replace_one", 1.0, "exponential"),
    published_quantile(9, 6, 1.5),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["permute_and_flip", "exponential", "published"])
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


def test_any_csv_can_be_studied_by_path_and_target(table):
    problem = problems.from_csv(table, "y", "ridge")
    (m, n), many = settings.shapes_for(len(problem.scores))
    assert m < n
    assert many[0] * many[1] < len(problem.scores) > m * n
    rows = {row.method: row for row in rows_of(run(problem, m, n, epsilons=(10.0,), size=30, draws=12))}
    assert set(rows) == {"centralised", "fedcp-avg", "fedcp-qq", "private-qq, epsilon 10", "fedcp2-qq, epsilon 10"}
    for row in rows.values():
        assert row.coverage.mean() > 0.85  # 12 draws: the proof of coverage is elsewhere
    assert rows["fedcp-qq"].finite.mean() < rows["fedcp2-qq, epsilon 10"].finite.mean()


def test_a_target_that_is_not_there_is_named(table):
    with pytest.raises(SystemExit, match=r"'name'.*'a', 'y', 'b'"):
        problems.from_csv(table, "name", "ridge")
    with pytest.raises(SystemExit, match="too few records"):
        settings.shapes_for(40)
