"""At most k records of a person, and weights of records and classes: what counts, and the stated loss."""

import hashlib
import itertools
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.core import ClassShift, RecordWeights
from confide.errors import InputError
from confide.tables import (
    ClassColumns,
    ContributionBound,
    ScoreColumn,
    calibrate_table,
    group_histograms,
    score_histogram,
)
from confide.tables.open_table import as_open_table
from confide.tables.source import Columns
from tests.calibrations import weighted_counts
from tests.exact import histograms, mechanism_law, worst_log_ratio
from tests.files import NAMES, classified
from tests.refused import Refused, bad_rows, refused
from tests.tables.engines import everyday_on

CANDIDATES = Candidates.unit(50)


def people_table(rows=2000, persons=150):
    rng = np.random.default_rng(0)
    person = rng.integers(0, persons, rows)
    visit = rng.permutation(rows)
    return person, visit, rng.random(rows), rng.choice(["a", "b"], rows)


def kept(person, most, sample, *order):
    """The reference: the rows that are kept, by one or several columns."""

    def key(i):
        values = [column[i] for column in order]
        text = f"{sample}:" + "".join(f"{value}:" for value in values)
        return (hashlib.md5(text.encode()).hexdigest() if sample else "", *values)  # noqa: S324

    owned = defaultdict(list)
    for i, name in enumerate(person):
        owned[name].append(i)
    return sorted(i for rows in owned.values() for i in sorted(rows, key=key)[:most])


@pytest.mark.long(unless="sqlite-3-2024")
@pytest.mark.parametrize(("most", "sample"), [(3, "2024"), (1, None)])
def test_the_first_or_the_sampled_records_count(ranking, most, sample):
    """By numbers, by texts, and by two columns that distinguish a person's records only together."""
    person, visit, scores, groups = people_table()
    orders = {"visit": visit, "text": np.char.zfill(visit.astype(str), 5), "year": visit % 7}
    data = {"person": np.char.add("p", person.astype(str)), **orders, "s": scores, "g": groups}
    for rows in (np.arange(len(person)), np.random.default_rng(1).permutation(len(person))):
        table = ranking.table(pa.table({name: values[rows] for name, values in data.items()}))
        for order in (("visit",), ("text",), ("year", "visit")):
            mine = kept(person, most, sample, *(orders[name] for name in order))
            people = ContributionBound("person", most, order, sample)
            found = score_histogram(table, ScoreColumn("s"), CANDIDATES, people=people)
            assert (found.counts == ScoreHistogram.from_scores(scores[mine], CANDIDATES).counts).all(), order
            found = group_histograms(table, ScoreColumn("s"), "g", ["a", "b"], CANDIDATES, people=people)
            for name, histogram in found.items():
                own = scores[mine][groups[mine] == name]
                assert (histogram.counts == ScoreHistogram.from_scores(own, CANDIDATES).counts).all(), order


@pytest.mark.slow(unless="sqlite")
def test_nameless_and_tied_records_raise_an_error(ranking):
    data = {"person": pa.array([1, 1, 1, None, 2, 2], pa.int64()), "visit": [1, 2, 2, 1, 1, 2], "s": [0.5] * 6}
    table = ranking.table(pa.table(data))
    with refused(InputError, "table") as caught:
        score_histogram(table, ScoreColumn("s"), CANDIDATES, people=ContributionBound("person", 2, ("visit",)))
    assert bad_rows(caught) == [(1, None), (1, None)]


@pytest.mark.slow(unless="postgres")
@everyday_on("pandas", "csv.gz", "duckdb", "sqlite", "postgres")
def test_epsilon_is_stated_per_person(ranking):
    person, visit, scores, groups = people_table()
    table = ranking.table(pa.table({"person": person, "visit": visit, "s": scores, "g": groups}))
    options = {"candidates": CANDIDATES, "people": ContributionBound("person", 3, ("visit",))}
    released = calibrate_table(table, ScoreColumn("s", "lac"), 0.5, 1.5, **options)
    assert released.privacy.records_per_person == 3
    assert released.privacy.epsilon <= 1.5
    assert released.privacy.loss(records=3) == released.privacy.epsilon
    assert str(released.privacy).endswith("-zCDP for adding or removing up to 3 records of a person")
    each = calibrate_table(table, ScoreColumn("s", "lac"), 0.5, 1.5, by="g", groups=["a", "b"], **options)
    assert each.privacy.epsilon <= 1.5
    with refused(InputError, "records_per_person"):
        calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.5, records_per_person=2, **options)


def up_to(k, change):
    """Every histogram within k steps."""

    def neighbours(h):
        reached = {h}
        for _ in range(k):
            reached |= {g for start in reached for g in change(start)}
        return iter(reached - {h})

    return neighbours


@pytest.mark.slow(unless="3")
@pytest.mark.parametrize("k", [2, 3])
def test_privacy_loss_of_up_to_k_added_or_removed_records(k):
    """All histograms of up to five records, all ways to add up to k: at most epsilon, and nearly that."""
    from tests.designs import overridden
    from tests.exact import added

    options = {"candidates": 4, "records_per_person": k}
    plan = overridden(0.4, 2.0, 20, slopes=(7, 3), **options)
    mechanism, number = plan.mechanism, 1 / plan.terms.size_scale
    starts = [h for n in range(6) for h in histograms(n, 4)]
    worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), starts, up_to(k, added))
    assert worst + k * number <= 2.0 + 1e-9
    assert worst > worst_log_ratio(lambda h: mechanism_law(mechanism, h), starts, added) * (k - 0.75)


def test_privacy_loss_of_up_to_two_replaced_records():
    from tests.exact import replaced

    options = {"candidates": 4, "neighbors": "replace_one"}
    mechanism = confide.plan(0.4, 2.0, n=30, records_per_person=2, **options).mechanism
    worst = worst_log_ratio(lambda h: mechanism_law(mechanism, h), histograms(7, 4), up_to(2, replaced))
    assert worst <= 2.0 + 1e-9


@pytest.mark.long
def test_privacy_loss_of_a_person_for_every_table():
    """End to end: one person's records in every possible combination, bounded by the engine, compared with none."""
    edges, most = Candidates.of([0.25, 0.5, 0.75]), 2
    others = [(1, 0, 0.1), (1, 1, 0.6), (2, 0, 0.4), (3, 0, 0.9)]
    people = ContributionBound("person", most, ("visit",))

    def counted(rows):
        person, visit, s = zip(*rows, strict=True)
        table = pa.table({"person": person, "visit": visit, "s": s})
        return tuple(score_histogram(table, ScoreColumn("s"), edges, people=people).counts.tolist())

    plan = confide.plan(0.3, 1.0, candidates=edges.size, records_per_person=most)
    mechanism, number = plan.mechanism, 1 / plan.terms.size_scale
    without = counted(others)
    law = np.log(mechanism_law(mechanism, without))
    seen = Counter()
    for owned in range(1, 4):
        for scores in itertools.product([0.2, 0.5, 0.7, 1.0], repeat=owned):
            mine = [(9, visit, s) for visit, s in enumerate(scores)]
            h = counted([*mine, *others])
            gained = np.subtract(h, without)
            assert (gained >= 0).all()
            assert gained.sum() == min(owned, most)
            assert np.abs(np.log(mechanism_law(mechanism, h)) - law).max() + gained.sum() * number <= 1.0 + 1e-9
            seen[h] += 1
    assert len(seen) == 14  # four ways to have one record that counts, ten to have two


P, Y = classified(1500, dtype=np.float64)
LABEL = np.array(NAMES)[Y]
WEIGHT = 0.25 * (np.arange(1500) % 9) + np.arange(1500) / 7000
BOUND = RecordWeights.bounded(2.5)
DATA = pa.table(
    {**{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)}, "y": LABEL, "w": WEIGHT, "s": confide.lac_score(P, Y)}
)
WEIGHTED_CANDIDATES = confide.Candidates.unit(30)
WHAT = {
    "lac": ClassColumns("p_*", "y"),
    "aps_deterministic": ClassColumns("p_*", "y", score="aps_deterministic"),
    "scores": ScoreColumn("s", "lac"),
}


def counted(source, what):
    with as_open_table(source) as table:
        return Columns(what, weights="w").source(table, BOUND).histograms(WEIGHTED_CANDIDATES)[0][None]


@pytest.mark.slow(unless="postgres-scores")
@pytest.mark.parametrize("kind", ["scores", "lac", "aps_deterministic"])
def test_sums_are_those_of_arrays(engine, kind):
    scores = confide.aps_score(P, Y, randomised=False) if kind == "aps_deterministic" else confide.lac_score(P, Y)
    expected = weighted_counts(
        scores, WEIGHTED_CANDIDATES, kind if kind == "aps_deterministic" else "lac", BOUND, None, WEIGHT
    )
    found = counted(engine.table(DATA), WHAT[kind])
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.records == expected.records == 1500  # the number, not the total weight


@pytest.mark.slow(unless="memory")
def test_unusable_weights_raise_an_error(engine):
    wrong = WEIGHT.copy()
    wrong[[7, 1100]] = 2.75, -0.5
    source = engine.table(DATA.set_column(DATA.column_names.index("w"), "w", pa.array(wrong)))
    with refused(InputError, "table") as caught:
        counted(source, WHAT["scores"])
    assert bad_rows(caught)[0][0] == 2
    assert "2.75" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"class_weights": {"cat": 1, "dog": 2}}, "class_weights"),
        ({"class_weights": {"cat": 1, "dog": 2, "emu": 3}, "by_class": True}, "groups"),
        ({"class_weights": {"cat": 1, "dog": 2, "emu": 3}, "neighbors": "replace_one"}, "neighbors"),
        ({"weights": "w"}, "weights"),
        ({"weights": "w", "weight_bound": 3, "by": "y"}, "by"),
        ({"weights": "y", "weight_bound": 3}, "column"),
        ({"weights": "no", "weight_bound": 3}, "column"),
        ({"weights": "w", "weight_bound": 3, "alpha": [0.1, 0.2]}, "weights"),
        ({"weights": "w", "weight_bound": 3, "n": 1500}, "n"),
        ({"what": WHAT["scores"], "class_weights": ClassShift.of_weights({"cat": 1, "dog": 2, "emu": 3})}, "by"),
    ],
)
def test_unsupported_weights_raise_an_error(options, argument):
    good = {"source": DATA, "what": WHAT["lac"], "alpha": 0.1, "epsilon": 1.0, "candidates": WEIGHTED_CANDIDATES}
    Refused(calibrate_table, good, options, argument, kind=InputError).check()
