"""For every source of a table, each double falls into the same bin as in numpy, and the same values raise an error."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.tables import ClassColumns, ScoreColumn, TargetColumns, calibrate_table, group_histograms, score_histogram
from confide.tables.open_table import as_open_table
from tests.builders import slow
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

FAMILIES = {
    "unit": Candidates.unit(200),
    "logit": Candidates.unit(1000, "logit"),
    "geometric": Candidates.spread("residual", 200, unit=3.0),
    "sinh": Candidates.spread("signed", 200),
    "extreme": Candidates.of(
        [-1.7976931348623157e308, -1.0, -2.2250738585072014e-308, -5e-324, 0.0, 5e-324, 1e-310, 0.1, 1 / 3, 1e16, 1e308]
    ),
    "none": Candidates.of([np.inf]),
}
LARGEST = float(np.finfo(np.float64).max)


def adversaries(edges):
    """Each edge, its neighbouring doubles, and all special values."""
    with np.errstate(over="ignore"):
        near = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    bits = np.random.default_rng(0).integers(-(2**63), 2**63, 500).view(np.float64)
    odd = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-310, LARGEST, -LARGEST, np.inf, 0.1, 1 / 3, 2.0**53]
    values = np.concatenate([near, bits, odd])
    return values[~np.isnan(values) & (values > -np.inf)]


def counts(engine, values, candidates, score=None):
    table = engine.table(pa.table({"s": pa.array(values)}))
    return score_histogram(table, ScoreColumn("s", score), candidates).counts


@pytest.mark.parametrize("family", slow(FAMILIES, everyday=["extreme"]))
def test_doubles(engine, family):
    candidates = FAMILIES[family]
    values = adversaries(candidates.edges)
    assert (counts(engine, values, candidates) == ScoreHistogram.from_scores(values, candidates).counts).all()


@pytest.mark.slow(unless="sqlite")
def test_each_adversary_in_a_separate_group(engine):
    """Every value in a separate group, so that errors cannot cancel."""
    candidates = FAMILIES["extreme"]
    values = adversaries(candidates.edges)[-60:]
    table = engine.table(pa.table({"s": values, "g": pa.array(range(len(values)), pa.int64())}))
    found = group_histograms(table, ScoreColumn("s"), "g", range(len(values)), candidates)
    for place, value in enumerate(values):
        assert (found[place].counts == ScoreHistogram.from_scores([value], candidates).counts).all()


@pytest.mark.slow(unless="sqlite-unit")
@pytest.mark.parametrize("family", ["unit", *slow(["logit", "geometric"])])
def test_single_precision(engine, family):
    candidates = FAMILIES[family]
    near = candidates.edges.astype(np.float32)
    values = np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])
    assert (counts(engine, values, candidates) == ScoreHistogram.from_scores(values, candidates).counts).all()


def test_decimals_are_read_once(engine):
    """A decimal becomes the nearest double, even if its digits or its scale exceed 2^53."""
    if not engine.decimals:
        pytest.skip("has no decimals of 38 digits")
    rng = np.random.default_rng(1)
    texts = [f"0.{''.join(rng.choice(list('0123456789'), 30))}" for _ in range(400)]
    texts += [f"{value:.30f}" for value in (0.1, 1 / 3, 2 / 3, 0.7)]
    candidates = Candidates.of(sorted({float(text) for text in texts[::2]}))
    values = pa.array([Decimal(text) for text in texts], pa.decimal128(38, 30))
    table = engine.table(pa.table({"s": values}))
    expected = ScoreHistogram.from_scores(np.array([float(text) for text in texts]), candidates)
    assert (score_histogram(table, ScoreColumn("s"), candidates).counts == expected.counts).all()


def test_large_integers(engine):
    values = np.array([2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, -(2**63), 2**63 - 1, 0, -1])
    candidates = Candidates.of([-(2.0**63), -0.5, 2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63])
    assert (counts(engine, values, candidates) == ScoreHistogram.from_scores(values, candidates).counts).all()


@pytest.mark.slow(unless="postgres-columns-float32")
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ("columns", np.float32),
        *slow([("columns", np.float64), ("list", np.float64), ("list of names", np.float32)]),
    ],
)
def test_lac(engine, dtype, shape):
    """1 - p is computed in double precision for every precision of p."""
    if shape != "columns" and not engine.lists:
        pytest.skip("has no columns of lists")
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(4) / 3, 800).astype(dtype)
    p[:8] = [[0, 1, 0, 0]] * 4 + [[1e-45, 1, 1e-45, 0]] * 4
    y = rng.integers(0, 4, len(p))
    candidates = Candidates.of(np.unique(1.0 - p[::8].astype(np.float64).ravel()))
    names = ("ant", "bee", "cat", "dog")
    label = pa.array([names[k] for k in y]) if shape == "list of names" else pa.array(y)
    if shape == "columns":
        table = engine.table(pa.table({**{f"p{k}": p[:, k] for k in range(4)}, "y": label}))
        source = ClassColumns(("p0", "p1", "p2", "p3"), "y")
    else:
        table = engine.table(pa.table({"p": pa.array(p.tolist(), pa.list_(pa.from_numpy_dtype(dtype))), "y": label}))
        source = ClassColumns("p", "y", names if shape == "list of names" else tuple(range(4)))
    expected = ScoreHistogram.from_scores(confide.lac_score(p, y), candidates, "lac")
    assert (score_histogram(table, source, candidates).counts == expected.counts).all()


@pytest.mark.slow(unless="sqlite-absolute_residual-float64")
@pytest.mark.parametrize(
    ("score", "dtype"),
    [
        ("absolute_residual", np.float64),
        *slow([("absolute_residual", np.float32), ("cqr", np.float64)]),
        *slow([("cqr_low", np.float32), ("cqr_high", np.float32)]),
    ],
)
def test_regression(engine, score, dtype):
    rng = np.random.default_rng(3)
    f = np.sort(rng.normal(size=(1000, 2)), axis=1).astype(dtype)
    y = (rng.normal(size=1000) * rng.choice([1e-9, 1, 1e9], 1000)).astype(dtype)
    y[:5] = f[:5, 0]
    predicted = f if score.startswith("cqr") else f[:, 0]
    scores = confide.interval_score(predicted, y, score)
    candidates = Candidates.of(np.unique(scores[::5]))
    table = engine.table(pa.table({"lo": f[:, 0], "hi": f[:, 1], "y": y}))
    source = TargetColumns(("lo", "hi") if score.startswith("cqr") else "lo", "y", score)
    expected = ScoreHistogram.from_scores(scores, candidates, score)
    assert (score_histogram(table, source, candidates).counts == expected.counts).all()


@pytest.mark.slow(unless="sqlite")
def test_missing_and_outside_scores_are_counted_in_the_error(engine):
    values = [0.5, None, float("nan"), 1.5, None, float("-inf"), float("inf"), -1e-300, 1.0]
    table = engine.table(pa.table({"s": pa.array(values, pa.float64())}))
    for score, wrong in (("lac", 6), (None, 4)):
        with refused(InputError, "table") as caught:
            score_histogram(table, ScoreColumn("s", score), FAMILIES["unit"])
        assert [count for count, _ in bad_rows(caught)] == [wrong]


@pytest.mark.slow(unless="csv.gz")
def test_unusable_rows_are_counted_by_reason(listing):
    data = pa.table(
        {
            "p": pa.array([[0.5, 0.5], [0.5], None, [0.5, None], [0.5, 2.0], [1.0, 0.0], [0.5, 0.5]]),
            "y": pa.array(["a", "a", "b", "b", "b", "c", None]),
            "g": pa.array([1, 1, 1, 1, 2, 2, 3], pa.int64()),
        }
    )
    table = listing.table(data)
    with refused(InputError, "table") as caught:
        score_histogram(table, ClassColumns("p", "y", ("a", "b")), FAMILIES["unit"])
    assert [count for count, _ in bad_rows(caught)] == [2, 2, 1]  # entries, lengths, labels that are missing
    with refused(InputError, "table") as caught:
        group_histograms(table, ScoreColumn("g"), "g", [1, 2], FAMILIES["unit"])
    assert [count for count, _ in bad_rows(caught)] == [1]


@pytest.mark.slow
def test_the_first_of_the_unusable_rows_is_named(engine):
    """If rows have an order."""
    scores = np.linspace(0, 1, 3000)
    scores[[1234, 2000]] = 7.0
    source = engine.table(pa.table({"s": scores, "g": ["a"] * 2500 + ["b"] * 500}))
    with as_open_table(source) as table:
        start = table.rows.first if table.ordered else None
        with refused(InputError, "table") as caught:
            score_histogram(table, ScoreColumn("s", "lac"))
    assert bad_rows(caught) == [(2, None if start is None else 1234 + start)]
    scores[[1234, 2000]] = 0.5
    source = engine.table(pa.table({"s": scores, "g": ["a"] * 2500 + ["b"] * 500}))
    with refused(InputError, "table") as caught:
        group_histograms(source, ScoreColumn("s", "lac"), "g", ["a"])
    assert bad_rows(caught) == [(500, None if start is None else 2500 + start)]


@pytest.mark.slow
@everyday_on("memory", "duckdb_sql", "postgres")
@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_an_empty_table_gives_a_release(engine):
    table = engine.table(pa.table({"s": pa.array([], pa.float64()), "g": pa.array([], pa.string())}))
    assert not score_histogram(table, ScoreColumn("s"), FAMILIES["unit"]).counts.any()
    assert calibrate_table(table, ScoreColumn("s"), 0.1, 1.0).guarantee.n is None
    assert len(calibrate_table(table, ScoreColumn("s"), 0.1, 1.0, by="g", groups=["a", "b"]).parts) == 2
    with pytest.raises(InputError):
        calibrate_table(table, ScoreColumn("s"), 0.1, 1.0, neighbors="replace_one")


@pytest.mark.slow(unless="batches")
def test_groups_are_counted_in_the_same_pass(engine):
    rng = np.random.default_rng(4)
    s, g = rng.random(5000), rng.choice(["north", "south", "o'hara"], 5000)
    table = engine.table(pa.table({"s": s, "g": g}))
    names = ["o'hara", "south", "north", "empty"]
    found = group_histograms(table, ScoreColumn("s"), "g", names, FAMILIES["logit"])
    assert list(found) == names
    for name in names[:3]:
        expected = ScoreHistogram.from_scores(s[g == name], FAMILIES["logit"]).counts
        assert (found[name].counts == expected).all()
    assert found["empty"].total == 0


@pytest.mark.slow(unless="batches")
def test_many_groups(engine):
    rng = np.random.default_rng(5)
    s, g = rng.random(20_000), rng.integers(0, 60, 20_000)
    table = engine.table(pa.table({"s": s, "g": g}))
    found = group_histograms(table, ScoreColumn("s"), "g", range(60), FAMILIES["unit"])
    assert list(found) == list(range(60))
    for name, histogram in found.items():
        assert (histogram.counts == ScoreHistogram.from_scores(s[g == name], FAMILIES["unit"]).counts).all()
