"""Tables for notebooks: heads that a reader of screens hears, and no text that is more than a text."""

from confide.support import Shown, html_lines, html_table

HOSTILE = "<script>$x$\u202e</script>\x1b"


def test_tables_have_a_caption_and_heads_with_a_scope_and_no_colours():
    shown = html_table("Sets", ["record", "set"], [["0", "cat"]], ["a note"])
    assert shown.startswith("<table") and "<caption" in shown  # noqa: PT018
    assert shown.count('scope="col"') == 2
    assert shown.count('scope="row"') == 1
    assert '<td colspan="2"' in shown
    assert "color" not in shown and "background" not in shown  # noqa: PT018


def test_every_text_is_escaped_and_none_is_a_formula():
    for shown in (html_table(HOSTILE, [HOSTILE], [[HOSTILE]], [HOSTILE]), html_lines(HOSTILE, f"{HOSTILE}: {HOSTILE}")):
        assert "<script" not in shown
        assert "\u202e" not in shown
        assert "\x1b" not in shown
        assert "tex2jax_ignore mathjax_ignore" in shown


def test_many_rows_are_counted_and_not_shown():
    shown = html_table("Many", ["i"], [[i, i] for i in range(1000)])
    assert shown.count("<tr>") == 22
    assert "and 980 more" in shown
    assert "and 90 more" in html_table("First", ["i"], [[i, i] for i in range(10)], total=100)


def test_lines_become_rows_and_heads():
    shown = html_lines(
        "Plan",
        "privacy: 1\nWith 10 records:\n  target rank  9\nalpha 0.1\n  coverage  0.9\nno alarm\n"
        "These numbers come straight from the records: they are not private.",
    )
    assert shown.count('scope="row"') == 3
    assert shown.count('scope="rowgroup"') == 2
    assert shown.count("<td colspan") == 2


def test_a_repr_is_one_line():
    class Named(Shown):
        def _brief(self):
            return "a\nname"

    assert repr(Named()) == "Named(a\\nname)"
