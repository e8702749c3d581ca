"""One table reads and writes the fields of an object: valid values are unchanged, and errors contain the path."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import pytest

from confide.errors import FormatError, InputError, InputTypeError
from confide.support import Fields, Form, shapes
from tests.refused import refused


@dataclass(frozen=True)
class Look:
    name: str
    counts: tuple[int, ...]
    share: float | None = None

    def __post_init__(self):
        if not self.name:
            raise InputError("name", "must not be empty")


SHAPE = {
    "n": shapes.integer(10),
    "share": shapes.number(0, 1),
    "loss": shapes.LOSS,
    "rank": shapes.fraction("below 1", lambda value: value < 1),
    "score": shapes.nullable(shapes.TEXT),
    "kind": shapes.choice("one", "two"),
    "counts": shapes.listed(shapes.listed(shapes.INTEGER)),
    "inner": shapes.record(SimpleNamespace, {"alpha": shapes.LEVEL}),
    "looks": shapes.listed(shapes.record(Look, shapes.shape_of(Look))),
    "key": shapes.hexadecimal(4),
    "note": shapes.optional(shapes.TEXT),
}
CONTENT = {
    "n": 3, "share": 1, "loss": "+inf", "rank": "1/3", "score": None, "kind": "two", "counts": [[1, 2], []],
    "inner": {"alpha": "1/10"}, "looks": [{"name": "a", "counts": [1, -1], "share": None}], "key": "00ff",
}  # fmt: skip


def read(**change):
    content = {name: value for name, value in {**CONTENT, **change}.items() if value is not ...}
    return shapes.read_shape(Fields("plan", content), SHAPE)


def test_valid_objects_are_read_and_written_unchanged():
    found = read()
    assert (found["loss"], found["rank"], found["counts"]) == (math.inf, Fraction(1, 3), ((1, 2), ()))
    assert found["inner"].alpha == Fraction(1, 10)
    assert found["looks"] == (Look("a", (1, -1)),)
    assert found["note"] is None
    assert shapes.write_shape(SimpleNamespace(**found), SHAPE) == CONTENT
    assert shapes.write_shape(SimpleNamespace(**read(note="a")), SHAPE) == CONTENT | {"note": "a"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"n": 0}, "n"),
        ({"n": 11}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.0}, "n"),
        ({"n": ...}, "n"),
        ({"more": 1}, ""),
        ({"share": 1.5}, "share"),
        ({"share": 10**400}, "share"),
        ({"loss": "-inf"}, "loss"),
        ({"loss": "1"}, "loss"),
        ({"rank": "4/3"}, "rank"),
        ({"rank": "1/0"}, "rank"),
        ({"rank": "1/00"}, "rank"),
        ({"rank": "1" * 61}, "rank"),
        ({"rank": f"1/{10**9}"}, "rank"),
        ({"score": 1}, "score"),
        ({"kind": "three"}, "kind"),
        ({"counts": [3]}, "counts[0]"),
        ({"counts": [[], [1, "2"]]}, "counts[1][1]"),
        ({"counts": {}}, "counts"),
        ({"inner": []}, "inner"),
        ({"inner": {}}, "inner.alpha"),
        ({"inner": {"alpha": "2"}}, "inner.alpha"),
        ({"inner": {"alpha": "1/2", "beta": 1}}, "inner"),
        ({"looks": [{"name": "", "counts": [], "share": None}]}, "looks[0].name"),
        ({"looks": [{"name": "a", "counts": [0, 1.5], "share": None}]}, "looks[0].counts[1]"),
        ({"looks": [{"name": "a", "counts": [], "share": "x"}]}, "looks[0].share"),
        ({"key": "00FF"}, "key"),
        ({"key": "00ff0"}, "key"),
        ({"note": None}, "note"),
    ],
)
def test_invalid_fields_raise_with_their_path(change, path):
    with refused(FormatError, f"plan.{path}".removesuffix(".")):
        read(**change)


def test_other_errors_of_a_value_are_not_converted():
    class OtherError(InputError):
        pass

    def made(n):
        raise OtherError("n", "must be even") if n else InputError("m", "must be given")

    field = shapes.record(made, {"n": shapes.INTEGER})
    with refused(OtherError, "n"):
        field.of({"n": 1}, "plan")
    with refused(FormatError, "plan"):  # no field of this name
        field.of({"n": 0}, "plan")


FORM = Form("confide/example", "example", most_characters=1000)


def opened(text):
    return FORM.read(text, lambda fields: [fields.pop("a"), fields.content.pop("b", None)])


@pytest.mark.parametrize("fields", [{"a": 1}, {"a": 1, "b": {}}])
def test_a_form_has_a_schema_and_a_checksum(fields):
    text = FORM.write(fields)
    content = json.loads(text)
    assert list(content) == ["kind", "schema", *fields, "sha256"]
    assert content["schema"] == 1
    assert opened(text) == [fields["a"], fields.get("b")]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"kind": "other"}, "example.kind"),
        ({"kind": ...}, "example.kind"),
        *(({"schema": schema}, "example.schema") for schema in (0, -1, 2, 3, True, "1", 1.0, None, ...)),
        ({"a": ...}, "example.a"),
        ({"more": 1}, "example"),
        ({"a": "1" * 1000}, "example"),
    ],
)
def test_texts_of_another_form_raise(change, path):
    content = {"kind": "confide/example", "schema": 1, "a": 1, **change}
    content = {name: value for name, value in content.items() if value is not ...}
    with refused(FormatError, path):
        opened(json.dumps({**content, "sha256": shapes.checksum(content)}))


def test_missing_checksums_and_other_types_raise():
    text = FORM.write({"a": 1})
    for damaged in (text.replace('"a": 1', '"a": 2'), "{}"[:1], "[]", text[:-3], text.replace('"a"', '"a": 1, "a"')):
        with pytest.raises(FormatError):
            opened(damaged)
    with refused(InputTypeError, "text"):
        opened(b"{}")
