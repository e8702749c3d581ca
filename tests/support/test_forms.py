"""A document has a kind, a schema, strict JSON and a checksum; versions in it are short texts."""

import json

import pytest

from confide.errors import FormatError, InputTypeError
from confide.support import Form, check_version_texts, checksum
from tests.refused import refused

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
