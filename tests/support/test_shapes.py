"""One table reads and writes the fields of an object: what fits comes back as it was, and refusals name the field."""

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

from confide.errors import FormatError, InputError
from confide.support import Fields, shapes

SHAPE = {
    "n": shapes.integer(10),
    "share": shapes.number(0, 1),
    "loss": shapes.LOSS,
    "rank": shapes.fraction("below 1", lambda value: value < 1),
    "score": shapes.nullable(shapes.TEXT),
    "kind": shapes.choice("one", "two"),
    "counts": shapes.listed(shapes.listed(shapes.INTEGER)),
    "inner": shapes.record(SimpleNamespace, {"alpha": shapes.LEVEL}),
    "note": shapes.optional(shapes.TEXT),
}
CONTENT = {
    "n": 3, "share": 1, "loss": "+inf", "rank": "1/3", "score": None, "kind": "two", "counts": [[1, 2], []],
    "inner": {"alpha": "1/10"},
}  # fmt: skip


def read(**change):
    content = {name: value for name, value in {**CONTENT, **change}.items() if value is not ...}
    return shapes.read_shape(Fields("plan", content), SHAPE)


def test_what_fits_is_read_and_written_again():
    found = read()
    assert (found["loss"], found["rank"], found["counts"]) == (math.inf, Fraction(1, 3), ((1, 2), ()))
    assert found["inner"].alpha == Fraction(1, 10)
    assert found["note"] is None
    assert shapes.write_shape(SimpleNamespace(**found), SHAPE) == CONTENT
    assert shapes.write_shape(SimpleNamespace(**read(note="a")), SHAPE) == CONTENT | {"note": "a"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n": 0}, "the plan's field 'n' must be an integer from 1 to 10"),
        ({"n": True}, "the plan's field 'n' must be an integer from 1 to 10; found bool"),
        ({"n": 1.0}, "the plan's field 'n' must be an integer from 1 to 10; found float"),
        ({"n": ...}, "the plan lacks the field 'n'"),
        ({"more": 1}, r"the plan has 1 unknown field\(s\)"),
        ({"share": 1.5}, "'share' must be a number from 0 to 1"),
        ({"share": 10**400}, "'share' must be a number from 0 to 1"),
        ({"loss": "-inf"}, r"'loss' must be a number of at least 0, or '\+inf'"),
        ({"loss": "1"}, r"'loss' must be a number of at least 0, or '\+inf'"),
        ({"rank": "4/3"}, "'rank' must be a fraction of non-negative integers below 1"),
        ({"rank": "1/0"}, "'rank' must be a fraction of non-negative integers below 1"),
        ({"score": 1}, "'score' must be a text, or null; found int"),
        ({"kind": "three"}, "'kind' must be one of 'one', 'two'"),
        ({"counts": [3]}, "each entry of the plan's field 'counts' must be a list, each entry an integer; found int"),
        ({"counts": {}}, "'counts' must be a list"),
        ({"inner": []}, "'inner' must be an object that can be used; found list"),
        ({"inner": {}}, "lacks the field 'alpha' of its inner"),
        ({"inner": {"alpha": "2"}}, "field 'alpha' of its inner must be a level between 0 and 1: alpha must"),
        ({"note": None}, "'note' must be a text; found NoneType"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(change, says):
    with pytest.raises(FormatError, match=says):
        read(**change)


def test_what_a_value_refuses_is_said():
    def made(n):
        raise InputError("n must be even")

    field = shapes.record(made, {"n": shapes.INTEGER})
    with pytest.raises(FormatError, match="'pair' must be an object that can be used: n must be even"):
        field.of({"n": 1}, Fields("plan", {}), "pair")
