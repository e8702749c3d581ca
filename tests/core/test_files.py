"""Files of releases are read back exactly; damaged, foreign, newer and inconsistent ones raise errors without a value.

The checksum is not a signature: a file that is changed consistently claims no more than its mechanism guarantees.
"""

import contextlib
import copy
import json
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confide
from confide import Release
from confide.errors import FormatError
from confide.support import checksum
from tests.builders import slow
from tests.calibrations import KINDS, OPTIONS, of_kind, released
from tests.files import signed
from tests.refused import refused

pytestmark = pytest.mark.xdist_group("released")

EVERYDAY = ("add_remove", "replace_one", "delta", "rho")


def content_of(name: str) -> dict:
    """The content of a file, to be altered."""
    return json.loads((of_kind(name) if name in KINDS else released(name)).to_json())


def places_in(content, path=()):
    """Every path in a file, but to its checksum."""
    listed = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in listed:
        if key != "sha256":
            yield (*path, key)
            yield from places_in(value, (*path, key))


def altered(name: str, path, value) -> str:
    """The file with one value changed or added, and a new checksum."""
    content = content_of(name)
    *groups, key = path
    place = content
    for group in groups:
        place = place[group]
    assert key not in place or place[key] != value or type(place[key]) is not type(value), "nothing was changed"
    place[key] = value
    return signed(content)


# --- round trips


@pytest.mark.slow(unless=("counts", "levels", "opendp-quantile", "overlapping groups"))
@pytest.mark.parametrize("name", [*OPTIONS, *KINDS])
def test_read_back_exactly(name):
    release = of_kind(name) if name in KINDS else released(name)
    text = release.to_json()
    again = Release.from_json(text)
    assert again == release
    assert hash(again) == hash(release)
    assert again.to_json() == text
    assert (str(again), repr(again)) == (str(release), repr(release))
    assert again.request.terms.keys() == release.request.terms.keys()
    assert all(type(part.threshold) is float and isinstance(part.alpha, Fraction) for part in again.values())


@pytest.mark.parametrize("name", KINDS)
def test_a_file_holds_the_arguments_and_the_draw_alone(name):
    """Neither guarantee nor privacy is stated but as one number each, which are computed again."""
    content = content_of(name)
    assert set(content) <= {"kind", "schema", "request", "thresholds", "epsilon", "versions", "n", "sha256"}
    fields = {"key", "threshold", "coverage", "mechanism", "candidates", "counted", "counts"}
    assert all(set(part) <= fields for part in content["thresholds"])
    assert "n" not in content or content["request"].get("neighbors") or content["request"]["mechanism"] == "none"


# --- damage


TEXTS = [
    "", " ", "{", "[]", "null", "5", '"text"', "{}", '{"kind": "confide/release"}',
    '{"kind": "other", "schema": 1}', '{"kind": ["confide/release"], "schema": 1}', "\x00", "\ufeff{}",
    "PAR1\x15\x04", "[" * 50_000, '{"a":' * 20_000 + "1" + "}" * 20_000, "9" * 90_000,
    '{"kind": "confide/release", "schema": ' + "9" * 5000 + "}", " " * 100_001, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_other_texts_raise(text):
    with pytest.raises(FormatError):
        Release.from_json(text)


@pytest.mark.parametrize("depth", [1, 10, 90, 300, 900, 980, 1000, 10_000])
def test_nested_to_any_depth(depth):
    """Also if a document is still parsed but its checksum cannot be computed."""
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * depth + "1" + closing * depth
        body = released("add_remove").to_json().rstrip()[1:-1]
        with pytest.raises(FormatError):
            Release.from_json('{"deep": ' + deep + "," + body + "}")


@pytest.mark.parametrize("text", [None, 5, b"{}", {}, ["{}"]])
def test_only_texts(text):
    with refused(confide.errors.InputTypeError, "text"):
        Release.from_json(text)


def test_a_file_has_a_checksum():
    content = content_of("add_remove")
    with refused(FormatError, "release"):
        Release.from_json(json.dumps({name: value for name, value in content.items() if name != "sha256"}))


@pytest.mark.parametrize("schema", [0, -1, 1.0, "1", None, True, [1], 2, 10**6])
def test_other_schemas(schema):
    with refused(FormatError, "release.schema"):
        Release.from_json(altered("add_remove", ("schema",), schema))


def test_repeated_keys():
    text = released("add_remove").to_json()
    for repeated in ('"alpha": "1/10",', '"schema": 1,', '"epsilon": 1.0,'):
        assert repeated in text
        with pytest.raises(FormatError):
            Release.from_json(text.replace(repeated, repeated + repeated, 1))


# --- altered values with a new checksum

NEAR = [lambda x: x * 2, lambda x: x / 2, lambda x: x + 1, lambda x: x - 1, lambda x: math.nextafter(x, math.inf)]
VALUES = [None, True, "", "1", "text", [], {}, [1], {"a": 1}, -1, 0, 1, 2, 0.5, -0.5, 1e308, 5e-324, 2**62, 10**4]
MARK = "withheld-7316"


def changes(content, rng):
    """A file with a few changes: values of any type, near numbers, texts, missing and added fields."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        *groups, key = rng.choice(list(places_in(content)))
        place = content
        for group in groups:
            place = place[group]
        old, kind = place[key], rng.randrange(6)
        if kind == 0 and isinstance(place, dict):
            del place[key]
        elif kind == 1 and isinstance(place, dict):
            place[rng.choice([MARK, "extra", "key"])] = copy.deepcopy(rng.choice([*VALUES, MARK]))
        elif kind == 2 and isinstance(old, int | float):
            place[key] = type(old)(rng.choice(NEAR)(old)) if abs(old) < 1e300 else old
        elif kind == 2 and isinstance(old, str):
            place[key] = rng.choice([f"{rng.randrange(1, 400)}/{rng.randrange(1, 400)}", MARK, old + "0"])
        elif kind == 3 and isinstance(place, list):
            place.append(copy.deepcopy(old))
        else:
            place[key] = copy.deepcopy(rng.choice([*VALUES, MARK]))
    return content


def read_or_refused(content) -> bool:
    """Whether an altered file is read: then what it makes is written as it is. No error quotes a value of it."""
    text, message = signed(content), ""
    try:
        release = Release.from_json(text)
    except FormatError as error:
        message = str(error)
    assert MARK not in message
    if message:
        return False
    assert checksum(json.loads(release.to_json())) == checksum(json.loads(text))
    return True


@pytest.mark.parametrize(
    ("name", "count"), [*((name, 40) for name in KINDS), *slow((name, 600) for name in [*OPTIONS, *KINDS])]
)
def test_altered_files_are_refused_or_equal(name, count):
    rng, content = random.Random(len(name) + count), content_of(name)
    assert sum(read_or_refused(changes(content, rng)) for _ in range(count)) < count / 2


@pytest.mark.parametrize("path", ["request.alpha", "thresholds.0.mechanism.rate", "thresholds.0.mechanism.offset"])
@pytest.mark.parametrize(
    "value",
    ["1e-99999999", "1/0", "0", "1", "-1/10", "nan", "1/3000001", "9" * 50 + "/1", "1" * 70, "0x1", "1_0/100", "١/١٠"],
)
def test_fractions_of_any_text(path, value):
    keys = [int(key) if key.isdecimal() else key for key in path.split(".")]
    with pytest.raises(FormatError):
        Release.from_json(altered("add_remove", keys, value))


CLAIMS = {
    "coverage": lambda v: [v + 0.01, v - 0.01, 1.0, 0.0],
    "epsilon": lambda v: [1.0] if isinstance(v, str) else [v / 2, 0.0],
    "rho": lambda v: [v / 2, 2 * v],
    "alpha": lambda v: ["1/1000", "1/20", "1/2"] if isinstance(v, str) else [],
    "records_per_person": lambda v: [v + 1],
    "delta": lambda v: [str(Fraction(v) / 2)],
    "key": lambda _: ["1/10", 0, ""],
    "candidates": lambda v: [1, 2, 2**20] if isinstance(v, int) else [],
    "counted": lambda v: [None],
    "name": lambda _: ["another"],
    "scale": lambda v: [v / 2, 4 * v, -1.0, 1e-300],
    "left": lambda v: [v + 1000],
    "right": lambda v: [v + 1000],
    "rate": lambda _: ["2/5"],
    "offset": lambda v: [str(Fraction(v) - less) for less in (2, 100)],
    "beyond": lambda v: [v + 1, -1],
    "level": lambda v: [str(Fraction(v) - Fraction(1, 100))],
    "rank": lambda v: [v - 1, v + 1, 0],
    "parameter": lambda v: [v / 2, 2 * v],
    "copies": lambda v: [v - 1],
}
"""Other values of what a file claims, by the name of the field, wherever it stands."""
ADDED = {
    ("request", "rho"): [0.01],
    ("request", "delta"): ["1/20"],
    ("request", "neighbors"): ["replace_one", "add_remove"],
    ("request", "records_per_person"): [2, 10],
    ("request", "population"): [{"bound": 3.0}],
    ("request", "mechanism"): ["slopes", "pps", "noisy-histogram", "none", "other"],
    ("n",): [1, 0],
    ("thresholds", 0, "mechanism", "weight"): [7],
    ("thresholds", 0, "mechanism", "extra"): [1],
}
UNTRIED = {
    "none": {"alpha", "neighbors", "records_per_person"},
    "opendp-quantile": {"alpha"},
    "pps, secret": {"offset"},
}
"""Without privacy, or without a guarantee, nothing follows from these; for the last see test_pps_removal.py."""


def at(content, path):
    """The value at this place; None if there is none."""
    for key in path:
        content = content[key] if isinstance(content, list) else (content or {}).get(key)
    return content


@pytest.mark.slow(unless=(*EVERYDAY, "counts", "pps", "noisy-histogram", "pps, secret", "pps-laplace", "none"))
@pytest.mark.parametrize("name", [*EVERYDAY, "people", "weights", "class weights", "n_min", *KINDS])
def test_claims_that_do_not_follow_raise(name):
    """A mechanism of another level, loss, population or target, and other numbers of records or of candidates."""
    content = content_of(name)
    tried = [
        (p, v)
        for p in places_in(content)
        if p[-1] in CLAIMS and "chosen" not in p
        for v in CLAIMS[p[-1]](at(content, p))
    ]
    tried += [(path, value) for path, values in ADDED.items() for value in values if at(content, path[:-1])]
    tried = [(p, v) for p, v in tried if at(content, p) != v and p[-1] not in UNTRIED.get(name, ())]
    for path, value in tried:
        refuse(name, path, value)
    assert len(tried) > 15


def refuse(name, path, value):
    with pytest.raises(FormatError):
        print(path, value, Release.from_json(altered(name, path, value)))


def test_a_noisy_number_that_does_not_fit_the_request_raises():
    refuse("add_remove", ("thresholds", 0, "counted"), 500)
    refuse("replace_one", ("thresholds", 0, "counted"), 1000)


@pytest.mark.parametrize(
    "threshold", [0.5, -1.0, 2.0, math.nextafter(90 / 99, 2), 0, "inf", "-inf", "nan", "", "0.5", None]
)
def test_thresholds_that_are_no_candidates(threshold):
    """Where no mechanism ran, no finite candidate is one either."""
    refuse("add_remove", ("thresholds", 0, "threshold"), threshold)
    refuse("too few records", ("thresholds", 0, "threshold"), confide.Candidates.unit(100).edges[5].item())


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"kind": "unit"},
        {"kind": "unit", "size": 100},
        {"kind": "unit", "size": 101, "spacing": "uniform"},
        {"kind": "unit", "size": "100", "spacing": "uniform"},
        {"kind": "unit", "size": 100, "spacing": "uniform", "extra": 1},
        {"kind": "unit", "size": 100, "spacing": ["uniform"]},
        {"kind": "unit", "self": 1, "cls": 2},
        {"kind": "other"},
        {"kind": ["unit"]},
        {"kind": "_build", "edges": [1], "recipe": {}},
        {"kind": "__init__"},
        {"kind": "spread", "of": "residual", "unit": "1"},
        {"kind": "spread", "of": "residual", "size": 2**21},
        {"kind": "of"},
        {"kind": "of", "size": 99},
        {"kind": "of", "size": True},
        {"kind": "of", "size": 2**40},
        {"kind": "of", "size": 100, "values": [0.1]},
        {"kind": "from_reference", "size": None},
    ],
    ids=str,
)
def test_recipes_that_do_not_make_the_candidates(recipe):
    refuse("add_remove", ("request", "candidates"), recipe)


@pytest.mark.parametrize("rise", [10**6, 10**9, 2**61])
@pytest.mark.parametrize("name", ["one candidate", "lac"])
def test_weights_that_rise_beyond_all_floats_are_read_or_raise_a_format_error(name, rise):
    """G underflows there, and claims that do not follow raise `FormatError`."""
    content = content_of(name)
    content["thresholds"][0]["mechanism"] |= {"rise": rise, "flat": "0"}
    with contextlib.suppress(FormatError):
        assert Release.from_json(signed(content)).coverage == 0.9


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_damaged_text_is_read_or_raises(data):
    text = released("add_remove").to_json()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    changed = text[:start] + data.draw(st.text(max_size=10)) + text[end:]
    try:
        assert Release.from_json(changed) == released("add_remove")
    except FormatError:
        assert changed != text
