"""Scores that SQL cannot compute are computed on batches of rows, with the same counts on every engine."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.tables import ClassColumns, ContributionBound, calibrate_table, group_histograms, score_histogram
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

K, N = 7, 3000
COLUMNS = tuple(f"p_{k}" for k in range(K))
SOURCES = [
    ClassColumns("p", "y", tuple(range(K)), "aps_deterministic"),
    ClassColumns(COLUMNS, "y", score="raps_deterministic(penalty=0.01,k_reg=2)"),
    ClassColumns("p", "name", tuple("abcdefg"), "margin"),
]
WARDS = ("a", "b", "c'\"\\", "empty")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(K, 0.3), N).astype(np.float32)
    p[:100, :] = np.float32(1 / K)  # ties
    labels = rng.integers(0, K, N)
    return {
        "id": np.arange(N),
        "p": p,
        "y": labels,
        "name": np.array(list("abcdefg"))[labels],
        "ward": rng.choice(WARDS[:3], N),
        "who": rng.integers(0, N // 4, N),
    }


@pytest.fixture
def sources(engine) -> list[ClassColumns]:
    """The forms that the engine can store: lists, or columns only."""
    if engine.lists:
        return SOURCES
    return [
        ClassColumns(COLUMNS, *((one.label, one.classes, one.score) if one.classes else ("y", None, one.score)))
        for one in SOURCES
    ]


@pytest.fixture
def table(engine, data) -> Any:
    columns = data | {name: data["p"][:, k] for k, name in enumerate(COLUMNS)}
    columns["p"] = pa.array(data["p"].tolist(), pa.list_(pa.float32()))
    return engine.table(pa.table(columns if engine.lists else {k: v for k, v in columns.items() if k != "p"}))


@pytest.fixture
def own(engine, data):
    """The scores of a source; engines without single precision compute in double precision."""
    p = data["p"] if engine.single else data["p"].astype(np.float64)
    return lambda source: confide.class_score(p, data["y"], source.score)


@pytest.mark.slow
@everyday_on("memory", "duckdb_sql", "postgres")
def test_counts_groups_and_people(engine, table, data, sources, own):
    first = np.array([np.count_nonzero(data["who"][:i] == who) < 2 for i, who in enumerate(data["who"])])
    for source in sources:
        scores = own(source)
        fine = Candidates.of(np.unique(scores)[::7])  # every seventh score is an edge: one wrong bit changes a count
        found = score_histogram(table, source, fine)
        np.testing.assert_array_equal(found.counts, ScoreHistogram.from_scores(scores, fine).counts)
        people = ContributionBound("who", 2, ("id",)) if engine.ranks else None
        grouped = group_histograms(table, source, "ward", WARDS, fine, people=people)
        for ward in WARDS[:3]:
            members = scores[(first if engine.ranks else True) & (data["ward"] == ward)]
            np.testing.assert_array_equal(grouped[ward].counts, ScoreHistogram.from_scores(members, fine).counts)
        assert grouped["empty"].total == 0


def test_unusable_rows_are_counted_by_reason_in_the_error(listing, data):
    lists, labels, wards = data["p"].tolist(), data["y"].tolist(), data["ward"].tolist()
    lists[5], lists[6], lists[7], lists[8] = None, lists[6][:-1], [None] * K, [2.0] + [0.0] * (K - 1)
    labels[9:12], wards[20:22] = [None, K, -1], [None, "elsewhere"]
    columns = {"p": pa.array(lists, pa.list_(pa.float32())), "y": pa.array(labels, pa.int64()), "ward": wards}
    table = listing.table(pa.table(columns))
    with refused(InputError, "table") as caught:
        score_histogram(table, SOURCES[0])
    assert [count for count, _ in bad_rows(caught)] == [2, 2, 2]  # entries, lengths, labels that are missing or below 0
    with refused(InputError, "table") as caught:
        group_histograms(table, SOURCES[0], "ward", WARDS)
    assert [count for count, _ in bad_rows(caught)] == [2, 2, 2, 2]


@pytest.mark.filterwarnings("ignore:the threshold is 1:confide.CoverageWarning")  # of random labels
@everyday_on("memory", "duckdb_sql", "postgres")
def test_a_release_equals_that_of_the_scores(table, data, sources):
    released = calibrate_table(table, sources[0], 0.1, 1000.0)
    exact = np.quantile(confide.aps_score(data["p"], data["y"], randomised=False), 0.9, method="higher")
    assert released.score == "aps_deterministic"
    assert released.threshold == pytest.approx(exact, rel=0.02)


def test_randomised_scores_are_drawn_again_and_lie_below_the_others(table, sources):
    whole, drawn = (score_histogram(table, one) for one in (sources[0], replace(sources[0], score="aps")))
    assert drawn.total == whole.total == N
    assert (np.cumsum(drawn.counts) >= np.cumsum(whole.counts)).all()
