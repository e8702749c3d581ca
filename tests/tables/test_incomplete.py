"""Records with missing values: errors report all missing values, or records are left out one by one."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates
from confide.mechanisms.slopes import slopes_for
from confide.tables import (
    ClassColumns,
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    group_histograms,
    open_table,
    score_histogram,
)
from confide.tables.open_table import as_open_table
from tests.exact import mechanism_law
from tests.files import classified
from tests.refused import bad_rows, refused
from tests.tables.engines import DataFusion, Polars, everyday_on

CANDIDATES = Candidates.unit(50)
N, NAMES = 400, np.array(["ant", "bee", "cat"])
P, Y = classified(N, dtype=np.float64)


def holey() -> tuple[pa.Table, np.ndarray]:
    """Records with all kinds of missing values, and the positions of the complete ones."""
    rng = np.random.default_rng(1)
    holes = {name: rng.random(N) < 0.05 for name in ("p_ant", "p_bee", "label", "f", "y", "who", "ward")}
    label, ward = NAMES[Y].astype(object), np.where(rng.random(N) < 0.5, "north", "south").astype(object)
    label[holes["label"]], ward[holes["ward"]] = None, None
    columns = {f"p_{name}": P[:, k].copy() for k, name in enumerate(NAMES)} | {"f": P[:, 0].copy(), "y": P[:, 1].copy()}
    for name in ("p_ant", "f"):
        columns[name][holes[name]] = np.nan
    arrays = {name: pa.array(column) for name, column in columns.items()}
    arrays |= {name: pa.array(columns[name], mask=holes[name]) for name in ("p_bee", "y")}
    arrays |= {"label": pa.array(label, pa.string()), "ward": pa.array(ward, pa.string())}
    arrays["who"], arrays["id"] = pa.array(np.arange(N) // 3, mask=holes["who"]), pa.array(np.arange(N))
    return pa.table(arrays), holes


TABLE, HOLES = holey()
CLASSES = ClassColumns("p_*", "label")
HAVING = ~(HOLES["p_ant"] | HOLES["p_bee"] | HOLES["label"])


def without(*names: str) -> np.ndarray:
    return ~np.any([HOLES[name] for name in names], axis=0)


def counts_of(rows: np.ndarray) -> list[int]:
    scores = confide.lac_score(P[rows], Y[rows])
    return confide.ScoreHistogram.from_scores(np.asarray(scores), CANDIDATES).counts.tolist()


@pytest.mark.slow
@everyday_on("memory", "duckdb_sql", "postgres")
def test_the_complete_records_count_on_every_source(engine):
    """In SQL, in Arrow batches, in Ibis: the same records, and the same number of other records."""
    with as_open_table(engine.table(TABLE)) as table:
        found = score_histogram(table, CLASSES, CANDIDATES, skip_incomplete=True)
        assert found.counts.tolist() == counts_of(HAVING)
        assert table.left_out() == N - HAVING.sum() > 0
    found = group_histograms(engine.table(TABLE), CLASSES, "ward", ["north", "south"], CANDIDATES, skip_incomplete=True)
    assert sum(one.counts for one in found.values()).tolist() == counts_of(HAVING & without("ward"))
    found = score_histogram(engine.table(TABLE), TargetColumns("f", "y"), CANDIDATES, skip_incomplete=True)
    assert found.total == without("f", "y").sum()
    if engine.ranks:
        once = ContributionBound("who", 1, ("id",))
        found = score_histogram(engine.table(TABLE), CLASSES, CANDIDATES, people=once, skip_incomplete=True)
        first: dict[int, int] = {}
        for row in np.flatnonzero(HAVING & without("who")):
            first.setdefault(row // 3, row)
        assert found.counts.tolist() == counts_of(np.array(list(first.values())))


def test_lists(listing):
    if isinstance(listing, Polars | DataFusion):
        pytest.skip("Ibis has no word there for the entries of a list")
    lists = [[0.5, 0.5], None, [0.25, None], [0.75, 0.25], [float("nan"), 0.5], [1.0, 0.0]]
    table = pa.table({"p": pa.array(lists, pa.list_(pa.float64())), "label": ["0", "1", "0", "1", "0", "1"]})
    with as_open_table(listing.table(table)) as one:
        found = score_histogram(one, ClassColumns("p", "label"), Candidates.unit(5), skip_incomplete=True)
        assert found.total == 3
        assert one.left_out() == 3


@pytest.mark.slow
def test_unusable_values_are_not_missing_values(tmp_path):
    """A number out of range and a text raise an error in this case as well."""
    for wrong in ("1.5,0.5,ant", "abc,0.5,ant"):
        path = tmp_path / "a.csv"
        path.write_text("p_ant,p_bee,label\n" + "0.5,0.5,ant\n" * 30 + f"{wrong}\n,0.5,ant\nNaN,0.5,bee\n0.5,0.5,\n")
        with refused(confide.errors.InputError, "table") as caught:
            score_histogram(path, CLASSES, CANDIDATES, skip_incomplete=True)
        assert bad_rows(caught)[0][0] == 1
        path.write_text(path.read_text().replace(f"{wrong}\n", ""))
        with open_table(path) as table:
            assert score_histogram(table, CLASSES, CANDIDATES, skip_incomplete=True).total == 30
            assert table.left_out() == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mark", "missing"), [*((mark, True) for mark in ("NA", "n/a", " NULL ", "\\N", "None", "#N/A")), ("abc", False)]
)
def test_marks_of_missing_numbers_in_csv(tmp_path, mark, missing):
    """They are left out, and advised to be, only in a column of numbers; other texts are not called missing."""
    path, what = tmp_path / "a.csv", ScoreColumn("s")
    path.write_text("s,ward\n" + "0.5,NA\n" * 30 + f"{mark},NA\n" * 3)
    with refused(confide.errors.InputError, "table") as caught:
        score_histogram(path, what, CANDIDATES)
    assert ("skip_incomplete" in str(caught.value)) == missing
    if missing:
        assert group_histograms(path, what, "ward", ["NA"], CANDIDATES, skip_incomplete=True)["NA"].total == 30
        return
    with refused(confide.errors.InputError, "table"):
        score_histogram(path, what, CANDIDATES, skip_incomplete=True)


@pytest.mark.long
def test_leaving_out_keeps_neighbours():
    """All tables of up to three records, and one more record: the counts differ by at most one record, and so the
    distribution of the release by at most epsilon; nothing is released of an incomplete record."""
    values, few = (0.2, 0.7, None, float("nan")), Candidates.of([0.5, 0.6])
    mechanism = slopes_for(Fraction(9, 10), Fraction(1), 9, 1, "add_remove", 1.0)
    worst = 0.0

    def counts(rows):
        # one complete record stays, so that no table is without complete records, which would be an error
        table = pa.table({"s": pa.array([0.2, *rows], pa.float64())})
        return score_histogram(table, ScoreColumn("s"), few, skip_incomplete=True).counts

    for size in range(3):
        for rows in itertools.product(values, repeat=size):
            before = counts(rows)
            law = mechanism_law(mechanism, before)
            for record in values:
                after = counts((*rows, record))
                complete = record is not None and not np.isnan(record)
                assert np.abs(after - before).sum() == complete
                ratio = np.abs(np.log(law / mechanism_law(mechanism, after))).max()
                assert complete or ratio == 0
                worst = max(worst, ratio)
    assert 0 < worst <= 1.0 + 1e-9
