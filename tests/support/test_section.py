"""Descriptions in text and notebook, and documents: kind, schema, strict JSON, checksum."""

import json
import re

import pytest

from confide.errors import FormatError, InputTypeError
from confide.support import Described, Form, Section, Table, check_version_texts, checksum, describe, to_html, to_text
from tests.refused import refused

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


FORM = Form("confide/example", "example", most_characters=1000)


@pytest.mark.parametrize("fields", [{"a": 1}, {"a": 1, "b": {}}])
def test_a_form_has_a_schema_and_a_checksum(fields):
    text = FORM.write(fields)
    content = json.loads(text)
    assert list(content) == ["kind", "schema", *fields, "sha256"]
    assert content["schema"] == 1
    assert FORM.read(text) == fields


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"kind": "other"}, "example.kind"),
        ({"kind": ...}, "example.kind"),
        *(({"schema": schema}, "example.schema") for schema in (0, -1, 2, 3, True, "1", 1.0, None, ...)),
        ({"a": "1" * 1000}, "example"),
    ],
)
def test_texts_of_another_form_raise(change, path):
    content = {"kind": "confide/example", "schema": 1, "a": 1, **change}
    content = {name: value for name, value in content.items() if value is not ...}
    with refused(FormatError, path):
        FORM.read(json.dumps({**content, "sha256": checksum(content)}))


def test_missing_checksums_and_other_types_raise():
    text = FORM.write({"a": 1})
    for damaged in (text.replace('"a": 1', '"a": 2'), "{}"[:1], "[]", text[:-3], text.replace('"a"', '"a": 1, "a"')):
        with pytest.raises(FormatError):
            FORM.read(damaged)
    with refused(InputTypeError, "text"):
        FORM.read(b"{}")


@pytest.mark.parametrize(
    "versions",
    [{"": "1"}, {"a": ""}, {"a": 1}, {"a": "1\n"}, {"a": "1" * 101}, dict.fromkeys("abcdefghijklmnopqrstu", "1")],
)
def test_versions_are_few_short_printable_texts(versions):
    check_version_texts("versions", {"confide": "0.4.0", "a": "1" * 100})
    with refused(FormatError, "versions"):
        check_version_texts("versions", versions)
