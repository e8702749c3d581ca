"""Who is covered least, and who surely less than promised: exact for the worst of many; groups of any release."""

import numpy as np
import pytest
from scipy import stats

import confide
from confide.evaluation import (
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    evaluation_from_counts,
    read_evaluation,
    surely_below,
    worst_parts,
)
from confide.evaluation.parts import exact_parts
from tests.calibrations import calibration_at
from tests.reports.pages import invented, several

TISSUES = ("adipose", "cancer-associated stroma", "rare")


def stroma():
    """As on pathology slides: .9 over all, half of one class; a rare class of which no one can be sure."""
    by_class = np.array([[6935, 6395, 9000], [240, 125, 300], [5, 3, 6]])
    by_size = np.array([[0, 0], [5000, 4300], [2180, 2223 - 0]])
    by_size[2, 1] = by_class[:, 1].sum() - by_size[1, 1]
    by_size[1, 0], by_size[2, 0] = 5054, 2126
    by_class[0, 2] = 5054 + 2 * 2126 - 306
    return evaluation_from_counts(calibration_at(0.9), TISSUES, by_class, by_size)


@pytest.mark.parametrize("n", [5, 50, 500])
@pytest.mark.parametrize("parts", [1, 9, 300])
def test_surely_below_is_simultaneous_and_exact(n, parts):
    """By the law of the count: wrongly named with probability .025 / parts at most, and no one needlessly spared."""

    def named(hits):
        rows = [*[(n, n, 0.0)] * (parts - 1), (n, hits, 0.0)]
        return bool(surely_below(exact_parts(range(parts), rows), 0.9))

    hits = [h for h in range(n + 1) if stats.binom.cdf(h, n, 0.9) < 0.025 / parts]
    most = max(hits, default=-1)
    assert all(named(h) for h in {0, most // 2, most} if h in hits)
    assert not named(most + 1)


def test_worst_part_and_parts_below_promise():
    classes, sizes = worst_parts(stroma())
    assert (classes.kind, classes.part.name, classes.parts) == ("class", "cancer-associated stroma", 3)
    assert [part.name for part in classes.below] == ["cancer-associated stroma"]
    assert classes.sentence == (
        "1 of 3 classes is covered less than 0.9 beyond chance (95 %, all classes at once): cancer-associated stroma. "
        "The promise is an average over all classes. Calibrate by class for a promise to each class."
    )
    assert sizes.kind == "set size"
    assert sizes.sentence.startswith("1 of 2 set sizes is covered less than 0.9 beyond chance (95 %, all set")
    assert "such as aps," in sizes.sentence


def test_parts_are_compared_with_their_guarantee():
    parts = exact_parts("ab", [(1000, 820, 0.0), (1000, 860, 0.0)], [0.8, 0.9])
    assert [part.name for part in surely_below(parts, 0.99)] == ["b"]
    released, found = several()["classes"]
    short = confide.evaluation.Evaluation(
        found.calibration,
        found.promised,
        found.coverage,
        classes=(*exact_parts("a", [(1000, 500, 0.0)], [released[0].coverage]), *found.classes[1:]),
        by="class",
    )
    (worst,) = worst_parts(short)
    assert worst.part.name == "a"
    assert "own promise" in worst.sentence
    assert "--by-class" not in worst.sentence


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
    each = found.levels.items() if kind == "levels" else [(None, found)]
    for alpha, one in each:
        part = released.at(alpha)
        table = confide.group_coverage(confide.predict_set(p, part, range(4)), y, ward)
        assert [(g.name, g.n, g.covered, g.mean_size) for g in one.subgroups] == list(
            zip(table.names, table.n, table.hits, table.size, strict=True)
        )
        before = plain if alpha is None else plain[alpha]
        assert (one.coverage, one.classes, one.sizes) == (before.coverage, before.classes, before.sizes)
        assert before.subgroups == ()
    assert read_evaluation(found.to_json()) == found


def test_intervals_and_scores_of_any_release_group_by_group():
    rng = np.random.default_rng(0)
    y, site = rng.normal(size=2000), rng.integers(1, 3, 2000)
    y = np.where(site == 2, 3 * y, y)
    sides, _ = several()["sides"]
    found = evaluate_intervals(sides, np.tile([-1.0, 1.0], (2000, 1)), y, groups=site)
    assert [part.name for part in found.subgroups] == ["1", "2"]
    assert found.subgroups[0].mean_width == pytest.approx(found.mean_width)
    assert [part.name for part in found.groups] == ["lower end", "upper end"]
    assert read_evaluation(found.to_json()) == found
    ends, groups = worst_parts(found)
    assert (ends.kind, groups.kind, groups.part.name) == ("end", "group", "2")
    assert groups.sentence == "1 of 2 groups is covered less than 0.9 beyond chance (95 %, all groups at once): 2."
    assert found.shortfall.is_broken, "and then no other division of the records would help"
    released = calibration_at(1.5, "absolute_residual")
    by_score = evaluate_scores(released, np.abs(y), groups=site)
    by_interval = evaluate_intervals(released, np.zeros(2000), y, groups=site)
    assert [part.covered for part in by_score.subgroups] == [part.covered for part in by_interval.subgroups]
    assert sum(part.n for part in by_score.subgroups) == 2000
