"""Who is covered least, and who surely less than promised: exact for the worst of many; groups of any release."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import confide
from confide.evaluation import CoverageTable, Evaluation, evaluate_intervals, evaluate_scores, evaluate_sets
from confide.evaluation.parts import PartCounts, marked
from tests.calibrations import calibration_at
from tests.reports.pages import invented, several


@pytest.mark.parametrize("n", [5, 50, 500])
@pytest.mark.parametrize("parts", [1, 9, 300])
def test_surely_below_is_simultaneous_and_exact(n, parts):
    """By the law of the count: wrongly named with probability .025 / parts at most, and no one needlessly spared."""

    def named(hits):
        missed = np.array([0] * (parts - 1) + [n - hits])
        table = CoverageTable("class", PartCounts(range(parts), n - missed, missed).parts(0.05))
        return bool(table.surely_below(0.9)[-1])

    hits = [h for h in range(n + 1) if stats.binom.cdf(h, n, 0.9) < 0.025 / parts]
    most = max(hits, default=-1)
    assert all(named(h) for h in {0, most // 2, most} if h in hits)
    assert not named(most + 1)


def evaluated(rows):
    """An evaluation of sets, from rows of a true class, the classes in its set, and the number of such records."""
    labels = np.repeat([label for label, _, _ in rows], [times for *_, times in rows])
    p = np.repeat([np.isin(range(3), members) / len(members) for _, members, _ in rows], [t for *_, t in rows], axis=0)
    return evaluate_sets(calibration_at(0.7), p, np.array(TISSUES)[labels], TISSUES)


TISSUES = ("adipose", "cancer-associated stroma", "rare")


def test_worst_part_and_parts_below_promise():
    """As on pathology slides: 0.9 over all, half of one class; a rare class of which no one can be sure."""
    found = evaluated([(0, [0], 4870), (0, [0, 1], 2000), (0, [1, 2], 540), (1, [0, 1], 125), (1, [0, 2], 115),
                       (2, [0, 2], 3), (2, [0, 1], 2)])  # fmt: skip
    assert found.shortfall is None
    assert (found.classes.worst.name, len(found.classes)) == ("cancer-associated stroma", 3)
    assert [part.name for part in found.classes.below] == ["cancer-associated stroma"]
    assert found.classes.sentence == (
        "1 of 3 classes is covered less than 0.9 beyond chance (95 %, all classes at once): cancer-associated stroma. "
        "The promise is an average over all classes. Calibrate by class for a promise to each class."
    )
    assert found.sizes.sentence.startswith("1 of 2 set sizes is covered less than 0.9 beyond chance (95 %, all set")
    assert "such as aps," in found.sizes.sentence


def test_parts_are_compared_with_their_guarantee():
    parts = marked(PartCounts("ab", np.array([820, 860]), np.array([180, 140]), [0.8, 0.9]).parts(0.05))
    assert [part.below for part in parts] == [False, True]
    released, _ = several()["classes"]
    p, y = invented(3000, 1)
    found = evaluate_sets(released, p, np.where(np.arange(3000) % 2, 0, y))
    assert found.classes.own
    assert found.classes.below[0].name == "0"
    assert found.classes.sentence == "" or "--by-class" not in found.classes.sentence


def records(n=2000):
    p, y = invented(3000, 1)
    ward = np.random.default_rng(5).choice(["north", "south"], n)
    return p[:n], y[:n], ward


@pytest.mark.parametrize("kind", ["one", "levels", "classes"])
def test_sets_of_any_release_group_by_group(kind):
    p, y, ward = records()
    released = calibration_at(0.6) if kind == "one" else several()[kind][0]
    found = evaluate_sets(released, p, y, groups=ward)
    plain = evaluate_sets(released, p, y)
    for alpha in found.levels or [None]:
        one, before = (each.finding if alpha is None else each[alpha] for each in (found, plain))
        table = confide.group_coverage(confide.predict_set(p, released.at(alpha), range(4)), y, ward)
        assert [replace(part, promised=None, below=False) for part in one.groups] == list(table)
        assert (one.coverage, one.classes, one.sizes) == (before.coverage, before.classes, before.sizes)
        assert not before.groups
    assert Evaluation.from_json(found.to_json()) == found


def test_intervals_and_scores_of_any_release_group_by_group():
    rng = np.random.default_rng(0)
    y, site = rng.normal(size=2000), rng.integers(1, 3, 2000)
    y = np.where(site == 2, 3 * y, y)
    sides, _ = several()["sides"]
    found = evaluate_intervals(sides, np.tile([-1.0, 1.0], (2000, 1)), y, groups=site)
    assert found.groups.names == ("1", "2")
    assert found.groups[0].mean_width == pytest.approx(found.mean_width)
    assert found.ends.names == ("lower end", "upper end")
    assert Evaluation.from_json(found.to_json()) == found
    assert found.groups.worst.name == "2"
    assert (
        found.groups.sentence == "1 of 2 groups is covered less than 0.9 beyond chance (95 %, all groups at once): 2."
    )
    assert found.shortfall.is_broken, "and then no other division of the records would help"
    released = calibration_at(1.5, "absolute_residual")
    by_score = evaluate_scores(released, np.abs(y), groups=site)
    by_interval = evaluate_intervals(released, np.zeros(2000), y, groups=site)
    assert by_score.groups.hits.tolist() == by_interval.groups.hits.tolist()
    assert by_score.groups.n.sum() == 2000
