"""Descriptions have the same facts in text and in a notebook, and all texts are escaped."""

import re

import pytest

from confide.support import Described, Section, Table, describe, to_html, to_text

HOSTILE = "<script>$x$\u202e</script>\x1b"


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
        "few", "a plan", "privacy", "1", "With 10 records", "target rank", "9", "coverage", "0.9", "no alarm",
    ]  # fmt: skip


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
