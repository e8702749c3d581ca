"""Public metadata in a release: its classes and descriptions; and errors about other classes."""

import json
import pickle

import numpy as np
import pytest

import confide
from confide.releases import Metadata, Release, about_of, classes_of, load_release, names_for
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


def test_parts_are_for_the_same_classes():
    one, other = released(), confide.calibrate(confide.lac_score(P, Y), 0.1, 1.0, n_typical=1000)
    with refused(confide.InputError, "parts"):
        confide.GroupCalibration("group", "add_remove", {"a": one, "b": other})


@pytest.mark.parametrize("about", [{"model": ""}, {"model": " "}, {"Model": "a"}, {"date": "x" * 501}, "resnet"])
def test_metadata_are_validated_before_anything_is_released(about, tmp_path):
    ledger = confide.Ledger(tmp_path / "a.db")
    with pytest.raises((confide.InputError, confide.InputTypeError)) as caught:
        released(about=about, ledger=ledger, dataset="d")
    assert caught.value.argument.startswith("about")
    assert not ledger.accounts()


def test_metadata_are_not_part_of_the_request(tmp_path):
    """The same request with other metadata is the same request: one charge, and the metadata of the call."""
    ledger = confide.Ledger(tmp_path / "a.db")
    first = released(ledger=ledger, dataset="d", about={"model": "old"})
    with pytest.warns(confide.EarlierReleaseWarning, match="nothing was charged"):
        second = released(ledger=ledger, dataset="d", about={"model": "new"})
    assert first.threshold == second.threshold
    assert (dict(first.about), dict(second.about)) == ({"model": "old"}, {"model": "new"})
    assert ledger.account("d").entries[0].cost.epsilon == 1.0
    assert len(ledger.account("d").entries) == 1


# --- other classes


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        (["cat", "dog"], r"1 missing \(the first: 'Eule ☃'\)"),
        (["x", "y", "z"], r"3 missing \(the first: 'cat'\), 3 unknown \(the first: 'x'\)"),
        (["cat", "dog", "owl"], r"1 missing \(the first: 'Eule ☃'\), 1 unknown \(the first: 'owl'\)"),
    ],
)
def test_other_classes_raise(classes, says):
    p = np.full((4, len(classes)), 1 / len(classes))
    for act in (
        lambda: confide.predict_set(p, released(), classes=classes),
        lambda: confide.evaluate_sets(released(), p, [classes[0]] * 4, classes),
    ):
        with refused(confide.InputError, "classes"):
            act()


def test_another_number_of_columns_raises():
    counted = confide.calibrate(confide.lac_score(P, Y), 0.1, 1.0)
    for release in (released(), counted):
        with refused(confide.InputError, "probabilities"):
            confide.predict_set([[0.5, 0.5]], release)
    assert confide.predict_set(P[:5], counted, classes=["a", "b", "c"]).classes == ("a", "b", "c")


def test_another_order_is_matched_by_name():
    import pandas as pd

    release = released()
    frame = pd.DataFrame(P[:50], columns=NAMES)
    one, other = (confide.predict_set(part, release) for part in (frame, frame[[NAMES[2], NAMES[0], NAMES[1]]]))
    assert one.classes == other.classes == NAMES
    np.testing.assert_array_equal(one.mask, other.mask)
    bare = confide.predict_set(P[:50], release)
    assert bare.labels() == one.labels()
    turned = confide.predict_set(P[:50, ::-1], release, classes=NAMES[::-1])
    np.testing.assert_array_equal(turned.mask[:, ::-1], one.mask)
    y = np.array(NAMES)[Y[:50]]
    found = [confide.evaluate_sets(release, part, y) for part in (frame, frame[[NAMES[1], NAMES[2], NAMES[0]]])]
    assert found[0].coverage == found[1].coverage


@pytest.mark.filterwarnings("ignore::confide.CoverageWarning")
def test_names_or_columns_that_are_numbers():
    counted = Metadata(3).of(released())
    assert names_for(released(), (0, 1, 2), 3) == NAMES
    assert names_for(counted, ("a", "b", "c"), 3) == ("a", "b", "c")
    assert names_for(confide.calibrate([0.5] * 300, 0.1, 1.0, score="lac"), None, 2) is None


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
