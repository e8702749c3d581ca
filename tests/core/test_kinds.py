"""One reader for every kind of release, and invalid claims of several thresholds."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.core import Release, load_release, parts_of
from confide.federated import FederatedCalibration
from tests.files import signed
from tests.kept import names, path_of, text_of
from tests.refused import refused

CLASSES = {
    "confide/calibration": confide.Calibration,
    "confide/levels": confide.LevelCalibration,
    "confide/groups": confide.GroupCalibration,
    "confide/sides": confide.SidesCalibration,
    "confide/risk": confide.RiskCalibration,
}


KEPT = names(*CLASSES)


@pytest.mark.parametrize("name", KEPT)
def test_files_are_read_by_the_class_of_their_kind(name):
    path = path_of(name)
    release = load_release(path)
    made = CLASSES[json.loads(path.read_text(encoding="utf-8"))["kind"]]
    assert type(release) is made
    assert made.load(path) == release == made.from_json(release.to_json())
    assert release.checksum == hashlib.sha256(path.read_bytes()).hexdigest()
    assert all(isinstance(part, confide.Calibration) for part in parts_of(release).values())
    assert release.privacy.epsilon >= 0


def test_the_bound_of_a_share_is_at_least_one():
    """Otherwise any risk could be claimed: it is the bound times a verified number."""
    content = json.loads(text_of("risk"))
    with pytest.raises(confide.FormatError):
        Release.from_json(signed(content | {"bound": 0.1}))
    loss = "missed_area(background=0)"
    critical = replace(Release.from_json(text_of("risk")).calibration, score=f"critical threshold of {loss}")
    assert confide.RiskCalibration(loss, 1.0, critical).risk > 0.09
    with refused(confide.InputError, "bound"):
        confide.RiskCalibration(loss, 0.1, critical)


def test_groups_have_the_same_guarantee():
    """The guarantee of the first is stated for each; another part might hold only from more records on."""
    content, weaker = (
        json.loads(
            confide.calibrate_groups([0.5] * 2000, ["a", "b"] * 1000, ["a", "b"], 0.1, 2.0, n_min=least).to_json()
        )
        for least in (1, 500)
    )
    content["parts"][-1] = weaker["parts"][-1]
    with pytest.raises(confide.FormatError):
        Release.from_json(signed(content))


def test_a_federated_calibration_is_a_calibration():
    release = confide.Calibration.from_json(text_of("federated"))
    assert isinstance(release, FederatedCalibration)
    for other in ("levels", "risk"):
        with pytest.raises(confide.FormatError):
            confide.Calibration.from_json(text_of(other))
    with pytest.raises(confide.FormatError):
        confide.LevelCalibration.from_json(text_of("calibration"))


@pytest.mark.parametrize("kind", [None, 1, ["confide/calibration"], "", "confide.other", "confide.Calibration"])
def test_other_kinds(kind):
    for content in ({**json.loads(text_of("levels")), "kind": kind}, {"kind": kind}):
        with pytest.raises(confide.FormatError):
            Release.from_json(signed(content))


@pytest.mark.parametrize("name", ["levels", "groups", "sides", "risk"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": 2}, "has schema 2; this version reads up to 1; upgrade confide"),
        ({"schema": True}, "has no valid schema number"),
        ({"surplus": 1}, "has 1 unknown field"),
        ({"privacy": {"epsilon": 0.01}}, "claims another privacy loss than its parts have"),
        ({"privacy": {"epsilon": "1.0"}}, "'epsilon' of its privacy must be a number of at least 0"),
        ({"privacy": {}}, "lacks the field 'epsilon' of its privacy"),
        ({"parts": {}}, "'parts' must be a list"),
        ({"parts": []}, "parts"),
        ({"parts": [None]}, "each entry of the release's field 'parts' must be a part; found NoneType"),
        (
            {"parts": [{"name": True, "calibration": {}}]},
            "'name' of its parts must be a text or an integer; found bool",
        ),
        ({"parts": [{"name": "low", "calibration": {}}]}, "'kind' names none"),
    ],
)
def test_several_thresholds_with_other_claims(name, change, says):
    content = json.loads(text_of(name))
    with pytest.raises(confide.FormatError):
        Release.from_json(signed({**content, **change}))
    if "schema" not in change:
        with pytest.raises(confide.FormatError):
            Release.from_json(json.dumps({**content, **change}))


@pytest.mark.parametrize(("name", "says"), [("sides", "the parts low and high"), ("risk", "the parts critical")])
def test_parts_have_their_names(name, says):
    content = json.loads(text_of(name))
    content["parts"][0]["name"] = "other"
    with pytest.raises(confide.FormatError):
        Release.from_json(signed(content))


@pytest.mark.parametrize("name", ["levels", "groups"])
def test_names_of_parts_are_unique(name):
    content = json.loads(text_of(name))
    content["parts"].append(content["parts"][0])
    with pytest.raises(confide.FormatError):
        Release.from_json(signed(content))


@pytest.mark.parametrize("depth", [10, 300, 900, 980, 1000, 10_000])
def test_nested_to_any_depth(depth):
    body = text_of("levels").rstrip()[1:-1]
    with pytest.raises(confide.FormatError):
        Release.from_json('{"deep": ' + "[" * depth + "1" + "]" * depth + "," + body + "}")


def test_several_thresholds_without_privacy():
    release = confide.calibrate_levels(np.arange(100) / 100, [0.2, 0.1], mechanism="none")
    assert json.loads(release.to_json())["privacy"] == {"epsilon": "+inf"}
    assert confide.LevelCalibration.from_json(release.to_json()) == release
