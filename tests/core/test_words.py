"""Public metadata in a release: its classes and descriptions."""

import json
import pickle

import numpy as np
import pytest

import confide
from confide.core import Release, load_release
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
    return confide.calibrate(SCORES, 0.1, 1.0, **more)


# --- files


def test_metadata_are_stored_in_files(tmp_path):
    release = released(about=ABOUT)
    content = json.loads(release.to_json())["request"]
    assert (content["classes"], content["about"]) == (list(NAMES), ABOUT)
    assert release == confide.Release.from_json(release.to_json())
    assert release == pickle.loads(pickle.dumps(release))  # noqa: S301
    release.save(tmp_path / "a.json")
    assert load_release(tmp_path / "a.json").to_json() == release.to_json()
    assert (release.classes, dict(release.about)) == (NAMES, ABOUT)
    assert release.checksum != released().checksum


def test_a_file_without_metadata_has_none_of_the_fields():
    release = confide.calibrate(np.asarray(SCORES), 0.1, 1.0, score="lac")
    assert {"classes", "about"}.isdisjoint(json.loads(release.to_json())["request"])
    assert (release.classes, dict(release.about)) == (None, {})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["groups", "levels", "sides", "risk"])
def test_every_kind_of_release_carries_them(kind):
    ward = np.where(P[:, 0] > 0.3, "n", "s")
    release = {
        "groups": lambda: confide.calibrate(SCORES, 0.1, 1.0, groups=ward, names=["n", "s"], about=ABOUT),
        "levels": lambda: confide.calibrate(SCORES, [0.2, 0.1], 1.0, about=ABOUT),
        "sides": lambda: confide.calibrate_sides(P[:, :2], P[:, 2], 0.1, 1.0, about=ABOUT),
        "risk": lambda: confide.calibrate_false_negatives(
            P, P > 0.5, 0.1, 1.0, u=np.full(3000, 0.5), classes=NAMES, about=ABOUT
        ),
    }[kind]()
    again = Release.from_json(release.to_json())
    assert again == release
    assert again.to_json() == release.to_json()
    assert again.classes == (None if kind == "sides" else NAMES)
    assert again.about == ABOUT


@pytest.mark.parametrize(
    "about", [{"model": " "}, {"model": "a\nb"}, {"model": 7}, {"Model": "a"}, {"date": "x" * 501}, "resnet"]
)
def test_metadata_are_validated_before_anything_is_released(about, tmp_path):
    ledger = confide.Ledger(tmp_path / "a.db")
    with pytest.raises((confide.InputError, confide.InputTypeError)) as caught:
        released(about=about, ledger=ledger, dataset="d")
    assert caught.value.argument.startswith("about")
    assert not ledger.accounts()


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
