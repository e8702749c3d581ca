"""Calibrations as JSON are read back exactly; damaged, foreign, newer and inconsistent files raise errors.

Some changes cannot be detected, because the checksum is not a signature. Anyone who computes it again can replace the
threshold by another candidate, rename the score, or forge a whole consistent release. They can also raise `n_min`,
`delta`, the prior bonus of +inf, the target rank if one guarantee holds for many, or alpha for a public n (as a shift
would have done): such files claim no more than their mechanism guarantees.
"""

import contextlib
import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import confide
from confide import Calibration, FormatError
from confide.mechanisms import privacy_statement
from confide.selection import zcdp_of_range
from tests.builders import slow
from tests.calibrations import OPTIONS, WITHOUT_MECHANISM, released
from tests.files import signed
from tests.refused import refused

pytestmark = pytest.mark.xdist_group("released")


EVERYDAY = ("add_remove", "replace_one", "delta", "rho")


def tampered(name: str, path: str, value: object) -> str:
    """The calibration with this name with one field changed or added, and a new checksum."""
    content = json.loads(released(name).to_json())
    *groups, key = path.split(".")
    place = content
    for group in groups:
        place = place[group]
    assert place.get(key, "absent") != value or type(place[key]) is not type(value), "nothing was changed"
    place[key] = value
    return signed(content)


def without(name: str, path: str) -> str:
    content = json.loads(released(name).to_json())
    *groups, key = path.split(".")
    place = content
    for group in groups:
        place = place[group]
    del place[key]
    return signed(content)


def fields(name: str) -> list[str]:
    """Every path in a calibration's JSON."""

    def walk(content, prefix):
        for key, value in content.items():
            yield prefix + key
            if isinstance(value, dict):
                yield from walk(value, f"{prefix}{key}.")

    return [path for path in walk(json.loads(released(name).to_json()), "") if path != "sha256"]


# --- round trips


@pytest.mark.parametrize("name", [*EVERYDAY, *slow(name for name in OPTIONS if name not in EVERYDAY)])
def test_read_back_exactly(name):
    calibration = released(name)
    text = calibration.to_json()
    again = Calibration.from_json(text)
    assert again == calibration
    assert hash(again) == hash(calibration)
    assert again.to_json() == text
    assert str(again) == str(calibration)
    assert repr(again) == repr(calibration)
    assert type(again.threshold) is float
    assert isinstance(again.alpha, Fraction)


@pytest.mark.parametrize("name", slow(OPTIONS, everyday=EVERYDAY))
def test_signing_again_changes_nothing(name):
    """The helper of these tests writes valid files, so that the errors below have the intended reasons."""
    assert Calibration.from_json(signed(json.loads(released(name).to_json()))) == released(name)


# --- damage


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[]",
        "null",
        "5",
        '"text"',
        "{}",
        '{"kind": "confide/calibration"}',
        '{"kind": "other", "schema": 1}',
        '{"kind": ["confide/calibration"], "schema": 1}',
        "\x00",
        "\ufeff{}",
        "PAR1\x15\x04",
        "[" * 50_000,
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        "9" * 90_000,
        '{"kind": "confide/calibration", "schema": ' + "9" * 5000 + "}",
        " " * 100_001,
        "\ud800",
    ],
    ids=range(20),
)
def test_other_texts_raise(text):
    with pytest.raises(FormatError):
        Calibration.from_json(text)


@pytest.mark.parametrize("depth", [1, 10, 90, 300, 600, 900, 950, 980, 990, 1000, 2000, 10_000])
def test_nested_to_any_depth(depth):
    """Also if a document is still parsed but its checksum cannot be computed."""
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * depth + "1" + closing * depth
        body = released("add_remove").to_json().rstrip()[1:-1]
        with pytest.raises(FormatError):
            Calibration.from_json('{"deep": ' + deep + "," + body + "}")


@pytest.mark.parametrize("text", [None, 5, b"{}", {}, ["{}"]])
def test_only_texts(text):
    with refused(confide.InputTypeError, "text"):
        Calibration.from_json(text)


def test_any_byte_matters():
    text = released("add_remove").to_json()
    start = text.index('"threshold": ') + len('"threshold": ')
    for changed in (text.replace("0.9", "0.8", 1), text[: start + 2] + "1" + text[start + 3 :], text[:-50], text[1:]):
        assert changed != text
        with pytest.raises(FormatError):
            Calibration.from_json(changed)
    with refused(FormatError, "calibration"):
        Calibration.from_json(text.replace('"score": null', '"score": "lac"'))
    with refused(FormatError, "calibration"):
        Calibration.from_json(json.dumps({k: v for k, v in json.loads(text).items() if k != "sha256"}))


@pytest.mark.parametrize("schema", [0, -1, 1.0, "1", None, True, [1], 2, 10**6])
def test_other_schemas(schema):
    content = {**json.loads(released("add_remove").to_json()), "schema": schema}
    with refused(FormatError, "calibration.schema"):
        Calibration.from_json(signed(content))


@pytest.mark.parametrize("name", ["add_remove", "replace_one", "too few records"])
def test_unknown_fields(name):
    groups = ["", "guarantee.", "privacy.", "candidates."]
    for group in [*groups, "mechanism."] if released(name).mechanism else groups:
        with refused(FormatError, f"calibration.{group}".removesuffix(".")):
            Calibration.from_json(tampered(name, f"{group}extra", 1))


@pytest.mark.parametrize("name", ["add_remove", "replace_one", "rho", "delta", "too few records"])
def test_missing_fields(name):
    for path in fields(name):
        if path in ("kind", "schema") or path.startswith("versions."):
            continue
        with pytest.raises(FormatError):
            Calibration.from_json(without(name, path))
    with refused(FormatError, "calibration.guarantee.coverage"):
        Calibration.from_json(without(name, "guarantee.coverage"))


LIBRARIES = ("confide", "numpy", "opendp", "scipy")
NUMBERS = [-1, 0, 1.5, -0.5, 1e308, 5e-324, 2**62, 10**4]
WRONG = [None, True, False, "text", "", "1", [], [1], {}, {"a": 1}, *NUMBERS]


FREE = {
    *(("score", repr(text)) for text in ("text", "1")),
    *((f"versions.{library}", repr(text)) for library in LIBRARIES for text in ("text", "1")),
    ("versions", "{}"),
}
"""Fields that cannot be verified: a score's name, and versions."""
LATER = {("guarantee.n_min", "10000"), ("mechanism.rise", "10000")}
"""A larger n_min, and a longer rise: other mechanisms of the same privacy loss that also keep the guarantee."""
LONGER = LATER | {("mechanism.head_start", "10000"), ("mechanism.fade", "0")}
"""Also a longer prior bonus of +inf, and one that does not decrease."""
BELIEVED = {
    "add_remove": LONGER,
    "replace_one": {("mechanism.rise", "10000")},
    "rho": LONGER,
    "delta": {("guarantee.n_min", "10000"), ("mechanism.flat", "'1'")},
    "geometric": LONGER | {("threshold", "0")},
    "own candidates": LONGER | {("mechanism.offset", "'1'")} | {("threshold", repr(value)) for value in NUMBERS},
}
"""Further accepted values: a higher target, and other candidates that no file contains."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add_remove", *(name for name in BELIEVED if name != "add_remove")])
def test_wrong_types_and_values(name):
    """Each field gets each wrong value: an error, unless the value is one of the few valid ones."""
    accepted = set()
    for path in fields(name):
        for value in WRONG:
            try:
                text = tampered(name, path, value)
            except AssertionError:
                continue
            try:
                Calibration.from_json(text)
            except FormatError:
                continue
            accepted.add((path, repr(value)))
    assert accepted == FREE | BELIEVED[name]


def test_duplicate_keys():
    text = released("add_remove").to_json()
    for repeated in ('"alpha": "1/10",', '"schema": 1,', '"score": null,'):
        assert repeated in text
        with pytest.raises(FormatError):
            Calibration.from_json(text.replace(repeated, repeated + repeated, 1))
    inner = '"epsilon": 1.0,'
    with pytest.raises(FormatError):
        Calibration.from_json(text.replace(inner, inner + inner, 1))


@pytest.mark.parametrize("path", ["alpha", "mechanism.rate", "mechanism.offset"])
@pytest.mark.parametrize(
    "value",
    ["1e-99999999", "1/0", "0", "1", "-1/10", "nan", "1/3000001", "9" * 50 + "/1", "1" * 70, "0x1", "1_0/100", "١/١٠"],
)
def test_fractions_of_any_text(path, value):
    with pytest.raises(FormatError):
        Calibration.from_json(tampered("add_remove", path, value))


# --- changed fields with a new checksum


@pytest.mark.parametrize(
    "name", [*EVERYDAY, *slow(name for name in OPTIONS if name not in (*EVERYDAY, *WITHOUT_MECHANISM))]
)
def test_claims_that_do_not_follow_raise(name):
    content = json.loads(released(name).to_json())
    guarantee, privacy, mechanism = content["guarantee"], content["privacy"], content["mechanism"]
    public = guarantee["n"] is not None
    offset = Fraction(mechanism["offset"])
    exact = public and guarantee["delta"] is None
    said = exact and "certificate" not in guarantee  # otherwise a higher target keeps the guarantee, too
    other_offsets = [str(offset - 1), *([str(offset + 1)] if said else [])]
    changes = {
        "guarantee.coverage": [min(1.0, guarantee["coverage"] + 0.01), 1.0, guarantee["coverage"] - 0.01, 0.0],
        "guarantee.kind": ["marginal", "training_conditional"],
        "privacy.epsilon": [privacy["epsilon"] / 2, privacy["epsilon"] * 2, 0.0, math.nextafter(privacy["epsilon"], 0)],
        "privacy.replace_one": [privacy["replace_one"] / 2, 0.0],
        "privacy.add_remove": [0.5 if public else None, 0.0],
        "privacy.rho": [0.1, 0.0] if privacy["rho"] is None else [None, 0.0, privacy["rho"] / 2],
        "privacy.records_per_person": [1, 2, 10, 10**6],
        "privacy.neighbors": ["add_remove", "replace_one"],
        "mechanism.left": [mechanism["left"] + 1, max(1, mechanism["left"] - 1), 1000],
        "mechanism.right": [mechanism["right"] + 1, max(1, mechanism["right"] - 1), 1000],
        "mechanism.scale": [
            mechanism["scale"] / 2,
            mechanism["scale"] * 2,
            math.nextafter(mechanism["scale"], 0),
            1e-300,
        ],
        "mechanism.rate": ["0", "1/2", "999/1000"],
        "mechanism.offset": [*(["1/16"] if offset > Fraction(1, 16) or public else []), *other_offsets],
        "mechanism.name": ["other"],
        "candidates.size": [content["candidates"]["size"] + 1, 1, 2, 2**20],
        "alpha": ["1/1000"] if exact else ["1/1000", "1/2", "9/10", "99/1000"],
    }
    if public:
        changes["guarantee.n"] = [guarantee["n"] + 100, guarantee["n"] - 100, 1, 10**6, None]
        changes["guarantee.n_min"] = [1]
        changes["mechanism.head_start"] = [1, 1000]
    else:
        changes["guarantee.n"] = [1000]
        changes["guarantee.n_min"] = [None]
    if guarantee["delta"] is not None:
        changes["guarantee.delta"] = [guarantee["delta"] / 2, None, 1e-6]
        changes["mechanism.head_start"] = [1, 1000]
    else:
        changes["guarantee.delta"] = [0.05]
        if mechanism["head_start"] and name != "large epsilon":  # there +inf needs none
            changes["mechanism.head_start"] = [0]
    if guarantee["n_min"] not in (None, 1) and mechanism["head_start"]:
        changes["guarantee.n_min"].append(1)
    tried = []
    for path, values in changes.items():
        for value in values:
            try:
                text = tampered(name, path, value)
            except AssertionError:
                continue  # the value is the true one
            with pytest.raises(FormatError):
                print(path, value, Calibration.from_json(text))
            tried.append(path)
    assert len(tried) > 10


def test_several_fields_changed_together():
    """A change of the whole statement to another adjacency, level or privacy loss raises if one field is wrong."""
    content = json.loads(released("replace_one").to_json())
    loss = content["privacy"]["replace_one"]
    switched = {
        **content,
        "guarantee": {**content["guarantee"], "n": None, "n_min": 1},
        "privacy": {**content["privacy"], "neighbors": "add_remove", "add_remove": loss},
    }
    half = {
        **content,
        "privacy": {**content["privacy"], "epsilon": loss / 2, "replace_one": loss / 2},
        "mechanism": {**content["mechanism"], "scale": content["mechanism"]["scale"] * 2},
    }
    stricter = {**content, "alpha": "1/20", "guarantee": {**content["guarantee"], "coverage": 0.95}}
    fewer = {**content, "guarantee": {**content["guarantee"], "n": 900}}
    beyond = {
        **content,
        "mechanism": {**content["mechanism"], "offset": "1500"},
        "guarantee": {**content["guarantee"], "coverage": 1.0},
    }
    nothing = privacy_statement(None, "replace_one", 1)
    unspent = {
        **content,
        "mechanism": None,
        "privacy": {**content["privacy"], "epsilon": nothing.epsilon, "replace_one": 0.0},
    }
    for forged in (switched, half, stricter, fewer, beyond, unspent):
        with pytest.raises(FormatError):
            Calibration.from_json(signed(forged))


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
        {"kind": None},
        {"kind": "_build", "edges": [1], "recipe": {}},
        {"kind": "__init__"},
        {"kind": "spread", "of": "residual", "size": 100, "unit": "1"},
        {"kind": "of"},
        {"kind": "of", "size": 99},
        {"kind": "of", "size": True},
        {"kind": "of", "size": 100, "values": [0.1]},
        {"kind": "from_reference", "size": 99},
        {"kind": "from_reference", "size": None},
        {"kind": "from_reference", "size": 100, "scores": [0.1]},
    ],
    ids=str,
)
@pytest.mark.parametrize("threshold", ["released", "+inf"])
def test_recipes_that_do_not_make_the_candidates(recipe, threshold):
    content = json.loads(released("add_remove").to_json())
    content["candidates"]["recipe"] = recipe
    content["threshold"] = content["threshold"] if threshold == "released" else threshold
    with pytest.raises(FormatError):
        Calibration.from_json(signed(content))


@pytest.mark.parametrize(
    "threshold", [0.5, -1.0, 2.0, math.nextafter(90 / 99, 2), 0, "inf", "-inf", "nan", "", "0.5", None]
)
def test_thresholds_that_are_no_candidates(threshold):
    with pytest.raises(FormatError):
        Calibration.from_json(tampered("add_remove", "threshold", threshold))


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_a_certificate_is_stated_and_accepted_only_if_it_holds(neighbors):
    """A guarantee from the two-sided certificate states it; without the word, or with a lower target, it is invalid."""
    release = confide.calibrate(np.arange(1000) / 1000, 0.1, 1.0, neighbors=neighbors, score="lac")
    text = release.to_json()
    assert (release.guarantee.certificate, release.coverage) == ("two-sided", 0.9)
    assert Calibration.from_json(text) == release
    for change in ("without", "other", "less"):
        content = json.loads(text)
        if change == "without":
            del content["guarantee"]["certificate"]
        elif change == "other":
            content["guarantee"]["certificate"] = "sharp"
        else:
            content["mechanism"]["offset"] = str(Fraction(content["mechanism"]["offset"]) - Fraction(1, 2))
        with pytest.raises(FormatError):
            Calibration.from_json(signed(content))


def test_consistent_changes_are_not_detected():
    """See the head of this module: consistent changes are accepted."""
    other = confide.Candidates.unit(100).edges[3]
    assert Calibration.from_json(tampered("add_remove", "threshold", float(other))).threshold == other
    assert Calibration.from_json(tampered("add_remove", "threshold", "+inf")).threshold == math.inf
    assert Calibration.from_json(tampered("own candidates", "threshold", 0.123)).threshold == 0.123  # not in the file
    assert Calibration.from_json(tampered("add_remove", "score", "lac")).score == "lac"
    assert Calibration.from_json(tampered("add_remove", "guarantee.n_min", 500)).guarantee.n_min == 500
    assert Calibration.from_json(tampered("delta", "guarantee.delta", 0.1)).guarantee.delta == 0.1
    content = json.loads(released("add_remove").to_json())
    content["mechanism"]["offset"] = str(Fraction(content["mechanism"]["offset"]) + 1000)
    del content["guarantee"]["certificate"]  # so high a target needs only the sharp one
    assert Calibration.from_json(signed(content)).coverage == 0.9
    more = released("add_remove").mechanism.head_start + 1000
    assert Calibration.from_json(tampered("add_remove", "mechanism.head_start", more)).coverage == 0.9


def test_a_finite_threshold_needs_a_mechanism():
    with pytest.raises(FormatError):
        Calibration.from_json(tampered("too few records", "threshold", confide.Candidates.unit(100).edges[5].item()))


# --- random values


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_field_with_any_value_is_read_or_raises(data):
    name = data.draw(st.sampled_from(["add_remove", "replace_one", "rho", "delta", "delta, replace_one", "geometric"]))
    content = json.loads(released(name).to_json())
    for path in data.draw(st.lists(st.sampled_from(fields(name)), min_size=1, max_size=3, unique=True)):
        place = content
        *groups, key = path.split(".")
        for group in groups:
            place = place[group] if isinstance(place.get(group), dict) else place.setdefault(f"{group} of nothing", {})
        old = place.get(key)
        near = st.just(old)
        if isinstance(old, int | float) and not isinstance(old, bool):
            near = st.floats(-2, 2).map(lambda k, old=old: old * k) | st.integers(-3, 3).map(lambda k, old=old: old + k)
        elif isinstance(old, str):
            near = st.fractions(0, 2000, max_denominator=10**6).map(str) | st.text(max_size=5).map(
                lambda k, old=old: old + k
            )
        place[key] = data.draw(near | JSON_VALUES)
    with contextlib.suppress(FormatError):
        Calibration.from_json(signed(content))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_damaged_text_is_read_or_raises(data):
    text = released("add_remove").to_json()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    changed = text[:start] + data.draw(st.text(max_size=10)) + text[end:]
    with contextlib.suppress(FormatError):
        assert Calibration.from_json(changed) == released("add_remove")


@pytest.mark.parametrize("name", ["replace_one", "rho", "rho, replace_one"])
def test_the_exact_privacy_loss_is_stated(name):
    found = released(name)
    content = json.loads(found.to_json())
    assert content["privacy"]["rho"] == found.privacy.rho == zcdp_of_range(found.epsilon)
    larger = dataclasses.replace(found, privacy=dataclasses.replace(found.privacy, rho=found.epsilon**2 / 8))
    with pytest.raises(FormatError):
        Calibration.from_json(larger.to_json())


STEEPEST = [10**6, 10**9, 2**61]


@pytest.mark.parametrize("rise", STEEPEST)
@pytest.mark.parametrize("name", ["one candidate", "lac"])
def test_weights_that_rise_beyond_all_floats_raise_a_format_error(name, rise):
    """G underflows there: it is bounded by 1e-100, and claims that do not follow raise `FormatError`."""
    content = json.loads(released(name).to_json())
    content["mechanism"] |= {"rise": rise, "flat": "0"}
    with pytest.raises(FormatError):
        Calibration.from_json(signed(content))
