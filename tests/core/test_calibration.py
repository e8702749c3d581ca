"""A release: frozen, compared by value, stored without loss; one threshold by key, or several."""

import dataclasses
import json
import math
import pickle
from importlib.metadata import version

import numpy as np
import pytest

import confide
from confide import Release
from confide.core import Request, Threshold, level_reached, load_release
from confide.errors import FormatError, InputError, InputTypeError
from confide.evaluation import Evaluation
from confide.watching import Watch
from tests.builders import slow
from tests.calibrations import KINDS, OPTIONS, of_kind, released
from tests.files import signed
from tests.refused import refused

pytestmark = pytest.mark.xdist_group("released")


@pytest.mark.parametrize("kind", [Release, Threshold])
def test_frozen(kind):
    value = released("add_remove") if kind is Release else released("add_remove").only
    for field in ["scores", *(field.name for field in dataclasses.fields(kind))]:
        with pytest.raises(AttributeError):
            setattr(value, field, None)
        with pytest.raises(AttributeError):
            delattr(value, field)


def test_a_forged_pickle_raises():
    """Pickles contain the JSON, so they are verified like files."""
    stored = pickle.dumps(released("add_remove"), 0)
    forged = stored.replace(b"0.9", b"0.8")
    assert forged != stored
    with pytest.raises(confide.errors.FormatError):
        pickle.loads(forged)  # noqa: S301


# --- texts


@pytest.mark.parametrize("name", slow(OPTIONS, everyday=["add_remove", "large epsilon"]))
def test_stated_privacy_losses(name):
    privacy = released(name).privacy
    assert released(name).epsilon == privacy.epsilon == privacy.loss(records=privacy.records_per_person)
    assert privacy.loss("replace_one", 5) == 5 * privacy.replace_one
    if privacy.neighbors == "replace_one":
        assert privacy.add_remove is None
        assert privacy.loss("add_remove") == math.inf
    else:
        assert privacy.add_remove / 2 < privacy.replace_one <= 2 * privacy.add_remove
        assert privacy.loss("add_remove", 2) == 2 * privacy.add_remove


@pytest.mark.slow(unless=("delta, replace_one", "replace_one"))
@pytest.mark.parametrize("name", ["replace_one", "delta, replace_one", "rho, replace_one", "people, replace_one"])
def test_conditional_coverage_for_a_public_n(name):
    calibration = released(name)
    deltas = [0.5, 0.1, 0.05, 0.01, 1e-6]
    promised = [calibration.conditional_coverage(delta) for delta in deltas]
    assert promised == sorted(promised, reverse=True)
    assert 0.5 < promised[-1] < promised[0] < 1
    assert calibration.conditional_coverage(0.05, n=1000) == promised[2]
    with refused(confide.errors.InputError, "n"):
        calibration.conditional_coverage(0.05, n=999)
    with refused(confide.errors.InputError, "n"):
        calibration.coverage_at_most(999)
    for delta in (0, 1, -1, 2, math.nan, "x"):
        with refused(confide.errors.InputError, "delta"):
            calibration.conditional_coverage(delta)
    assert "delta" not in name or promised[2] >= 0.9 - 1e-9


@pytest.mark.parametrize("exact", [0.0, 1e-9, 0.3, 0.9123456785])
def test_the_level_reached_is_never_above_the_exact_one(exact):
    assert 0 <= exact - level_reached(lambda level: 0.05 if level <= exact else 0.06, 0.05) < 1e-9


def test_conditional_coverage_for_a_secret_n():
    calibration = released("add_remove")
    for call in (lambda: calibration.conditional_coverage(0.05), calibration.coverage_at_most):
        with refused(confide.errors.InputError, "n"):
            call()
    assert calibration.conditional_coverage(0.05, 10**6) < calibration.conditional_coverage(0.05, 1000) < 0.9
    assert calibration.n is None  # and remains unknown
    assert min(released("delta").conditional_coverage(0.05, n=n) for n in (1000, 100_000)) >= 0.9 - 1e-9
    for n in (0, -1):
        with refused(confide.errors.InputError, "n"):
            calibration.conditional_coverage(0.05, n)
    for n in (1.5, True, "5"):
        with refused(confide.errors.InputTypeError, "n"):
            calibration.coverage_at_most(n)


# --- files


def test_loading_invalid_files_raises(tmp_path):
    for path in (tmp_path / "missing.json", tmp_path):
        with refused(confide.errors.InputError, "path"):
            Release.load(path)
    for content in (b"", b"{}", b"\xff\xfe\x00", b"PAR1", b"\x00" * 100, released("lac").to_json().encode()[:-20]):
        path = tmp_path / "ünï 数.json"
        path.write_bytes(content)
        with pytest.raises(confide.errors.FormatError):
            Release.load(path)


# --- releases of every kind

OF_ONE = ("threshold", "guarantee", "coverage", "mechanism", "candidates", "recipe", "size", "excludes_nothing")


@pytest.mark.slow(unless="counts")
@pytest.mark.parametrize("name", KINDS)
def test_a_release_maps_keys_to_thresholds_within_the_budget(name):
    release = of_kind(name)
    assert set(release) == set(release.request.terms)
    assert all(isinstance(part, Threshold) for part in release.values())
    assert [release[key] for key in release] == list(release.values()) == list(release.by_name.values())
    asked, privacy = release.request, release.privacy
    assert asked.epsilon is None or asked.chosen or privacy.epsilon <= asked.epsilon * (1 + 1e-15)
    assert asked.rho is None or privacy.rho <= asked.rho
    assert release.promised == min(part.coverage for part in release.values()) or release.by == "side"
    assert all(release.at(alpha).levels == (alpha,) for alpha in release.levels)
    for field in OF_ONE:
        if release.by is None:
            assert getattr(release, field) == getattr(release.only, field)
        else:
            with refused(InputTypeError, "release"):
                getattr(release, field)


@pytest.mark.slow(unless="sides")
@pytest.mark.parametrize("name", ["levels", "levels, shares", "sides"])
def test_one_of_several_levels_or_sides_is_a_release_with_its_share_of_the_budget(name):
    release = of_kind(name)
    with refused(InputTypeError, "release"):
        release.limits(1)
    for key, part in release.items():
        alone = release.alone(key)
        assert (alone.by, alone.only, alone.privacy) == (None, part, part.privacy)
        assert alone.limits() == part.threshold
        assert confide.Release.from_json(alone.to_json()) == alone


def test_groups_and_classes_have_separate_thresholds():
    one = of_kind("losses")
    assert one.limits() == one.limits(7) == one.threshold
    with refused(InputError, "groups"):
        one.limits(2, groups=["a", "b"])
    release = of_kind("groups")
    names = list(release)[::-1]
    np.testing.assert_array_equal(release.limits(len(names), groups=names), [release[name].threshold for name in names])
    with refused(InputError, "groups"):
        release.limits(3)
    by_class = of_kind("classes of labels")
    expected = [part.threshold for part in by_class.values()]
    for classes in (3, ["0", "1", "2"], ["cat", "dog", "owl"]):
        np.testing.assert_array_equal(by_class.limits(classes=classes), expected)
    np.testing.assert_array_equal(by_class.limits(classes=[2, 1, 0]), expected[::-1])
    with refused(InputError, "classes"):
        by_class.limits(5)
    with refused(InputError, "classes"):
        by_class.limits(classes=["cat", "dog"])
    with refused(InputError, "groups"):
        by_class.limits(1, groups=[0], classes=3)


@pytest.mark.slow
def test_the_bound_of_a_share_is_at_least_one():
    """Otherwise any risk could be claimed: it is the bound times a verified number."""
    content = json.loads(of_kind("false negatives").to_json())
    content["request"]["bound"] = 0.1
    with pytest.raises(FormatError):
        confide.Release.from_json(signed(content))
    with refused(InputError, "bound"):
        Request(alpha=0.05, epsilon=1.0, loss="missed_area(background=0)", bound=0.1)


# --- public metadata in documents: classes, descriptions and versions

NAMES = ("cat", "dog", "Eule ☃")
ABOUT = {
    "model": "resnet", "version": "2.1", "data": "clinic 2025", "purpose": "triage", "responsible": "Data office",
    "date": "2026-11-21",
}  # fmt: skip
P = np.random.default_rng(0).dirichlet(np.ones(3), 3000)
Y = (P.cumsum(axis=1) > np.random.default_rng(1).random((3000, 1))).argmax(axis=1)
SCORES = confide.lac_score(P, np.array(NAMES)[Y], classes=NAMES)


def described(**more):
    return confide.calibrate(SCORES, 0.1, 1.0, **more)


# --- files


def test_metadata_are_stored_in_files(tmp_path):
    release = described(about=ABOUT)
    content = json.loads(release.to_json())["request"]
    assert (content["classes"], content["about"]) == (list(NAMES), ABOUT)
    assert release == confide.Release.from_json(release.to_json())
    assert release == pickle.loads(pickle.dumps(release))  # noqa: S301
    release.save(tmp_path / "a.json")
    assert load_release(tmp_path / "a.json").to_json() == release.to_json()
    assert (release.classes, dict(release.about)) == (NAMES, ABOUT)
    assert release.checksum != described().checksum


@pytest.mark.parametrize(
    "about", [{"model": " "}, {"model": "a\nb"}, {"model": 7}, {"Model": "a"}, {"date": "x" * 501}, "resnet"]
)
def test_metadata_are_validated_before_anything_is_released(about, tmp_path):
    ledger = confide.Ledger(tmp_path / "a.db")
    with pytest.raises((confide.errors.InputError, confide.errors.InputTypeError)) as caught:
        described(about=about, ledger=ledger, dataset="d")
    assert caught.value.argument.startswith("about")
    assert not ledger.accounts()


# --- versions

HERE = {name: version(name) for name in ("confide", "numpy", "opendp", "scipy")}


@pytest.fixture(scope="module")
def drawn():
    """Documents whose numbers were drawn after the release."""
    described = confide.calibrate(np.linspace(0, 1, 900), 0.1, 4.0, score="lac")
    return {
        Evaluation: confide.evaluate(described, scores=np.linspace(0, 1, 500), epsilon=4.0),
        Watch: Watch.start(described, epsilon=4.0, batch=500).look("a", [450, 50]),
    }


def holder(content: dict) -> dict:
    return content["looks"][0] if "looks" in content else content


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Evaluation, Watch])
def test_documents_state_the_versions_that_drew_them(drawn, kind):
    text = drawn[kind].to_json()
    assert holder(json.loads(text))["versions"] == HERE
    assert kind.from_json(text) == drawn[kind]
    assert kind.from_json(text).to_json() == text
    assert "opendp" not in repr(drawn[kind])


@pytest.mark.parametrize("kind", [Evaluation, Watch])
@pytest.mark.parametrize(
    "versions", [{"opendp": "\x1b[2J"}, {"opendp": ""}, {"opendp": "1" * 101}, {"a\nb": "1"}, {"opendp": 1}, ["1"]]
)
def test_invalid_versions_raise(drawn, kind, versions):
    content = json.loads(drawn[kind].to_json())
    holder(content)["versions"] = versions
    with pytest.raises(confide.errors.FormatError):
        kind.from_json(signed(content))


# --- no name


@pytest.mark.slow
def test_a_release_without_a_score_name_makes_no_sets():
    """Unnamed margin scores were once read as LAC: coverage 0.42 with a guarantee of 0.9."""
    bare = confide.calibrate(np.asarray(confide.margin_score(P, Y)), 0.1, 1.0)
    for act in (
        lambda: confide.predict_set(P, bare),
        lambda: confide.predict_interval(P[:, 0], bare),
        lambda: confide.evaluation.evaluate_sets(bare, P, Y),
        lambda: confide.evaluation.evaluate_intervals(bare, P[:, 0], P[:, 1]),
    ):
        with refused(confide.errors.InputError, "calibration"):
            act()
    assert confide.predict_set(P, bare, score="margin").contains(Y).mean() > 0.87
    assert confide.evaluation.evaluate_scores(bare, confide.margin_score(P, Y)).coverage.value > 0.87
    with refused(confide.errors.InputError, "score"):
        confide.predict_set(P, described(), score="margin")
