"""Pictures: what is drawn, that names can be read, that promises and misses are marked, and what is refused."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import confide
from confide.core import Pilot
from confide.evaluation import CoverageTable, Part
from confide.sets import PredictionIntervals, PredictionSets
from tests.calibrations import calibration_at
from tests.refused import refused

LONG = "cancer-associated stroma, as seen on slides of the colon and rectum, with $5 and $6 in it"


@pytest.fixture(scope="module")
def released():
    scores = np.random.default_rng(0).random(2000)
    return confide.calibrate(scores, 0.1, 1.0, candidates=confide.Candidates.unit(20), about={"date": "2026-01"})


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra plots: pip install 'confide[plots]'")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def of_classes(k, *, below, promised=0.9):
    """Sets of 100 records of each of k classes: all covered, but half of those of one class."""
    names = tuple(f"{LONG}, kind {i}" for i in range(k))
    y = np.arange(100 * k) % k
    mask = np.zeros((len(y), k), bool)
    mask[np.arange(len(y)), y] = (y != below) | (np.arange(len(y)) // k % 2 == 0)
    return PredictionSets(mask, names, promised), np.array(names)[y]


def dashed(axes):
    return [line for line in axes.lines if line.get_linestyle() == "--"]


@pytest.mark.long
def test_hundred_long_names_are_readable(pyplot):
    sets, labels = of_classes(100, below=61)
    axes = confide.plots.plot_coverage(sets, labels)
    axes.figure.canvas.draw()
    ticks = axes.get_yticklabels()
    boxes = [tick.get_window_extent() for tick in ticks]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert all(box.x0 >= 0 and box.x1 <= axes.get_window_extent().x0 for box in boxes)
    said = [tick.get_text().replace("\n", " ") for tick in ticks]
    assert sorted(said) == sorted(sets.classes)
    assert not any(tick.get_parse_math() for tick in ticks)
    assert said[0] == sets.classes[61]
    (line,) = dashed(axes)
    assert line.get_xdata()[0] == 0.9
    short = next(line for line in axes.lines if line.get_label() == "below it beyond chance (1 of 100)")
    others = next(line for line in axes.lines if len(line.get_ydata()) == 99)
    assert (short.get_marker(), list(short.get_ydata())) == ("v", [0])
    assert others.get_marker() == "o"
    assert others.get_color() != short.get_color()
    assert axes.get_window_extent().width > 200


def test_many_classes_are_paged():
    sets, labels = of_classes(103, below=0)
    assert "1 to 100 from the least covered of 103" in confide.plots.plot_coverage(sets, labels).get_title()
    last = confide.plots.plot_coverage(sets, labels, page=2)
    assert len(last.get_yticks()) == 3
    with refused(confide.errors.InputError, "page"):
        confide.plots.plot_coverage(sets, labels, page=3)


def test_level_is_promise_or_argument():
    sets, labels = of_classes(3, below=0)
    assert dashed(confide.plots.plot_coverage(sets, labels, level=0.4))[0].get_xdata()[0] == 0.4
    assert not dashed(confide.plots.plot_coverage(PredictionSets(sets.mask, sets.classes), labels))
    assert dashed(confide.plots.plot_coverage(confide.evaluation.class_coverage(sets, labels), level=0.9))


def test_table_with_promises_of_its_own_shows_each():
    parts = [Part(name, 50, 50, 0.5, 0.4, 0.6, level, below=level > 0.6) for name, level in (("a", 0.9), ("b", 0.3))]
    axes = confide.plots.plot_coverage(CoverageTable("group", tuple(parts), own=True))
    assert axes.get_title() == "Coverage by group\nintervals: noise included"
    promised = next(line for line in axes.lines if line.get_label() == "promised to each")
    assert list(promised.get_xdata()) == [0.9, 0.3]
    assert "below it beyond chance (1 of 2)" in [line.get_label() for line in axes.lines]


def test_groups_are_drawn_on_given_axes(pyplot):
    sets, labels = of_classes(4, below=2)
    _, ax = pyplot.subplots()
    assert confide.plots.plot_coverage(sets, labels, groups=np.arange(400) % 4 // 2, ax=ax) is ax
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["1", "0"]
    assert ax.get_title().startswith("Coverage by group")
    assert ax.get_legend() is not None


SETS, LABELS = of_classes(3, below=0)
NO_SETS = PredictionSets(np.zeros((0, 3), bool))
ONE = PredictionIntervals(np.zeros(1), np.ones(1))
WATCH = confide.Watch.start(calibration_at(0.5), epsilon=1.0, batch=9, bins=(0, 1))


@pytest.mark.parametrize(
    ("call", "arguments", "argument", "kind"),
    [
        (confide.plots.plot_coverage, (SETS,), "labels", confide.errors.InputError),
        (confide.plots.plot_coverage, (SETS.mask, LABELS), "sets", confide.errors.InputTypeError),
        (
            confide.plots.plot_coverage,
            (confide.evaluation.class_coverage(SETS, LABELS), LABELS),
            "labels",
            confide.errors.InputError,
        ),
        (confide.plots.plot_coverage, (NO_SETS, np.array([], int)), "sets", confide.errors.InputError),
        (confide.plots.plot_sizes, (NO_SETS,), "sets", confide.errors.InputError),
        (confide.plots.plot_sizes, (SETS.mask,), "sets", confide.errors.InputTypeError),
        (PredictionIntervals(np.zeros(0), np.zeros(0)).plot, (), "intervals", confide.errors.InputError),
        (ONE.plot, ([1, 2],), "targets", confide.errors.InputError),
        (partial(ONE.plot, along=[1, 2]), (), "along", confide.errors.InputError),
        (confide.plots.plot_watch, (None,), "watch", confide.errors.InputTypeError),
        (confide.plots.plot_watch, (WATCH,), "watch", confide.errors.InputError),
        (confide.plots.plot_price, (None,), "plan", confide.errors.InputTypeError),
        (confide.plots.plot_thresholds, ([],), "releases", confide.errors.InputTypeError),
    ],
)
def test_invalid_arguments_raise(call, arguments, argument, kind):
    with refused(kind, argument):
        call(*arguments)


def test_shares_of_sizes_sum_to_one():
    sets = PredictionSets(np.random.default_rng(0).random((500, 200)) < 0.3)
    bars = confide.plots.plot_sizes(sets)
    assert sum(bar.get_height() for bar in bars.patches) == pytest.approx(1)


@pytest.mark.slow
def test_missed_targets_are_marked():
    rng = np.random.default_rng(0)
    x = rng.random(5000)
    y = x + np.where(np.arange(5000) % 100 == 0, 3, 0)
    intervals = PredictionIntervals(np.where(x > 0.99, -np.inf, x - 1), x + 1, 0.9)
    axes = intervals.plot(y, along=x)
    inside, outside = (next(line for line in axes.lines if what in line.get_label()) for what in ("inside", "outside"))
    assert len(outside.get_xdata()) == 50
    assert outside.get_marker() != inside.get_marker()
    assert outside.get_zorder() > inside.get_zorder()
    assert inside.get_alpha() < 0.5
    title = axes.get_title()
    assert "99.0% inside, promised on average: 0.9" in title
    assert f"{(x > 0.99).sum()} infinite" in title
    assert "promised on average: 0.5" in intervals.plot(level=0.5).get_title()
    assert "promised" not in PredictionIntervals(*intervals).plot().get_title()
    middles = intervals[x <= 0.99].plot(y[x <= 0.99])
    assert middles.get_xlabel() == "middle of the interval"
    inside = next(line for line in middles.lines if "inside" in line.get_label())
    assert np.allclose(np.sort(inside.get_xdata()), np.sort(x[(x <= 0.99) & (np.arange(5000) % 100 != 0)]))


@pytest.mark.long
def test_costs_equal_plans():
    chosen = confide.plan(alpha=0.1, epsilon=1.0, n=1000, candidates=20)
    axes = confide.plots.plot_price(chosen, epsilons=[0.5, 1.0], records=[300, 1000])
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    other = confide.plan(alpha=0.1, epsilon=0.5, n=300, candidates=20)
    assert drawn["ε = 0.5"][0] == pytest.approx(other.expected_coverage)
    assert drawn["ε = 1"][1] == pytest.approx(chosen.expected_coverage)
    assert drawn["this plan: ε = 1, n = 1,000"] == [drawn["ε = 1"][1]]
    assert drawn["requested: 0.9"] == [0.9, 0.9]
    many = confide.plots.plot_price(chosen, of="excess", epsilons=[1.0], records=[1000])
    assert next(line for line in many.lines if line.get_label() == "ε = 1").get_ydata()[0] == pytest.approx(
        chosen.expected_excess
    )
    with refused(confide.errors.InputError, "plan"):
        confide.plots.plot_price(chosen, of="size")
    everywhere = confide.plots.plot_price(chosen)
    assert [line.get_label() for line in everywhere.lines[1:4]] == ["ε = 0.2", "ε = 1", "ε = 5"]
    assert everywhere.lines[0].get_xdata()[[0, -1]].tolist() == [100, 100_000]


def test_costs_in_sizes_use_pilot():
    p = np.random.default_rng(0).dirichlet(np.ones(4) / 9, 300)
    pilot = Pilot(confide.lac_score(p, p.argmax(axis=1)), confide.all_scores(p))
    chosen = confide.plan(alpha=0.1, epsilon=1.0, n=1000, candidates=20, pilot=pilot)
    axes = confide.plots.plot_price(chosen, of="size", epsilons=[1.0], records=[1000])
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert drawn["ε = 1"] == [chosen.on_pilot.size]
    assert drawn["without privacy"] == [chosen.on_pilot.plain_size]


@pytest.mark.slow
def test_thresholds_of_several_releases(released):
    rng, first = np.random.default_rng(0), released
    second = confide.recalibrate(first, rng.random(2000), about={"date": "2026-02"})
    axes = confide.plots.plot_thresholds([first, second])
    assert list(axes.lines[0].get_ydata()) == [first.threshold, second.threshold]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2026-01", "2026-02"]
    with pytest.warns(confide.CoverageWarning):
        few = confide.calibrate(rng.random(2), 0.1, mechanism="none")
    assert np.isinf(few.threshold)
    listed = confide.plots.plot_thresholds([first, few])
    assert (listed.lines[-1].get_marker(), listed.lines[-1].get_label(), list(listed.lines[-1].get_xdata())) == (
        "^", "+∞", [1],
    )  # fmt: skip
    levels = confide.calibrate(rng.random(2000), [0.3, 0.2], 4.0)
    with refused(confide.errors.InputError, "releases"):
        confide.plots.plot_thresholds([first, levels])


@pytest.mark.slow
def test_watch_shows_alarm(released):
    watch = confide.Watch.start(released, epsilon=1.0, batch=500)
    for week in range(8):
        watch = watch.look(f"week {week}", [460 if week < 3 else 380, 40 if week < 3 else 120])
    axes = confide.plots.plot_watch(watch)
    late = next(line for line in axes.lines if line.get_label() == "since the alarm")
    assert list(late.get_xdata()) == [i for i, point in enumerate(watch.points) if point.alarmed]
    assert late.get_marker() == "v"
    assert dashed(axes)[0].get_ydata()[0] == watch.settings.least[0]
