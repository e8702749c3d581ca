"""Descriptions have the same facts in text, in a notebook and in a chart, and all texts are escaped."""

import math
import re

import pytest

from confide.support import (
    Area,
    Axis,
    Bar,
    Chart,
    ChartText,
    Described,
    Dot,
    Line,
    Rule,
    Section,
    Table,
    describe,
    number_axis,
    percent_axis,
    round_ticks,
    to_html,
    to_text,
)

HOSTILE = "<script>$x$\u202e</script>\x1b"
AXIS = Axis(0, 1, ((0, HOSTILE), (1, "1")), HOSTILE, grid=True)
MARKS = (
    Area(((0, 0, 1), (1, 0, 1))), Line(((0, 0), (1, 1))), Rule(x=0.5), Rule(y=0.5), Bar((0, 0.5), (0, 1), 3),
    Dot((0.5, 0.5), x=(0.2, 0.7), y=(0.1, 0.9), words=HOSTILE), Dot((1, 1), triangle=True), Dot((0, 0), tick=True),
    ChartText((0.5, 0.5), HOSTILE),
)  # fmt: skip


def whole(text):
    """A section with a text in every place."""
    table = Table((text, text), ((text, text),), text)
    part = Section(text, text, ((text, text),))
    return Section(text, text, ((text, text),), (table,), (text,), None, (part,), (text,))


def test_tables_have_a_caption_and_heads_with_a_scope_and_no_colours():
    shown = to_html(Section("Sets", tables=(Table(("record", "set"), (("0", "cat"),)),), notes=("a note",)))
    assert shown.startswith("<table")
    assert "<caption" in shown
    assert shown.count('scope="col"') == 2
    assert shown.count('scope="row"') == 1
    assert '<td colspan="2"' in shown
    assert not re.search("color|background", shown)


def test_every_text_is_escaped_and_no_formula():
    shown = to_html(whole(HOSTILE))
    assert not re.search("<script|\u202e|\x1b", shown)
    assert shown.count("&lt;script") == 14
    assert "tex2jax_ignore mathjax_ignore" in shown
    chart = Chart(HOSTILE, AXIS, AXIS, MARKS, (HOSTILE,)).svg()
    assert "<script" not in chart
    assert len(re.findall("&lt;script", chart)) >= 4


def test_many_rows_are_counted_in_a_notebook_and_whole_in_text():
    many = Section("Many", tables=(Table(("i", "j"), tuple((f"{i}", "x") for i in range(1000))),))
    assert to_html(many).count("<tr>") == 22
    assert "and 980 more" in to_html(many)
    assert len(to_text(many).splitlines()) == 1001
    first = Table(("i",), tuple((f"{i}",) for i in range(10)), total=100)
    assert (first.left_out, "and 90 more" in to_html(Section("First", tables=(first,)))) == (90, True)


def test_text_and_notebook_have_the_same_facts_in_the_same_order():
    inner = Section("With 10 records", facts=(("target rank", "9"), ("coverage", "0.9")))
    made = Section("Plan", "a plan", (("privacy", "1"),), warnings=("few",), parts=(inner,), notes=("no alarm",))
    assert to_text(made).splitlines() == [
        "few", "a plan", "privacy: 1", "With 10 records:", "  target rank  9", "  coverage     0.9", "no alarm",
    ]  # fmt: skip
    shown = to_html(made)
    assert shown.count('scope="row"') == 3
    assert shown.count('scope="rowgroup"') == 1
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", shown)
    assert cells == [
        "few",
        "a plan",
        "privacy",
        "1",
        "With 10 records",
        "target rank",
        "9",
        "coverage",
        "0.9",
        "no alarm",
    ]


def test_a_repr_is_one_line_and_values_without_description_raise():
    class Named(Described):
        def _brief(self):
            return "a\nname"

    assert repr(Named()) == "Named(a\\nname)"
    with pytest.raises(TypeError):
        describe(3)
    for missing in (lambda: Described()._section(), lambda: Described()._brief()):
        with pytest.raises(NotImplementedError):
            missing()


def test_marks_lie_where_their_values_are():
    drawn = Chart("c", Axis(0, 10), Axis(0, 1), (Dot((5, 0.5)), Dot((0, 0)), Dot((10, 1)), Dot((20, 2)))).svg()
    middle, low, high, outside = (tuple(map(float, place)) for place in re.findall(r'cx="([^"]*)" cy="([^"]*)"', drawn))
    assert middle == tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
    assert low[0] < high[0] <= 480
    assert low[1] > high[1] >= 0
    assert outside == high
    assert Axis(1, 100, logarithmic=True).share(10) == pytest.approx(0.5)
    assert Axis(-1e308, 1e308).share(0) == pytest.approx(0.5)
    assert Axis(3, 3).share(3) == 0.5


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.85, 1), (0.9999, 1), (-3, 1e9), (1e-9, 1e-8), (5, 5), (0, math.inf)]
)
def test_ticks_are_few_and_within(low, high):
    found = round_ticks(low, high, 5)
    assert 1 <= len(found) <= 5
    assert all(low - 1e-9 * abs(low) <= tick <= high * (1 + 1e-9) for tick in found)
    assert found == sorted(set(found))


def test_axes_are_named():
    assert [name for _, name in percent_axis(0.8, 1.0).ticks] == [
        "80\u00a0%",
        "85\u00a0%",
        "90\u00a0%",
        "95\u00a0%",
        "100\u00a0%",
    ]
    assert [name for _, name in number_axis(100, 30_000, logarithmic=True).ticks] == ["100", "1,000", "10 k"]
    assert [name for _, name in number_axis(0.2, 5.0, logarithmic=True).ticks] == ["0.2", "0.5", "1", "2", "5"]
    assert [value for value, _ in number_axis(0, 10).ticks] == [0, 2.5, 5, 7.5, 10]


def test_names_of_ticks_and_texts_next_to_the_last_value_stay_inside():
    x = Axis(0, 1, ((0, "the first"), (1, "this very release")))
    drawn = Chart("two", x, percent_axis(0, 1), (Bar((0, 1), (0, 1)), ChartText((1, 0.5), "size 10", anchor="start")))
    places = {text: float(at) for at, text in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)<', drawn.svg())}
    assert places["this very release"] + 16 * 8.2 / 2 <= 480
    box = re.search(r'<rect [^>]*x="([\d.]+)"[^>]*width="([\d.]+)"', drawn.svg())
    assert float(box[1]) + float(box[2]) < places["size 10"] <= 480 - 7 * 8
