"""Thresholds of a chain of releases on the page of a release: there without scripts, and only what was released."""

import math
import re

import numpy as np
import pytest

import confide
from confide.core import Predecessor
from confide.reports.thresholds import lineage

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
RNG = np.random.default_rng(0)
PUBLIC = {"neighbors": "replace_one"}


@pytest.fixture(scope="module")
def first():
    return confide.calibrate(RNG.beta(2, 5, 1000), 0.1, 1.0, score="lac", about={"date": "<b>2026-01</b>"}, **PUBLIC)


def after(first, thresholds):
    """The same with predecessors that released these thresholds."""
    line = tuple(Predecessor(f"{i:064x}", value, 0.25, f"month {i + 1}") for i, value in enumerate(thresholds))
    return confide.Calibration(**{**vars(first), "predecessors": line})


def test_first_release_has_no_lineage_section(first):
    assert lineage(first) is None
    assert 'id="course"' not in confide.report(first).html


@pytest.mark.slow
def test_page_shows_all_releases_of_lineage(first):
    second = confide.recalibrate(first, RNG.beta(2, 5, 1000), about={"date": "2026-02"})
    html = confide.report(second).html
    section = html[html.index('<section id="course"') : html.index('<section id="variation"')]
    assert section.count("<circle") == 2
    assert "<polyline" in section
    assert "<script" not in section
    assert "style=" not in section
    assert "&lt;b&gt;2026-01&lt;/b&gt;" in section
    assert first.checksum in section
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", section)
    assert cells[5:10] == ["1", "&lt;b&gt;2026-01&lt;/b&gt;", f"{first.threshold:.5g}", "1", "1/10"]
    assert cells[10:] == ["2, this release", "2026-02", f"{second.threshold:.5g}", "1", "1/10"]
    assert "epsilon 2 for a person who is in each release" in section
    assert "Release 2 of a chain; it renews release 1, with the same settings for new records, and names" in section
    assert "the promise is whole, for new records" in section
    assert "the promise is whole" not in confide.report(confide.recalibrate(first, [0.5], cold=True)).html


@pytest.mark.parametrize(
    ("thresholds", "circles", "lines"),
    [
        ([0.2, 0.4, 0.3], 4, 1),
        ([math.inf, 0.4], 2, 1),
        ([0.2, math.inf, 0.3], 3, 1),
        ([math.inf, math.inf], 1, 0),
        ([1e308, -1e308], 3, 1),
        ([0.5] * 200, 201, 1),
    ],
)
def test_chart_stays_within_frame_for_all_thresholds(first, thresholds, circles, lines):
    output = lineage(after(first, thresholds))
    (chart,) = output["charts"]
    drawn = chart.chart.svg()
    places = [float(place) for place in re.findall(r' (?:cx|cy|x|y)="([^"]*)"', drawn)]
    assert all(0 <= place <= 480 for place in places)
    assert drawn.count("<circle") == circles
    assert drawn.count("<polyline") == lines
    (table,) = output["described"].tables
    assert len(table.rows) == len(thresholds) + 1
    total = f"epsilon {0.25 * len(thresholds) + 1:g} for a person who is in each release"
    assert output["described"].facts == (("all together", total),)
    assert ("+∞" in [text for _, text in chart.chart.y.ticks]) == any(map(math.isinf, thresholds))
