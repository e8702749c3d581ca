"""Printed tables whose columns fit, and a plot of classes that can be read."""

from itertools import pairwise

import numpy as np
import pytest

import confide
from confide.sets import PredictionSets

LONG = "cancer-associated stroma, as seen on slides of the colon and rectum"


def test_columns_are_as_wide_as_their_names_and_empty_parts_are_left_out():
    sets = PredictionSets(np.array([[True, False, False]] * 3), (LONG, "b", "nobody"))
    lines = str(confide.class_coverage(sets, [LONG, LONG, "b"])).splitlines()
    assert [line.split()[-1] for line in lines] == ["size", "1.00", "1.00"]
    assert len({len(line) for line in lines}) == 1
    assert (
        len({line.index(end) + len(end) for line, end in zip(lines, ("coverage", "1.000", "0.000"), strict=True)}) == 1
    )
    by_size = str(confide.size_coverage(sets, [LONG, LONG, "b"]))
    assert len(by_size.splitlines()) == 2
    assert "nan" not in by_size


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="needs the extra plots")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_names_can_be_read_and_the_promise_is_a_line(pyplot):
    names = tuple(f"{LONG} {k}" for k in range(9))
    y = np.arange(900) % 9
    mask = np.zeros((900, 9), bool)
    mask[np.arange(900), y] = (y != 4) | (np.arange(900) % 2 == 0)
    axes = confide.plot_coverage(PredictionSets(mask, names, 0.9), np.array(names)[y])
    axes.figure.canvas.draw()
    labels = axes.get_yticklabels()
    boxes = [label.get_window_extent() for label in labels]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert all(box.x0 >= 0 and box.x1 <= axes.figure.bbox.x1 for box in boxes)
    assert [label.get_text()[:6] for label in labels] == ["cancer"] * 9
    (line,) = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert line.get_xdata()[0] == 0.9
    short = next(line for line in axes.lines if line.get_label() == "surely below it")
    assert (short.get_marker(), list(short.get_ydata())) == ("v", [4])
    unknown = confide.plot_coverage(PredictionSets(mask, names), np.array(names)[y])
    assert not any(line.get_linestyle() == "--" for line in unknown.lines)
    assert (
        confide.plot_coverage(PredictionSets(mask, names, 0.9), np.array(names)[y], level=0.4).lines[-1].get_xdata()[0]
        == 0.4
    )
