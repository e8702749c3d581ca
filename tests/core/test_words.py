"""Public metadata in a release: its classes and descriptions; and errors about other classes."""

import json
import pickle

import numpy as np
import pytest

import confide
from confide.core import Release, about_of, classes_of, load_release
from tests.files import signed
from tests.refused import refused

NAMES = ("cat", "dog", "Eule ☃")
ABOUT = {
    "model": "resnet", "version": "2.1", "data": "clinic 2025", "purpose": "triage", "responsible": "Data office",
    "date": "2026-11-21",
}  # fmt: skip
P = np.random.default_rng(0).dirichlet(np.ones(3), 3000)
Y = (P.cumsum(axis=1) > np.random.default_rng(1).random((3000, 1))).argmax(axis=1)
SCORES = confide.lac_score(P, np.array(NAMES)[Y], classes=NAMES)


def released(**more):
    return confide.calibrate(SCORES, 0.1, 1.0, n_typical=1000, **more)


# --- files


def test_metadata_are_stored_in_files(tmp_path):
    release = released(about=ABOUT)
    content = json.loads(release.to_json())
    assert (content["classes"], content["about"]) == (list(NAMES), ABOUT)
    assert release == confide.Calibration.from_json(release.to_json())
    assert release == pickle.loads(pickle.dumps(release))  # noqa: S301
    release.save(tmp_path / "a.json")
    assert load_release(tmp_path / "a.json").to_json() == release.to_json()
    assert (release.classes, dict(release.about)) == (NAMES, ABOUT)
    assert release.checksum != released().checksum


def test_a_file_without_metadata_has_none_of_the_fields():
    release = confide.calibrate(np.asarray(SCORES), 0.1, 1.0, score="lac")
    content = json.loads(release.to_json())
    assert {"classes", "about"}.isdisjoint(content)
    assert (release.classes, dict(release.about)) == (None, {})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["groups", "levels", "sides", "risk"])
def test_every_kind_of_release_carries_them(kind):
    ward = np.where(P[:, 0] > 0.3, "n", "s")
    release = {
        "groups": lambda: confide.calibrate_groups(SCORES, ward, ["n", "s"], 0.1, 1.0, about=ABOUT),
        "levels": lambda: confide.calibrate_levels(SCORES, [0.2, 0.1], 1.0, about=ABOUT),
        "sides": lambda: confide.calibrate_sides(P[:, :2], P[:, 2], 0.1, 1.0, about=ABOUT),
        "risk": lambda: confide.calibrate_false_negatives(
            P, P > 0.5, 0.1, 1.0, u=np.full(3000, 0.5), classes=NAMES, about=ABOUT
        ),
    }[kind]()
    again = Release.from_json(release.to_json())
    assert again == release
    assert again.to_json() == release.to_json()
    assert classes_of(again) == (None if kind == "sides" else NAMES)
    assert about_of(again) == ABOUT


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"classes": []}, "must be one or more str or int"),
        ({"classes": ["a", "a", "b"]}, "found 1 repeated"),
        ({"classes": ["0", "1", "2"]}, "names of classes as a release contains them, or their number"),
        ({"classes": [True, 5]}, "names of classes as a release contains them, or their number"),
        ({"classes": 0}, "must be a positive integer"),
        ({"classes": "cat"}, "or their number; found str"),
        ({"classes": [["a"]]}, "names of classes as a release contains them, or their number"),
        ({"about": {}}, "must be public metadata, or be left out"),
        ({"about": {"colour": "red"}}, "must have the keys model, version"),
        ({"about": {"model": "a\nb"}}, "must be 1 to 500 printable characters"),
        ({"about": {"model": "x" * 501}}, "must be 1 to 500 printable characters; found 501"),
        ({"about": {"model": 7}}, "must be a str; found int"),
    ],
)
def test_invalid_metadata_raise(change, says):
    with pytest.raises(confide.FormatError):
        Release.from_json(signed({**json.loads(released(about=ABOUT).to_json()), **change}))


@pytest.mark.parametrize("about", [{"model": ""}, {"model": " "}, {"Model": "a"}, {"date": "x" * 501}, "resnet"])
def test_metadata_are_validated_before_anything_is_released(about, tmp_path):
    ledger = confide.Ledger(tmp_path / "a.db")
    with pytest.raises((confide.InputError, confide.InputTypeError)) as caught:
        released(about=about, ledger=ledger, dataset="d")
    assert caught.value.argument.startswith("about")
    assert not ledger.accounts()


# --- other classes


# --- no name


def test_a_release_without_a_score_name_makes_no_sets():
    """Unnamed margin scores were once read as LAC: coverage 0.42 with a guarantee of 0.9."""
    bare = confide.calibrate(np.asarray(confide.margin_score(P, Y)), 0.1, 1.0)
    for act in (
        lambda: confide.predict_set(P, bare),
        lambda: confide.predict_interval(P[:, 0], bare),
        lambda: confide.evaluate_sets(bare, P, Y),
        lambda: confide.evaluate_intervals(bare, P[:, 0], P[:, 1]),
    ):
        with refused(confide.InputError, "calibration"):
            act()
    assert confide.predict_set(P, bare, score="margin").contains(Y).mean() > 0.87
    assert confide.evaluate_scores(bare, confide.margin_score(P, Y)).coverage.value > 0.87
    with refused(confide.InputError, "score"):
        confide.predict_set(P, released(), score="margin")
