"""Experiments of the federated paper: synthetic distribution, splits, settings, exact values, and continued runs."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

EXTRA = "needs the extra `experiments`; run `nox -s extras`"
exact = pytest.importorskip("experiments.federated.paper.exact", reason=EXTRA)
from experiments.federated.paper import (  # noqa: E402  (matplotlib first)
    data_sets,
    measure,
    pages,
    published,
    regressors,
    runs,
    splits,
    synthetic,
)


def by_equation_5(l, k, m, n):
    """Compute M(l, k) by (5) in rationals: the sum over all numbers of scores below the test score."""
    total = Fraction(0)
    for counts in product(range(n + 1), repeat=m):
        if sum(i >= l for i in counts) >= k:
            total += Fraction(math.prod(math.comb(n, i) for i in counts), math.comb(m * n, sum(counts)))
    return 1 - total / (m * n + 1)


def test_figures_6_and_7_are_equation_5():
    found = exact.coverages(3, 5)
    for l, k in product(range(1, 6), range(1, 4)):
        assert found[l - 1, k - 1] == pytest.approx(float(by_equation_5(l, k, 3, 5)), abs=1e-12)
    assert (exact.coverages(5, 10) >= 0.9).sum() == 4
    assert (exact.coverages(10, 20) >= 0.9).sum() == 19


@pytest.mark.parametrize(
    ("m", "n", "values"),
    [(5, 10, (0.92563, 0.91961, 0.99091)), (20, 20, (0.90081, 0.90249, 0.94762)), (20, 100, (0.90029, 0.9005, 0.9099))],
)
def test_figure_1_has_its_values(m, n, values):
    assert exact.bounds(m, n) == pytest.approx(values, abs=6e-6)


@pytest.mark.slow
def test_figure_2_rises_towards_1_where_privacy_is_costly():
    theirs, mine = exact.compensation(3, 50, Fraction(1, 10), 40.0)
    larger, _ = exact.compensation(3, 50, Fraction(1, 10), 10.0)
    assert 0.9 <= mine < theirs < larger < 1
    assert math.isnan(exact.compensation(3, 50, Fraction(1, 10), 0.5)[0])


def test_synthetic_data_have_the_law_of_section_5_1():
    """Mean, variance and share of outliers of 40,000 draws lie within 6 standard errors (probability below 1e-8)."""
    x, y = synthetic.sample(40_000, np.random.default_rng(1))
    rate = np.sin(x) ** 2 + 0.1
    assert 1 <= x.min() < x.max() <= 5
    assert stats.kstest(x, stats.uniform(1, 4).cdf).pvalue > 1e-8
    residual = y - rate
    assert abs(residual.mean()) < 6 * residual.std() / 200
    wild = np.mean(abs(residual) > 12)  # 25 |N| > 12 in 0.631 of 1 %; Poisson with rate 1.1 never
    expected = 0.01 * 2 * stats.norm.sf(12 / 25)
    assert abs(wild - expected) < 6 * math.sqrt(expected / 40_000)
    near = residual[abs(residual) < 12]
    small = 1 - 2 * stats.norm.sf(0.48) - 2 * 0.48 * stats.norm.pdf(0.48)  # E[N^2; 25 |N| < 12]
    spread = rate.mean() + 0.03**2 * np.mean(x**2) + 0.01 * 25**2 * small
    assert abs(near.var() - spread) < 6 * (near**2).std() / 200
    assert sum(synthetic.UNEQUAL) == sum(synthetic.EQUAL) == synthetic.RECORDS // 2


def test_unequal_silos_have_the_ranks_of_appendix_a_1():
    best = synthetic.choice(synthetic.UNEQUAL)
    assert best.ranks == tuple(math.ceil(0.9 * (n + 1)) for n in synthetic.UNEQUAL)
    assert 0.9 <= best.coverage < 0.92


def test_figures_3_and_5_draw_each_method_once(tmp_path, monkeypatch):
    drawn, rng = [], np.random.default_rng(0)
    one = synthetic.Draw(rng.random(1000), *rng.random((3, 50)), 1 + rng.random(50))
    monkeypatch.setattr(synthetic, "draw", lambda seed: one)
    monkeypatch.setattr(synthetic, "DRAWS", 2)
    monkeypatch.setattr(synthetic, "OURS", ())
    monkeypatch.setattr(synthetic, "save", lambda figure, name: drawn.append(name))
    text = synthetic.study("figure3", synthetic.EQUAL)
    assert text.count("FedCP²-QQ, epsilon 10 |") == 1
    assert f"FedCP-QQ {measure.exact_coverage(50, 20)['FedCP-QQ']:.4f}, centralised 0.9001" in text
    assert "FedCP²-QQ" not in synthetic.study("figure5", synthetic.UNEQUAL)
    assert drawn == ["figure3", "figure5"]


def test_settings_are_the_papers():
    shapes = {
        figure: (one.name, shape)
        for one in data_sets.DATA_SETS
        for figure, shape in zip(one.figures, one.shapes, strict=False)
    }
    large, middle, small = ((100, 10), (10, 100)), ((80, 10), (10, 80)), ((40, 10), (10, 40))
    assert [shapes[f][1] for f in range(8, 18)] == [*large, *large, *middle, *middle, *small]
    assert [shapes[f][0] for f in range(8, 18, 2)] == ["bio", "bike", "community", "star", "concrete"]
    assert (splits.SPLITS, splits.SHARES, regressors.TREES, regressors.EPOCHS) == (20, (0.4, 0.4, 0.2), 1000, 1000)
    assert pages.PRIVATE_SHAPE == (5, 200)
    assert measure.BINS == 100
    assert Fraction(1, 10) == measure.ALPHA


def test_splits_are_40_40_20_and_disjoint():
    train, calibration, test = splits.cut(1030, 3)
    assert (len(train), len(calibration), len(test)) == (412, 412, 206)
    assert sorted([*train, *calibration, *test]) == list(range(1030))
    assert list(splits.cut(1030, 4)[0]) != list(train)


def small_data(rows=400):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    return x, 10 + x @ [1.0, 2.0, 0.5] + rng.normal(size=rows) * (1 + abs(x[:, 0]))


def test_a_ridge_has_absolute_residuals_and_one_length():
    x, y = small_data()
    made = splits.scored(x, y, "ridge", 0)
    assert (made.calibration >= 0).all()
    assert (made.lengths == 0).all()
    covered, length = measure.measured(made, 8, 20, ("centralised",), 0)["centralised"]
    silos = made.calibration.reshape(8, 20)
    assert length == pytest.approx(2 * measure.thresholds(silos, ("centralised",), None)["centralised"])
    assert 0.75 < covered <= 1


def test_the_network_learns_its_two_quantiles():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (1500, 2))
    y = x[:, 0] + rng.normal(size=1500)
    low, high = regressors.network(x, y, x, 0, epochs=30)
    assert 0.7 < np.mean((low <= y) & (y <= high)) < 0.92
    assert np.corrcoef(high, x[:, 0])[0, 1] > 0.9


def test_the_networks_slope_is_that_of_its_loss():
    rng = np.random.default_rng(3)
    net, x, y = regressors.Network(3, 0), rng.normal(size=(20, 3)).astype("f"), rng.normal(size=(20, 1)).astype("f")
    keep = np.ones((20, regressors.HIDDEN), dtype=np.float32)
    net.backward(x, y, keep, keep)

    def loss():
        return sum(
            np.maximum(q * (y[:, 0] - found), (q - 1) * (y[:, 0] - found)).mean()
            for q, found in zip(regressors.LEVELS[0], net.predict(x), strict=True)
        )

    for at in rng.choice(len(net.weights), 12, replace=False):
        was = net.weights[at]
        net.weights[at] = was + 1e-2
        above = loss()
        net.weights[at] = was - 1e-2
        assert net.slope[at] == pytest.approx((above - loss()) / 2e-2, abs=2e-2)
        net.weights[at] = was


def test_levels_of_the_forest_go_inwards_while_they_cover():
    pytest.importorskip("quantile_forest", reason=EXTRA)
    x, y = small_data(600)
    low, high = regressors.best_levels(x, y, 0, trees=20)
    assert low in regressors.LOWEST
    assert high == pytest.approx(1 - low)


def test_bins_are_those_of_appendix_b_2():
    """Bins are (e_(b-1), e_b]: an edge is in the lower bin, a negative score in the first, the largest in the last."""
    counts = measure.binned(np.array([[-1.0, 0.5, 0.51], [1.0, 0.25, 0.26]]), np.array([0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_array_equal(counts, [[1, 1, 1, 0], [1, 1, 0, 1]])


def test_methods_cover_uniform_scores_as_their_laws_say():
    """Each mean of 600 federations of (5, 40) lies within 6 standard errors of the exact distribution."""
    law, rng = measure.exact_coverage(5, 40), np.random.default_rng(0)
    found = [measure.thresholds(rng.random((5, 40)), measure.PLAIN, rng) for _ in range(600)]
    for name in measure.PLAIN:
        values = np.array([one[name] for one in found])
        assert abs(values.mean() - law[name]) < 6 * values.std() / math.sqrt(600)


@pytest.mark.slow
def test_private_methods_cover_more_than_they_promise():
    methods = ("FedCP²-QQ, epsilon 10", "private-qq, epsilon 10", "secure-sum, epsilon 1")
    found = measure.on_uniform_scores(5, 200, methods, 60)
    assert 0.9 < found["private-qq, epsilon 10"] < found["FedCP²-QQ, epsilon 10"] < 0.95
    assert 0.9 < found["secure-sum, epsilon 1"] < 0.95


def test_figure_4_of_the_authors_is_the_mean_of_their_sets():
    for regime, methods in published.ALL.items():
        for name, (coverage, length) in methods.items():
            pairs = product(published.TEST_RECORDS, regressors.REGRESSORS)
            rows = [published.published(data, regressor, regime, name) for data, regressor in pairs]
            assert np.mean([row[0] for row in rows]) == pytest.approx(coverage, abs=6e-5)
            assert np.mean([row[1] for row in rows]) == pytest.approx(length, abs=6e-4)
    assert published.published("bio", "ridge", "few", "private-qq, epsilon 10") is None


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "RESULTS", tmp_path)
    monkeypatch.setattr(splits, "SPLITS", 3)
    small = data_sets.DataSet("small", "small", small_data, "none", None, ((8, 20), (4, 40)))
    monkeypatch.setattr(data_sets.DataSet, "there", property(lambda _: True))
    monkeypatch.setattr(runs, "DATA_SETS", (small,))
    monkeypatch.setitem(splits.BY_NAME, "small", small)
    monkeypatch.setattr(runs, "REGRESSORS", {"ridge": regressors.ridge})
    trained = []

    def stop_once(x, y, new, seed):
        if seed == 1 and trained.count(1) == 0:
            trained.append(seed)
            raise KeyboardInterrupt
        trained.append(seed)
        return regressors.ridge(x, y, new, seed)

    monkeypatch.setitem(splits.REGRESSORS, "ridge", stop_once)
    with pytest.raises(KeyboardInterrupt):
        runs.work()
    assert runs.todo() == [("small", "ridge", 1), ("small", "ridge", 2)]
    before = splits.read("small", "ridge", 0)
    runs.work()
    splits.make("small", "ridge", 0)
    assert trained == [0, 1, 1, 2]
    assert runs.todo() == []
    np.testing.assert_array_equal(splits.read("small", "ridge", 0).test, before.test)
    monkeypatch.setattr(pages, "METHODS", (*measure.PLAIN, measure.NEXT_RANK))
    text = pages.table(small, 0, {"ridge": pages.values("small", "ridge", (8, 20), pages.METHODS)})
    assert text.count("| Ridge, ") == 3
    text = pages.table(small, 1, {"ridge": pages.values("small", "ridge", (4, 40), pages.METHODS)})
    assert text.count("| Ridge, ") == 4


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("CONFIDE_DATA", str(tmp_path))
    star = data_sets.BY_NAME["star"]
    assert "`STAR.csv` is not in the data folder" in pages.section(star, 0)
    assert all(one.there is False for one in data_sets.DATA_SETS)
    header = "gender,readk,read1,read2,read3,mathk,math1,math2,math3\n"
    (tmp_path / "STAR.csv").write_text(header + "male,1,2,3,4,5,6,7,8\nfemale,1,1,1,1,1,1,1,1\nmale,,2,3,4,5,6,7,8\n")
    x, y = star.arrays()
    assert sorted(y) == [8, 36]
    assert len(x) == 2
    (tmp_path / "communities.data").write_text("8,?,?,Lakewood,1,0.19,?,0.5\n53,?,?,Tukwila,1,0.1,0.2,0.7\n")
    x, y = data_sets.community()
    assert x.tolist() == [[0.19], [0.1]]
    assert y.tolist() == [0.5, 0.7]
