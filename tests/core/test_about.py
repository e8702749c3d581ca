"""Public metadata in documents: classes, descriptions and versions."""

import json
import pickle
from importlib.metadata import version

import numpy as np
import pytest

import confide
from confide.core import load_release
from confide.evaluation import Evaluation
from confide.watching import Watch
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


@pytest.mark.parametrize(
    "about", [{"model": " "}, {"model": "a\nb"}, {"model": 7}, {"Model": "a"}, {"date": "x" * 501}, "resnet"]
)
def test_metadata_are_validated_before_anything_is_released(about, tmp_path):
    ledger = confide.Ledger(tmp_path / "a.db")
    with pytest.raises((confide.errors.InputError, confide.errors.InputTypeError)) as caught:
        released(about=about, ledger=ledger, dataset="d")
    assert caught.value.argument.startswith("about")
    assert not ledger.accounts()


# --- versions

HERE = {name: version(name) for name in ("confide", "numpy", "opendp", "scipy")}


@pytest.fixture(scope="module")
def drawn():
    """Documents whose numbers were drawn after the release."""
    released = confide.calibrate(np.linspace(0, 1, 900), 0.1, 4.0, score="lac")
    return {
        Evaluation: confide.evaluate(released, scores=np.linspace(0, 1, 500), epsilon=4.0),
        Watch: Watch.start(released, epsilon=4.0, batch=500).look("a", [450, 50]),
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
        confide.predict_set(P, released(), score="margin")
